# SPDX-License-Identifier: Apache-2.0
"""Find connected components and distances in graphs, from lists of edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_AT_ONCE = 512
"""Largest number of goals whose distances are counted at the same time; more goals need more memory."""


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
        # The root of a component is its lowest node. For an edge between two components, link the higher root to the
        # lower root. Then each node follows these links to the lowest root.
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


def count_hops(nodes: int, edges: npt.NDArray[np.integer], goals: npt.NDArray[np.integer]) -> npt.NDArray[np.int16]:
    """Return the number of edges on a shortest path from each node to each goal.

    Args:
        nodes: number of nodes.
        edges: int [edge, 2], source and destination of each edge.
        goals: int [goal], nodes at which paths end.

    Returns:
        int16 [node, goal], -1 if there is no path.
    """
    order = np.argsort(edges[:, 0], kind="stable")
    at, first = np.unique(edges[order, 0], return_index=True)
    to = edges[order, 1]
    hops = np.full((nodes, len(goals)), -1, np.int16)
    for start in range(0, len(goals), _AT_ONCE):
        near = hops[:, start : start + _AT_ONCE]
        near[goals[start : start + _AT_ONCE], np.arange(near.shape[1])] = 0
        reached = np.packbits(near == 0, axis=1)  # one bit per goal: true if the goal is reached
        for step in range(1, nodes):
            grown = reached.copy()
            if len(at):
                grown[at] |= np.bitwise_or.reduceat(reached[to], first, axis=0)
            new = np.unpackbits(grown & ~reached, axis=1, count=near.shape[1]).view(np.bool_)
            if not new.any():
                break
            near[new] = step
            reached = grown
    return hops
