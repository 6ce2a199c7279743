# SPDX-License-Identifier: Apache-2.0
"""Faults in a fabric with their repairs: slow links, missing cables, misplaced cables, too few uplinks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind, Origin
from ibprof_converter.hotspots.causes.load_cause import (
    MISSING_CABLE,
    MISSING_UPLINK,
    OVERSUBSCRIPTION,
    SLOW_LINK,
    WRONG_CABLE,
    name_node,
)
from ibprof_converter.hotspots.causes.recabling import (
    Cable,
    FreePorts,
    PortOfNode,
    add_cables,
    remove_links,
    set_speeds,
    usual_speed,
)
from ibprof_converter.hotspots.causes.situation import Situation
from ibprof_converter.layout.alike_links import find_alike_links
from ibprof_converter.layout.regular_cabling import RegularCabling, fit_regular_cabling

_SLOWER = 0.99

_FEW = 0.25
"""Share of its level's switches that may have fewer links than is usual, for that to be a fault and no design."""

_LOCAL = 1.25
"""Times the usual ratio of hosts' to uplinks' speed that makes a switch stand out."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A fault that is there, and the fabric without it.

    Attributes:
        cause: its name.
        rail: of the fabric.
        at: the switch or link.
        evidence: what shows the fault, a sentence.
        change: the exact cable or port.
        heat: largest time of a link direction at its switches; repairs are tried in this order.
        apply: returns the fabric with the repair, given one that may have other repairs.
        remakes_tables: whether the subnet manager makes new forwarding tables afterwards.
    """

    cause: str
    rail: int
    at: str
    evidence: str
    change: str
    heat: float
    apply: Callable[[Fabric], Fabric]
    remakes_tables: bool


def find_repairs(situation: Situation) -> list[Repair]:
    """Return the repairs of all faults that the fabrics show, those at the most loaded links first."""
    found: list[Repair] = []
    for rail, subnet in enumerate(situation.subnets):
        if subnet.fabric.origin is Origin.NAMES:
            continue  # Its cables and rates are assumed.
        found += _find_slow_links(situation, rail)
        fitted = fit_regular_cabling(subnet.fabric)
        moved = _find_misfits(situation, rail, fitted) if fitted else []
        found += moved
        # A fitted fabric has been looked at switch by switch.
        if not moved:
            found += _find_few(situation, rail)
    return sorted(found, key=lambda repair: -repair.heat)


def _find_slow_links(situation: Situation, rail: int) -> Iterator[Repair]:
    fabric = situation.subnets[rail].fabric
    usual = find_usual_speeds(fabric, situation.levels[rail])
    seconds = situation.seconds[rail].max(axis=1, initial=0.0)
    level = np.sort(situation.levels[rail][fabric.link_node], axis=1)
    slow = np.flatnonzero((fabric.link_gbps < _SLOWER * usual) & (seconds > 0))
    by_design = [
        link
        for pair in np.unique(level[slow], axis=0)
        for link in _find_alike(fabric, np.flatnonzero((level == pair).all(axis=1)))
    ]
    for link in np.setdiff1d(slow, by_design).tolist():
        ends = [
            (int(node), int(port)) for node, port in zip(fabric.link_node[link], fabric.link_port[link], strict=True)
        ]
        end = int(situation.seconds[rail][link].argmax())
        (sender, port), (receiver, far) = ends[end], ends[1 - end]
        at = f"{name_node(fabric, sender)} port {port} to {name_node(fabric, receiver)}"
        speeds = {PortOfNode(*ends[0]): float(usual[link])}
        yield Repair(
            cause=SLOW_LINK,
            rail=rail,
            at=at,
            evidence=f"the link from {at} runs at {fabric.link_gbps[link]:g} Gb/s; most links between the same two "
            f"levels run at {usual[link]:g} Gb/s",
            change=f"replace or reseat the cable between {name_node(fabric, sender)} port {port} and "
            f"{name_node(fabric, receiver)} port {far}, so that it runs at {usual[link]:g} Gb/s",
            heat=float(seconds[link]),
            apply=partial(set_speeds, speeds=speeds),
            remakes_tables=False,
        )


def _find_alike(fabric: Fabric, peers: npt.NDArray[np.intp]) -> list[int]:
    """Return the links of some of which one end is a switch that has several, all of one width and speed."""
    alike: list[int] = peers[find_alike_links(fabric, peers)].tolist()
    return alike


def _find_misfits(situation: Situation, rail: int, fitted: RegularCabling) -> list[Repair]:
    """Group the cables that do not fit: each one in the wrong place, with what its switches lack; then the others."""
    fabric = situation.subnets[rail].fabric
    lacking = [(int(low), int(high)) for low, high in fitted.missing.tolist()]
    repairs = []
    for link in fitted.extra.tolist():
        pairs = []
        for node in fabric.link_node[link].tolist():
            pair = next((each for each in lacking if node in each), None)
            if pair is not None:
                lacking.remove(pair)
                pairs.append(pair)
        repairs.append(_describe_move(situation, rail, fitted, link, pairs))
    by_switch: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for low, high in lacking:
        by_switch[low].append((low, high))
    repairs += [_describe_missing(situation, rail, fitted, pairs) for pairs in by_switch.values()]
    return repairs


