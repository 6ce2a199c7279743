# SPDX-License-Identifier: Apache-2.0
"""Search for a better rank placement by simulated annealing from several starting placements, on all processors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import load_kernels
from ibprof_converter.placement.placement_problem import PlacementProblem, PlacementScore, SlotOfRank, score_of
from ibprof_converter.placement.starting_placements import random_slots
from ibprof_converter.routing.subnet_routes import count_threads

_NO_LIMIT = (1 << 63) - 1

_ROUNDING = 1 + 1e-12

_WORK_PER_SECOND = 30_000_000
"""Number of link directions that a search visits for each second of --time.

A processor core of 2020 visits several times this number per second. So two searches with equal seed and --time find
the same placement, even on a busy machine. On a slower machine, the clock ends the search.
"""

_CHUNK = 2_000_000
"""Number of link directions that a search visits between two reads of the clock."""

_TRIAL = 0.02
"""Share of a round's work that measures, in a trial, how much swaps and moves raise the energy."""

_FEW_RANKS = 24
_FEW_STARTS = 12
"""With at most `_FEW_RANKS` ranks, a search has this number of additional chains, from random placements.

With few ranks, a single swap changes the energy by powers of ten: a chain rarely leaves a local minimum.
"""


class Goal(Enum):
    """The time that a search round minimises, while the times of earlier goals in this list must not rise."""

    BOTTLENECK = "the largest time of all link directions"
    SWITCHES = "the largest time between switches"
    SUM = "the sum of all times"


@dataclass(frozen=True, slots=True)
class Energy:
    """The quantity that a round minimises: the sum, over all link directions, of (bytes * unit) ^ (2 ^ doublings).

    Attributes:
        unit: float64 [end], weight of a byte on the link direction; 0 if the link direction does not count.
        limit: int64 [end], largest number of bytes that the link direction may carry after a swap or move.
        doublings: exponent of 2 in the formula. With a larger exponent, the most loaded link directions have more
            weight.
    """

    unit: npt.NDArray[np.float64]
    limit: npt.NDArray[np.int64]
    doublings: int

    @staticmethod
    def towards(goal: Goal, problem: PlacementProblem, score: PlacementScore, doublings: int) -> Energy:
        """Return the energy that a round for a goal minimises; `score` is the score of the starting placement."""
        seconds = problem.paths.seconds_per_byte
        between = np.arange(len(seconds)) < problem.paths.between_switches
        between[-1] = True  # the last entry counts bytes without a route, for each goal
        limit = np.full(len(seconds), _NO_LIMIT)
        unit = np.where(between, seconds / (score.max_seconds or score.bottleneck_seconds or 1.0), 0.0)
        if goal is not Goal.BOTTLENECK:
            limit[~between] = _most_bytes(score.bottleneck_seconds, seconds[~between])
            limit[-1] = score.lost
        if goal is Goal.SUM:
            limit[between] = _most_bytes(score.max_seconds, seconds[between])
            limit[-1] = score.lost
            return Energy(seconds / (score.sum_seconds or 1.0), limit, 0)
        if goal is Goal.BOTTLENECK and not problem.hosts_are_alike:
            unit = seconds / (score.bottleneck_seconds or 1.0)
        return Energy(np.ascontiguousarray(unit), limit, doublings)


