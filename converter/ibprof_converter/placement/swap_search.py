# SPDX-License-Identifier: Apache-2.0
"""The search for a better placement: rounds of swaps, each from a start, that keep what relieves the busiest links."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import load_kernels
from ibprof_converter.placement.placement_problem import Problem, Score, Seats

_WORK_PER_SECOND = 10_000_000
"""Link ends visited that a second of --time stands for: a core of 2020 does 5 times as many for the smallest jobs, and
10 to 20 times as many for one of 128 ranks. So the work ends a search, on a busy machine too, and the same seed and
time give the same placement; the clock is the brake where that is not enough."""

_FEW_ENDS = 10

_CHUNK = 1_000_000
"""Work between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        seats: the best placement.
        score: of it.
        rounds: that were begun.
        proposals, accepted: changes that were tried, and made.
        cut: whether the clock ended it before its work was done; another run may then come out otherwise.
        seconds: that it took.
    """

    seats: Seats
    score: Score
    rounds: int
    proposals: int
    accepted: int
    cut: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Round:
    """How one round searches.

    Attributes:
        doublings: the energy adds up (time / scale) ^ (2 ^ doublings).
        hottest, coldest: temperatures, relative to the energy. Where few link ends have a load, each is a large part of
            the energy, and it begins hotter.
        share: of all work.
    """

    doublings: int
    hottest: float
    coldest: float
    share: float


ROUNDS = (Round(2, 0.03, 1e-4, 0.5), Round(4, 0.03, 1e-4, 0.5))


def search(
    problem: Problem,
    starts: Sequence[Seats],
    seed: int,
    seconds: float,
    bound: float = 0.0,
    rounds: Sequence[Round] = ROUNDS,
    progress: Callable[[float, float], None] = lambda _share, _best: None,
) -> Found:
    """Search from the best of some placements.

    Args:
        problem: what is searched.
        starts: placements; the result is never worse than the best of them.
        seed: of the random choices.
        seconds: that it may take; they set the amount of work, which needs a small part of them.
        bound: no placement's largest time is below it, so that it ends the search.
        rounds: one after the other, each from the best so far.
        progress: is told the share of the work that is done, and the best largest time.
    """
    began = time.perf_counter()
    score, seats = min(((problem.score(start), start) for start in starts), key=lambda pair: pair[0])
    proposals = accepted = begun = 0
    done = 0.0
    cut = False
    for number, each in enumerate(rounds):
        if score.max_seconds <= bound or cut:
            break
        begun += 1
        one = SearchRound(
            problem, seats, score, each, _seed(seed, number), int(seconds * each.share * _WORK_PER_SECOND)
        )
        while not (one.done or cut):
            one.go_on(_CHUNK)
            progress(done + each.share * one.share, one.score.max_seconds)
            cut = time.perf_counter() - began > seconds and not one.done
        done += each.share
        proposals, accepted = proposals + one.proposals, accepted + one.accepted
        if one.score < score:
            score, seats = one.score, one.best
    return Found(seats, score, begun, proposals, accepted, cut, time.perf_counter() - began)


def _seed(seed: int, number: int) -> int:
    return (seed * 0x9E3779B97F4A7C15 + number) & ((1 << 64) - 1)


class SearchRound:
    """One round, in the kernel."""

    def __init__(self, problem: Problem, start: Seats, score: Score, how: Round, seed: int, work: int) -> None:
        self._problem = problem
        self._kernels = load_kernels()
        ends = len(problem.paths.rail)
        rank_of_seat = np.full(problem.sites.seats, -1, np.int32)
        rank_of_seat[start] = np.arange(problem.ranks)
        self.best = start.copy()
        self._arrays: dict[str, npt.NDArray[Any]] = {
            "slot_of_rank": start.copy(),
            "rank_of_slot": rank_of_seat,
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
                "doublings": how.doublings,
                "hottest": max(how.hottest, min(1.0, _FEW_ENDS / (1 + int((problem.load(start) > 0).sum())))),
                "coldest": how.coldest,
                "random": seed,
                "all_work": work,
            },
        )

    def go_on(self, work: int) -> None:
        """Do some more work."""
        self._kernels.lib.ibp_placement_search(self._problem.c, self._c, self._c.work + work)

    @property
    def done(self) -> bool:
        """Whether all work is done, or the energy is 0."""
        return bool(self._c.work >= self._c.all_work or (self._c.proposals and self._c.energy <= 0))

    @property
    def share(self) -> float:
        """How much of the work is done, 0 to 1."""
        return min(1.0, float(self._c.work) / max(1.0, float(self._c.all_work)))

    @property
    def score(self) -> Score:
        """Of the best placement met."""
        return Score(int(self._c.best_lost), float(self._c.best_max), float(self._c.best_squares))

    @property
    def proposals(self) -> int:
        """Changes tried."""
        return int(self._c.proposals)

    @property
    def accepted(self) -> int:
        """Changes made."""
        return int(self._c.accepted)

    @property
    def energy(self) -> float:
        """Of the present placement."""
        return float(self._c.energy)

    @property
    def seats(self) -> Seats:
        """The present placement."""
        seats: Seats = self._arrays["slot_of_rank"]
        return seats
