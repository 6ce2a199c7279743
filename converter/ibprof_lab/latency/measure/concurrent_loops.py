# SPDX-License-Identifier: Apache-2.0
"""Concurrent loops of several pairs: echoes for shift patterns and network_tests2's all_to_all, and streams."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.measure.mpi_job import STOP, RoundBarrier
from ibprof_lab.latency.measure.timed_loops import Sampling, Stream, end_batches, follow_batches, lead_batch, next_turns

_PING, _ECHO = 3, 4
_MOST_TURNS = 1 << 20

_BATCHES = 8
"""Smallest number of batches in a measurement, since the end of the last batch causes an error."""


class ConcurrentEchoes:
    """Pings of `length` bytes to some ranks, and echoes to received pings; each process times its own pings."""

    def __init__(self, comm: Any, to: Sequence[int], back: Sequence[int], length: int) -> None:
        from mpi4py import MPI  # noqa: PLC0415  (starts MPI)

        self.to = len(to)
        content = (np.zeros(max(length, 1), np.uint8), length, MPI.BYTE)

        def make_buffer() -> tuple[npt.NDArray[np.uint8], int, Any]:
            return np.zeros(max(length, 1), np.uint8), length, MPI.BYTE

        self.pings = [comm.Send_init(content, peer, _PING) for peer in to]
        self.arrivals = [comm.Recv_init(make_buffer(), peer, _ECHO) for peer in to]
        self.arrivals += [comm.Recv_init(make_buffer(), peer, _PING) for peer in back]
        self.echoes = [comm.Send_init(content, peer, _ECHO) for peer in back]
        self.request = MPI.Prequest

    def run(self, turns: int) -> npt.NDArray[np.float64]:
        """Return the total seconds from ping to echo over a number of turns, float64 [number of pinged ranks]."""
        request, to = self.request, self.to
        elapsed = np.zeros(to)
        for _ in range(turns):
            request.Startall(self.arrivals)
            begin = time.perf_counter()
            request.Startall(self.pings)
            for _ in self.arrivals:
                arrived = request.Waitany(self.arrivals)
                if arrived < to:
                    elapsed[arrived] += time.perf_counter() - begin
                else:
                    self.echoes[arrived - to].Start()
            request.Waitall(self.pings)
            request.Waitall(self.echoes)
        return elapsed

    def close(self) -> None:
        """Free the requests."""
        for request in (*self.pings, *self.arrivals, *self.echoes):
            request.Free()


def sample_echoes(comm: Any, echoes: ConcurrentEchoes, sampling: Sampling) -> npt.NDArray[np.float64]:
    """Time batches on all processes at the same time, with a common number of turns.

    Returns:
        Delays (half round trips), seconds, float64 [repetitions, pinged ranks].
    """
    from mpi4py import MPI  # noqa: PLC0415  (starts MPI)

    turns = 1
    while True:
        comm.Barrier()
        begin = time.perf_counter()
        echoes.run(turns)
        shortest = comm.allreduce(time.perf_counter() - begin, MPI.MIN)
        if shortest >= sampling.batch_s or turns >= _MOST_TURNS:
            break
        turns = next_turns(turns, shortest, sampling.batch_s)
    samples = np.empty((sampling.repetitions, echoes.to))
    for row in samples:
        comm.Barrier()
        row[:] = echoes.run(turns) / (2 * turns)
    return samples


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Bytes per message, messages in flight, and timed seconds."""

    length: int = 256 * 1024
    window: int = 16
    seconds: float = 0.5


class ConcurrentStreams:
    """Streams between this process and others; every process of the job creates one and calls the same methods."""

    def __init__(self, comm: Any, barrier: RoundBarrier, streaming: StreamSettings) -> None:
        self.comm, self.barrier, self.streaming = comm, barrier, streaming
        self.stopped = False

    def measure(self, pairs: Sequence[tuple[int, int]]) -> npt.NDArray[np.float64] | None:
        """Let pairs of ranks send at the same time, from the first rank to the second; no rank is in two pairs.

        Streams begin before the clocks start, and finished processes do not wait, so that all time the same span.

        Returns:
            Bytes per second, float64 [pair], on the first process; None on the others.
        """
        mine = next((row for row, pair in enumerate(pairs) if self.comm.rank in pair), None)
        rate = 0.0
        if mine is None:
            self._meet()
        else:
            one, other = pairs[mine]
            sends = self.comm.rank == one
            kernel = Stream(self.comm, other if sends else one, self.streaming.length, self.streaming.window)
            if sends:
                rate = self._send(kernel)
            else:
                follow_batches(kernel)
                self._meet()
                follow_batches(kernel)
            kernel.close()
        self._meet()
        rates = self.comm.gather((mine, rate) if rate else None)
        if rates is None:
            return None
        found = np.zeros(len(pairs))
        for row, value in filter(None, rates):
            found[row] = value
        return found

    def _send(self, kernel: Stream) -> float:
        seconds, turns = self.streaming.seconds, 1
        elapsed = lead_batch(kernel, turns)
        while elapsed < seconds / _BATCHES:
            turns = next_turns(turns, elapsed, seconds / _BATCHES)
            elapsed = lead_batch(kernel, turns)
        end_batches(kernel)
        self._meet()
        begin = time.perf_counter()
        batches, elapsed = 0, 0.0
        while time.perf_counter() - begin < seconds:
            elapsed += lead_batch(kernel, turns)
            batches += 1
        end_batches(kernel)
        return batches * turns * self.streaming.window * self.streaming.length / elapsed

    def _meet(self) -> None:
        self.stopped |= self.barrier.wait() == STOP
