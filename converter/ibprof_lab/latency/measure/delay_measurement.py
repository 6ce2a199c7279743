# SPDX-License-Identifier: Apache-2.0
"""A delay measurement on all processes of a job, from options to file."""

from __future__ import annotations

import math
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_lab.lab_choices import ALL_TO_ALL
from ibprof_lab.latency.features.outliers import find_outlier_pairs
from ibprof_lab.latency.files.pair_files import read_pairs
from ibprof_lab.latency.measure.concurrent_loops import RoundMeasurer
from ibprof_lab.latency.measure.delay_store import DelayStore, check_writable, continue_delays, now
from ibprof_lab.latency.measure.measurement_plan import (
    AGAIN_MORE,
    ROUNDS_OF,
    SYNCHRONISING_S,
    MeasurementPlan,
    Round,
    color_pairs,
    count_rounds,
    round_robin,
    shifts,
)
from ibprof_lab.latency.measure.mpi_job import (
    GO_ON,
    SAVE,
    STOP,
    ProgressMeter,
    RoundBarrier,
    describe_mpi,
    describe_place,
    on_first,
    show_seconds,
)
from ibprof_lab.latency.measure.timed_loops import PingPong, Sampling, end_batches, follow_batches, lead_batch
from ibprof_lab.latency.model.delays import Delays, empty_delays

Chooser: TypeAlias = Callable[[Delays], Sequence[Round]]

_TRIED = 24
"""Largest number of message lengths that are tried to estimate the time of the whole measurement."""


class PairChooser(Protocol):
    """Chooses the pairs to measure next. `is_hierarchy` becomes False if all pairs must be measured."""

    is_hierarchy: bool

    def choose_pairs(self, seconds: npt.NDArray[np.floating]) -> list[tuple[int, int]] | None:
        """Return disjoint pairs for the next round, or None if no pair is needed. `seconds`: delays so far, [n, n]."""


ChooserFactory: TypeAlias = Callable[[int], PairChooser]
"""Function that returns a `PairChooser` for the given number of hosts."""


