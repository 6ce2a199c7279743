# SPDX-License-Identifier: Apache-2.0
"""Try other forwarding tables as remedies: tables of ibprof's rules and, if installed, of OpenSM's engines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ibprof.errors import IbprofError, MissingToolError
from ibprof.text.quantities import format_seconds
from ibprof_converter.choices import BALANCED, D_MOD_K, MIN_HOP, TABLES
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.hotspots.causes.load_cause import (
    FORWARDING_TABLES,
    NEAR_BEST,
    ROUTING,
    TABLES_GAIN,
    Change,
    name_end,
)
from ibprof_converter.hotspots.causes.oversubscription import find_routing_bound
from ibprof_converter.hotspots.causes.situation import Situation
from ibprof_converter.lab import BY_LANES, CYCLE, FREE, classify_deadlock
from ibprof_converter.routing.route_choice import are_modelled
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

RULES = (MIN_HOP, D_MOD_K, BALANCED)
"""Rules by which ibprof computes forwarding tables. OpenSM can load these tables from a file."""

TRIED_ENGINES = ("minhop", "updn", "ftree", "dor", "sssp", "dfsssp")

HOSTS_LIMIT = 3000
"""Largest number of hosts of a rail: computing tables for more hosts takes too long for a report."""

OPENSM_HOSTS_LIMIT = 600
"""Largest number of hosts of a rail for which OpenSM is run. OpenSM needs 1 s for 150 hosts, 20 s for 1,500 hosts."""


_ALIKE = math.log(1.02)
"""Two link times count as equal if they differ by at most 2%."""


@dataclass(frozen=True, slots=True)
class RemadeTables:
    """Forwarding tables of one rail, computed by a rule or an engine.

    Attributes:
        subnet: the rail with these tables; None if no tables were computed.
        deadlock: the result of `classify_deadlock`.
        why_not: the reason why no tables were computed, or why these tables are no remedy; else empty.
    """

    subnet: Subnet | None
    deadlock: str = FREE
    why_not: str = ""


class TableMaker:
    """Computes forwarding tables; caches the tables of each pair of rule (or engine) and rail."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], tuple[Fabric, RemadeTables]] = {}
        self._missing = ""

    def make(self, rule: str, subnet: Subnet) -> RemadeTables:
        """Return the rail with tables that are computed by a rule or an engine."""
        key = rule, id(subnet.fabric)
        if key not in self._made:
            self._made[key] = subnet.fabric, self._make(rule, subnet)
        return self._made[key][1]

    def _make(self, rule: str, subnet: Subnet) -> RemadeTables:
        fabric = subnet.fabric
        hosts = int((fabric.node_kind == NodeKind.CA).sum())
        limit = HOSTS_LIMIT if rule in RULES else OPENSM_HOSTS_LIMIT
        if hosts > limit:
            return RemadeTables(None, why_not=f"not tried: {hosts:,} hosts; the limit is {limit:,}")
        if rule not in RULES:
            return self._ask_opensm(rule, subnet)
        if rule == BALANCED:
            from ibprof_converter.routing.balanced_tables import balance_tables  # noqa: PLC0415  (few reports try tables)

            made = Subnet(fabric, balance_tables(fabric, subnet.tables), (), route_source=subnet.route_source)
            return RemadeTables(made, classify_deadlock([made]))
        from ibprof_converter.routing.modelled_tables import model_tables  # noqa: PLC0415  (few reports try tables)

        tables, model = model_tables(fabric, rule)
        if model != rule:
            return RemadeTables(None, why_not="the fabric is no regular tree")
        made = Subnet(fabric, tables, (), route_source=subnet.route_source)
        return RemadeTables(made, classify_deadlock([made]))

    def _ask_opensm(self, engine: str, subnet: Subnet) -> RemadeTables:
        if self._missing:
            return RemadeTables(None, why_not=self._missing)
        from ibprof_converter.routing.route_choice import route_by_opensm  # noqa: PLC0415  (few reports try tables)

        try:
            found = route_by_opensm(subnet.fabric, engine)
        except MissingToolError as error:
            self._missing = f"not tried: {error}"
            return RemadeTables(None, why_not=self._missing)
        except IbprofError as error:
            return RemadeTables(None, why_not=f"OpenSM made no tables: {error}")
        if found.engine != engine:
            return RemadeTables(None, why_not=f"refuses this fabric; OpenSM uses {found.engine} instead")
        made = replace(found.subnet, route_source=subnet.route_source)
        deadlock = classify_deadlock([made], found.lanes)
        why_not = "can deadlock on one virtual lane" if deadlock == CYCLE else ""
        return RemadeTables(made, deadlock, why_not)

    def find_rule(self, situation: Situation, rail: int) -> str:
        """Return the rule or engine that made a rail's tables.

        If the rule is unknown, return the rule whose tables lead to about the present largest link time.
        After a repair, ibprof recomputes tables by this rule.
        """
        subnet = situation.subnets[rail]
        kind, _, made_by = subnet.route_source.partition(":")
        if kind != TABLES and made_by in (*RULES, *TRIED_ENGINES):
            return made_by
        nearest, chosen = math.inf, BALANCED
        for names in (RULES, TRIED_ENGINES):
            for name in names:
                made = self.make(name, subnet).subnet
                if made is None:
                    continue
                if _are_equal(subnet, made):
                    return name
                rails = [*situation.subnets]
                rails[rail] = made
                seconds = situation.changed(subnets=rails).max_seconds
                distance = abs(math.log(max(seconds, 1e-300) / situation.max_seconds))
                if distance < nearest - 1e-9:
                    nearest, chosen = distance, name
            if nearest <= _ALIKE:
                break
        return chosen


