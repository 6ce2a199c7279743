# SPDX-License-Identifier: Apache-2.0
"""Fit a tree, torus or dragonfly to the cabling, and find the cables that do not match.

No plan of the cabling is needed. In a tree, the intended cabling is that of most switches with almost equal cabling.

In a torus, each cable is a side of a square of cables. In a group of a dragonfly, each cable is a side of a triangle. A
misplaced cable belongs to no square or triangle. Incomplete squares and triangles show the missing cables.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.graph_search import count_hops, find_parts
from ibprof_converter.layout.node_levels import find_leaves, find_levels

_MOST_MISFITS = 0.1
"""A regular fabric fits if (extra + missing cables) / cables between switches is at most this number."""

_SWAPPED = 4
"""If cables were swapped, a regular fabric also fits with at most this number of extra and missing cables."""

_ALIKE = 0.5
"""Two switches have similar cabling if they share more than this fraction of their neighbours."""

_FEWEST = 3
"""The usual cabling is that of at least this number of switches with similar cabling."""

_MOST_ODD = 12
"""Swapped cables are searched only if at most this number of switches have unusual cabling."""

_MOST_GROUPS = 200
"""A regular fabric has at most this number of groups of switches with similar cabling."""

_LARGEST = 4000
"""Fabrics with more switches than this are not compared with regular fabrics."""

Counts = npt.NDArray[np.int64]


DRAGONFLY = "dragonfly"
"""First word of `RegularCabling.name` for a dragonfly."""

Pairs = npt.NDArray[np.int64]

Misfits = tuple[str, npt.NDArray[np.int64], Pairs]
"""Name of the regular graph, extra edges (int64 [edge]), and pairs with a missing edge (int64 [pair, 2])."""

_MOST_MISSING = 12
"""A torus is recognised only if it lacks at most this number of cable ends."""

_BRANCHES = 3
"""At most this number of switches are tried as the other end of a missing cable."""

_DIMENSIONS = 4


@dataclass(frozen=True, slots=True)
class RegularCabling:
    """A regular fabric that fits the cabling, and the cables that do not match this fabric.

    Attributes:
        name: name of the regular fabric, such as `torus of 4 x 4 switches`.
        extra: int64 [link], indices of links that the regular fabric does not have.
        missing: int64 [cable, 2], the two switches of each missing cable.
    """

    name: str
    extra: npt.NDArray[np.int64]
    missing: npt.NDArray[np.int64]


def fit_regular_cabling(fabric: Fabric) -> RegularCabling | None:
    """Return the regular fabric that fits the cabling (a tree, else a torus, else a dragonfly); None if none fits.

    The result is None if the fabric has more than `_LARGEST` switches.
    """
    between = _find_between(fabric)
    if not len(between) or int((fabric.node_kind == NodeKind.SWITCH).sum()) > _LARGEST:
        return None
    fitted = _fit_tree(fabric, between) or _fit_flat(fabric, between)
    if fitted is None:
        return None
    most = _MOST_MISFITS * len(between)
    if len(fitted.extra) + len(fitted.missing) > (max(most, _SWAPPED) if _are_swapped(fabric, fitted) else most):
        return None
    return replace(fitted, extra=_leave_bridges(fabric, between, fitted.extra))


def _are_swapped(fabric: Fabric, fitted: RegularCabling) -> bool:
    """Return true if cables are swapped: each switch has equally many extra and missing cables."""
    ends = (fabric.link_node[fitted.extra].ravel(), fitted.missing.ravel())
    extra, missing = (np.bincount(each, minlength=fabric.nodes) for each in ends)
    return len(fitted.extra) > 0 and bool((extra == missing).all())


def _leave_bridges(
    fabric: Fabric, between: npt.NDArray[np.intp], extra: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the links of `extra` whose ends stay connected without any link of `extra`.

    The remaining links of `extra` join parts of the fabric, so these links are assumed to be intended.
    """
    part = find_parts(fabric.nodes, fabric.link_node[np.setdiff1d(between, extra)])
    ends = part[fabric.link_node[extra]]
    joined: npt.NDArray[np.int64] = extra[ends[:, 0] == ends[:, 1]]
    return joined


def _find_between(fabric: Fabric) -> npt.NDArray[np.intp]:
    is_switch = fabric.node_kind == NodeKind.SWITCH
    return np.flatnonzero(is_switch[fabric.link_node].all(axis=1) & (fabric.link_node[:, 0] != fabric.link_node[:, 1]))


