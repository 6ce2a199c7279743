# SPDX-License-Identifier: Apache-2.0
"""Nested switches on which some hosts have slower links; levels alone would represent these by switches.

Where some hosts of a switch are farther from the others, levels put the others on a switch below one with the slow
hosts. Two facts distinguish slow links from that: slow hosts are twice as far from one another, and farther from
everything beyond as well.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import RootedTree
from ibprof_lab.topology.infer.candidate import Candidate, Floats, graph_of_tree, score
from ibprof_lab.topology.infer.nested_levels import Levels


def join_slow_hosts(levels: Levels, plain: Candidate, delays: Floats, known: npt.NDArray[np.bool_]) -> Candidate | None:
    """Merge switches into those above them while slow links of hosts explain the delays better.

    Args:
        levels: nested switches.
        plain: the same as a candidate.
        delays: float64 [n, n], seconds, symmetric.
        known: bool [n, n], which delays count.

    Returns:
        The best candidate with slow links; None where none is better than `plain`.
    """
    tree, height = levels.pruned.tree, np.exp(levels.pruned.height)
    tried: set[bytes] = set()
    step = _find_step(tree, tried)
    if step is None:
        return None
    extra = np.zeros(len(delays))
    best, least = None, score(plain, delays, known)
    meeting = tree.meeting_nodes()
    while step is not None:
        node, slow = step
        tried.add(np.packbits(slow).tobytes())
        above = tree.parent[node]
        near = np.isin(np.arange(len(delays)), tree.leaves_below(node))
        pairs = known & slow[:, None] & near
        more = extra.copy()
        if pairs.any():
            beyond = (delays - extra[:, None] - extra)[pairs]
            more[slow] += max(float(np.median(beyond)) - height[node], 0.0)
        changed = height.copy()
        changed[above] = height[node]
        explained = changed[meeting] + more[:, None] + more
        np.fill_diagonal(explained, 0.0)
        candidate = Candidate("levels", 0, plain.edge, plain.latency, 0.0, explained, plain.parameters)
        if (reached := score(candidate, delays, known)) < least:
            least, height, extra = reached, changed, more
            tree, height = tree.without_node(node), np.delete(height, node)
            meeting = tree.meeting_nodes()
            best = _as_candidate(tree, height, extra, plain.parameters, explained)
            tried.clear()
        step = _find_step(tree, tried)
    return best


def _find_step(tree: RootedTree, tried: set[bytes]) -> tuple[int, npt.NDArray[np.bool_]] | None:
    """Find a switch that is the only one below another, and the hosts next to it there."""
    switches = np.bincount(tree.parent[1:], minlength=tree.nodes)
    for node in range(tree.nodes - 1, 0, -1):
        above = tree.parent[node]
        slow = tree.node_of_leaf == above
        # One host next to a switch at the root has a longer link already.
        if switches[above] == 1 and slow.sum() > (above == 0) and np.packbits(slow).tobytes() not in tried:
            return node, slow
    return None


def _as_candidate(tree: RootedTree, height: Floats, extra: Floats, parameters: int, explained: Floats) -> Candidate:
    host_length = height[tree.node_of_leaf] / 2 + extra
    node_length = (height[tree.parent] - height) / 2
    edge, latency, switches = graph_of_tree(tree, host_length, node_length)
    return Candidate("levels", switches, edge, latency, 0.0, explained, parameters)