class MeasurementSession:
    """A measurement, saved in `path`. Every process of the job creates a session and calls the same methods."""

    def __init__(self, module: Any, plan: MeasurementPlan, path: Path) -> None:
        self.module, self.plan, self.path = module, plan, path
        self.comm = module.COMM_WORLD.Dup()
        self.is_first = self.comm.rank == 0
        self.size: int = self.comm.size
        self.measurer = RoundMeasurer(self.comm, plan)
        self.barrier = RoundBarrier(self.comm)
        self.meter = ProgressMeter(self.say)
        self.store: DelayStore | None = None
        self.stopped = False
        self.begin = time.monotonic()
        self._places: list[tuple[str, str]] = self.comm.allgather(describe_place(module))

    def say(self, line: str) -> None:
        """Print a line on stderr, on the first process only."""
        if self.is_first:
            print(f"ibprof-latency: {line}", file=sys.stderr, flush=True)

    def estimate(self) -> None:
        """Time one message of each length, and print the expected duration of the measurement."""
        plan = self.plan
        at_once = self.measurer.at_once
        rounds = 1 if plan.mode == ALL_TO_ALL else count_rounds(plan.schedule, self.size)
        turns = self._try_turns() * (plan.window if plan.mode == "bandwidth" else 1)
        if plan.mode == ALL_TO_ALL:
            turns = turns * max(self.size - 1, 1)
        # The search for the number of turns per batch takes about as long as 1.5 batches.
        batches = plan.sampling.repetitions + 1.5
        parts = (1 if at_once else 2) * (2 if plan.one_way else 1)
        a_round = parts * batches * np.maximum(turns, plan.sampling.batch_s) + SYNCHRONISING_S
        seconds = float(rounds * a_round.sum()) if self.size > 1 else 0.0
        hosts = len({host for host, _ in self._places})
        self.say(
            f"processes: {self.size}, hosts: {hosts}, ordered pairs: {self.size * (self.size - 1):,}, "
            f"message lengths: {len(plan.lengths)}, rounds per length: {rounds:,}; about {show_seconds(seconds)}"
        )

    def measure(self, resume: bool, choose: Chooser | None = None, search: ChooserFactory | None = None) -> int:
        """Measure pairs without delays, repeat outlying pairs, write the file, and print a summary.

        Args:
            resume: True to keep the results in the file and measure only missing pairs.
            choose: function that returns the rounds to repeat, given the delays in the file; called on the first
                process. None to measure all missing pairs.
            search: function that returns a `PairChooser` for few pairs; called on the first process. None to measure
                all pairs.

        Returns:
            The number of the signal that ended the measurement; 0 if no signal arrived.

        Raises:
            IbprofError: a file cannot be read or written, or belongs to another measurement.
        """
        self.plan.check(self.size)
        self._open_store(resume or choose is not None)
        again = 0
        with self.barrier:
            try:
                if choose is not None:
                    rounds = self.comm.bcast(on_first(self.comm, lambda: choose(self._opened_store.delays)))
                    again = self._repeat([rounds] * len(self.plan.lengths), "measuring pairs again")
                elif search is None or not self._measure_few(search):
                    self._measure_missing()
                    again = self._measure_outliers()
            finally:
                self.meter.stop()
            on_first(self.comm, lambda: self._opened_store.save(measured_again=again))
        number: int = self.comm.allreduce(self.barrier.signal, self.module.MAX)
        if self.store is not None:
            delays = self.store.delays
            found, every = int(delays.measured.sum()), len(delays.lengths) * self.size * (self.size - 1)
            if self.stopped:
                self.say(
                    f"stopped: {self.path} has {found:,} of {every:,} delays; the same command with --resume continues"
                )
            else:
                self.say(f"{self.path}: {found:,} delays in {show_seconds(float(delays.attributes['elapsed_s']))}")
        return number

    # -- the delays and their file

    @property
    def _opened_store(self) -> DelayStore:
        assert self.store is not None
        return self.store

    def _open_store(self, goes_on: bool) -> None:
        hosts, cores = (tuple(each) for each in zip(*self._places, strict=True))
        attributes = self.plan.describe() | {
            "mpi": describe_mpi(self.module),
            "ibprof": version("ibprof"),
            "python": platform.python_version(),
            "command": " ".join(sys.argv),
        }

        def open_it() -> DelayStore:
            check_writable(self.path)
            lengths = self.plan.lengths
            if goes_on and self.path.exists():
                delays = continue_delays(self.path, hosts, cores, lengths, attributes)
            else:
                delays = empty_delays(hosts, lengths, cores, {**attributes, "started": now(), "complete": 0})
            return DelayStore(self.path, delays, self.plan.save_every_s)

        self.store = on_first(self.comm, open_it)

    # -- rounds

    def _measure_missing(self) -> None:
        """Measure those rounds of the schedule in which at least one pair has no delay."""
        todo = self.comm.bcast(self._find_missing() if self.is_first else None)
        if self.is_first:
            self.meter.start("measuring", sum(len(numbers) for numbers in todo))
        for index, numbers in enumerate(todo):
            if self.stopped:
                break
            chosen = set(numbers)
            rounds = (pairs for number, pairs in enumerate(self._schedule()) if number in chosen)
            self._run(index, rounds, self.plan.sampling, self.measurer.at_once, keep_lower=False)

    def _schedule(self) -> Iterable[Round]:
        if self.plan.mode == ALL_TO_ALL:
            everything = list(shifts(self.size))
            return [np.concatenate(everything)] if everything else []
        return ROUNDS_OF[self.plan.schedule](self.size)

    def _find_missing(self) -> list[list[int]]:
        median = self._opened_store.delays.median
        rounds: list[list[int]] = [[] for _ in self.plan.lengths]
        for number, pairs in enumerate(self._schedule()):
            one, other = pairs.T
            there = np.isfinite(median[:, one, other]).all(axis=1)
            if not self.measurer.at_once:
                there &= np.isfinite(median[:, other, one]).all(axis=1)
            for index in np.flatnonzero(~there):
                rounds[index].append(number)
        return rounds

    def _measure_outliers(self) -> int:
        """Measure outlying pairs again, within the budget; return their number."""
        plan = self.plan
        if self.size < 2 or self.measurer.at_once or self.stopped:
            return 0
        lengths = range(len(plan.lengths))
        budget = math.ceil(plan.again * self.size * (self.size - 1) / 2)
        if plan.again_s is not None:
            budget = int(plan.again_s / plan.seconds_of_pair_again / len(plan.lengths))
        found = (
            [find_outlier_pairs(self._opened_store.delays, index, budget) for index in lengths]
            if self.is_first
            else None
        )
        alone = plan.schedule == "sequential"
        rounds_of = [color_pairs(pairs, alone) for pairs in self.comm.bcast(found)]
        return self._repeat(rounds_of, "measuring outlying pairs again")

    def _measure_few(self, make: ChooserFactory) -> bool:
        """Measure the pairs of a `PairChooser`, one process per host. Return False if all pairs must be measured."""
        hosts = [host for host, _ in self._places]
        first = [hosts.index(host) for host in dict.fromkeys(hosts)]
        processes = np.array(first if len(first) > 1 else range(self.size), np.int64)
        search = make(len(processes)) if self.is_first else None
        if self.is_first:
            self.meter.start("measuring chosen pairs", count_rounds("rounds", len(processes)))
        measured = 0
        while not self.stopped:
            pairs = self.comm.bcast(self._next_pairs(search, processes))
            if pairs is None:
                break
            measured += len(pairs)
            for index in range(len(self.plan.lengths)):
                if not self.stopped:
                    rounds = color_pairs(pairs, self.plan.schedule == "sequential")
                    both = self.plan.is_directed
                    self._run(index, rounds, self.plan.sampling, False, keep_lower=False, both_directions=both)
        is_enough: bool = self.comm.bcast(search is None or search.is_hierarchy or self.stopped)
        everything = len(processes) * (len(processes) - 1) // 2
        self.say(
            f"{measured:,} of {everything:,} pairs of {len(processes):,} hosts measured"
            if is_enough
            else "nested switches do not explain the delays of the first hosts: all pairs are measured"
        )
        return is_enough

    def _next_pairs(self, search: PairChooser | None, processes: npt.NDArray[np.int64]) -> Round | None:
        """Return the unmeasured pairs of the next round; called on the first process only."""
        if search is None:
            return None
        while True:
            median = self._opened_store.delays.median
            pairs = search.choose_pairs(median[0][np.ix_(processes, processes)])
            if pairs is None:
                return None
            chosen = processes[np.array(pairs, np.int64).reshape(-1, 2)]
            missing = ~np.isfinite(median[:, chosen[:, 0], chosen[:, 1]]).all(axis=0)
            if missing.any():
                return chosen[missing].astype(np.int32)

    def _repeat(self, rounds_of: Sequence[Sequence[Round]], what: str) -> int:
        sampling = replace(self.plan.sampling, repetitions=AGAIN_MORE * self.plan.sampling.repetitions)
        total = sum(len(pairs) for rounds in rounds_of for pairs in rounds)
        if not total:
            return 0
        self.say(f"{what}: {total:,}")
        if self.is_first:
            self.meter.start(what, sum(len(rounds) for rounds in rounds_of))
        for index, rounds in enumerate(rounds_of):
            if not self.stopped:
                self._run(index, rounds, sampling, at_once=False, keep_lower=True)
        return total

    def _run(
        self,
        index: int,
        rounds: Iterable[Round],
        sampling: Sampling,
        at_once: bool,
        keep_lower: bool,
        both_directions: bool = True,
    ) -> None:
        """Measure rounds of the message length with this index; end early if a process wishes to stop."""
        for pairs in rounds:
            self.measurer.measure(index, pairs, sampling, at_once, both_directions)
            word = self.barrier.wait(self._wish())
            if self.is_first:
                self.meter.advance(1)
            if word == SAVE:
                self._collect(keep_lower)
                if self.is_first:
                    self._opened_store.save_if_possible()
            if word == STOP:
                self.stopped = True
                break
        self._collect(keep_lower)

    def _wish(self) -> int:
        if not self.is_first:
            return GO_ON
        limit = self.plan.limit_s
        if limit is not None and time.monotonic() - self.begin >= limit:
            return STOP
        return SAVE if self._opened_store.is_due else GO_ON

    def _collect(self, keep_lower: bool) -> None:
        found = self.comm.gather(self.measurer.take_rows())
        if found is not None:
            for rows in found:
                self._opened_store.add(rows, keep_lower)

    def _try_turns(self) -> npt.NDArray[np.float64]:
        """Return the round-trip time of the slowest pair in the first round, seconds, float64 [L].

        At most `_TRIED` lengths are measured; the times of the other lengths are interpolated.
        """
        lengths = self.plan.lengths
        chosen = np.unique(np.linspace(0, len(lengths) - 1, min(len(lengths), _TRIED)).astype(int))
        took = np.zeros(len(chosen))
        for pairs in islice(round_robin(self.size), 1):
            for pair in pairs[(pairs == self.comm.rank).any(axis=1)].tolist():
                leads = pair[0] == self.comm.rank
                for index, length in enumerate(lengths[chosen]):
                    kernel = PingPong(self.comm, pair[leads], int(length))
                    if leads:
                        lead_batch(kernel, 1)
                        took[index] = lead_batch(kernel, 1)
                        end_batches(kernel)
                    else:
                        follow_batches(kernel)
        slowest = np.zeros_like(took)
        self.comm.Allreduce(took, slowest, self.module.MAX)
        return np.interp(lengths, lengths[chosen], slowest)


