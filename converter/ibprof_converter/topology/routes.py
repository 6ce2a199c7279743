# SPDX-License-Identifier: Apache-2.0
"""Which links a message between two hosts takes, where a topology is all that is known: those of a shortest path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import isinf

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from ibprof_converter.topology.model import InferredTopology
from ibprof_converter.topology.places import NO_EDGE, place_hosts

_AS_SHORT = 1.1
"""A detour that is at most so many times as long may be taken as well: which one a message takes is not certain."""


class Routes:
    """The routes between the hosts of a topology.

    Args:
        topology: undirected.

    Attributes:
        topology: as given.
        places: the same taken apart into switches, cables, hosts.
        distance: float64 [switch, switch], seconds; inf without a way.
    """

    def __init__(self, topology: InferredTopology) -> None:
        self.topology = topology
        self.places = place_hosts(topology)
        switches = len(self.places.switch_name)
        a, b = self.places.cable.T
        latency = topology.latency_seconds[self.places.cable_edge]
        self._weight = np.maximum(latency, max(float(latency.max(initial=0.0)), 1e-9) * 1e-6)
        graph = csr_matrix((self._weight, (a, b)), (switches, switches))
        self.distance: npt.NDArray[np.float64]
        self.distance, self._before = shortest_path(graph, directed=False, return_predecessors=True)
        self._cable = {frozenset(ends): row for row, ends in enumerate(self.places.cable.tolist())}
        self._is_tree = len(self.places.cable) == switches - 1

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.places.host_switch)

    def apart(self, one: int, other: int) -> float:
        """Give what is between the switches of two hosts, seconds."""
        return float(self.distance[self.places.host_switch[one], self.places.host_switch[other]])

    def switches(self, one: int, other: int) -> list[int]:
        """Give the switches between two hosts, from the first one's; none where there is no way."""
        first, at = (int(self.places.host_switch[host]) for host in (one, other))
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
        ends = (int(self.places.host_edge[host]) for host in (one, other))
        return frozenset([int(self.places.cable_edge[row]) for row in cables] + [end for end in ends if end != NO_EDGE])

    def next_switch(self, at: int, to: int) -> int:
        """Give the switch after one on the way to another; the switch itself when that is it."""
        return at if at == to else int(self._before[to, at])

    def edge_between(self, one: int, other: int) -> int:
        """Give the topology's edge between two switches that a cable joins."""
        return int(self.places.cable_edge[self._cable[frozenset((one, other))]])

    def is_certain(self, one: int, other: int) -> bool:
        """Whether no other way between two hosts is about as short."""
        if self._is_tree:
            return True
        from_one, from_other = (self.distance[self.places.host_switch[host]] for host in (one, other))
        a, b = self.places.cable.T
        around = self._weight + np.minimum(from_one[a] + from_other[b], from_one[b] + from_other[a])
        near = around <= _AS_SHORT * self.apart(one, other)
        return int(near.sum()) == len(self.switches(one, other)) - 1

    def behind(self, near: int, far: int) -> list[int]:
        """Give the hosts that the switch `far` reaches by its neighbour `near`; spread, and the nearest first.

        Spread: of each branch of `near` one after another, so that the first few have as little in common as can be.
        """
        cable = self._cable[frozenset((near, far))]
        of_host = self.distance[:, self.places.host_switch]
        by_near = self._weight[cable] + of_host[near]
        hosts = np.flatnonzero(by_near <= of_host[far] * (1 + 1e-9))
        return self.spread(near, hosts.tolist())

    def spread(self, at: int, hosts: list[int]) -> list[int]:
        """Put hosts in such an order: one of each branch of a switch, then a second one of each, the nearest first.

        Of the hosts of a branch likewise one of each switch comes first. Hosts on the switch itself are a branch each.
        """
        own = self.places.host_switch
        nearest = sorted(hosts, key=lambda host: (self.distance[at, own[host]], own[host], host))
        by_switch = _deal(nearest, lambda host: host if own[host] == at else -1 - int(own[host]))
        return _deal(by_switch, lambda host: host if own[host] == at else -1 - self.next_switch(at, int(own[host])))


def _deal(hosts: list[int], group_of: Callable[[int], int]) -> list[int]:
    """Give the first of each group, then the second of each, and so on; in their order."""
    count: dict[int, int] = {}
    turn = []
    for host in hosts:
        group = group_of(host)
        turn.append(count.get(group, 0))
        count[group] = turn[-1] + 1
    return [host for _, _, host in sorted(zip(turn, range(len(hosts)), hosts, strict=True))]
