# SPDX-License-Identifier: Apache-2.0
"""The inferred topology: a graph of hosts and switches that explains measured delays; its routes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isinf, nan

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, shortest_path

_NEVER_ZERO = 1e-300
"""Smallest weight of an edge, since scipy's sparse graphs treat a weight of 0 as no edge."""


@dataclass(frozen=True, slots=True)
class LinkThroughput:
    """Measured throughput of links and switches; a lower bound if another resource was the bottleneck.

    Attributes:
        edge_gbps: float64 [edge], data rate of one direction in Gb/s; nan where not measured.
        edge_at_least: bool [edge], True if the link may carry more.
        switch_gbps: float64 [switch], largest total rate through each switch, Gb/s; nan where not measured.
        switch_at_least: bool [switch], True if the switch may carry more.
    """

    edge_gbps: npt.NDArray[np.float64]
    edge_at_least: npt.NDArray[np.bool_]
    switch_gbps: npt.NDArray[np.float64]
    switch_at_least: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class InferredTopology:
    """A graph of hosts and of the switches that join them, directed or undirected.

    Vertex numbers: hosts first, in the order of the delay matrix, then switches. A direct network has no switches: its
    hosts are linked with one another.

    Attributes:
        method: name of the inference method.
        hosts: one name per host.
        switches: one synthetic name per switch.
        edge: int32 [edge, 2], vertices; the smaller one first unless `directed`.
        latency_seconds: float64 [edge], time that the edge adds to a delay.
        support: float64 [edge], share of resampled matrices that show the edge again; nan without resampling.
        probability: float64 [edge], share of the message lengths whose topology has the edge; 1 for a single length.
        directed: True if an edge leads only from its first vertex to its second.
        overhead_seconds: message cost independent of the path; no edge includes it. In a hierarchical topology the
            hosts' edges include it, since delays do not separate the two.
        noise: typical relative deviation of a delay from the delay that the graph explains; nan if unknown.
        notes: findings that no edge shows, a sentence each.
        unknown: details that the delays do not determine, with reasons, a sentence each.
        throughput: throughput of links and switches; None if not measured.
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
        """A name for each vertex."""
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
        """Return the delays of shortest paths, float64 [host, host], seconds; inf without a path."""
        hosts = len(self.hosts)
        every: npt.NDArray[np.float64] = shortest_path(self.adjacency(), directed=True, indices=np.arange(hosts))
        delays = every[:, :hosts]
        delays += self.overhead_seconds
        np.fill_diagonal(delays, 0.0)
        return delays

    def count_levels(self) -> int:
        """Return the number of switch levels of a tree, from its outermost hosts to its middle; 0 for other graphs."""
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
        """Return the hosts on one side of each edge of a tree, the side without host 0; None for other graphs.

        Two trees over the same hosts are equal if their sets of splits are equal.
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
    """Return the matrix of edge weights; parallel edges have the smallest of their weights.

    Args:
        edge: int [edge, 2], vertices; loops are left out.
        weight: float [edge], above 0, since scipy treats 0 as no edge.
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
"""A message may also take a path that is longer than the shortest path by up to this factor."""

NO_EDGE = -1
_OWN_SWITCH = "{}-switch"


class InferredRoutes:
    """The routes between the hosts of an undirected topology.

    Attributes:
        attachment: the same topology split into switches, cables and hosts.
        distance: float64 [switch, switch], seconds; inf without a path.
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
        # Routes take the fastest of parallel cables, and the first of equally fast cables.
        slowest_first = np.argsort(self._weight, kind="stable")[::-1].tolist()
        self._cable = {frozenset(self.attachment.cable[row].tolist()): row for row in slowest_first}
        self._is_tree = len(self.attachment.cable) == switches - 1

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.attachment.host_switch)

    def apart(self, one: int, other: int) -> float:
        """Return the latency between two hosts' switches, seconds."""
        return float(self.distance[self.attachment.host_switch[one], self.attachment.host_switch[other]])

    def nearest(self, host: int) -> int:
        """Return the other host with the nearest switch."""
        own = self.attachment.host_switch
        apart = self.distance[own[host], own]
        apart[host] = nan
        return int(np.nanargmin(apart))

    def switches(self, one: int, other: int) -> list[int]:
        """Return the switches from one host to another; empty without a path."""
        first, at = (int(self.attachment.host_switch[host]) for host in (one, other))
        if isinf(self.distance[first, at]):
            return []
        path = [at]
        while at != first:
            at = int(self._before[first, at])
            path.append(at)
        return path[::-1]

    def links(self, one: int, other: int) -> frozenset[int]:
        """Return the topology's edges between two hosts."""
        path = self.switches(one, other)
        cables = (self._cable[frozenset(step)] for step in pairwise(path))
        ends = (int(self.attachment.host_edge[host]) for host in (one, other))
        return frozenset(
            [int(self.attachment.cable_edge[row]) for row in cables] + [end for end in ends if end != NO_EDGE]
        )

    def edge_between(self, one: int, other: int) -> int:
        """Return the topology's edge between two switches joined by a cable."""
        return int(self.attachment.cable_edge[self._cable[frozenset((one, other))]])

    def is_certain(self, one: int, other: int) -> bool:
        """Return True if all other paths between two hosts are clearly longer."""
        if self._is_tree:
            return True
        from_one, from_other = (self.distance[self.attachment.host_switch[host]] for host in (one, other))
        a, b = self.attachment.cable.T
        around = self._weight + np.minimum(from_one[a] + from_other[b], from_one[b] + from_other[a])
        near = around <= _AS_SHORT * self.apart(one, other)
        return int(near.sum()) == len(self.switches(one, other)) - 1

    def behind(self, near: int, far: int) -> list[int]:
        """Return the hosts that switch `far` reaches over its neighbour `near`, in the order of `spread`."""
        return self.spread(near, np.flatnonzero(self._is_behind(near, far)))

    def count_behind(self, near: int, far: int) -> tuple[int, int]:
        """Return the number of hosts that `far` reaches over `near`, and that `near` reaches over `far`."""
        return int(self._is_behind(near, far).sum()), int(self._is_behind(far, near).sum())

    def _is_behind(self, near: int, far: int) -> npt.NDArray[np.bool_]:
        own = self.attachment.host_switch
        by_near = self._weight[self._cable[frozenset((near, far))]] + self.distance[near, own]
        return np.asarray(by_near <= self.distance[far, own] * (1 + 1e-9))

    def spread(self, at: int, hosts: npt.ArrayLike) -> list[int]:
        """Order hosts: the nearest host of each branch of a switch, then the second nearest of each, and so on.

        Within a branch one host of each switch comes first, so that the first few hosts share as few links as possible.
        Each host on the switch `at` is a branch.
        """
        chosen = np.asarray(hosts, np.int64)
        own = self.attachment.host_switch[chosen]
        chosen = chosen[np.lexsort((chosen, own, self.distance[at, own]))]
        own = self.attachment.host_switch[chosen]
        chosen = chosen[_deal(np.where(own == at, -1 - chosen, own))]
        return [int(host) for host in chosen[_deal(self.branch_of(at, chosen))]]

    def branch_of(self, at: int, hosts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the branch number of each host: the number of the host's part of the network without the switch `at`.

        Each host on the switch has a separate negative number.
        """
        own = self.attachment.host_switch[hosts]
        return np.where(own == at, -1 - hosts, self._before[own, at])


def _deal(group: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return the indices of the first member of each group, then of the second of each, and so on."""
    order = np.argsort(group, kind="stable")
    begins = np.diff(group[order], prepend=group[order[:1]] - 1) != 0
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    turn = np.empty(len(group), np.int64)
    turn[order] = np.arange(len(group)) - first
    return np.argsort(turn, kind="stable")


@dataclass(frozen=True, slots=True)
class HostAttachment:
    """A topology split into switches, the cables between them, and the hosts on them.

    Attributes:
        switch_name: the topology's switches, then the switches inside hosts that forward other hosts' packets.
        host_switch: int64 [host], switch of each host.
        host_edge: int64 [host], the topology's edge from host to switch; `NO_EDGE` if the host has its own switch.
        cable: int64 [cable, 2], the two switches of each cable.
        cable_edge: int64 [cable], the topology's edge of each cable.
    """

    switch_name: tuple[str, ...]
    host_switch: npt.NDArray[np.int64]
    host_edge: npt.NDArray[np.int64]
    cable: npt.NDArray[np.int64]
    cable_edge: npt.NDArray[np.int64]

    def vertices(self) -> npt.NDArray[np.int64]:
        """Return the topology's vertex of each switch, int64 [switch]; the host's vertex for a host's own switch."""
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
