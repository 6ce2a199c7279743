# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables as text that OpenSM loads: `opensm -R file -U FILE`, or `lfts_file FILE` in opensm.conf."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ibprof.text.quantities import printable
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.indexed_network import NONE
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables


def write_lft_text(fabric: Fabric, tables: ForwardingTables) -> Iterator[str]:
    """Yield the lines of tables, switch by switch.

    Each entry names the GUID of the port that has the LID, so that OpenSM finds the port even under another LID.

    Args:
        fabric: that the tables belong to.
        tables: of its switches.
    """
    lid_of = {
        int(node): int(lid)
        for node, lid in zip(fabric.port_node, fabric.port_lid, strict=True)
        if fabric.node_kind[node] == NodeKind.SWITCH
    }
    node_of = {int(guid): node for node, guid in enumerate(fabric.node_guid)}
    for guid, row in zip(tables.switch_guid.tolist(), tables.port, strict=True):
        node = node_of.get(guid)
        if node is None:
            continue
        name = printable(fabric.node_name[node]).replace("'", "")
        yield (f"Unicast lids [0-{len(row) - 1}] of switch Lid {lid_of.get(node, 0)} guid {guid:#018x} ('{name}'):\n")
        for lid in np.flatnonzero(row != UNREACHABLE).tolist():
            port = int(fabric.lid_port[lid])
            if port != NONE:
                yield f"{lid:#06x} {row[lid]:03} # portguid {int(fabric.port_guid[port]):#018x}\n"
