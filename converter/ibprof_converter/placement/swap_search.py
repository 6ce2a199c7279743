# SPDX-License-Identifier: Apache-2.0
"""Search for a better rank placement: rounds of swaps that keep what relieves the most loaded links."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import load_kernels
from ibprof_converter.placement.placement_problem import PlacementProblem, PlacementScore, SlotOfRank

_WORK_PER_SECOND = 10_000_000
"""Link directions visited per second of --time.

A core of 2020 visits 5 times as many for the smallest jobs, and 10 to 20 times as many for 128 ranks. So the amount of
work ends a search, also on a busy machine: the same seed and time give the same placement. The clock stops a search
only where that is not enough.
"""

_FEW_ENDS = 10

_CHUNK = 1_000_000
"""Work between two reads of the clock."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search.

    Attributes:
        slot_of_rank: the best placement.
        score: its score.
        rounds: number of rounds begun.
        proposals, accepted: number of swaps tried, and made.
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
class RoundSettings:
    """Settings of one round of the search.

    Attributes:
        doublings: the energy is the sum of (time / scale) ^ (2 ^ doublings).
        start_temperature, end_temperature: relative to the energy. With few loaded link directions each is a large part
            of the energy, so the round starts at a higher temperature.
        share: its share of all work.
    """

    doublings: int
    start_temperature: float
    end_temperature: float
    share: float


ROUNDS = (RoundSettings(2, 0.03, 1e-4, 0.5), RoundSettings(4, 0.03, 1e-4, 0.5))


def search(
    problem: PlacementProblem,
    starts: Sequence[SlotOfRank],
    seed: int,
    seconds: float,
    bound: float = 0.0,
    rounds: Sequence[RoundSettings] = ROUNDS,
    progress: Callable[[float, float], None] = lambda _share, _best: None,
) -> SearchResult:
    """Search from the best of some placements.

    Args:
        problem: the problem to solve.
        starts: placements as `RankSlots.number` returns them; the result is never worse than the best of them.
        seed: of the random choices.
        seconds: time limit. It sets the amount of work, which needs a small part of this time.
        bound: lower bound on the largest time; reaching it ends the search.
        rounds: run one after the other, each from the best placement so far.
        progress: called with the share of work done and the best largest time.
    """
    began = time.perf_counter()
    score, slot_of_rank = min(((problem.score(start), start) for start in starts), key=lambda pair: pair[0])
    proposals = accepted = begun = 0
    done = 0.0
    stopped = False
    for number, each in enumerate(rounds):
        if score.max_seconds <= bound or stopped:
            break
        begun += 1
        one = SearchRound(
            problem, slot_of_rank, score, each, _seed(seed, number), int(seconds * each.share * _WORK_PER_SECOND)
        )
        while not (one.done or stopped):
            one.advance(_CHUNK)
            progress(done + each.share * one.share, one.score.max_seconds)
            stopped = time.perf_counter() - began > seconds and not one.done
        done += each.share
        proposals, accepted = proposals + one.proposals, accepted + one.accepted
        if one.score < score:
            score, slot_of_rank = one.score, one.best
    return SearchResult(slot_of_rank, score, begun, proposals, accepted, stopped, time.perf_counter() - began)


def _seed(seed: int, number: int) -> int:
    return (seed * 0x9E3779B97F4A7C15 + number) & ((1 << 64) - 1)


class SearchRound:
    """One round of the search, run by the kernel."""

    def __init__(
        self,
        problem: PlacementProblem,
        start: SlotOfRank,
        score: PlacementScore,
        settings: RoundSettings,
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
            "slot_of_rank": start.copy(),
            "rank_of_slot": rank_of_slot,
            "new_slot": start.copy(),
            "moved": np.zeros(problem.ranks, np.uint32),
            "is_counted": np.zeros(problem.ranks, np.uint8),
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
                "best_lost": score.lost,
                "best_max": score.max_seconds,
                "best_squares": score.squares,
                "scale": score.max_seconds or 1.0,
                "doublings": settings.doublings,
                "first_temperature": max(
                    settings.start_temperature, min(1.0, _FEW_ENDS / (1 + int((problem.load(start) > 0).sum())))
                ),
                "last_temperature": settings.end_temperature,
                "random": seed,
                "all_work": work,
            },
        )

    def advance(self, work: int) -> None:
        """Do some more work."""
        self._kernels.lib.ibp_placement_search(self._problem.c, self._c, self._c.work + work)

    @property
    def done(self) -> bool:
        """True once all work is done, or the energy is 0."""
        return bool(self._c.work >= self._c.all_work or (self._c.proposals and self._c.energy <= 0))

    @property
    def share(self) -> float:
        """Share of the work done, 0 to 1."""
        return min(1.0, float(self._c.work) / max(1.0, float(self._c.all_work)))

    @property
    def score(self) -> PlacementScore:
        """Score of the best placement so far."""
        return PlacementScore(int(self._c.best_lost), float(self._c.best_max), float(self._c.best_squares))

    @property
    def proposals(self) -> int:
        """Number of swaps tried."""
        return int(self._c.proposals)

    @property
    def accepted(self) -> int:
        """Number of swaps made."""
        return int(self._c.accepted)

    @property
    def energy(self) -> float:
        """Energy of the current placement."""
        return float(self._c.energy)

    @property
    def slot_of_rank(self) -> SlotOfRank:
        """The current placement."""
        slot_of_rank: SlotOfRank = self._arrays["slot_of_rank"]
        return slot_of_rank
