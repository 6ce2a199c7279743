# SPDX-License-Identifier: Apache-2.0
"""What an MPI job and an I/O job do to each other on a fabric, and what of it a change would take away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ibprof_converter.simulation.measure.message_latency import Latency
from ibprof_converter.simulation.measure.seed_statistics import BySeed, Figure, average, compare
from ibprof_converter.simulation.study.cell import Cell, Outcome, Setting, can_route_adaptively, set_up
from ibprof_converter.simulation.study.cost_estimate import find_cycle_ns
from ibprof_converter.simulation.workload.roles import JobPlacement, ServerPlacement, Workload

_WINDOWS = (1.0, 1.25, 1.5, 2.0)
"""Throttle windows that are tried, in cycles of the I/O job as it is."""

_PARTS = 20
"""In which a window's jitter is looked at."""

COSTS_LITTLE = 0.95
"""Part of its rate that the I/O job must keep for a change to be recommended."""

WORTH = 0.95
"""Part of their time now that MPI messages must take less than."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run both jobs. Times in ns, of the seeds whose means settled.

    Attributes:
        name: for people.
        setting: of it.
        jobs: the I/O job, the MPI job.
        alone: mean latency of each job by itself.
        beside: mean latency of each job beside the other.
        io_bytes_per_s: what all clients of the I/O job write in a second beside the other.
        notes: why means did not settle, each reason once.

    The properties and methods give what seeds say together; None where none has what it takes.
    """

    name: str
    setting: Setting
    jobs: tuple[Workload, Workload]
    alone: Mapping[str, BySeed]
    beside: Mapping[str, BySeed]
    io_bytes_per_s: BySeed
    notes: tuple[str, ...]

    def slowdown(self, job: str) -> Figure | None:
        """Give how many times as long the job's messages take beside the other."""
        return average(compare(self.beside[job], self.alone[job]))

    def change(self, job: str, now: Way) -> Figure | None:
        """Give how many times as long as now the job's messages take beside the other."""
        return average(compare(self.beside[job], now.beside[job]))

    def change_of_rate(self, now: Way) -> Figure | None:
        """Give what part of its rate now the I/O job has."""
        return average(compare(self.io_bytes_per_s, now.io_bytes_per_s))


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
        means: dict[bool, dict[str, BySeed]] = {False: {}, True: {}}
        settled: dict[int, Latency] = {}
        notes = []
        for beside, job in product((False, True), jobs):
            found = {seed: outcomes[_cell(changed, jobs, job.name, beside, seed).key].latency for seed in seeds}
            notes += [each.note for each in found.values() if not each.is_settled]
            settled = {seed: each for seed, each in found.items() if each.is_settled}
            means[beside][job.name] = {seed: Figure(each.mean, each.half) for seed, each in settled.items()}
            if beside and job.name == io.name:
                rates = _find_rates(changed, jobs, settled)
        ways.append(Way(name, changed, jobs, means[False], means[True], rates, tuple(dict.fromkeys(notes))))
    return ways


def _find_rates(setting: Setting, jobs: tuple[Workload, Workload], settled: Mapping[int, Latency]) -> BySeed:
    io, _ = jobs
    rates = {}
    for seed, latency in settled.items():
        clients = int(set_up(_cell(setting, jobs, io.name, False, seed)).measured.sum())
        cycle = _find_mean_cycle_ns(io, latency)
        rate = clients * io.bytes * 1e9 / cycle
        rates[seed] = Figure(rate, rate * latency.half / cycle)
    return rates


def _find_mean_cycle_ns(job: Workload, latency: Latency) -> float:
    """Give the mean time from one request of a client to its next.

    Not the mean request or the window, whichever is more: only requests that are slower than it outlast a window.
    """
    lower, upper, messages = np.array(latency.histogram).T
    taken = (lower + upper) / 2 + job.interval_ns
    windows = job.window_ns * (1 + job.jitter * (np.arange(0.5, _PARTS) * 2 / _PARTS - 1))
    return float(np.average(np.maximum(taken[:, None], windows).mean(axis=1), weights=messages))


def recommend(ways: Sequence[Way], mpi: str) -> tuple[Way | None, bool]:
    """Give the change that makes MPI messages quickest and leaves the I/O job its rate; None where none is worth it.

    Returns:
        The way, and whether another would be one if its 95 % interval did not reach as far as what is now.
    """
    now, *changes = ways
    good: list[tuple[float, Way]] = []
    is_open = False
    for each in changes:
        times, rate = each.change(mpi, now), each.change_of_rate(now)
        if not times or not rate or times.mean >= WORTH or rate.mean < COSTS_LITTLE:
            continue
        if times.mean + np.nan_to_num(times.half) < 1:
            good.append((times.mean, each))
        else:
            is_open = True
    return min(good, key=lambda each: each[0], default=(0.0, None))[1], is_open


def _cell(setting: Setting, jobs: tuple[Workload, Workload], measured: str, beside: bool, seed: int) -> Cell:
    running = tuple(each.name for each in jobs) if beside else (measured,)
    return Cell(setting, jobs, running, measured, seed)


def _format_time(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:g} ms" if nanoseconds >= 1e6 else f"{nanoseconds / 1e3:g} us"
