# SPDX-License-Identifier: Apache-2.0
"""An inferred topology as a fabric with forwarding tables, and as Slurm's topology.conf.

The fabric and its tables are written in ibdiagnet's format for the commands that read dumps. GUIDs, LIDs and ports are
synthetic, and routes are shortest paths by latency. For each host of a direct network, the fabric has a switch that
forwards packets of other hosts.
"""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import dijkstra

from ibprof.errors import UsageError
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.rates import data_rate_gbps
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.outputs.atomic_write import write_text
from ibprof_converter.outputs.rows import link_rows
from ibprof_converter.outputs.slurm_topology import write_topology as write_slurm
from ibprof_converter.routing.synthetic.build import LARGEST_PORT, SyntheticPlan, SyntheticSubnet, build
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_converter.traffic.hosts import NO_HOST, find_hosts
from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.traffic_data import ALL
from ibprof_lab.topology.model.inferred_topology import HostAttachment, InferredTopology, attach_hosts, weigh_edges


def make_fabric(topology: InferredTopology, name: str, gbps: float = nan) -> SyntheticSubnet:
    """Return a fabric with forwarding tables.

    Args:
        topology: undirected and connected topology.
        name: name of the fabric in messages.
        gbps: data rate of links without a measured throughput, Gb/s; nan if unknown.

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
            f"{name}: {busiest} has {used.max()} links, more than the {LARGEST_PORT} of a fabric's switch. It "
            "represents several switches that delays do not distinguish; write .tgf, .dot or .json"
        )
    latency = topology.latency_seconds[attachment.cable_edge]
    egress = _route(len(switch_name), host_switch, host_port, cable, latency, name)
    plan = SyntheticPlan(name, switch_name, host_switch, host_port, cable, egress)
    made = build(plan, _link_rates(topology, attachment, gbps), 0)
    names = (*made.fabric.node_name[: len(switch_name)], *(f"{host} HCA-1" for host in topology.hosts))
    return SyntheticSubnet(replace(made.fabric, node_name=names), made.tables)


def _link_rates(topology: InferredTopology, attachment: HostAttachment, gbps: float) -> npt.NDArray[np.float64]:
    """Return the data rates of cables, then of hosts' links, Gb/s: as measured, or `gbps` if not measured."""
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
    # In scipy's graphs, a latency of 0 means that there is no cable: raise latencies of 0 slightly.
    weight = np.maximum(latency, max(float(latency.max(initial=0.0)), 1e-9) * 1e-6)
    graph = weigh_edges(np.stack([a, b], axis=1), weight, switches)
    destination = np.unique(host_switch)
    distance, before = dijkstra(graph, directed=False, indices=destination, return_predecessors=True)
    if not np.isfinite(distance).all():
        raise UsageError(f"{name}: not all hosts are connected; write .tgf, .dot or .json")
    ports = _list_ports(cable)
    egress = np.zeros((switches, len(host_switch)), np.uint8)
    row_of = np.searchsorted(destination, host_switch)
    for row in range(len(destination)):
        hosts = np.flatnonzero(row_of == row)
        for switch in np.flatnonzero(before[row] >= 0).tolist():
            # Routes to the hosts of one switch alternate between parallel cables.
            parallel = np.array(ports[switch, int(before[row, switch])], np.uint8)
            egress[switch, hosts] = parallel[np.arange(len(hosts)) % len(parallel)]
    egress[host_switch, np.arange(len(host_switch))] = host_port
    return egress


def _list_ports(cable: npt.NDArray[np.int64]) -> dict[tuple[int, int], list[int]]:
    """Return (switch, linked switch) -> ports of the first switch, one per parallel cable."""
    ports: dict[tuple[int, int], list[int]] = {}
    for a, a_port, b, b_port in cable.tolist():
        ports.setdefault((a, b), []).append(a_port)
        ports.setdefault((b, a), []).append(b_port)
    return ports


def write_fabric(path: Path, topology: InferredTopology, remark: str, gbps: float) -> str:
    """Write a fabric (.lst) and its forwarding tables (.fdbs); return a sentence on the tables.

    Args:
        path: file of the fabric; the file of the tables has the suffix .fdbs.
        topology, gbps: as for `make_fabric`.
        remark: origin of the topology.
    """
    made, tables = make_fabric(topology, str(path), gbps), path.with_suffix(".fdbs")
    speeds = "speeds are unknown" if isnan(gbps) else f"links are assumed to have {gbps:g} Gb/s"
    write_text(path, lambda file: write_lst(file, made.fabric, f"{remark}; GUIDs are synthetic; {speeds}"))
    write_text(tables, lambda file: write_fdbs(file, made.tables))
    return f"{path}: routes in {tables} are modelled as shortest paths"


