# SPDX-License-Identifier: Apache-2.0
"""Changes that are no repairs: another rank order, other hosts, adapters, forwarding tables, partners, more links."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ibprof.text.quantities import format_bytes, format_seconds
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.hotspots.causes.load_cause import (
    GAIN,
    HOSTS,
    LINKS,
    NEAR_BEST,
    OVERSUBSCRIPTION,
    PLACEMENT,
    RANK_ORDER,
    ROUTING,
    TABLES,
    TABLES_GAIN,
    Change,
    list_some,
    name_end,
    name_node,
)
from ibprof_converter.hotspots.causes.narrowest_cut import SwitchCut, narrowest_cut
from ibprof_converter.hotspots.causes.placement_moves import (
    PAIRS_LIMIT,
    PlacementMove,
    move_hosts,
    reorder_ranks,
)
from ibprof_converter.hotspots.causes.sender_causes import find_concentration, find_unshared
from ibprof_converter.hotspots.causes.situation import Situation
from ibprof_converter.hotspots.causes.table_rules import RULES, TRIED_ENGINES, TableMaker
from ibprof_converter.lab import BY_LANES, CYCLE
from ibprof_converter.routing.modelled_tables import MIN_HOP
from ibprof_converter.routing.route_choice import are_modelled

_BUSY = 0.9
"""Share of the most loaded link between switches from which on hosts' own links are about as busy."""


def try_changes(situation: Situation, maker: TableMaker) -> Iterator[Change]:
    """Try all changes that are no repairs in the model."""
    yield from _try_placements(situation)
    yield from find_unshared(situation)
    yield from find_concentration(situation)
    cut = narrowest_cut(situation)
    bound = max(situation.max_host_seconds, cut.seconds if cut else 0.0)
    yield from _try_tables(situation, maker, bound)
    if cut is not None and situation.max_host_seconds <= _BUSY * situation.max_switch_seconds:
        yield from _try_links(situation, cut)


def _is_up_to_network(situation: Situation) -> bool:
    """Tell whether links between switches are clearly busier than hosts' own, which moved hosts take along."""
    return situation.max_host_seconds <= GAIN * situation.max_switch_seconds


def _try_placements(situation: Situation) -> Iterator[Change]:
    ranks = situation.ranks
    slots = ranks.slots.most_of_a_host if ranks else 1
    what = "another rank placement"
    if slots == 1 and not _is_up_to_network(situation):
        why_not = "not tried: hosts' own links are about as busy as those between switches"
        yield Change(PLACEMENT, RANK_ORDER, what, None, why_not=why_not)
        return
    pairs = len(ranks.bytes if ranks and slots > 1 else situation.flows.bytes)
    if pairs > PAIRS_LIMIT:
        why_not = f"not tried: {pairs:,} pairs; the limit is {PAIRS_LIMIT:,}"
        yield Change(PLACEMENT, RANK_ORDER, what, None, why_not=why_not)
        return
    order = reorder_ranks(situation) if slots > 1 else move_hosts(situation, own_hosts_only=True)
    yield _as_change(situation, order, RANK_ORDER, "in another order on the same hosts", " --hosts own")
    groupings = [situation, order.after] if slots > 1 and order else [situation]
    tried = [move_hosts(each, own_hosts_only=False) for each in groupings if _is_up_to_network(each)]
    if tried:
        best = min((each for each in tried if each), key=lambda each: each.after.max_seconds, default=None)
        options, free = f" --slots {slots}" if slots > 1 else "", "; --hosts FILE names the hosts that are free"
        yield _as_change(situation, best, HOSTS, "on any hosts of this fabric, free or not", options, free)


def _as_change(
    situation: Situation, move: PlacementMove | None, kind: str, where: str, options: str, more: str = ""
) -> Change:
    what = f"ranks {where}"
    if move is None:
        return Change(PLACEMENT, kind, what, None, why_not="nothing can be moved")
    own, own_after = situation.max_host_seconds, move.after.max_host_seconds
    then = "" if math.isclose(own, own_after, rel_tol=1e-3) else f", and {format_seconds(own_after)} then"
    return Change(
        cause=PLACEMENT,
        kind=kind,
        what=what,
        after=move.after,
        at=(name_end(situation, situation.most_loaded()),),
        evidence=(
            f"another placement {where.removeprefix('in another order ')} needs "
            f"{format_seconds(move.after.max_seconds)} on the most loaded link; random ones need "
            f"{format_seconds(move.random_seconds)} (median)",
            f"hosts' own links need {format_seconds(own)}{then}",
        ),
        advice=f"place the ranks as ibprof-place{options} finds it, which also writes the rank file{more}",
        change=f"ibprof-place LST... TRAFFIC{options}",
    )


