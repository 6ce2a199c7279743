# SPDX-License-Identifier: Apache-2.0
"""The timed loops of two processes.

One process of the pair leads: it sets the number of turns of a batch and times it. The other follows. The loops call
MPI's own Send and Recv on buffers of bytes; docs/how-to/measure-delays.md has the cost that Python adds to a message.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

TURN, CONTROL = 1, 2
"""Tags of timed messages, and of control messages."""

_END = 0


class TimedLoop(ABC):
    """A timed loop with one peer, for one message length.

    Args:
        comm: the communicator, of mpi4py.
        peer: rank of the other process.
        length: bytes of a message.
    """

    def __init__(self, comm: Any, peer: int, length: int) -> None:
        from mpi4py import MPI  # noqa: PLC0415  (starts MPI)

        self.comm, self.peer, self.length = comm, peer, length
        self.outgoing = (np.zeros(max(length, 1), np.uint8), length, MPI.BYTE)
        self.incoming = (np.zeros(max(length, 1), np.uint8), length, MPI.BYTE)
        self.empty = (np.zeros(1, np.uint8), 0, MPI.BYTE)
        self.requests: list[Any] = []

    @abstractmethod
    def lead(self, turns: int) -> None:
        """Do `turns` turns as the process that times them."""

    @abstractmethod
    def follow(self, turns: int) -> None:
        """Do the other process's part."""

    delays_of_a_turn = 2.0
    """Number of one-way delays in a turn."""

    def close(self) -> None:
        """Free persistent requests."""
        for request in self.requests:
            request.Free()
        self.requests = []


class PingPong(TimedLoop):
    """There and back: a turn is a round trip (Bufe, section 1.4), so that no two clocks are compared."""

    def lead(self, turns: int) -> None:
        """Send, and wait for the answer."""
        send, receive = self.comm.Send, self.comm.Recv
        outgoing, incoming, peer = self.outgoing, self.incoming, self.peer
        for _ in range(turns):
            send(outgoing, peer, TURN)
            receive(incoming, peer, TURN)

    def follow(self, turns: int) -> None:
        """Wait, and send back."""
        send, receive = self.comm.Send, self.comm.Recv
        outgoing, incoming, peer = self.outgoing, self.incoming, self.peer
        for _ in range(turns):
            receive(incoming, peer, TURN)
            send(outgoing, peer, TURN)


class OneWay(TimedLoop):
    """There with the whole length and back with an empty message, so that the two directions of a pair can differ.

    A turn takes the delay of the message and that of an empty one back; the same pair measures the latter.
    """

    delays_of_a_turn = 1.0

    def lead(self, turns: int) -> None:
        """Send, and wait for an empty message."""
        send, receive, outgoing, empty, peer = self.comm.Send, self.comm.Recv, self.outgoing, self.empty, self.peer
        for _ in range(turns):
            send(outgoing, peer, TURN)
            receive(empty, peer, TURN)

    def follow(self, turns: int) -> None:
        """Wait, and send an empty message."""
        send, receive, incoming, empty, peer = self.comm.Send, self.comm.Recv, self.incoming, self.empty, self.peer
        for _ in range(turns):
            receive(incoming, peer, TURN)
            send(empty, peer, TURN)


class Exchange(TimedLoop):
    """Both send at the same time, without waiting for the other: network_tests2's async_one_to_one."""

    delays_of_a_turn = 1.0

    def __init__(self, comm: Any, peer: int, length: int) -> None:
        super().__init__(comm, peer, length)
        self.requests = [comm.Recv_init(self.incoming, peer, TURN), comm.Send_init(self.outgoing, peer, TURN)]

    def lead(self, turns: int) -> None:
        """Start both, wait for both."""
        request = type(self.requests[0])
        start, wait, requests = request.Startall, request.Waitall, self.requests
        for _ in range(turns):
            start(requests)
            wait(requests)

    follow = lead


class Stream(TimedLoop):
    """Many messages in flight, then an acknowledgement: the bandwidth of the link.

    A turn is `window` messages, and their delay is the turn's time over their number: length / delay is the bandwidth.
    """

    def __init__(self, comm: Any, peer: int, length: int, window: int) -> None:
        super().__init__(comm, peer, length)
        self.delays_of_a_turn = float(window)
        self.sends = [comm.Send_init(self.outgoing, peer, TURN) for _ in range(window)]
        # MPI allows a buffer in several sends at the same time, but not in several receives.
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
    """Time one batch, seconds. The follower is ready when the clock starts."""
    comm, peer = kernel.comm, kernel.peer
    comm.Send(np.array([turns], np.int64), peer, CONTROL)
    comm.Recv(kernel.empty, peer, CONTROL)
    begin = time.perf_counter()
    kernel.lead(turns)
    return time.perf_counter() - begin


def end_batches(kernel: TimedLoop) -> None:
    """Send the follower the end of the batches."""
    kernel.comm.Send(np.array([_END], np.int64), kernel.peer, CONTROL)


def follow_batches(kernel: TimedLoop) -> None:
    """Do the follower's part of batches until the leader ends them."""
    comm, peer = kernel.comm, kernel.peer
    turns = np.zeros(1, np.int64)
    while True:
        comm.Recv(turns, peer, CONTROL)
        if turns[0] == _END:
            return
        comm.Send(kernel.empty, peer, CONTROL)
        kernel.follow(int(turns[0]))
