# SPDX-License-Identifier: Apache-2.0
"""From a hot link to its cause: changes are applied to the model, and the cheapest one that helps names the cause.

Two lower bounds come first. No network needs less than the largest time of a host's own link. No routing needs less
than the bytes that cross the narrowest cut over the speed of its links.

Faults that are there come first: each is undone, alone and with others. Then all other changes are tried. Of those
within 5% of the best one, the cheapest is the remedy. The next cause is searched for on top of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ibprof_converter.hotspots.causes.changes import name_cut, try_changes
from ibprof_converter.hotspots.causes.load_cause import (
    GAIN,
    LINKS,
    NEAR_BEST,
    PROGRAM,
    REPAIR,
    SMALL_GAIN,
    Change,
    LoadCause,
    TriedChange,
    list_some,
    name_end,
)
from ibprof_converter.hotspots.causes.loaded_by import AlikeLinks, LoadedBy
from ibprof_converter.hotspots.causes.narrowest_cut import SwitchCut, narrowest_cut
from ibprof_converter.hotspots.causes.repaired import Repairs, RepairTrials
from ibprof_converter.hotspots.causes.repairs import Repair, find_repairs
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation
from ibprof_converter.hotspots.causes.table_rules import RULES, TableMaker
from ibprof_converter.traffic.rail_bounds import ESTIMATE, STATIC

_MOST_CAUSES = 3

_DEAR = {PROGRAM, LINKS}
_SPLITS = "bytes would arrive nowhere"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why the most loaded link is as busy as it is.

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
        tried: all changes that were tried, and those that were not, with the reason.
        loaded_by: ranks, call, line and region that load that link direction most; None where that is not known.
        busiest_at: that link direction; None where it is not known by number.
        alike: link directions of its kind that are as busy; None where that is not known.
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
        """Return it as plain values."""
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
    """Find the causes of the largest time; None where no link has one.

    Args:
        situation: as it is.
        progress: receives each stage.
    """
    if situation.max_seconds <= 0:
        return None
    cut = narrowest_cut(situation)
    causes, tried = _find_causes(situation, progress)
    return Diagnosis(
        busiest=name_end(situation, situation.most_loaded()),
        max_time_s=situation.max_seconds,
        max_host_link_s=situation.max_host_seconds,
        max_switch_link_s=situation.max_switch_seconds,
        cut=cut,
        cut_at=name_cut(situation, cut) if cut else "",
        ideal_routing_s=max(situation.max_host_seconds, cut.seconds if cut else 0.0),
        causes=tuple(causes),
        load_basis=ESTIMATE if situation.is_adaptive else STATIC,
        tried=tuple(tried),
        busiest_at=situation.most_loaded(),
    )


def _find_causes(situation: Situation, progress: Progress) -> tuple[list[LoadCause], list[TriedChange]]:
    """Find one cause after the other, each in what the remedy of the one before leaves."""
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
            # The same command twice is one remedy, which does what both do.
            first = causes.pop()
            found = replace(found, at=first.at, max_time_s=first.max_time_s)
        causes.append(found)
        if found.kind in _DEAR:
            break  # With other partners it is another program. Bought links are as many as are needed.
        situation = found.remedy
    return causes, tried


def _find_fault(situation: Situation, maker: TableMaker, before: int, tried: list[TriedChange]) -> LoadCause | None:
    """Find the fault whose repair lowers the largest time most: of those within 5%, the one of the fewest repairs.

    Tables after a repair are made as those in use were made. Where that hides what the fault costs, they are made by
    the rules of ibprof, with and without the fault.
    """
    repairs = find_repairs(situation)
    if not repairs:
        return None
    best: tuple[RepairTrials, Repairs] | None = None
    all_trials: list[RepairTrials] = []
    for rules in ((None,), RULES):
        for trials in (RepairTrials(situation, repairs, maker, rule) for rule in rules):
            all_trials.append(trials)
            chosen = trials.choose()
            if chosen and (best is None or trials.undo(chosen).max_seconds < best[0].undo(best[1]).max_seconds):
                best = trials, chosen
        if best is not None or not any(each.remakes_tables for each in repairs) or situation.is_adaptive:
            break
    for trials in all_trials:
        _list_repairs(situation, trials, best, before, tried)
    if best is None:
        return None
    trials, chosen = best
    after = trials.undo(chosen)
    anew = f"forwarding tables made anew by the rule {trials.rule}" if trials.rule else ""
    return LoadCause(
        cause=chosen[0].cause,
        kind=REPAIR,
        at=tuple(each.at for each in chosen),
        evidence=(*(each.evidence for each in chosen), *((f"predicted with {anew}",) if anew else ())),
        advice=_advise_repair(chosen),
        change="; ".join([*(each.change for each in chosen), *((anew,) if anew else ())]),
        max_time_s=situation.max_seconds,
        max_time_after_s=after.max_seconds,
        remedy=after,
    )


def _list_repairs(
    situation: Situation,
    trials: RepairTrials,
    best: tuple[RepairTrials, Repairs] | None,
    before: int,
    tried: list[TriedChange],
) -> None:
    tables = f", forwarding tables by the rule {trials.rule}" if trials.rule else ""
    for repairs, after in trials.tried():
        what = list_some([f"{each.cause} at {each.at}" for each in repairs], 2) + tables
        why_not = None if best == (trials, repairs) else _say_why_not(situation, after, best is not None)
        seconds = None if trials.splits(repairs) else after.max_seconds
        tried.append(TriedChange(f"undone: {what}", REPAIR, before, seconds, why_not))


def _advise_repair(repairs: Sequence[Repair]) -> str:
    some = "; ".join(each.change for each in repairs[:3])
    more = f"; and {len(repairs) - 3} more" if len(repairs) > 3 else ""
    anew = ", and have the forwarding tables made anew" if any(each.remakes_tables for each in repairs) else ""
    return f"{some}{more}{anew}"


def _say_why_not(situation: Situation, after: Situation, other_is_better: bool) -> str:
    if after.lost_bytes > situation.lost_bytes:
        return _SPLITS
    if after.max_seconds > SMALL_GAIN * situation.max_seconds:
        return "costs this job less than 5%"
    return "another repair comes first" if other_is_better else "new tables alone leave about as little"


def _find_change(situation: Situation, maker: TableMaker, before: int, tried: list[TriedChange]) -> LoadCause | None:
    """Find the cheapest change within 5% of the best one.

    New links, and another program, are considered the best only where they leave a fifth less than all other changes.
    """
    changes = list(try_changes(situation, maker))
    useful = [
        each
        for each in changes
        if _arrives(situation, each) and not each.why_not and _seconds(each) <= each.most * situation.max_seconds
    ]
    chosen = _choose(useful)
    for each in changes:
        seconds = _seconds(each) if _arrives(situation, each) else None
        why_not = None if each is chosen else each.why_not or _compare(situation, each, useful, chosen)
        tried.append(TriedChange(each.what, each.kind, before, seconds, why_not))
    if chosen is None or chosen.after is None:
        return None
    return LoadCause(
        cause=chosen.cause,
        kind=chosen.kind,
        at=chosen.at,
        evidence=chosen.evidence,
        advice=chosen.advice,
        change=chosen.change,
        max_time_s=situation.max_seconds,
        max_time_after_s=chosen.after.max_seconds,
        remedy=chosen.after,
    )


def _arrives(situation: Situation, change: Change) -> bool:
    """Return whether a change was tried, and all bytes arrive that do without it."""
    return change.after is not None and change.after.lost_bytes <= situation.lost_bytes


def _seconds(change: Change) -> float:
    return change.after.max_seconds if change.after is not None else float("inf")


def _choose(useful: Sequence[Change]) -> Change | None:
    """Return the cheapest change within 5% of the best; None for none."""
    free = [each for each in useful if each.kind not in _DEAR]
    best = min(map(_seconds, free), default=float("inf"))
    dear = [each for each in useful if each.kind in _DEAR and _seconds(each) < GAIN * best]
    candidates = dear or free
    best = min(map(_seconds, candidates), default=float("inf"))
    near = [each for each in candidates if _seconds(each) <= NEAR_BEST * best]
    return min(near, key=lambda each: each.rank, default=None)


def _compare(situation: Situation, change: Change, useful: Sequence[Change], chosen: Change | None) -> str:
    if not _arrives(situation, change):
        return _SPLITS
    gain = 1 - _seconds(change) / situation.max_seconds
    if change not in useful:
        least = 1 - change.most
        return (
            f"takes {100 * gain:.0f}% off; less than {100 * least:.0f}% is not reported"
            if gain > 0
            else "does not help"
        )
    if chosen is not None and _seconds(change) > NEAR_BEST * _seconds(chosen):
        return "another change leaves less"
    return "another change is cheaper or comes first"
