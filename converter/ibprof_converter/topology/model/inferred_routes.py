# SPDX-License-Identifier: Apache-2.0
"""Which links a message between two hosts takes, where a topology is all that is known: those of a shortest path."""

from __future__ import annotations

from itertools import pairwise
from math import isinf, nan

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from ibprof_converter.topology.model.host_attachment import NO_EDGE, attach_hosts
from ibprof_converter.topology.model.inferred_topology import InferredTopology

_AS_SHORT = 1.1
"""A detour that is at most so many times as long may be taken as well: which one a message takes is not certain."""


class InferredRoutes:
    """The routes between the hosts of a topology.

    Args:
        topology: undirected.

    Attributes:
        topology: as given.
        attachment: the same taken apart into switches, cables, hosts.
        distance: float64 [switch, switch], seconds; inf without a way.
    """

    def __init__(self, topology: InferredTopology) -> None:
        self.topology = topology
        self.attachment = attach_hosts(topology)
        switches = len(self.attachment.switch_name)
        a, b = self.attachment.cable.T
        latency = topology.latency_seconds[self.attachment.cable_edge]
        self._weight = np.maximum(latency, max(float(latency.max(initial=0.0)), 1e-9) * 1e-6)
        graph = csr_matrix((self._weight, (a, b)), (switches, switches))
        self.distance: npt.NDArray[np.float64]
        self.distance, self._before = shortest_path(graph, directed=False, return_predecessors=True)
        self._cable = {frozenset(ends): row for row, ends in enumerate(self.attachment.cable.tolist())}
        self._is_tree = len(self.attachment.cable) == switches - 1

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.attachment.host_switch)

    def apart(self, one: int, other: int) -> float:
        """Give what is between the switches of two hosts, seconds."""
        return float(self.distance[self.attachment.host_switch[one], self.attachment.host_switch[other]])

    def nearest(self, host: int) -> int:
        """Give the host whose switch is nearest to a host's own."""
        own = self.attachment.host_switch
        apart = self.distance[own[host], own]
        apart[host] = nan
        return int(np.nanargmin(apart))

    def switches(self, one: int, other: int) -> list[int]:
        """Give the switches between two hosts, from the first one's; none where there is no way."""
        first, at = (int(self.attachment.host_switch[host]) for host in (one, other))
        if isinf(self.distance[first, at]):
            return []
        way = [at]
        while at != first:
            at = int(self._before[first, at])
            way.append(at)
        return way[::-1]

    def links(self, one: int, other: int) -> frozenset[int]:
        """Give the topology's edges between two hosts."""
        way = self.switches(one, other)
        cables = (self._cable[frozenset(step)] for step in pairwise(way))
        ends = (int(self.attachment.host_edge[host]) for host in (one, other))
        return frozenset(
            [int(self.attachment.cable_edge[row]) for row in cables] + [end for end in ends if end != NO_EDGE]
        )

    def edge_between(self, one: int, other: int) -> int:
        """Give the topology's edge between two switches that a cable joins."""
        return int(self.attachment.cable_edge[self._cable[frozenset((one, other))]])

    def is_certain(self, one: int, other: int) -> bool:
        """Whether no other way between two hosts is about as short."""
        if self._is_tree:
            return True
        from_one, from_other = (self.distance[self.attachment.host_switch[host]] for host in (one, other))
        a, b = self.attachment.cable.T
        around = self._weight + np.minimum(from_one[a] + from_other[b], from_one[b] + from_other[a])
        near = around <= _AS_SHORT * self.apart(one, other)
        return int(near.sum()) == len(self.switches(one, other)) - 1

    def behind(self, near: int, far: int) -> list[int]:
        """Give the hosts that the switch `far` reaches by its neighbour `near`; spread, and the nearest first.

        Spread: of each branch of `near` one after another, so that the first few have as little in common as can be.
        """
        cable = self._cable[frozenset((near, far))]
        own = self.attachment.host_switch
        by_near = self._weight[cable] + self.distance[near, own]
        return self.spread(near, np.flatnonzero(by_near <= self.distance[far, own] * (1 + 1e-9)))

    def spread(self, at: int, hosts: npt.ArrayLike) -> list[int]:
        """Put hosts in such an order: one of each branch of a switch, then a second one of each, the nearest first.

        Of the hosts of a branch likewise one of each switch comes first. Hosts on the switch itself are a branch each.
        """
        chosen = np.asarray(hosts, np.int64)
        own = self.attachment.host_switch[chosen]
        chosen = chosen[np.lexsort((chosen, own, self.distance[at, own]))]
        own = self.attachment.host_switch[chosen]
        chosen = chosen[_deal(np.where(own == at, -1 - chosen, own))]
        return [int(host) for host in chosen[_deal(self.branch_of(at, chosen))]]

    def branch_of(self, at: int, hosts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Give a number for the part of the network that each host is in without a switch; hosts on it are one each."""
        own = self.attachment.host_switch[hosts]
        return np.where(own == at, -1 - hosts, self._before[own, at])


def _deal(group: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Give the places of the first of each group, then of the second of each, and so on; in their order."""
    order = np.argsort(group, kind="stable")
    begins = np.diff(group[order], prepend=group[order[:1]] - 1) != 0
    first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    turn = np.empty(len(group), np.int64)
    turn[order] = np.arange(len(group)) - first
    return np.argsort(turn, kind="stable")
