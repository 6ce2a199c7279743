# SPDX-License-Identifier: Apache-2.0
"""Round trips with several peers at the same time: shift patterns, and network_tests2's all_to_all.

Each process pings some peers and echoes others' pings as they arrive. It times the path of its own ping and the echo.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.measure.batch_samples import Sampling, next_turns

_PING, _ECHO = 3, 4
_MOST_TURNS = 1 << 20


class ConcurrentEchoes:
    """Pings to some processes and echoes to others, repeated, of one message length.

    Args:
        comm: the communicator, of mpi4py.
        to: ranks that are pinged.
        back: ranks whose pings are echoed.
        length: bytes of a message.
    """

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
        """Return the seconds from ping to echo, summed over a number of turns, float64 [number of pinged ranks]."""
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
    """Time batches that all processes do together; they agree on the number of turns.

    Returns:
        Delays, half of the round trips, seconds, float64 [repetitions, pinged ranks].
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
