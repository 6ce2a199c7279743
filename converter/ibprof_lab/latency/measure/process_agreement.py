# SPDX-License-Identifier: Apache-2.0
"""Agreement of all processes of a job: errors of the first, when to save, when to stop."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from ibprof.errors import IbprofError, InputError

T = TypeVar("T")

GO_ON, SAVE, STOP = 0, 1, 2

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGXCPU)
"""Signals with which a launcher, a user or a batch system ends a job; SIGKILL follows soon."""

_SPIN_S = 2e-4
_LONGEST_NAP_S = 1e-3


class FirstProcessError(IbprofError):
    """The first process has failed and reports why; this one exits with the same status, silently."""

    def __init__(self, status: int) -> None:
        super().__init__("the first process failed")
        self.status = status


def on_first(comm: Any, work: Callable[[], T]) -> T | None:
    """Do something on the first process only, such as reading a file; all others learn whether it succeeded.

    Returns:
        The result of the work, on the first process; None on the others.

    Raises:
        IbprofError: on the first process, as raised by the work or by the operating system.
        FirstProcessError: on the others.
    """
    error: IbprofError | None = None
    given: T | None = None
    if comm.rank == 0:
        try:
            given = work()
        except IbprofError as raised:
            error = raised
        except (OSError, MemoryError) as raised:
            name = getattr(raised, "filename", None) or "this process"
            error = InputError(
                name, None, "space and the right to write", getattr(raised, "strerror", "") or "no memory"
            )
    status = comm.bcast(None if error is None else error.status)
    if error is not None:
        raise error
    if status is not None:
        raise FirstProcessError(status)
    return given


class RoundBarrier:
    """The end of each round: all processes wait for all, and learn whether to save or to stop.

    A waiting process sleeps most of the time. Where there are more processes than cores, or cores share a clock budget,
    spinning would slow down those that measure.

    Args:
        comm: the communicator, of mpi4py.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.signal = 0
        self._mine = np.zeros(1, np.int32)
        self._all = np.zeros(1, np.int32)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> RoundBarrier:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.signal = number

    def wait(self, wish: int = GO_ON) -> int:
        """Meet the others and return the strongest of all wishes; a signal is a wish to stop."""
        from mpi4py import MPI  # noqa: PLC0415  (starts MPI)

        self._mine[0] = STOP if self.signal else wish
        request = self.comm.Iallreduce(self._mine, self._all, MPI.MAX)
        begin = time.perf_counter()
        nap = _SPIN_S / 4
        while not request.Test():
            if time.perf_counter() - begin > _SPIN_S:
                time.sleep(nap)
                nap = min(2 * nap, _LONGEST_NAP_S)
        return int(self._all[0])
