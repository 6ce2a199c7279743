# SPDX-License-Identifier: Apache-2.0
"""Reference topologies from a plan in DOT, a fabric's own files or an inferred topology; their hosts by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from ibprof.errors import InconsistentError, UsageError
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import MissingTablesError, Subnet, read_rail, read_without_tables
from ibprof_converter.routing.subnet_routes import SubnetRoutes
from ibprof_converter.traffic.hosts import HostIndex, find_hosts
from ibprof_lab.topology.model.dot_graph import Attributes, DotGraph, read_dot
from ibprof_lab.topology.model.inferred_topology import InferredTopology, weigh_edges
from ibprof_lab.topology.model.topology_files import READERS, read_graph

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SPEEDS = ("gbps", "speed", "bandwidth", "throughput")
_SPEED = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?)\s*(?:([KMGT]?)(?:b(?:it)?(?:/s|ps))?)?\s*", re.IGNORECASE)
_GIGA = {"": 1.0, "g": 1.0, "k": 1e-6, "m": 1e-3, "t": 1e3}


@dataclass(frozen=True, slots=True)
class Reference:
    """A topology with names and speeds.

    Attributes:
        origin: name of the file in messages.
        names: displayed names of the vertices.
        known_as: other names of each vertex.
        may_be_host: bool [vertex]; always True for a plan in DOT, which does not mark hosts.
        link: int32 [link, 2], vertices; parallel cables are separate links.
        gbps: float64 [link], data rate of one direction in Gb/s; nan where unknown.
        latency_seconds: float64 [link], expected latency of the link; nan where unknown.
        routes: routes by the forwarding tables; None for shortest paths.
        host_lid: int32 [vertex], LIDs for these routes.
        fabric: source fabric with the same links; None for a plan.
    """

    origin: str
    names: tuple[str, ...]
    known_as: tuple[tuple[str, ...], ...]
    may_be_host: npt.NDArray[np.bool_]
    link: npt.NDArray[np.int32]
    gbps: Floats
    latency_seconds: Floats
    routes: SubnetRoutes | None = None
    host_lid: npt.NDArray[np.int32] | None = None
    fabric: Fabric | None = None

    @property
    def vertices(self) -> int:
        """Number of hosts and switches."""
        return len(self.names)

    @property
    def is_end(self) -> npt.NDArray[np.bool_]:
        """Hosts as a mask, bool [vertex]; where unknown, the vertices with one link."""
        if not self.may_be_host.all():
            return self.may_be_host
        degree: Integers = np.bincount(self.link.ravel(), minlength=self.vertices)
        ends: npt.NDArray[np.bool_] = degree == 1
        return ends

    def adjacency(self, weighted: bool = False) -> csr_matrix:
        """Return a symmetric matrix with 1 for each pair of linked vertices.

        Args:
            weighted: True for latencies in place of 1, if all latencies are known.
        """
        a, b = self.link.T
        matrix = csr_matrix((np.ones(len(a)), (a, b)), (self.vertices, self.vertices))
        matrix = matrix + matrix.T
        matrix.data[:] = 1.0
        if weighted and len(a) and np.isfinite(self.latency_seconds).all():
            # scipy treats a weight of 0 as no link.
            latency = np.maximum(self.latency_seconds, max(float(self.latency_seconds.max()), 1e-9) * 1e-6)
            matrix = weigh_edges(self.link, latency, self.vertices)
        return matrix

    def find_hosts(self, hosts: Sequence[str]) -> Integers:
        """Return the vertex of each named host, int64 [host]; -1 for unknown names.

        Raises:
            InconsistentError: two hosts are the same vertex.
        """
        candidates = np.flatnonzero(self.may_be_host)
        by_name = HostIndex(self.names[vertex] for vertex in candidates)
        by_other = [(other, vertex) for vertex in candidates for other in self.known_as[vertex]]
        others = HostIndex(other for other, _ in by_other)
        found = np.full(len(hosts), -1, np.int64)
        for place, host in enumerate(hosts):
            if (index := by_name.find(host)) is not None:
                found[place] = candidates[index]
            elif (index := others.find(host)) is not None:
                found[place] = by_other[index][1]
        twice = [int(vertex) for vertex, count in Counter(found[found >= 0].tolist()).items() if count > 1]
        if twice:
            both = [host for host, vertex in zip(hosts, found, strict=True) if vertex == twice[0]]
            raise InconsistentError(f"{self.origin}: {self.names[twice[0]]} is both {both[0]} and {both[1]}")
        return found

    def count_hops(self, hosts: Integers) -> npt.NDArray[np.float32]:
        """Return the number of links on a shortest path between hosts, float32 [host, host]; inf without a path."""
        graph = self.adjacency()
        near = [graph.indices[graph.indptr[host] : graph.indptr[host + 1]] for host in hosts.tolist()]
        if all(len(each) == 1 for each in near):
            # The path of a host with one link begins at its switch, and there are few switches.
            switches, place = np.unique([each[0] for each in near], return_inverse=True)
            between = shortest_path(graph, unweighted=True, indices=switches)[:, switches].astype(np.float32)
            hops = between[np.ix_(place, place)] + np.float32(2)
            hops[switches[place][:, None] == hosts] = 1.0
        else:
            hops = shortest_path(graph, unweighted=True, indices=hosts)[:, hosts].astype(np.float32)
        np.fill_diagonal(hops, 0.0)
        return hops


def read_reference(name: str, rail: int = 0) -> Reference:
    """Read a DOT or TGF plan or an inferred topology, by the name's suffix; else a fabric in any format.

    Args:
        name: name of a file, a folder of dumps, or a synthetic fabric.
        rail: number of the rail in a folder with several.

    Raises:
        InputError: the file has another format.
        UsageError: there is no such rail.
    """
    suffix = Path(name).suffix
    if suffix in (".dot", ".gv"):
        return _from_dot(name, read_dot(name))
    if suffix in READERS:
        return take_topology(name, read_graph(name))
    files = find_rails([name])
    if not 0 <= rail < len(files):
        raise UsageError(f"--rail: {name} has {len(files)} rails, and no rail {rail}")
    try:
        subnet = read_rail(files[rail], rail)
    except MissingTablesError as error:
        subnet = read_without_tables(files[rail], error.unused)
    return _from_subnet(name, subnet)


def _from_dot(name: str, graph: DotGraph) -> Reference:
    number = {vertex: index for index, vertex in enumerate(graph.vertices)}
    links: dict[tuple[int, int], tuple[float, float]] = {}
    for a, b, attributes in graph.edges:
        pair = (min(number[a], number[b]), max(number[a], number[b]))
        if pair[0] == pair[1] or (graph.directed and pair in links):
            continue  # the reverse arc of a known link
        links[pair] = (_read_speed(attributes), _read_microseconds(attributes))
    columns = np.array(list(links.values()), np.float64).reshape(-1, 2).T
    return Reference(
        origin=name,
        names=tuple(graph.vertices),
        known_as=tuple(_other_names(attributes) for attributes in graph.vertices.values()),
        may_be_host=np.ones(len(number), bool),
        link=np.array(list(links), np.int32).reshape(-1, 2),
        gbps=columns[0],
        latency_seconds=columns[1],
    )


def _other_names(attributes: Attributes) -> tuple[str, ...]:
    words = attributes.get("label", "").split()
    return tuple(dict.fromkeys((" ".join(words), words[0]))) if words else ()


def _read_speed(attributes: Attributes) -> float:
    """Return the speed from an edge's attributes, Gb/s; a number without a unit is in Gb/s, as in the paper's plans."""
    for key in (*_SPEEDS, "label"):
        if (match := _SPEED.fullmatch(attributes.get(key, "").strip('"'))) and float(match[1]) > 0:
            return float(match[1]) * _GIGA[(match[2] or "").lower()]
    return nan


def _read_microseconds(attributes: Attributes) -> float:
    try:
        return float(attributes["latency_us"]) * 1e-6
    except (KeyError, ValueError):
        return nan


def take_topology(name: str, topology: InferredTopology) -> Reference:
    """Return an inferred topology as a reference, with its latencies."""
    link, first = np.unique(np.sort(topology.edge, axis=1), axis=0, return_index=True)
    return Reference(
        origin=name,
        names=topology.names,
        known_as=((),) * topology.vertices,
        may_be_host=np.arange(topology.vertices) < len(topology.hosts),
        link=link.astype(np.int32).reshape(-1, 2),
        gbps=topology.throughput.edge_gbps[first] if topology.throughput else np.full(len(link), nan),
        latency_seconds=topology.latency_seconds[first],
    )


def _from_subnet(name: str, subnet: Subnet) -> Reference:
    """Return a fabric as a reference: an adapter's vertex represents its host and has the host's name."""
    fabric = subnet.fabric
    hosts = find_hosts([fabric])
    host_of = hosts.of_node[0]
    is_host = host_of >= 0
    # Two adapters of a host share one vertex, the first adapter's.
    own = {int(host): int(np.flatnonzero(host_of == host)[0]) for host in np.unique(host_of[is_host])}
    vertex = np.array([own[host] if host >= 0 else node for node, host in enumerate(host_of.tolist())], np.int64)
    lid = np.zeros(fabric.nodes, np.int32)
    for host, node in own.items():
        lid[node] = hosts.lid[host, 0]
    first = np.isin(np.arange(fabric.nodes), vertex)
    return Reference(
        origin=name,
        names=tuple(
            hosts.name[host] if host >= 0 else description or f"0x{int(guid):016x}"
            for host, description, guid in zip(host_of.tolist(), fabric.node_name, fabric.node_guid, strict=True)
        ),
        known_as=tuple((description,) if description else () for description in fabric.node_name),
        may_be_host=is_host & first,
        link=vertex[fabric.link_node].astype(np.int32).reshape(-1, 2),
        gbps=fabric.link_gbps,
        latency_seconds=np.full(fabric.links, nan),
        routes=subnet.routes if len(subnet.tables.switch_guid) else None,
        host_lid=lid,
        fabric=fabric,
    )
