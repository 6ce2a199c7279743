# SPDX-License-Identifier: Apache-2.0
"""Levels: hosts under nested switches, and one delay for all pairs that meet in a switch.

Average linkage on the logarithm of the delays gives a binary tree; its nodes are merged into those above them while a
penalised fit improves. Errors of a delay are relative. Then nodes are merged that differ too little for errors that
pairs share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import PrunedTree, RootedTree, link_average, prune
from ibprof_lab.topology.infer.candidate import FLOOR, Candidate, Floats, graph_of_tree
from ibprof_lab.topology.infer.residual_pattern import NORMAL, find_pattern, sample_hosts

_ROUNDS = 8
_SETTLED = 0.01

_ENOUGH = 0.7
"""Difference of logarithms, a factor of 2, beyond which two delays differ, by how much does not count."""


@dataclass(frozen=True, slots=True)
class NearGroup:
    """Hosts that are nearer to one another, by too little for a switch, given the errors.

    Attributes:
        hosts: int [host].
        step: by how much their delays are shorter, of the logarithm.
        deviation: of the errors, of the logarithm.
    """

    hosts: npt.NDArray[np.integer]
    step: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Levels:
    """Nested switches.

    Attributes:
        pruned: the tree; heights are logarithms of seconds.
        variance: of the logarithm of a delay around them.
        significant: the tree with all nodes that are significant if errors of pairs are independent.
        near: of the groups of hosts that were not taken for a switch, the one with the largest step; None if none.
    """

    pruned: PrunedTree
    variance: float
    significant: RootedTree
    near: NearGroup | None = None

    @property
    def least_step(self) -> float:
        """The least increase of the logarithm of a delay from a switch to the one above; infinite for one switch."""
        height = self.pruned.height
        return float(np.min((height[self.pruned.tree.parent] - height)[1:], initial=np.inf))


def find_levels(delays: npt.NDArray[np.floating]) -> Levels:
    """Find nested switches.

    Args:
        delays: [n, n], seconds, symmetric, above 0 except on the diagonal; n at least 2.
    """
    hosts = len(delays)
    logs = delays.astype(np.float32)
    np.fill_diagonal(logs, 1.0)
    np.log(logs, out=logs)
    # Near 0 the squares below do not drown the deviations.
    middle = np.float32(logs[0, 1:].mean())
    logs -= middle
    np.fill_diagonal(logs, 0.0)
    pairs = hosts * (hosts - 1) // 2
    squares = float(np.einsum("ij,ij->", logs, logs, dtype=np.float64)) / 2
    rows = sample_hosts(hosts)
    sampled = logs[np.ix_(rows, rows)]
    tree = link_average(logs)
    rest = max(squares - float(np.dot(tree.weight, tree.height**2)), 0.0)
    variance = max(rest / max(pairs - (hosts - 1), 1), FLOOR**2)
    for _ in range(_ROUNDS):
        pruned = prune(tree, variance, pairs)
        before, variance = variance, max((rest + pruned.lost) / max(pairs - pruned.tree.nodes, 1), FLOOR**2)
        if abs(variance / before - 1) < _SETTLED:
            break
    significant = pruned.tree
    pruned, near = _merge_small_steps(pruned, rows, sampled)
    variance = max((rest + pruned.lost) / max(pairs - pruned.tree.nodes, 1), FLOOR**2)
    pruned.height[:] += middle
    return Levels(pruned, variance, significant, near)


def _merge_small_steps(
    pruned: PrunedTree, rows: npt.NDArray[np.integer], sampled: npt.NDArray[np.float32]
) -> tuple[PrunedTree, NearGroup | None]:
    """Merge nodes into those above them while the step between them is too small for the errors.

    Args:
        pruned: nodes that are significant if errors of pairs are independent.
        rows: some hosts.
        sampled: float32 [row, row], logarithms of their delays, less the constant that heights lack.
    """
    tree, height, weight, lost = pruned.tree, pruned.height.copy(), pruned.weight.copy(), pruned.lost
    meeting = tree.meeting_nodes()[np.ix_(rows, rows)]
    known = ~np.eye(len(rows), dtype=bool)
    largest, near = 0.0, np.zeros(0, int)
    while True:
        pattern = find_pattern(np.where(known, sampled - height[meeting], 0.0), known)
        if tree.nodes == 1:
            break
        step = (height[tree.parent] - height)[1:]
        node = int(np.argmin(step)) + 1
        if step[node - 1] >= pattern.least_step:
            break
        if step[node - 1] > largest and not _lacks_a_slow_host(tree, node, step[node - 1], rows, sampled):
            largest, near = float(step[node - 1]), tree.leaves_below(node)
        above = int(tree.parent[node])
        both = weight[node] + weight[above]
        lost += weight[node] * weight[above] / both * step[node - 1] ** 2
        height[above] += weight[node] / both * (height[node] - height[above])
        weight[above] = both
        height, weight = np.delete(height, node), np.delete(weight, node)
        meeting = np.where(meeting == node, above, meeting)
        meeting -= meeting > node
        tree = tree.without_node(node)
    return PrunedTree(tree, height, weight, lost), NearGroup(near, largest, pattern.deviation) if len(near) else None


def _lacks_a_slow_host(
    tree: RootedTree, node: int, step: float, rows: npt.NDArray[np.integer], sampled: npt.NDArray[np.float32]
) -> bool:
    """Return whether a node has all hosts of the one above it but a slow one: it is farther from hosts beyond, too."""
    near = tree.leaves_below(node)
    others = np.setdiff1d(tree.leaves_below(int(tree.parent[node])), near)
    beyond = np.setdiff1d(np.flatnonzero(~np.isin(rows, near)), np.flatnonzero(np.isin(rows, others)))
    slow, rest = np.flatnonzero(np.isin(rows, others)), np.flatnonzero(np.isin(rows, near))
    if len(others) != 1 or not len(slow) or not len(rest):
        return False
    if not len(beyond):  # a single host next to all others has no switch of its own
        return True
    more = sampled[slow[0], beyond] - np.median(sampled[np.ix_(rest, beyond)], axis=0)
    return bool(np.median(more) > step / 2)


def find_levels_robustly(delays: npt.NDArray[np.floating]) -> Levels:
    """Find nested switches where some delays are grossly wrong.

    Hosts are linked by the similarity of their delays to all others, to which a single delay adds little. A node's
    height is the median of its pairs.

    Args:
        delays: as for `find_levels`.
    """
    hosts = len(delays)
    logs = np.log(np.where(np.eye(hosts, dtype=bool), 1.0, delays))
    tree = link_average(_compare_rows(logs))
    heights = np.empty(hosts - 1)
    spreads = []
    below: list[list[int]] = [[host] for host in range(hosts)]
    for node, (a, b) in enumerate(tree.child.tolist()):
        values = logs[np.ix_(below[a], below[b])]
        heights[node] = np.median(values)
        spreads.append(np.abs(values - heights[node]).ravel())
        below.append(below[a] + below[b])
    tree = replace(tree, height=heights)
    pairs = hosts * (hosts - 1) // 2
    variance = max(NORMAL * float(np.median(np.concatenate(spreads))), FLOOR) ** 2
    pruned = prune(tree, variance, pairs)
    return Levels(pruned, variance, pruned.tree)


def _compare_rows(logs: Floats) -> npt.NDArray[np.float32]:
    """Return the mean difference of hosts' delays to others, beyond a constant, float32 [n, n].

    Large differences are capped.
    """
    hosts = len(logs)
    unlike = np.zeros((hosts, hosts), np.float32)
    for host in range(hosts - 1):
        difference = logs[host] - logs[host + 1 :]
        difference[:, host] = np.nan
        difference[np.arange(len(difference)), np.arange(host + 1, hosts)] = np.nan
        if hosts > 2:
            difference -= np.nanmedian(difference, axis=1, keepdims=True)
            unlike[host, host + 1 :] = np.nanmean(np.minimum(np.abs(difference), _ENOUGH), axis=1)
    return unlike + unlike.T


def as_candidate(levels: Levels) -> Candidate:
    """Return nested switches as a graph with the delays that it explains."""
    tree = levels.pruned.tree
    delay = np.exp(levels.pruned.height)
    edge, latency, switches = graph_of_tree(tree, delay[tree.node_of_leaf] / 2, (delay[tree.parent] - delay) / 2)
    explained: Floats = delay[tree.meeting_nodes()]
    np.fill_diagonal(explained, 0.0)
    return Candidate("levels", switches, edge, latency, 0.0, explained, tree.nodes)
