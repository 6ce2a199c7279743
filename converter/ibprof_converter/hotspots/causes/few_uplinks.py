# SPDX-License-Identifier: Apache-2.0
"""Switches at the most loaded link that have fewer links up than others, or more hosts for each link up.

For fabrics that are not regular: where a regular one fits, its missing cables are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.hotspots.causes.load_cause import MISSING_UPLINK, OVERSUBSCRIPTION, name_node
from ibprof_converter.hotspots.causes.recabling import Cable, FreePorts, usual_speed
from ibprof_converter.hotspots.causes.situation import Situation

_FEW = 0.25
"""Share of its level's switches that may have fewer links than is usual, for that to be a fault and no design."""

_LOCAL = 1.25
"""Times the usual ratio of hosts' to uplinks' speed that makes a switch stand out."""


@dataclass(frozen=True, slots=True)
class _Switch:
    """A switch, and how it is cabled compared with the others of its level.

    Attributes:
        node: its node.
        uplinks: links to switches above (on a level with no switch above: to all switches).
        usual_uplinks: that most switches of its level have.
        is_fault: whether only few have fewer than that.
        ratio: speed of its hosts' links over that of its uplinks.
        usual_ratio: median of the switches of its level that have hosts.
        hosts: links to hosts.
    """

    node: int
    uplinks: int
    usual_uplinks: int
    is_fault: bool
    ratio: float
    usual_ratio: float
    hosts: int


@dataclass(frozen=True, slots=True)
class FewUplinks:
    """A switch with too few links up.

    Attributes:
        cause: `MISSING_UPLINK` where a cable or two are gone, else `OVERSUBSCRIPTION`.
        node: the switch.
        evidence: a sentence.
        cables: that it lacks.
    """

    cause: str
    node: int
    evidence: str
    cables: list[Cable]


def find_few_uplinks(situation: Situation, rail: int) -> Iterator[FewUplinks]:
    """Find the switches at the most loaded link direction between switches that have too few links up.

    Where a cable or two are gone, they are missing. Where more than a quarter are, the switch is oversubscribed.
    """
    busiest = situation.most_loaded_between_switches()
    if busiest is None or busiest.rail != rail:
        return
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    for node in fabric.link_node[busiest.link].tolist():
        switch = _look_at(situation, rail, node)
        name = name_node(fabric, node)
        missing = switch.usual_uplinks - switch.uplinks if switch.is_fault else 0
        is_narrow = switch.ratio > max(1.0, _LOCAL * switch.usual_ratio)
        if missing > 0 and not (is_narrow and missing > max(1, switch.usual_uplinks // 4)):
            cause, count = MISSING_UPLINK, missing
            evidence = f"{name} has {switch.uplinks} links up; most switches of its level have {switch.usual_uplinks}"
        elif is_narrow:
            cause = OVERSUBSCRIPTION
            wanted = switch.ratio / max(1.0, switch.usual_ratio) * switch.uplinks
            count = int(np.ceil(wanted - 1e-9)) - switch.uplinks
            evidence = (
                f"{name} has {switch.hosts} hosts on {switch.uplinks} links up: {switch.ratio:.2f} times their speed; "
                f"usual is {switch.usual_ratio:.2f}"
            )
        else:
            continue
        cables = _plan_uplinks(fabric, level, node, count)
        if cables:
            yield FewUplinks(cause, node, evidence, cables)


def _plan_uplinks(fabric: Fabric, level: npt.NDArray[np.int32], node: int, count: int) -> list[Cable]:
    """Plan links from a switch to switches above it that it has fewest links to; empty where no port is free."""
    upward = _is_uplink(fabric, level)
    if not (upward & (fabric.link_node == node)).any():
        return []
    same_level = not (level[(fabric.node_kind == NodeKind.SWITCH)] > level[node]).any()
    wanted = level[node] if same_level else level[node] + 1
    candidates = np.flatnonzero((fabric.node_kind == NodeKind.SWITCH) & (level == wanted))
    candidates = _within_reach(fabric, level, node, candidates[candidates != node])
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    links = dict.fromkeys(candidates.tolist(), 0)
    for a, b in fabric.link_node[between].tolist():
        if node in (a, b) and (other := a + b - node) in links:
            links[other] += 1
    downs = np.bincount(fabric.link_node[between].ravel(), minlength=fabric.nodes)
    ports, gbps = FreePorts(fabric), usual_speed(fabric, node)
    cables = []
    for _ in range(count):
        if not links:
            return []
        other = min(links, key=lambda each: (links[each], int(downs[each]), each))
        one, far = ports.take(node), ports.take(other)
        if one is None or far is None:
            return []
        cables.append(Cable(one, far, gbps))
        links[other] += 1
        downs[other] += 1
    return cables


def _look_at(situation: Situation, rail: int, node: int) -> _Switch:
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    up = _count_uplinks(fabric, level)
    peers = np.flatnonzero((level == level[node]) & (fabric.node_kind == NodeKind.SWITCH))
    counts, often = np.unique(up[peers], return_counts=True)
    usual = int(counts[often.argmax()])
    is_fault = 2 * int(often.max()) > len(peers) and float((up[peers] < usual).mean()) <= max(_FEW, 1.01 / len(peers))
    gbps = np.nan_to_num(fabric.link_gbps)
    host_link = (fabric.node_kind[fabric.link_node] != NodeKind.SWITCH).any(axis=1)
    of_hosts = np.bincount(
        fabric.link_node[host_link].ravel(), weights=np.repeat(gbps[host_link], 2), minlength=fabric.nodes
    )
    hosts = np.bincount(fabric.link_node[host_link].ravel(), minlength=fabric.nodes)
    upward = _is_uplink(fabric, level)
    of_uplinks = np.zeros(fabric.nodes)
    for end in (0, 1):
        np.add.at(of_uplinks, fabric.link_node[upward[:, end], end], gbps[upward[:, end]])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(of_hosts > 0, of_hosts / np.maximum(of_uplinks, 1e-9), 0.0)
    leaves = peers[of_hosts[peers] > 0]
    return _Switch(
        node=node,
        uplinks=int(up[node]),
        usual_uplinks=usual,
        is_fault=is_fault,
        ratio=float(ratio[node]),
        usual_ratio=float(np.median(ratio[leaves])) if len(leaves) else 0.0,
        hosts=int(hosts[node]),
    )


def _is_uplink(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Tell which ends of links are the lower one between switches; of links within a level both: bool [link, end]."""
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    of_ends = level[fabric.link_node]
    return np.asarray(between[:, np.newaxis] & (of_ends <= of_ends[:, ::-1]))


def _count_uplinks(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    upward = _is_uplink(fabric, level)
    return np.bincount(fabric.link_node[upward], minlength=fabric.nodes)


def _within_reach(
    fabric: Fabric, level: npt.NDArray[np.int32], node: int, candidates: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Keep the switches above that siblings, which share some with this one, have too; where there are none, all."""
    near = {a + b - node for a, b in fabric.link_node.tolist() if node in (a, b) and level[a + b - node] > level[node]}
    siblings = {
        low
        for a, b in fabric.link_node.tolist()
        for low, high in ((a, b), (b, a))
        if high in near and level[low] == level[node]
    }
    shared = {
        high
        for a, b in fabric.link_node.tolist()
        for low, high in ((a, b), (b, a))
        if low in siblings and level[high] > level[low]
    }
    kept = np.array([each for each in candidates.tolist() if each in shared], np.intp)
    return kept if len(kept) else candidates
