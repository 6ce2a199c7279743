# SPDX-License-Identifier: Apache-2.0
"""Tori and dragonflies among graphs of switches, although a few cables are missing or in the wrong place.

Each cable of a torus is a side of squares, each cable within a group of a dragonfly a side of triangles. A cable in the
wrong place is neither. What switches lack then is where the squares and groups are incomplete.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import numpy.typing as npt

from ibprof_converter.layout.neighbours import find_parts

DRAGONFLY = "dragonfly"
"""First word of the name of a dragonfly."""

Pairs = npt.NDArray[np.int64]
Misfits = tuple[str, npt.NDArray[np.int64], Pairs]
"""Name of the regular graph, edges that it does not have (int64 [edge]), pairs that lack one (int64 [pair, 2])."""

_MOST_MISSING = 12
"""Ends of cables that switches of a torus may lack."""

_BRANCHES = 3
"""Partners that are tried for a switch that lacks a cable."""

_DIMENSIONS = 4


def find_flat_misfits(nodes: int, edges: npt.NDArray[np.integer]) -> Misfits | None:
    """Return the torus or dragonfly that a graph almost is; None for none.

    Args:
        nodes: number of them.
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
    # Squares over an edge: walks of three edges between its ends that do not go over it.
    squares = near @ near @ near - degree[:, np.newaxis] - degree + 1
    wrong = first[squares[edges[first, 0], edges[first, 1]] < 1]
    repaired = count.copy()
    np.subtract.at(repaired, (edges[wrong, 0], edges[wrong, 1]), 1)
    np.subtract.at(repaired, (edges[wrong, 1], edges[wrong, 0]), 1)
    completed = _complete(repaired, _count_lacking(repaired))
    if completed is None:
        return None
    sides, added = completed
    # A cable that closes no square, since its neighbours are missing, fits all the same.
    pairs = [tuple(sorted(pair)) for pair in added]
    fits = [link for link in wrong.tolist() if tuple(sorted(edges[link].tolist())) in pairs]
    for link in fits:
        pairs.remove(tuple(sorted(edges[link].tolist())))
    extra = np.sort(np.concatenate([np.setdiff1d(wrong, fits), repeated])).astype(np.int64)
    return f"torus of {sides} switches", extra, np.array(pairs, np.int64).reshape(-1, 2)


def _count_lacking(count: npt.NDArray[np.int64]) -> dict[int, int] | None:
    """Return how many edges some nodes have less than most; None where any has more, or too many have less."""
    degree = count.sum(axis=1)
    usual = int(np.bincount(degree).argmax())
    lacking = {int(node): usual - int(degree[node]) for node in np.flatnonzero(degree < usual)}
    if (degree > usual).any() or sum(lacking.values()) > _MOST_MISSING or sum(lacking.values()) % 2:
        return None
    return lacking


def _complete(count: npt.NDArray[np.int64], lacking: dict[int, int] | None) -> tuple[str, list[tuple[int, int]]] | None:
    """Add edges between nodes that lack some, until the graph is a torus; those that close most squares first.

    Returns:
        The sides of the torus, and the edges; None where none is found.
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
    """Return the sides of the torus of a graph, by the number of nodes at each distance; None for no torus."""
    from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415  (slow to import)

    hops = shortest_path(count, unweighted=True)
    if not np.isfinite(hops).all():
        return None
    profile = [tuple(np.bincount(row.astype(np.int64)).tolist()) for row in hops]
    if len(set(profile)) != 1:
        return None
    for sides in _factorise(len(count), int(count.sum(axis=1)[0])):
        steps = [[min(place, side - place) for place in range(side)] for side in sides]
        distances = Counter(sum(each) for each in product(*steps))
        if tuple(distances[far] for far in range(max(distances) + 1)) == profile[0]:
            return " x ".join(map(str, sides))
    return None


def _factorise(nodes: int, degree: int) -> list[tuple[int, ...]]:
    """Return the sides of tori of a number of nodes, in which each has a number of neighbours."""
    divisors = [each for each in range(2, nodes + 1) if nodes % each == 0]
    return [
        sides
        for dimensions in range(2, _DIMENSIONS + 1)
        for sides in combinations_with_replacement(divisors, dimensions)
        if int(np.prod(sides)) == nodes and sum(1 if side == 2 else 2 for side in sides) == degree
    ]


def find_groups(nodes: int, edges: npt.NDArray[np.integer]) -> npt.NDArray[np.intp] | None:
    """Return the group of each node of a dragonfly, numbered from 0 in the order of the nodes.

    None where there are no groups. Neighbours in a group have most neighbours in common. Groups are of one size, of
    three nodes or more.
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
    """Compare the cables between groups: each pair of groups has as many, and each switch too.

    Returns:
        Cables of pairs with too many, and pairs of switches that lack one; None where there is no rule.
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
