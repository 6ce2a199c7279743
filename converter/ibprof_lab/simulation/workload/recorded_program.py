# SPDX-License-Identifier: Apache-2.0
"""A recorded run as a program: times of computing, of sends, and of waits for messages of each rank.

A recording has the time inside MPI and the sent messages of each interval, but not which message a rank waited for.
This module assumes the waits. A rank that is inside MPI when a message can arrive at line rate waits for it. The wait
begins at the arrival at the earliest, and at the end of the MPI time at the latest. A rank that computes at
that time waits in its next time inside MPI. The sender of a message of `LEAST_RENDEZVOUS` bytes or more waits for the
message in the same manner. So no rank waits for a message that begins after the wait, and no two ranks wait for each
other.
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
"""The times of one event at two ranks differ by at most this many intervals, because of clocks and of unknown starts
within an interval."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """A run as a program.

    Attributes:
        program: program of the ranks.
        seconds: longest wall time of a rank.
        computing: longest time of a rank outside MPI, seconds.
        interval: longest median interval of a rank, seconds.
    """

    program: RankProgram
    seconds: float
    computing: float
    interval: float


@lru_cache(maxsize=8)
def load_program(path: Path, byte_ns: float, waits_late: bool) -> RecordedProgram:
    """Read a profile or recording as a program; see `make_program`."""
    return make_program(load_profile(path), str(path), byte_ns, waits_late)


def make_program(run: Profile, name: str, byte_ns: float, waits_late: bool) -> RecordedProgram:
    """Return a run as a program.

    Args:
        run: profile with times and a time line.
        byte_ns: time of a byte at line rate.
        waits_late: True for the latest possible waits, False for the earliest.

    Raises:
        InconsistentError: the run has no times or no time line, did not end, or lacks ranks or operations.
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
            f"{name}: expected a whole run with times and a time line of all {run.world_size} ranks; record it to its "
            "end with IBPROF_TIME=1 and IBPROF_INTERVAL"
        )
    if run.operations_asked:
        raise InconsistentError(f"{name}: only {run.operations_asked} were recorded: record all operations")


def _epoch(run: Profile) -> int:
    """Return the Unix time of the first rank's start, in ns."""
    return min(each.start_ns for each in run.ranks if each.rank < run.world_size)


@dataclass(frozen=True, slots=True)
class _Line:
    """The time line of a rank, in ns since the first rank's start.

    Attributes:
        edge: float64 [piece + 1], ascending.
        inside: bool [piece], True inside MPI.
        begin: float64 [interval], ascending.
        send: float64 [interval], start of the messages in each interval.
        interval: median interval; an interval is longer if the rank is outside MPI for a while.
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
        """Return the time outside MPI up to a given time."""
        length = np.clip(time - self.edge[:-1], 0, np.diff(self.edge))
        return float(length[~self.inside].sum())

    def find_send(self, begin: float) -> float:
        """Return the start of an interval's messages, which is the start of its time inside MPI."""
        number = int(np.searchsorted(self.begin, begin, "right")) - 1
        return float(self.send[max(number, 0)])

    def find_wait(self, begin: float, arrival: float, waits_late: bool) -> float:
        """Return the start of the wait for a message, given its begin and its earliest arrival."""
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
    # Within an interval, time inside MPI is placed next to the neighbouring interval with more MPI time.
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
    """Return begin, end and MPI time of each interval of a rank, also without calls; ns since the epoch."""
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
    """Return sends and waits in order of time, with the computing between them."""
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
