# SPDX-License-Identifier: Apache-2.0
"""Positions in a plane, for fabrics without levels: every switch has hosts, and most links join such switches.

The cabling alone decides, in this order:

* Grids, tori and hypercubes: products of rings, paths and pairs.
* Fully connected groups of switches, as in a dragonfly.
* Otherwise distances in hops, as closely as a plane can show them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.neighbours import find_parts

Points = npt.NDArray[np.float64]
"""float64 [switch, 2]: across and up, neighbours about 1 apart."""

_FLAT_SHARE = 0.3
"""Share of links between switches that are within a level, above which levels carry no information."""

_FEWEST = 4
"""Number of switches below which there is no shape to show."""

_BOW = 0.3
"""Offset of the ends of a row from its middle, so that the link that closes a ring is visible next to it."""

_SQUARES_LIMIT = 1 << 22
"""Pairs of neighbours that are searched for squares; a torus of 10,000 switches has 15 each."""

_PIVOTS = 64
_STRESS_LIMIT = 600
_STRESS_ROUNDS = 60


def is_flat(fabric: Fabric, level: npt.NDArray[np.int32]) -> bool:
    """Return whether so large a share of links is within levels that these say little (`_FLAT_SHARE`)."""
    pairs = _pair_switches(fabric)
    switches = int((fabric.node_kind == NodeKind.SWITCH).sum())
    return switches >= _FEWEST and float((level[pairs[:, 0]] == level[pairs[:, 1]]).mean()) > _FLAT_SHARE


def position_switches(fabric: Fabric) -> tuple[npt.NDArray[np.intp], Points]:
    """Return the switches of a fabric (nodes) and their positions."""
    switch = np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)
    pairs = np.searchsorted(switch, _pair_switches(fabric))
    graph: list[set[int]] = [set() for _ in switch]
    for a, b in pairs.tolist():
        graph[a].add(b)
        graph[b].add(a)
    points = position_on_grid(graph)
    if points is None:
        points = position_in_groups(graph)
    if points is None:
        points = position_by_distance(graph)
    return switch, points - points.min(axis=0)


def _pair_switches(fabric: Fabric) -> npt.NDArray[np.int32]:
    """Return each pair of linked switches once."""
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    pairs = np.unique(np.sort(fabric.link_node[between], axis=1), axis=0)
    return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]])


def position_on_grid(graph: list[set[int]]) -> Points | None:
    """Return positions by the factors of a product of rings, paths and pairs, on two axes; None for other graphs.

    Two links that are opposite in a square of four switches run along one factor. So do two links at a switch that are
    in no square. (A ring of four is itself a square. It becomes two pairs, which is the same graph.)
    """
    factors = _find_factors(graph)
    if factors is None or len(factors) < 2:  # a ring or a path alone is no grid
        return None
    coordinates = []
    for edges in factors:
        ordered = _order_factor(len(graph), graph, edges)
        if ordered is None:
            return None
        coordinates.append(ordered)
    if len(np.unique(np.stack(coordinates), axis=1).T) != len(graph):
        return None
    # The longest factors first, each to the axis that is the shorter so far.
    sizes = [int(coordinate.max()) + 1 for coordinate in coordinates]
    axis = np.zeros((2, len(graph)), np.int64)
    length = [1, 1]
    for index in sorted(range(len(sizes)), key=lambda index: (-sizes[index], index)):
        shorter = int(length[1] < length[0])
        coordinate = coordinates[index]
        # Back and forth, like a Gray code: neighbours in earlier factors stay neighbours on the axis.
        turned = np.where(coordinate % 2 == 1, length[shorter] - 1 - axis[shorter], axis[shorter])
        axis[shorter] = coordinate * length[shorter] + turned
        length[shorter] *= sizes[index]
    across, up = axis.astype(np.float64)
    bow = [
        (np.abs(2 * along / max(count - 1, 1) - 1)) ** 2 * _BOW
        for along, count in zip((across, up), length, strict=True)
    ]
    return np.stack([across + bow[1], up + bow[0]], axis=1)


def _find_factors(graph: list[set[int]]) -> list[list[tuple[int, int]]] | None:
    """Return the links by the factor that they run along."""
    edges = [(a, b) for a, around in enumerate(graph) for b in sorted(around) if a < b]
    if not edges or sum(len(around) ** 2 for around in graph) > _SQUARES_LIMIT:
        return None
    number = {edge: index for index, edge in enumerate(edges)}

    def edge(a: int, b: int) -> int:
        return number[min(a, b), max(a, b)]

    same_factor: list[tuple[int, int]] = []
    for node, around in enumerate(graph):
        for a, b in combinations(sorted(around), 2):
            across = (graph[a] & graph[b]) - {node}
            if not across or b in graph[a]:
                same_factor.append((edge(node, a), edge(node, b)))
            for far in across:
                same_factor += [(edge(node, a), edge(b, far)), (edge(node, b), edge(a, far))]
    factor = find_parts(len(edges), np.array(same_factor, np.int64).reshape(-1, 2))
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pair, which in zip(edges, factor.tolist(), strict=True):
        found[which].append(pair)
    return list(found.values())


def _order_factor(nodes: int, graph: list[set[int]], edges: list[tuple[int, int]]) -> npt.NDArray[np.int64] | None:
    """Return the position of each switch along a factor; None if it is no ring, path or pair."""
    along = set(edges)
    others = [(a, b) for a, around in enumerate(graph) for b in around if a < b and (a, b) not in along]
    # Switches that the other factors connect share one position of this factor.
    layer = find_parts(nodes, np.array(others, np.int64).reshape(-1, 2))
    links: dict[int, set[int]] = defaultdict(set)
    for a, b in edges:
        if layer[a] == layer[b]:
            return None
        links[int(layer[a])].add(int(layer[b]))
        links[int(layer[b])].add(int(layer[a]))
    if any(len(around) > 2 for around in links.values()):
        return None
    ends = [layer_node for layer_node in sorted(links) if len(links[layer_node]) == 1]
    order = [ends[0] if ends else min(links)]
    while onward := sorted(links[order[-1]] - set(order[-2:])):
        if onward[0] == order[0]:
            break
        order.append(onward[0])
    if len(order) != len(set(layer.tolist())):
        return None
    position = {node: index for index, node in enumerate(order)}
    return np.array([position[which] for which in layer.tolist()])


def position_in_groups(graph: list[set[int]]) -> Points | None:
    """Return positions of fully connected groups of switches on a circle; None if there are no such groups."""
    shared = {(a, b): len(around & graph[b]) for a, around in enumerate(graph) for b in around if a < b}
    most = max(shared.values(), default=0)
    close = [pair for pair, count in shared.items() if most and 2 * count >= most]
    group = find_parts(len(graph), np.array(close, np.int64).reshape(-1, 2))
    groups, index, size = np.unique(group, return_inverse=True, return_counts=True)
    dense = 2 * len([pair for pair in shared if group[pair[0]] == group[pair[1]]])
    if len(groups) < 3 or size.min() < 3 or dense < 0.8 * int((size * (size - 1)).sum()):
        return None
    # A circle for the groups, large enough to separate their own circles.
    inner = size.max() / (2 * np.pi) + 0.5
    outer = max(inner * 1.6 / np.sin(np.pi / len(groups)), 2 * inner)
    turn = 2 * np.pi * index / len(groups)
    within = np.zeros(len(graph))
    for number, count in enumerate(size):
        members = np.flatnonzero(index == number)
        within[_order_by_aim(graph, members, index, len(groups))] = 2 * np.pi * (np.arange(count) + 0.5) / count
    centre = np.stack([np.sin(turn), np.cos(turn)], axis=1) * outer
    around = within + turn + np.pi
    return np.asarray(centre + np.stack([np.sin(around), np.cos(around)], axis=1) * inner)


def _order_by_aim(
    graph: list[set[int]], members: npt.NDArray[np.intp], group: npt.NDArray[np.intp], groups: int
) -> npt.NDArray[np.intp]:
    """Return the switches of a group, ordered by the direction of their links to other groups."""
    own = int(group[members[0]])

    def aim(node: int) -> tuple[float, int]:
        away = [(int(group[other]) - own) % groups for other in graph[node] if group[other] != own]
        return (float(np.mean(away)) if away else groups / 2, node)

    return np.array(sorted(members.tolist(), key=aim), np.intp)


def position_by_distance(graph: list[set[int]]) -> Points:
    """Return positions whose distances approximate the hops between switches.

    Source: pivot MDS (Brandes and Pich, "Eigensolver methods for progressive multidimensional scaling of large data",
    2006), then stress majorisation (Gansner, Koren and North, "Graph drawing by stress majorization", 2004).
    """
    hops = np.stack([_count_hops(graph, pivot) for pivot in _choose_pivots(graph)], axis=1)
    squared = hops**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()
    _, vectors = np.linalg.eigh(centred.T @ centred)
    points = -centred @ vectors[:, [-1, -2]] if hops.shape[1] > 1 else np.stack([hops[:, 0], hops[:, 0] * 0], axis=1)
    # The sign of an eigenvector is arbitrary. The first switch off the middle is put to the right, and above.
    for axis in (0, 1):
        off = points[np.abs(points[:, axis]) > 1e-9 * np.abs(points).max(initial=1e-9), axis]
        points[:, axis] *= -1 if len(off) and off[0] < 0 else 1
    points *= hops.max(initial=1) / max(float(np.ptp(points, axis=0).max(initial=0)), 1e-9)
    # Equivalent switches coincide; an offset by their number lets them separate.
    angle = np.arange(len(graph)) * 2.399963
    points += 0.05 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _relax(graph, points) if len(graph) <= _STRESS_LIMIT else points


def _choose_pivots(graph: list[set[int]]) -> Iterable[int]:
    """Yield switches that are far from one another, each the farthest from those before it."""
    nearest = np.full(len(graph), np.inf)
    pivot = 0
    for _ in range(min(_PIVOTS, len(graph))):
        yield pivot
        nearest = np.minimum(nearest, _count_hops(graph, pivot))
        pivot = int(np.argmax(nearest))


def _count_hops(graph: list[set[int]], start: int) -> npt.NDArray[np.float64]:
    """Return the hops from a switch to all others; for unreachable ones, one more than the longest."""
    hops = np.full(len(graph), -1.0)
    hops[start] = 0
    frontier = [start]
    while frontier:
        ahead = []
        for node in frontier:
            for other in sorted(graph[node]):
                if hops[other] < 0:
                    hops[other] = hops[node] + 1
                    ahead.append(other)
        frontier = ahead
    return np.where(hops < 0, hops.max() + 1, hops)


def _relax(graph: list[set[int]], points: Points) -> Points:
    """Move each switch, in some rounds, towards the position that its hops to all others suggest."""
    hops = np.stack([_count_hops(graph, node) for node in range(len(graph))])
    wanted = np.maximum(hops, 1)
    weight = np.where(hops > 0, wanted**-2, 0.0)
    total = np.maximum(weight.sum(axis=1), 1e-9)
    for _ in range(_STRESS_ROUNDS):
        apart = points[:, None] - points[None]
        length = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-6)
        pull = (weight * wanted / length)[:, :, None] * apart
        points = ((weight @ points) + pull.sum(axis=1)) / total[:, None]
    return points