def _are_equal(one: Subnet, other: Subnet) -> bool:
    """Return true if two subnets of one fabric have equal forwarding entries for all hosts."""
    fabric = one.fabric
    lids = fabric.port_lid[fabric.node_kind[fabric.port_node] == NodeKind.CA]
    columns = [_pick(each.tables, fabric, lids[lids > 0]) for each in (one, other)]
    return bool((columns[0] == columns[1]).all())


def _pick(tables: ForwardingTables, fabric: Fabric, lids: np.ndarray) -> np.ndarray:
    guids = fabric.node_guid[fabric.node_kind == NodeKind.SWITCH]
    picked = np.full((len(guids), len(lids)), UNREACHABLE, np.uint8)
    row = np.minimum(np.searchsorted(tables.switch_guid, guids), max(len(tables.switch_guid) - 1, 0))
    known = tables.switch_guid[row] == guids
    inside = lids < tables.port.shape[1]
    picked[np.ix_(known, inside)] = tables.port[np.ix_(row[known], lids[inside])]
    return picked


def try_tables(situation: Situation, maker: TableMaker, remains: Callable[[float], Change | None]) -> Iterator[Change]:
    """Try tables of OpenSM's engines, then tables of ibprof's rules, which OpenSM loads from a file.

    Args:
        situation: the present situation.
        maker: the maker of tables.
        remains: returns the change that is preferred to tables with a given largest link time, or None.
    """
    why_not = _find_obstacle(situation, remains)
    if why_not:
        yield Change(ROUTING, FORWARDING_TABLES, "other forwarding tables", None, why_not=f"not tried: {why_not}")
        return
    bound = find_routing_bound(situation)
    busiest = situation.most_loaded_between_switches()
    assert busiest is not None
    place = name_end(situation, busiest)
    best = ""
    for name in (*TRIED_ENGINES, *(rule for rule in RULES if rule != MIN_HOP)):
        is_rule = name in RULES
        what = f"forwarding tables by the rule {name}" if is_rule else f"OpenSM's engine {name}"
        if best:
            why_not = f"not tried: with {best}, the time is near the lower bound of all forwarding tables"
            yield Change(ROUTING, FORWARDING_TABLES, what, None, why_not=why_not)
            continue
        made = [maker.make(name, subnet) for subnet in situation.subnets]
        subnets = [each.subnet for each in made if each.subnet is not None]
        why_not = next((each.why_not for each in made if each.why_not), "")
        if len(subnets) < len(made):
            yield Change(ROUTING, FORWARDING_TABLES, what, None, why_not=why_not)
            continue
        if any(each.deadlock == CYCLE for each in made):
            why_not = "can deadlock on one virtual lane"
        after = situation.changed(subnets=subnets)
        if not why_not and after.max_seconds <= NEAR_BEST * bound:
            best = what
        if is_rule:
            advice = (
                f"let OpenSM load tables by the rule {name} from a file of `ibprof-routes write`; write this file "
                "again when cables change"
            )
            command = f"ibprof-routes write --rule {name} LST -o tables.lft"
            change = f"{command}, then opensm -R file -U tables.lft"
        else:
            by_lanes = any(each.deadlock == BY_LANES for each in made)
            lanes = ", with virtual lanes (`qos TRUE`)" if by_lanes else ""
            advice = f"let the subnet manager route by the engine {name}{lanes}: `routing_engine {name}` in opensm.conf"
            change = f"opensm -R {name}{' -Q' if by_lanes else ''}"
        yield Change(
            cause=ROUTING,
            kind=FORWARDING_TABLES,
            what=what,
            after=after,
            most=TABLES_GAIN,
            why_not=why_not,
            at=(place,),
            evidence=(
                f"with {what}, the same traffic needs {format_seconds(after.max_seconds)} on the most loaded link",
                f"with any forwarding tables, the most loaded link needs at least {format_seconds(bound)}",
            ),
            advice=advice,
            change=change,
        )


def _find_obstacle(situation: Situation, remains: Callable[[float], Change | None]) -> str:
    """Return the reason why no tables are tried; empty if tables are tried."""
    if situation.is_adaptive:
        return "switches route adaptively"
    if are_modelled(situation.subnets):
        return "the present tables are not known"
    if situation.max_switch_seconds <= situation.max_host_seconds:
        return "a host's own link is the busiest"
    bound = find_routing_bound(situation)
    if bound > TABLES_GAIN * situation.max_seconds:
        return f"with any forwarding tables, the most loaded link needs at least {format_seconds(bound)}"
    remedy = remains(bound)
    return f"even the best forwarding tables would not be preferred to {remedy.what}" if remedy else ""
