# SPDX-License-Identifier: Apache-2.0
"""Compute the routes of packets in a subnet, from its fabric and tables, by C kernels."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.native.headers import kernels_headers
from ibprof.native.libraries import load_kernels
from ibprof_converter.fabric.fabric_graph import LIDS, Fabric, NodeKind
from ibprof_converter.fabric.listing import PORTS
from ibprof_converter.routing.tables import ForwardingTables

Integers = npt.NDArray[np.integer]

TREES_LIMIT = 1 << 28
"""Largest size, in bytes, of cached trees of routes. 11,664 hosts need 64 MB. Larger trees are recomputed."""

_HOP = kernels_headers().types["ibp_hop"]


NONE = kernels_headers().constants["IBP_NONE"]

_FLOWS = 1 << 21
"""Largest number of flows in a batch: this limits the memory for millions of flows."""

_NOT_WANTED = -1


@dataclass(frozen=True, slots=True)
class PairPaths:
    """The paths of some pairs of LIDs.

    Attributes:
        offset: int64 [pair + 1]. The path of pair i is `end[offset[i]:offset[i + 1]]`; a path that does not arrive is
            empty.
        end: int32, link directions (2 * link + end), in the order of the path.
        reason: uint8 [pair], the `Reason` why each path ends.
    """

    offset: npt.NDArray[np.int64]
    end: npt.NDArray[np.int32]
    reason: npt.NDArray[np.uint8]


class SubnetRoutes:
    """Routes of a subnet's packets. Expensive results are kept.

    The node at end `end` of a link sends on link direction 2 * link + end.

    Attributes:
        network: the fabric and its tables.
        switch_node: int32 [switch], node of each switch; switches with a CA or router come first.
        leaves: number of switches with a CA or router.
        handle: the kernels' struct ibp_routes.
    """

    def __init__(self, fabric: Fabric, tables: ForwardingTables) -> None:
        self.network = IndexedNetwork.index(fabric, tables)
        self.switch_node, self.leaves = _sort_switches(self.network)
        self._kernels = load_kernels()
        self._held: dict[str, npt.NDArray[Any]] = {}
        self.handle = self._describe()

    def find_paths(self, source_lid: Integers, destination_lid: Integers) -> PairPaths:
        """Return the path of each pair of LIDs. The run time is proportional to the number of hops.

        Args:
            source_lid, destination_lid: int [pair].
        """
        lib, pointer, null = self._kernels.lib, self._kernels.pointer, self._kernels.ffi.NULL
        source, destination = as_lids(source_lid), as_lids(destination_lid)
        offset = np.zeros(len(source) + 1, np.uint64)
        reason = np.zeros(len(source), np.uint8)
        pairs = (self.handle, pointer(source), pointer(destination), len(source), pointer(offset))
        check_status(lib.ibp_find_paths(*pairs, null, pointer(reason)))
        end = np.zeros(int(offset[-1]), np.int32)
        check_status(lib.ibp_find_paths(*pairs, pointer(end), pointer(reason)))
        return PairPaths(offset.astype(np.int64), end, reason)

    @cached_property
    def trees(self) -> Any:
        """The trees of routes to all destinations (struct ibp_trees of the kernels), along which a matrix is spread."""
        lib, ffi = self._kernels.lib, self._kernels.ffi
        trees = lib.ibp_trees_new(self.handle, TREES_LIMIT, count_threads())
        return ffi.gc(trees, lib.ibp_trees_free) if trees else trees

    def _describe(self) -> Any:
        """Return the subnet as the kernels' struct. `_held` keeps the arrays of the struct alive."""
        network, pointer = self.network, self._kernels.pointer
        fabric, switches = network.fabric, len(self.switch_node)
        switch_of = np.full(fabric.nodes, NONE, np.int32)
        switch_of[self.switch_node] = np.arange(switches, dtype=np.int32)
        # An additional last element is `NONE`, so that the index `NONE` yields `NONE`, as in `IndexedNetwork`.
        to = switch_of[network.next_node]
        to = np.where((to == NONE) & (network.arrives_at != NONE), network.arrives_at + switches, to)
        hop = np.zeros((switches, PORTS), _HOP)
        hop["end"] = network.end_at[self.switch_node]
        hop["to"] = to[hop["end"]]
        width = int(np.flatnonzero((hop["end"] != NONE).any(axis=0)).max(initial=0)) + 1
        is_switch = switch_of[fabric.port_node] != NONE
        first = np.zeros(len(fabric.port_node), _HOP)
        first["end"] = np.where(is_switch, NONE, network.end_at[fabric.port_node, fabric.port_number])
        first["to"] = to[first["end"]]
        row_of = network.row[network.switch_of[self.switch_node]]
        end_switch = switch_of[fabric.link_node.ravel()]
        into_end = np.flatnonzero((end_switch != NONE) & (to[:-1] != NONE) & (to[:-1] < switches)).astype(np.int32)
        into_end = into_end[np.argsort(to[into_end], kind="stable")]
        held = {
            "egress": self._transpose(row_of),
            "has_table": (row_of != NONE).astype(np.uint8),
            "hop": np.ascontiguousarray(hop[:, :width]),
            "lid_port": fabric.lid_port,
            "port_switch": switch_of[fabric.port_node],
            "first": first,
            "into": np.searchsorted(to[into_end], np.arange(switches + 1)).astype(np.uint32),
            "into_end": into_end,
            "end_switch": end_switch,
        }
        routes = self._kernels.ffi.new("struct ibp_routes *")
        routes.switches, routes.leaves, routes.width = switches, self.leaves, width
        routes.lids, routes.ends, routes.ports = network.tables.port.shape[1], 2 * fabric.links, len(fabric.port_node)
        for name, array in held.items():
            setattr(routes, name, pointer(array))
        self._held = held
        return routes

    def _transpose(self, row_of: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
        table = np.ascontiguousarray(self.network.tables.port)
        egress = np.empty((table.shape[1], len(row_of)), np.uint8)
        pointer = self._kernels.pointer
        row_of = np.ascontiguousarray(row_of)
        self._kernels.lib.ibp_transpose_tables(
            pointer(table), table.shape[1], pointer(row_of), len(row_of), pointer(egress)
        )
        return egress


def as_lids(lid: Integers) -> npt.NDArray[np.int32]:
    """Return LIDs for the kernels: an invalid LID becomes 0, which no port has."""
    return np.where((lid >= 0) & (lid < LIDS), lid, 0).astype(np.int32)


def count_threads() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def check_status(status: int) -> None:
    """Raise an error if a kernel's status is an error.

    Raises:
        InconsistentError: the sum of the bytes exceeds 64 bits.
        MemoryError: there is not enough memory.
    """
    if status == -errno.EOVERFLOW:
        raise InconsistentError("the traffic sums to more than 2^64 - 1 bytes")
    if status == -errno.ENOMEM:
        raise MemoryError
    if status:
        raise ValueError(f"invalid call of a kernel: {os.strerror(-status)}")


def _sort_switches(network: IndexedNetwork) -> tuple[npt.NDArray[np.int32], int]:
    """Return all switches, first those with a CA or router; and the number of switches with a CA or router."""
    node = network.fabric.link_node
    is_switch = network.switch_of[node] != NONE
    is_leaf = np.zeros(network.fabric.nodes, np.bool_)
    is_leaf[node[is_switch & ~is_switch[:, ::-1]]] = True
    order = np.argsort(~is_leaf[network.switch_node], kind="stable")
    return network.switch_node[order], int(is_leaf.sum())


@dataclass(frozen=True, slots=True)
class IndexedNetwork:
    """Link directions with their receivers. The node at end `end` of a link sends on link direction 2 * link + end.

    Arrays over link directions have an additional last element, so that `NONE` is a valid index.

    Attributes:
        end_at: int32 [node, port], link direction on which the port sends, `NONE` without a link.
        next_node: int32 [link direction], the receiving node.
        arrives_at: int32 [link direction], the receiving port of a CA or router (index into the fabric's ports); `NONE`
            if a switch or a port without a LID receives.
        switch_node: int32 [switch], node of each switch.
        switch_of: int32 [node], index of the switch, `NONE` for other nodes.
        row: int32 [switch], the switch's row in the tables, `NONE` if it has no table.
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
        # Only ports of CAs and routers are found: of a switch, only port 0 has a LID, and no link leads to port 0.
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
    """Return the rows of switches in the tables: int32 [switch], `NONE` if the switch has no table."""
    row = np.searchsorted(tables.switch_guid, switch_guid)
    return np.where(np.isin(switch_guid, tables.switch_guid), row, NONE).astype(np.int32)


def scan_flows(
    routes: SubnetRoutes, source_lid: Integers, destination_lid: Integers, ends: Sequence[int]
) -> list[npt.NDArray[np.intp]]:
    """Return the flows that use each of the given link directions.

    Args:
        source_lid, destination_lid: int [flow].
        ends: distinct link directions, as 2 * link + end.

    Returns:
        Ascending indices of the flows of each link direction: intp.
    """
    source, destination = as_lids(source_lid), as_lids(destination_lid)
    index = np.full(2 * routes.network.fabric.links, _NOT_WANTED, np.int32)
    index[list(ends)] = np.arange(len(ends))
    found: list[list[npt.NDArray[np.intp]]] = [[] for _ in ends]
    for begin in range(0, len(source), _FLOWS):
        # Sort the flows by destination, so that the entries of a destination stay in the processor's cache.
        flow = begin + np.argsort(destination[begin : begin + _FLOWS].astype(np.uint16), kind="stable")
        paths = routes.find_paths(source[flow], destination[flow])
        wanted = index[paths.end]
        passed = np.flatnonzero(wanted != _NOT_WANTED)
        passing = flow[np.searchsorted(paths.offset, passed, side="right") - 1]
        for number, rows in enumerate(found):
            rows.append(np.sort(passing[wanted[passed] == number]))
    return [np.concatenate([np.zeros(0, np.intp), *rows]) for rows in found]
