# SPDX-License-Identifier: Apache-2.0
"""Timed loops of two processes, and statistics of the samples.

A turn is the part that a loop repeats, such as a round trip. The leading process of a pair chooses the number of turns
in a batch, and times the batch. docs/how-to/measure-delays.md states Python's overhead per message.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.lab_choices import STATISTICS

TURN, CONTROL = 1, 2
"""Tags of timed messages, and of control messages."""

_END = 0

_MOST_TURNS = 1 << 20
_GROWTH = 10


class TimedLoop(ABC):
    """A timed loop of messages of `length` bytes with one peer."""

    def __init__(self, comm: Any, peer: int, length: int) -> None:
        from mpi4py import MPI  # noqa: PLC0415  (starts MPI)

        self.comm, self.peer, self.length = comm, peer, length
        self.outgoing = (np.zeros(max(length, 1), np.uint8), length, MPI.BYTE)
        self.incoming = (np.zeros(max(length, 1), np.uint8), length, MPI.BYTE)
        self.empty = (np.zeros(1, np.uint8), 0, MPI.BYTE)
        self.requests: list[Any] = []

    @abstractmethod
    def lead(self, turns: int) -> None:
        """Do `turns` turns as the timing process."""

    @abstractmethod
    def follow(self, turns: int) -> None:
        """Do the follower's part of `turns` turns."""

    delays_of_a_turn = 2.0
    """Number of one-way delays in a turn."""

    def close(self) -> None:
        """Free persistent requests."""
        for request in self.requests:
            request.Free()
        self.requests = []


class PingPong(TimedLoop):
    """A turn is a round trip (Bufe, section 1.4), timed with the leader's clock only."""

    def lead(self, turns: int) -> None:
        """Send a message, and wait for the answer."""
        send, receive = self.comm.Send, self.comm.Recv
        outgoing, incoming, peer = self.outgoing, self.incoming, self.peer
        for _ in range(turns):
            send(outgoing, peer, TURN)
            receive(incoming, peer, TURN)

    def follow(self, turns: int) -> None:
        """Wait for a message, and send it back."""
        send, receive = self.comm.Send, self.comm.Recv
        outgoing, incoming, peer = self.outgoing, self.incoming, self.peer
        for _ in range(turns):
            receive(incoming, peer, TURN)
            send(outgoing, peer, TURN)


class OneWay(TimedLoop):
    """A turn is a message of `length` bytes and an empty answer, to measure each direction separately.

    The delay of the empty answer is included in the measured delay.
    """

    delays_of_a_turn = 1.0

    def lead(self, turns: int) -> None:
        """Send a message, and wait for the empty answer."""
        send, receive, outgoing, empty, peer = self.comm.Send, self.comm.Recv, self.outgoing, self.empty, self.peer
        for _ in range(turns):
            send(outgoing, peer, TURN)
            receive(empty, peer, TURN)

    def follow(self, turns: int) -> None:
        """Wait for a message, and send the empty answer."""
        send, receive, incoming, empty, peer = self.comm.Send, self.comm.Recv, self.incoming, self.empty, self.peer
        for _ in range(turns):
            receive(incoming, peer, TURN)
            send(empty, peer, TURN)


class Exchange(TimedLoop):
    """A turn is a message in each direction at the same time (network_tests2's async_one_to_one)."""

    delays_of_a_turn = 1.0

    def __init__(self, comm: Any, peer: int, length: int) -> None:
        super().__init__(comm, peer, length)
        self.requests = [comm.Recv_init(self.incoming, peer, TURN), comm.Send_init(self.outgoing, peer, TURN)]

    def lead(self, turns: int) -> None:
        """Start a send and a receive, and wait for both."""
        request = type(self.requests[0])
        start, wait, requests = request.Startall, request.Waitall, self.requests
        for _ in range(turns):
            start(requests)
            wait(requests)

    follow = lead


