# SPDX-License-Identifier: Apache-2.0
"""The studies of interference and of what helps against it: which simulations, and what is made of them.

Source: chapters 5 and 6 of the thesis on whose method ibprof stands; sizes and intervals are those of its table 5.1. Of
the table's rows the six intervals each are taken that its figures 5.3 and 5.5 show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from ibprof_converter.simulation.cell import Cell, Outcome, Setting, describe_latency
from ibprof_converter.simulation.roles import JobPlacement, Role, ServerPlacement, Workload

KIB, MIB = 1 << 10, 1 << 20
US, MS = 1e3, 1e6
MPI, IO = "mpi", "io"

TABLE_5_1: Mapping[int, tuple[float, ...]] = {
    4 * KIB: (500 * US, 100 * US, 50 * US, 10 * US, 5 * US, 1 * US),
    512 * KIB: (5 * MS, 1 * MS, 500 * US, 100 * US, 50 * US, 10 * US),
    4 * MIB: (50 * MS, 10 * MS, 5 * MS, 1 * MS, 500 * US, 100 * US),
}
"""Bytes -> intervals: 18 patterns, so 36 baselines and 648 pairs."""

THESIS_FABRIC = "xgft:3:18,18,4:1,18,2:1,1,9@100"
"""1,296 hosts, 72 leaves, 72 and 36 switches above, 12.5 GB/s."""


@dataclass(frozen=True, slots=True)
class Study:
    """A named set of simulations.

    Attributes:
        summary: what it asks, in a line.
        make: gives its cells, from a setting, seeds, and whether it is to be quick.
        conclude: makes the figures that have names from all outcomes.
    """

    summary: str
    make: Callable[[Setting, Sequence[int], bool], list[Cell]]
    conclude: Callable[[Sequence[Cell], Mapping[str, Outcome]], dict[str, Any]]


def mpi(size: int = 4 * KIB, interval: float = 500 * US, share: float = 0.5) -> Workload:
    """An MPI job of random pairs."""
    return Workload(MPI, Role.PAIRS, size, interval_ns=interval, share=share)


def io(size: int = 4 * MIB, interval: float = 0.0, share: float = 0.5, window: float = 0.0) -> Workload:
    """An I/O job; without an interval, a checkpoint."""
    return Workload(IO, Role.IO, size, interval_ns=interval, window_ns=window, share=share)


def cells_of(
    setting: Setting, workloads: Sequence[Workload], measured: str, seeds: Sequence[int], **labels: str
) -> list[Cell]:
    """Give the baseline and the interference run of a job, for each seed."""
    both = [("baseline", (measured,)), ("interference", tuple(each.name for each in workloads))]
    return [
        Cell(
            setting, tuple(workloads), running, measured, seed, (*labels.items(), ("measured", measured), ("run", run))
        )
        for seed in seeds
        for run, running in both
    ]


def find_slowdown(cells: Sequence[Cell], outcomes: Mapping[str, Outcome], measured: str, **labels: str) -> float | None:
    """Give mean latency under interference over that of the baseline, over the seeds; None where one is not settled."""
    means = {}
    for run in ("baseline", "interference"):
        wanted = {*labels.items(), ("measured", measured), ("run", run)}
        latencies = [outcomes[cell.key].latency for cell in cells if wanted <= set(cell.labels)]
        if not latencies or not all(each.is_settled for each in latencies):
            return None
        means[run] = fmean(each.mean for each in latencies)
    return means["interference"] / means["baseline"]


def describe_cells(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    """Give every cell with its latency, for programs."""
    return [
        {
            **dict(cell.labels),
            "seed": cell.seed,
            "jobs": {
                each.name: {
                    "role": each.role.value,
                    "bytes": each.bytes,
                    "interval_us": each.interval_ns / US,
                    "window_us": each.window_ns / US,
                    "share": each.share,
                    "runs": each.name in cell.running,
                }
                for each in cell.workloads
            },
            **describe_latency(outcomes[cell.key].latency),
            "packet_hops": outcomes[cell.key].packet_hops,
            "cpu_seconds": round(outcomes[cell.key].cpu_seconds, 3),
        }
        for cell in cells
    ]


# -- placement of jobs and servers (6.5.1, 6.5.2)


def _vary_setting(name: str, values: Sequence[Any], change: Callable[[Setting, Any], Setting]) -> Study:
    def make(setting: Setting, seeds: Sequence[int], quick: bool) -> list[Cell]:
        cells = []
        for value in values:
            changed = change(setting, value)
            cells += cells_of(changed, [io(), mpi()], MPI, seeds, **{name: value.value})
            if not quick:
                pattern = [io(interval=128 * MS), mpi(4 * MIB)]
                cells += cells_of(changed, pattern, IO, seeds, **{name: value.value})
        return cells

    def conclude(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
        return {
            f"{job}_slowdown": {
                value.value: find_slowdown(cells, outcomes, job, **{name: value.value}) for value in values
            }
            for job in (MPI, IO)
            if any(cell.measured == job for cell in cells)
        }

    return Study(f"what {name} changes (figures 6.2 and 6.5)", make, conclude)


# -- intervals and sizes (5.4.1, 5.4.2)


def _make_interference(setting: Setting, seeds: Sequence[int], quick: bool) -> list[Cell]:
    table = {4 * KIB: (500 * US, 50 * US), 512 * KIB: (500 * US, 100 * US), 4 * MIB: (5 * MS, 1 * MS)}
    patterns = [(size, interval) for size, row in (table if quick else TABLE_5_1).items() for interval in row]
    cells = []
    for io_size, io_interval in patterns:
        for mpi_size, mpi_interval in patterns:
            workloads = [io(io_size, io_interval), mpi(mpi_size, mpi_interval)]
            for measured in (IO, MPI):
                both = cells_of(setting, workloads, measured, seeds, **_label(workloads))
                # A baseline is that of its own pattern, whatever the other job would be.
                cells += [_alone(cell) if cell.running == (measured,) else cell for cell in both]
    return cells


def _label(workloads: Sequence[Workload]) -> dict[str, str]:
    return {each.name: f"{each.bytes} B every {each.interval_ns / US:g} us" for each in workloads}


def _alone(cell: Cell) -> Cell:
    """The same baseline for all patterns of the job that does not run, so that it is simulated once."""
    still = tuple(
        each if each.name in cell.running else replace(each, bytes=4 * KIB, interval_ns=500 * US)
        for each in cell.workloads
    )
    labels = tuple(each for each in cell.labels if each[0] in (cell.measured, "measured", "run"))
    return replace(cell, workloads=still, labels=labels)


def _conclude_interference(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    means: dict[tuple[str, str, str | None], list[float]] = {}
    for cell in cells:
        labels, latency = dict(cell.labels), outcomes[cell.key].latency
        if latency.is_settled:
            other = labels.get(MPI if cell.measured == IO else IO)
            means.setdefault((cell.measured, labels[cell.measured], other), []).append(latency.mean)
    slowdowns = [
        {
            "measured": job,
            "pattern": own,
            "against": other,
            "slowdown": fmean(values) / fmean(means[job, own, None]),
        }
        for (job, own, other), values in means.items()
        if other is not None and (job, own, None) in means
    ]
    return {"slowdowns": sorted(slowdowns, key=lambda each: -each["slowdown"])}


# -- throttling (6.5.3), shares (5.4.4), routing (5.4.3)


def _make_throttle(setting: Setting, seeds: Sequence[int], quick: bool) -> list[Cell]:
    windows = (0.0, 2 * MS) if quick else (0.0, 1 * MS, 1.5 * MS, 2 * MS, 2.5 * MS, 3 * MS)
    return [
        cell
        for window in windows
        for cell in cells_of(setting, [io(window=window), mpi()], MPI, seeds, window_us=f"{window / US:g}")
    ]


def _make_scaling(setting: Setting, seeds: Sequence[int], quick: bool) -> list[Cell]:
    sizes = (4 * KIB,) if quick else (4 * KIB, 64 * KIB, 1 * MIB)
    return [
        cell
        for share in (0.25, 0.5, 0.75)
        for size in sizes
        for cell in cells_of(
            setting,
            [io(share=1 - share), mpi(size, share=share)],
            MPI,
            seeds,
            share=f"{share:g}",
            size=str(size),
        )
    ]


def _make_routing(setting: Setting, seeds: Sequence[int], quick: bool) -> list[Cell]:
    intervals = (500 * US, 100 * US) if quick else TABLE_5_1[512 * KIB][:4]
    return [
        cell
        for adaptive in (False, True)
        for interval in intervals
        for cell in cells_of(
            replace(setting, adaptive=adaptive),
            [io(512 * KIB, interval), mpi(512 * KIB, 500 * US)],
            MPI,
            seeds,
            routing="adaptive" if adaptive else "static",
            io_interval_us=f"{interval / US:g}",
        )
    ]


def _conclude_by(*names: str) -> Callable[[Sequence[Cell], Mapping[str, Outcome]], dict[str, Any]]:
    """Slow-downs by the labels of these names."""

    def conclude(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
        found = {}
        for cell in cells:
            labels = {name: dict(cell.labels)[name] for name in names}
            found[" ".join(f"{name}={value}" for name, value in labels.items())] = {
                "slowdown": find_slowdown(cells, outcomes, cell.measured, **labels),
                "baseline_us": _mean_us(cells, outcomes, "baseline", labels),
                "interference_us": _mean_us(cells, outcomes, "interference", labels),
            }
        return {"mpi_slowdown": found}

    return conclude


def _mean_us(
    cells: Sequence[Cell], outcomes: Mapping[str, Outcome], run: str, labels: Mapping[str, str]
) -> float | None:
    wanted = {*labels.items(), ("run", run)}
    means = [outcomes[cell.key].latency for cell in cells if wanted <= set(cell.labels)]
    settled = [each.mean for each in means if each.is_settled and not math.isnan(each.mean)]
    return fmean(settled) / US if settled and len(settled) == len(means) else None


STUDIES: dict[str, Study] = {
    "interference": Study(
        "each pattern of MPI against each of I/O (figures 5.3 and 5.5)", _make_interference, _conclude_interference
    ),
    "routing": Study("static tables or adaptive routing (figures 5.8 and 5.9)", _make_routing,
                     _conclude_by("routing", "io_interval_us")),
    "scaling": Study("shares of the machine (figures 5.10 and 5.11)", _make_scaling, _conclude_by("share", "size")),
    "placement": _vary_setting(
        "placement", list(JobPlacement), lambda setting, value: replace(setting, job_placement=value)
    ),
    "servers": _vary_setting(
        "servers", list(ServerPlacement), lambda setting, value: replace(setting, server_placement=value)
    ),
    "throttle": Study("I/O requests kept apart in time (figure 6.7)", _make_throttle, _conclude_by("window_us")),
}  # fmt: skip
"""By the name that `ibprof-sim study` takes."""
