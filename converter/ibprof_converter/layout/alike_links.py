# SPDX-License-Identifier: Apache-2.0
"""Links of switches that have several to one level, all of one width and speed: bought so, and no fault."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind


def find_alike_links(fabric: Fabric, peers: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Tell of which of some links one end is a switch that has several of them, all of one width and speed."""
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
