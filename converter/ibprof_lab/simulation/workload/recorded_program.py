# SPDX-License-Identifier: Apache-2.0
"""A recorded run as a program, in which each rank computes, sends, and waits for messages.

For each interval, a recording contains the time inside MPI and the sent messages, but not the messages that the rank
waited for. This module assumes the waits as follows. If the receiver is inside MPI when a message arrives at line rate,
the wait is at the arrival (early waits) or at the end of this stay in MPI (late waits). If the receiver is computing at
the arrival, the wait is at the end of the previous stay in MPI, if this end was shortly before; otherwise in the next
stay. The sender of a message of `LEAST_RENDEZVOUS` bytes or more waits for the arrival in the same manner. A wait is
always later than the start of the awaited message, so that two ranks never wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof.load import load_profile
from ibprof.profile.profile_data import Profile
from ibprof_lab.simulation.workload.program_steps import LEAST_RENDEZVOUS, Operation, RankProgram, lay_out_program
from ibprof_lab.simulation.workload.recorded_messages import lay_out_messages

_NEAR = 2
"""Largest error of a message's assumed arrival time, as a number of intervals; clocks differ, and start times are
inexact."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """A recorded run as a program.

    Attributes:
        program: the steps of the ranks.
        seconds: longest wall time of a rank.
        computing: longest time of a rank outside MPI, seconds.
        interval: median length of a rank's intervals, the largest over ranks, seconds.
    """

    program: RankProgram
    seconds: float
    computing: float
    interval: float


@lru_cache(maxsize=8)
def load_program(path: Path, byte_ns: float, waits_late: bool) -> RecordedProgram:
    """Read a profile or recording, and return it as a program (see `make_program`)."""
    return make_program(load_profile(path), str(path), byte_ns, waits_late)


def make_program(run: Profile, name: str, byte_ns: float, waits_late: bool) -> RecordedProgram:
    """Return a recorded run as a program.

    Args:
        run: the profile, with times and a time line.
        byte_ns: time of a byte at line rate, ns.
        waits_late: True if ranks wait as late as possible, False if as early as possible.

    Raises:
        InconsistentError: the profile lacks times, a time line, an end, a rank or an operation.
    """
    _refuse(run, name)
    messages = lay_out_messages(run, name, with_times=True)
    first = int(run.intervals.begin_ns.min())
    lines = [_make_line(run, rank) for rank in range(run.world_size)]
    placed: list[list[tuple[float, int, Operation]]] = [[] for _ in lines]
    for source, peer, size, begin in zip(
        messages.source.tolist(),
        messages.destination.tolist(),
        messages.bytes.tolist(),
        (messages.begin_ns + (first - _epoch(run))).tolist(),
        strict=True,
    ):
        at = lines[source].find_send(begin)
        send = Operation(source, 0, "send", size, peer)
        placed[source].append((at, 0, send))
        arrival = at + max(size * byte_ns, 1.0)
        send.receive = Operation(peer, 0, "recv", size, source)
        placed[peer].append((lines[peer].find_wait(at, arrival, waits_late), 1, send.receive))
        if size >= LEAST_RENDEZVOUS and source != peer:
            send.sent = Operation(source, 0, "recv", 1, source)
            placed[source].append((lines[source].find_wait(at, arrival, waits_late), 1, send.sent))
    ordered = [list(_add_computing(rank, line, placed[rank])) for rank, line in enumerate(lines)]
    return RecordedProgram(
        program=lay_out_program(ordered),
        seconds=max(line.end for line in lines) / 1e9,
        computing=max(line.computed(line.end) for line in lines) / 1e9,
        interval=max(line.interval for line in lines) / 1e9,
    )


def _refuse(run: Profile, name: str) -> None:
    timed = {each.rank for each in run.ranks if each.has_times and each.stop_ns is not None}
    if not set(range(run.world_size)) <= timed or not len(run.interval_times.rank) or not len(run.intervals.rank):
        raise InconsistentError(
            f"{name}: expected a whole run with times and a time line of all {run.world_size} ranks; record the run "
            "to its end with IBPROF_TIME=1 and IBPROF_INTERVAL"
        )
    if run.operations_asked:
        raise InconsistentError(f"{name}: only {run.operations_asked} were recorded: record all operations")


def _epoch(run: Profile) -> int:
    """Return the earliest start of a rank, Unix time in ns."""
    return min(each.start_ns for each in run.ranks if each.rank < run.world_size)


@dataclass(frozen=True, slots=True)
class _Line:
    """The time line of a rank. Times are in ns since the earliest start of a rank.

    Attributes:
        edge: float64 [piece + 1], begin of each piece of time, and end of the last piece.
        inside: bool [piece], True if the rank is inside MPI.
        begin: float64 [interval], begin of each recorded interval.
        send: float64 [interval], assumed start of the messages in each interval.
        interval: median length of the intervals; an interval is longer if the rank stays outside MPI.
    """

    edge: Floats
    inside: npt.NDArray[np.bool_]
    begin: Floats
    send: Floats
    interval: float

    @property
    def end(self) -> float:
        return float(self.edge[-1])

    def computed(self, time: float) -> float:
        """Return the time that the rank spent outside MPI before a given time."""
        length = np.clip(time - self.edge[:-1], 0, np.diff(self.edge))
        return float(length[~self.inside].sum())

    def find_send(self, begin: float) -> float:
        """Return the assumed start of a message that was recorded to begin at `begin`."""
        number = int(np.searchsorted(self.begin, begin, "right")) - 1
        return float(self.send[max(number, 0)])

    def find_wait(self, begin: float, arrival: float, waits_late: bool) -> float:
        """Return when the rank waits for a message that was sent at `begin` and arrives at `arrival` or later."""
        piece = min(max(int(np.searchsorted(self.edge, arrival, "right")) - 1, 0), len(self.inside) - 1)
        if not self.inside[piece]:
            left = float(self.edge[piece])
            if piece and left > begin and arrival - left <= _NEAR * self.interval:
                return left
            if piece + 1 == len(self.inside):
                return max(self.end, arrival)
            piece += 1
            arrival = float(self.edge[piece])
        return max(float(self.edge[piece + 1]), arrival) if waits_late else arrival


def _make_line(run: Profile, rank: int) -> _Line:
    (own,) = (each for each in run.ranks if each.rank == rank)
    epoch = _epoch(run)
    start, stop = float(own.start_ns - epoch), float((own.stop_ns or own.start_ns) - epoch)
    begin, end, inside = _list_intervals(run, rank, epoch, start, stop)
    part = inside / np.maximum(end - begin, 1)
    # Assume that an interval's time inside MPI adjoins the neighbouring interval with more time inside MPI.
    is_first = np.concatenate([[0.0], part[:-1]]) > np.concatenate([part[1:], [1.0]])
    edges: list[float] = [start]
    kinds: list[bool] = []
    for left, right, length, mpi_first in zip(begin, end, inside, is_first, strict=True):
        middle = left + length if mpi_first else right - length
        for until, is_inside in ((middle, bool(mpi_first)), (right, not mpi_first)):
            if until <= edges[-1]:
                continue
            if kinds and kinds[-1] == is_inside:
                edges[-1] = until
            else:
                kinds.append(is_inside)
                edges.append(until)
    if not kinds:
        edges, kinds = [start, max(stop, start + 1)], [False]
    send = np.where(is_first, begin, end - inside)
    return _Line(np.array(edges), np.array(kinds), begin, send, float(np.median(end - begin)))


def _list_intervals(run: Profile, rank: int, epoch: int, start: float, stop: float) -> tuple[Floats, Floats, Floats]:
    """Return begin and end, ns since `epoch`, and time inside MPI, ns, of each interval; gaps become intervals outside
    MPI."""
    rows = run.interval_times.rank == rank
    known = {
        (int(begin) - epoch, int(end) - epoch): int(time)
        for begin, end, time in zip(
            run.interval_times.begin_ns[rows], run.interval_times.end_ns[rows], run.interval_times.time_ns[rows],
            strict=True,
        )
    }  # fmt: skip
    traffic = run.intervals.rank == rank
    for begin, end in zip(run.intervals.begin_ns[traffic], run.intervals.end_ns[traffic], strict=True):
        known.setdefault((int(begin) - epoch, int(end) - epoch), 0)
    found: list[tuple[float, float, float]] = []
    last = start
    for (begin, end), time in sorted(known.items()):
        left, right = max(float(begin), last), min(float(end), stop)
        if right <= left:
            continue
        if left > last:
            found.append((last, left, 0.0))
        found.append((left, right, min(float(time), right - left)))
        last = right
    if stop > last:
        found.append((last, stop, 0.0))
    columns = np.array(found or [(start, stop, 0.0)]).T
    return columns[0], columns[1], columns[2]


def _add_computing(rank: int, line: _Line, placed: Sequence[tuple[float, int, Operation]]) -> Sequence[Operation]:
    """Return sends and waits, sorted by time, and computations between them."""
    operations: list[Operation] = []
    done = 0.0
    for time, _, operation in sorted(placed, key=lambda each: each[:2]):
        if (now := line.computed(time)) > done:
            operations.append(Operation(rank, 0, "calc", round(now - done)))
            done = now
        operations.append(operation)
    if (now := line.computed(line.end)) > done:
        operations.append(Operation(rank, 0, "calc", round(now - done)))
    return operations
