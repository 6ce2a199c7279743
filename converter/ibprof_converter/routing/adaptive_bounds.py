# SPDX-License-Identifier: Apache-2.0
"""Bounds on link loads where switches route adaptively.

An adaptive switch chooses among its minimal egress ports for each packet, by their fill level. Minimal ports are those
on a shortest path to the destination. If all ports share evenly, a link carries its smallest load. If the other ports
are always full, one link carries all traffic that can use it. The actual load lies between these. Tables, `.ar` and
`.far` may restrict the choice further; this module ignores that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import LIDS
from ibprof_converter.routing.indexed_network import NONE, IndexedNetwork

Integers = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class AdaptiveBounds:
    """Bounds on the loads of link directions.

    Attributes:
        shared: float64 [link, end], bytes if each switch spreads evenly over its minimal egress ports.
        most: uint64 [link, end], bytes if each link carries all traffic that can use it.
        unrouted: bytes of flows without a path.
    """

    shared: npt.NDArray[np.float64]
    most: npt.NDArray[np.uint64]
    unrouted: int


LidFlows = tuple[Integers, Integers, npt.NDArray[np.uint64]]
"""LIDs of sources and destinations, and bytes, [flow] each."""


def bound_adaptive(network: IndexedNetwork, parts: Iterable[LidFlows]) -> AdaptiveBounds:
    """Return bounds on the loads of flows on minimal paths, independent of the tables.

    Args:
        network: of one subnet.
        parts: the flows, in parts.
    """
    fabric = network.fabric
    ends = 2 * fabric.links
    shared, most = np.zeros(ends), np.zeros(ends, np.uint64)
    distance = _count_switch_hops(network)
    demand = np.zeros(distance.shape, np.uint64)
    unrouted = 0
    for source_lid, destination_lid, amount in parts:
        source, destination = (_find_flow_ports(network, lid) for lid in (source_lid, destination_lid))
        apart = source.port != destination.port
        known = (source.switch != NONE) & (destination.switch != NONE)
        joined = known & np.isfinite(distance[source.switch, destination.switch])
        chosen = apart & joined
        for place, end in ((source, source.out), (destination, destination.into)):
            cabled = chosen & (end != NONE) & (place.port != NONE)
            np.add.at(most, end[cabled], amount[cabled])
        between = chosen & (source.switch != destination.switch)
        np.add.at(demand, (source.switch[between], destination.switch[between]), amount[between])
        unrouted += int(amount[apart & ~joined].sum(dtype=np.uint64))
    shared += most
    edges = _SwitchEdges.of(network)
    for target in np.flatnonzero(demand.any(axis=0)).tolist():
        _spread_evenly(edges, distance[:, target], demand[:, target], shared)
        _add_all(edges, distance, target, demand[:, target], most)
    shape = (fabric.links, 2)
    return AdaptiveBounds(shared.reshape(shape), most.reshape(shape), unrouted)


@dataclass(frozen=True, slots=True)
class _FlowPorts:
    """Ports of flows, [flow]: port, its switch (an index of switches), and the link directions between the two."""

    port: npt.NDArray[np.int32]
    switch: npt.NDArray[np.int32]
    out: npt.NDArray[np.int32]
    into: npt.NDArray[np.int32]


def _find_flow_ports(network: IndexedNetwork, lid: Integers) -> _FlowPorts:
    fabric = network.fabric
    port = np.where((lid >= 0) & (lid < LIDS), fabric.lid_port[np.clip(lid, 0, LIDS - 1)], NONE).astype(np.int32)
    node = np.append(fabric.port_node, np.int32(NONE))[port]
    number = np.append(fabric.port_number, np.int32(0))[port]
    own = np.where(node == NONE, NONE, network.switch_of[node])
    out = np.where((node == NONE) | (own != NONE), NONE, network.end_at[node, number]).astype(np.int32)
    beyond = np.where(out == NONE, NONE, network.next_node[out])
    switch = np.where(own != NONE, own, np.where(beyond == NONE, NONE, network.switch_of[beyond]))
    return _FlowPorts(port, switch.astype(np.int32), out, np.where(out == NONE, NONE, out ^ 1).astype(np.int32))


def _count_switch_hops(network: IndexedNetwork) -> npt.NDArray[np.float64]:
    """Return the number of links between all switches: float64 [switch + 1, switch + 1], inf without a path.

    The last row and column are for `NONE`.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415  (slow to import)
    from scipy.sparse.csgraph import shortest_path  # noqa: PLC0415

    edges = _SwitchEdges.of(network)
    switches = len(network.switch_node) + 1
    near = csr_array((np.ones(len(edges.end)), (edges.source, edges.target)), shape=(switches, switches))
    return np.asarray(shortest_path(near, unweighted=True), np.float64)


@dataclass(frozen=True, slots=True)
class _SwitchEdges:
    """Link directions between switches, [edge]: the link direction, the sending and the receiving switch."""

    end: npt.NDArray[np.intp]
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]

    @classmethod
    def of(cls, network: IndexedNetwork) -> _SwitchEdges:
        switch = network.switch_of[network.fabric.link_node.ravel()]
        other = network.switch_of[network.fabric.link_node[:, ::-1].ravel()]
        end = np.flatnonzero((switch != NONE) & (other != NONE) & (switch != other))
        return cls(end, switch[end], other[end])


def _spread_evenly(
    edges: _SwitchEdges,
    distance: npt.NDArray[np.float64],
    demand: npt.NDArray[np.uint64],
    shared: npt.NDArray[np.float64],
) -> None:
    """Forward the bytes for one switch step by step, evenly over all minimal ports."""
    minimal = _find_minimal(edges, distance)
    ports = np.bincount(edges.source[minimal], minlength=len(distance))
    inflow = demand.astype(np.float64)
    steps = distance[edges.source[minimal]]
    for step in range(int(steps.max(initial=0)), 0, -1):
        here = minimal[steps == step]
        amount = inflow[edges.source[here]] / ports[edges.source[here]]
        shared[edges.end[here]] += amount
        np.add.at(inflow, edges.target[here], amount)


def _add_all(
    edges: _SwitchEdges,
    distance: npt.NDArray[np.float64],
    target: int,
    demand: npt.NDArray[np.uint64],
    most: npt.NDArray[np.uint64],
) -> None:
    """Add to each link direction all bytes for one switch that have a minimal path over it."""
    senders = np.flatnonzero(demand)
    passes = distance[senders] + distance[:, target] == distance[senders, target][:, np.newaxis]
    coming = np.where(passes, demand[senders][:, np.newaxis], np.uint64(0)).sum(axis=0, dtype=np.uint64)
    minimal = _find_minimal(edges, distance[:, target])
    most[edges.end[minimal]] += coming[edges.source[minimal]]


def _find_minimal(edges: _SwitchEdges, distance: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return the edges that lead a step closer, from the distance of each switch (inf without a path)."""
    near = distance[edges.target]
    return np.flatnonzero(np.isfinite(near) & (near == distance[edges.source] - 1))
