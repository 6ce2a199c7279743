# SPDX-License-Identifier: Apache-2.0
"""Topologies from few measured pairs: all pairs of the core hosts are measured; a search places the remaining hosts.

For a tree over n hosts, about n * depth * degree pairs are measured instead of n^2 / 2. Each host descends from the
root: at each switch, the delay to one host of a subtree shows whether the descending host belongs to the subtree.
Placed hosts serve as partners for the descending hosts, so that a round measures many pairs at once. `PairSearch`
chooses the pairs to measure; `attach_hosts` places the hosts by the measured delays.

Source: S. K. Kannan, E. L. Lawler, T. J. Warnow, "Determining the evolutionary tree using experiments", J. Algorithms
21 (1996); G. S. Brodal, R. Fagerberg, C. N. S. Pedersen, A. Ostlin, "The complexity of constructing evolutionary trees
using experiments", ICALP 2001.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

from ibprof_lab.topology.infer.candidate import FLOOR, OUTLYING, Floats
from ibprof_lab.topology.infer.levels import Levels
from ibprof_lab.topology.infer.model_choice import choose_model
from ibprof_lab.topology.model.inferred_topology import InferredTopology

Pair = tuple[int, int]

_FIRST = 40
_FEWEST_FIRST = 16
"""Initial number of core hosts: half of all hosts, but at least 16 and at most 40. All pairs of core hosts are
measured."""

_OF_A_SWITCH = 3
"""Placed hosts join the core until each lowest switch has this number of core hosts. The three delays between
three hosts prove a switch; the one delay between two hosts does not."""

_AGREEING = 2
"""A host descends into a subtree if at least this many more delays place it inside than outside. A majority of one
delay is enough once the host's delays to all hosts of the subtree are measured. A host is excluded from the last
possible subtree only if at least this many more delays place the host outside."""

_OF_LOWEST = 0.2
"""The usual height (log delay) of a switch with hosts is this quantile of the lowest switches' heights."""

_ANOTHER_LEVEL = 0.22
"""A switch is on a higher level if its height exceeds the usual height by more than this (delay factor 1.25)."""

_FEWEST = 16
"""Smallest number of hosts in a core; all pairs of core hosts are measured."""

_MOST_MEASURED = 0.5
"""If more than this fraction of the pairs was measured, the topology of all hosts is inferred without a core."""

_CAUTION = 5.0
"""A host's switch is certain if every other switch has a log-likelihood lower by at least this (factor 150)."""


