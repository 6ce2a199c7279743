# SPDX-License-Identifier: Apache-2.0
"""More or faster links across a cut and all cuts alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.hotspots.causes.load_cause import list_some, name_node
from ibprof_converter.hotspots.causes.narrowest_cut import SwitchCut
from ibprof_converter.hotspots.causes.situation import Situation


def widen(situation: Situation, cut: SwitchCut, factor: float) -> Situation:
    """Return the situation with faster links above the level of a cut; where it has none, between all switches."""
    subnets = []
    for subnet, level in zip(situation.subnets, situation.levels, strict=True):
        fabric = subnet.fabric
        upper = np.maximum(level[fabric.link_node[:, 0]], level[fabric.link_node[:, 1]])
        between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
        wide = between & (upper > cut.level) if cut.level else between
        gbps = np.where(wide, fabric.link_gbps * factor, fabric.link_gbps)
        subnets.append(replace(subnet, fabric=replace(fabric, link_gbps=gbps)))
    return situation.changed(subnets=subnets)


def name_cut(situation: Situation, cut: SwitchCut) -> str:
    """Name the switches of a cut in a sentence."""
    fabric = situation.subnets[cut.rail].fabric
    switches = [name_node(fabric, int(node)) for node in cut.nodes if fabric.node_kind[node] == NodeKind.SWITCH]
    return list_some(switches, 3)
