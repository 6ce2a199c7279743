# SPDX-License-Identifier: Apache-2.0
"""Run simulations in parallel, in local processes or MPI ranks; store outcomes, and reuse stored outcomes."""

from __future__ import annotations

import fcntl
import json
import math
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import active_children, connection, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread, current_thread, main_thread
from time import monotonic
from typing import Any, TextIO, cast
from zlib import crc32

from ibprof.errors import InconsistentError, MissingToolError, UsageError
from ibprof_lab.simulation.engine.packet_engine import interrupted
from ibprof_lab.simulation.measure.message_latency import Latency
from ibprof_lab.simulation.study.cell import RESULT_SCHEMA, Cell, Outcome, run_cell
from ibprof_lab.simulation.study.cost_estimate import estimate_seconds
from ibprof_lab.simulation.workload.workloads import Role

STORE = "results.jsonl"
"""File in a study's folder with a line for each completed simulation: the simulation's outcome and inputs."""

_WORLD_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")
_UNIT_S = 0.005
"""Estimated processor time of a unit of progress, seconds."""
_WORTH_PROCESSES_S = 1.0
"""Work of at most this estimated time, s, is done in this process: to start processes would take longer."""
_RECORDED = (Role.PROFILE, Role.REPLAY, Role.GOAL)
_TOGETHER = 10.0
"""Interrupts within this number of seconds after the first are ignored."""


class _Processes(ProcessPoolExecutor):
    """A pool of processes, started on demand, and a thread of this process for small amounts of work."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.thread = ThreadPoolExecutor(1)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut down the processes and the thread."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        self.thread.shutdown(wait, cancel_futures=cancel_futures)


@contextmanager
def open_pool(workers: int) -> Iterator[Executor | None]:
    """Open a pool of workers for simulations: processes of this machine or, under `mpirun -n K`, the ranks above 0.

    Args:
        workers: number of processes.

    Yields:
        The pool, on rank 0 or without MPI. None on another rank, after all simulations are finished.

    Raises:
        MissingToolError: the command runs under mpirun, and mpi4py is not installed.
        InconsistentError: mpi4py and mpirun belong to different MPI libraries.
    """
    if any(int(os.environ.get(name, "1")) > 1 for name in _WORLD_SIZES):
        with _open_ranks() as ranks:
            yield ranks
        return
    pool: Executor = (
        _Processes(workers, mp_context=get_context("spawn"), initializer=_end_with_parent)
        if workers > 1
        else ThreadPoolExecutor(1)  # unlike a process, a thread need not read the fabric again
    )
    with _interrupted_once():
        try:
            yield pool
        except BaseException:
            interrupted.set()
            for child in active_children():
                child.terminate()
            # Wait for the pool's thread, which could else write to a closed pipe when Python exits.
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            pool.shutdown()
            interrupted.clear()


@contextmanager
def _interrupted_once() -> Iterator[None]:
    """Handle only the first interrupt: a second interrupt, for example from `timeout`, would stop the shutdown. The
    handler stays installed, since the second interrupt may come late.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    taken = -math.inf
    ends = False

    def interrupt(_signal: int, _frame: object) -> None:
        nonlocal taken
        if (ends and monotonic() > taken + _TOGETHER) or taken < 0:
            taken = monotonic()
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        ends = True
        if taken < 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _open_ranks() -> Iterator[Executor | None]:
    try:
        from mpi4py import MPI  # noqa: PLC0415  (only where there is MPI)
        from mpi4py.futures import MPICommExecutor  # noqa: PLC0415
    except ImportError:
        raise MissingToolError("under mpirun, mpi4py is needed: pip install 'ibprof[mpi]'") from None
    if MPI.COMM_WORLD.Get_size() == 1:
        raise InconsistentError("mpirun started several ranks, but mpi4py sees one: mpi4py is built for another MPI")
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as entered:
        pool = cast("Executor | None", entered)  # mpi4py's stub of MPICommExecutor declares a wrong type
        try:
            yield pool
        except BaseException:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block interrupts in a `with` block, and permanently in the processes that are started in the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        Thread(target=lambda: (connection.wait([parent.sentinel]), os._exit(1)), daemon=True).start()