def _try_tables(situation: Situation, maker: TableMaker, bound: float) -> Iterator[Change]:
    """Try the tables of OpenSM's engines, and of rules whose tables OpenSM loads from a file."""
    what = "other forwarding tables"
    if situation.is_adaptive:
        yield Change(ROUTING, TABLES, what, None, why_not="not tried: switches route adaptively")
        return
    if are_modelled(situation.subnets):
        yield Change(ROUTING, TABLES, what, None, why_not="not tried: the present tables are not known")
        return
    busiest = situation.most_loaded_between_switches()
    if busiest is None or situation.max_switch_seconds <= situation.max_host_seconds:
        yield Change(ROUTING, TABLES, what, None, why_not="not tried: a host's own link is the busiest")
        return
    if bound > TABLES_GAIN * situation.max_seconds:
        why_not = f"not tried: no tables need less than {format_seconds(bound)} (the narrowest cut)"
        yield Change(ROUTING, TABLES, what, None, why_not=why_not)
        return
    place = name_end(situation, busiest)
    reached = ""
    for name in (*TRIED_ENGINES, *(rule for rule in RULES if rule != MIN_HOP)):
        is_rule = name in RULES
        what = f"forwarding tables by the rule {name}" if is_rule else f"OpenSM's engine {name}"
        if reached:
            yield Change(
                ROUTING, TABLES, what, None, why_not=f"not tried: {reached} leaves the least that any tables can"
            )
            continue
        made = [maker.make(name, subnet) for subnet in situation.subnets]
        subnets = [each.subnet for each in made if each.subnet is not None]
        why_not = next((each.why_not for each in made if each.why_not), "")
        if len(subnets) < len(made):
            yield Change(ROUTING, TABLES, what, None, why_not=why_not)
            continue
        if any(each.deadlock == CYCLE for each in made):
            why_not = "can deadlock on one virtual lane"
        after = situation.changed(subnets=subnets)
        if not why_not and after.max_seconds <= NEAR_BEST * bound:
            reached = what
        by_lanes = any(each.deadlock == BY_LANES for each in made)
        yield Change(
            cause=ROUTING,
            kind=TABLES,
            what=what,
            after=after,
            most=TABLES_GAIN,
            why_not=why_not,
            at=(place,),
            evidence=(
                f"with {what}, the same traffic needs {format_seconds(after.max_seconds)} on the most loaded link",
                f"no tables need less than {format_seconds(bound)}",
            ),
            advice=_advise_tables(name, is_rule, by_lanes),
            change=f"opensm -R file -U tables.lft (tables.lft by: ibprof-routes write --rule {name} LST -o tables.lft)"
            if is_rule
            else f"opensm -R {name}{' -Q' if by_lanes else ''}",
        )


def _advise_tables(name: str, is_rule: bool, by_lanes: bool) -> str:
    if is_rule:
        return (
            f"let OpenSM load tables by the rule {name} from a file: `ibprof-routes write` writes it; they have to be "
            "written anew when cables change"
        )
    lanes = ", with virtual lanes (`qos TRUE`)" if by_lanes else ""
    return f"let the subnet manager route by the engine {name}{lanes}: `routing_engine {name}` in opensm.conf"


def _try_links(situation: Situation, cut: SwitchCut) -> Iterator[Change]:
    """Widen every part like the narrowest one, as far as it holds the job up, and no further than its hosts' links."""
    needed = cut.seconds / max(situation.max_host_seconds, 1e-300)
    factor = min(needed, cut.inside_gbps / cut.gbps) if cut.inside_gbps > cut.gbps else needed
    what = f"{factor:.2f} times as many links, or as fast ones, across such cuts"
    if cut.inside_gbps <= cut.gbps:
        why_not = "not tried: the narrowest cut is as wide as the links of the hosts behind it"
        yield Change(OVERSUBSCRIPTION, LINKS, "more or faster links", None, why_not=why_not)
        return
    if factor <= 1 or not np.isfinite(factor):
        return
    name = name_cut(situation, cut)
    yield Change(
        cause=OVERSUBSCRIPTION,
        kind=LINKS,
        what=what,
        after=widen(situation, cut, factor),
        at=(name,),
        evidence=(
            f"{format_bytes(cut.bytes)} cross the links around {name}, {cut.gbps:g} Gb/s total, where hosts have "
            f"{cut.inside_gbps:g} Gb/s ({cut.inside_gbps / cut.gbps:.2f} to 1): {format_seconds(cut.seconds)} at best, "
            "on any routes",
        ),
        advice=f"spread the job over more leaves, keep partners on one, or add links: {factor:.2f} times as many",
        change=f"{factor:.2f} times as many links, or as fast ones, around {name}, and around all parts alike",
    )


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
