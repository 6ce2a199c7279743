# SPDX-License-Identifier: Apache-2.0
"""Interference of an MPI job and an I/O job on a fabric, and changes that reduce the interference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ibprof_lab.lab_choices import JobPlacement, ServerPlacement
from ibprof_lab.simulation.measure.message_latency import BySeed, Figure, Latency, average, compare
from ibprof_lab.simulation.study.cell import Cell, Outcome, Setting, can_route_adaptively, set_up
from ibprof_lab.simulation.study.cost_estimate import find_cycle_ns
from ibprof_lab.simulation.study.sizes_and_times import format_time
from ibprof_lab.simulation.workload.workloads import Role, Workload

_WINDOWS = (1.0, 1.25, 1.5, 2.0)
"""Windows to try (minimum times between starts of a client's I/O requests), as multiples of `find_cycle_ns`."""

_PARTS = 20
"""Number of jitter values for which a client's cycle is computed and averaged."""

COSTS_LITTLE = 0.95
"""A change is recommended only if the I/O job keeps at least this fraction of its present rate."""

MOST_SEEDS_ASKED = 100
"""Largest number of seeds that an answer proposes."""

WORTH = 0.95
"""A change is recommended only if MPI messages then take less than this fraction of the present time."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Results of a scenario's simulations, for seeds whose means settled. Times are in ns.

    Methods that return a `Figure` divide two values of each seed, and average over seeds. They return None if no seed
    has both values.

    Attributes:
        name: name for users.
        jobs: the I/O job, and the MPI job.
        alone: name of a job -> mean latency if only this job runs.
        together: name of a job -> mean latency if both jobs run.
        io_bytes_per_s: total rate of the I/O job's clients if both jobs run.
        notes: reasons why means did not settle, without duplicates.
    """

    name: str
    setting: Setting
    jobs: tuple[Workload, Workload]
    alone: Mapping[str, BySeed]
    together: Mapping[str, BySeed]
    io_bytes_per_s: BySeed
    notes: tuple[str, ...]

    def slowdown(self, job: str) -> Figure | None:
        """Return a job's latency if both jobs run, divided by the job's latency alone."""
        return average(compare(self.together[job], self.alone[job]))

    def change_by_seed(self, job: str, now: Scenario) -> BySeed:
        """Return seed -> a job's latency if both jobs run, divided by the same latency in the scenario `now`."""
        return compare(self.together[job], now.together[job])

    def change(self, job: str, now: Scenario) -> Figure | None:
        """Return the mean over seeds of `change_by_seed`."""
        return average(self.change_by_seed(job, now))

    def change_of_rate(self, now: Scenario) -> Figure | None:
        """Return the I/O job's rate if both jobs run, divided by the same rate in the scenario `now`."""
        return average(compare(self.io_bytes_per_s, now.io_bytes_per_s))


def list_scenarios(
    setting: Setting, io: Workload, mpi: Workload
) -> Iterator[tuple[str, Setting, tuple[Workload, Workload]]]:
    """Yield name, setting and jobs of each scenario, the present one first; adaptive routing if it cannot deadlock."""
    yield "as it is", setting, (io, mpi)
    sampled, are_named = (replace(io, hosts=()), replace(mpi, hosts=())), bool(io.hosts or mpi.hosts)
    if are_named:
        yield "jobs on hosts sampled one by one", replace(setting, job_placement=JobPlacement.RANDOM_NODE), sampled
    if are_named or setting.job_placement is not JobPlacement.RANDOM_SWITCH:
        yield "jobs on whole leaf switches", replace(setting, job_placement=JobPlacement.RANDOM_SWITCH), sampled
    is_recorded = io.role is Role.PROFILE  # a recorded job has no servers, and its times are fixed
    for placement, name in () if is_recorded else ((ServerPlacement.SPREAD, "servers spread, one per leaf"),
                            (ServerPlacement.ISOLATED, "servers on separate leaves")):  # fmt: skip
        if setting.server_hosts or setting.server_placement is not placement:
            yield name, replace(setting, server_placement=placement, server_hosts=()), (io, mpi)
    if not setting.adaptive and can_route_adaptively(setting.network):
        yield "adaptive routing", replace(setting, adaptive=True), (io, mpi)
    if is_recorded:
        return
    cycle = find_cycle_ns(Cell(setting, (io, mpi), (io.name,), io.name, 1), io)
    for factor in _WINDOWS:
        window = float(f"{factor * cycle:.2g}")
        yield f"I/O requests {format_time(window)} apart", setting, (replace(io, window_ns=window), mpi)


def list_cells(setting: Setting, io: Workload, mpi: Workload, seeds: Sequence[int]) -> list[Cell]:
    """Return the simulations whose outcomes `compare_scenarios` needs."""
    return [
        _cell(changed, jobs, job, together, seed)
        for seed in seeds
        for _, changed, jobs in list_scenarios(setting, io, mpi)
        for job in (io.name, mpi.name)
        for together in (False, True)
    ]


def compare_scenarios(
    setting: Setting, io: Workload, mpi: Workload, seeds: Sequence[int], outcomes: Mapping[str, Outcome]
) -> list[Scenario]:
    """Return the results of each scenario, the present scenario first."""
    scenarios = []
    for name, changed, jobs in list_scenarios(setting, io, mpi):
        means: dict[bool, dict[str, BySeed]] = {False: {}, True: {}}
        settled: dict[int, Latency] = {}
        notes = []
        for together, job in product((False, True), jobs):
            found = {seed: outcomes[_cell(changed, jobs, job.name, together, seed).key].latency for seed in seeds}
            notes += [each.note for each in found.values() if not each.is_settled]
            settled = {seed: each for seed, each in found.items() if each.is_settled}
            means[together][job.name] = {seed: Figure(each.mean, each.half) for seed, each in settled.items()}
            if together and job.name == io.name:
                rates = _find_rates(changed, jobs, settled)
        scenarios.append(Scenario(name, changed, jobs, means[False], means[True], rates, tuple(dict.fromkeys(notes))))
    return scenarios


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
    """Return the mean time between successive requests of a client.

    The time between two requests is the request time plus the interval, but at least the window. The mean is computed
    bin by bin of the latency's histogram: the maximum of the two means would be too small.
    """
    lower, upper, messages = np.array(latency.histogram).T
    taken = (lower + upper) / 2 + job.interval_ns
    windows = job.window_ns * (1 + job.jitter * (np.arange(0.5, _PARTS) * 2 / _PARTS - 1))
    return float(np.average(np.maximum(taken[:, None], windows).mean(axis=1), weights=messages))


@dataclass(frozen=True, slots=True)
class UndecidedChange:
    """A change that would be recommended if its 95% interval were narrower.

    Attributes:
        scenario: scenario with the change.
        gain, half: relative reduction of the latency, and half width of its 95% interval; nan if unknown.
        seeds: approximate number of seeds for an interval narrower than the gain; None if above `MOST_SEEDS_ASKED`.
    """

    scenario: Scenario
    gain: float
    half: float
    seeds: int | None


def is_sure(gain: float, half: float) -> bool:
    """Return True if the 95% interval of a gain is narrower than the gain; False if `half` is nan."""
    return 2 * half < gain


def recommend(scenarios: Sequence[Scenario], mpi: str) -> tuple[Scenario | None, tuple[UndecidedChange, ...]]:
    """Among the changes that keep the I/O rate, choose the change with the fastest MPI messages.

    Returns:
        The scenario with this change, or None if no change is recommended; and the changes whose mean gain is larger,
        but whose 95% intervals are too wide, the largest gain first.
    """
    now, *changes = scenarios
    good: list[tuple[float, Scenario]] = []
    undecided = []
    for each in changes:
        times, rate = each.change(mpi, now), each.change_of_rate(now)
        if not times or not rate or times.mean >= WORTH or rate.mean < COSTS_LITTLE:
            continue
        gain = 1 - times.mean
        if is_sure(gain, times.half):
            good.append((times.mean, each))
        else:
            undecided.append(
                UndecidedChange(
                    each, gain, times.half, _count_seeds(len(each.change_by_seed(mpi, now)), gain, times.half)
                )
            )
    best = min(good, key=lambda each: each[0], default=(1.0, None))
    better = sorted((each for each in undecided if 1 - each.gain < best[0]), key=lambda each: -each.gain)
    return best[1], tuple(better)


def _count_seeds(seeds: int, gain: float, half: float) -> int | None:
    """Return `UndecidedChange.seeds`, assuming that the scatter over seeds stays the same."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    if seeds < 2 or math.isnan(half):
        return max(3, seeds + 1)
    more = np.arange(seeds + 1, MOST_SEEDS_ASKED + 1)
    scatter = half * math.sqrt(seeds) / t.ppf(0.975, seeds - 1)
    enough = more[2 * t.ppf(0.975, more - 1) * scatter / np.sqrt(more) < gain]
    return int(enough[0]) if len(enough) else None


def _cell(setting: Setting, jobs: tuple[Workload, Workload], measured: str, together: bool, seed: int) -> Cell:
    running = tuple(each.name for each in jobs) if together else (measured,)
    return Cell(setting, jobs, running, measured, seed)