def _most_bytes(seconds: float, seconds_per_byte: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.floor(np.minimum(seconds * _ROUNDING / seconds_per_byte, 2.0**62)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    Attributes:
        rounds: number of started rounds, over all chains.
        proposals: number of tried swaps and moves.
        accepted: number of swaps and moves that the search accepted.
        stopped_by_clock: true if the clock ended the search early; another run may then find another placement.
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
    """Lower bounds, for any placement, of link times; a search ends at these bounds.

    Attributes:
        bottleneck_seconds: lower bound of the largest time of a link direction.
        max_seconds: lower bound of the largest time of a link direction between switches.
    """

    bottleneck_seconds: float = 0.0
    max_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """Settings of one round of the search.

    Attributes:
        goal: the time that the round lowers.
        doublings: value of `Energy.doublings` in the round.
        share: the round's part of the work is `share` / sum of `share` over all rounds that run.
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
"""First temperature of a chain / usual rise of the energy by a swap or move.

A chain with the first temperature `COLD` keeps most of its starting placement.
"""

_LAST = 0.01


class SearchRound:
    """One round of simulated annealing, which a C kernel runs.

    Args:
        energy: the quantity to minimise.
        temperatures: first and last temperature, as fractions of the energy.
        work: number of link directions to visit.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        start: SlotOfRank,
        score: PlacementScore,
        energy: Energy,
        temperatures: tuple[float, float],
        seed: int,
        work: int,
    ) -> None:
        self._problem = problem
        self._kernels = load_kernels()
        ends = len(problem.paths.rail)
        rank_of_slot = np.full(problem.slots.count, -1, np.int32)
        rank_of_slot[start] = np.arange(problem.ranks)
        self.best = start.copy()
        self._arrays: dict[str, npt.NDArray[Any]] = {
            "path": problem.space_for_path(),
            "slot_of_rank": start.copy(),
            "rank_of_slot": rank_of_slot,
            "new_slot": start.copy(),
            "moved": np.zeros(problem.ranks, np.uint32),
            "is_counted": np.zeros(problem.ranks, np.uint8),
            "unit": energy.unit,
            "limit": energy.limit,
            "load": np.zeros(ends, np.int64),
            "change": np.zeros(ends, np.int64),
            "is_touched": np.zeros(ends, np.uint8),
            "touched": np.zeros(ends, np.uint32),
            "best": self.best,
        }
        self._c = self._kernels.ffi.new(
            "struct ibp_placement_search *",
            {
                **{name: self._kernels.pointer(array) for name, array in self._arrays.items()},
                "best_score": {
                    "lost": score.lost,
                    "most": score.bottleneck_seconds,
                    "most_between": score.max_seconds,
                    "sum": score.sum_seconds,
                },
                "doublings": energy.doublings,
                "first_temperature": temperatures[0],
                "last_temperature": temperatures[1],
                "random": seed,
                "all_work": work,
            },
        )

    def advance(self, work: int) -> None:
        """Continue the search until it has visited `work` more link directions."""
        self._kernels.lib.ibp_placement_search(self._problem.c, self._c, self._c.work + work)

    @property
    def done(self) -> bool:
        """True if all work is done, or the energy is 0."""
        return bool(self._c.work >= self._c.all_work or (self._c.proposals and self._c.energy <= 0))

    @property
    def work(self) -> int:
        """Number of link directions visited so far."""
        return int(self._c.work)

    @property
    def score(self) -> PlacementScore:
        """Score of the best placement so far."""
        return score_of(self._c.best_score)

    @property
    def proposals(self) -> int:
        """Number of changes tried."""
        return int(self._c.proposals)

    @property
    def accepted(self) -> int:
        """Number of changes made."""
        return int(self._c.accepted)

    @property
    def energy(self) -> float:
        """Energy of the current placement."""
        return float(self._c.energy)

    @property
    def usual_rise(self) -> float:
        """Geometric mean of the relative rises of the energy by tried changes that raise it; 0 without such changes."""
        return float(np.exp(self._c.uphill / self._c.climbs)) if self._c.climbs else 0.0

    @property
    def slot_of_rank(self) -> SlotOfRank:
        """The current placement."""
        slot_of_rank: SlotOfRank = self._arrays["slot_of_rank"]
        return slot_of_rank


@dataclass(frozen=True, slots=True)
class _Chain:
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
    patience: float = 0.0,
) -> SearchResult:
    """Search from some placements.

    Args:
        starts: placements from `RankSlots.number`; the result is at least as good as each of these placements.
        seconds: time limit, which sets the amount of work; on most machines, the work is done earlier.
        rounds: settings of each chain's successive rounds.
        progress: function that is called with the finished share (0 to 1) of the work, and the best
            `bottleneck_seconds` so far.
        patience: seconds by which a search on a busy machine may exceed `seconds`.
    """
    began = time.perf_counter()
    scored = sorted(((problem.score(start), number) for number, start in enumerate(starts)), key=lambda one: one)
    chains = _plan(problem, [(score, starts[number]) for score, number in scored], seed, seconds)
    watch = _Watch(began + seconds + patience, len(chains), scored[0][0].bottleneck_seconds, progress)
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
    """Return the chains; each chain is a search from one starting placement.

    The number of chains is the same on all machines, so that results are reproducible.
    """
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
    def __init__(self, deadline: float, chains: int, best: float, progress: Callable[[float, float], None]) -> None:
        self._deadline, self._chains, self._progress = deadline, chains, progress
        self._shares: dict[int, float] = {}
        self._best = best
        self.stopped = False

    def tell(self, chain: _Chain, share: float, best: float) -> None:
        """Record the progress of a chain, and report the progress of all chains."""
        self._shares[chain.seed] = share
        self._best = min(self._best, best)
        self._progress(min(1.0, sum(self._shares.values()) / self._chains), self._best)

    def is_late(self) -> bool:
        """Return true if the deadline has passed."""
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
    """Return true if this goal needs no round: its time has reached the bound, or is another goal's time."""
    if score.lost:
        return False
    if goal is Goal.BOTTLENECK:
        # If hosts are alike, all placements have the same largest time of a host link: only minimise the time between
        # switches.
        return problem.hosts_are_alike or score.bottleneck_seconds <= bounds.bottleneck_seconds
    if goal is Goal.SWITCHES:
        is_same = not problem.hosts_are_alike and score.max_seconds >= score.bottleneck_seconds
        return is_same or score.max_seconds <= bounds.max_seconds
    return score.sum_seconds <= 0
