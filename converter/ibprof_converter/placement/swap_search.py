# SPDX-License-Identifier: Apache-2.0
"""Search for a better rank placement: rounds of swaps and moves from several starts, on all processors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ibprof_converter.placement.placement_problem import PlacementProblem, PlacementScore, SlotOfRank
from ibprof_converter.placement.search_round import Energy, Goal, SearchRound
from ibprof_converter.placement.starting_placements import random_slots
from ibprof_converter.routing.subnet_routes import count_threads

_WORK_PER_SECOND = 30_000_000
"""Link directions visited per second of --time.

A core of 2020 visits several times as many. So the amount of work ends a search, also on a busy machine: the same seed
and time give the same placement. The clock stops a search only where that is not enough.
"""

_CHUNK = 2_000_000
"""Work between two reads of the clock."""

_TRIAL = 0.02
"""Share of the work of a round that measures how much steps raise the energy."""

_FEW_RANKS = 24
_FEW_STARTS = 12
"""Small problems have deep valleys: steps differ by powers of ten. They are searched from random starts too."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    Attributes:
        slot_of_rank: the best placement.
        score: its score.
        rounds: number of rounds begun.
        proposals, accepted: number of swaps and moves tried, and made.
        stopped_by_clock: the clock ended the search before its work was done; another run may then differ.
        seconds: duration.
    """

    slot_of_rank: SlotOfRank
    score: PlacementScore
    rounds: int
    proposals: int
    accepted: int
    stopped_by_clock: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """Lower bounds over all placements; reaching them ends a search.

    Attributes:
        bottleneck_seconds: on the largest time of a link direction.
        max_seconds: on the same between switches.
    """

    bottleneck_seconds: float = 0.0
    max_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """Settings of one round of the search.

    Attributes:
        goal: what it lowers.
        doublings: of its energy.
        share: its share of the work, among the rounds that are not left out.
    """

    goal: Goal
    doublings: int
    share: float


ROUNDS = (
    RoundSettings(Goal.BOTTLENECK, 2, 0.2),
    RoundSettings(Goal.BOTTLENECK, 4, 0.3),
    RoundSettings(Goal.SWITCHES, 2, 0.2),
    RoundSettings(Goal.SWITCHES, 4, 0.2),
    RoundSettings(Goal.SUM, 0, 0.1),
)

COLD, WARM, HOT = 0.05, 0.5, 3.0
"""First temperatures, relative to the usual rise of the energy: a cold chain keeps most of its start."""

_LAST = 0.01


@dataclass(frozen=True, slots=True)
class _Chain:
    """Rounds one after the other, from one start."""

    start: SlotOfRank
    score: PlacementScore
    heat: float
    seed: int
    work: int


def search(
    problem: PlacementProblem,
    starts: Sequence[SlotOfRank],
    seed: int,
    seconds: float,
    bounds: TimeBounds = TimeBounds(),
    rounds: Sequence[RoundSettings] = ROUNDS,
    progress: Callable[[float, float], None] = lambda _share, _best: None,
) -> SearchResult:
    """Search from some placements.

    Args:
        problem: the problem to solve.
        starts: placements as `RankSlots.number` returns them; the result is never worse than the best of them.
        seed: of the random choices.
        seconds: time limit. It sets the amount of work, which needs a part of this time.
        bounds: what cannot be improved.
        rounds: of each chain, run one after the other.
        progress: called with the share of work done and the best largest time.
    """
    began = time.perf_counter()
    scored = sorted(((problem.score(start), number) for number, start in enumerate(starts)), key=lambda one: one)
    chains = _plan(problem, [(score, starts[number]) for score, number in scored], seed, seconds)
    watch = _Watch(began + seconds, len(chains), scored[0][0].bottleneck_seconds, progress)
    with ThreadPoolExecutor(max(1, min(count_threads(), len(chains)))) as pool:
        found = list(pool.map(lambda chain: _run(problem, chain, rounds, bounds, watch), chains))
    best = min(found, key=lambda one: one.score)
    return SearchResult(
        best.slot_of_rank,
        best.score,
        sum(one.rounds for one in found),
        sum(one.proposals for one in found),
        sum(one.accepted for one in found),
        watch.stopped,
        time.perf_counter() - began,
    )


def _plan(
    problem: PlacementProblem, scored: Sequence[tuple[PlacementScore, SlotOfRank]], seed: int, seconds: float
) -> list[_Chain]:
    """Return the chains: their number does not depend on the machine, so that results do not either."""
    plan = [(0, COLD), (0, WARM), (1, COLD), (2, COLD)]
    begins = [(*scored[min(index, len(scored) - 1)], heat) for index, heat in plan]
    if problem.ranks <= _FEW_RANKS:
        for number in range(_FEW_STARTS):
            start = random_slots(problem.slots, problem.ranks, number)
            begins.append((problem.score(start), start, HOT))
    work = int(seconds * _WORK_PER_SECOND / len(begins))
    return [_Chain(start, score, heat, _seed(seed, number), work) for number, (score, start, heat) in enumerate(begins)]


def _seed(seed: int, number: int) -> int:
    return (seed * 0x9E3779B97F4A7C15 + (number << 32)) & ((1 << 64) - 1)


class _Watch:
    """The clock, and what all chains together have done."""

    def __init__(self, deadline: float, chains: int, best: float, progress: Callable[[float, float], None]) -> None:
        self._deadline, self._chains, self._progress = deadline, chains, progress
        self._shares: dict[int, float] = {}
        self._best = best
        self.stopped = False

    def tell(self, chain: _Chain, share: float, best: float) -> None:
        """Note how far a chain is."""
        self._shares[chain.seed] = share
        self._best = min(self._best, best)
        self._progress(min(1.0, sum(self._shares.values()) / self._chains), self._best)

    def is_late(self) -> bool:
        """Return whether the time is over."""
        self.stopped = self.stopped or time.perf_counter() > self._deadline
        return self.stopped


def _run(
    problem: PlacementProblem, chain: _Chain, rounds: Sequence[RoundSettings], bounds: TimeBounds, watch: _Watch
) -> SearchResult:
    slot_of_rank, score, left = chain.start, chain.score, chain.work
    proposals = accepted = begun = 0
    for number, each in enumerate(rounds):
        if _is_reached(each.goal, problem, score, bounds) or watch.stopped:
            continue
        others = sum(one.share for one in rounds[number + 1 :] if not _is_reached(one.goal, problem, score, bounds))
        work = int(left * each.share / (each.share + others))
        energy = Energy.towards(each.goal, problem, score, each.doublings)
        trial = SearchRound(problem, slot_of_rank, score, energy, (1e-9, 1e-9), chain.seed + number, int(work * _TRIAL))
        trial.advance(work)
        rise = trial.usual_rise or 1.0
        one = SearchRound(
            problem,
            slot_of_rank,
            score,
            energy,
            (rise * chain.heat, rise * chain.heat * _LAST),
            chain.seed + number + (1 << 16),
            work - trial.work,
        )
        begun += 1
        while not (one.done or watch.is_late() or _is_reached(each.goal, problem, one.score, bounds)):
            one.advance(_CHUNK)
            watch.tell(chain, 1 - (left - one.work) / chain.work, one.score.bottleneck_seconds)
        left -= trial.work + one.work
        proposals, accepted = proposals + trial.proposals + one.proposals, accepted + trial.accepted + one.accepted
        for done in (trial, one):
            if done.score < score:
                score, slot_of_rank = done.score, done.best
    return SearchResult(slot_of_rank, score, begun, proposals, accepted, watch.stopped, 0.0)


def _is_reached(goal: Goal, problem: PlacementProblem, score: PlacementScore, bounds: TimeBounds) -> bool:
    """Return whether a goal has nothing to gain."""
    if score.lost:
        return False
    if goal is Goal.BOTTLENECK:
        # Where hosts are alike, their own link directions are what they are: the next goal does the same.
        return problem.hosts_are_alike or score.bottleneck_seconds <= bounds.bottleneck_seconds
    if goal is Goal.SWITCHES:
        is_same = not problem.hosts_are_alike and score.max_seconds >= score.bottleneck_seconds
        return is_same or score.max_seconds <= bounds.max_seconds
    return score.sum_seconds <= 0
