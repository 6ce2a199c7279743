# SPDX-License-Identifier: Apache-2.0
"""Shortest routes to the LIDs of switches, which programs never use and subnet managers do."""

from __future__ import annotations

from collections import deque

import numpy as np

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables


def add_switch_routes(fabric: Fabric, tables: ForwardingTables) -> ForwardingTables:
    """Return tables with new shortest routes to all switches that have a LID; routes to other ports are kept."""
    cables: dict[int, list[tuple[int, int]]] = {}
    for (a, b), (p, q) in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
        if fabric.node_kind[a] == fabric.node_kind[b] == NodeKind.SWITCH:
            cables.setdefault(a, []).append((q, b))
            cables.setdefault(b, []).append((p, a))
    row = {int(guid): number for number, guid in enumerate(tables.switch_guid)}
    rows = {node: row[int(guid)] for node, guid in enumerate(fabric.node_guid) if int(guid) in row}
    is_switch = fabric.node_kind[fabric.port_node] == NodeKind.SWITCH
    lids = fabric.port_lid[is_switch]
    width = max(tables.port.shape[1], int(lids.max(initial=0)) + 1)
    table = np.full((len(tables.switch_guid), width), UNREACHABLE, np.uint8)
    table[:, : tables.port.shape[1]] = tables.port
    for node, lid in zip(fabric.port_node[is_switch].tolist(), lids.tolist(), strict=True):
        if lid > 0:
            for at, port in _route_to(cables, node).items():
                if at in rows:
                    table[rows[at], lid] = port
    return ForwardingTables(tables.name, tables.switch_guid, table)


def _route_to(cables: dict[int, list[tuple[int, int]]], switch: int) -> dict[int, int]:
    """Return the egress port of each switch that reaches one, which is 0 at that one."""
    egress = {switch: 0}
    queue = deque([switch])
    while queue:
        here = queue.popleft()
        for port, other in cables.get(here, ()):
            if other not in egress:
                egress[other] = port
                queue.append(other)
    return egress
