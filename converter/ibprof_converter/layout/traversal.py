# SPDX-License-Identifier: Apache-2.0
"""Orders of nodes, by name and as a breadth-first search visits them; other orders are compared with these.

Source: section 4.3.2 of "Resource Contention due to Data Movement on HPC Systems" (dissertation), which gives each
visited node the next position at its level.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.node_names import natural_key


def rank_names(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the rank of each node when sorted in the natural order of names, then by GUID: int64 [node]."""
    order = sorted(range(fabric.nodes), key=lambda node: (natural_key(fabric.node_name[node]), node))
    rank = np.empty(fabric.nodes, np.int64)
    rank[order] = np.arange(fabric.nodes)
    return rank


def visit(fabric: Fabric, name_rank: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Visit all nodes breadth-first, from the host with the first name, component by component; neighbours by name.

    Returns:
        int64 [node], position of each node in the visit.
    """
    neighbours: list[list[int]] = [[] for _ in range(fabric.nodes)]
    pairs = np.unique(np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]]), axis=0)
    for a, b in pairs[np.argsort(name_rank[pairs[:, 1]], kind="stable")].tolist():
        neighbours[a].append(b)
    when = np.full(fabric.nodes, -1, np.int64)
    count = 0
    for start in np.lexsort((name_rank, fabric.node_kind != NodeKind.CA)).tolist():
        queue = deque([start] if when[start] < 0 else [])
        while queue:
            node = queue.popleft()
            if when[node] < 0:
                when[node] = count
                count += 1
                queue.extend(other for other in neighbours[node] if when[other] < 0)
    return when