def _describe_move(
    situation: Situation, rail: int, fitted: RegularCabling, link: int, pairs: list[tuple[int, int]]
) -> Repair:
    fabric = situation.subnets[rail].fabric
    ends = [
        PortOfNode(int(node), int(port))
        for node, port in zip(fabric.link_node[link], fabric.link_port[link], strict=True)
    ]
    names = [f"{name_node(fabric, end.node)} port {end.port}" for end in ends]
    cables = _plan_cables(fabric, pairs, ends)
    wanted = " and ".join(_name_cable(fabric, cable) for cable in cables)
    unplugged = f"unplug the cable between {names[0]} and {names[1]}"
    return Repair(
        cause=WRONG_CABLE,
        rail=rail,
        at=f"{names[0]} to {names[1]}",
        evidence=f"a {fitted.name} has no cable between {names[0]} and {names[1]}"
        + (f", and one between {' and '.join(_name_pair(fabric, pair) for pair in pairs)}" if pairs else ""),
        change=f"{unplugged}; cable {wanted}" if cables else unplugged,
        heat=_heat(situation, rail, [end.node for end in ends]),
        apply=lambda each: add_cables(remove_links(each, ends), cables),
        remakes_tables=True,
    )


def _describe_missing(situation: Situation, rail: int, fitted: RegularCabling, pairs: list[tuple[int, int]]) -> Repair:
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    low = pairs[0][0]
    cables = _plan_cables(fabric, pairs, [])
    names = " and ".join(_name_pair(fabric, pair) for pair in pairs)
    is_uplink = level[pairs[0][0]] < level[pairs[0][1]]
    return Repair(
        cause=MISSING_UPLINK if is_uplink else MISSING_CABLE,
        rail=rail,
        at=name_node(fabric, low) if is_uplink else _name_pair(fabric, pairs[0]),
        evidence=f"a {fitted.name} has {len(pairs)} more cable(s) between {names}, as others of the same level have",
        change="repair or plug the cable(s) between " + " and ".join(_name_cable(fabric, cable) for cable in cables),
        heat=_heat(situation, rail, [node for pair in pairs for node in pair]),
        apply=partial(add_cables, cables=cables),
        remakes_tables=True,
    )


def _find_few(situation: Situation, rail: int) -> Iterator[Repair]:
    for few in find_few_uplinks(situation, rail):
        cables = few.cables
        fabric = situation.subnets[rail].fabric
        yield Repair(
            cause=few.cause,
            rail=rail,
            at=name_node(fabric, few.node),
            evidence=few.evidence,
            change="plug cables between " + " and ".join(_name_cable(fabric, cable) for cable in cables),
            heat=_heat(situation, rail, [few.node]),
            apply=partial(add_cables, cables=cables),
            remakes_tables=True,
        )


def _plan_cables(fabric: Fabric, pairs: Iterable[tuple[int, int]], freed: list[PortOfNode]) -> list[Cable]:
    ports = FreePorts(fabric, freed)
    freed_at = {end.node: end for end in freed}
    cables = []
    for low, high in pairs:
        one, other = (ports.take(node, freed_at.get(node)) for node in (low, high))
        if one is not None and other is not None:
            cables.append(Cable(one, other, usual_speed(fabric, low)))
    return cables


def _name_cable(fabric: Fabric, cable: Cable) -> str:
    one, other = (f"{name_node(fabric, end.node)} (port {end.port})" for end in (cable.one, cable.other))
    return f"{one} and {other}"


def _name_pair(fabric: Fabric, pair: tuple[int, int]) -> str:
    return f"{name_node(fabric, pair[0])} and {name_node(fabric, pair[1])}"


def _heat(situation: Situation, rail: int, nodes: list[int]) -> float:
    """Return the largest time of a link direction between switches at some switches."""
    fabric = situation.subnets[rail].fabric
    here = np.isin(fabric.link_node, nodes).any(axis=1)
    here &= (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    return float(situation.seconds[rail][here].max(initial=0.0))


def find_usual_speeds(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return the commonest speed among the peers of each link: those between the same two levels.

    Returns:
        float64 [link], Gb/s; a link's own speed where no speed is that of most of its peers.
    """
    pair = np.sort(level[fabric.link_node], axis=1)
    levels = pair[:, 0].astype(np.int64) * (int(level.max(initial=0)) + 1) + pair[:, 1]
    usual = fabric.link_gbps.copy()
    for kind in np.unique(levels):
        members = np.flatnonzero((levels == kind) & ~np.isnan(fabric.link_gbps))
        speeds, counts = np.unique(fabric.link_gbps[members], return_counts=True)
        # Half of the links of one speed are no fault of the other half.
        if len(speeds) and 2 * counts.max() > len(members):
            usual[members] = speeds[counts.argmax()]
    return usual


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
