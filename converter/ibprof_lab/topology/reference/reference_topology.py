# SPDX-License-Identifier: Apache-2.0
"""Reference topologies from a plan in DOT, a fabric or an inferred topology: their hosts, paths and times of links."""

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
from ibprof.text.quantities import count_of
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
    """A topology that a measurement is compared with.

    Attributes:
        origin: file name, for messages.
        names: names of the vertices in reports.
        known_as: further names of each vertex.
        may_be_host: bool [vertex], True for hosts, and for all vertices of a plan in DOT, which does not mark hosts.
        link: int32 [link, 2], two vertices each; in a fabric, parallel cables are separate links.
        gbps: float64 [link], data rate of one direction in Gb/s; nan where unknown.
        latency_seconds: float64 [link], expected latency; nan where unknown.
        routes: routes by the forwarding tables; None to use shortest paths.
        host_lid: int32 [vertex], LIDs of the hosts for `routes`; None without `routes`.
        fabric: the fabric with the same links; None if the reference is not a fabric.
        cables: int64 [link], number of parallel cables of each link of a plan; None if each link is one cable.
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
    cables: Integers | None = None

    @property
    def vertices(self) -> int:
        """Number of hosts and switches."""
        return len(self.names)

    @property
    def is_end(self) -> npt.NDArray[np.bool_]:
        """True for hosts, bool [vertex]. In a plan that does not mark hosts, True for vertices with one link."""
        if not self.may_be_host.all():
            return self.may_be_host
        degree: Integers = np.bincount(self.link.ravel(), minlength=self.vertices)
        ends: npt.NDArray[np.bool_] = degree == 1
        return ends

    def adjacency(self, weighted: bool = False) -> csr_matrix:
        """Return a symmetric sparse matrix [vertex, vertex] with 1 for each pair of linked vertices.

        Args:
            weighted: True to set latencies (seconds) in place of 1, if all latencies are known.
        """
        a, b = self.link.T
        matrix = csr_matrix((np.ones(len(a)), (a, b)), (self.vertices, self.vertices))
        matrix = matrix + matrix.T
        matrix.data[:] = 1.0
        if weighted and len(a) and np.isfinite(self.latency_seconds).all():
            # In scipy's graphs, a weight of 0 means that there is no link: raise latencies of 0 slightly.
            latency = np.maximum(self.latency_seconds, max(float(self.latency_seconds.max()), 1e-9) * 1e-6)
            matrix = weigh_edges(self.link, latency, self.vertices)
        return matrix

    def find_hosts(self, hosts: Sequence[str]) -> Integers:
        """Return the vertex of each named host, int64 [host]; -1 for unknown names.

        Raises:
            InconsistentError: two names belong to one vertex.
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
        """Return the number of links on shortest paths between hosts, float32 [host, host]; inf without a path."""
        graph = self.adjacency()
        near = [graph.indices[graph.indptr[host] : graph.indptr[host + 1]] for host in hosts.tolist()]
        if all(len(each) == 1 for each in near):
            # If each host has one link, search paths between switches, which are fewer than paths between hosts.
            switches, place = np.unique([each[0] for each in near], return_inverse=True)
            between = shortest_path(graph, unweighted=True, indices=switches)[:, switches].astype(np.float32)
            hops = between[np.ix_(place, place)] + np.float32(2)
            hops[switches[place][:, None] == hosts] = 1.0
        else:
            hops = shortest_path(graph, unweighted=True, indices=hosts)[:, hosts].astype(np.float32)
        np.fill_diagonal(hops, 0.0)
        return hops


def read_reference(name: str, rail: int = 0) -> Reference:
    """Read a reference: a plan (.dot, .gv), an inferred topology (suffix in `READERS`) or a fabric in any format.

    Args:
        name: file, folder of dumps or synthetic fabric.
        rail: index of the rail in a folder with several rails.

    Raises:
        InputError: the file does not have the expected format.
        UsageError: the fabric has no rail `rail`.
    """
    suffix = Path(name).suffix
    if suffix in (".dot", ".gv"):
        return _from_dot(name, read_dot(name))
    if suffix in READERS:
        return take_topology(name, read_graph(name))
    files = find_rails([name])
    if not 0 <= rail < len(files):
        raise UsageError(f"--rail: {name} has {count_of(len(files), 'rail')}, and no rail {rail}")
    try:
        subnet = read_rail(files[rail], rail)
    except MissingTablesError as error:
        subnet = read_without_tables(files[rail], error.unused)
    return _from_subnet(name, subnet)


