# SPDX-License-Identifier: Apache-2.0
"""Find faults of a fabric, with repairs: slow links, missing or misplaced cables, too few uplinks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import count_of
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind, Origin
from ibprof_converter.fabric.listing import PORTS
from ibprof_converter.hotspots.causes.load_cause import (
    FEW_LINKS,
    MISSING_CABLE,
    MISSING_UPLINK,
    OVERSUBSCRIPTION,
    SLOW_LINK,
    WRONG_CABLE,
    name_node,
)
from ibprof_converter.hotspots.causes.situation import Situation
from ibprof_converter.layout.node_levels import SlowSwitch, find_few_links, find_slow_switches
from ibprof_converter.layout.regular_cabling import RegularCabling, fit_regular_cabling

_SLOWER = 0.99

_FEW = 0.25
"""Fewer links than usual are a fault only if at most 25% of the switches of a level, or one switch, have fewer.

If more switches have fewer links, the fabric is assumed to be built so.
"""

_CABLES_ADVISED = 1
"""Number of cables of a switch that `Repair.advice` names; `Repair.change` names all."""

_LOCAL = 1.25
"""Uplinks are too slow if speed of host links / speed of uplinks exceeds 1 and 1.25 times the leaves' median."""

_OF_LINKS = ("link_node", "link_port", "link_gbps", "link_lanes", "link_half", "link_unequal")


