# SPDX-License-Identifier: Apache-2.0
"""Choice of the pairs to measure, by what was measured: some hosts in all pairs, the others placed by a search.

A tree over n hosts needs about n times its depth and degree distances, not n^2 / 2. A host descends from the root, and
one host of each subtree shows whether it belongs there. Hosts that were placed help to place others, so that a round
has many pairs and no host is in many rounds.

Source: S. K. Kannan, E. L. Lawler, T. J. Warnow, "Determining the evolutionary tree using experiments", J. Algorithms
21 (1996); G. S. Brodal, R. Fagerberg, C. N. S. Pedersen, A. Ostlin, "The complexity of constructing evolutionary trees
using experiments", ICALP 2001.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ibprof_converter.topology.infer.model_choice import choose_model
from ibprof_converter.topology.infer.nested_levels import find_levels_robustly

Pair = tuple[int, int]

_FIRST = 40
_FEWEST_FIRST = 16
"""Hosts that are measured in all pairs at the beginning: at most, and at least; half of all hosts in between."""

_OF_A_SWITCH = 3
"""Hosts of each switch that are measured in all pairs in the end: three delays show a switch, one does not."""

_AGREEING = 2
"""Delays that must agree before a host goes down, or is on a switch of its own."""


_OF_LOWEST = 0.2
"""Quantile of the heights of switches without others below them: the usual delay between two hosts of a switch."""

_ANOTHER_LEVEL = 0.22
"""Difference of logarithms, a factor of 1.25, by which two hosts are too far from each other for one switch."""


@dataclass(slots=True)
class _Subtree:
    """A switch, or a lone host, in the tree of hosts that were placed.

    Attributes:
        height: logarithm of the delay of two hosts that meet here; for a lone host of those that would join it.
        children: below it; none for a switch with hosts.
        hosts: all below it.
    """

    height: float
    hosts: list[int]
    children: list[_Subtree] = field(default_factory=list)


@dataclass(slots=True)
class _Descent:
    """A host on its way down.

    Attributes:
        at: the switch that it is below of.
        near, far: how often it was nearer to a host of a child than others are, or not, by the child's identity.
        asked: hosts that it was measured with.
    """

    at: _Subtree
    near: dict[int, int] = field(default_factory=dict)
    far: dict[int, int] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)


class PairSearch:
    """The search; `choose_pairs` returns the next round until there is nothing left to measure.

    Attributes:
        is_hierarchy: whether the first hosts are explained by nested switches; the search ends where they are not.

    Args:
        hosts: their number.
        seed: of the random choices.
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
        """Return pairs that may be measured at the same time; None when all that is needed was measured.

        Args:
            seconds: [n, n], the delays so far, nan where not measured.
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
            yield pairs
        if len(core) == self.hosts:
            return
        choice = choose_model(self._between(core))
        self.is_hierarchy = choice.candidate.model == "levels" and not choice.unexplained
        if not self.is_hierarchy:
            return
        root = self._plant(core)
        for subtree in list(_walk(root)):
            self._represent(subtree)
        yield from self._place(root, order[first:])
        while pairs := self._match_core(set(self._missing)):
            yield pairs

    def _between(self, hosts: list[int]) -> npt.NDArray[np.float64]:
        delays = self.seconds[np.ix_(hosts, hosts)]
        np.fill_diagonal(delays, 0.0)
        return delays

    def _join_core(self, host: int) -> None:
        """Have a host measured with all others of the core."""
        peers = {peer for peer in self._missing if np.isnan(self.seconds[host, peer])}
        self._missing[host] = peers
        for peer in peers:
            self._missing[peer].add(host)

    def _match_core(self, free: set[int]) -> list[Pair]:
        """Return disjoint pairs of the core that have no delay yet, of hosts that are free."""
        pairs = []
        for host in sorted(free & self._missing.keys(), key=lambda each: (-len(self._missing[each]), each)):
            peers = self._missing[host] & free
            if host in free and peers:
                peer = max(peers, key=lambda each: (len(self._missing[each]), each))
                pairs.append((min(host, peer), max(host, peer)))
                free -= {host, peer}
                self._forget(host, peer)
        return pairs

    def _forget(self, host: int, peer: int) -> None:
        if host in self._missing and peer in self._missing:
            self._missing[host].discard(peer)
            self._missing[peer].discard(host)

    def _represent(self, subtree: _Subtree) -> None:
        """Have some hosts of a switch without others below it in the core."""
        if not subtree.children:
            wanted = _OF_A_SWITCH - sum(host in self._missing for host in subtree.hosts)
            spare = [host for host in subtree.hosts if host not in self._missing]
            for host in spare[: max(wanted, 0)]:
                self._join_core(host)

    def _plant(self, core: list[int]) -> _Subtree:
        """Return the tree of the hosts that were measured in all pairs."""
        levels = find_levels_robustly(self._between(core))
        tree, height = levels.pruned.tree, levels.pruned.height
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
        """Send hosts down the tree, all at once; each round pairs them with hosts that were placed."""
        above: dict[int, list[_Subtree]] = {id(root): [root]}
        for node in _walk(root):
            for child in node.children:
                above[id(child)] = [*above[id(node)], child]
        active = {host: _Descent(root) for host in others}
        while active:
            free = set(root.hosts)
            asked: list[tuple[int, _Subtree, int]] = []
            for host in list(active):
                found = self._ask(active[host], free)
                if found is not None:
                    child, peer = found
                    free.discard(peer)
                    active[host].asked.add(peer)
                    asked.append((host, child, peer))
            yield [(min(host, peer), max(host, peer)) for host, _, peer in asked] + self._match_core(free)
            for host, child, peer in asked:
                descent = active[host]
                is_near = np.log(self.seconds[host, peer]) < (child.height + descent.at.height) / 2
                counts = descent.near if is_near else descent.far
                counts[id(child)] = counts.get(id(child), 0) + 1
                if is_near and self._belongs(descent, child):
                    self._descend(descent, child)
            for host in list(active):
                descent = active[host]
                while not descent.at.children or all(self._is_out(descent, child) for child in descent.at.children):
                    if descent.at.children:
                        lone = _Subtree(min(self._lowest, descent.at.height), [])
                        descent.at.children.append(lone)
                        above[id(lone)] = [*above[id(descent.at)], lone]
                        descent.at = lone
                    for node in above[id(descent.at)]:
                        node.hosts.append(host)
                    self._represent(descent.at)
                    del active[host]
                    break

    def _ask(self, descent: _Descent, free: set[int]) -> tuple[_Subtree, int] | None:
        """Return the child to ask next, and a free host of it: a child that seemed near, else with most free hosts."""
        best: tuple[int, int, _Subtree, int] | None = None
        for child in descent.at.children:
            if self._is_out(descent, child):
                continue
            peers = [host for host in child.hosts if host in free and host not in descent.asked]
            if not peers:
                continue
            rank = (descent.near.get(id(child), 0) - descent.far.get(id(child), 0), len(peers))
            if best is None or rank > best[:2]:
                best = (*rank, child, self._choose(peers))
        return None if best is None else best[2:]

    def _choose(self, peers: list[int]) -> int:
        """Return one at random, of those that the core does not need in this round if there are any."""
        idle = [host for host in peers if not self._missing.get(host)] or peers
        return idle[int(self._random.integers(len(idle)))]

    def _belongs(self, descent: _Descent, child: _Subtree) -> bool:
        near, far = descent.near.get(id(child), 0), descent.far.get(id(child), 0)
        return near > far and (near - far >= _AGREEING or descent.asked.issuperset(child.hosts))

    def _is_out(self, descent: _Descent, child: _Subtree) -> bool:
        """Return whether a host is not below a child: one delay says so, or two if all children seem out."""
        near, far = descent.near.get(id(child), 0), descent.far.get(id(child), 0)
        if descent.asked.issuperset(child.hosts):
            return True
        if far <= near:
            return False
        rest = [other for other in descent.at.children if other is not child]
        all_out = all(descent.far.get(id(other), 0) > descent.near.get(id(other), 0) for other in rest)
        return not all_out or far - near >= _AGREEING

    def _descend(self, descent: _Descent, child: _Subtree) -> None:
        descent.at, descent.near, descent.far = child, {}, {}


def _walk(root: _Subtree) -> Iterator[_Subtree]:
    yield root
    for child in root.children:
        yield from _walk(child)
