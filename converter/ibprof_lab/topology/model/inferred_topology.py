# SPDX-License-Identifier: Apache-2.0
"""The inferred topology, a graph of hosts and switches that explains measured delays, and its routes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isinf, nan

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, shortest_path

_NEVER_ZERO = 1e-300
"""Smallest weight of an edge; in scipy's sparse graphs, a weight of 0 means that there is no edge."""


@dataclass(frozen=True, slots=True)
class LinkThroughput:
    """Measured throughput of links and switches; a lower bound if another resource may have been the bottleneck.

    Attributes:
        edge_gbps: float64 [edge], data rate of one direction in Gb/s; nan where not measured.
        edge_at_least: bool [edge], True if the value is a lower bound.
        switch_gbps: float64 [switch], largest total rate through each switch, Gb/s; nan where not measured.
        switch_at_least: bool [switch], True if the value is a lower bound.
    """

    edge_gbps: npt.NDArray[np.float64]
    edge_at_least: npt.NDArray[np.bool_]
    switch_gbps: npt.NDArray[np.float64]
    switch_at_least: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class InferredTopology:
    """A graph of hosts and of the switches that join them, directed or undirected.

    Vertex indices: first the hosts, in the order of the delay matrix, then the switches. In a direct network, hosts are
    linked with each other without switches.

    Attributes:
        method: name of the inference method.
        hosts: one name per host.
        switches: one synthetic name per switch.
        edge: int32 [edge, 2], the two vertices of each edge; the smaller index is first unless `directed`.
        latency_seconds: float64 [edge], time that the edge adds to a delay, seconds.
        support: float64 [edge], fraction of resampled delay matrices that yield the edge again; nan without resampling.
        probability: float64 [edge], fraction of the message lengths whose topology has the edge; 1 for one length.
        directed: True if an edge leads only from its first vertex to its second.
        overhead_seconds: part of each delay that does not depend on the path, seconds. 0 in hierarchical topologies,
            where the latencies of hosts' edges include this part.
        noise: typical relative deviation of a delay from the delay that the graph explains; nan if unknown.
        notes: sentences on further findings.
        unknown: sentences on details that the delays do not determine, with reasons.
        throughput: None if not measured.
    """

    method: str
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    edge: npt.NDArray[np.int32]
    latency_seconds: npt.NDArray[np.float64]
    support: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64]
    directed: bool = False
    overhead_seconds: float = 0.0
    noise: float = nan
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    throughput: LinkThroughput | None = None

    @property
    def vertices(self) -> int:
        """Number of hosts and switches."""
        return len(self.hosts) + len(self.switches)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each vertex."""
        return self.hosts + self.switches

    def hosts_of_switches(self) -> list[list[str]]:
        """Return the names of the hosts directly on each switch."""
        found: list[list[str]] = [[] for _ in self.switches]
        for a, b in np.sort(self.edge, axis=1).tolist():
            if a < len(self.hosts) <= b:
                found[b - len(self.hosts)].append(self.hosts[a])
        return found

    def adjacency(self) -> csr_matrix:
        """Return the latencies as a sparse matrix [vertex, vertex], seconds; symmetric unless `directed`."""
        weight = np.maximum(self.latency_seconds, _NEVER_ZERO)
        return weigh_edges(self.edge, weight, self.vertices, directed=self.directed)

    def explain_delays(self) -> npt.NDArray[np.float64]:
        """Return the delays between hosts over shortest paths, float64 [host, host], seconds; inf without a path."""
        hosts = len(self.hosts)
        every: npt.NDArray[np.float64] = shortest_path(self.adjacency(), directed=True, indices=np.arange(hosts))
        delays = every[:, :hosts]
        delays += self.overhead_seconds
        np.fill_diagonal(delays, 0.0)
        return delays

    def count_levels(self) -> int:
        """Return the largest number of switches from a host to the middle of a tree; 0 for other graphs."""
        if not self.switches or len(self.edge) != self.vertices - 1:
            return 0
        edge, rounds = self.edge, 0
        while len(edge):
            degree = np.bincount(edge.ravel(), minlength=self.vertices)
            is_outer = (degree[edge] == 1).any(axis=1)
            if not is_outer.any():
                return 0
            edge = edge[~is_outer]
            rounds += 1
        return rounds

    def find_splits(self) -> tuple[frozenset[int] | None, ...]:
        """Return for each edge of a tree the hosts on the side without host 0; for a graph that is not a tree, None for
        each edge. Two trees over the same hosts are equal if their sets of splits are equal.
        """
        if len(self.edge) != self.vertices - 1 or self.vertices == 0:
            return (None,) * len(self.edge)
        order, parent = breadth_first_order(self.adjacency(), 0, directed=False)
        if len(order) != self.vertices:
            return (None,) * len(self.edge)
        below: list[set[int]] = [{vertex} if vertex < len(self.hosts) else set() for vertex in range(self.vertices)]
        for vertex in order[:0:-1]:
            below[parent[vertex]] |= below[vertex]
        child = np.where(parent[self.edge[:, 1]] == self.edge[:, 0], self.edge[:, 1], self.edge[:, 0])
        return tuple(frozenset(below[vertex]) for vertex in child)


def weigh_edges(
    edge: npt.NDArray[np.integer], weight: npt.NDArray[np.floating], vertices: int, *, directed: bool = False
) -> csr_matrix:
    """Return the matrix of edge weights; of parallel edges, the smallest weight.

    Args:
        edge: int [edge, 2], two vertices each; edges from a vertex to itself are left out.
        weight: float [edge], above 0.
        directed: True if an edge leads only from its first vertex to its second.

    Returns:
        float64 [vertex, vertex]; symmetric unless `directed`.
    """
    a, b = np.asarray(edge, np.int64).reshape(-1, 2).T
    value = np.asarray(weight, np.float64)
    if not directed:
        a, b, value = np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([value, value])
    order = np.lexsort((value, b, a))
    order = order[a[order] != b[order]]
    a, b, value = a[order], b[order], value[order]
    is_first = np.ones(len(a), np.bool_)
    is_first[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return csr_matrix((value[is_first], (a[is_first], b[is_first])), (vertices, vertices))


_AS_SHORT = 1.1
"""A message may also take a path whose latency is at most this multiple of the shortest path's latency."""