def measure_delays(
    module: Any,
    output: Path,
    plan: MeasurementPlan,
    resume: bool,
    pairs: Path | None,
    few_pairs: bool,
    dry_run: bool,
    search: ChooserFactory,
) -> int:
    """Measure delays and write the file; called on every process.

    Args:
        module: `mpi4py.MPI`.
        output: file of the delays; this and the following arguments must be equal on all processes.
        plan: lengths, schedule and limits.
        resume: True to keep the file's earlier results.
        pairs: file of the pairs to measure again, and no others; None to measure all pairs.
        few_pairs: True to measure only the pairs that `search` chooses.
        dry_run: True to only print an estimate.
        search: function that returns a `PairChooser` for few pairs.

    Returns:
        The number of the signal that ended the measurement, with partial results in the file; 0 if no signal arrived.

    Raises:
        UsageError: the plan does not fit the number of processes.
        IbprofError: a file cannot be read or written, or belongs to another measurement.
    """
    if few_pairs and (pairs or plan.schedule not in ("rounds", "sequential")):
        raise UsageError("--few-pairs: expected --schedule rounds or sequential, and no --pairs")
    session = MeasurementSession(module, plan, output)
    plan.check(session.size)
    session.estimate()
    if dry_run:
        return 0

    def choose(delays: Delays) -> Sequence[Round]:
        assert pairs is not None
        return color_pairs(read_pairs(pairs, delays.labels), plan.schedule == "sequential")

    return session.measure(resume, choose if pairs else None, search if few_pairs else None)
