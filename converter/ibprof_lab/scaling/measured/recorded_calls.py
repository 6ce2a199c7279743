# SPDX-License-Identifier: Apache-2.0
"""Time of a recorded run: computing, and the calls of each operation.

Times are from the rank with the smallest time inside MPI. This rank is the last to arrive at each collective call. Its
time in calls is communication; the time of the other ranks also contains waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibprof.errors import InconsistentError
from ibprof.profile.profile_data import Direction, Kind, Profile, Source
from ibprof_lab.scaling.measured.call_costs import ALGORITHMS

MESSAGES = "messages"
"""Name of all operations except blocking collectives: messages between two ranks, and waits."""

_VECTORS = ("ALLTOALLV", "ALLTOALLW")


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls of one operation, or `MESSAGES`.

    Attributes:
        calls: number of calls of a rank. For `MESSAGES`, number of messages that a rank sends.
        size: bytes of a call, as defined for `ALGORITHMS`. For `MESSAGES`, bytes of a message.
        seconds: time inside the calls.
    """

    calls: float
    size: float
    seconds: float


@dataclass(frozen=True, slots=True)
class TimedRun:
    """Times and calls of a run for the prediction.

    Attributes:
        size: problem size n.
        processes: p.
        seconds: wall time.
        computing: time outside MPI, s.
        rank: rank whose times are used.
        groups: calls by operation, or `MESSAGES`.
        notes: data that is not included, a sentence each.
    """

    name: str
    size: float
    processes: int
    seconds: float
    computing: float
    rank: int
    groups: dict[str, CallGroup]
    notes: tuple[str, ...] = ()

    @property
    def communicating(self) -> float:
        """Time inside MPI, s."""
        return self.seconds - self.computing


def read_calls(run: Profile, size: float) -> TimedRun:
    """Return the times and calls of a run.

    Raises:
        InconsistentError: times were not recorded, the run did not end, or ranks are missing.
    """
    walls = {
        rank.rank: (rank.stop_ns - rank.start_ns - rank.off_ns) / 1e9
        for rank in run.ranks
        if rank.rank < run.world_size and rank.stop_ns is not None and rank.has_times
    }
    if len(walls) < run.world_size:
        raise InconsistentError(
            f"{run.name}: expected a whole run with times of all {run.world_size} ranks, found those of {len(walls)}; "
            "record it to its end with IBPROF_TIME=1"
        )
    inside = np.zeros(run.world_size)
    np.add.at(inside, run.times.rank, run.times.time_ns / 1e9)
    rank = int(np.argmin(inside))
    seconds, total = walls[rank], float(inside[rank])
    groups = {name: group for name, group in _list_groups(run, rank).items() if group.calls or group.seconds}
    notes = []
    if run.operations_asked:
        notes.append(f"only {run.operations_asked} were recorded: the time of other calls counts as computing")
    return TimedRun(run.name, size, run.world_size, seconds, max(seconds - total, 0.0), rank, groups, tuple(notes))


def _list_groups(run: Profile, rank: int) -> dict[str, CallGroup]:
    times = run.times
    of_rank = times.rank == rank
    found: dict[str, CallGroup] = {}
    waits = 0.0
    for number, name in enumerate(run.operations):
        rows = of_rank & (times.operation == number)
        calls, seconds = int(times.calls[rows].sum()), float(times.time_ns[rows].sum()) / 1e9
        if name in ALGORITHMS:
            found[name] = CallGroup(calls, _size_of(run, number, name), seconds)
        else:
            waits += seconds
    messages, size = _count_messages(run)
    found[MESSAGES] = CallGroup(messages, size, waits)
    return found


def _size_of(run: Profile, operation: int, name: str) -> float:
    """Return the bytes of a call from its arguments: the maximum over ranks, since roots may count none."""
    demands = run.demands
    rows = demands.operation == operation
    if not rows.any():
        return 0.0
    asked, calls = np.zeros((2, run.world_size))
    np.add.at(asked, demands.rank[rows], demands.bytes[rows].astype(float))
    np.add.at(calls, demands.rank[rows], demands.calls[rows].astype(float))
    each = np.divide(asked, calls, out=np.zeros_like(asked), where=calls > 0)
    return float(each.mean() if name in _VECTORS else each.max())


def _count_messages(run: Profile) -> tuple[float, float]:
    """Return a rank's mean number of messages outside blocking collectives, and their mean size."""
    counters = run.counters
    collective = np.array([name in ALGORITHMS for name in run.operations] or [False])
    rows = (
        ~collective[counters.operation]
        & (counters.kind == Kind.USER)
        & (counters.direction != Direction.RECEIVED)
        & (counters.source != Source.VERBS)
        & (counters.peer != counters.rank)
    )
    messages, amount = float(counters.messages[rows].sum()), float(counters.bytes[rows].sum())
    return messages / run.world_size, amount / messages if messages else 0.0