class Stream(TimedLoop):
    """A turn is `window` messages in flight and an acknowledgement. The bandwidth is length / delay.

    The delay of a message is the turn's time / `window`.
    """

    def __init__(self, comm: Any, peer: int, length: int, window: int) -> None:
        super().__init__(comm, peer, length)
        self.delays_of_a_turn = float(window)
        self.sends = [comm.Send_init(self.outgoing, peer, TURN) for _ in range(window)]
        # Concurrent sends can share a buffer; concurrent receives must not.
        buffers = [(np.zeros(max(length, 1), np.uint8), length, self.outgoing[2]) for _ in range(window)]
        self.receives = [comm.Recv_init(buffer, peer, TURN) for buffer in buffers]
        self.requests = self.sends + self.receives

    def lead(self, turns: int) -> None:
        """Send a window of messages, and wait for the acknowledgement."""
        request = type(self.sends[0])
        for _ in range(turns):
            request.Startall(self.sends)
            request.Waitall(self.sends)
            self.comm.Recv(self.empty, self.peer, CONTROL)

    def follow(self, turns: int) -> None:
        """Receive a window of messages, and acknowledge it."""
        request = type(self.receives[0])
        for _ in range(turns):
            request.Startall(self.receives)
            request.Waitall(self.receives)
            self.comm.Send(self.empty, self.peer, CONTROL)


def lead_batch(kernel: TimedLoop, turns: int) -> float:
    """Return the time of one batch, seconds. The clock starts when the follower is ready."""
    comm, peer = kernel.comm, kernel.peer
    comm.Send(np.array([turns], np.int64), peer, CONTROL)
    comm.Recv(kernel.empty, peer, CONTROL)
    begin = time.perf_counter()
    kernel.lead(turns)
    return time.perf_counter() - begin


def end_batches(kernel: TimedLoop) -> None:
    """Tell the follower that the batches have ended."""
    kernel.comm.Send(np.array([_END], np.int64), kernel.peer, CONTROL)


def follow_batches(kernel: TimedLoop) -> None:
    """Do the follower's part of batches until the leader calls `end_batches`."""
    comm, peer = kernel.comm, kernel.peer
    turns = np.zeros(1, np.int64)
    while True:
        comm.Recv(turns, peer, CONTROL)
        if turns[0] == _END:
            return
        comm.Send(kernel.empty, peer, CONTROL)
        kernel.follow(int(turns[0]))


@dataclass(frozen=True, slots=True)
class Sampling:
    """Number of batches per pair and length, and the shortest duration of a batch in seconds."""

    repetitions: int = 11
    batch_s: float = 1e-3


def sample_batches(sampling: Sampling, run: Callable[[int], float]) -> tuple[npt.NDArray[np.float64], int]:
    """Find the number of turns per batch, then time the batches; `run(turns)` does turns and returns their seconds.

    The times of the search are discarded, since the first messages of a pair set up connections and caches.

    Returns:
        Seconds of each batch, float64 [repetitions], and the number of turns of a batch.
    """
    turns = 1
    elapsed = run(turns)
    while elapsed < sampling.batch_s and turns < _MOST_TURNS:
        turns = next_turns(turns, elapsed, sampling.batch_s)
        elapsed = run(turns)
    return np.array([run(turns) for _ in range(sampling.repetitions)]), turns


def next_turns(turns: int, elapsed: float, batch_s: float) -> int:
    """Return the number of turns that fill `batch_s`, estimated from `turns`; at most `_GROWTH * turns + 1`."""
    needed = 1.05 * turns * batch_s / max(elapsed, 1e-9)
    return min(int(min(needed, _GROWTH * turns)) + 1, _MOST_TURNS)


def summarise(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the statistics in the order of `STATISTICS`, float64 [6] from samples [r], or [6, k] from samples [r, k].

    Quartiles are interpolated as numpy does; the deviation is the sample standard deviation, NaN for a single sample.
    """
    low, middle, high = np.percentile(samples, (25, 50, 75), axis=0)
    spread = samples.std(axis=0, ddof=1) if len(samples) > 1 else np.full(samples.shape[1:], np.nan)
    summary = np.array([middle, samples.min(axis=0), low, high, samples.mean(axis=0), spread])
    assert len(summary) == len(STATISTICS)
    return summary
