# SPDX-License-Identifier: Apache-2.0
"""The I/O-congestion threshold: at shorter intervals between requests, an I/O job's requests delay each other.

A client's request takes the time T(I), then the client pauses for the interval I: the cycle is I + T(I). At long
intervals, T is T0, the time of a request alone. At interval 0, T is C: in this time, the servers' links and the routes
to servers carry one request of every client. If the cycle is close to C, the throughput is nearly maximal, and T is
nearly C - I. T(I) is thus near T0 or near C - I; these two asymptotes cross at I = C - T0. A throughput is computed
from the mean of T over all requests. For the ratio C / T0, a mean of T is computed for each client, then averaged over
clients. With N clients, n servers, S bytes per request and B bytes/s per link, the asymptotes cross at N S/(n B) - S/B
if only the servers' links limit C.

Source: P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
10(3), 1978; the term is from K. A. Brown, "Resource Contention due to Data Movement on HPC Systems", doctoral
thesis, Tokyo Institute of Technology, 2018, section 5.4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ibprof.errors import InconsistentError
from ibprof_lab.simulation.measure.message_latency import BySeed, Figure, Latency, average, compare
from ibprof_lab.simulation.study.cell import Cell, Outcome, Setting, list_fabric_notes, set_up
from ibprof_lab.simulation.study.cost_estimate import find_bottleneck_ns, find_bound_ns, find_transfer_ns
from ibprof_lab.simulation.study.simulated_machine import MachineOptions, make_setting
from ibprof_lab.simulation.study.sizes_and_times import format_time
from ibprof_lab.simulation.workload.workloads import IO, Role, Workload

CONGESTED = 2.0
"""A job has a threshold only if a request at interval 0 takes at least this multiple of the time of a request alone."""

NEAR = 0.9
"""The threshold is the interval at which the throughput is this fraction of the throughput at interval 0."""

_LONG = 100
"""The time of a request alone is measured at a long interval: this multiple of the bottleneck time or of the transfer
time, whichever is longer. The servers' links are then at most 1% busy."""

_POINTS = 4
"""Number of intervals to simulate in each step of the search for the threshold."""
_ROUNDS = 2

Simulate = Callable[[Sequence[Cell]], dict[str, Outcome]]
"""Function that runs simulations and returns their outcomes by `Cell.key`."""


@dataclass(frozen=True, slots=True)
class ThresholdQuestion:
    """An I/O job whose congestion threshold is searched.

    Attributes:
        job: the I/O job.
        notes: sentences for the user on the fabric.
    """

    setting: Setting
    job: Workload
    clients: int
    seeds: Sequence[int]
    notes: tuple[str, ...]


def ask_threshold(machine: MachineOptions, size: int, share: float, seeds: int, io_reads: int) -> ThresholdQuestion:
    """Return the question for options of `ibprof-sim threshold`.

    Args:
        size: bytes of an I/O request.
        share: fraction of the compute hosts that send requests.
        seeds: number of random seeds; each simulation is repeated with each seed.
        io_reads: for reads, bytes of a client's request, which a server answers with `size` bytes; 0 for writes.

    Raises:
        IbprofError: an option is invalid on the fabric.
    """
    setting = make_setting(machine)
    job = Workload(IO, Role.IO, size, share=share, reads=io_reads)
    clients = int(set_up(_cell(setting, job, 0.0, 1)).measured.sum())
    return ThresholdQuestion(setting, job, clients, range(1, seeds + 1), tuple(list_fabric_notes(setting.network)))