@dataclass(frozen=True, slots=True, order=True)
class PortOfNode:
    """A port: index of the node in the fabric, and port number on the node."""

    node: int
    port: int


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable between two ports.

    Attributes:
        one, other: the two ports.
        gbps: data rate in Gbit/s.
        decided: for each port, true if the cable must use this port; false if any free port of the node will do.
    """

    one: PortOfNode
    other: PortOfNode
    gbps: float
    decided: tuple[bool, bool] = (True, True)


@dataclass(frozen=True, slots=True)
class Repair:
    """A fault of a fabric, and its repair.

    Attributes:
        at: name of the faulty switch or link.
        evidence: a sentence with facts that show the fault.
        change: text that names the exact cable or port.
        heat: largest time of a link direction at the fault, in seconds; repairs with more heat are tried first.
        apply: function that adds this repair to a fabric, and returns the repaired fabric.
        remakes_tables: true if the subnet manager writes new forwarding tables after this repair.
        advice: a shorter text than `change`; empty if `change` is short enough.
    """

    cause: str
    rail: int
    at: str
    evidence: str
    change: str
    heat: float
    apply: Callable[[Fabric], Fabric]
    remakes_tables: bool
    advice: str = ""


def find_repairs(situation: Situation) -> list[Repair]:
    """Return the repairs of all faults in the fabrics; faults at the most loaded links come first."""
    found: list[Repair] = []
    for rail, subnet in enumerate(situation.subnets):
        if subnet.fabric.origin is Origin.NAMES:
            continue  # cables and data rates are assumptions of ibprof, not data: they show no faults
        found += _find_slow_links(situation, rail)
        fitted = fit_regular_cabling(subnet.fabric)
        moved = _find_misfits(situation, rail, fitted) if fitted else []
        found += moved
        # Compare switches of one level only if the comparison with a regular fabric found no repairs.
        if not moved:
            found += [*_find_few_uplinks(situation, rail)] or _find_few_links(situation, rail)
    return sorted(found, key=lambda repair: -repair.heat)


def _find_slow_links(situation: Situation, rail: int) -> Iterator[Repair]:
    fabric = situation.subnets[rail].fabric
    usual = _find_usual_speeds(fabric, situation.levels[rail])
    seconds = situation.seconds[rail].max(axis=1, initial=0.0)
    slow = (fabric.link_gbps < _SLOWER * usual) & (seconds > 0)
    for switch in find_slow_switches(fabric, situation.levels[rail]):
        slow[switch.links] = False
        yield _describe_slow_switch(situation, rail, switch)
    for link in np.flatnonzero(slow).tolist():
        ends = _list_ends(fabric, link)
        end = int(situation.seconds[rail][link].argmax())
        sender, receiver = ends[end], ends[1 - end]
        at = f"{_name_port(fabric, sender)} to {name_node(fabric, receiver.node)}"
        yield Repair(
            cause=SLOW_LINK,
            rail=rail,
            at=at,
            evidence=f"the link from {at} runs at {fabric.link_gbps[link]:g} Gb/s; most links between the same two "
            f"levels run at {usual[link]:g} Gb/s",
            change=f"replace or reseat the cable between {_name_port(fabric, sender)} and "
            f"{_name_port(fabric, receiver)}, so that it runs at {usual[link]:g} Gb/s",
            heat=float(seconds[link]),
            apply=partial(set_speed, port=ends[0], gbps=float(usual[link])),
            remakes_tables=False,
        )


def _describe_slow_switch(situation: Situation, rail: int, switch: SlowSwitch) -> Repair:
    fabric = situation.subnets[rail].fabric
    name = name_node(fabric, switch.node)
    usual = " or ".join(f"{gbps:g}" for gbps in np.unique(switch.usual).tolist())
    ports = [_list_ends(fabric, link)[0] for link in switch.links.tolist()]

    def speed_up(each: Fabric) -> Fabric:
        for port, gbps in zip(ports, switch.usual.tolist(), strict=True):
            each = set_speed(each, port, gbps)
        return each

    return Repair(
        cause=SLOW_LINK,
        rail=rail,
        at=name,
        evidence=f"{switch.describe(fabric)}: the switch is an older model, or cables, firmware or port settings limit "
        "the links",
        change=f"find what limits {name}, or replace the switch, so that the links run at {usual} Gb/s",
        heat=float(situation.seconds[rail][switch.links].max(initial=0.0)),
        apply=speed_up,
        remakes_tables=False,
    )


def _find_misfits(situation: Situation, rail: int, fitted: RegularCabling) -> list[Repair]:
    """Return repairs of misplaced cables, then of the cables that are missing after these repairs."""
    fabric = situation.subnets[rail].fabric
    lacking = [(int(low), int(high)) for low, high in fitted.missing.tolist()]
    if not lacking and not len(fitted.extra):
        return []
    # Use each port for one repair only: all repairs may be applied together.
    ports = FreePorts(fabric)
    repairs = []
    extra = fitted.extra.tolist()
    while extra:
        links, pairs = [extra.pop(0)], []
        for node in fabric.link_node[links[0]].tolist():
            pair = next((each for each in lacking if node in each), None)
            if pair is not None:
                lacking.remove(pair)
                pairs.append(pair)
        # The extra cables a-b and c-d are swapped if the cables a-c and b-d are missing.
        others = set(np.ravel(pairs).tolist()) - set(fabric.link_node[links[0]].tolist())
        second = next((each for each in extra if set(fabric.link_node[each].tolist()) == others), None)
        if second is not None and len(pairs) == 2:
            extra.remove(second)
            links.append(second)
        repairs.append(_describe_move(situation, rail, fitted, links, pairs, ports))
    by_switch: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for low, high in lacking:
        by_switch[low].append((low, high))
    missing = [_describe_missing(situation, rail, fitted, pairs, ports) for pairs in by_switch.values()]
    return [*repairs, *filter(None, missing)]


def _describe_move(
    situation: Situation,
    rail: int,
    fitted: RegularCabling,
    links: list[int],
    pairs: list[tuple[int, int]],
    ports: FreePorts,
) -> Repair:
    fabric = situation.subnets[rail].fabric
    ends = [end for link in links for end in _list_ends(fabric, link)]
    names = [_name_port(fabric, end) for end in ends]
    ports.free(ends)
    cables = _plan_cables(fabric, pairs, ports, ends)
    wanted = " and ".join(_name_cable(fabric, cable) for cable in cables)
    unplugged = f"unplug the cable between {names[0]} and {names[1]}"
    unplugged += f" and the cable between {names[2]} and {names[3]}" if len(links) > 1 else ""
    return Repair(
        cause=WRONG_CABLE,
        rail=rail,
        at=f"{names[0]} to {names[1]}",
        evidence=f"a {fitted.name} has no cable between {names[0]} and {names[1]}"
        + (f", but a cable between {' and '.join(_name_pair(fabric, pair) for pair in pairs)}" if pairs else ""),
        change=f"{unplugged}; cable {wanted}" if cables else unplugged,
        heat=_heat(situation, rail, [end.node for end in ends]),
        apply=lambda each: add_cables(remove_links(each, ends), cables),
        remakes_tables=True,
    )


def _describe_missing(
    situation: Situation, rail: int, fitted: RegularCabling, pairs: list[tuple[int, int]], ports: FreePorts
) -> Repair | None:
    """Return the repair of a switch's missing cables; None if the switches have no free ports."""
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    low = pairs[0][0]
    cables = _plan_cables(fabric, pairs, ports, [])
    if not cables:
        return None
    count = Counter(_name_pair(fabric, pair) for pair in pairs)
    names = ", ".join(f"{name} ({number} cables)" if number > 1 else name for name, number in count.items())
    is_uplink = level[pairs[0][0]] < level[pairs[0][1]]
    return Repair(
        cause=MISSING_UPLINK if is_uplink else MISSING_CABLE,
        rail=rail,
        at=name_node(fabric, low) if is_uplink else _name_pair(fabric, pairs[0]),
        evidence=f"{count_of(len(pairs), 'cable')} of a {fitted.name} {'is' if len(pairs) == 1 else 'are'} missing "
        f"between {names}; other switches of the level have all their cables",
        change="repair or plug " + _list_cables(fabric, cables, len(cables)),
        advice="repair or plug " + _list_cables(fabric, cables, _CABLES_ADVISED),
        heat=_heat(situation, rail, [node for pair in pairs for node in pair]),
        apply=partial(add_cables, cables=cables),
        remakes_tables=True,
    )


