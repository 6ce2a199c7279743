# SPDX-License-Identifier: Apache-2.0
"""Time of collective operations from the rounds of their algorithms.

Of the algorithms for an operation the quickest one counts, as MPI libraries choose by size and number of ranks.

Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19(1), 2005, sections 3 to 4.5. What they call alpha
is L + 2o here, beta is G. The time of reductions themselves is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

DOUBLING = "doubling"
"""Rounds in which rank i talks to rank i XOR 2^k."""

RING = "ring"
"""Each rank sends to the next one."""

ALL_PAIRS = "all-pairs"
"""Each rank sends to every other one, round by round."""

ROOT = "root"
"""Everything goes to or from one rank, whose link decides."""

PATTERNS = (DOUBLING, RING, ALL_PAIRS, ROOT)


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of an algorithm.

    Attributes:
        pattern: who talks to whom, of `PATTERNS`.
        rounds: messages of a rank one after the other.
        bytes: that a rank sends in all of them.
    """

    pattern: str
    rounds: float
    bytes: float


Algorithms = Callable[[int, float], Sequence[Sequence[Stage]]]
"""The algorithms for p ranks and s bytes, each as stages; s as in the table of docs/formats/recording.md."""


class MessageTimes(Protocol):
    """Times of a message."""

    def times(self, length: float) -> tuple[float, float]:
        """Return the part that does not depend on the length, and the other one, in seconds."""


Shares = Callable[[str, int], float]
"""Pattern and number of ranks -> time of the most loaded link over that of a message alone."""


def _rounds(p: int) -> int:
    return (p - 1).bit_length()


def _of_broadcast(p: int, s: float) -> Sequence[Sequence[Stage]]:
    scattered = (p - 1) / p * s
    return (
        [Stage(DOUBLING, _rounds(p), _rounds(p) * s)],
        [Stage(DOUBLING, _rounds(p), scattered), Stage(RING, p - 1, scattered)],
    )


def _of_all_reduce(p: int, s: float) -> Sequence[Sequence[Stage]]:
    lg = _rounds(p)
    return [Stage(DOUBLING, lg, lg * s)], [Stage(DOUBLING, 2 * lg, 2 * (p - 1) / p * s)]


def _of_all_gather(p: int, s: float) -> Sequence[Sequence[Stage]]:
    return [Stage(DOUBLING, _rounds(p), (p - 1) * s)], [Stage(RING, p - 1, (p - 1) * s)]


def _of_all_to_all(p: int, s: float) -> Sequence[Sequence[Stage]]:
    lg = _rounds(p)
    return [Stage(DOUBLING, lg, lg * p / 2 * s)], [Stage(ALL_PAIRS, p - 1, (p - 1) * s)]


def _of_vector_all_to_all(p: int, s: float) -> Sequence[Sequence[Stage]]:
    return ([Stage(ALL_PAIRS, p - 1, s)],)


def _of_gather(p: int, s: float) -> Sequence[Sequence[Stage]]:
    return ([Stage(ROOT, _rounds(p), (p - 1) * s)],)


def _of_reduce_scatter(p: int, s: float) -> Sequence[Sequence[Stage]]:
    return [Stage(DOUBLING, _rounds(p), (p - 1) * s)], [Stage(ALL_PAIRS, p - 1, (p - 1) * s)]


def _of_scan(p: int, s: float) -> Sequence[Sequence[Stage]]:
    return ([Stage(DOUBLING, _rounds(p), _rounds(p) * s)],)


def _of_barrier(p: int, _: float) -> Sequence[Sequence[Stage]]:
    return ([Stage(DOUBLING, _rounds(p), 0.0)],)


ALGORITHMS: dict[str, Algorithms] = {
    "BARRIER": _of_barrier,
    "BCAST": _of_broadcast,
    "REDUCE": _of_broadcast,
    "ALLREDUCE": _of_all_reduce,
    "ALLGATHER": _of_all_gather,
    "ALLGATHERV": _of_all_gather,
    "ALLTOALL": _of_all_to_all,
    "ALLTOALLV": _of_vector_all_to_all,
    "ALLTOALLW": _of_vector_all_to_all,
    "GATHER": _of_gather,
    "GATHERV": _of_gather,
    "SCATTER": _of_gather,
    "SCATTERV": _of_gather,
    "REDUCE_SCATTER": _of_reduce_scatter,
    "REDUCE_SCATTER_BLOCK": _of_reduce_scatter,
    "SCAN": _of_scan,
    "EXSCAN": _of_scan,
}
"""By operation. Nonblocking ones have their time in a later wait, and are not among these."""


def time_stage(stage: Stage, ranks: int, network: MessageTimes, share: Shares) -> float:
    """Return the time of a stage, in seconds."""
    if not stage.rounds:
        return 0.0
    start, moving = network.times(stage.bytes / stage.rounds)
    return stage.rounds * (start + moving * share(stage.pattern, ranks))


def time_collective(operation: str, ranks: int, size: float, network: MessageTimes, share: Shares) -> float:
    """Return the time of one collective operation by its quickest algorithm, in seconds; 0 for a rank alone."""
    if ranks < 2:
        return 0.0
    return min(
        math.fsum(time_stage(stage, ranks, network, share) for stage in stages)
        for stages in ALGORITHMS[operation](ranks, size)
    )
