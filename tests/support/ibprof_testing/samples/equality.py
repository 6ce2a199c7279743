# SPDX-License-Identifier: Apache-2.0
"""Check that two fabrics, or the forwarding tables of two fabrics, are equal."""

from __future__ import annotations

import numpy as np

from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.routing.tables import ForwardingTables

NODES = ("node_guid", "node_kind", "node_name", "system_guid")
LINKS = ("link_node", "link_port", "link_lanes", "link_gbps")
PORTS = ("port_node", "port_number", "port_guid", "port_lid", "port_lmc", "lid_node", "lid_port")


def check_equal(found: Fabric, expected: Fabric, fields: set[str]) -> None:
    for field in sorted(fields):
        one, other = getattr(found, field), getattr(expected, field)
        assert one == other if isinstance(one, tuple) else np.array_equal(one, other), field


def check_tables(found: ForwardingTables, expected: ForwardingTables) -> None:
    assert np.array_equal(found.switch_guid, expected.switch_guid)
    width = min(found.port.shape[1], expected.port.shape[1])
    assert np.array_equal(found.port[:, :width], expected.port[:, :width])
    for tables in (found, expected):  # a table may end with LIDs without a route
        assert (tables.port[:, width:] == 255).all() or "dump_fts leaves out" in found.warnings[0]