def _find_few_uplinks(situation: Situation, rail: int) -> Iterator[Repair]:
    """Yield a repair for each switch of the most loaded link between switches, if the switch has too few uplinks.

    The cause is MISSING_UPLINK if there are fewer uplinks than usual, and OVERSUBSCRIPTION if the uplinks are too slow
    for the leaf's hosts (`_LOCAL`). A leaf with both faults has MISSING_UPLINK if one uplink, or at most a quarter, is
    missing. At the top level, links within the level count as uplinks.
    """
    busiest = situation.most_loaded_between_switches()
    if busiest is None or busiest.rail != rail:
        return
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    is_switch = fabric.node_kind == NodeKind.SWITCH
    of_ends = level[fabric.link_node]
    upward = is_switch[fabric.link_node].all(axis=1)[:, np.newaxis] & (of_ends <= of_ends[:, ::-1])
    uplinks = np.bincount(fabric.link_node[upward], minlength=fabric.nodes)
    at_hosts = np.broadcast_to(~is_switch[fabric.link_node].all(axis=1)[:, np.newaxis], upward.shape)
    hosts = np.bincount(fabric.link_node[at_hosts], minlength=fabric.nodes)
    # Use the usual speed for the links of a slow switch, so that slow links are not taken for missing uplinks.
    speed = np.nan_to_num(fabric.link_gbps)
    for switch in find_slow_switches(fabric, level):
        speed[switch.links] = switch.usual
    gbps = np.broadcast_to(speed[:, np.newaxis], upward.shape)
    host_gbps, up_gbps = (
        np.bincount(fabric.link_node[each], weights=gbps[each], minlength=fabric.nodes) for each in (at_hosts, upward)
    )
    ratio = host_gbps / np.maximum(up_gbps, 1e-9)
    for node in fabric.link_node[busiest.link].tolist():
        peers = np.flatnonzero(is_switch & (level == level[node]))
        counts, often = np.unique(uplinks[peers], return_counts=True)
        usual = int(counts[often.argmax()])
        is_rare = (uplinks[peers] < usual).mean() <= max(_FEW, 1.01 / len(peers))
        missing = usual - int(uplinks[node]) if is_rare and 2 * often.max() > len(peers) else 0
        leaves = peers[host_gbps[peers] > 0]
        usual_ratio = float(np.median(ratio[leaves])) if len(leaves) else 0.0
        is_narrow = ratio[node] > max(1.0, _LOCAL * usual_ratio)
        name = name_node(fabric, node)
        if missing > 0 and not (is_narrow and missing > max(1, usual // 4)):
            cause, count = MISSING_UPLINK, missing
            evidence = f"{name} has {uplinks[node]} uplinks; most switches of its level have {usual}"
        elif is_narrow:
            cause = OVERSUBSCRIPTION
            wanted = ratio[node] / max(1.0, usual_ratio) * uplinks[node]
            count = int(np.ceil(wanted - 1e-9)) - int(uplinks[node])
            evidence = (
                f"{name} has {hosts[node]} hosts on {uplinks[node]} uplinks: the hosts' links together are "
                f"{ratio[node]:.2f} times as fast as the uplinks, usually {usual_ratio:.2f} times"
            )
        else:
            continue
        cables = _plan_uplinks(fabric, level, node, count) if uplinks[node] else []
        if cables:
            yield Repair(
                cause=cause,
                rail=rail,
                at=name,
                evidence=evidence,
                change="plug " + _list_cables(fabric, cables, len(cables)),
                advice="plug " + _list_cables(fabric, cables, _CABLES_ADVISED),
                heat=_heat(situation, rail, [node]),
                apply=partial(add_cables, cables=cables),
                remakes_tables=True,
            )


def _plan_uplinks(fabric: Fabric, level: npt.NDArray[np.int32], node: int, count: int) -> list[Cable]:
    """Plan cables from `node` to switches of the next level; switches with the fewest links to `node` come first.

    Switches with links to siblings of `node` are preferred. Siblings are switches of `node`'s level that share with
    `node` a neighbour on the next level. If `node` is on the top level, cables lead to switches of the same level. The
    result is empty if there are too few free ports.
    """
    is_switch = fabric.node_kind == NodeKind.SWITCH
    is_top = not (level[is_switch] > level[node]).any()
    candidates = np.flatnonzero(is_switch & (level == level[node] + (0 if is_top else 1)))
    candidates = candidates[candidates != node]
    near, far = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]]).T
    leads_up = level[far] > level[near]
    siblings = near[(level[near] == level[node]) & np.isin(far, far[leads_up & (near == node)])]
    shared = candidates[np.isin(candidates, far[leads_up & np.isin(near, siblings)])]
    return _plan_evenly(fabric, node, shared if len(shared) else candidates, count, FreePorts(fabric))


