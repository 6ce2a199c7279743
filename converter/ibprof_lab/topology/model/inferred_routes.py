# SPDX-License-Identifier: Apache-2.0
"""Routes in a topology without forwarding tables: the hosts' switches, and the links of shortest paths."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isinf, nan

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import shortest_path

from ibprof_lab.topology.model.inferred_topology import InferredTopology, weigh_edges

_AS_SHORT = 1.1
"""Largest length of a detour, relative to the shortest path, at which a message may take either path."""

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
        # Routes take the fastest of parallel cables; of equally fast cables the first.
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
        """Return the branch number of each host: its part of the network after removal of the switch `at`.

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
