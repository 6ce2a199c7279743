# SPDX-License-Identifier: Apache-2.0
"""The level of each node: its distance to the nearest host.

Source: K. A. Brown, dissertation (Tokyo Institute of Technology), section 4.3.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.model import Fabric, NodeKind
from ibprof_converter.fabric.names import is_aggregation_node

_UNSET = -1


def find_levels(fabric: Fabric) -> npt.NDArray[np.int32]:
    """Give each node's level, by a breadth-first search that begins at all hosts at once.

    CAs and routers are at level 0. Switches with hosts, the leaves, are at level 1, and every other switch is one above
    its lowest neighbour. Switches that no host reaches are at level 1.

    Returns:
        int32 [node].
    """
    level = np.full(fabric.nodes, _UNSET, np.int32)
    level[fabric.node_kind != NodeKind.SWITCH] = 0
    frontier = find_leaves(fabric)
    distance = 0
    while len(frontier):
        distance += 1
        level[frontier] = distance
        frontier = np.flatnonzero(_are_neighbours(fabric, level == distance) & (level == _UNSET))
    level[level == _UNSET] = 1
    return level


def find_leaves(fabric: Fabric) -> npt.NDArray[np.intp]:
    """Find the switches whose CAs are hosts.

    Not every switch with a CA is a leaf: the aggregation nodes of spines look like CAs, and a management host may be
    cabled to a spine. So aggregation nodes do not count, and a switch that has fewer than half as many CAs as is usual
    (as the median CA sees at its switch) is a leaf only if it is not linked to a switch that has that many. A leaf with
    few hosts is linked to spines alone, a spine to leaves.

    Returns:
        Nodes, ascending.
    """
    is_host = fabric.node_kind == NodeKind.CA
    is_host &= ~np.array([is_aggregation_node(name) for name in fabric.node_name], np.bool_)
    is_switch = fabric.node_kind == NodeKind.SWITCH
    pairs = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]])
    pairs = np.unique(pairs[is_host[pairs[:, 0]] & is_switch[pairs[:, 1]]], axis=0)
    hosts = np.bincount(pairs[:, 1], minlength=fabric.nodes)
    if not hosts.any():
        return np.zeros(0, np.intp)
    usual = np.sort(hosts[pairs[:, 1]])[len(pairs) // 2]
    has_many = 2 * hosts >= usual
    return np.flatnonzero((hosts > 0) & (has_many | ~_are_neighbours(fabric, has_many)))


def _are_neighbours(fabric: Fabric, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Tell which nodes are linked to a chosen one."""
    near = np.zeros(fabric.nodes, np.bool_)
    for end in (0, 1):
        near[fabric.link_node[chosen[fabric.link_node[:, end]], 1 - end]] = True
    return near
