# SPDX-License-Identifier: Apache-2.0
"""Neighbours and connected components of a fabric; equal links of one switch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind


def find_neighbours(fabric: Fabric, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which nodes are linked to a chosen one: bool [node]."""
    near = np.zeros(fabric.nodes, np.bool_)
    for end in (0, 1):
        near[fabric.link_node[chosen[fabric.link_node[:, end]], 1 - end]] = True
    return near


def find_parts(nodes: int, pairs: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the connected components of a graph.

    Args:
        nodes: number of nodes.
        pairs: int [edge, 2].

    Returns:
        int64 [node], the lowest node of each node's component.
    """
    part = np.arange(nodes)
    a, b = pairs[:, 0], pairs[:, 1]
    while True:
        # Each root takes the lowest root that an edge joins it to. Then all nodes follow their root to its root.
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
    """Return a number for the switches of each chassis, by SystemGUID; -1 for single switches and other nodes.

    Returns:
        int64 [node].
    """
    guid = np.where(is_switch, fabric.system_guid, np.uint64(0))
    _, number, count = np.unique(guid, return_inverse=True, return_counts=True)
    return np.where((guid > 0) & (count[number] > 1), number, -1)


def find_alike_links(fabric: Fabric, peers: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return which links have a switch at one end that has several of them, all of one width and speed: no fault."""
    alike = np.zeros(len(peers), np.bool_)
    rates = list(zip(fabric.link_lanes[peers].tolist(), fabric.link_gbps[peers].tolist(), strict=True))
    for end in (0, 1):
        of_node: dict[int, list[int]] = {}
        for index, node in enumerate(fabric.link_node[peers, end].tolist()):
            if fabric.node_kind[node] == NodeKind.SWITCH:
                of_node.setdefault(node, []).append(index)
        for members in of_node.values():
            if len(members) > 1 and len({rates[index] for index in members}) == 1:
                alike[members] = True
    return alike
