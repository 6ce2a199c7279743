# SPDX-License-Identifier: Apache-2.0
"""The model `levels`: nested switches, where all pairs of hosts with the same lowest common switch have the same delay.

Average linkage on the logarithm of the delays gives a binary tree. A node of the binary tree is a switch if its parent
has a clearly longer delay. This gap must exceed the largest gap that random errors cause. The gap must also exceed a
limit, which is larger than the gaps that cable lengths cause. The limit is higher inside a machine and between sites
than in a network.

Two kinds of errors are then removed, and the hosts are clustered again. A slow core lengthens all delays of a host by a
common factor. A disturbed measurement makes the delay of one pair far too long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import log, log1p, sqrt

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import BinaryTree, RootedTree, link_average
from ibprof_lab.topology.infer.candidate import FLOOR, NORMAL, Candidate, Floats, find_pattern

_NETWORK_SECONDS = (600e-9, 100e-6)
"""Range of typical delays in one building's network. Delays inside a machine are shorter; delays between sites are
longer."""

_MACHINE_STEP, NETWORK_STEP, _FAR_STEP = log(1.3), log(1.06), log(1.5)
"""Smallest difference between the heights (log delays) of a switch and its parent: in a machine, in a network, between
sites."""

_CLEAR = 15.0
"""Between sites, the smallest difference is this many standard deviations of the errors, but at least `NETWORK_STEP`
and at most `_FAR_STEP`. Distances on a map have such large errors that `_FAR_STEP` is the smallest difference."""

_SHARED, _INDEPENDENT = 2.5, 1.2
"""Smallest difference between the heights of a switch and its parent, in standard deviations of the errors: `_SHARED`
if the errors have a pattern, else `_INDEPENDENT`."""

_CLOCK = 0.3
"""Standard deviation of the error that a clock causes by rounding a delay up or down at random, in clock steps."""

_OTHER_STEPS = 0.1
"""Clock errors are assumed if more than this fraction of the delays deviates from the levels by over half a clock
step."""

_ON_STEPS = 0.97
"""Delays count as multiples of a clock step if the mean resultant length of their phases (exact: 1) exceeds this."""

_LEAST_FACTOR = 0.03
_UNLIKE = 2.5
"""A host's median residual is removed from its delays if this residual deviates from all hosts' median by more than
`_LEAST_FACTOR`, and by more than `_UNLIKE` robust standard deviations."""

_FAR = 4.0
_FAR_AT_LEAST = 0.1
"""A pair is disturbed if its residual exceeds both `_FAR` standard deviations and `_FAR_AT_LEAST`."""

_FEWEST_OTHERS = 12
_ENOUGH = 0.7
"""Differences between logarithms of delays count as at most this value, a factor of 2 between the delays."""

_LIKE_OTHERS, _OF_PAIRS = 0.05, 0.3
_MORE_ALIKE = 2.0
"""A far too short delay is false if the two hosts' delays to other hosts differ by more than `_MORE_ALIKE` times the
usual difference. The usual difference of a host is its difference from the third most similar host; the smaller value
of the two hosts is used."""

_MOST_PAIRS = 1 << 18
"""The height of a node is computed from at most about this number of pairs."""

_ROUNDS, _FITS = 4, 6
_SETTLED = 0.02
_MANY_HOSTS = 2048
"""Delays of more hosts than this are clustered only once, in single precision."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Nested switches.

    Attributes:
        tree: tree of switches; node 0 is the root.
        height: float64 [node], logarithm of the delay (seconds) between two hosts whose lowest common switch is the
            node.
        node: int [node], index of each node of `tree` in the binary tree.
        linked: binary tree of the hosts.
        factor: float64 [host], logarithm of the factor that was removed from the host's delays; 0 for most hosts.
        clock_step: resolution of the clock, seconds, if the clock causes the errors of the delays; else 0.
        hidden: number of further switches that clock errors may hide. 0 if these switches together have less than half
            of the hosts, and none resembles a found switch in size and delay.
        errors: known standard deviation of the logarithm of a delay; 0 if unknown.
    """

    tree: RootedTree
    height: Floats
    node: npt.NDArray[np.integer]
    linked: LinkedHosts
    factor: Floats
    clock_step: float
    hidden: int = 0
    errors: float = 0.0

    def groups(self) -> list[frozenset[int]]:
        """Return the hosts below each switch except the root."""
        return [frozenset(self.linked.hosts_below(node).tolist()) for node in self.node[1:].tolist()]

    def without(self, dropped: Iterable[int]) -> Levels:
        """Return the levels without the switches at the nodes `dropped` of `tree`."""
        kept = np.delete(self.node, list(dropped))
        tree, height = self.linked.take_nodes(kept, np.mean if self.clock_step else np.median)
        return replace(self, tree=tree, height=height, node=kept)

    def as_candidate(self) -> Candidate:
        """Return the levels as a graph with explained delays, which do not include the factors of hosts."""
        tree, delay = self.tree, np.exp(self.height)
        own = delay[tree.node_of_leaf]
        # The time that a host's factor adds within the host's switch counts as length of the host's link.
        host_link = np.maximum(own / 2 + own * np.expm1(self.factor), 0.0)
        edge, latency, switches = tree.as_graph(host_link, (delay[tree.parent] - delay) / 2)
        explained = delay.astype(self.linked.logs.dtype)[tree.meeting_nodes()]
        np.fill_diagonal(explained, 0.0)
        return Candidate("levels", switches, edge, latency, 0.0, explained, tree.nodes)


class LinkedHosts:
    """A binary tree of hosts, and delays sorted so that the hosts below each node are contiguous.

    Args:
        logs: [n, n], logarithms of delays; nan where unknown.
    """

    def __init__(self, tree: BinaryTree, logs: npt.NDArray[np.floating]) -> None:
        leaves = tree.leaves
        size = np.ones(2 * leaves - 1, np.int64)
        for node, (one, other) in enumerate(tree.child.tolist(), leaves):
            size[node] = size[one] + size[other]
        begin = np.zeros(2 * leaves - 1, np.int64)
        self.parent = np.full(2 * leaves - 1, 2 * leaves - 2)
        for node in range(2 * leaves - 2, leaves - 1, -1):
            one, other = tree.child[node - leaves].tolist()
            begin[one], begin[other] = begin[node], begin[node] + size[one]
            self.parent[[one, other]] = node
        self.leaves, self.child, self.begin, self.size = leaves, tree.child, begin, size
        self.order = np.argsort(begin[:leaves])
        self.logs = logs[np.ix_(self.order, self.order)]
        self.is_complete = not np.isnan(self.logs).any()
        self.height = np.full(2 * leaves - 1, -np.inf)
        self.is_known = np.zeros(2 * leaves - 1, bool)
        for node in range(leaves, 2 * leaves - 1):
            values = self.known_between(node)
            below = self.height[tree.child[node - leaves]].max()
            self.is_known[node] = len(values) > 0
            self.height[node] = max(below, float(np.median(values))) if len(values) else below
        for node in range(2 * leaves - 3, leaves - 1, -1):
            if not self.is_known[node]:  # not a switch: compare the node's children with the node above
                self.height[node] = self.height[self.parent[node]]

    def between(self, node: int) -> npt.NDArray[np.floating]:
        """Return a view of the log delays between hosts of a node's two children: [host of first, host of second]."""
        other = self.child[node - self.leaves, 1]
        begin, middle = self.begin[node], self.begin[other]
        return self.logs[begin:middle, middle : middle + self.size[other]]

    def known_between(self, node: int) -> npt.NDArray[np.floating]:
        """Return the known values of `between`, one-dimensional; only a sample if there are more than `_MOST_PAIRS`."""
        values = self.between(node)
        every = -(-values.size // _MOST_PAIRS)
        values = (values[::every] if len(values) > every else values[:, ::every]).ravel()
        return values if self.is_complete else values[~np.isnan(values)]

    def hosts_below(self, node: int) -> npt.NDArray[np.integer]:
        """Return the indices of the hosts below a node."""
        return self.order[self.begin[node] : self.begin[node] + self.size[node]]

    def take_nodes(
        self, kept: npt.NDArray[np.integer], middle: Callable[[npt.NDArray[np.floating]], np.floating] = np.median
    ) -> tuple[RootedTree, Floats]:
        """Return the tree of the nodes `kept` (the root first), and each node's height: `middle` of its log delays."""
        leaves, nodes = self.leaves, 2 * self.leaves - 1
        owner = np.zeros(nodes, np.int32)
        owner[kept] = np.arange(len(kept))
        is_kept = np.zeros(nodes, bool)
        is_kept[kept] = True
        members: list[list[int]] = [[] for _ in kept]
        for node in range(nodes - 1, -1, -1):
            if not is_kept[node]:
                owner[node] = owner[self.parent[node]]
            if node >= leaves:
                members[owner[node]].append(node)
        parent = np.array([0, *owner[self.parent[kept[1:]]]], np.int32)
        height = np.empty(len(kept))
        for index, own in enumerate(members):
            values = np.concatenate([self.known_between(node) for node in own])
            height[index] = middle(values) if len(values) else self.height[own[0]]
        return RootedTree(owner[:leaves].copy(), parent), height


def find_levels(delays: npt.NDArray[np.floating], known: npt.NDArray[np.bool_], errors: float = 0.0) -> Levels:
    """Find nested switches.

    Args:
        delays: [n, n], seconds, symmetric, above 0 except on the diagonal; n at least 2. Unmeasured pairs have an
            estimated delay.
        known: bool [n, n], True for measured delays.
        errors: known standard deviation of the logarithm of a delay; gaps then have no lower limit. 0: estimate it from
            the delays.
    """
    hosts = len(delays)
    logs: npt.NDArray[np.floating] = delays.astype(np.float64) if hosts <= _MANY_HOSTS else delays.astype(np.float32)
    np.fill_diagonal(logs, 1.0)
    np.log(logs, out=logs)
    step = _find_clock_step(delays, known) if hosts <= _MANY_HOSTS and not errors else 0.0
    factor, trusted = np.zeros(hosts), known
    stand_in: npt.NDArray[np.floating] = logs
    for left in range(1 if errors or hosts > _MANY_HOSTS else _ROUNDS, 0, -1):
        even: npt.NDArray[np.floating] = stand_in - factor[:, None] - factor if factor.any() else stand_in
        found, residuals, deviation = _fit(even, delays, trusted, factor, step, errors)
        if left == 1:
            break
        longer = np.where(known, residuals + (logs - stand_in), np.nan)
        # Between sites, longer delays show that a host is far away, not that it is slow.
        more = np.zeros(hosts) if is_far(delays[known]) else _find_factors(longer)
        if more.any():
            factor = factor + more
            continue
        disturbed = known & (longer > max(_FAR * deviation, _FAR_AT_LEAST))
        instead = np.where(disturbed, even - residuals, _find_false_pairs(found, even)) + factor[:, None] + factor
        disturbed |= ~np.isnan(instead)
        if (trusted == (known & ~disturbed)).all():
            break
        trusted, stand_in = known & ~disturbed, np.where(disturbed, instead, logs)
    return found


def is_network(delays: npt.NDArray[np.floating]) -> bool:
    """Return True if most delays (seconds) are typical of a network in one building."""
    return bool(_NETWORK_SECONDS[0] < np.median(delays) < _NETWORK_SECONDS[1])


def is_far(delays: npt.NDArray[np.floating]) -> bool:
    """Return True if most delays (seconds) are longer than in a network in one building."""
    return bool(np.median(delays) >= _NETWORK_SECONDS[1])


def _fit(
    logs: npt.NDArray[np.floating],
    delays: npt.NDArray[np.floating],
    known: npt.NDArray[np.bool_],
    factor: Floats,
    step: float,
    errors: float,
) -> tuple[Levels, npt.NDArray[np.floating], float]:
    """Cluster the hosts into a binary tree, and keep the nodes that are switches.

    Returns:
        The levels, the residuals of the logarithms, [n, n], and the standard deviation of the errors.
    """
    hosts = len(logs)
    working = logs.astype(np.float32) - np.float32(logs.min())
    np.fill_diagonal(working, 0.0)
    is_whole = known.sum() == hosts * (hosts - 1)
    masked = logs if is_whole else np.where(known | np.eye(hosts, dtype=bool), logs, np.nan)
    linked = LinkedHosts(link_average(working), masked)
    deviation, least, clock = errors or _SETTLED, _INDEPENDENT, 0.0
    for _ in range(_FITS):
        kept = np.array([2 * hosts - 2, *_find_gaps(linked, delays, deviation, least, clock, errors)])
        tree, height = linked.take_nodes(kept)
        residuals = logs - height.astype(logs.dtype)[tree.meeting_nodes()]
        np.fill_diagonal(residuals, 0.0)
        pattern = find_pattern(residuals, known)
        if errors:
            break
        before = deviation, least, clock
        deviation = max(NORMAL * _median_size(residuals, known), FLOOR)
        least = _SHARED if pattern.is_certain and deviation > 1.3 * FLOOR else _INDEPENDENT
        if step:
            longer = np.exp(logs) - np.exp(logs - residuals)
            is_off = (np.abs(longer) * np.exp(factor[:, None] + factor) > step / 2)[known]
            clock = step if is_off.mean() > _OTHER_STEPS else 0.0
        if abs(deviation / before[0] - 1) < _SETTLED and (least, clock) == before[1:]:
            break
    hidden = 0
    if clock:
        more = np.setdiff1d(list(_find_gaps(linked, delays, deviation, least, 0.0, errors)), kept).astype(int)
        # Use means, since the median of rounded delays is itself rounded.
        tree, height = linked.take_nodes(kept, np.mean)
        # The delays of similar switches of one size differ by at most one clock step. If only some of these switches
        # are found, the clock's errors hide the others.
        seconds, size = np.exp(linked.height), linked.size
        is_peer = seconds[more, None] < seconds[kept] + 1.5 * clock
        is_peer &= size[more, None] == size[kept]
        hidden = len(more) if is_peer.any() or 2 * size[more].sum() >= hosts else 0
    return Levels(tree, height, kept, linked, factor, clock, hidden, errors), residuals, deviation


def _median_size(residuals: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> float:
    rows = np.linspace(0, len(residuals) - 1, min(len(residuals), _MANY_HOSTS)).astype(int)
    if len(rows) < len(residuals):
        residuals, known = residuals[rows], known[rows]
    return float(np.median(np.abs(residuals[known]))) if known.any() else 0.0


def _find_gaps(
    linked: LinkedHosts,
    delays: npt.NDArray[np.floating],
    deviation: float,
    least: float,
    clock: float,
    errors: float,
) -> Iterator[int]:
    """Yield the indices of the nodes that are switches, the largest index first, without the root.

    The gap to the parent's height must exceed the largest error of the gap and, if `errors` is 0, a lower limit. The
    largest error has two parts: `least` deviations that all pairs of the node share, and the largest of n^3 / 6 random
    differences between the mean delays of a node and its parent. The clock's resolution increases the deviation.
    """
    hosts = linked.leaves
    largest = sqrt(2 * log(max(hosts**3 / 6, 2)))
    for node in range(2 * hosts - 3, hosts - 1, -1):
        if not linked.is_known[node]:
            continue
        height, size = linked.height[node], linked.size[node]
        step = linked.height[linked.parent[node]] - height
        seconds = float(np.exp(height))
        floor = (_MACHINE_STEP, NETWORK_STEP, _FAR_STEP)[int(np.searchsorted(_NETWORK_SECONDS, seconds))]
        if floor == _FAR_STEP:
            floor = min(floor, max(NETWORK_STEP, _CLEAR * deviation))
        pairs, pairs_above = size * (size - 1) / 2, size * (linked.size[linked.parent[node]] - size)
        width = least + largest * sqrt(1 / pairs + 1 / pairs_above)
        # Errors of the clock add seconds; other errors are proportional to the delay.
        error = float(np.hypot(deviation * width, log1p(_CLOCK * clock * width / seconds)))
        needed = max(0.0 if errors else floor, error)
        if step >= needed and not _lacks_a_slow_host(linked, delays, node):
            yield node


def _lacks_a_slow_host(linked: LinkedHosts, delays: npt.NDArray[np.floating], node: int) -> bool:
    """Return True if a node's parent only adds a slow host to the node, and therefore is no separate level.

    To hosts outside the parent, a slow host has longer delays than the node's hosts.
    """
    near, both = linked.hosts_below(node), linked.hosts_below(linked.parent[node])
    if len(both) != len(near) + 1 or len(near) < 3 or len(both) == linked.leaves:
        return False
    slow = int(np.setdiff1d(both, near)[0])
    beyond = np.setdiff1d(np.arange(linked.leaves), both)
    within = delays[np.ix_(near, near)][~np.eye(len(near), dtype=bool)]
    added = np.median(delays[slow, near]) - np.median(within)
    return bool(np.median(delays[slow, beyond] - np.median(delays[np.ix_(near, beyond)], axis=0)) > added / 2)


def _find_false_pairs(levels: Levels, logs: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return the log delays that replace the delays of false pairs, [n, n]; nan for all other pairs.

    The far too short delay of a false pair makes its two hosts look like the hosts of a switch. The two hosts of a
    false pair have different delays to other hosts. If many switches with two hosts have the same delay, pairs with
    this delay or a longer one are not false.
    """
    instead = np.full(logs.shape, np.nan)
    linked = levels.linked
    if linked.leaves < _FEWEST_OTHERS:
        return instead
    pairs = levels.node[linked.size[levels.node] == 2]
    height = linked.height[pairs]
    peers = (np.abs(np.subtract.outer(height, height)) < _LIKE_OTHERS).sum(axis=1)
    usual = height[peers > np.maximum(3, _OF_PAIRS * len(pairs))].min(initial=np.inf)
    for node in pairs[height < usual - _LIKE_OTHERS].tolist():
        one, other = linked.hosts_below(node).tolist()
        alike = np.inf
        for host in (one, other):
            unlike = np.abs(logs - logs[host])
            unlike[:, [one, other]] = 0.0
            np.fill_diagonal(unlike, 0.0)
            size = np.minimum(unlike, _ENOUGH).mean(axis=1)
            both = size[one + other - host]
            alike = min(alike, float(np.partition(np.delete(size, [one, other]), 2)[2]))
        if both > _MORE_ALIKE * alike:
            instead[one, other] = instead[other, one] = linked.height[linked.parent[node]]
    return instead


def _find_factors(residuals: npt.NDArray[np.floating]) -> Floats:
    """Return the logarithm of the factor to remove from each host's delays, float64 [host]; 0 for most hosts."""
    own = np.nan_to_num(np.nanmedian(residuals, axis=1))
    own -= np.median(own)
    limit = max(_UNLIKE * NORMAL * float(np.median(np.abs(own))), _LEAST_FACTOR)
    return np.where(np.abs(own) > limit, own, 0.0).astype(np.float64)


def _find_clock_step(delays: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> float:
    """Return the clock's resolution in seconds; 0 if delays are not multiples of their smallest difference."""
    values = np.unique(delays[known])
    steps = np.diff(values)
    steps = steps[steps > 1e-4 * values[:1].sum()]
    if not len(steps):
        return 0.0
    step = float(steps.min())
    return step if abs(np.exp(2j * np.pi * values / step).mean()) > _ON_STEPS else 0.0


Splits = dict[frozenset[int], float]


def find_support(
    levels: Levels,
    delays: npt.NDArray[np.floating],
    known: npt.NDArray[np.bool_],
    draws: Iterable[npt.NDArray[np.integer]],
) -> tuple[Splits, Floats, int]:
    """Infer levels again from random subsets of the hosts, and count how often each switch is found again.

    Args:
        delays, known: as for `find_levels`.
        draws: host indices of each subset, ascending.

    Returns:
        The support of each link between switches, the support of each host's switch (float64 [host]), and the number of
        subsets. A subset counts for a link if the subset has at least two hosts on each side of the link. The link's
        support is the fraction of these subsets from which the link is inferred again. The key of a link is the set of
        hosts on the side without host 0.
    """
    hosts, count = len(delays), 0
    groups = [_away_from(0, group, frozenset(range(hosts))) for group in levels.groups()]
    shown, found = dict.fromkeys(groups, 0), dict.fromkeys(groups, 0)
    drawn, at_root = np.zeros(hosts), np.zeros(hosts)
    for chosen in draws:
        count += 1
        again = find_levels(delays[np.ix_(chosen, chosen)], known[np.ix_(chosen, chosen)], levels.errors)
        every, first = frozenset(chosen.tolist()), int(chosen[0])
        splits = {_away_from(first, frozenset(chosen[sorted(group)].tolist()), every) for group in again.groups()}
        for group in shown:
            part = _away_from(first, group & every, every)
            if 1 < len(part) < len(every) - 1:
                shown[group] += 1
                found[group] += part in splits
        drawn[chosen] += 1
        at_root[chosen] += again.tree.node_of_leaf == 0
    share = {group: found[group] / shown[group] if shown[group] else np.nan for group in groups}
    of_node = np.array([0.0, *(share[group] for group in groups)])
    own = levels.tree.node_of_leaf
    return share, np.where(own == 0, at_root / np.maximum(drawn, 1), of_node[own]), count


def _away_from(host: int, group: frozenset[int], every: frozenset[int]) -> frozenset[int]:
    return every - group if host in group else group
