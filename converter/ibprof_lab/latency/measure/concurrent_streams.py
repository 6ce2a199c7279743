# SPDX-License-Identifier: Apache-2.0
"""Streams between several pairs of processes at the same time, and the rate of each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.measure.batch_samples import next_turns
from ibprof_lab.latency.measure.process_agreement import STOP, RoundBarrier
from ibprof_lab.latency.measure.timed_loops import Stream, end_batches, follow_batches, lead_batch

_BATCHES = 8
"""Least number of batches in the time of a measurement: the end of the last one is an error."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How pairs send.

    Attributes:
        length: bytes of a message.
        window: messages in flight.
        seconds: that are timed.
    """

    length: int = 256 * 1024
    window: int = 16
    seconds: float = 0.5


class ConcurrentStreams:
    """Streams of this process with others; every process of the job makes one and calls the same methods.

    Args:
        comm: the communicator, of mpi4py.
        barrier: at which all processes meet.
        streaming: how pairs send.
    """

    def __init__(self, comm: Any, barrier: RoundBarrier, streaming: StreamSettings) -> None:
        self.comm, self.barrier, self.streaming = comm, barrier, streaming
        self.stopped = False

    def measure(self, pairs: Sequence[tuple[int, int]]) -> npt.NDArray[np.float64] | None:
        """Let all pairs send at the same time, each from its first process to its second.

        Streams begin before the clocks start, and a process that is done does not wait, so that all time the same span.

        Args:
            pairs: ranks; none is in two pairs.

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