NO_EDGE = -1
_OWN_SWITCH = "{}-switch"


class InferredRoutes:
    """Shortest paths between the hosts of an undirected topology.

    Attributes:
        attachment: the same topology split into switches, cables and hosts.
        distance: float64 [switch, switch], latency of the shortest path, seconds; inf without a path.
    """

    def __init__(self, topology: InferredTopology) -> None:
        self.topology = topology
        self.attachment = attach_hosts(topology)
        switches = len(self.attachment.switch_name)
        latency = topology.latency_seconds[self.attachment.cable_edge]
        self._weight = np.maximum(latency, max(float(latency.max(initial=0.0)), 1e-9) * 1e-6)
        graph = weigh_edges(self.attachment.cable, self._weight, switches)
        self.distance: npt.NDArray[np.float64]
        self.distance, self._before = shortest_path(graph, directed=False, return_predecessors=True)
        # Of parallel cables, routes use the fastest; of equally fast cables, the first.
        slowest_first = np.argsort(self._weight, kind="stable")[::-1].tolist()
        self._cable = {frozenset(self.attachment.cable[row].tolist()): row for row in slowest_first}
        self._is_tree = len(self.attachment.cable) == switches - 1

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.attachment.host_switch)

    def apart(self, one: int, other: int) -> float:
        """Return the latency of the path between two hosts' switches, seconds."""
        return float(self.distance[self.attachment.host_switch[one], self.attachment.host_switch[other]])

    def nearest(self, host: int) -> int:
        """Return the nearest other host, by the distance between the two hosts' switches."""
        own = self.attachment.host_switch
        apart = self.distance[own[host], own]
        apart[host] = nan
        return int(np.nanargmin(apart))

    def switches(self, one: int, other: int) -> list[int]:
        """Return the switches on the path from one host to another; an empty list without a path."""
        first, at = (int(self.attachment.host_switch[host]) for host in (one, other))
        if isinf(self.distance[first, at]):
            return []
        path = [at]
        while at != first:
            at = int(self._before[first, at])
            path.append(at)
        return path[::-1]

    def links(self, one: int, other: int) -> frozenset[int]:
        """Return the indices of the topology's edges on the path between two hosts."""
        path = self.switches(one, other)
        cables = (self._cable[frozenset(step)] for step in pairwise(path))
        ends = (int(self.attachment.host_edge[host]) for host in (one, other))
        return frozenset(
            [int(self.attachment.cable_edge[row]) for row in cables] + [end for end in ends if end != NO_EDGE]
        )

    def edge_between(self, one: int, other: int) -> int:
        """Return the index of the topology's edge between two switches that are linked by a cable."""
        return int(self.attachment.cable_edge[self._cable[frozenset((one, other))]])

    def is_certain(self, one: int, other: int) -> bool:
        """Return True if all other paths between two hosts are clearly longer (see `_AS_SHORT`)."""
        if self._is_tree:
            return True
        from_one, from_other = (self.distance[self.attachment.host_switch[host]] for host in (one, other))
        a, b = self.attachment.cable.T
        around = self._weight + np.minimum(from_one[a] + from_other[b], from_one[b] + from_other[a])
        near = around <= _AS_SHORT * self.apart(one, other)
        return int(near.sum()) == len(self.switches(one, other)) - 1

    def behind(self, near: int, far: int) -> list[int]:
        """Return the hosts to which the switch `far` routes over its neighbour `near`, in the order of `spread`."""
        return self.spread(near, np.flatnonzero(self._is_behind(near, far)))

    def count_behind(self, near: int, far: int) -> tuple[int, int]:
        """Return the numbers of hosts in `behind(near, far)` and in `behind(far, near)`."""
        return int(self._is_behind(near, far).sum()), int(self._is_behind(far, near).sum())

    def _is_behind(self, near: int, far: int) -> npt.NDArray[np.bool_]:
        own = self.attachment.host_switch
        by_near = self._weight[self._cable[frozenset((near, far))]] + self.distance[near, own]
        return np.asarray(by_near <= self.distance[far, own] * (1 + 1e-9))

    def spread(self, at: int, hosts: npt.ArrayLike) -> list[int]:
        """Sort hosts: first the nearest host of each branch of the switch `at`, then each branch's next host, and so
        on.

        Within a branch, the nearest host of each switch comes first, then the next, so that the first hosts share few
        links.
        """
        chosen = np.asarray(hosts, np.int64)
        own = self.attachment.host_switch[chosen]
        chosen = chosen[np.lexsort((chosen, own, self.distance[at, own]))]
        own = self.attachment.host_switch[chosen]
        chosen = chosen[_deal(np.where(own == at, -1 - chosen, own))]
        return [int(host) for host in chosen[_deal(self.branch_of(at, chosen))]]

    def branch_of(self, at: int, hosts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return each host's branch: the neighbour over which the switch `at` reaches the host. A host on the switch
        `at` has a negative number that no other host has.
        """
        own = self.attachment.host_switch[hosts]
        return np.where(own == at, -1 - hosts, self._before[own, at])


def _deal(group: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return indices that sort members of groups: the first member of each group, then the second, and so on."""
    order = np.argsort(group, kind="stable")
    begins = np.diff(group[order], prepend=group[order[:1]] - 1) != 0
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    turn = np.empty(len(group), np.int64)
    turn[order] = np.arange(len(group)) - first
    return np.argsort(turn, kind="stable")


@dataclass(frozen=True, slots=True)
class HostAttachment:
    """A topology as a network: switches, cables between switches, and hosts on switches.

    Attributes:
        switch_name: the topology's switches, then a switch for each host that forwards packets of other hosts.
        host_switch: int64 [host], index of each host's switch.
        host_edge: int64 [host], index of the edge from host to switch; `NO_EDGE` if the switch stands for the host.
        cable: int64 [cable, 2], the two switches of each cable.
        cable_edge: int64 [cable], index of the topology's edge of each cable.
    """

    switch_name: tuple[str, ...]
    host_switch: npt.NDArray[np.int64]
    host_edge: npt.NDArray[np.int64]
    cable: npt.NDArray[np.int64]
    cable_edge: npt.NDArray[np.int64]

    def vertices(self) -> npt.NDArray[np.int64]:
        """Return each switch's vertex in the topology, int64 [switch]; a host's vertex if the switch is a host."""
        hosts = len(self.host_switch)
        found = hosts + np.arange(len(self.switch_name))
        through = np.flatnonzero(self.host_edge == NO_EDGE)
        found[self.host_switch[through]] = through
        return found


def attach_hosts(topology: InferredTopology) -> HostAttachment:
    """Split a topology into switches, cables and hosts."""
    hosts = len(topology.hosts)
    degree = np.bincount(topology.edge.ravel(), minlength=topology.vertices)
    edge = np.sort(topology.edge, axis=1).astype(np.int64)
    of_host = (edge[:, 0] < hosts) & (edge[:, 1] >= hosts) & (degree[edge[:, 0]] == 1)
    rows = np.flatnonzero(of_host)
    host_switch, host_edge = np.full(hosts, -1, np.int64), np.full(hosts, NO_EDGE, np.int64)
    host_switch[edge[rows, 0]] = edge[rows, 1] - hosts
    host_edge[edge[rows, 0]] = rows
    through = np.flatnonzero(host_switch < 0)
    host_switch[through] = len(topology.switches) + np.arange(len(through))
    switch_of = np.concatenate([host_switch, np.arange(len(topology.switches))])
    return HostAttachment(
        switch_name=(*topology.switches, *(_OWN_SWITCH.format(topology.hosts[host]) for host in through.tolist())),
        host_switch=host_switch,
        host_edge=host_edge,
        cable=switch_of[edge[~of_host]].reshape(-1, 2),
        cable_edge=np.flatnonzero(~of_host),
    )