@dataclass(slots=True)
class _Subtree:
    """A switch or a single host in the tree of placed hosts.

    Attributes:
        height: logarithm of the delay (seconds) between two hosts whose lowest common switch this is; estimated for a
            single host.
        children: subtrees below; empty for a single host, and for a lowest switch.
        hosts: all hosts in the subtree.
    """

    height: float
    hosts: list[int]
    children: list[_Subtree] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Evidence for k hosts: to which child of a tree node each host belongs.

    Attributes:
        near, far: int [k, children], number of delays that place the host inside (near) or outside (far) the child.
        is_complete: bool [k, children], True if the host's delays to all hosts of the child are measured.
    """

    near: npt.NDArray[np.integer]
    far: npt.NDArray[np.integer]
    is_complete: npt.NDArray[np.bool_]

    @property
    def belongs(self) -> npt.NDArray[np.bool_]:
        """True if the host belongs to the child, bool [k, children]."""
        more = self.near - self.far
        return (more > 0) & ((more >= _AGREEING) | self.is_complete)

    @property
    def is_out(self) -> npt.NDArray[np.bool_]:
        """True if the host is excluded from the child, bool [k, children].

        A host is excluded if more delays place it outside than inside. If all other children seem excluded, this
        majority must be at least `_AGREEING`. A host is also excluded once its delays to all hosts of the child are
        measured.
        """
        seems = self.far > self.near
        others_seem = seems.sum(axis=1, keepdims=True) - seems == seems.shape[1] - 1
        out: npt.NDArray[np.bool_] = self.is_complete | (seems & (~others_seem | (self.far - self.near >= _AGREEING)))
        return out


class PairSearch:
    """A search that places hosts. Call `choose_pairs` for each round of pairs to measure, until it returns None.

    Attributes:
        is_hierarchy: True if nested switches explain the delays of the first core hosts; else the search ends.

    Args:
        hosts: number of all hosts.
    """

    def __init__(self, hosts: int, seed: int = 0) -> None:
        self.hosts = hosts
        self.seconds: npt.NDArray[np.float64] = np.full((hosts, hosts), np.nan)
        self.is_hierarchy = True
        self._lowest = 0.0
        self._missing: dict[int, set[int]] = {}
        self._random = np.random.default_rng(seed)
        self._rounds = self._search()

    def choose_pairs(self, seconds: npt.NDArray[np.floating]) -> list[Pair] | None:
        """Return pairs that may be measured at the same time; None if no pair is left to measure.

        Args:
            seconds: [n, n], delays measured so far, seconds; nan where not measured.
        """
        self.seconds = np.fmin(seconds, seconds.T).astype(np.float64)
        return next(self._rounds, None)

    def _search(self) -> Iterator[list[Pair]]:
        order = [int(host) for host in self._random.permutation(self.hosts)]
        first = min(max(self.hosts // 2, _FEWEST_FIRST), _FIRST)
        core = order[:first]
        for host in core:
            self._join_core(host)
        while pairs := self._match_core(set(core)):
            yield pairs + self._pair_at_random(order[first:])
        if len(core) == self.hosts:
            return
        delays = self.seconds[np.ix_(core, core)]
        np.fill_diagonal(delays, 0.0)
        choice = choose_model(delays)
        self.is_hierarchy = choice.candidate.model == "levels" and not choice.unexplained
        if not self.is_hierarchy or choice.levels is None:
            return
        root = self._plant(core, choice.levels)
        for subtree in list(_walk(root)):
            self._represent(subtree)
        yield from self._place(root, order[first:])
        while pairs := self._match_core(set(self._missing)):
            yield pairs

    def _join_core(self, host: int) -> None:
        """Add a host to the core, so that its pairs with all other core hosts are measured."""
        peers = {peer for peer in self._missing if np.isnan(self.seconds[host, peer])}
        self._missing[host] = peers
        for peer in peers:
            self._missing[peer].add(host)

    def _match_core(self, free: set[int]) -> list[Pair]:
        """Return disjoint pairs of core hosts without a measured delay; remove their hosts from `free`."""
        pairs = []
        for host in sorted(free & self._missing.keys(), key=lambda each: (-len(self._missing[each]), each)):
            peers = self._missing[host] & free
            if host in free and peers:
                peer = max(peers, key=lambda each: (len(self._missing[each]), each))
                pairs.append((min(host, peer), max(host, peer)))
                free -= {host, peer}
                self._missing[host].discard(peer)
                self._missing[peer].discard(host)
        return pairs

    def _represent(self, subtree: _Subtree) -> None:
        """Add hosts of a lowest switch to the core, until `_OF_A_SWITCH` of the switch's hosts are in the core."""
        if not subtree.children:
            wanted = _OF_A_SWITCH - sum(host in self._missing for host in subtree.hosts)
            spare = [host for host in subtree.hosts if host not in self._missing]
            for host in spare[: max(wanted, 0)]:
                self._join_core(host)

    def _plant(self, core: list[int], levels: Levels) -> _Subtree:
        """Return the tree of the core hosts."""
        tree, height = levels.tree, levels.height
        nodes = [_Subtree(float(each), []) for each in height]
        for node in range(tree.nodes - 1, 0, -1):
            nodes[tree.parent[node]].children.append(nodes[node])
        for index, node in enumerate(tree.node_of_leaf.tolist()):
            above = node
            while True:
                nodes[above].hosts.append(core[index])
                if above == 0:
                    break
                above = int(tree.parent[above])
        self._lowest = float(np.quantile([node.height for node in nodes if not node.children], _OF_LOWEST))
        for index, node in enumerate(tree.node_of_leaf.tolist()):
            if nodes[node].children or nodes[node].height > self._lowest + _ANOTHER_LEVEL:
                nodes[node].children.append(_Subtree(min(self._lowest, nodes[node].height), [core[index]]))
        return nodes[0]

    def _place(self, root: _Subtree, others: list[int]) -> Iterator[list[Pair]]:
        """Move all unplaced hosts down the tree at the same time; yield the pairs of each round."""
        above: dict[int, list[_Subtree]] = {id(root): [root]}
        for node in _walk(root):
            for child in node.children:
                above[id(child)] = [*above[id(node)], child]
        below = {id(root): (root, list(others))}
        while True:
            self._move(below, above)
            if not below:
                return
            free = set(root.hosts)
            asked = [pair for node, hosts in below.values() for pair in self._ask(node, hosts, free)]
            busy = {host for pair in asked for host in pair}
            idle = [host for _, hosts in below.values() for host in hosts if host not in busy]
            yield asked + self._match_core(free) + self._pair_at_random(idle)

    def _move(self, below: dict[int, tuple[_Subtree, list[int]]], above: dict[int, list[_Subtree]]) -> None:
        """Move hosts down to the children that they belong to; place hosts that reach a lowest switch.

        Args:
            below: id of a subtree -> the subtree, and the descending hosts that reached it.
            above: id of a subtree -> path from the root to the subtree.
        """
        waiting = [node for node, _ in below.values()]
        while waiting:
            node = waiting.pop()
            _, hosts = below.pop(id(node))
            evidence = self._weigh(node, hosts)
            stay = []
            is_grown = False
            for host, belongs, more, is_out in zip(
                hosts, evidence.belongs, evidence.near - evidence.far, evidence.is_out, strict=True
            ):
                if belongs.any():
                    child = node.children[int(np.argmax(np.where(belongs, more, 0)))]
                    if id(child) not in below:
                        below[id(child)] = (child, [])
                        waiting.append(child)
                    below[id(child)][1].append(host)
                elif not node.children:
                    self._settle(host, above[id(node)])
                elif is_out.all() and not is_grown:
                    # Add only one switch at a time, since further hosts may be on the new switch. The next rounds
                    # measure the delays of further hosts to the new switch's host.
                    lone = _Subtree(min(self._lowest, node.height), [])
                    node.children.append(lone)
                    above[id(lone)] = [*above[id(node)], lone]
                    self._settle(host, above[id(lone)])
                    is_grown = True
                else:
                    stay.append(host)
            if stay:
                below[id(node)] = (node, stay)
                if is_grown:
                    waiting.append(node)

    def _settle(self, host: int, path: list[_Subtree]) -> None:
        for node in path:
            node.hosts.append(host)
        self._represent(path[-1])

    def _weigh(self, node: _Subtree, hosts: list[int]) -> _Evidence:
        """Compare the hosts' delays with a limit for each child of a node, and return the evidence."""
        size = len(node.children)
        placed = [host for child in node.children for host in child.hosts]
        of_child = np.repeat(np.arange(size), [len(child.hosts) for child in node.children])
        limit = np.exp([(child.height + node.height) / 2 for child in node.children])
        seconds = self.seconds[np.ix_(hosts, placed)]
        is_of = (of_child[:, None] == np.arange(size)).astype(np.float32)
        near = (seconds < limit[of_child]).astype(np.float32) @ is_of
        measured = np.isfinite(seconds).astype(np.float32) @ is_of
        return _Evidence(near.astype(int), (measured - near).astype(int), measured == is_of.sum(axis=0))

    def _ask(self, node: _Subtree, hosts: list[int], free: set[int]) -> list[Pair]:
        """Pair each host with a free host of the child to which the host most likely belongs."""
        evidence = self._weigh(node, hosts)
        peers = [[host for host in child.hosts if host in free] for child in node.children]
        for each in peers:
            self._random.shuffle(each)
            # Partners are taken from the end of the list: first the hosts with the fewest core pairs left to measure.
            each.sort(key=lambda host: len(self._missing.get(host, ())), reverse=True)
        sizes = np.array([max(len(each), 1) for each in peers])
        luck = np.log(self._random.random((len(hosts), len(peers)))) / sizes
        order = np.lexsort((-luck, evidence.far - evidence.near), axis=1)
        is_out = evidence.is_out
        pairs = []
        for row, host in enumerate(hosts):
            unmeasured = np.isnan(self.seconds[host])
            for child in order[row]:
                peer = next((each for each in reversed(peers[child]) if unmeasured[each]), None)
                if peer is not None and not is_out[row, child]:
                    peers[child].remove(peer)
                    free.discard(peer)
                    pairs.append((min(host, peer), max(host, peer)))
                    break
        return pairs

    def _pair_at_random(self, hosts: list[int]) -> list[Pair]:
        """Pair unplaced hosts at random; after one host is placed, the pair's delay helps to place the other host."""
        mixed = self._random.permutation(hosts).astype(int)
        pairs = np.sort(mixed[: len(mixed) // 2 * 2].reshape(-1, 2), axis=1)
        fresh = pairs[np.isnan(self.seconds[pairs[:, 0], pairs[:, 1]])]
        return [(int(a), int(b)) for a, b in fresh]


def _walk(root: _Subtree) -> Iterator[_Subtree]:
    yield root
    for child in root.children:
        yield from _walk(child)


@dataclass(frozen=True, slots=True)
class Attachment:
    """Hosts attached to an inferred topology.

    Attributes:
        topology: the inferred topology with all hosts.
        undecided: int [k], hosts whose delays another switch explains about as well as the chosen switch.
        outlying: int [pair, 2], pairs with an attached host whose delay deviates too far from the topology's delay.
    """

    topology: InferredTopology
    undecided: npt.NDArray[np.integer]
    outlying: npt.NDArray[np.integer]


def find_complete_hosts(seconds: npt.NDArray[np.floating]) -> npt.NDArray[np.integer] | None:
    """Return a set of hosts with all pairs measured; None if the set is too small or not needed (see `_MOST_MEASURED`).

    Args:
        seconds: [n, n], nan where not measured.
    """
    measured = seconds > 0
    hosts = len(seconds)
    if measured.sum() > _MOST_MEASURED * hosts * (hosts - 1):
        return None
    left = np.ones(hosts, dtype=bool)
    degree = measured.sum(axis=1).astype(np.int64)
    while left.any():
        worst = int(np.argmin(np.where(left, degree, hosts)))
        if degree[worst] == left.sum() - 1:
            break
        left[worst] = False
        degree -= measured[worst]
    found = np.flatnonzero(left)
    return found if _FEWEST <= len(found) < hosts else None


def attach_hosts(
    inner: InferredTopology, core: npt.NDArray[np.integer], hosts: tuple[str, ...], seconds: npt.NDArray[np.floating]
) -> Attachment:
    """Attach each host outside the core to the switch that best explains the host's delays.

    Args:
        inner: topology of the core; each core host is on a switch.
        core: int [k], indices of the core hosts.
        hosts: one name per host.
        seconds: [n, n], delays of all hosts; nan where not measured.
    """
    count, size = len(hosts), len(core)
    home = np.full(count, -1)
    link = np.full(count, np.nan)
    for (a, b), latency in zip(inner.edge.tolist(), inner.latency_seconds.tolist(), strict=True):
        if a < size <= b:
            home[core[a]], link[core[a]] = b - size, latency
    fit = _Fit(inner, home, link, seconds)
    others = np.setdiff1d(np.arange(count), core)
    waiting = set(others.tolist())
    while waiting:
        # Before a host's nearest hosts are attached, several switches may fit the host. It then waits.
        decided = {host for host in sorted(waiting) if fit.attach(host, only_if_certain=True)}
        if not decided:
            break
        waiting -= decided
    for host in sorted(waiting):
        fit.attach(host)
    undecided = np.array([host for host in others.tolist() if not fit.attach(host)], np.int64)
    edges = np.concatenate([
        np.stack([np.arange(count), count + home], axis=1),
        inner.edge[inner.edge[:, 0] >= size] + (count - size),
    ])  # fmt: skip
    is_inner = inner.edge[:, 0] >= size
    support = np.full(count, np.nan)
    support[core[inner.edge[~is_inner][:, 0]]] = inner.support[~is_inner]
    topology = replace(
        inner,
        hosts=hosts,
        edge=edges.astype(np.int32),
        latency_seconds=np.concatenate([link, inner.latency_seconds[is_inner]]),
        support=np.concatenate([support, inner.support[is_inner]]),
        probability=np.ones(len(edges)),
    )
    return Attachment(topology, undecided, _find_outlying(topology, others, seconds, fit.error))


class _Fit:
    """A search for a host's switch, from the host's delays to hosts with a known switch.

    Args:
        inner: topology of the core.
        home, link: index of each host's switch (-1 if unknown), and latency of the host's link; `attach` changes both.
        seconds: [n, n].
    """

    def __init__(
        self,
        inner: InferredTopology,
        home: npt.NDArray[np.int64],
        link: Floats,
        seconds: npt.NDArray[np.floating],
    ) -> None:
        size = len(inner.hosts)
        self.home, self.link, self.seconds = home, link, seconds
        self.error = max(inner.noise, FLOOR)
        self.overhead = inner.overhead_seconds
        self.distance: Floats = shortest_path(inner.adjacency(), directed=False)[size:, size:]
        on_switch = [link[home == switch] for switch in range(len(inner.switches))]
        self.usual = np.array([links.mean() if len(links) else np.nan for links in on_switch])

    def attach(self, host: int, only_if_certain: bool = False) -> bool:
        """Attach a host to the switch that fits best; return True if no other switch fits about as well."""
        peers = np.flatnonzero((self.seconds[host] > 0) & (self.home >= 0))
        explained = self.overhead + self.usual[:, None] + self.distance[:, self.home[peers]] + self.link[peers]
        residual = np.log(self.seconds[host, peers] / explained) / self.error
        cost = np.minimum(residual**2, OUTLYING**2).sum(axis=1) / 2
        cost[np.isnan(self.usual)] = np.inf
        best = int(np.argmin(cost))
        is_certain = bool(np.sum(cost < cost[best] + _CAUTION) == 1) and len(peers) > 0
        if is_certain or not only_if_certain:
            self.home[host], self.link[host] = best, self.usual[best]
        return is_certain


def _find_outlying(
    topology: InferredTopology, others: npt.NDArray[np.integer], seconds: npt.NDArray[np.floating], error: float
) -> npt.NDArray[np.integer]:
    explained = np.where(seconds > 0, topology.explain_delays(), 1.0)
    residual = np.log(np.where(seconds > 0, seconds, 1.0)[others]) - np.log(explained[others])
    rows, columns = np.nonzero(np.abs(residual) > OUTLYING * error)
    pairs = np.sort(np.stack([others[rows], columns], axis=1), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
