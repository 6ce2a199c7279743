# SPDX-License-Identifier: Apache-2.0
"""Flows and forwarding tables: the arrays with which the page routes any selection of the flows itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import LIDS
from ibprof_converter.routing.indexed_network import NONE as NO_ROW
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_converter.traffic.traffic_data import Traffic
from ibprof_converter.viewer.packing import NONE, Arrays


def describe_flows(
    traffic: Traffic,
    subnets: Sequence[Subnet],
    order: Sequence[npt.NDArray[np.intp]],
    first_node: npt.NDArray[np.int64],
) -> Arrays:
    """Return arrays of the flows, of their addresses, and of the forwarding table columns that lead there.

    An address is a LID on a rail. Listed are those of flows and those of all ranks: the page also shows routes of
    pairs without traffic.

    A packet starts on `address_end`, the link direction that the adapter's port transmits on; a switch has `NONE` and
    starts at its node. Egress ports are `table[node_table[node] + address_column]`. The packet ends at the other side
    of the destination's `address_end`, or at its switch.

    Args:
        traffic: the flows.
        subnets: the rails.
        order: of each rail, the link directions in the order of the page.
        first_node: the number of each rail's first node on the page.
    """
    rail = traffic.rail.astype(np.int64) if len(subnets) > 1 else np.zeros(len(traffic.rail), np.int64)
    # LID 0 replaces an invalid one: it has no port, as in routing.
    lids = [np.where((lid >= 0) & (lid < LIDS), lid, 0) for lid in (traffic.source_lid, traffic.destination_lid)]
    source, destination = (rail * LIDS + lid for lid in lids)
    ranks = traffic.rank_lid.astype(np.int64)
    placed = np.where((ranks > 0) & (ranks < LIDS), ranks + np.arange(ranks.shape[1]) * LIDS, NONE)
    address = np.unique(np.concatenate([source, destination, placed[placed != NONE]]))
    column = np.full(len(address), NONE, np.int32)
    node = np.full(len(address), NONE, np.int32)
    end = np.full(len(address), NONE, np.int32)
    node_table = np.full(int(first_node[-1]), NONE, np.int32)
    tables = []
    used, first_end = 0, 0
    aims = np.zeros(len(address), np.bool_)
    aims[np.searchsorted(address, np.concatenate([destination, placed[placed != NONE]]))] = True
    for number, (subnet, ends) in enumerate(zip(subnets, order, strict=True)):
        here = np.flatnonzero(address // LIDS == number)
        lid = (address[here] % LIDS).astype(np.int64)
        node[here], end[here] = _locate(subnet, ends, lid, int(first_node[number]), first_end)
        first_end += len(ends)
        wanted = aims[here]
        column[here[wanted]] = np.arange(int(wanted.sum()))
        rows, table = _cut_tables(subnet, lid[wanted])
        node_table[first_node[number] + rows] = used + np.arange(len(rows)) * table.shape[1]
        tables.append(table.ravel())
        used += table.size
    wide = np.uint32 if len(address) > np.iinfo(np.uint16).max else np.uint16
    return {
        "address_node": node,
        "address_end": end,
        "address_column": column,
        "node_table": node_table,
        "table": np.concatenate(tables),
        "rank_address": np.where(placed == NONE, NONE, np.searchsorted(address, placed)).astype(np.int32).ravel(),
        "flow_source": np.searchsorted(address, source).astype(wide),
        "flow_destination": np.searchsorted(address, destination).astype(wide),
        "flow_source_rank": traffic.source_rank.astype(np.int32),
        "flow_destination_rank": traffic.destination_rank.astype(np.int32),
        "flow_region": traffic.region.astype(np.uint16),
        "flow_operation": traffic.operation.astype(np.uint16),
        "flow_job": (traffic.job if len(traffic.jobs) > 1 else np.zeros(len(rail))).astype(np.uint16),
        **({"flow_site": traffic.site.astype(np.uint16)} if len(traffic.sites) > 1 else {}),
        # Halves, so that the page sums them without big integers.
        "flow_bytes_low": (traffic.bytes & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        "flow_bytes_high": (traffic.bytes >> np.uint64(32)).astype(np.uint32),
    }


def _locate(
    subnet: Subnet, ends: npt.NDArray[np.intp], lid: npt.NDArray[np.int64], first_node: int, first_end: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the node and the transmit direction of each LID in the numbering of the page; `NONE` if there is none."""
    fabric, network = subnet.fabric, subnet.routes.network
    renumbered = np.full(len(ends) + 1, NONE, np.int64)  # `NONE` indexes the last
    renumbered[ends] = np.arange(len(ends)) + first_end
    port = fabric.lid_port[lid]
    known = port >= 0
    node = np.where(known, fabric.lid_node[lid].astype(np.int64) + first_node, NONE)
    end = np.full(len(lid), NONE, np.int64)
    end[known] = network.end_at[fabric.port_node[port[known]], fabric.port_number[port[known]]]
    return node, renumbered[end]


def _cut_tables(subnet: Subnet, lid: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the nodes that have a forwarding table, and their egress ports to the given LIDs: uint8 [node, LID]."""
    network = subnet.routes.network
    switch = np.flatnonzero(network.row != NO_ROW)
    egress = network.tables.port
    cut = np.full((len(switch), len(lid)), UNREACHABLE, np.uint8)
    within = lid < egress.shape[1]
    cut[:, within] = egress[network.row[switch][:, None], lid[within]]
    return network.switch_node[switch].astype(np.int64), cut
