# SPDX-License-Identifier: Apache-2.0
"""Neighbours and connected components of a fabric; switches that are slower than their peers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind

_SLOWER = 0.99
"""A link below this share of the usual speed is slow."""


def find_neighbours(fabric: Fabric, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the nodes linked to a chosen node: bool [node]."""
    near = np.zeros(fabric.nodes, np.bool_)
    for end in (0, 1):
        near[fabric.link_node[chosen[fabric.link_node[:, end]], 1 - end]] = True
    return near


def find_parts(nodes: int, pairs: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the connected components of a graph.

    Args:
        nodes: number of nodes.
        pairs: int [edge, 2], nodes of each edge.

    Returns:
        int64 [node], the lowest node of each node's component.
    """
    part = np.arange(nodes)
    a, b = pairs[:, 0], pairs[:, 1]
    while True:
        # Each root takes the lowest root that an edge joins to it. Then all nodes follow their root to its root.
        joined = part.copy()
        lower = np.minimum(part[a], part[b])
        np.minimum.at(joined, part[a], lower)
        np.minimum.at(joined, part[b], lower)
        while not (joined[joined] == joined).all():
            joined = joined[joined]
        joined = joined[part]
        if (joined == part).all():
            return part
        part = joined


def find_chassis(fabric: Fabric, is_switch: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return a number for each chassis of switches, by SystemGUID; -1 for single switches and other nodes.

    Returns:
        int64 [node], number of the node's chassis.
    """
    guid = np.where(is_switch, fabric.system_guid, np.uint64(0))
    _, number, count = np.unique(guid, return_inverse=True, return_counts=True)
    return np.where((guid > 0) & (count[number] > 1), number, -1)


@dataclass(frozen=True, slots=True)
class SlowSwitch:
    """A switch whose links to a level are slower than its peers' links.

    Attributes:
        node: the switch.
        links: int [link], the switch's links to all levels where they are slow.
        usual: float64 [link], speed of the peers' links to the same level, in Gbit/s.
        peers: number of other switches with links of that speed.
        lanes: lanes of the peers' links if the switch's links are narrower; else 0.
    """

    node: int
    links: npt.NDArray[np.intp]
    usual: npt.NDArray[np.float64]
    peers: int
    lanes: int

    def describe(self, fabric: Fabric) -> str:
        """Return a description of the slow links, compared with the peers."""
        own, usual = fabric.link_gbps[self.links], self.usual
        rate = " or ".join(f"{gbps:g}" for gbps in np.unique(own).tolist())
        others = " or ".join(f"{gbps:g}" for gbps in np.unique(usual).tolist())
        far = fabric.link_node[self.links]
        to = "hosts" if (fabric.node_kind[far] != NodeKind.SWITCH).any() else "switches"
        width = f" on {fabric.link_lanes[self.links[0]]} of {self.lanes} lanes" if self.lanes else ""
        peers = f"{self.peers} others" if self.peers != 1 else "another one"
        return f"all {len(self.links)} links of {fabric.node_name[self.node]} to {to} run at {rate} Gb/s{width}, " + (
            f"those of {peers} at {others} Gb/s"
        )


def find_slow_switches(fabric: Fabric, level: npt.NDArray[np.int32]) -> list[SlowSwitch]:
    """Return the switches with equal links to a level that are slower than most of their peers' links.

    If two speeds are equally common, the faster speed is the usual one. A switch with a single link to a level is left
    out, since the link may be the fault.
    """
    pairs = np.sort(level[fabric.link_node], axis=1)
    is_known = fabric.link_gbps > 0
    found: dict[int, list[tuple[npt.NDArray[np.intp], float, int, int]]] = {}
    for pair in np.unique(pairs, axis=0):
        members = np.flatnonzero((pairs == pair).all(axis=1) & is_known)
        if not len(members):
            continue
        speeds, counts = np.unique(fabric.link_gbps[members], return_counts=True)
        usual = float(speeds[len(speeds) - 1 - counts[::-1].argmax()])
        ends = fabric.link_node[members]
        for side in np.unique(pair).tolist():
            is_side = (level == side) & (fabric.node_kind == NodeKind.SWITCH)
            # A link from a switch to itself counts once.
            here = is_side[ends] & np.stack([ends[:, 0] >= 0, ends[:, 0] != ends[:, 1]], axis=1)
            switches, rates = ends[here], np.broadcast_to(fabric.link_gbps[members, np.newaxis], here.shape)[here]
            count = np.bincount(switches, minlength=fabric.nodes)
            slowest, fastest = np.full(fabric.nodes, np.inf), np.zeros(fabric.nodes)
            np.minimum.at(slowest, switches, rates)
            np.maximum.at(fastest, switches, rates)
            peers = int((fastest >= _SLOWER * usual).sum())
            is_slow = (count > 1) & (slowest == fastest) & (fastest < _SLOWER * usual)
            for node in np.flatnonzero(is_slow & (peers > 0)).tolist():
                links = members[(ends == node).any(axis=1)]
                normal = members[fabric.link_gbps[members] == usual]
                lanes = int(fabric.link_lanes[normal].max())
                is_narrow = 0 < fabric.link_lanes[links].max() < lanes
                found.setdefault(node, []).append((links, usual, peers, lanes if is_narrow else 0))
    return [
        SlowSwitch(
            node,
            np.concatenate([links for links, _, _, _ in parts]),
            np.concatenate([np.full(len(links), usual) for links, usual, _, _ in parts]),
            min(peers for _, _, peers, _ in parts),
            max(lanes for _, _, _, lanes in parts),
        )
        for node, parts in sorted(found.items())
    ]
