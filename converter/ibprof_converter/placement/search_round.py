# SPDX-License-Identifier: Apache-2.0
"""One round of the search for a rank placement: simulated annealing by one energy, run by the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import load_kernels
from ibprof_converter.placement.placement_problem import PlacementProblem, PlacementScore, SlotOfRank, score_of

_NO_LIMIT = (1 << 63) - 1
_ROUNDING = 1 + 1e-12


class Goal(Enum):
    """The time that a round lowers; it keeps what earlier goals reached."""

    BOTTLENECK = "the largest time of all link directions"
    SWITCHES = "the largest time between switches"
    SUM = "the sum of all times"


@dataclass(frozen=True, slots=True)
class Energy:
    """The sum over link directions of (bytes * unit) ^ (2 ^ doublings), which a round lowers.

    Attributes:
        unit: float64 [end]; 0 for those that do not count.
        limit: int64 [end], bytes that no step may exceed.
        doublings: how much the largest terms count.
    """

    unit: npt.NDArray[np.float64]
    limit: npt.NDArray[np.int64]
    doublings: int

    @staticmethod
    def towards(goal: Goal, problem: PlacementProblem, score: PlacementScore, doublings: int) -> Energy:
        """Return the energy for a goal, from a placement of the given score on."""
        seconds = problem.paths.seconds_per_byte
        between = np.arange(len(seconds)) < problem.paths.between_switches
        between[-1] = True  # what does not arrive counts for each goal
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


class SearchRound:
    """One round, run by the kernel.

    Args:
        problem: the problem to solve.
        start: where to begin.
        score: of `start`.
        energy: what to lower.
        temperatures: relative to the energy, at the beginning and at the end.
        seed: of the random choices.
        work: link directions to visit.
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
        """Do some more work."""
        self._kernels.lib.ibp_placement_search(self._problem.c, self._c, self._c.work + work)

    @property
    def done(self) -> bool:
        """True once all work is done, or the energy is 0."""
        return bool(self._c.work >= self._c.all_work or (self._c.proposals and self._c.energy <= 0))

    @property
    def work(self) -> int:
        """Link directions visited."""
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
        """Geometric mean of the relative rises of the energy that were proposed; 0 where there was none."""
        return float(np.exp(self._c.uphill / self._c.climbs)) if self._c.climbs else 0.0

    @property
    def slot_of_rank(self) -> SlotOfRank:
        """The current placement."""
        slot_of_rank: SlotOfRank = self._arrays["slot_of_rank"]
        return slot_of_rank