def _from_dot(name: str, graph: DotGraph) -> Reference:
    number = {vertex: index for index, vertex in enumerate(graph.vertices)}
    links: dict[tuple[int, int], tuple[float, float]] = {}
    ends = np.array([[number[a], number[b]] for a, b, _ in graph.edges], np.int64).reshape(-1, 2)
    cables = count_cables(ends, directed=graph.directed)
    for a, b, attributes in graph.edges:
        pair = (min(number[a], number[b]), max(number[a], number[b]))
        if pair[0] == pair[1] or (graph.directed and pair in links):
            continue  # a loop, or the reverse arc of a link
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
        cables=np.array([cables[pair] for pair in links], np.int64),
    )


def count_cables(
    link: npt.NDArray[np.integer], cables: Integers | None = None, *, directed: bool = False
) -> dict[tuple[int, int], int]:
    """Return (lower vertex, higher vertex) -> number of cables between them.

    Args:
        link: int [link, 2], two vertices each.
        cables: int64 [link], number of cables of each link; None if each link is one cable.
        directed: True if each cable has two links, one per direction.
    """
    counts: Counter[tuple[int, int]] = Counter()
    for (a, b), count in zip(link.tolist(), [1] * len(link) if cables is None else cables.tolist(), strict=True):
        counts[a, b] += count
    pairs = {(min(pair), max(pair)) for pair in counts if pair[0] != pair[1]}
    join = max if directed else int.__add__
    return {pair: join(counts[pair], counts[pair[::-1]]) for pair in sorted(pairs)}


def _other_names(attributes: Attributes) -> tuple[str, ...]:
    words = attributes.get("label", "").split()
    return tuple(dict.fromkeys((" ".join(words), words[0]))) if words else ()


def _read_speed(attributes: Attributes) -> float:
    """Return the speed in an edge's attributes, Gb/s, or nan. The default unit is Gb/s, as in the paper's plans."""
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
    """Return an inferred topology as a reference."""
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
    """Return a fabric as a reference. The vertex of an adapter represents the adapter's host."""
    fabric = subnet.fabric
    hosts = find_hosts([fabric])
    host_of = hosts.of_node[0]
    is_host = host_of >= 0
    # Two adapters of a host share the vertex of the first adapter.
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


_SOURCES_AT_ONCE = 64

NOT_PASSED, AS_FAST, SLOWER = "white", "red", "blue"
"""The paper's colours of links: white on no measured path, red if not slower than line rate, else blue."""


@dataclass(frozen=True, slots=True)
class ReferencePaths:
    """The paths of host pairs, as lists of links.

    Attributes:
        offset: int64 [pair + 1]. The path of pair i is `link[offset[i]:offset[i + 1]]`, empty without a path.
        link: int64, indices of the reference's links.
    """

    offset: Integers
    link: Integers

    @property
    def hops(self) -> Integers:
        """Number of links on each pair's path, int64 [pair]."""
        return np.diff(self.offset)

    @property
    def pair(self) -> Integers:
        """For each element of `link`, the index of its pair."""
        return np.repeat(np.arange(len(self.offset) - 1), self.hops)


