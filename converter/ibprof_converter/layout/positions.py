# SPDX-License-Identifier: Apache-2.0
"""Where nodes are drawn: levels by breadth-first search, positions by a second one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.model import Fabric, NodeKind
from ibprof_converter.fabric.names import host_name, natural_key
from ibprof_converter.layout.levels import find_levels

_RAILS_TOGETHER = 2
_GAP = 2.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the nodes of one fabric are drawn.

    Attributes:
        level: int32 [node], 0 for hosts; a switch's is its distance to the nearest host. Never negative.
        x: float64 [node]; hosts are 1 apart or more.
        y: float64 [node], the level, negative on every second rail.
    """

    level: npt.NDArray[np.int32]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]


def lay_out(fabrics: Sequence[Fabric]) -> list[Layout]:
    """Lay out the fabrics of one machine, a rail each.

    The second rail is the mirror of the first: its switches are below, and adapters of one host (`host_name`) share a
    place at level 0. Further pairs of rails follow to the right. The order of the lines in a file has no influence.
    """
    layouts: list[Layout] = []
    left = 0.0
    for first in range(0, len(fabrics), _RAILS_TOGETHER):
        places: dict[str, list[float]] = defaultdict(list)
        pair = [_lay_out_rail(fabric, places) for fabric in fabrics[first : first + _RAILS_TOGETHER]]
        for (level, x), sign in zip(pair, (1.0, -1.0), strict=False):
            y = sign * level.astype(np.float64) + 0.0  # which makes -0.0 zero
            layouts.append(Layout(level, x + left, y))
        left += max((float(x.max()) for _, x in pair if len(x)), default=0.0) + _GAP
    return layouts


def _lay_out_rail(
    fabric: Fabric, places: dict[str, list[float]]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Give level and x of each node.

    Args:
        places: host name -> x of its adapters; taken from if there are any, else filled.
    """
    level = find_levels(fabric)
    neighbours = _sort_neighbours(fabric)
    visited = _visit(fabric, neighbours)
    x = np.zeros(fabric.nodes)
    if any(places.values()):
        _take_places(fabric, visited, places, x)
    else:
        _place_under_leaves(level, neighbours, visited, x)
        for node in visited:
            if level[node] == 0:
                places[host_name(fabric.node_name[node])].append(x[node])
    width = x.max(initial=0.0) + 1
    for height in range(1, int(level.max(initial=0)) + 1):
        _spread_over(width, _sort_by_children(height, level, neighbours, visited, x), x)
    return level, x


def _sort_neighbours(fabric: Fabric) -> list[list[int]]:
    """Give each node's neighbours in the order of their names, then GUIDs."""
    by_name = sorted(range(fabric.nodes), key=lambda node: (natural_key(fabric.node_name[node]), node))
    linked: list[set[int]] = [set() for _ in range(fabric.nodes)]
    for a, b in fabric.link_node.tolist():
        linked[a].add(b)
        linked[b].add(a)
    neighbours: list[list[int]] = [[] for _ in range(fabric.nodes)]
    for node in by_name:
        for other in linked[node]:
            neighbours[other].append(node)
    return neighbours


def _visit(fabric: Fabric, neighbours: list[list[int]]) -> list[int]:
    """Visit all nodes breadth-first, from the host whose name is the first, part by part."""
    starts = sorted(
        range(fabric.nodes),
        key=lambda node: (fabric.node_kind[node] != NodeKind.CA, natural_key(fabric.node_name[node]), node),
    )
    order: list[int] = []
    seen = [False] * fabric.nodes
    for start in starts:
        queue = deque([] if seen[start] else [start])
        seen[start] = True
        while queue:
            node = queue.popleft()
            order.append(node)
            for other in neighbours[node]:
                if not seen[other]:
                    seen[other] = True
                    queue.append(other)
    return order


def _place_under_leaves(
    level: npt.NDArray[np.int32], neighbours: list[list[int]], visited: list[int], x: npt.NDArray[np.float64]
) -> None:
    """Give all leaves slots of equal width, in the order of the visit, and put the nodes of level 0 into them.

    Nodes that are on no leaf, as aggregation nodes are, follow to the right.
    """
    placed: set[int] = set()
    slots: list[list[int]] = []
    for leaf in visited:
        if level[leaf] == 1:
            slots.append([node for node in neighbours[leaf] if level[node] == 0 and node not in placed])
            placed.update(slots[-1])
    width = max((len(slot) for slot in slots), default=0)
    for number, slot in enumerate(slots):
        _spread_over(width, slot, x, left=number * width)
    others = [node for node in visited if level[node] == 0 and node not in placed]
    _spread_over(len(others), others, x, left=width * len(slots))


def _take_places(
    fabric: Fabric, visited: list[int], places: dict[str, list[float]], x: npt.NDArray[np.float64]
) -> None:
    """Put the nodes of level 0 where the other rail has the same host, those it has not to the right of all."""
    right = max(max(xs) for xs in places.values() if xs)
    for node in visited:
        if fabric.node_kind[node] != NodeKind.SWITCH:
            taken = places[host_name(fabric.node_name[node])]
            if not taken:
                right += 1
            x[node] = taken.pop(0) if taken else right


def _sort_by_children(
    height: int,
    level: npt.NDArray[np.int32],
    neighbours: list[list[int]],
    visited: list[int],
    x: npt.NDArray[np.float64],
) -> list[int]:
    """Give the nodes of one level by the mean x of what is below them; equals in the order of the visit."""

    def middle(node: int) -> float:
        below = [x[other] for other in neighbours[node] if level[other] == height - 1]
        return float(np.mean(below)) if below else np.inf

    return sorted((node for node in visited if level[node] == height), key=middle)


def _spread_over(width: float, nodes: Iterable[int], x: npt.NDArray[np.float64], left: float = 0.0) -> None:
    """Spread nodes evenly over a width, so that as many nodes as it is wide are at whole numbers."""
    row = list(nodes)
    x[row] = left + (np.arange(len(row)) + 0.5) * width / max(len(row), 1) - 0.5
