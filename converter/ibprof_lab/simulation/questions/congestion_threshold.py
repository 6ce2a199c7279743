# SPDX-License-Identifier: Apache-2.0
"""The I/O-congestion threshold: the interval between requests below which a job's own requests delay each other.

A client waits for its request, then for its interval: its cycle is I + T(I). At long intervals T is T0, the time of a
request alone. Without an interval T is C, the time that the servers' links and their routes need for one request of
every client. Once I + T(I) is close to C, the job has nearly its largest throughput. A shorter interval then only
lengthens T by the same amount. Throughput covers all clients, so T is a mean over messages. Mutual delays of requests
show in the means of the clients, which all count equally. The asymptotes T0 and C - I cross at C - T0.
With N clients, n servers, requests of S bytes and links of B bytes/s: if the servers' links alone determine C, this
crossing is N S/(n B) - S/B.

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
"""Congestion begins at this ratio of the mean request time at interval 0 to the time of a request alone."""

NEAR = 0.9
"""A job counts as congested if its throughput exceeds this share of its throughput at interval 0."""

_LONG = 100
"""Requests do not delay each other if the interval between them is this many times the longer of two times: the
bottleneck time and the transfer time. The servers' links are then at most 1% busy."""

_POINTS = 4
"""Number of intervals that each step of the search simulates."""
_ROUNDS = 2

Simulate = Callable[[Sequence[Cell]], dict[str, Outcome]]
"""Function that returns the results of cells by key."""


@dataclass(frozen=True, slots=True)
class ThresholdQuestion:
    """A job and the simulations that find its threshold.

    Attributes:
        job: the I/O job.
        clients: number of the job's clients.
        notes: notes for the user on the fabric.
    """

    setting: Setting
    job: Workload
    clients: int
    seeds: Sequence[int]
    notes: tuple[str, ...]


def ask_threshold(machine: MachineOptions, size: int, share: float, seeds: int, io_reads: int) -> ThresholdQuestion:
    """Return the job described by the options of `ibprof-sim threshold`.

    Args:
        size: bytes of an I/O request.
        share: share of the compute hosts that send requests.
        seeds: number of random seeds.
        io_reads: bytes of a client's request that is answered with `size` bytes; 0 for writes.

    Raises:
        IbprofError: an option is invalid on the fabric.
    """
    setting = make_setting(machine)
    job = Workload(IO, Role.IO, size, share=share, reads=io_reads)
    clients = int(set_up(_cell(setting, job, 0.0, 1)).measured.sum())
    return ThresholdQuestion(setting, job, clients, range(1, seeds + 1), tuple(list_fabric_notes(setting.network)))


@dataclass(frozen=True, slots=True)
class _Tried:
    """Times of requests at an interval, by seed: mean over messages, and mean of the clients' means."""

    requests: BySeed
    of_clients: BySeed
    note: str

    @property
    def mean(self) -> float | None:
        found = average(self.requests)
        return found.mean if found else None


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold and its measurements. Times in ns.

    Attributes:
        alone_ns: time of a request without contention (T0), measured at long intervals.
        without_pause_ns: time of a request without any interval (C).
        below_ns, above_ns: bounds of the threshold, by 95% intervals of throughput; None without a threshold.
        about_ns: threshold by the mean throughput; None without a threshold.
        bound_ns: threshold by the servers' links alone, N S/(n B) - S/B; at most 0 if the links are no bottleneck.
        tried: intervals, ascending, each with the mean time of requests; this mean is None if no seed has a mean.
        seeds: number of seeds with a mean at interval 0.
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
        """Return the interval C - T0. The two asymptotes of the request time cross at this interval."""
        return self.without_pause_ns - self.alone_ns


def find_threshold(setting: Setting, job: Workload, seeds: Sequence[int], simulate: Simulate) -> Threshold:
    """Return the threshold of a job that runs alone.

    Args:
        job: I/O job; its interval is ignored.
        seeds: seeds of the simulations; runs of the same seed are compared.
        simulate: function that runs cells.

    Raises:
        InconsistentError: no seed has a mean at interval 0, or at long intervals.
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
            raise InconsistentError(f"requests {format_time(interval)} apart have no settled mean: {each.note}")
    below = above = about = None
    times = average(compare(without_pause.of_clients, alone.of_clients))
    cycle = without_pause.mean or 0.0
    if times and times.mean >= CONGESTED:
        below, above = 0.0, 1.25 * cycle  # throughput there is at most 0.8 of the maximum
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
    """Return the means by seed; the uncertainty of a drifting mean includes its change."""
    known = {seed: each for seed, each in latencies.items() if each.is_settled or each.change}
    halves = {seed: max(np.nan_to_num(each.half), abs(each.change) * each.mean) for seed, each in known.items()}
    return _Tried(
        requests={seed: Figure(each.mean, halves[seed]) for seed, each in known.items()},
        of_clients={seed: Figure(each.node_mean, halves[seed]) for seed, each in known.items()},
        note=next((each.note for seed, each in latencies.items() if seed not in known), ""),
    )


def _find_parts(without_pause: _Tried, tried: Mapping[float, _Tried]) -> list[tuple[float, Figure]]:
    """Return the throughput at each interval relative to the throughput at interval 0, in order."""
    parts = [(0.0, Figure(1.0, 0.0))]
    for interval in sorted(tried)[1:]:
        cycles = {seed: Figure(interval + each.mean, each.half) for seed, each in tried[interval].requests.items()}
        if part := average(compare(without_pause.requests, cycles)):
            parts.append((interval, part))
    return parts


def _interpolate(parts: Sequence[tuple[float, Figure]]) -> float:
    """Return the interval at which the throughput falls below `NEAR`, by linear interpolation."""
    last = max(number for number, (_, part) in enumerate(parts) if part.mean >= NEAR)
    if last + 1 == len(parts):
        return parts[last][0]
    (shorter, more), (longer, less) = parts[last : last + 2]
    return shorter + (longer - shorter) * (more.mean - NEAR) / (more.mean - less.mean)


def _cell(setting: Setting, job: Workload, interval: float, seed: int) -> Cell:
    return Cell(setting, (replace(job, interval_ns=interval),), (job.name,), job.name, seed)
