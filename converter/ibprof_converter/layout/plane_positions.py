# SPDX-License-Identifier: Apache-2.0
"""Find positions for fabrics that are drawn without levels, such as tori: many links join switches of one level.

The cabling selects the first of these methods that fits:

* A grid, for products of rings, paths and pairs, such as tori and hypercubes.
* A circle of fully connected groups, for dragonflies.
* For all other graphs, positions whose distances approximate the hops between switches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.graph_search import find_parts

Points = npt.NDArray[np.float64]
"""x (to the right) and y (up) of each switch: float64 [switch, 2]. The distance of neighbours is about 1."""

_FLAT_SHARE = 0.3
"""A fabric is drawn without levels if more than this fraction of switch-to-switch links are within levels."""

_FEWEST = 4
"""Smallest number of switches of a fabric that is drawn without levels."""

_ASIDE = 0.25
"""Offset of a side of a folded ring from the ring's middle; with this offset, adjacent lines have equal distances."""

_BELOW_RING = 0.28
"""Distance of hosts below their switch in a grid: less than the 2 * `_ASIDE` to the next row of switches."""

_BELOW = 0.45
"""Distance of hosts below their switch in other drawings."""

_DIAGONAL_GAP = 0.5
"""Space between diagonals in neighbouring grid cells; a diagonal shows all factors except the two longest."""

_GROUP_GAP = 1.5
"""Space between neighbouring groups on the circle."""

_SQUARES_LIMIT = 1 << 22
"""Squares are searched only if the sum, over all switches, of (number of neighbours)² is at most this number."""

_BULGES = tuple(np.arange(4, 19) / 20)
"""Candidates for height of a group's arc / half of the group's width."""

_MEASURED = 1500
"""With more links than this, only the links of group 0 are checked for their distances from switches."""

_PIVOTS = 64
_STRESS_LIMIT = 600
_STRESS_ROUNDS = 60


def is_flat(fabric: Fabric, level: npt.NDArray[np.int32]) -> bool:
    """Return true if more than `_FLAT_SHARE` of the links between switches are within levels.

    Some of these links must join leaf switches. A Dragonfly+ is drawn by levels, because only its top level has links
    within the level.
    """
    pairs = _pair_switches(fabric)
    is_switch = fabric.node_kind == NodeKind.SWITCH
    if int(is_switch.sum()) < _FEWEST:
        return False
    within = level[pairs[:, 0]] == level[pairs[:, 1]]
    joins_leaves = bool((level[pairs[within, 0]] == level[is_switch].min()).any())
    return joins_leaves and float(within.mean()) > _FLAT_SHARE


def position_switches(fabric: Fabric) -> tuple[npt.NDArray[np.intp], Points, float]:
    """Return nodes and positions of the switches, and the distance of hosts below a switch."""
    switch = np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)
    pairs = np.searchsorted(switch, _pair_switches(fabric))
    graph: list[set[int]] = [set() for _ in switch]
    for a, b in pairs.tolist():
        graph[a].add(b)
        graph[b].add(a)
    points = position_on_grid(graph)
    below = _BELOW_RING if points is not None else _BELOW
    if points is None:
        points = position_in_groups(graph)
    if points is None:
        points = position_by_distance(graph)
    return switch, points - points.min(axis=0), below


def _pair_switches(fabric: Fabric) -> npt.NDArray[np.int32]:
    """Return each pair of linked switches once."""
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    pairs = np.unique(np.sort(fabric.link_node[between], axis=1), axis=0)
    return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]])


@dataclass(frozen=True, slots=True)
class _Factor:
    """A ring, path or pair as factor of a product graph, with the switches' positions on the factor: int64 [switch]."""

    position: npt.NDArray[np.int64]
    is_ring: bool

    @property
    def size(self) -> int:
        return int(self.position.max()) + 1


