# SPDX-License-Identifier: Apache-2.0
"""Work of one process in a round (measure, answer, send noise, or nothing), and loops that time many pairs at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.lab_choices import ALL_TO_ALL, ASYNC, BANDWIDTH
from ibprof_lab.latency.measure.measurement_plan import MeasurementPlan, Round
from ibprof_lab.latency.measure.mpi_job import STOP, RoundBarrier
from ibprof_lab.latency.measure.timed_loops import (
    Exchange,
    OneWay,
    PingPong,
    Sampling,
    Stream,
    TimedLoop,
    end_batches,
    follow_batches,
    lead_batch,
    next_turns,
    sample_batches,
    summarise,
)

_PING, _ECHO = 3, 4
_MOST_TURNS = 1 << 20

_BATCHES = 8
"""The number of turns grows until a batch takes at least `StreamSettings.seconds` / this number. The last batch ends at
most one batch's duration after `StreamSettings.seconds`."""


class ConcurrentEchoes:
    """Pings of `length` bytes to the ranks `to`, and answers to the pings of the ranks `back`."""

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
        """Ping each rank `turns` times; return the total seconds from ping to echo for each rank in `to`, float64."""
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
    """Time batches on all processes at the same time; all processes do the same number of turns.

    Returns:
        Half round-trip times in seconds, float64 [repetitions, ranks in `to`].
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
    """Settings of a stream: bytes per message, messages in flight, and duration of the measurement in seconds."""

    length: int = 256 * 1024
    window: int = 16
    seconds: float = 0.5


class ConcurrentStreams:
    """Streams of this process. Every process of the job creates a `ConcurrentStreams` and calls the same methods."""

    def __init__(self, comm: Any, barrier: RoundBarrier, streaming: StreamSettings) -> None:
        self.comm, self.barrier, self.streaming = comm, barrier, streaming
        self.stopped = False

    def measure(self, pairs: Sequence[tuple[int, int]]) -> npt.NDArray[np.float64] | None:
        """Measure streams from the first to the second rank of all pairs at the same time; no rank is in two pairs.

        A barrier starts the timed batches of all streams, so that the streams run during the same seconds.

        Returns:
            Bytes per second of each pair, float64 [pair], on rank 0; None on the other ranks.
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


_NOISY, _QUIET = 5, 6
"""Tags of two control messages: the noise has started, and the noise may end."""

Row = list[float]
"""One result: index of the message length, sender, receiver, statistics (order of `STATISTICS`), repetitions."""


