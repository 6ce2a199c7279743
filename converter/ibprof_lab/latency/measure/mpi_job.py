# SPDX-License-Identifier: Apache-2.0
"""MPI jobs with mpi4py: start, end, progress on stderr, and errors and signals that end all ranks.

mpi4py is imported late, so that reading delays needs no MPI.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ibprof.errors import UNEXPECTED, IbprofError, InputError, MissingToolError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")

T = TypeVar("T")
GO_ON, SAVE, STOP = 0, 1, 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGXCPU)
"""Signals of a launcher, a user or a batch system that end the job; a SIGKILL may follow soon."""

_SPIN_S = 2e-4
_LONGEST_NAP_S = 1e-3
_KILLED_BY = 128
"""Exit status after a signal = this value + the signal's number."""

_FIRST_LINE_S = 10.0
"""Seconds until the first line of progress; the next lines are printed after 2, 4, 8, ... times this value."""


def start_mpi() -> Any:
    """Start MPI and return the module `mpi4py.MPI`.

    Raises:
        MissingToolError: mpi4py is missing, or is built with another MPI library than the launcher's.
    """
    # mpi4py may support several MPI libraries: select the launcher's library, not the first installed one.
    if "OMPI_COMM_WORLD_SIZE" in os.environ and not {"MPI4PY_MPIABI", "MPI4PY_LIBMPI"} & os.environ.keys():
        os.environ["MPI4PY_MPIABI"] = "openmpi"
    try:
        from mpi4py import MPI  # noqa: PLC0415  (starts MPI)
    except (ImportError, RuntimeError) as error:
        raise MissingToolError(
            f"mpi4py built for the MPI that starts the job is needed ({' '.join(str(error).split())}): "
            "pip install mpi4py, or pip install 'ibprof[mpi]' for an MPI with mpi4py"
        ) from error
    launched = next((int(os.environ[name]) for name in _SIZE if os.environ.get(name, "").isdecimal()), 1)
    if launched > 1 and MPI.COMM_WORLD.size == 1:
        raise MissingToolError(
            f"{launched} processes were launched, but mpi4py's MPI, {describe_mpi(MPI)}, sees one: "
            "expected mpi4py of the launcher's MPI, see `python -m mpi4py --mpi-lib-version`"
        )
    return MPI


def describe_mpi(module: Any) -> str:
    """Return the name and version of the MPI library, on one line."""
    text = str(module.Get_library_version()).rstrip("\0").strip()
    first = " ".join(text.splitlines()[:1]).split(", package")[0]
    return " ".join(first.split())


def describe_place(module: Any) -> tuple[str, str]:
    """Return the name of this process's host, and the cores available to the process, as `0-3,8`."""
    cores = sorted(os.sched_getaffinity(0))
    starts = [core for core in cores if core - 1 not in cores]
    ends = [core for core in cores if core + 1 not in cores]
    spans = (str(one) if one == last else f"{one}-{last}" for one, last in zip(starts, ends, strict=True))
    return module.Get_processor_name(), ",".join(spans)


class FirstProcessError(IbprofError):
    """Raised on the other ranks if rank 0 fails. All ranks exit with rank 0's status; only rank 0 reports the error."""

    def __init__(self, status: int) -> None:
        super().__init__("the first process failed")
        self.status = status


def on_first(comm: Any, work: Callable[[], T]) -> T | None:
    """Call `work` on rank 0 only. Return the result of `work` on rank 0, and None on the other ranks.

    Raises:
        IbprofError: on rank 0, if `work` failed.
        FirstProcessError: on the other ranks, if rank 0 failed.
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
    """Barrier at the end of each round; all processes agree whether to save or to stop.

    A waiting process mostly sleeps, since spinning could slow down the measuring processes.
    """

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.signal = 0
        self._mine = np.zeros(1, np.int32)
        self._all = np.zeros(1, np.int32)
        self._before: dict[int, Any] = {}

    def __enter__(self) -> RoundBarrier:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, lambda number, _: setattr(self, "signal", number))
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, wish: int = GO_ON) -> int:
        """Wait for all processes; return the largest `wish` of a process: GO_ON, SAVE, or STOP (after a signal)."""
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


def work_together(work: Callable[[Any], int]) -> int:
    """Start MPI, call `work` on all ranks, and return the exit status; only rank 0 prints errors.

    Args:
        work: function that takes `mpi4py.MPI` and returns the number of the signal that ended the work, or 0. If `work`
            raises an `IbprofError` on one rank, all ranks must raise an `IbprofError`, such as `FirstProcessError`.
    """
    module = start_mpi()
    if module.COMM_WORLD.rank:
        logging.disable()
    try:
        signal = work(module)
        return _KILLED_BY + signal if signal else 0
    except FirstProcessError as error:
        return error.status
    except IbprofError as error:
        if module.COMM_WORLD.rank:  # rank 0 prints the error
            return error.status
        raise
    except Exception:
        # Abort the job, because otherwise the other ranks wait for this rank forever.
        traceback.print_exc()
        sys.stderr.flush()
        module.COMM_WORLD.Abort(UNEXPECTED)
        return UNEXPECTED


class ProgressMeter:
    """Progress of a measurement: a bar if stderr is a terminal, else lines printed with `say`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.done = self.total = 0
        self.begin = time.monotonic()
        self.next_line = _FIRST_LINE_S
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        if sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415  (needed on a terminal only)
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415  (needed on a terminal only)

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=Console(stderr=True), transient=True)

    def start(self, what: str, total: int) -> None:
        """Begin to display the progress of a part of the work, which has `total` steps."""
        self.done, self.total = 0, total
        self.begin, self.next_line = time.monotonic(), _FIRST_LINE_S
        if self.bar is not None:
            self.bar.start()
            self.task = self.bar.add_task(what, total=total)

    def advance(self, count: int) -> None:
        """Count `count` more steps as done."""
        self.done += count
        if self.bar is not None and self.task is not None:
            self.bar.advance(self.task, count)
            return
        elapsed = time.monotonic() - self.begin
        if elapsed >= self.next_line and self.total:
            self.next_line *= 2
            share = max(min(self.done / self.total, 1.0), 1e-9)
            left = show_seconds(elapsed * (1 - share) / share)
            self.say(f"{100 * share:.0f}% after {show_seconds(elapsed)}, about {left} left")

    def stop(self) -> None:
        """End the display."""
        if self.bar is not None:
            self.bar.stop()


def show_seconds(seconds: float) -> str:
    """Format a time for readers: `0.4 s`, `12 s`, `3 min`, `2.5 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