@dataclass(frozen=True, slots=True)
class _Tried:
    """Mean request times at one interval, ns, by seed; in `of_clients`, the mean over clients of a client's mean."""

    requests: BySeed
    of_clients: BySeed
    note: str

    @property
    def mean(self) -> float | None:
        found = average(self.requests)
        return found.mean if found else None


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold and the measurements for it. Times are in ns.

    Attributes:
        alone_ns: time of a request alone (T0), measured at a long interval.
        without_pause_ns: time of a request at interval 0 (C).
        below_ns, above_ns: bounds of the threshold, from the 95% intervals of throughputs; None if there is no
            threshold.
        about_ns: estimate of the threshold, from the mean throughput; None if there is no threshold.
        bound_ns: threshold by the servers' links alone, N S/(n B) - S/B; at most 0 if these links are no limit.
        tried: (interval, mean request time), sorted by interval; the mean is None if it settled for no seed.
        seeds: number of seeds whose mean settled at interval 0.
    """

    alone_ns: float
    without_pause_ns: float
    below_ns: float | None
    above_ns: float | None
    about_ns: float | None
    bound_ns: float
    tried: tuple[tuple[float, float | None], ...]
    seeds: int

    @property
    def crossing_ns(self) -> float:
        """The interval C - T0, at which the two asymptotes of the request time cross (see the module)."""
        return self.without_pause_ns - self.alone_ns


def find_threshold(setting: Setting, job: Workload, seeds: Sequence[int], simulate: Simulate) -> Threshold:
    """Find the threshold of a job that runs alone.

    Args:
        job: the I/O job; its interval is not used.
        seeds: random seeds; times are compared between simulations with the same seed.
        simulate: function that runs simulations.

    Raises:
        InconsistentError: the mean request time settled for no seed, at interval 0 or at the long interval.
    """
    tried: dict[float, _Tried] = {}

    def measure(intervals: Sequence[float]) -> None:
        cells = {each: {seed: _cell(setting, job, each, seed) for seed in seeds} for each in intervals}
        new = {each: of_seeds for each, of_seeds in cells.items() if each not in tried}
        outcomes = simulate([cell for of_seeds in new.values() for cell in of_seeds.values()])
        for interval, of_seeds in new.items():
            tried[interval] = _collect({seed: outcomes[cell.key].latency for seed, cell in of_seeds.items()})

    sample = _cell(setting, job, 0.0, seeds[0])
    transfer, bottleneck = find_transfer_ns(sample, job), find_bottleneck_ns(sample, job)
    long = round(_LONG * max(transfer, bottleneck))
    measure([0.0, long])
    without_pause, alone = tried[0.0], tried[long]
    for interval, each in ((long, alone), (0.0, without_pause)):
        if not each.requests:
            pause = format_time(interval)
            raise InconsistentError(
                f"the mean request time did not settle, with a pause of {pause} between requests: {each.note}"
            )
    below = above = about = None
    times = average(compare(without_pause.of_clients, alone.of_clients))
    cycle = without_pause.mean or 0.0
    if times and times.mean >= CONGESTED:
        below, above = 0.0, 1.25 * cycle  # at `above`, the throughput is at most 0.8 of the largest
        for _ in range(_ROUNDS):
            step = (above - below) / (_POINTS + 1)
            measure([float(round(below + step * (number + 1))) for number in range(_POINTS)])
            parts = _find_parts(without_pause, tried)
            below = max(each for each, part in parts if part.mean - part.half >= NEAR)
            above = min([above, *(each for each, part in parts if each > below and part.mean + part.half < NEAR)])
        about = _interpolate(parts)
    means = tuple(sorted((each, found.mean) for each, found in tried.items()))
    return Threshold(alone.mean or 0.0, cycle, below, above, about, find_bound_ns(sample, job), means,
                     len(without_pause.requests))  # fmt: skip


def _collect(latencies: Mapping[int, Latency]) -> _Tried:
    """Return mean request times by seed. If a mean drifts, its half width is at least this drift."""
    known = {seed: each for seed, each in latencies.items() if each.is_settled or each.change}
    halves = {seed: max(np.nan_to_num(each.half), abs(each.change) * each.mean) for seed, each in known.items()}
    return _Tried(
        requests={seed: Figure(each.mean, halves[seed]) for seed, each in known.items()},
        of_clients={seed: Figure(each.node_mean, halves[seed]) for seed, each in known.items()},
        note=next((each.note for seed, each in latencies.items() if seed not in known), ""),
    )


def _find_parts(without_pause: _Tried, tried: Mapping[float, _Tried]) -> list[tuple[float, Figure]]:
    """Return (interval, throughput relative to interval 0), sorted by interval."""
    parts = [(0.0, Figure(1.0, 0.0))]
    for interval in sorted(tried)[1:]:
        cycles = {seed: Figure(interval + each.mean, each.half) for seed, each in tried[interval].requests.items()}
        if part := average(compare(without_pause.requests, cycles)):
            parts.append((interval, part))
    return parts


def _interpolate(parts: Sequence[tuple[float, Figure]]) -> float:
    """Return the interval at which the relative throughput falls below `NEAR`, by linear interpolation."""
    last = max(number for number, (_, part) in enumerate(parts) if part.mean >= NEAR)
    if last + 1 == len(parts):
        return parts[last][0]
    (shorter, more), (longer, less) = parts[last : last + 2]
    return shorter + (longer - shorter) * (more.mean - NEAR) / (more.mean - less.mean)


def _cell(setting: Setting, job: Workload, interval: float, seed: int) -> Cell:
    return Cell(setting, (replace(job, interval_ns=interval),), (job.name,), job.name, seed)