def _find_few_links(situation: Situation, rail: int) -> Iterator[Repair]:
    """Yield a repair for each top-level switch with fewer links to lower levels than most comparable switches."""
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    ports = FreePorts(fabric)
    for found in find_few_links(fabric, level):
        for node, having in zip(found.nodes.tolist(), found.count.tolist(), strict=True):
            far = fabric.link_node[:, ::-1][fabric.link_node == node]
            below = np.unique(far[(fabric.node_kind[far] == NodeKind.SWITCH) & (level[far] < found.level)])
            name = name_node(fabric, node)
            if cables := _plan_evenly(fabric, node, below, found.usual - having, ports):
                yield Repair(
                    cause=FEW_LINKS,
                    rail=rail,
                    at=name,
                    evidence=f"{name} has {having} links to switches; most switches of its level have {found.usual}: "
                    "the fabric was built so, or each switch below lacks a cable",
                    change="plug " + _list_cables(fabric, cables, len(cables)),
                    advice="plug " + _list_cables(fabric, cables, _CABLES_ADVISED),
                    heat=_heat(situation, rail, [node]),
                    apply=partial(add_cables, cables=cables),
                    remakes_tables=True,
                )


def _plan_evenly(
    fabric: Fabric, node: int, candidates: npt.NDArray[np.integer], count: int, ports: FreePorts
) -> list[Cable]:
    """Plan cables from `node`, each to the candidate with the fewest links to `node`; [] if free ports are too few."""
    is_switch = fabric.node_kind == NodeKind.SWITCH
    near, far = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]]).T
    links = {each: int((far[near == node] == each).sum()) for each in candidates.tolist()}
    downs = np.bincount(near[is_switch[near] & is_switch[far]], minlength=fabric.nodes)
    gbps = usual_speed(fabric, node)
    cables: list[Cable] = []
    while links and len(cables) < count:
        other = min(links, key=lambda each: (links[each], int(downs[each]), each))
        wanted = ports.find_patterned(node, other), ports.find_patterned(other, node)
        one, end = ports.take(node, wanted[0]), ports.take(other, wanted[1])
        if one is None or end is None:
            return []
        cables.append(Cable(one, end, gbps, (one == wanted[0], end == wanted[1])))
        links[other] += 1
        downs[other] += 1
    return cables


