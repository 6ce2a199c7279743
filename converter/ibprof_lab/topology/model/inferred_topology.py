# SPDX-License-Identifier: Apache-2.0
"""The inferred topology: a graph of hosts and switches that explains measured delays; weighted edges as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

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
        """Return the largest number of switch levels above a host of a tree, up to its middle; 0 for other graphs."""
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
    """Return the smallest weight among the edges between two vertices.

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
