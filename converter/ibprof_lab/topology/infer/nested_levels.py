# SPDX-License-Identifier: Apache-2.0
"""Levels: hosts under nested switches, and one delay for all pairs that meet in a switch.

Average linkage on the logarithm of the delays gives a binary tree; its nodes are merged into those above them while a
penalised fit improves. Errors of a delay are relative. Then nodes are merged that differ too little for errors that
pairs share.

Where some hosts of a switch have slower links, levels put the others on a switch below one with the slow hosts. Two
facts distinguish slow links from that: slow hosts are twice as far from one another, and farther from everything beyond
as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import PrunedTree, RootedTree, link_average, prune
from ibprof_lab.topology.infer.candidate import (
    FLOOR,
    NORMAL,
    OUTLYING,
    Candidate,
    Floats,
    Integers,
    find_pattern,
    graph_of_tree,
    sample_hosts,
    score,
)
from ibprof_lab.topology.infer.pair_delays import fill_gaps

_ROUNDS = 8
_SETTLED = 0.01

_ENOUGH = 0.7
"""Difference of logarithms, a factor of 2, beyond which two delays differ, by how much does not count."""

_SAMPLED = 192
_MOST_AGAIN = 1_000_000


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
    edge, latency, switches = _graph_of_levels(tree, delay)
    explained: Floats = delay[tree.meeting_nodes()]
    np.fill_diagonal(explained, 0.0)
    return Candidate("levels", switches, edge, latency, 0.0, explained, tree.nodes)


def _graph_of_levels(tree: RootedTree, delay: Floats, extra: Floats | float = 0.0) -> tuple[Integers, Floats, int]:
    """Return nested switches as `graph_of_tree`, by the delay of each node; hosts' links may be longer by `extra`."""
    return graph_of_tree(tree, delay[tree.node_of_leaf] / 2 + extra, (delay[tree.parent] - delay) / 2)


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
            edge, latency, switches = _graph_of_levels(tree, height, extra)
            best = Candidate("levels", switches, edge, latency, 0.0, explained, plain.parameters)
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


@dataclass(frozen=True, slots=True)
class ManyHosts:
    """Levels of thousands of hosts.

    Attributes:
        candidate: the graph, without the matrix of explained delays.
        noise: typical relative deviation of a delay.
        unexplained: whether the residuals have a pattern.
        again: int [pair, 2], delays that deviate too far.
    """

    candidate: Candidate
    noise: float
    unexplained: bool
    again: npt.NDArray[np.integer]


def choose_for_many(delays: npt.NDArray[np.floating]) -> ManyHosts:
    """Find nested switches and the delays that deviate from them.

    Args:
        delays: [n, n], seconds, symmetric, nan where not measured.
    """
    measured = ~np.isnan(delays)
    np.fill_diagonal(measured, False)
    working = delays if measured.sum() == measured.size - len(delays) else fill_gaps(delays, measured)
    levels = find_levels(working)
    rows = np.linspace(0, len(delays) - 1, _SAMPLED).astype(int)
    sampled = np.stack([each for _, each in _residuals(levels, working, rows)])
    left = float(np.median(np.abs(sampled[measured[rows]])))
    limit = OUTLYING * NORMAL * max(left, FLOOR)
    found: list[npt.NDArray[np.integer]] = []
    count = 0
    for row, residuals in _residuals(levels, working, np.arange(len(delays))):
        far = np.flatnonzero((np.abs(residuals[row + 1 :]) > limit) & measured[row, row + 1 :]) + row + 1
        found.append(np.stack([np.full(len(far), row), far], axis=1))
        count += len(far)
        if count > _MOST_AGAIN:
            break
    tree = levels.pruned.tree
    edge, latency, switches = _graph_of_levels(tree, np.exp(levels.pruned.height))
    return ManyHosts(
        Candidate("levels", switches, edge, latency, 0.0, np.zeros((0, 0)), tree.nodes),
        NORMAL * left,
        find_pattern(sampled[:, rows], measured[np.ix_(rows, rows)]).is_certain,
        np.concatenate(found),
    )


def _residuals(
    levels: Levels, delays: npt.NDArray[np.floating], rows: npt.NDArray[np.integer]
) -> Iterator[tuple[int, npt.NDArray[np.floating]]]:
    """Yield rows of the logarithm of each delay over the explained one; 0 on the diagonal."""
    tree, height = levels.pruned.tree, levels.pruned.height.astype(np.float32)
    order, begin, end = tree.order_leaves()
    back = np.argsort(order)
    ordered = np.empty(len(order), np.float32)
    for row in rows.tolist():
        path = [int(tree.node_of_leaf[row])]
        while path[-1]:
            path.append(int(tree.parent[path[-1]]))
        for node in reversed(path):
            ordered[begin[node] : end[node]] = height[node]
        with np.errstate(divide="ignore"):
            residuals = np.log(delays[row]) - ordered[back]
        residuals[row] = 0.0
        yield row, residuals