def _plan_cables(
    fabric: Fabric, pairs: Iterable[tuple[int, int]], ports: FreePorts, freed: list[PortOfNode]
) -> list[Cable]:
    """Plan a cable for each pair of nodes, at ports of `find_patterned`, else `freed` ports, else any free ports."""
    freed_at = {end.node: end for end in freed}
    cables = []
    for low, high in pairs:
        wanted = [
            ports.find_patterned(node, peer) or freed_at.pop(node, None) for node, peer in ((low, high), (high, low))
        ]
        one, other = (ports.take(node, port) for node, port in zip((low, high), wanted, strict=True))
        if one is not None and other is not None:
            cables.append(Cable(one, other, usual_speed(fabric, low), (one == wanted[0], other == wanted[1])))
    return cables


def _list_ends(fabric: Fabric, link: int) -> list[PortOfNode]:
    return [
        PortOfNode(*end) for end in zip(fabric.link_node[link].tolist(), fabric.link_port[link].tolist(), strict=True)
    ]


def _name_port(fabric: Fabric, end: PortOfNode) -> str:
    return f"{name_node(fabric, end.node)} port {end.port}"


def _name_cable(fabric: Fabric, cable: Cable) -> str:
    one, other = (
        f"{name_node(fabric, end.node)} ({f'port {end.port}' if is_decided else 'any free port'})"
        for end, is_decided in zip((cable.one, cable.other), cable.decided, strict=True)
    )
    return f"{one} and {other}"


def _list_cables(fabric: Fabric, cables: Sequence[Cable], most: int) -> str:
    """Return text that names the first `most` cables and the number of further cables."""
    named = " and ".join(f"between {_name_cable(fabric, cable)}" for cable in cables[:most])
    more = f", and {len(cables) - most} more" if len(cables) > most else ""
    return f"the {'cable' if len(cables) == 1 else 'cables'} {named}{more}"


def _name_pair(fabric: Fabric, pair: tuple[int, int]) -> str:
    return f"{name_node(fabric, pair[0])} and {name_node(fabric, pair[1])}"


