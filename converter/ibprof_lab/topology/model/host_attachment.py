# SPDX-License-Identifier: Apache-2.0
"""Attachment of hosts to switches: a host with one link is on its switch; a host that forwards packets gets its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.model.inferred_topology import InferredTopology

NO_EDGE = -1

_OWN_SWITCH = "{}-switch"


@dataclass(frozen=True, slots=True)
class HostAttachment:
    """A topology split into switches, the cables between them, and the hosts on them.

    Attributes:
        switch_name: the topology's switches, then those of hosts that forward other hosts' packets.
        host_switch: int64 [host], the switch that a host is on.
        host_edge: int64 [host], the topology's edge that joins them; `NO_EDGE` for a host with its own switch.
        cable: int64 [cable, 2], the two switches of each cable.
        cable_edge: int64 [cable], the topology's edge of each cable.
    """

    switch_name: tuple[str, ...]
    host_switch: npt.NDArray[np.int64]
    host_edge: npt.NDArray[np.int64]
    cable: npt.NDArray[np.int64]
    cable_edge: npt.NDArray[np.int64]

    def vertices(self) -> npt.NDArray[np.int64]:
        """Return the topology's vertex of each switch, int64 [switch]; of a host's own switch, the host."""
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