def position_on_grid(graph: list[set[int]]) -> Points | None:
    """Return positions in a grid; None if the graph is no product of rings, paths and pairs.

    Opposite sides of a square of four switches belong to one factor. Two links of a switch belong to one factor if no
    square, or any triangle, contains both links. A ring of four switches is found as two factors of two switches, which
    `_join_pairs` joins.

    The two longest factors are the rows and columns. A ring is folded: switches of one half alternate with switches of
    the other half, so that all links are short, and no link covers another. Switches that differ only in further
    factors are in one cell of the grid, along a bent diagonal.
    """
    edges = _find_factors(graph)
    if edges is None:
        return None
    ordered = [_order_factor(len(graph), graph, along) for along in edges]
    found = [factor for factor in ordered if factor is not None]
    # A grid needs at least two factors: a single ring or path is no grid.
    if len(found) < max(2, len(ordered)) or len({*zip(*(f.position.tolist() for f in found), strict=True)}) != len(
        graph
    ):
        return None
    factors = sorted(_join_pairs(found), key=lambda factor: -factor.size)
    (x, x_side), (y, y_side) = (
        _fold(factor) for factor in (*factors[:2], _Factor(np.zeros(len(graph), np.int64), False))[:2]
    )
    diagonal = np.zeros(len(graph), np.int64)
    for factor in factors[2:]:
        diagonal = diagonal * factor.size + factor.position
    steps = int(diagonal.max())
    bent = (np.arange(steps) + 0.5) / max(steps, 1)
    across, up = (np.concatenate([[0.0], np.cumsum(1 + bend)]) for bend in (1 - bent, bent))
    pitch = across[-1] + 1 + (_DIAGONAL_GAP if steps else 0)
    # Move the sides of a folded ring apart: in y for a ring along x, in x for a ring along y.
    return np.stack(
        [x * pitch + across[diagonal] + _ASIDE * y_side, y * pitch + up[diagonal] + _ASIDE * x_side], axis=1
    )