def _fit_tree(fabric: Fabric, between: npt.NDArray[np.intp]) -> RegularCabling | None:
    level = find_levels(fabric)
    ends = fabric.link_node[between]
    steps = np.abs(level[ends[:, 0]] - level[ends[:, 1]])
    within = between[steps != 1]
    if len(within) > _MOST_MISFITS * len(between):
        return None
    extra, missing = [within.astype(np.int64)], [np.zeros((0, 2), np.int64)]
    highest = int(level[np.unique(ends)].max())
    sizes = []
    for lower in range(1, highest + 1):
        nodes = np.flatnonzero((level == lower) & (fabric.node_kind == NodeKind.SWITCH))
        sizes.append(f"{len(nodes)} switches at level {lower}")
        if lower == highest:
            break
        found = _fit_level(fabric, between, level, lower, fabric.link_node[within])
        if found is None:
            return None
        extra.append(found[0])
        missing.append(found[1])
    kind = f"tree of {highest} levels ({', '.join(sizes)})"
    return RegularCabling(kind, np.concatenate(extra), np.concatenate(missing))


def _fit_level(
    fabric: Fabric,
    between: npt.NDArray[np.intp],
    level: npt.NDArray[np.int32],
    lower: int,
    others: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Compare the uplinks of each switch of a level with the uplinks of similarly cabled switches.

    Args:
        fabric, between, level: the fabric, its links between switches, and the nodes' levels.
        lower: the level of the compared switches.
        others: int32 [cable, 2], switches of cables that do not join successive levels.

    Returns:
        The extra links, int64 [link], and the two switches of each missing cable, int64 [cable, 2]. None if the cabling
        of the level is irregular.
    """
    ends = fabric.link_node[between]
    of_level = np.sort(level[ends], axis=1)
    links = between[(of_level[:, 0] == lower) & (of_level[:, 1] == lower + 1)]
    up = (level[fabric.link_node[links, 1]] > level[fabric.link_node[links, 0]]).astype(np.intp)
    low = fabric.link_node[links, 1 - up]
    high = fabric.link_node[links, up]
    lows, row = np.unique(low, return_inverse=True)
    highs, column = np.unique(high, return_inverse=True)
    count = np.zeros((len(lows), len(highs)), np.int64)
    np.add.at(count, (row, column), 1)
    expected = _expect(count, np.isin(lows, others))
    if expected is None:
        return None
    port = fabric.link_port[links, 1 - up]
    if (count == expected).all() and (swapped_back := _swap_back(count, _Cables(row, column, port))) is not None:
        expected = swapped_back
    extra = [
        int(links[index])
        for at, to in np.argwhere(count > expected).tolist()
        for index in _choose_odd(port, row, column, at, to, int(count[at, to] - expected[at, to]))
    ]
    lacking = np.maximum(expected - count, 0)
    at, to = np.nonzero(lacking)
    pairs = np.stack([lows[at], highs[to]], axis=1).astype(np.int64)
    return np.array(extra, np.int64), np.repeat(pairs, lacking[at, to], axis=0)


def _expect(count: Counts, has_other_end: npt.NDArray[np.bool_]) -> Counts | None:
    """Return the expected number of cables of each pair of switches: the number that most similar switches have.

    Args:
        count: int64 [lower, upper], number of cables between two switches of successive levels.
        has_other_end: bool [lower], true for switches with a cable that does not join successive levels.

    Returns:
        int64 [lower, upper], expected numbers of cables; None for an irregular fabric.
    """
    totals = count.sum(axis=1)
    has = (count > 0).astype(np.float64)
    shared = has @ has.T
    either = has.sum(axis=1)[:, np.newaxis] + has.sum(axis=1) - shared
    # A switch with one neighbour is similar to a switch with this neighbour and another neighbour: a cable may be
    # missing.
    alike = (shared > _ALIKE * either) | ((shared == 1) & (either == 2))
    groups, group = np.unique(alike, axis=0, return_inverse=True)
    if len(groups) > _MOST_GROUPS:
        return None
    expected = count.copy()
    most = int(count.max(initial=0))
    for number, peers in enumerate(groups):
        members = np.flatnonzero(group.reshape(-1) == number)
        if int(peers.sum()) < _FEWEST:
            continue
        having = np.stack([(count[peers] == cables).sum(axis=0) for cables in range(most + 1)])
        usual = having.argmax(axis=0)
        is_rule = 2 * having.max(axis=0) > int(peers.sum())
        expected[members] = np.where(is_rule, usual, count[members])
        # If exactly half of the peers have more cables to an upper switch, there is no majority. A peer with fewer
        # cables then lacks a cable if one of the peer's cables leads elsewhere (`has_other_end`).
        halves = 2 * having == int(peers.sum())
        half = halves.any(axis=0) & ~is_rule
        larger = most - halves[::-1].argmax(axis=0)
        lacks = has_other_end[members] & (totals[members] < totals[peers].max())
        expected[members] = np.where(lacks[:, np.newaxis] & half, np.maximum(larger, count[members]), expected[members])
    return expected


@dataclass(frozen=True, slots=True)
class _Cables:
    """Cables between two levels: indices of lower and upper switch, and port of the lower switch; all int [cable]."""

    row: npt.NDArray[np.intp]
    column: npt.NDArray[np.intp]
    port: npt.NDArray[np.int32]

    def count_ports(self, lower: int, upper: int, meant: int) -> int:
        """Count the other lower switches whose cable to `meant` is at the port of `lower`'s cable to `upper`."""
        ports = self.port[(self.row == lower) & (self.column == upper)]
        return max(int(((self.port == each) & (self.column == meant) & (self.row != lower)).sum()) for each in ports)


def _swap_back(count: Counts, cables: _Cables) -> Counts | None:
    """Return the regular cabling after swapping two cables.

    If no majority of switches shows the intended cabling, try all swaps. Of several swaps with a regular result, choose
    the swap with the ports that most other switches use for the same peers.

    Args:
        count: int64 [lower, upper], number of cables between two switches of successive levels.
        cables: the cables of `count`.

    Returns:
        int64 [lower, upper]; each switch has the cabling of at least two others. None if no swap has this result.
    """
    rows = [row.tobytes() for row in count]
    alike = Counter(rows)
    odd = [number for number, row in enumerate(rows) if alike[row] < _FEWEST]
    if not 1 < len(odd) <= _MOST_ODD:
        return None
    found: dict[bytes, tuple[int, Counts]] = {}
    for one, other in combinations(odd, 2):
        for own, new in product(np.flatnonzero(count[one]).tolist(), np.flatnonzero(count[other]).tolist()):
            if own == new:
                continue
            swapped = count.copy()
            swapped[one, [own, new]] += (-1, 1)
            swapped[other, [own, new]] += (1, -1)
            after = alike.copy()
            after.subtract((rows[one], rows[other]))
            after.update((swapped[one].tobytes(), swapped[other].tobytes()))
            if all(number == 0 or number >= _FEWEST for number in after.values()):
                usual = cables.count_ports(one, own, new) + cables.count_ports(other, new, own)
                found[swapped.tobytes()] = usual, swapped
    return max(found.values(), key=lambda each: each[0])[1] if found else None


def _choose_odd(
    port: npt.NDArray[np.int32],
    row: npt.NDArray[np.intp],
    column: npt.NDArray[np.intp],
    at: int,
    to: int,
    number: int,
) -> list[int]:
    """Return `number` cables from `at` to `to`, at the ports that the fewest other switches use for `to`.

    Of equally used ports, the ports with the highest numbers are chosen.
    """
    here = np.flatnonzero((row == at) & (column == to))
    usual = [int(((port == port[index]) & (column == to) & (row != at)).sum()) for index in here.tolist()]
    order = sorted(range(len(here)), key=lambda each: (usual[each], -int(port[here[each]])))
    return [int(here[each]) for each in order[:number]]


def _number_switches(
    fabric: Fabric, between: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
    """Return the nodes of the linked switches, ascending, and the indices of each link's switches: int [link, 2]."""
    nodes, index = np.unique(fabric.link_node[between], return_inverse=True)
    return nodes, index.reshape(-1, 2)


def find_dragonfly_groups(fabric: Fabric) -> dict[int, int]:
    """Return switch -> index of its group in a dragonfly; empty if no dragonfly fits."""
    fitted = fit_regular_cabling(fabric)
    if fitted is None or not fitted.name.startswith(DRAGONFLY):
        return {}
    nodes, edges = _number_switches(fabric, _find_between(fabric))
    group = find_groups(len(nodes), edges)
    return {} if group is None else dict(zip(nodes.tolist(), group.tolist(), strict=True))


def _fit_flat(fabric: Fabric, between: npt.NDArray[np.intp]) -> RegularCabling | None:
    """Fit a torus or a dragonfly. None if neither fits, or if less than half of the switches with links have hosts."""
    nodes, edges = _number_switches(fabric, between)
    if 2 * len(np.intersect1d(nodes, find_leaves(fabric))) < len(nodes):
        return None
    found = find_flat_misfits(len(nodes), edges)
    if found is None:
        return None
    name, extra, missing = found
    return RegularCabling(name, between[extra].astype(np.int64), nodes[missing].astype(np.int64).reshape(-1, 2))


def find_flat_misfits(nodes: int, edges: npt.NDArray[np.integer]) -> Misfits | None:
    """Return the torus or dragonfly nearest to a graph, with extra and missing edges; None for other graphs.

    Args:
        nodes: number of nodes.
        edges: int [edge, 2]; several edges may join the same pair.
    """
    return _fit_torus(nodes, edges) or _fit_dragonfly(nodes, edges)


def _adjacency(nodes: int, edges: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    count = np.zeros((nodes, nodes), np.int64)
    np.add.at(count, (edges[:, 0], edges[:, 1]), 1)
    return count + count.T


def _fit_torus(nodes: int, edges: npt.NDArray[np.integer]) -> Misfits | None:
    _, first = np.unique(np.sort(edges, axis=1), axis=0, return_index=True)
    repeated = np.setdiff1d(np.arange(len(edges)), first)
    if 2 * len(repeated) > len(edges):
        return None
    count = _adjacency(nodes, edges[first])
    near = count.astype(np.float64)
    degree = count.sum(axis=1)
    # An edge is a side of a square if three other edges are a walk between its two ends. Count these walks.
    squares = near @ near @ near - degree[:, np.newaxis] - degree + 1
    wrong = first[squares[edges[first, 0], edges[first, 1]] < 1]
    repaired = count.copy()
    np.subtract.at(repaired, (edges[wrong, 0], edges[wrong, 1]), 1)
    np.subtract.at(repaired, (edges[wrong, 1], edges[wrong, 0]), 1)
    completed = _complete(repaired, _count_lacking(repaired))
    if completed is None:
        return None
    sides, added = completed
    # All edges of the completed torus are intended, also those that were in no complete square before.
    pairs = [tuple(sorted(pair)) for pair in added]
    fits = [link for link in wrong.tolist() if tuple(sorted(edges[link].tolist())) in pairs]
    for link in fits:
        pairs.remove(tuple(sorted(edges[link].tolist())))
    extra = np.sort(np.concatenate([np.setdiff1d(wrong, fits), repeated])).astype(np.int64)
    return f"torus of {sides} switches", extra, np.array(pairs, np.int64).reshape(-1, 2)


def _count_lacking(count: npt.NDArray[np.int64]) -> dict[int, int] | None:
    """Return node -> number of missing edges; None if the graph cannot be completed.

    A graph cannot be completed if a node has too many edges, or if the number of
    missing edges of all nodes is odd or above `_MOST_MISSING`.
    """
    degree = count.sum(axis=1)
    usual = int(np.bincount(degree).argmax())
    lacking = {int(node): usual - int(degree[node]) for node in np.flatnonzero(degree < usual)}
    if (degree > usual).any() or sum(lacking.values()) > _MOST_MISSING or sum(lacking.values()) % 2:
        return None
    return lacking


def _complete(count: npt.NDArray[np.int64], lacking: dict[int, int] | None) -> tuple[str, list[tuple[int, int]]] | None:
    """Add edges between nodes that lack edges, until the graph is a torus.

    Edges that complete more squares of four edges are tried first.

    Returns:
        The sides of the torus, such as `4 x 4`, and the added edges; None if no torus results.
    """
    if lacking is None:
        return None
    if not lacking:
        sides = _name_torus(count)
        return (sides, []) if sides else None
    near = count.astype(np.float64)
    walks = near @ near @ near
    one = min(lacking)
    others = [other for other in lacking if other != one and not count[one, other]]
    for other in sorted(others, key=lambda node: (-walks[one, node], node))[:_BRANCHES]:
        grown = count.copy()
        grown[one, other] += 1
        grown[other, one] += 1
        rest = {node: less for node, number in lacking.items() if (less := number - (node in (one, other))) > 0}
        completed = _complete(grown, rest)
        if completed is not None:
            return completed[0], [(one, other), *completed[1]]
    return None


def _name_torus(count: npt.NDArray[np.int64]) -> str | None:
    """Return the sides of a torus, by the number of nodes at each distance; None for other graphs."""
    hops = count_hops(len(count), np.argwhere(count), np.arange(len(count)))
    if (hops < 0).any():
        return None
    profile = [tuple(np.bincount(row).tolist()) for row in hops]
    if len(set(profile)) != 1:
        return None
    for sides in _factorise(len(count), int(count.sum(axis=1)[0])):
        steps = [[min(place, side - place) for place in range(side)] for side in sides]
        distances = Counter(sum(each) for each in product(*steps))
        if tuple(distances[far] for far in range(max(distances) + 1)) == profile[0]:
            return " x ".join(map(str, sides))
    return None


def _factorise(nodes: int, degree: int) -> list[tuple[int, ...]]:
    """Return the sides of each torus with a given number of nodes and a given number of neighbours per node."""
    divisors = [each for each in range(2, nodes + 1) if nodes % each == 0]
    return [
        sides
        for dimensions in range(2, _DIMENSIONS + 1)
        for sides in combinations_with_replacement(divisors, dimensions)
        if int(np.prod(sides)) == nodes and sum(1 if side == 2 else 2 for side in sides) == degree
    ]


def find_groups(nodes: int, edges: npt.NDArray[np.integer]) -> npt.NDArray[np.intp] | None:
    """Return each node's group in a dragonfly; groups are numbered from 0 in the order of the nodes.

    The result is None if the graph is no dragonfly. Two nodes with a link are in one group if their number of common
    neighbours is at least half of the largest such number. A dragonfly has at least three groups of equal size, of at
    least three nodes.
    """
    near = np.minimum(_adjacency(nodes, edges), 1)
    common = near @ near
    shared = common[edges[:, 0], edges[:, 1]]
    most = int(shared.max(initial=0))
    if most < 1:
        return None
    _, first, group = np.unique(find_parts(nodes, edges[2 * shared >= most]), return_index=True, return_inverse=True)
    size = np.bincount(group)
    if len(size) < 3 or len(set(size.tolist())) != 1 or size[0] < 3:
        return None
    return np.argsort(np.argsort(first))[group]


def _fit_dragonfly(nodes: int, edges: npt.NDArray[np.integer]) -> Misfits | None:
    group = find_groups(nodes, edges)
    if group is None:
        return None
    near = np.minimum(_adjacency(nodes, edges), 1)
    size = np.bincount(group)
    inside = group[edges[:, 0]] == group[edges[:, 1]]
    missing = [
        (a, b)
        for number in range(len(size))
        for a, b in combinations(np.flatnonzero(group == number).tolist(), 2)
        if not near[a, b]
    ]
    between = np.zeros((len(size), len(size)), np.int64)
    ends = np.sort(group[edges[~inside]], axis=1)
    np.add.at(between, (ends[:, 0], ends[:, 1]), 1)
    found = _fit_global(nodes, edges, group, between, inside)
    if found is None:
        return None
    extra, lacking = found
    name = f"{DRAGONFLY} of {len(size)} groups of {size[0]} switches"
    return name, extra, np.array([*missing, *lacking], np.int64).reshape(-1, 2)


def _fit_global(
    nodes: int,
    edges: npt.NDArray[np.integer],
    group: npt.NDArray[np.intp],
    between: npt.NDArray[np.int64],
    inside: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.int64], list[tuple[int, int]]] | None:
    """Compare the cables between groups: each pair of groups, and each switch, should have the same number of cables.

    Returns:
        The extra cables of pairs of groups that have more cables than usual. The two switches of each missing cable.
        None if at most half of the pairs of groups have equal numbers of cables, or if there is no free port for a
        missing cable.
    """
    pairs = np.argwhere(np.triu(np.ones_like(between, np.bool_), 1))
    numbers = between[pairs[:, 0], pairs[:, 1]]
    usual = int(np.bincount(numbers).argmax())
    if not usual or 2 * (numbers == usual).sum() <= len(numbers):
        return None
    degree = np.bincount(edges[~inside].ravel(), minlength=nodes)
    ports = int(np.bincount(degree).argmax())
    extra = []
    ends = np.sort(group[edges], axis=1)
    for a, b in pairs[numbers > usual].tolist():
        here = np.flatnonzero((ends == (a, b)).all(axis=1))
        extra += here[int(usual) :].tolist()
    for link in extra:
        degree[edges[link]] -= 1
    lacking = []
    for a, b in pairs[numbers < usual].tolist():
        for _ in range(usual - int(between[a, b])):
            chosen = []
            for each in (a, b):
                members = np.flatnonzero((group == each) & (degree < ports))
                if not len(members):
                    return None
                chosen.append(int(members[degree[members].argmin()]))
            degree[chosen] += 1
            lacking.append((chosen[0], chosen[1]))
    return np.array(extra, np.int64), lacking