@contextmanager
def keep_results(folder: Path | None) -> Iterator[Path]:
    """Create the folder of results if necessary, and yield its path; for None, a temporary folder."""
    if folder is None:
        with TemporaryDirectory(prefix="ibprof-sim-") as temporary:
            yield Path(temporary)
        return
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def run_cells(
    cells: Sequence[Cell], folder: Path, pool: Executor, tell: Callable[[int, int], None] = lambda _done, _all: None
) -> dict[str, Outcome]:
    """Run the simulations whose outcomes are not stored, seed by seed; store each outcome immediately.

    Args:
        folder: folder of the study, with the stored outcomes.
        pool: pool for the simulations; little work may be done in this process.
        tell: callback that gets the completed work and the total work, in units of `_UNIT_S`.

    Returns:
        `Cell.key` -> outcome of the simulation with this key.

    Raises:
        MemoryError: a process of the pool was killed.
        UsageError: another process writes into this folder.
    """
    store = folder / STORE
    with store.open("a", encoding="ascii") as file:
        _claim(file, folder)
        outcomes = {each.key: each for each in _read_store(store)}
        wanted = {cell.key: cell for cell in cells}
        missing = {key: cell for key, cell in wanted.items() if key not in outcomes}
        cost = {key: max(round(estimate_seconds(cell) / _UNIT_S), 1) for key, cell in wanted.items()}
        # Start the longest simulations of a seed first, so that no process works alone at the end.
        in_turn = sorted(missing.values(), key=lambda cell: (cell.seed, -cost[cell.key]))
        done, all_of = sum(cost[key] for key in wanted if key in outcomes), sum(cost.values())
        tell(done, all_of)
        if store.stat().st_size and not store.read_bytes().endswith(b"\n"):
            file.write("\n")  # end the incomplete line of a killed writer
        if isinstance(pool, _Processes) and _is_little(missing.values(), sum(cost[key] for key in missing) * _UNIT_S):
            pool = pool.thread
        with _interrupts_held():
            futures = [pool.submit(run_cell, cell) for cell in in_turn]
        try:
            for future in as_completed(futures):
                outcome = future.result()
                outcomes[outcome.key] = outcome
                line = {"schema": RESULT_SCHEMA, **asdict(outcome), "cell": missing[outcome.key].describe()}
                text = json.dumps(_replace_nan(line))
                file.write(f'{text[:-1]}, "check": {crc32(text.encode("ascii"))}}}\n')
                file.flush()
                done += cost[outcome.key]
                tell(done, all_of)
        except BrokenExecutor:
            raise MemoryError("a simulation's process was killed") from None
    return {key: outcomes[key] for key in wanted}


def _is_little(cells: Iterable[Cell], seconds: float) -> bool:
    """Return True if the work is too little to start processes.

    Return False for recorded runs, whose estimates are too low.
    """
    recorded = any(each.role in _RECORDED for cell in cells for each in cell.workloads)
    return not recorded and seconds <= _WORTH_PROCESSES_S


def _claim(file: TextIO, folder: Path) -> None:
    """Lock a folder against other writers, if the file system supports locks; closing the file unlocks the folder."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"{folder}: another ibprof-sim writes into this folder; name another folder with -o") from None
    except OSError:
        pass  # without locks, two processes can do the same work, with the same results


def find_stored(cells: Sequence[Cell], folder: Path) -> dict[str, Outcome]:
    """Return the outcomes of `cells` that are stored in a folder, by `Cell.key`."""
    outcomes = {each.key: each for each in _read_store(folder / STORE)}
    return {cell.key: outcomes[cell.key] for cell in cells if cell.key in outcomes}


def _replace_nan(value: Any) -> Any:
    """Replace nan, which JSON does not have, by None."""
    if isinstance(value, Mapping):
        return {name: _replace_nan(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _read_store(store: Path) -> Iterator[Outcome]:
    """Yield the outcomes in a store; damaged lines, and lines of another `RESULT_SCHEMA`, are left out."""
    if not store.exists():
        return
    for line in store.read_text(encoding="ascii", errors="replace").splitlines():
        try:
            document: dict[str, Any] = json.loads(line)
            check = document.pop("check")
            if check != crc32(json.dumps(document).encode("ascii")) or document.pop("schema") != RESULT_SCHEMA:
                continue
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        latency = Latency(**{name: _restore(value) for name, value in document["latency"].items()})
        yield Outcome(document["key"], latency, document["packet_hops"], document["cpu_seconds"], document["whole_ns"])


def _restore(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_restore(each) for each in value)
    return math.nan if value is None else value
