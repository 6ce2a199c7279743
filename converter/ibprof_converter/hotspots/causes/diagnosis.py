# SPDX-License-Identifier: Apache-2.0
"""Find the cause of a hot link: change the model; the cheapest effective change names the cause.

Two lower bounds are computed first. The largest time of a host link is a lower bound for any network. The time of
the narrowest cut is a lower bound for any routing.

Then repairs of faults are tried, alone and together. If no repair helps, other changes are tried. New forwarding tables
are computed only if ideal tables would be the remedy. The best change leaves the smallest link time: the time of the
most loaded link direction. The remedy is the cheapest change that leaves at most 5% more link time than the best
change. The remedy is applied to the model before the next cause is searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ibprof.text.quantities import count_of
from ibprof_converter.choices import BALANCED
from ibprof_converter.hotspots.causes.load_cause import (
    FORWARDING_TABLES,
    GAIN,
    KINDS,
    LINKS,
    NEAR_BEST,
    PROGRAM,
    REPAIR,
    ROUTING,
    SMALL_GAIN,
    TABLES_GAIN,
    AlikeLinks,
    Change,
    LoadCause,
    LoadedBy,
    TriedChange,
    list_some,
    name_end,
)
from ibprof_converter.hotspots.causes.oversubscription import (
    SwitchCut,
    find_routing_bound,
    name_cut,
    narrowest_cut,
    try_links,
)
from ibprof_converter.hotspots.causes.placement_moves import try_placements
from ibprof_converter.hotspots.causes.repairs import Repair, find_repairs
from ibprof_converter.hotspots.causes.sender_causes import try_adapters, try_partners
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation
from ibprof_converter.hotspots.causes.table_rules import RULES, TableMaker, try_tables
from ibprof_converter.traffic.link_loads import ESTIMATE, STATIC

_MOST_CAUSES = 3

_MOST_TRIED = 8
"""Of each cause, at most this number of single repairs are tried: those at the most loaded links."""

_EXPENSIVE = {PROGRAM, LINKS}
_SPLITS = "bytes would arrive nowhere"
_OTHER_REPAIRS = "the chosen repairs leave a shorter link time, are fewer, or were tried earlier"

Progress = Callable[[str], None]
Repairs = tuple[Repair, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Causes of the largest link time: the time of the most loaded link direction at line rate.

    Attributes:
        busiest: text that names the link direction with the largest time.
        max_time_s: the largest time of a link direction, in seconds.
        max_host_link_s: the largest time of a host link, in seconds; a lower bound for any network.
        max_switch_link_s: the largest time of a link between switches, in seconds.
        cut: the narrowest cut; None if no bytes cross a cut.
        cut_at: text that names the switches of the narrowest cut.
        ideal_routing_s: lower bound for any routing: the larger of `max_host_link_s` and the cut's time.
        causes: the causes, in the order found; empty if no network problem is found.
        load_basis: `static` if times are from loads along forwarding tables, `estimate` with adaptive routing.
        tried: all considered changes; `why_not` states why a change is not the remedy.
        loaded_by: ranks, call, line and region that load the busiest link direction most; None if unknown.
        busiest_at: rail, link and end of the busiest link direction; None if unknown.
        alike: number of link directions of the same kind with about the largest time; None if unknown.
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
    tried: tuple[TriedChange, ...] = ()
    loaded_by: LoadedBy | None = None
    busiest_at: LinkDirection | None = None
    alike: AlikeLinks | None = None

    def as_json(self) -> dict[str, object]:
        """Return the diagnosis as a JSON object."""
        cut = self.cut
        return {
            "load_basis": self.load_basis,
            "max_link": self.busiest,
            "max_time_s": self.max_time_s,
            "max_host_link_s": self.max_host_link_s,
            "max_switch_link_s": self.max_switch_link_s,
            "ideal_routing_s": self.ideal_routing_s,
            "cut": None
            if cut is None
            else {
                "at": self.cut_at,
                "found_by": cut.found_by,
                "rail": cut.rail,
                "bytes": cut.bytes,
                "gbps": cut.gbps,
                "inside_gbps": cut.inside_gbps,
                "time_s": cut.seconds,
            },
            "causes": [cause.as_json() for cause in self.causes],
            "tried": [each.as_json() for each in self.tried],
            "loaded_by": self.loaded_by.as_json() if self.loaded_by else None,
            "alike": self.alike.as_json() if self.alike else None,
        }


def diagnose(situation: Situation, progress: Progress = lambda _: None) -> Diagnosis | None:
    """Find the causes of the largest time of a link direction; None if no link has a time.

    Args:
        situation: the present situation.
        progress: function that is called with the name of each stage before the stage starts.
    """
    if situation.max_seconds <= 0:
        return None
    cut = narrowest_cut(situation)
    ideal_routing_s = find_routing_bound(situation)
    causes, tried = _find_causes(situation, progress)
    return Diagnosis(
        busiest=name_end(situation, situation.most_loaded()),
        max_time_s=situation.max_seconds,
        max_host_link_s=situation.max_host_seconds,
        max_switch_link_s=situation.max_switch_seconds,
        cut=cut,
        cut_at=name_cut(situation, cut) if cut else "",
        ideal_routing_s=ideal_routing_s,
        causes=tuple(causes),
        load_basis=ESTIMATE if situation.is_adaptive else STATIC,
        tried=tuple(tried),
        busiest_at=situation.most_loaded(),
    )


def _find_causes(situation: Situation, progress: Progress) -> tuple[list[LoadCause], list[TriedChange]]:
    """Find the causes one after the other; each cause is searched with all earlier remedies applied."""
    causes: list[LoadCause] = []
    tried: list[TriedChange] = []
    maker = TableMaker()
    for _ in range(_MOST_CAUSES):
        if situation.max_seconds <= 0:
            break
        progress("undoing faults in the model")
        found = _find_fault(situation, maker, len(causes), tried)
        if found is None:
            progress("trying other placements and forwarding tables")
            found = _find_change(situation, maker, len(causes), tried)
        if found is None:
            break
        if causes and (found.cause, found.advice) == (causes[-1].cause, causes[-1].advice):
            # If two successive causes have equal advice, merge them: the user carries out one remedy.
            first = causes.pop()
            found = replace(found, at=first.at, max_time_s=first.max_time_s)
        causes.append(found)
        if found.kind in _EXPENSIVE:
            # Stop after advice to change the program, because the traffic of the changed program is unknown. Stop after
            # advice on links, because the advice already adds as many links as help or fit.
            break
        situation = found.remedy
    return causes, tried


def _find_fault(situation: Situation, maker: TableMaker, before: int, tried: list[TriedChange]) -> LoadCause | None:
    """Find the faults whose repair lowers the largest link time most; None if no repair helps.

    Choose few repairs that leave at most 5% more link time than all repairs of this cause.

    Forwarding tables after a repair are computed by the rule of the present tables. If no repair helps with this rule,
    each of `RULES` is tried; all tables are recomputed, with and without the repairs.
    """
    repairs = find_repairs(situation)
    if not repairs:
        return None
    best: tuple[_RepairTrials, Repairs] | None = None
    all_trials: list[_RepairTrials] = []
    for rules in ((None,), RULES):
        for trials in (_RepairTrials(situation, repairs, maker, rule) for rule in rules):
            all_trials.append(trials)
            chosen = trials.choose()
            if chosen and (best is None or trials.undo(chosen).max_seconds < best[0].undo(best[1]).max_seconds):
                best = trials, chosen
        if best is not None or not any(each.remakes_tables for each in repairs) or situation.is_adaptive:
            break
    for trials in all_trials:
        tables = f", forwarding tables by the rule {trials.rule}" if trials.rule else ""
        for some, after in trials.tried.values():
            what = f"repair of {list_some([f'{each.cause} at {each.at}' for each in some], 2)}{tables}"
            splits = after.lost_bytes > situation.lost_bytes
            if splits:
                why_not = _SPLITS
            elif after.max_seconds > SMALL_GAIN * situation.max_seconds:
                why_not = "saves less than 5% of the largest link time"
            else:
                why_not = _OTHER_REPAIRS if best else "recomputed forwarding tables alone gain about as much"
            is_best = best == (trials, some)
            seconds = None if splits else after.max_seconds
            tried.append(TriedChange(what, REPAIR, before, seconds, None if is_best else why_not))
    if best is None:
        return None
    trials, chosen = best
    changes = [each.change for each in chosen]
    advice = (chosen[0].advice or changes[0]) + (
        f", with {count_of(len(chosen) - 1, 'more such repair')}" if len(chosen) > 1 else ""
    )
    if any(each.remakes_tables for each in chosen):
        advice += ", and recompute the forwarding tables"
    new_tables = [f"forwarding tables recomputed by the rule {trials.rule}"] if trials.rule else []
    return LoadCause(
        cause=chosen[0].cause,
        kind=REPAIR,
        at=tuple(each.at for each in chosen),
        evidence=(*(each.evidence for each in chosen), *(f"predicted with {each}" for each in new_tables)),
        advice=advice,
        change="; ".join([*changes, *new_tables]),
        max_time_s=situation.max_seconds,
        max_time_after_s=trials.undo(chosen).max_seconds,
        remedy=trials.undo(chosen),
    )


class _RepairTrials:
    """Applies single repairs, or several repairs together, to the model.

    Args:
        situation: the situation with the faults.
        repairs: repairs of all faults; faults at the most loaded links come first.
        maker: the maker of tables.
        rule: rule that computes forwarding tables after repairs; None for the rule of the present tables.

    Attributes:
        tried: sorted id() of repairs that were tried together -> these repairs, and the situation after these repairs.
    """

    def __init__(
        self, situation: Situation, repairs: Sequence[Repair], maker: TableMaker, rule: str | None = None
    ) -> None:
        self.rule = rule
        self.tried: dict[tuple[int, ...], tuple[Repairs, Situation]] = {}
        self._situation = situation
        self._repairs = tuple(repairs)
        self._maker = maker
        self._rules: dict[int, str] = {}

    def choose(self) -> Repairs | None:
        """Return the repairs that lower the largest link time most; None if no repairs help.

        The repairs of each cause are tried together. If no cause's repairs help, the repairs of all causes are tried
        together.
        """
        groups = []
        for cause in dict.fromkeys(repair.cause for repair in self._repairs):
            groups.append(self._fewest(tuple(repair for repair in self._repairs if repair.cause == cause)))
        helpful = [group for group in groups if self._helps(group)]
        if not helpful and len(groups) > 1:
            helpful = [group for group in [self._fewest(self._repairs)] if self._helps(group)]
        return min(helpful, key=self._seconds, default=None)

    def undo(self, repairs: Repairs) -> Situation:
        """Return the situation without the faults of `repairs`."""
        key = tuple(sorted(map(id, repairs)))
        if key not in self.tried:
            rails = [*self._situation.subnets]
            for rail in {repair.rail for repair in repairs}:
                here = [repair for repair in repairs if repair.rail == rail]
                fabric = rails[rail].fabric
                for repair in here:
                    fabric = repair.apply(fabric)
                changed = replace(rails[rail], fabric=fabric)
                if any(repair.remakes_tables for repair in here):
                    made = self._maker.make(self._rule(rail), changed).subnet
                    changed = made or self._maker.make(BALANCED, changed).subnet or changed
                rails[rail] = changed
            self.tried[key] = repairs, self._situation.changed(subnets=rails)
        return self.tried[key][1]

    def _helps(self, repairs: Repairs) -> bool:
        """Return true if the repairs leave a clearly lower link time than new forwarding tables alone."""
        seconds = self._seconds(repairs)
        if math.isinf(seconds):
            return False
        remade = math.inf
        for rule in (None,) if self.rule is None else RULES:
            rails = [*self._situation.subnets]
            for rail in {repair.rail for repair in repairs if repair.remakes_tables}:
                rails[rail] = self._maker.make(rule or self._rule(rail), rails[rail]).subnet or rails[rail]
            remade = min(remade, self._situation.changed(subnets=rails).max_seconds)
        gain = SMALL_GAIN if self.rule is None else TABLES_GAIN
        return seconds <= gain * min(self._situation.max_seconds, remade)

    def _seconds(self, repairs: Repairs) -> float:
        """Return the largest link time after `repairs`; infinite if more bytes than before have no route.

        Example: a repair unplugs a misplaced cable, and no other link joins two parts of the fabric.
        """
        after = self.undo(repairs)
        return math.inf if after.lost_bytes > self._situation.lost_bytes else after.max_seconds

    def _fewest(self, repairs: Repairs) -> Repairs:
        """Return few repairs that leave at most 5% more link time than all of `repairs`.

        Single repairs are tried first, then the first two, the first three, and so on. If no subset suffices, return
        all.
        """
        enough = NEAR_BEST * self._seconds(repairs)
        if len(repairs) == 1 or not self._helps(repairs):
            return repairs
        some: list[Repairs] = [(repair,) for repair in repairs[:_MOST_TRIED]]
        some += [repairs[:count] for count in range(2, min(len(repairs), _MOST_TRIED))]
        return next((each for each in some if self._seconds(each) <= enough), repairs)

    def _rule(self, rail: int) -> str:
        if self.rule is not None:
            return self.rule
        if rail not in self._rules:
            self._rules[rail] = self._maker.find_rule(self._situation, rail)
        return self._rules[rail]


def _find_change(situation: Situation, maker: TableMaker, before: int, tried: list[TriedChange]) -> LoadCause | None:
    """Find the cheapest change that leaves at most 5% more link time than the best change. Repairs are not tried.

    Forwarding tables are computed only if ideal tables, which reach the lower bound, would be chosen.
    """
    moves = [*try_placements(situation), *try_adapters(situation), *try_partners(situation)]
    links = [*try_links(situation)]

    def remains(bound_s: float) -> Change | None:
        ideal = Change(ROUTING, FORWARDING_TABLES, "ideal tables", None, most=TABLES_GAIN)
        others = [(each, _remedy_seconds(situation, each)) for each in [*moves, *links]]
        chosen = _choose(others, situation.max_seconds)
        return chosen if chosen is _choose([*others, (ideal, bound_s)], situation.max_seconds) else None

    changes = [*moves, *try_tables(situation, maker, remains), *links]
    seconds = [_remedy_seconds(situation, each) for each in changes]
    change = _choose([*zip(changes, seconds, strict=True)], situation.max_seconds)
    for each, after_s in zip(changes, seconds, strict=True):
        arrives = each.after is not None and each.after.lost_bytes <= situation.lost_bytes
        gain = 1 - after_s / situation.max_seconds
        if each.why_not:
            why_not = each.why_not
        elif not arrives:
            why_not = _SPLITS
        elif after_s > each.most * situation.max_seconds and gain > 0:
            why_not = (
                f"saves {100 * gain:.0f}% of the largest link time; only changes that save at least "
                f"{100 * (1 - each.most):.0f}% are reported"
            )
        elif after_s > each.most * situation.max_seconds:
            why_not = "does not help"
        elif change is not None and after_s > NEAR_BEST * _remedy_seconds(situation, change):
            why_not = "another change leaves a shorter link time"
        else:
            why_not = "the chosen change leaves a similar link time, and is cheaper or was tried earlier"
        shown_s = each.after.max_seconds if each.after is not None and arrives else None
        tried.append(TriedChange(each.what, each.kind, before, shown_s, None if each is change else why_not))
    if change is None:
        return None
    after = change.after
    assert after is not None
    return LoadCause(
        cause=change.cause,
        kind=change.kind,
        at=change.at,
        evidence=change.evidence,
        advice=change.advice,
        change=change.change,
        max_time_s=situation.max_seconds,
        max_time_after_s=after.max_seconds,
        remedy=after,
    )


def _remedy_seconds(situation: Situation, change: Change) -> float:
    """Return the largest link time after a change; infinite if the change cannot be a remedy."""
    if change.why_not or change.after is None or change.after.lost_bytes > situation.lost_bytes:
        return math.inf
    return change.after.max_seconds


def _choose(changes: Sequence[tuple[Change, float]], largest_s: float) -> Change | None:
    """Return the cheapest change that leaves at most 5% more link time than the best change.

    New links or another program are chosen only if they leave less than 80% of the link time of the best other change.

    Args:
        changes: each change, and the largest link time after the change, in seconds.
        largest_s: the present largest link time, in seconds.
    """
    useful = [(each, seconds) for each, seconds in changes if seconds <= each.most * largest_s]
    affordable = [(each, seconds) for each, seconds in useful if each.kind not in _EXPENSIVE]
    limit = GAIN * min((seconds for _, seconds in affordable), default=math.inf)
    expensive = [(each, seconds) for each, seconds in useful if each.kind in _EXPENSIVE and seconds < limit]
    candidates = expensive or affordable
    enough = NEAR_BEST * min((seconds for _, seconds in candidates), default=math.inf)
    near = [each for each, seconds in candidates if seconds <= enough]
    return min(near, key=lambda each: KINDS.index(each.kind), default=None)