def _heat(situation: Situation, rail: int, nodes: list[int]) -> float:
    """Return the largest time of a link direction between one of `nodes` and a switch."""
    fabric = situation.subnets[rail].fabric
    here = np.isin(fabric.link_node, nodes).any(axis=1)
    here &= (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    return float(situation.seconds[rail][here].max(initial=0.0))


def _find_usual_speeds(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return, for each link, the commonest speed of links between the same two levels.

    Returns:
        float64 [link], Gbit/s; the link's own speed if no speed has a majority.
    """
    pair = np.sort(level[fabric.link_node], axis=1)
    levels = pair[:, 0].astype(np.int64) * (int(level.max(initial=0)) + 1) + pair[:, 1]
    usual = fabric.link_gbps.copy()
    for kind in np.unique(levels):
        members = np.flatnonzero((levels == kind) & ~np.isnan(fabric.link_gbps))
        speeds, counts = np.unique(fabric.link_gbps[members], return_counts=True)
        # A speed is usual only if more than half of the links between the two levels have this speed.
        if len(speeds) and 2 * counts.max() > len(members):
            usual[members] = speeds[counts.argmax()]
    return usual


def remove_links(fabric: Fabric, ports: Iterable[PortOfNode]) -> Fabric:
    """Return the fabric without the links at `ports`."""
    kept = np.ones(fabric.links, np.bool_)
    for port in ports:
        kept &= ~((fabric.link_node == port.node) & (fabric.link_port == port.port)).any(axis=1)
    return replace(fabric, **{name: getattr(fabric, name)[kept] for name in _OF_LINKS})


def add_cables(fabric: Fabric, cables: Sequence[Cable]) -> Fabric:
    """Return the fabric with the cables. If a port of a cable is in use, the node's first free port replaces it."""
    if not cables:
        return fabric
    free = FreePorts(fabric)
    ends = [sorted(free.take(end.node, end) or end for end in (cable.one, cable.other)) for cable in cables]
    new = {
        "link_node": np.array([[end.node for end in pair] for pair in ends], np.int32),
        "link_port": np.array([[end.port for end in pair] for pair in ends], np.int32),
        "link_gbps": np.array([cable.gbps for cable in cables], np.float64),
        "link_lanes": np.zeros(len(cables), np.uint8),
        "link_half": np.zeros(len(cables), np.bool_),
        "link_unequal": np.zeros(len(cables), np.bool_),
    }
    joined = {name: np.concatenate([getattr(fabric, name), new[name]]) for name in _OF_LINKS}
    order = np.lexsort((joined["link_port"][:, 0], joined["link_node"][:, 0]))
    columns: dict[str, Any] = {name: column[order] for name, column in joined.items()}
    return replace(fabric, **columns)


def set_speed(fabric: Fabric, port: PortOfNode, gbps: float) -> Fabric:
    """Return the fabric with data rate `gbps`, in Gbit/s, on the link whose first end is `port`."""
    is_link = (fabric.link_node[:, 0] == port.node) & (fabric.link_port[:, 0] == port.port)
    return replace(fabric, link_gbps=np.where(is_link, gbps, fabric.link_gbps))


class FreePorts:
    """Ports of a fabric that no link uses.

    Args:
        fabric: the fabric. A switch with an unknown number of ports is assumed to have the maximum number.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._ports = np.where(fabric.node_ports > 0, fabric.node_ports, PORTS - 2).tolist()
        self._used = set(_list_all_ends(fabric))
        peers = fabric.link_node[:, ::-1].ravel().tolist()
        self._far: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for end, far in zip(_list_all_ends(fabric), peers, strict=True):
            self._far[end.node][end.port] = far

    def free(self, ports: Iterable[PortOfNode]) -> None:
        """Mark ports as free; their links will be removed."""
        self._used.difference_update(ports)

    def find_patterned(self, node: int, far: int) -> PortOfNode | None:
        """Return the node's free port with the number of the port that its peers cable to switch `far`, or None.

        Peers are switches with links to `far` and to another neighbour of the node: leaves with common spines. All
        peers with a link at this port number must have the link to `far` there. If there are several peers, at least
        two peers must use this port number.
        """
        neighbours = set(self._far[node].values()) - {far}
        others = [self._far[each] for each in set(self._far[far].values()) - {node}]
        peers = [each for each in others if far in each.values() and neighbours & set(each.values())]
        votes: defaultdict[int, list[bool]] = defaultdict(list)
        for each in peers:
            for port, end in each.items():
                votes[port].append(end == far)
        for port in sorted(votes):
            found = PortOfNode(node, port)
            if (
                found not in self._used
                and port <= self._ports[node]
                and all(votes[port])
                and len(votes[port]) >= min(2, len(peers))
            ):
                return found
        return None

    def take(self, node: int, wanted: PortOfNode | None = None) -> PortOfNode | None:
        """Reserve a free port of a node, and return the port; None if no port is free. If `wanted` is free, take it."""
        candidates = (PortOfNode(node, port) for port in range(1, self._ports[node] + 1))
        found = wanted if wanted and wanted not in self._used else None
        found = found or next((each for each in candidates if each not in self._used), None)
        if found is not None:
            self._used.add(found)
        return found


def _list_all_ends(fabric: Fabric) -> Iterator[PortOfNode]:
    for node, port in zip(fabric.link_node.ravel().tolist(), fabric.link_port.ravel().tolist(), strict=True):
        yield PortOfNode(node, port)


def usual_speed(fabric: Fabric, node: int) -> float:
    """Return the median data rate of a switch's links to other switches, in Gbit/s.

    Without a known rate of these links, return the median of all links between switches.
    """
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1) & np.isfinite(fabric.link_gbps)
    own: npt.NDArray[np.bool_] = between & (fabric.link_node == node).any(axis=1)
    rates = fabric.link_gbps[own if own.any() else between]
    return float(np.median(rates)) if len(rates) else 0.0
