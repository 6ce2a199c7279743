# SPDX-License-Identifier: Apache-2.0
"""Test the mean of a measurement that stops early: its bias, and the coverage of its 95% interval.

Run it where ibprof is installed:  python benchmarks/simulation_intervals.py [--seeds N] Each seed samples hosts,
partners and starts, and has an additional long measurement. The table has a row for each setting and warm-up. The first
columns show the number of seeds with a mean, and the mean and largest deviation from the seed's long measurement. The
next columns are for intervals from batches in time, then for intervals from clients. Both groups of columns show the
percentage of intervals that contain the mean of all long measurements, and the mean half-width. The last columns show
these two numbers for intervals from groups of five seeds, with Student's t.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t

from ibprof_lab.simulation.measure.message_latency import SURVEY, Effort
from ibprof_lab.simulation.study.cell import Cell, Setting, run_cell
from ibprof_lab.simulation.study.result_tables import describe_latency
from ibprof_lab.simulation.workload.workloads import IO, MPI, Role, Workload

KIB, MIB, US = 1 << 10, 1 << 20, 1e3


def mpi(size: int, interval: float, share: float = 0.5) -> Workload:
    return Workload(MPI, Role.PAIRS, size, interval_ns=interval, share=share)


def io(size: int, interval: float = 0.0) -> Workload:
    return Workload(IO, Role.IO, size, interval_ns=interval)


FABRIC, SERVERS = "xgft:3:8,8,4:1,8,2:1,1,4@100", 16
SETTINGS = {
    "MPI of 64 KiB, every 20 µs": ((mpi(64 * KIB, 20 * US, share=1),), "mpi", 300),
    "MPI of 4 KiB, every 20 µs, next to I/O of 256 KiB, every 100 µs": (
        (io(256 * KIB, 100 * US), mpi(4 * KIB, 20 * US)),
        "mpi",
        3000,
    ),
    "I/O of 256 KiB, every 100 µs, next to MPI of 64 KiB, every 50 µs": (
        (io(256 * KIB, 100 * US), mpi(64 * KIB, 50 * US)),
        "io",
        300,
    ),
    "MPI of 4 KiB, every 50 µs, next to a checkpoint of 1 MiB": ((io(MIB), mpi(4 * KIB, 50 * US)), "mpi", 3000),
    "this checkpoint of 1 MiB": ((io(MIB), mpi(4 * KIB, 50 * US)), "io", 300),
}
"""Setting -> jobs, measured job, and number of messages of each measured client in a long measurement."""

RULES = {
    "50 messages of each client": Effort(),
    "as a test finds": SURVEY,
}
"""Name -> rule for the length of the warm-up: the commands' rule, and the rule of surveys of many simulations."""

GROUP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--seeds", type=int, default=30, metavar="N", help="number of seeds of each setting (default: 30)"
    )
    seeds = range(1, parser.parse_args().seeds + 1)
    print("| measured | warm-up | settled | off, % | at most | by time | half, % | by clients | half, % | five seeds | "
          "half, % |\n|---|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, (jobs, measured, messages) in SETTINGS.items():
        long = Effort(precision=0.0, messages=messages, hops=1e12)
        truth = {seed: simulate(jobs, measured, seed, long) for seed in seeds}
        for rule, effort in RULES.items():
            rows = {seed: simulate(jobs, measured, seed, effort) for seed in seeds}
            print(f"| {name} | {rule} | {' | '.join(weigh(rows, truth))} |", flush=True)


def simulate(jobs: tuple[Workload, ...], measured: str, seed: int, effort: Effort) -> dict[str, Any]:
    setting = Setting(FABRIC, servers=SERVERS, effort=effort)
    return describe_latency(run_cell(Cell(setting, jobs, tuple(job.name for job in jobs), measured, seed)).latency)


def weigh(by_seed: dict[int, dict[str, Any]], truth: dict[int, dict[str, Any]]) -> list[str]:
    settled = {seed: row for seed, row in by_seed.items() if row["mean_us"] is not None}
    rows = list(settled.values())
    off = [100 * (row["mean_us"] / truth[seed]["mean_us"] - 1) for seed, row in settled.items()]
    found = [f"{len(rows)} of {len(by_seed)}", f"{fmean(off):+.1f}", f"{max(off, key=abs):+.1f}"]
    middle = {column: fmean(row[column] for row in truth.values()) for column in ("mean_us", "node_mean_us")}
    for mean, half in (("mean_us", "half_interval_us"), ("node_mean_us", "node_half_us")):
        found += count([(row[mean], row[half]) for row in rows], middle[mean])
    groups = list(combinations([row["mean_us"] for row in rows], GROUP))
    groups = groups[:: max(len(groups) // 1000, 1)]
    factor = t.ppf(0.975, GROUP - 1) / GROUP**0.5
    return found + count([(fmean(each), factor * stdev(each)) for each in groups], middle["mean_us"])


def count(intervals: list[tuple[float, float]], middle: float) -> list[str]:
    holds = sum(abs(mean - middle) <= half for mean, half in intervals)
    return [f"{100 * holds / len(intervals):.0f}%", f"{100 * fmean(half for _, half in intervals) / middle:.1f}"]


if __name__ == "__main__":
    main()