def find_reference_paths(reference: Reference, source: Integers, destination: Integers) -> ReferencePaths:
    """Find the paths of host pairs by the reference's forwarding tables; without tables, shortest paths. `source`,
    `destination`: int [pair], vertices; the sources are in ascending order.
    """
    if reference.routes is not None and reference.host_lid is not None:
        paths = reference.routes.find_paths(reference.host_lid[source], reference.host_lid[destination])
        return ReferencePaths(paths.offset, paths.end.astype(np.int64) // 2)
    return _find_shortest(reference, source, destination)


def _find_shortest(reference: Reference, source: Integers, destination: Integers) -> ReferencePaths:
    graph = reference.adjacency(weighted=True)
    low, high = np.sort(reference.link, axis=1).astype(np.int64).T
    keys, links = np.unique(low * reference.vertices + high, return_index=True)
    pairs: list[Integers] = []
    passed: list[Integers] = []
    sources = np.unique(source)
    for begin in range(0, len(sources), _SOURCES_AT_ONCE):
        some = sources[begin : begin + _SOURCES_AT_ONCE]
        _, before = shortest_path(graph, indices=some, return_predecessors=True)
        pair = np.flatnonzero(np.isin(source, some))
        row, here = np.searchsorted(some, source[pair]), destination[pair]
        while len(pair):
            back = before[row, here].astype(np.int64)
            on = back >= 0
            pair, row, here, back = pair[on], row[on], here[on], back[on]
            key = np.minimum(here, back) * reference.vertices + np.maximum(here, back)
            pairs.append(pair)
            passed.append(links[np.searchsorted(keys, key)])
            here = back
    if not pairs:
        return ReferencePaths(np.zeros(len(source) + 1, np.int64), np.zeros(0, np.int64))
    of_pair, link = np.concatenate(pairs), np.concatenate(passed)
    # The loop followed each path backwards, from its destination: reverse the order of the links.
    by_pair = np.argsort(of_pair[::-1], kind="stable")
    offset = np.zeros(len(source) + 1, np.int64)
    np.cumsum(np.bincount(of_pair, minlength=len(source)), out=offset[1:])
    return ReferencePaths(offset, link[::-1][by_pair])


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """Times of messages on links.

    Attributes:
        seconds: float64 [link], mean time of a message on the link; nan if no path passes the link.
        line_rate_seconds: float64 [link], message length / link speed; nan if the speed is unknown.
        paths: int64 [link], number of paths over the link, in both directions.
    """

    seconds: Floats
    line_rate_seconds: Floats
    paths: npt.NDArray[np.int64]

    def colours(self) -> tuple[str, ...]:
        """Return the colour of each link. For a link of unknown speed, the time at line rate is taken as 0."""
        slower = self.seconds > np.nan_to_num(self.line_rate_seconds)
        return tuple(
            NOT_PASSED if not passed else (SLOWER if more else AS_FAST)
            for passed, more in zip(self.paths, slower, strict=True)
        )

    def saturation(self) -> Floats:
        """Return the strength of each link's colour, 0 to 1, float64 [link]. The strength is proportional to the
        difference between the time on the link and the time at line rate.
        """
        difference = np.abs(np.nan_to_num(self.seconds - np.nan_to_num(self.line_rate_seconds)))
        most = float(difference.max(initial=0.0))
        return difference / most if most else difference


def spread_delays(paths: ReferencePaths, delays: Floats, gbps: Floats, length: int) -> LinkTimes:
    """Divide each pair's delay among the links of its path, in inverse proportion to link speed. The time of a link is
    the mean over all paths with the link.

    Args:
        delays: float64 [pair], seconds.
        gbps: float64 [link], speeds, Gb/s; the median of the known speeds replaces an unknown speed.
        length: message length, bytes.

    Source: Bannikov and Salnikov (see `published_methods`), comparison of topologies, steps f and g, formula (4).
    """
    known = gbps[gbps > 0]
    inverse = 1 / np.where(gbps > 0, gbps, float(np.median(known)) if len(known) else 1.0)
    on_way, pair = inverse[paths.link], paths.pair
    whole = np.bincount(pair, on_way, len(paths.offset) - 1)
    count = np.bincount(paths.link, minlength=len(gbps))
    total = np.bincount(paths.link, delays[pair] * on_way / whole[pair], len(gbps))
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(count > 0, total / count, np.nan)
        at_line_rate = length * 8 / (gbps * 1e9)
    return LinkTimes(seconds, at_line_rate, count)


LARGEST_WITH_CYCLES = 1024


def keep_unique(
    reference: Reference, paths: ReferencePaths, source: npt.NDArray[np.int64], epsilon: float
) -> ReferencePaths:
    """Remove the paths of pairs that have several shortest paths of about the same length.

    Args:
        reference: the reference. With tables, or without cycles, each path is unique.
        paths: shortest paths.
        source: int64 [pair], start vertex of each path.
        epsilon: largest relative difference of two lengths that are about the same.

    Raises:
        UsageError: the graph has cycles, and has too many vertices to search for other paths.
    """
    if reference.routes is not None or len(reference.link) < reference.vertices:
        return paths
    if reference.vertices > LARGEST_WITH_CYCLES:
        raise UsageError(
            f"{reference.origin}: expected at most {LARGEST_WITH_CYCLES} vertices, found {reference.vertices}. In a "
            "graph with cycles, other paths of the same length are searched; --paths shortest needs no search"
        )
    between = shortest_path(reference.adjacency(weighted=True), directed=False)
    a, b = reference.link.T
    length = between[a, b]
    ends = _last_vertices(reference, paths, source)
    kept = np.zeros(len(ends), bool)
    for start in np.unique(source).tolist():
        of_start = np.flatnonzero((source == start) & (paths.hops > 0))
        to = between[ends[of_start]]
        on_way = np.minimum(between[start, a] + to[:, b], between[start, b] + to[:, a]) + length
        near = on_way <= (1 + epsilon) * between[start, ends[of_start]][:, None]
        kept[of_start] = near.sum(axis=1) == paths.hops[of_start]
    hops = np.where(kept, paths.hops, 0)
    return ReferencePaths(np.concatenate([[0], np.cumsum(hops)]), paths.link[kept[paths.pair]])


def _last_vertices(reference: Reference, paths: ReferencePaths, source: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    here = source.copy()
    for hop in range(int(paths.hops.max(initial=0))):
        on = np.flatnonzero(paths.hops > hop)
        a, b = reference.link[paths.link[paths.offset[on] + hop]].T
        here[on] = np.where(a == here[on], b, a)
    return here
