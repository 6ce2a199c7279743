# SPDX-License-Identifier: Apache-2.0
"""Where nodes are drawn."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.fabric.node_names import host_name
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.layout.plane_positions import is_flat, place_switches
from ibprof_converter.layout.traversal import rank_names
from ibprof_converter.layout.tree_positions import LevelTree

_RAILS_TOGETHER = 2
_GAP = 2.0
_HOSTS_BELOW = 0.35
"""How far below their switch the hosts of a fabric without levels are; its neighbours are 1 away."""

_HOSTS_ASIDE = 0.25
"""How far to its right the middle of them is, so that none hides on a link that goes straight down."""

Places = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FabricLayout:
    """Where the nodes of one fabric are drawn.

    Attributes:
        level: int32 [node], 0 for hosts; a switch's is its distance to the nearest host. Never negative.
        x: float64 [node]; hosts beside one another are 1 apart.
        y: float64 [node], the level; negative on every second rail. Without `has_levels`, the height in a plane.
        has_levels: whether the fabric is drawn level by level. A torus, for instance, is not: all its switches are on
            level 1.
    """

    level: npt.NDArray[np.int32]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    has_levels: bool = True


def lay_out(fabrics: Sequence[Fabric], level_hosts: re.Pattern[str] | None = None) -> list[FabricLayout]:
    """Lay out the fabrics of one machine, a rail each.

    The second rail is the mirror of the first: its switches are below, and adapters of one host (`host_name`) share a
    column. Further pairs of rails follow to the right. The order of the lines in a file has no influence.

    Args:
        fabrics: the rails.
        level_hosts: CAs whose names match are the hosts that levels count from; None: the cabling tells.
    """
    layouts: list[FabricLayout] = []
    left = 0.0
    for first in range(0, len(fabrics), _RAILS_TOGETHER):
        columns = _HostColumns()
        right = 0.0
        for number, fabric in enumerate(fabrics[first : first + _RAILS_TOGETHER]):
            layout = _lay_out_rail(fabric, level_hosts, columns)
            right = max(right, float(layout.x.max(initial=0.0)))
            y = layout.y * (-1 if number else 1) + 0.0  # which makes -0.0 zero
            layouts.append(FabricLayout(layout.level, layout.x + left, y, layout.has_levels))
        left += right + _GAP
    return layouts


class _HostColumns:
    """Where the hosts of a pair of rails are across: taken from the first, given to the second."""

    def __init__(self) -> None:
        self._of_host: dict[str, list[float]] = defaultdict(list)

    def take(self, fabric: Fabric, layout: FabricLayout, rank: npt.NDArray[np.int64]) -> None:
        """Note the columns of a rail's hosts."""
        bottom = np.flatnonzero(layout.level == 0)
        for node in bottom[np.argsort(rank[bottom])].tolist():
            self._of_host[host_name(fabric.node_name[node])].append(float(layout.x[node]))

    def give(self, fabric: Fabric, level: npt.NDArray[np.int32], rank: npt.NDArray[np.int64]) -> Places | None:
        """Give x of the nodes of level 0; hosts that the other rail lacks are to the right. None for a first rail."""
        if not self._of_host:
            return None
        left = {name: list(places) for name, places in self._of_host.items()}
        right = max(max(places) for places in left.values())
        x = np.zeros(fabric.nodes)
        bottom = np.flatnonzero(level == 0)
        for node in bottom[np.argsort(rank[bottom])].tolist():
            places = left.get(host_name(fabric.node_name[node]))
            if not places:
                right += 1
            x[node] = places.pop(0) if places else right
        return x


def _lay_out_rail(fabric: Fabric, level_hosts: re.Pattern[str] | None, columns: _HostColumns) -> FabricLayout:
    level = find_levels(fabric, level_hosts)
    rank = rank_names(fabric)
    if len(fabric.link_node) and is_flat(fabric, level):
        return _lay_out_flat(fabric, level, rank)
    hosts_x = columns.give(fabric, level, rank)
    layout = FabricLayout(level, LevelTree.grow(fabric, level, rank).place(hosts_x), level.astype(np.float64))
    if hosts_x is None:
        columns.take(fabric, layout, rank)
    return layout


def _lay_out_flat(fabric: Fabric, level: npt.NDArray[np.int32], rank: npt.NDArray[np.int64]) -> FabricLayout:
    """Put switches into a plane, and what hangs on one of them into a row below it."""
    switch, points = place_switches(fabric)
    point = np.zeros((fabric.nodes, 2))
    pairs = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]])
    is_switch = np.zeros(fabric.nodes, np.bool_)
    is_switch[switch] = True
    pairs = pairs[~is_switch[pairs[:, 0]] & is_switch[pairs[:, 1]]]
    hung = np.full(fabric.nodes, fabric.nodes)
    np.minimum.at(hung, pairs[:, 0], pairs[:, 1])
    others = np.flatnonzero(~is_switch)
    others = others[np.lexsort((rank[others], hung[others]))]
    owner, count = np.unique(hung[others], return_counts=True)
    room = int(count.max(initial=0)) + 1
    point[switch] = points * (room, 1) + ((room - 1) / 2, 1)
    index = np.arange(len(others)) - np.repeat(np.cumsum(count) - count, count)
    middle = np.append(point, [[point[:, 0].max() + room, 1.0]], axis=0)[np.repeat(owner, count)]
    point[others] = middle + np.stack(
        [index - (np.repeat(count, count) - 1) / 2 + _HOSTS_ASIDE, np.full(len(others), -_HOSTS_BELOW)], axis=1
    )
    x = point[:, 0] - min(float(point[:, 0].min()), 0.0)
    return FabricLayout(level, x, point[:, 1], has_levels=False)
