# SPDX-License-Identifier: Apache-2.0
"""Whether 95 % intervals of simulated means hold the mean of many seeds as often as they say.

Run it where ibprof is installed:  python benchmarks/simulation_intervals.py [--seeds N]
Each seed draws hosts, partners and starts anew. A row a setting: how many of its seeds have an interval that holds the
mean of all, by batches in time and by clients, and how many groups of five seeds one by Student's t.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from statistics import fmean, stdev

from scipy.stats import t

from ibprof_converter.simulation.cell import Cell, Setting, run_cell
from ibprof_converter.simulation.patterns import KIB, MIB, US, io, mpi
from ibprof_converter.simulation.results import describe_latency

FABRIC, SERVERS = "xgft:3:8,8,4:1,8,2:1,1,4@100", 16
SETTINGS = {
    "pairs of 64 KiB, every 20 us": ((mpi(64 * KIB, 20 * US, share=1),), "mpi"),
    "4 KiB, every 20 us, beside I/O of 256 KiB, every 100 us": (
        (io(256 * KIB, 100 * US), mpi(4 * KIB, 20 * US)),
        "mpi",
    ),
    "that I/O, beside pairs of 64 KiB, every 50 us": ((io(256 * KIB, 100 * US), mpi(64 * KIB, 50 * US)), "io"),
    "4 KiB, every 50 us, beside a checkpoint of 1 MiB": ((io(MIB), mpi(4 * KIB, 50 * US)), "mpi"),
    "that checkpoint": ((io(MIB), mpi(4 * KIB, 50 * US)), "io"),
}
GROUP = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=30, metavar="N", help="of each setting (default: 30)")
    seeds = parser.parse_args().seeds
    print("| measured | settled | by time | half, % | by clients | half, % | five seeds | half, % |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (jobs, measured) in SETTINGS.items():
        print(f"| {name} | {weigh(jobs, measured, seeds)} |", flush=True)


def weigh(jobs: tuple, measured: str, seeds: int) -> str:
    setting = Setting(FABRIC, servers=SERVERS)
    running = tuple(job.name for job in jobs)
    rows = [
        describe_latency(run_cell(Cell(setting, jobs, running, measured, seed)).latency) for seed in range(1, seeds + 1)
    ]
    rows = [row for row in rows if row["mean_us"] is not None]
    found = [f"{len(rows)} of {seeds}"]
    for mean, half in (("mean_us", "half_interval_us"), ("node_mean_us", "node_half_us")):
        found += count([(row[mean], row[half]) for row in rows], fmean(row[mean] for row in rows))
    means = [row["mean_us"] for row in rows]
    groups = list(combinations(means, GROUP))
    groups = groups[:: max(len(groups) // 1000, 1)]
    factor = t.ppf(0.975, GROUP - 1) / GROUP**0.5
    found += count([(fmean(each), factor * stdev(each)) for each in groups], fmean(means))
    return " | ".join(found)


def count(intervals: list[tuple[float, float]], middle: float) -> list[str]:
    holds = sum(abs(mean - middle) <= half for mean, half in intervals)
    return [f"{100 * holds / len(intervals):.0f} %", f"{100 * fmean(half for _, half in intervals) / middle:.1f}"]


if __name__ == "__main__":
    main()
