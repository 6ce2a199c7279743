# SPDX-License-Identifier: Apache-2.0
"""Positions of nodes in a drawing; the lower end of each link, called `a` in every output."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.node_names import host_name, rank_names
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.layout.plane_positions import is_flat, position_switches
from ibprof_converter.layout.tree_positions import LevelTree

_RAILS_TOGETHER = 2
_GAP = 2.0
_HOSTS_ASIDE = 0.25
"""Offset of the hosts' middle to the right, so that no vertical link hides a host."""

Positions = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FabricLayout:
    """Positions of the nodes of one fabric.

    Attributes:
        level: int32 [node], 0 for hosts; for a switch, its distance to the nearest host. Never negative.
        x: float64 [node]; neighbouring hosts have distance 1.
        y: float64 [node], the level; negative on every second rail. Without `has_levels`, the height in a plane.
        has_levels: true if the fabric is drawn level by level. False, for instance, for a torus, whose switches are all
            on level 1.
    """

    level: npt.NDArray[np.int32]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    has_levels: bool = True


def lay_out(fabrics: Sequence[Fabric], level_hosts: re.Pattern[str] | None = None) -> list[FabricLayout]:
    """Return positions for the fabrics of one system, one per rail.

    The second rail mirrors the first: its switches are below, and adapters of one host (`host_name`) share a column.
    Further pairs of rails follow to the right. The order of lines in a file has no influence.

    Args:
        fabrics: the rails.
        level_hosts: pattern for the names of CAs at level 0; None: the cabling decides.
    """
    layouts: list[FabricLayout] = []
    left = 0.0
    for first in range(0, len(fabrics), _RAILS_TOGETHER):
        columns = _HostColumns()
        right = 0.0
        for number, fabric in enumerate(fabrics[first : first + _RAILS_TOGETHER]):
            layout = _lay_out_rail(fabric, level_hosts, columns)
            right = max(right, float(layout.x.max(initial=0.0)))
            y = layout.y * (-1 if number else 1) + 0.0  # adding 0.0 makes -0.0 zero
            layouts.append(FabricLayout(layout.level, layout.x + left, y, layout.has_levels))
        left += right + _GAP
    return layouts


class _HostColumns:
    """Columns of the hosts of two rails: taken from the first rail, used for the second."""

    def __init__(self) -> None:
        self._of_host: dict[str, list[float]] = defaultdict(list)

    def store(self, fabric: Fabric, layout: FabricLayout, rank: npt.NDArray[np.int64]) -> None:
        """Store the columns of a rail's hosts."""
        bottom = np.flatnonzero(layout.level == 0)
        for node in bottom[np.argsort(rank[bottom])].tolist():
            self._of_host[host_name(fabric.node_name[node])].append(float(layout.x[node]))

    def columns_of(self, fabric: Fabric, level: npt.NDArray[np.int32], rank: npt.NDArray[np.int64]) -> Positions | None:
        """Return x of the nodes of level 0; hosts missing on the other rail are to the right. None for a first rail."""
        if not self._of_host:
            return None
        left = {name: list(columns) for name, columns in self._of_host.items()}
        right = max(max(columns) for columns in left.values())
        x = np.zeros(fabric.nodes)
        bottom = np.flatnonzero(level == 0)
        for node in bottom[np.argsort(rank[bottom])].tolist():
            columns = left.get(host_name(fabric.node_name[node]))
            if not columns:
                right += 1
            x[node] = columns.pop(0) if columns else right
        return x


def _lay_out_rail(fabric: Fabric, level_hosts: re.Pattern[str] | None, columns: _HostColumns) -> FabricLayout:
    level = find_levels(fabric, level_hosts)
    rank = rank_names(fabric.node_name)
    if len(fabric.link_node) and is_flat(fabric, level):
        return _lay_out_flat(fabric, level, rank)
    hosts_x = columns.columns_of(fabric, level, rank)
    layout = FabricLayout(level, LevelTree.grow(fabric, level, rank).positions(hosts_x), level.astype(np.float64))
    if hosts_x is None:
        columns.store(fabric, layout, rank)
    return layout


def _lay_out_flat(fabric: Fabric, level: npt.NDArray[np.int32], rank: npt.NDArray[np.int64]) -> FabricLayout:
    """Put switches into a plane, and the nodes of each switch into a row below it."""
    switch, points, below = position_switches(fabric)
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
    width = int(count.max(initial=0)) + 1
    point[switch] = points * (width, 1) + ((width - 1) / 2, 1)
    index = np.arange(len(others)) - np.repeat(np.cumsum(count) - count, count)
    middle = np.append(point, [[point[:, 0].max() + width, 1.0]], axis=0)[np.repeat(owner, count)]
    point[others] = middle + np.stack(
        [index - (np.repeat(count, count) - 1) / 2 + _HOSTS_ASIDE, np.full(len(others), -below)], axis=1
    )
    x = point[:, 0] - min(float(point[:, 0].min()), 0.0)
    return FabricLayout(level, x, point[:, 1], has_levels=False)


def visit(fabric: Fabric, name_rank: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Visit all nodes breadth-first from the host with the first name, by component; neighbours are sorted by name.

    Returns:
        int64 [node], position of each node in the visit.
    """
    neighbours: list[list[int]] = [[] for _ in range(fabric.nodes)]
    pairs = np.unique(np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]]), axis=0)
    for a, b in pairs[np.argsort(name_rank[pairs[:, 1]], kind="stable")].tolist():
        neighbours[a].append(b)
    when = np.full(fabric.nodes, -1, np.int64)
    count = 0
    for start in np.lexsort((name_rank, fabric.node_kind != NodeKind.CA)).tolist():
        queue = deque([start] if when[start] < 0 else [])
        while queue:
            node = queue.popleft()
            if when[node] < 0:
                when[node] = count
                count += 1
                queue.extend(other for other in neighbours[node] if when[other] < 0)
    return when


def lower_ends(fabric: Fabric, layout: FabricLayout) -> npt.NDArray[np.intp]:
    """Return the end (0 or 1) of each link that is nearer to the hosts.

    For two ends on one level, it is the end with the smaller NODE GUID, then with the smaller port.

    Returns:
        intp [link], end of each link.
    """
    node = fabric.link_node
    keys = np.stack([layout.level[node].astype(np.uint64), fabric.node_guid[node], fabric.link_port.astype(np.uint64)])
    lower = np.zeros(fabric.links, np.intp)
    decided = np.zeros(fabric.links, bool)
    for first, second in zip(keys[:, :, 0], keys[:, :, 1], strict=True):
        lower[~decided & (second < first)] = 1
        decided |= first != second
    return lower


def order_of_links(fabric: Fabric, layout: FabricLayout) -> npt.NDArray[np.intp]:
    """Return the order in which outputs list links: from the hosts up, then by GUID and port of the lower end.

    Returns:
        intp [link], a permutation of the links.
    """
    links = np.arange(fabric.links)
    end = lower_ends(fabric, layout)
    node = fabric.link_node[links, end]
    return np.lexsort((fabric.link_port[links, end], fabric.node_guid[node], layout.level[node]))
