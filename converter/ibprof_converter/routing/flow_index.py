# SPDX-License-Identifier: Apache-2.0
"""Find the flows on link directions: repeatedly by an index, or for a few directions in one pass over all flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.hop_trace import Reason
from ibprof_converter.routing.subnet_routes import NONE, Integers, SubnetRoutes, as_lids

_FLOWS = 1 << 21
"""Flows that are followed at a time, so that millions of them take no more memory."""

_NOT_WANTED = -1


class FlowIndex:
    """Flows, sorted so that those on a link direction are found at a cost proportional to their number.

    Args:
        routes: of the subnet.
        source_lid, destination_lid: int [flow].
    """

    def __init__(self, routes: SubnetRoutes, source_lid: Integers, destination_lid: Integers) -> None:
        self._routes = routes
        network = routes.network
        fabric = network.fabric
        source, destination = as_lids(source_lid), as_lids(destination_lid)
        port, target = fabric.lid_port[source], fabric.lid_port[destination]
        known = np.flatnonzero((port != NONE) & (target != NONE) & (port != target))
        port = port[known]
        self._destination_lid = destination
        node = fabric.port_node[port]
        own_end = np.where(network.switch_of[node] == NONE, network.end_at[node, fabric.port_number[port]], NONE)
        entered = np.where(own_end == NONE, node, network.next_node[own_end])
        switch_of = np.full(fabric.nodes, NONE, np.int64)
        switch_of[routes.switch_node] = np.arange(len(routes.switch_node))
        switch = switch_of[entered]
        inside = switch != NONE
        key = destination[known].astype(np.int64) * len(routes.switch_node) + switch
        self._by_entry = _Sorted.sort(key[inside], known[inside])
        self._by_own_end = _Sorted.sort(own_end.astype(np.int64), known)
        self._lids = np.unique(destination[known])
        self._source_lid = source

    def on(self, link: int, end: int) -> npt.NDArray[np.intp]:
        """Return the flows that load one link direction.

        Args:
            link, end: the link, and 0 or 1 for the sending end.

        Returns:
            intp, ascending rows.
        """
        number = 2 * link + end
        network = self._routes.network
        node, port = int(network.fabric.link_node[link, end]), int(network.fabric.link_port[link, end])
        switch = network.switch_of[node]
        if switch == NONE:
            rows = self._by_own_end.take(np.array([number]))
            reason = self._routes.find_paths(self._source_lid[rows], self._destination_lid[rows]).reason
            return np.sort(rows[reason == Reason.DELIVERED])
        row = network.row[switch]
        if row == NONE:
            return np.zeros(0, np.intp)
        table = network.tables.port[row]
        lids = self._lids[self._lids < len(table)]
        lids = lids[table[lids] == port]
        offset, entered = self._routes.find_upstream(number, lids)
        lid = np.repeat(lids, np.diff(offset)).astype(np.int64)
        return np.sort(self._by_entry.take(lid * len(self._routes.switch_node) + entered))


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Rows by ascending key."""

    key: npt.NDArray[np.int64]
    row: npt.NDArray[np.intp]

    @classmethod
    def sort(cls, key: npt.NDArray[np.int64], row: npt.NDArray[np.intp]) -> _Sorted:
        order = np.argsort(key, kind="stable")
        return cls(key[order], row[order])

    def take(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """Return the rows of distinct keys."""
        first, stop = np.searchsorted(self.key, keys), np.searchsorted(self.key, keys, side="right")
        count = stop - first
        positions = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        rows: npt.NDArray[np.intp] = self.row[positions]
        return rows


def scan_flows(
    routes: SubnetRoutes, source_lid: Integers, destination_lid: Integers, ends: Sequence[int]
) -> list[npt.NDArray[np.intp]]:
    """Return the flows that load some link directions.

    Args:
        routes: of the subnet.
        source_lid, destination_lid: int [flow].
        ends: distinct link directions, 2 * link + end each.

    Returns:
        For each link direction the rows of its flows, intp, ascending.
    """
    source, destination = as_lids(source_lid), as_lids(destination_lid)
    index = np.full(2 * routes.network.fabric.links, _NOT_WANTED, np.int32)
    index[list(ends)] = np.arange(len(ends))
    found: list[list[npt.NDArray[np.intp]]] = [[] for _ in ends]
    for begin in range(0, len(source), _FLOWS):
        # One destination after the other keeps its tables in the processor's cache.
        flow = begin + np.argsort(destination[begin : begin + _FLOWS].astype(np.uint16), kind="stable")
        paths = routes.find_paths(source[flow], destination[flow])
        wanted = index[paths.end]
        passed = np.flatnonzero(wanted != _NOT_WANTED)
        passing = flow[np.searchsorted(paths.offset, passed, side="right") - 1]
        for number, rows in enumerate(found):
            rows.append(np.sort(passing[wanted[passed] == number]))
    return [np.concatenate([np.zeros(0, np.intp), *rows]) for rows in found]
