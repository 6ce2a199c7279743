# SPDX-License-Identifier: Apache-2.0
"""Lower bound of any routing: bytes that must leave or enter a part of the fabric, over the speed of all its links.

Parts are single switches with their hosts, what hangs together below each level of a tree (leaves, pods), and what a
partitioner finds on any fabric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof.profile.exact_sums import find_distinct
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.hotspots.causes.bisection import find_narrow_bisection
from ibprof_converter.hotspots.causes.situation import Situation

_CLEARLY = 1.01
"""Times that a partitioner's cut must need longer than one of the fabric's levels to be named in its place."""


@dataclass(frozen=True, slots=True)
class SwitchCut:
    """A part of a fabric whose border is narrow for what crosses it.

    Attributes:
        rail: the rail.
        level: highest level of its switches.
        nodes: of it; its hosts included.
        bytes: that cross its border, the one way in which they need longer.
        gbps: of all links that cross it, one direction.
        inside_gbps: of the hosts' links within it.
        seconds: that the bytes need on all of these links.
        found_by: how its switches were chosen.
        parts, used_parts: parts at this level that have hosts, and those whose hosts send or receive something.
        needed_parts: parts that would do for all hosts that send or receive.
    """

    rail: int
    level: int
    nodes: npt.NDArray[np.intp]
    bytes: int
    gbps: float
    inside_gbps: float
    seconds: float
    parts: int
    used_parts: int
    needed_parts: int
    found_by: str = "levels of the fabric"


def narrowest_cut(situation: Situation) -> SwitchCut | None:
    """Find the part whose border needs longest, of all rails; None where nothing crosses any."""
    cuts = [cut for rail in range(len(situation.subnets)) for cut in _cuts_of_rail(situation, rail)]
    best = max(cuts, key=lambda cut: cut.seconds, default=None)
    for rail in range(len(situation.subnets)):
        cut = _bisect(situation, rail)
        # Parts of a tree are easier to name, and to widen.
        if cut is not None and cut.seconds > _CLEARLY * (best.seconds if best else 0.0):
            best = cut
    return best


def _bisect(situation: Situation, rail: int) -> SwitchCut | None:
    """Return the narrowest bisection that a partitioner finds."""
    fabric = situation.subnets[rail].fabric
    source, destination, amount = _find_nodes(situation, rail)
    found = find_narrow_bisection(fabric, source, destination, amount)
    if found is None:
        return None
    part = found.inside.astype(np.int64)
    cut = _narrowest(situation, rail, 0, part, source, destination, amount)
    return replace(cut, found_by=found.method) if cut else None


def _find_nodes(
    situation: Situation, rail: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return source node, destination node and bytes of the flows of a rail."""
    fabric = situation.subnets[rail].fabric
    here = situation.flows.rail == rail
    return (
        fabric.lid_node[situation.flows.source_lid[here]],
        fabric.lid_node[situation.flows.destination_lid[here]],
        situation.flows.bytes[here].astype(np.float64),
    )


def _cuts_of_rail(situation: Situation, rail: int) -> list[SwitchCut]:
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    source, destination, amount = _find_nodes(situation, rail)
    cuts = []
    is_switch = fabric.node_kind == NodeKind.SWITCH
    highest = int(level.max(initial=0))
    for top in range(highest + 1):
        # `top` 0: each switch by itself, for fabrics whose leaves are cabled to each other.
        inner = ~is_switch | (level <= top)
        joined = inner[fabric.link_node].all(axis=1)
        if top == 0:
            joined = ~is_switch[fabric.link_node].all(axis=1)
        part = _hang_together(fabric.nodes, fabric.link_node[joined])
        cut = _narrowest(situation, rail, top, part, source, destination, amount)
        if cut is not None:
            cuts.append(cut)
    return cuts


def _hang_together(nodes: int, links: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Number what hangs together by links: int64 [node], from 0."""
    label = np.arange(nodes)
    while True:
        low = label.copy()
        np.minimum.at(low, links[:, 0], label[links[:, 1]])
        np.minimum.at(low, links[:, 1], label[links[:, 0]])
        low = low[low]
        if (low == label).all():
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        label = low


def _narrowest(
    situation: Situation,
    rail: int,
    level: int,
    part: npt.NDArray[np.int64],
    source: npt.NDArray[np.int32],
    destination: npt.NDArray[np.int32],
    amount: npt.NDArray[np.float64],
) -> SwitchCut | None:
    fabric = situation.subnets[rail].fabric
    parts = int(part.max(initial=0)) + 1
    gbps = np.nan_to_num(fabric.link_gbps)
    of_ends = part[fabric.link_node]
    crossing = of_ends[:, 0] != of_ends[:, 1]
    border = np.bincount(of_ends[crossing].ravel(), weights=np.repeat(gbps[crossing], 2), minlength=parts)
    is_host = fabric.node_kind == NodeKind.CA
    host_link = is_host[fabric.link_node].any(axis=1)
    inside = np.bincount(of_ends[host_link, 0], weights=gbps[host_link], minlength=parts)
    apart = part[source] != part[destination]
    out = np.bincount(part[source[apart]], weights=amount[apart], minlength=parts)
    into = np.bincount(part[destination[apart]], weights=amount[apart], minlength=parts)
    most = np.maximum(out, into)
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where((border > 0) & (most > 0), most * 8e-9 / border, 0.0)
    worst = int(seconds.argmax())
    if seconds[worst] <= 0:
        return None
    talking = find_distinct(source[source >= 0], destination[destination >= 0])
    hosts_of_part = np.bincount(part[is_host], minlength=parts)
    in_order = np.sort(hosts_of_part)[::-1]
    return SwitchCut(
        rail=rail,
        level=level,
        nodes=np.flatnonzero(part == worst),
        bytes=int(most[worst]),
        gbps=float(border[worst]),
        inside_gbps=float(inside[worst]),
        seconds=float(seconds[worst]),
        parts=int((hosts_of_part > 0).sum()),
        used_parts=len(np.unique(part[talking])),
        needed_parts=1 + int(np.searchsorted(np.cumsum(in_order), len(talking))),
    )
