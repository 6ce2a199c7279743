# SPDX-License-Identifier: Apache-2.0
"""Repairs applied to the model, alone and together, with tables made as those in use were made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ibprof_converter.hotspots.causes.load_cause import NEAR_BEST, SMALL_GAIN, TABLES_GAIN
from ibprof_converter.hotspots.causes.repairs import Repair
from ibprof_converter.hotspots.causes.situation import Situation
from ibprof_converter.hotspots.causes.table_rules import BALANCED, RULES, TableMaker

_MOST_TRIED = 8
"""Repairs of one cause that are tried one by one, those at the most loaded links first."""

Repairs = tuple[Repair, ...]


class RepairTrials:
    """Tries repairs.

    Args:
        situation: with the faults.
        repairs: of all faults, those at the most loaded links first.
        maker: of tables.
        rule: by which the tables are made after repairs; None: that of those in use.
    """

    def __init__(
        self, situation: Situation, repairs: Sequence[Repair], maker: TableMaker, rule: str | None = None
    ) -> None:
        self.rule = rule
        self._situation = situation
        self._repairs = tuple(repairs)
        self._maker = maker
        self._rules: dict[int, str] = {}
        self._tried: dict[tuple[int, ...], tuple[Repairs, Situation]] = {}

    def tried(self) -> Iterator[tuple[Repairs, Situation]]:
        """Yield what was tried, with what it leaves."""
        yield from self._tried.values()

    def choose(self) -> Repairs | None:
        """Return the repairs that lower the largest time most, as few as come within 5% of it; None for none.

        Each cause is considered alone first. Where no single cause's repairs help, all are undone together.
        """
        groups = []
        for cause in dict.fromkeys(repair.cause for repair in self._repairs):
            some = tuple(repair for repair in self._repairs if repair.cause == cause)
            groups.append(self._fewest(some))
        helpful = [group for group in groups if self._helps(group)]
        if helpful:
            return min(helpful, key=self._seconds)
        whole = self._fewest(self._repairs) if len(groups) > 1 else ()
        return whole if whole and self._helps(whole) else None

    def _helps(self, repairs: Repairs) -> bool:
        """Return whether repairs gain something that new tables alone would not."""
        gain = SMALL_GAIN if self.rule is None else TABLES_GAIN
        if self.splits(repairs):
            return False
        rules = (None,) if self.rule is None else RULES
        remade = min(self._remade(repairs, rule).max_seconds for rule in rules)
        return self.undo(repairs).max_seconds <= gain * min(self._situation.max_seconds, remade)

    def splits(self, repairs: Repairs) -> bool:
        """Return whether bytes that arrive with the faults arrive no longer: a cable was all that joined two parts."""
        return self.undo(repairs).lost_bytes > self._situation.lost_bytes

    def _seconds(self, repairs: Repairs) -> float:
        return math.inf if self.splits(repairs) else self.undo(repairs).max_seconds

    def _fewest(self, repairs: Repairs) -> Repairs:
        """Return the fewest of some repairs that come within 5% of all of them: a single one, or the first ones."""
        best = self._seconds(repairs)
        if len(repairs) == 1 or not self._helps(repairs):
            return repairs
        for repair in repairs[:_MOST_TRIED]:
            if self._seconds((repair,)) <= NEAR_BEST * best:
                return (repair,)
        for count in range(2, min(len(repairs), _MOST_TRIED)):
            if self._seconds(repairs[:count]) <= NEAR_BEST * best:
                return repairs[:count]
        return repairs

    def undo(self, repairs: Repairs) -> Situation:
        """Return the situation without some faults."""
        key = tuple(sorted(map(id, repairs)))
        if key not in self._tried:
            self._tried[key] = repairs, self._undo(repairs)
        return self._tried[key][1]

    def _undo(self, repairs: Repairs) -> Situation:
        rails = [*self._situation.subnets]
        for rail in {repair.rail for repair in repairs}:
            here = [repair for repair in repairs if repair.rail == rail]
            fabric = rails[rail].fabric
            for repair in here:
                fabric = repair.apply(fabric)
            changed = replace(rails[rail], fabric=fabric)
            if any(repair.remakes_tables for repair in here):
                made = self._maker.make(self._rule(rail), changed).subnet or self._maker.make(BALANCED, changed).subnet
                changed = made or changed
            rails[rail] = changed
        return self._situation.changed(subnets=rails)

    def _remade(self, repairs: Repairs, rule: str | None) -> Situation:
        """Return the situation with the faults, and with tables made by a rule; None: the one of those in use."""
        rails = [*self._situation.subnets]
        for rail in {repair.rail for repair in repairs if repair.remakes_tables}:
            rails[rail] = self._maker.make(rule or self._rule(rail), rails[rail]).subnet or rails[rail]
        return self._situation.changed(subnets=rails)

    def _rule(self, rail: int) -> str:
        if self.rule is not None:
            return self.rule
        if rail not in self._rules:
            self._rules[rail] = self._maker.find_rule(self._situation, rail)
        return self._rules[rail]
