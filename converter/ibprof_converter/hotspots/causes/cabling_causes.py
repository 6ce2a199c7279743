# SPDX-License-Identifier: Apache-2.0
"""Causes that lie in how switches are cabled: fewer links up than the others have, more hosts than links up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import format_seconds
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.listing import PORTS
from ibprof_converter.hotspots.causes.load_cause import (
    MISSING_UPLINK,
    OVERSUBSCRIPTION,
    SMALL_GAIN,
    LoadCause,
    make_finding,
    name_node,
)
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation
from ibprof_converter.routing.balanced_tables import balance_tables
from ibprof_converter.routing.subnet import Subnet

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


def find_cabling(situation: Situation, busiest: LinkDirection) -> Iterator[LoadCause]:
    """Find whether a switch at the most loaded link direction between switches has too few links up.

    Where a cable or two are gone, they are missing. Where more than a quarter are, the switch is oversubscribed.
    """
    fabric = situation.subnets[busiest.rail].fabric
    for node in fabric.link_node[busiest.link].tolist():
        switch = _look_at(situation, busiest.rail, node)
        missing = switch.usual_uplinks - switch.uplinks if switch.is_fault else 0
        is_narrow = switch.ratio > max(1.0, _LOCAL * switch.usual_ratio)
        if missing > 0 and not (is_narrow and missing > max(1, switch.usual_uplinks // 4)):
            finding = _try_more_links(situation, busiest.rail, switch, missing, MISSING_UPLINK)
        elif is_narrow:
            wanted = switch.ratio / max(1.0, switch.usual_ratio) * switch.uplinks
            more = int(np.ceil(wanted - 1e-9)) - switch.uplinks
            finding = _try_more_links(situation, busiest.rail, switch, more, OVERSUBSCRIPTION)
        else:
            continue
        if finding is not None:
            yield finding
            return


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


def _try_more_links(situation: Situation, rail: int, switch: _Switch, count: int, cause: str) -> LoadCause | None:
    subnet = situation.subnets[rail]
    recabled = add_uplinks(subnet, situation.levels[rail], switch.node, count)
    if recabled is None:
        return None
    rails = [*situation.subnets]
    rails[rail] = recabled
    after = situation.changed(subnets=rails)
    if after.max_seconds > SMALL_GAIN * situation.max_seconds:
        return None
    name = name_node(subnet.fabric, switch.node)
    if cause == MISSING_UPLINK:
        evidence = [f"{name} has {switch.uplinks} links up; most switches of its level have {switch.usual_uplinks}"]
        advice = f"have the {count} link(s) of {name} that are down or not cabled looked at, and the tables made anew"
    else:
        evidence = [
            f"{name} has {switch.hosts} hosts on {switch.uplinks} links up: {switch.ratio:.2f} times their speed; "
            f"usual is {switch.usual_ratio:.2f}"
        ]
        advice = (
            f"cable {count} more link(s) up from {name}, or place ranks that talk to other switches on other leaves; "
            "new tables alone cannot help"
        )
    evidence.append(
        f"with {switch.uplinks + count} links up and shortest routes that share them, the busiest link would need "
        f"{format_seconds(after.max_seconds)}"
    )
    return make_finding(cause, situation, after, [name], evidence, advice)


def add_uplinks(subnet: Subnet, level: npt.NDArray[np.int32], node: int, count: int) -> Subnet | None:
    """Add links from a switch to switches above it that it has fewest links to, with tables made anew.

    Returns:
        The rail with balanced tables; None where no port is free.
    """
    fabric = subnet.fabric
    upward = _is_uplink(fabric, level)
    if not (upward & (fabric.link_node == node)).any():
        return None
    same_level = not (level[(fabric.node_kind == NodeKind.SWITCH)] > level[node]).any()
    wanted = level[node] if same_level else level[node] + 1
    candidates = np.flatnonzero((fabric.node_kind == NodeKind.SWITCH) & (level == wanted))
    candidates = candidates[candidates != node]
    candidates = _within_reach(fabric, level, node, candidates)
    added: list[tuple[int, int, int, int, float]] = []
    own = [node in pair for pair in fabric.link_node.tolist()]
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    gbps = float(np.nanmax(np.where(np.array(own) & between, fabric.link_gbps, np.nan)))
    used = {(n, p) for n, p in zip(fabric.link_node.ravel().tolist(), fabric.link_port.ravel().tolist(), strict=True)}
    links = {int(other): 0 for other in candidates}
    for a, b in fabric.link_node[between].tolist():
        if node in (a, b) and (other := a + b - node) in links:
            links[other] += 1
    downs = np.bincount(fabric.link_node[between].ravel(), minlength=fabric.nodes)
    for _ in range(count):
        free = {other: _free_port(used, other) for other in links}
        possible = [other for other in links if free[other]]
        port = _free_port(used, node)
        if not possible or not port:
            return None
        other = min(possible, key=lambda each: (links[each], int(downs[each]), each))
        added.append((node, port, other, free[other], gbps))
        used |= {(node, port), (other, free[other])}
        links[other] += 1
        downs[other] += 1
    grown = _with_links(fabric, added)
    return Subnet(grown, balance_tables(grown, subnet.tables), ())


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


def _free_port(used: set[tuple[int, int]], node: int) -> int:
    return next((port for port in range(1, PORTS - 1) if (node, port) not in used), 0)


def _with_links(fabric: Fabric, added: list[tuple[int, int, int, int, float]]) -> Fabric:
    """Return the fabric with more links, each (node, port, node, port, Gb/s)."""
    node = np.array([sorted([(a, p), (b, q)]) for a, p, b, q, _ in added], np.int32)
    link_node = np.concatenate([fabric.link_node, node[:, :, 0]])
    link_port = np.concatenate([fabric.link_port, node[:, :, 1]])
    order = np.lexsort((link_port[:, 0], link_node[:, 0]))
    lanes, half = fabric.link_lanes, fabric.link_half
    if len(lanes):
        lanes = np.concatenate([lanes, np.zeros(len(added), np.uint8)])[order]
    if len(half):
        half = np.concatenate([half, np.zeros(len(added), np.bool_)])[order]
    gbps = np.concatenate([fabric.link_gbps, [each[4] for each in added]])
    return replace(
        fabric,
        link_node=link_node[order],
        link_port=link_port[order],
        link_gbps=gbps[order],
        link_lanes=lanes,
        link_half=half,
    )
