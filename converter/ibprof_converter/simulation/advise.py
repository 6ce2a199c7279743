# SPDX-License-Identifier: Apache-2.0
"""What an MPI job and an I/O job do to each other on a fabric, and what of it a change would take away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from ibprof_converter.simulation.cell import Cell, Outcome, Setting, can_route_adaptively, set_up
from ibprof_converter.simulation.cost import find_cycle_ns
from ibprof_converter.simulation.latency import Latency
from ibprof_converter.simulation.roles import JobPlacement, ServerPlacement, Workload

_WINDOWS = (1.0, 1.25, 1.5, 2.0)
"""Throttle windows that are tried, in cycles of the I/O job as it is."""

_PARTS = 20
"""In which a window's jitter is looked at."""

COSTS_LITTLE = 0.95
"""Part of its rate that the I/O job must keep for a change to be recommended."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run both jobs. Times in ns; None where a mean did not settle.

    Attributes:
        name: for people.
        setting: of it.
        jobs: the I/O job, the MPI job.
        alone: mean latency of each job by itself.
        beside: mean latency of each job beside the other.
        io_bytes_per_s: what all clients of the I/O job write in a second beside the other.
        notes: why means did not settle, each reason once.
    """

    name: str
    setting: Setting
    jobs: tuple[Workload, Workload]
    alone: Mapping[str, float | None]
    beside: Mapping[str, float | None]
    io_bytes_per_s: float | None
    notes: tuple[str, ...]

    def slowdown(self, job: str) -> float | None:
        """Give how many times as long the job's messages take beside the other."""
        alone, beside = self.alone[job], self.beside[job]
        return beside / alone if alone and beside else None


def list_ways(
    setting: Setting, io: Workload, mpi: Workload
) -> Iterator[tuple[str, Setting, tuple[Workload, Workload]]]:
    """Give the ways that are compared, the present one first; none that could deadlock."""
    yield "as it is", setting, (io, mpi)
    drawn, are_named = (replace(io, hosts=()), replace(mpi, hosts=())), bool(io.hosts or mpi.hosts)
    if are_named:
        yield "jobs on hosts drawn one by one", replace(setting, job_placement=JobPlacement.RANDOM_NODE), drawn
    if are_named or setting.job_placement is not JobPlacement.RANDOM_SWITCH:
        yield "jobs on whole leaf switches", replace(setting, job_placement=JobPlacement.RANDOM_SWITCH), drawn
    for placement, name in ((ServerPlacement.SPREAD, "servers spread, one a leaf"),
                            (ServerPlacement.ISOLATED, "servers on leaves of their own")):  # fmt: skip
        if setting.server_hosts or setting.server_placement is not placement:
            yield name, replace(setting, server_placement=placement, server_hosts=()), (io, mpi)
    if not setting.adaptive and can_route_adaptively(setting.fabric):
        yield "adaptive routing", replace(setting, adaptive=True), (io, mpi)
    cycle = find_cycle_ns(Cell(setting, (io, mpi), (io.name,), io.name, 1), io)
    for factor in _WINDOWS:
        window = float(f"{factor * cycle:.2g}")
        yield f"I/O requests {_format_time(window)} apart", setting, (replace(io, window_ns=window), mpi)


def list_cells(setting: Setting, io: Workload, mpi: Workload, seeds: Sequence[int]) -> list[Cell]:
    """Give the simulations that `compare_ways` takes."""
    return [
        _cell(changed, jobs, job, beside, seed)
        for seed in seeds
        for _, changed, jobs in list_ways(setting, io, mpi)
        for job in (io.name, mpi.name)
        for beside in (False, True)
    ]


def compare_ways(
    setting: Setting, io: Workload, mpi: Workload, seeds: Sequence[int], outcomes: Mapping[str, Outcome]
) -> list[Way]:
    """Give each way with what was measured, the present one first."""
    ways = []
    for name, changed, jobs in list_ways(setting, io, mpi):
        means: dict[bool, dict[str, float | None]] = {}
        rate, notes = None, []
        for beside in (False, True):
            means[beside] = {}
            for job in jobs:
                found = [outcomes[_cell(changed, jobs, job.name, beside, seed).key].latency for seed in seeds]
                settled = all(each.is_settled for each in found)
                notes += [each.note for each in found if not each.is_settled]
                means[beside][job.name] = fmean(each.mean for each in found) if settled else None
                if settled and beside and job.name == io.name:
                    clients = int(set_up(_cell(changed, jobs, io.name, False, seeds[0])).measured.sum())
                    rate = clients * io.bytes * 1e9 / fmean(_find_mean_cycle_ns(job, each) for each in found)
        ways.append(Way(name, changed, jobs, means[False], means[True], rate, tuple(dict.fromkeys(notes))))
    return ways


def _find_mean_cycle_ns(job: Workload, latency: Latency) -> float:
    """Give the mean time from one request of a client to its next.

    Not the mean request or the window, whichever is more: only requests that are slower than it outlast a window.
    """
    lower, upper, messages = np.array(latency.histogram).T
    taken = (lower + upper) / 2 + job.interval_ns
    windows = job.window_ns * (1 + job.jitter * (np.arange(0.5, _PARTS) * 2 / _PARTS - 1))
    return float(np.average(np.maximum(taken[:, None], windows).mean(axis=1), weights=messages))


def recommend(ways: Sequence[Way], mpi: str) -> Way | None:
    """Give the change that makes MPI messages quickest and leaves the I/O job its rate; None where none is worth it."""
    now, *changes = ways
    before, rate = now.beside[mpi], now.io_bytes_per_s
    if before is None or rate is None:
        return None
    good = [
        each
        for each in changes
        if (each.beside[mpi] or np.inf) < 0.95 * before and (each.io_bytes_per_s or 0) >= COSTS_LITTLE * rate
    ]
    return min(good, key=lambda each: each.beside[mpi] or np.inf, default=None)


def _cell(setting: Setting, jobs: tuple[Workload, Workload], measured: str, beside: bool, seed: int) -> Cell:
    running = tuple(each.name for each in jobs) if beside else (measured,)
    return Cell(setting, jobs, running, measured, seed)


def _format_time(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:g} ms" if nanoseconds >= 1e6 else f"{nanoseconds / 1e3:g} us"
