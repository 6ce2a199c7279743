# SPDX-License-Identifier: Apache-2.0
"""From a hot link to its cause: each candidate remedy is applied to the model, the most specific one first.

Two lower bounds come first. No network needs less than the largest time of a host's own link. No routing needs less
than the bytes that cross the narrowest cut over the speed of its links. Time above both is due to the forwarding
tables, or to a placement that fits them badly. Time of a cut above that of the hosts' links is due to the cabling, or
to a placement that sends too much across.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ibprof.text.quantities import format_bytes, format_seconds
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.hotspots.causes.cabling_causes import find_cabling
from ibprof_converter.hotspots.causes.load_cause import (
    FEW_TO_MANY,
    GAIN,
    MANY_TO_FEW,
    OVERSUBSCRIPTION,
    PLACEMENT,
    SMALL_GAIN,
    LoadCause,
    list_some,
    make_finding,
    name_end,
    name_node,
)
from ibprof_converter.hotspots.causes.narrowest_cut import SwitchCut, narrowest_cut
from ibprof_converter.hotspots.causes.placement_moves import PlacementMove, try_moves
from ibprof_converter.hotspots.causes.sender_causes import find_concentration, find_unused_rails
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation
from ibprof_converter.hotspots.causes.slow_link_causes import find_slow_links
from ibprof_converter.hotspots.causes.table_causes import find_bad_tables
from ibprof_converter.traffic.rail_bounds import ESTIMATE, STATIC

_AS_BY_CHANCE = 0.9
"""A placement is no better than chance from this part of the median random one on."""

_MOST_CAUSES = 3

_CUT_DECIDES = 0.7
"""A cut decides from this part of the largest time on."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why the busiest link is as busy as it is.

    Attributes:
        busiest: the link direction of the largest time, in words.
        max_time_s: its time.
        max_host_link_s: the largest time of a host's own link, which no network can go below.
        max_switch_link_s: the largest time of a link between switches.
        cut: the narrowest cut; None where nothing crosses one.
        cut_at: its switches, in words.
        ideal_routing_s: what the same traffic, placed as it is, would need on ideal routing: the larger one of
            `max_host_link_s` and of the cut's time.
        causes: the first one first; empty where no network problem is found.
        load_basis: loads whose times these are, `static` or `estimate`.
    """

    busiest: str
    max_time_s: float
    max_host_link_s: float
    max_switch_link_s: float
    cut: SwitchCut | None
    cut_at: str
    ideal_routing_s: float
    causes: tuple[LoadCause, ...]
    load_basis: str = STATIC

    def as_json(self) -> dict[str, object]:
        """Return it as plain values."""
        cut = self.cut
        return {
            "load_basis": self.load_basis,
            "hottest": self.busiest,
            "max_time_s": self.max_time_s,
            "max_host_link_s": self.max_host_link_s,
            "max_switch_link_s": self.max_switch_link_s,
            "ideal_routing_s": self.ideal_routing_s,
            "cut": None
            if cut is None
            else {
                "at": self.cut_at,
                "rail": cut.rail,
                "bytes": cut.bytes,
                "gbps": cut.gbps,
                "inside_gbps": cut.inside_gbps,
                "time_s": cut.seconds,
            },
            "causes": [cause.as_json() for cause in self.causes],
        }


def diagnose(situation: Situation) -> Diagnosis | None:
    """Find the causes of the largest time; None where no link has one."""
    if situation.max_seconds <= 0:
        return None
    cut = narrowest_cut(situation)
    return Diagnosis(
        busiest=name_end(situation, situation.most_loaded()),
        max_time_s=situation.max_seconds,
        max_host_link_s=situation.max_host_seconds,
        max_switch_link_s=situation.max_switch_seconds,
        cut=cut,
        cut_at=_name_cut(situation, cut) if cut else "",
        ideal_routing_s=max(situation.max_host_seconds, cut.seconds if cut else 0.0),
        causes=tuple(_find_causes(situation)),
        load_basis=ESTIMATE if situation.is_adaptive else STATIC,
    )


def _find_causes(situation: Situation) -> Iterator[LoadCause]:
    """Find one cause after the other, each in what the remedy of the one before leaves."""
    for _ in range(_MOST_CAUSES):
        finding = next(_find_faults(situation), None)
        if finding is None:
            yield from _find_placement_or_design(situation)
            return
        yield finding
        if finding.cause in {MANY_TO_FEW, FEW_TO_MANY}:
            return  # With other partners it is another program.
        situation = finding.remedy


def _find_faults(situation: Situation) -> Iterator[LoadCause]:
    """Look for what is wrong by itself, the most specific first."""
    yield from find_slow_links(situation)
    yield from find_unused_rails(situation)
    yield from find_concentration(situation)
    busiest = situation.most_loaded_between_switches()
    if busiest is not None and situation.max_host_seconds <= SMALL_GAIN * situation.max_switch_seconds:
        yield from find_cabling(situation, busiest)
        if not situation.is_adaptive:
            yield from find_bad_tables(situation, busiest)


def _find_placement_or_design(situation: Situation) -> Iterator[LoadCause]:
    """Distinguish a placement that could be better from a fabric with too few links for any placement.

    Where a cut decides, placements are compared by the bytes that they send across such cuts. The placement is the
    cause if the ranks, on the same hosts, send as much across as by chance, and could send less. It is also the cause
    if the hosts are scattered over more parts than they need. Otherwise the links are too few.
    """
    busiest = situation.most_loaded_between_switches()
    if busiest is None or situation.max_host_seconds > GAIN * situation.max_switch_seconds:
        return  # Hosts' own links are about as busy: the network holds little up.
    cut = narrowest_cut(situation)
    own = try_moves(situation, own_hosts_only=True)
    free = try_moves(situation, own_hosts_only=False)
    helped = [move for move in (own, free) if move and move.after.max_seconds <= GAIN * situation.max_seconds]
    if cut is None or cut.seconds < _CUT_DECIDES * situation.max_switch_seconds or cut.inside_gbps <= cut.gbps:
        cut = None
    findings = [_blame_placement(situation, move, move is own, busiest) for move in helped[:1]]
    if cut is not None:
        by_chance = own in helped and own is not None and cut.seconds >= _AS_BY_CHANCE * own.random_cut_seconds
        design = _blame_design(situation, cut)
        if design.max_time_after_s <= GAIN * situation.max_seconds:
            findings.insert(1 if by_chance or cut.used_parts > cut.needed_parts else 0, design)
    yield from findings


def _blame_placement(situation: Situation, move: PlacementMove, own: bool, busiest: LinkDirection) -> LoadCause:
    where = "on the same hosts" if own else "on hosts of this fabric, free or not"
    return make_finding(
        PLACEMENT,
        situation,
        move.after,
        [name_end(situation, busiest)],
        [
            f"another placement {where} needs {format_seconds(move.after.max_seconds)} on the busiest link; random "
            f"ones need {format_seconds(move.random_seconds)} (median)",
            f"hosts' own links need {format_seconds(situation.max_host_seconds)}",
        ],
        "ibprof-place finds such a placement and writes the rank file"
        + (" (--hosts own)" if own else " (--hosts FILE with the hosts that are free)"),
    )


def _blame_design(situation: Situation, cut: SwitchCut) -> LoadCause:
    """Widen every part like the cut's to the speed of its hosts' links."""
    factor = cut.inside_gbps / cut.gbps
    after = _widen(situation, cut, factor)
    name = _name_cut(situation, cut)
    return make_finding(
        OVERSUBSCRIPTION,
        situation,
        after,
        [name],
        [
            f"{format_bytes(cut.bytes)} cross the links around {name}, {cut.gbps:g} Gb/s total, where hosts have "
            f"{cut.inside_gbps:g} Gb/s ({factor:.2f} to 1): {format_seconds(cut.seconds)} at best, on any routes"
        ],
        f"spread the job over more leaves or keep partners on one, or add links: {factor:.2f} times as many",
    )


def _widen(situation: Situation, cut: SwitchCut, factor: float) -> Situation:
    subnets = []
    for subnet, level in zip(situation.subnets, situation.levels, strict=True):
        fabric = subnet.fabric
        upper = np.maximum(level[fabric.link_node[:, 0]], level[fabric.link_node[:, 1]])
        between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
        wide = between & (upper > cut.level) if cut.level else between
        gbps = np.where(wide, fabric.link_gbps * factor, fabric.link_gbps)
        subnets.append(replace(subnet, fabric=replace(fabric, link_gbps=gbps)))
    return situation.changed(subnets=subnets)


def _name_cut(situation: Situation, cut: SwitchCut) -> str:
    fabric = situation.subnets[cut.rail].fabric
    switches = [name_node(fabric, int(node)) for node in cut.nodes if fabric.node_kind[node] == NodeKind.SWITCH]
    return list_some(switches, 3)