class RoundMeasurer:
    """Does this process's part of each round of a plan."""

    def __init__(self, comm: Any, plan: MeasurementPlan) -> None:
        self.comm, self.plan = comm, plan
        self.rank: int = comm.rank
        self.rows: list[Row] = []
        self.rounds = 0
        self.at_once = plan.mode == ALL_TO_ALL or plan.schedule == "shift"

    def measure(
        self, index: int, pairs: Round, sampling: Sampling, at_once: bool, both_directions: bool = True
    ) -> None:
        """Take part in a round, and add results to `rows`.

        Args:
            index: index of the message length.
            pairs: int [k, 2], pairs of processes.
            sampling: number and duration of batches per pair.
            at_once: True to measure all pairs of the round by concurrent echoes.
            both_directions: True to measure also the other direction of each pair, with the second process as the
                leader.
        """
        self.rounds += 1
        length = int(self.plan.lengths[index])
        if at_once:
            self._measure_at_once(index, length, pairs, sampling)
            return
        mine = pairs[(pairs == self.rank).any(axis=1)]
        makers = self._draw_noise(pairs)
        leaders = makers[::2]
        if self.rank in makers:
            self._make_noise(makers, int(pairs[0, 0]))
        elif len(mine):
            first, second = mine[0].tolist()
            if self.rank == first:
                for leader in leaders:
                    self.comm.Recv(np.zeros(1, np.uint8), leader, _NOISY)
                self._lead(index, length, second, sampling)
                if both_directions:
                    self._follow(length, second)
                for leader in leaders:
                    self.comm.Send(np.zeros(1, np.uint8), leader, _QUIET)
            else:
                self._follow(length, first)
                if both_directions:
                    self._lead(index, length, first, sampling)

    def take_rows(self) -> npt.NDArray[np.float64]:
        """Return the rows since the last call (see `Row`), float64 [k, 10], and clear them."""
        rows = np.array(self.rows, dtype=np.float64).reshape(-1, 10)
        self.rows = []
        return rows

    # -- a pair

    def _kernel(self, peer: int, length: int) -> TimedLoop:
        if self.plan.mode == ASYNC:
            return Exchange(self.comm, peer, length)
        if self.plan.mode == BANDWIDTH:
            return Stream(self.comm, peer, length, self.plan.window)
        return OneWay(self.comm, peer, length) if self._counts_back(length) else PingPong(self.comm, peer, length)

    def _counts_back(self, length: int) -> bool:
        return self.plan.one_way and length > 0

    def _lead(self, index: int, length: int, peer: int, sampling: Sampling) -> None:
        back = 0.0
        if self._counts_back(length):
            back = float(np.median(_sample(PingPong(self.comm, peer, 0), sampling)))
        samples = _sample(self._kernel(peer, length), sampling) - back
        # The difference of two samples can be negative; a delay cannot.
        self.rows.append([index, self.rank, peer, *summarise(np.maximum(samples, 0)), len(samples)])

    def _follow(self, length: int, peer: int) -> None:
        if self._counts_back(length):
            follow_batches(PingPong(self.comm, peer, 0))
        kernel = self._kernel(peer, length)
        follow_batches(kernel)
        kernel.close()

    # -- all processes

    def _measure_at_once(self, index: int, length: int, pairs: Round, sampling: Sampling) -> None:
        to = pairs[pairs[:, 0] == self.rank, 1].tolist()
        back = pairs[pairs[:, 1] == self.rank, 0].tolist()
        echoes = ConcurrentEchoes(self.comm, to, back, length)
        samples = sample_echoes(self.comm, echoes, sampling)
        echoes.close()
        for peer, summary in zip(to, summarise(samples).T, strict=True):
            self.rows.append([index, self.rank, peer, *summary, len(samples)])

    # -- noise

    def _draw_noise(self, pairs: Round) -> list[int]:
        """Return the processes that exchange noise in this round; all ranks return the same list. An element with an
        even index is a leader, and the next element is its partner.
        """
        noise = self.plan.noise
        if not noise.processes or not len(pairs):
            return []
        others = np.setdiff1d(np.arange(self.comm.size), pairs)
        drawn = np.random.default_rng([self.plan.seed, self.rounds]).permutation(others)
        return [int(each) for each in drawn[: noise.processes]]

    def _make_noise(self, makers: list[int], listener: int) -> None:
        place = makers.index(self.rank)
        partner = makers[place ^ 1]
        noise = self.plan.noise
        kernel = Stream(self.comm, partner, noise.length, noise.messages)
        if place % 2:
            follow_batches(kernel)
        else:
            lead_batch(kernel, 1)
            self.comm.Send(np.zeros(1, np.uint8), listener, _NOISY)
            while not self.comm.Iprobe(listener, _QUIET):
                lead_batch(kernel, 1)
            self.comm.Recv(np.zeros(1, np.uint8), listener, _QUIET)
            end_batches(kernel)
        kernel.close()


def _sample(kernel: TimedLoop, sampling: Sampling) -> npt.NDArray[np.float64]:
    """Run the batches of a loop as the timing process; return one-way delays in seconds, float64 [repetitions]."""
    elapsed, turns = sample_batches(sampling, lambda turns: lead_batch(kernel, turns))
    end_batches(kernel)
    delays: npt.NDArray[np.float64] = elapsed / (turns * kernel.delays_of_a_turn)
    kernel.close()
    return delays