def _join_pairs(factors: list[_Factor]) -> list[_Factor]:
    """Join pairs of factors with size 2 to rings of four; return the factors."""
    pairs = [factor for factor in factors if factor.size == 2]
    others = [factor for factor in factors if factor.size > 2]
    for one, other in zip(pairs[::2], pairs[1::2], strict=False):
        others.append(_Factor(np.where(other.position == 1, 3 - one.position, one.position), is_ring=True))
    return others + pairs[len(pairs) // 2 * 2 :]


def _fold(factor: _Factor) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return each switch's position along an axis, and its side (1 or -1) of a folded ring; 0 on a path.

    The order of a folded ring of n switches is 0, n - 1, 1, n - 2, and so on.
    """
    if not factor.is_ring:
        return factor.position, np.zeros_like(factor.position)
    ahead = 2 * factor.position
    is_first = ahead < factor.size
    return np.where(is_first, ahead, 2 * factor.size - 1 - ahead), np.where(is_first, 1, -1)


def _find_factors(graph: list[set[int]]) -> list[list[tuple[int, int]]] | None:
    """Return the links of each factor; None if there are no links, or too many (`_SQUARES_LIMIT`)."""
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


def _order_factor(nodes: int, graph: list[set[int]], edges: list[tuple[int, int]]) -> _Factor | None:
    """Return the ring, path or pair of `edges`; None if `edges` are another graph."""
    along = set(edges)
    others = [(a, b) for a, around in enumerate(graph) for b in around if a < b and (a, b) not in along]
    # Links outside `edges` join switches with the same position along this factor.
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
    is_ring = len(order) > 2 and order[0] in links[order[-1]]
    return _Factor(np.array([position[which] for which in layer.tolist()]), is_ring)


def position_in_groups(graph: list[set[int]]) -> Points | None:
    """Return positions of fully connected groups of switches on a circle; None for other graphs.

    The switches of a group are on an arc that bulges outwards, so that links between two groups cross no third group.
    """
    shared = {(a, b): len(around & graph[b]) for a, around in enumerate(graph) for b in around if a < b}
    most = max(shared.values(), default=0)
    close = [pair for pair, count in shared.items() if most and 2 * count >= most]
    group = find_parts(len(graph), np.array(close, np.int64).reshape(-1, 2))
    groups, index, size = np.unique(group, return_inverse=True, return_counts=True)
    dense = 2 * len([pair for pair in shared if group[pair[0]] == group[pair[1]]])
    if len(groups) < 3 or size.min() < 3 or dense < 0.8 * int((size * (size - 1)).sum()):
        return None
    turn = 2 * np.pi * index / len(groups)
    along = np.zeros(len(graph))
    for number, count in enumerate(size):
        members = np.flatnonzero(index == number)
        along[_order_by_aim(graph, members, index, len(groups))] = np.pi * (np.arange(count) + 0.5) / count
    half = int(size.max()) / 2
    radius = (half + _GROUP_GAP / 2) / np.tan(np.pi / len(groups))
    outward = np.stack([np.sin(turn), np.cos(turn)], axis=1)
    sideways = np.stack([np.cos(turn), -np.sin(turn)], axis=1) * (half * np.cos(along))[:, None]
    tried = [outward * (radius + part * half * np.sin(along))[:, None] + sideways for part in _BULGES]
    pairs = np.array([(a, b) for a, b in shared if len(shared) <= _MEASURED or 0 in (index[a], index[b])])
    return np.asarray(max(tried, key=lambda points: _find_closest(points, pairs)))


def _find_closest(points: Points, pairs: npt.NDArray[np.intp]) -> float:
    """Return the smallest distance between a link of `pairs` and a switch to which the link does not lead."""
    least = np.inf
    for pair in pairs:
        start, along = points[pair[0]], points[pair[1]] - points[pair[0]]
        part = np.clip((points - start) @ along / max(float(along @ along), 1e-12), 0, 1)
        distance = np.linalg.norm(points - start - part[:, None] * along, axis=1)
        distance[pair] = np.inf
        least = min(least, float(distance.min()))
    return least


def _order_by_aim(
    graph: list[set[int]], members: npt.NDArray[np.intp], group: npt.NDArray[np.intp], groups: int
) -> npt.NDArray[np.intp]:
    """Return the switches of a group, sorted by the mean direction of their links to other groups."""
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
    points = (
        project_on_principal_axes(centred, 2) if hops.shape[1] > 1 else np.stack([hops[:, 0], hops[:, 0] * 0], axis=1)
    )
    points *= hops.max(initial=1) / max(float(np.ptp(points, axis=0).max(initial=0)), 1e-9)
    # Switches with equal hops to all other switches get equal positions: separate them by a small offset.
    angle = np.arange(len(graph)) * 2.399963
    points += 0.05 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _relax(graph, points) if len(graph) <= _STRESS_LIMIT else points


def project_on_principal_axes(points: Points, axes: int) -> Points:
    """Return the coordinates of points on the points' principal axes, longest axis first: float64 [point, axes].

    The sign of an eigenvector is arbitrary, so it is chosen here: on each axis, the first coordinate other than 0 is
    positive. If `axes` exceeds the points' dimensions, the coordinates on further axes are 0.

    Args:
        points: float64 [point, dimension].
    """
    vectors = np.linalg.eigh(points.T @ points)[1][:, ::-1][:, :axes]
    projected = np.zeros((len(points), axes))
    projected[:, : vectors.shape[1]] = points @ vectors
    off = np.abs(projected) > 1e-9 * np.abs(projected).max(initial=1e-9)
    first = projected[off.argmax(axis=0), np.arange(axes)]
    return np.where(first < 0, -projected, projected)


def _choose_pivots(graph: list[set[int]]) -> Iterable[int]:
    """Yield at most `_PIVOTS` switches; each switch is as far as possible from all earlier switches."""
    nearest = np.full(len(graph), np.inf)
    pivot = 0
    for _ in range(min(_PIVOTS, len(graph))):
        yield pivot
        nearest = np.minimum(nearest, _count_hops(graph, pivot))
        pivot = int(np.argmax(nearest))


def _count_hops(graph: list[set[int]], start: int) -> npt.NDArray[np.float64]:
    """Return the hops from one switch to each switch; for unreachable switches, 1 more than the largest number."""
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
    """Return the positions after stress majorisation, with the hops as wanted distances."""
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