def write_slurm_tree(path: Path, topology: InferredTopology, remark: str) -> None:
    """Write Slurm's topology.conf."""
    fabric = make_fabric(topology, str(path)).fabric
    names = find_hosts([fabric])
    host_of = {
        f"0x{int(fabric.node_guid[node]):016x}": names.name[host]
        for node, host in enumerate(names.of_node[0].tolist())
        if host != NO_HOST
    }
    no_load = Loads((np.zeros((fabric.links, 2, 1), np.uint64),), ((ALL, ALL),), 0, 0, 0, {})
    rows = list(link_rows([fabric], lay_out([fabric]), no_load))
    write_text(path, lambda file: write_slurm(file, rows, host_of, remark))


_SPEEDS = {8: "2.5", 16: "5", 32: "10", 55: "14", 100: "25", 200: "50", 400: "100", 800: "200"}
"""Data rate of four lanes in Gbit/s -> speed of one lane as ibdiagnet prints it."""


_LANES = 4


_ROUNDING = 1e-6


_NOT_KNOWN = "0"


_DESCRIPTION = 64


def write_lst(file: TextIO, fabric: Fabric, remark: str) -> None:
    """Write the links of a fabric in ibdiagnet's format, one line per link.

    Args:
        fabric: the fabric, with links of four lanes. If no speed of four lanes equals a link's data rate, the line has
            speed 0 (unknown), then the data rate.
        remark: one line on the origin of the fabric.
    """
    file.write(f"# {_clean(remark, 1000)}\n")
    ports = np.bincount(fabric.link_node.ravel(), minlength=fabric.nodes)
    # Count ports up to the largest port number, since a node may have more ports than cables.
    np.maximum.at(ports, fabric.link_node, fabric.link_port)
    lid = np.zeros(fabric.nodes, np.int64)
    lid[fabric.port_node] = fabric.port_lid
    port_guid = fabric.node_guid.copy()
    port_guid[fabric.port_node] = fabric.port_guid
    ends = [
        f"{{ {'SW' if fabric.node_kind[node] == NodeKind.SWITCH else 'CA'} Ports:{ports[node]:02x} "
        f"SystemGUID:{int(fabric.system_guid[node]):016x} NodeGUID:{int(fabric.node_guid[node]):016x} "
        f"PortGUID:{int(port_guid[node]):016x} VenID:000002C9 DevID:00000000 Rev:00000000 "
        f"{{{_clean(fabric.node_name[node], _DESCRIPTION)}}} LID:{lid[node]:04x} PN:"
        for node in range(fabric.nodes)
    ]
    for (a, b), (a_port, b_port), gbps in zip(
        fabric.link_node.tolist(), fabric.link_port.tolist(), fabric.link_gbps.tolist(), strict=True
    ):
        file.write(f"{ends[a]}{a_port:02x} }} {ends[b]}{b_port:02x} }} PHY=4x LOG=ACT SPD={_show_speed(gbps)}\n")


def _show_speed(gbps: float) -> str:
    if np.isnan(gbps):
        return _NOT_KNOWN
    speed = _SPEEDS.get(round(gbps), _NOT_KNOWN)
    if speed != _NOT_KNOWN and abs(data_rate_gbps(_LANES, speed) - gbps) < _ROUNDING:
        return speed
    return f"{_NOT_KNOWN} GBPS={gbps:.9f}".rstrip("0").rstrip(".")


def write_fdbs(file: TextIO, tables: ForwardingTables) -> None:
    """Write forwarding tables, one stanza per switch."""
    for guid, row in zip(tables.switch_guid.tolist(), tables.port, strict=True):
        file.write(f"dump_ucast_routes: Switch 0x{guid:016x}\nLID    : Port : Hops : Optimal\n")
        lids = np.flatnonzero(row != UNREACHABLE)
        ports = row[lids].tolist()
        file.writelines(f"0x{lid:04x} : {port:03d}  :\n" for lid, port in zip(lids.tolist(), ports, strict=True))


def _clean(text: str, most: int) -> str:
    """Return at most `most` characters of a text, with `?` for each character that is not printable ASCII."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[:most]
