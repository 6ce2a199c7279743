# SPDX-License-Identifier: Apache-2.0
"""A synthetic fabric with forwarding tables, made of an inferred topology, for all commands that take dumps.

GUIDs, LIDs and ports are synthetic. Routes are modelled as shortest paths by latency. A host of a direct network gets
its own switch, which forwards the others' packets.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from ibprof.errors import UsageError
from ibprof_converter.routing.synthetic.build import LARGEST_PORT, SyntheticPlan, SyntheticSubnet, build
from ibprof_lab.topology.model.host_attachment import HostAttachment, attach_hosts
from ibprof_lab.topology.model.inferred_topology import InferredTopology


def make_fabric(topology: InferredTopology, name: str, gbps: float = nan) -> SyntheticSubnet:
    """Make a fabric and its tables.

    Args:
        topology: undirected, connected.
        name: of the fabric, for messages.
        gbps: data rate of links whose throughput was not measured, Gb/s; delays of short messages do not show it.

    Raises:
        UsageError: the topology is directed, not connected, or has too many links on a switch.
    """
    hosts = len(topology.hosts)
    if topology.directed:
        raise UsageError(f"{name}: a fabric has no arcs of one direction; write .tgf, .dot or .json")
    if hosts < 2:
        raise UsageError(f"{name}: a fabric needs 2 hosts, found {hosts}")
    attachment = attach_hosts(topology)
    switch_name, host_switch = list(attachment.switch_name), attachment.host_switch
    used = np.zeros(len(switch_name), np.int64)
    host_port = np.empty(hosts, np.int64)
    for host, switch in enumerate(host_switch.tolist()):
        used[switch] += 1
        host_port[host] = used[switch]
    rows = []
    for a, b in attachment.cable.tolist():
        used[[a, b]] += 1
        rows.append((a, used[a], b, used[b]))
    cable = np.array(rows, np.int64).reshape(-1, 4)
    if used.max() > LARGEST_PORT:
        busiest = switch_name[int(used.argmax())]
        raise UsageError(
            f"{name}: {busiest} has {used.max()} links, and a switch of a fabric at most {LARGEST_PORT}: it represents "
            "several switches that delays do not distinguish; write .tgf, .dot or .json"
        )
    latency = topology.latency_seconds[attachment.cable_edge]
    egress = _route(len(switch_name), host_switch, host_port, cable, latency, name)
    plan = SyntheticPlan(name, switch_name, host_switch, host_port, cable, egress)
    made = build(plan, _link_rates(topology, attachment, gbps), 0)
    names = (*made.fabric.node_name[: len(switch_name)], *(f"{host} HCA-1" for host in topology.hosts))
    return SyntheticSubnet(replace(made.fabric, node_name=names), made.tables)


def _link_rates(topology: InferredTopology, attachment: HostAttachment, gbps: float) -> npt.NDArray[np.float64]:
    """Return the rates of cables, then of hosts' links: as measured, else as given."""
    edge = np.concatenate([attachment.cable_edge, attachment.host_edge])
    rates = np.full(len(edge), gbps)
    if topology.throughput is not None:
        known = edge >= 0
        measured = topology.throughput.edge_gbps[edge[known]]
        rates[known] = np.where(np.isnan(measured), gbps, measured)
    return rates


def _route(
    switches: int,
    host_switch: npt.NDArray[np.int64],
    host_port: npt.NDArray[np.int64],
    cable: npt.NDArray[np.int64],
    latency: npt.NDArray[np.float64],
    name: str,
) -> npt.NDArray[np.uint8]:
    """Return egress ports along shortest paths: uint8 [switch, host]."""
    a, _, b, _ = cable.T
    # A latency of 0 would be no cable.
    weight = np.maximum(latency, max(float(latency.max(initial=0.0)), 1e-9) * 1e-6)
    graph = csr_matrix((weight, (a, b)), (switches, switches))
    destination = np.unique(host_switch)
    distance, before = dijkstra(graph, directed=False, indices=destination, return_predecessors=True)
    if not np.isfinite(distance).all():
        raise UsageError(f"{name}: not all hosts are connected; write .tgf, .dot or .json")
    port = _ports(switches, cable)
    egress = np.zeros((switches, len(host_switch)), np.uint8)
    everyone = np.arange(switches)
    row_of = np.searchsorted(destination, host_switch)
    for row in range(len(destination)):
        onward = np.where(before[row] >= 0, before[row], everyone)
        egress[:, row_of == row] = port[everyone, onward][:, None]
    egress[host_switch, np.arange(len(host_switch))] = host_port
    return egress


def _ports(switches: int, cable: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    port = np.zeros((switches, switches), np.uint8)
    a, a_port, b, b_port = cable.T
    port[a, b], port[b, a] = a_port, b_port
    return port
