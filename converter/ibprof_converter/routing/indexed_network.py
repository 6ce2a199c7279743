# SPDX-License-Identifier: Apache-2.0
"""A fabric and its forwarding tables, indexed for following packets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import kernels_headers
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.listing import PORTS
from ibprof_converter.routing.tables import ForwardingTables

NONE = kernels_headers().constants["IBP_NONE"]


@dataclass(frozen=True, slots=True)
class IndexedNetwork:
    """The targets of link directions. A link direction is the number 2 * link + end; its node is the sender.

    Arrays over link directions have one more element, the last, so that `NONE` is a valid index.

    Attributes:
        fabric, tables: the indexed fabric and tables.
        end_at: int32 [node, port], the link direction that a port sends on, `NONE` without a link.
        next_node: int32 [link direction], the receiving node.
        arrives_at: int32 [link direction], the addressable port (index into the fabric's ports) of a CA or router that
            it leads to; `NONE` where it leads to a switch, or to a port without a LID.
        switch_node: int32 [switch], nodes that are switches.
        switch_of: int32 [node], the inverse, `NONE` for other nodes.
        row: int32 [switch], its row in the tables, `NONE` where it has none.
    """

    fabric: Fabric
    tables: ForwardingTables
    end_at: npt.NDArray[np.int32]
    next_node: npt.NDArray[np.int32]
    arrives_at: npt.NDArray[np.int32]
    switch_node: npt.NDArray[np.int32]
    switch_of: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]

    @classmethod
    def index(cls, fabric: Fabric, tables: ForwardingTables) -> IndexedNetwork:
        """Index a fabric and its tables."""
        node, number = fabric.link_node.ravel(), fabric.link_port.ravel()
        end_at = np.full((fabric.nodes, PORTS), NONE, np.int32)
        end_at[node, number] = np.arange(len(node))
        is_switch = fabric.node_kind == NodeKind.SWITCH
        switch_node = np.flatnonzero(is_switch).astype(np.int32)
        switch_of = np.full(fabric.nodes, NONE, np.int32)
        switch_of[switch_node] = np.arange(len(switch_node))
        # A switch's addressable port is 0, which no link leads to. So only ports of CAs and routers are found here.
        port_at = np.full((fabric.nodes, PORTS), NONE, np.int32)
        port_at[fabric.port_node, fabric.port_number] = np.arange(len(fabric.port_node))
        nowhere = np.int32(NONE)
        next_node = np.append(fabric.link_node[:, ::-1], nowhere)
        next_port = np.append(fabric.link_port[:, ::-1], nowhere)
        return cls(
            fabric=fabric,
            tables=tables,
            end_at=end_at,
            next_node=next_node,
            arrives_at=np.where(next_node == NONE, nowhere, port_at[next_node, next_port]),
            switch_node=switch_node,
            switch_of=switch_of,
            row=find_rows(fabric.node_guid[switch_node], tables),
        )


def find_rows(switch_guid: npt.NDArray[np.uint64], tables: ForwardingTables) -> npt.NDArray[np.int32]:
    """Return the rows of switches in the tables: int32 [switch], `NONE` without a table."""
    row = np.searchsorted(tables.switch_guid, switch_guid)
    return np.where(np.isin(switch_guid, tables.switch_guid), row, NONE).astype(np.int32)
