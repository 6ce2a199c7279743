# SPDX-License-Identifier: Apache-2.0
"""Measure the error of the survey's short warm-up, compared with a warm-up of 50 messages of each client.

Run it where ibprof is installed:

    python studies/brown2018/warm_up.py [--seeds N]

The program prints a row for each I/O job alone: the patterns of table 5.1, and 4 MB every 2 ms on each share of the
hosts. A row has the survey's mean, the mean over N seeds with a warm-up of 50 messages, and the difference. Rows for
the largest slow-downs follow.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import fmean

from thesis_patterns import KIB, MIB, MS, TABLE_5_1, THESIS_FABRIC, US, io, mpi
from thesis_results import TABLES

from ibprof_lab.simulation.measure.message_latency import Effort
from ibprof_lab.simulation.study.cell import Cell, Setting, run_cell
from ibprof_lab.simulation.study.result_tables import Mean, read_means
from ibprof_lab.simulation.workload.workloads import IO, MPI, Workload

SETTING = Setting(THESIS_FABRIC, servers=72, effort=Effort())

ALONE = [io(size, interval) for size, row in TABLE_5_1.items() for interval in row]
ALONE += [io(4 * MIB, 2 * MS, share) for share in (0.25, 0.5, 0.75)]
JOB_PAIRS = [
    ((io(), mpi()), MPI),
    ((io(4 * MIB, 100 * US), mpi()), MPI),
    ((io(512 * KIB, 10 * US), mpi()), MPI),
    ((io(4 * KIB, 1 * US), mpi(4 * MIB, 100 * US)), IO),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="number of seeds per pattern (default: 5)")
    seeds = range(1, parser.parse_args().seeds + 1)
    means = read_means([TABLES / f"{name}.csv" for name in ("interference", "scaling", "placement")])
    print("| measured | survey | after 50 messages | difference, % |\n|---|---|---|---|")
    off = []
    for job in ALONE:
        after = fmean(find_mean_us((job,), (IO,), IO, seed) for seed in seeds)
        off.append(tell(f"{describe(job)}, µs", find_row(means, (job,), IO)["mean_us"], after))
    print(f"| | | | {min(off):+.1f} to {max(off):+.1f}, {fmean(map(abs, off)):.1f} on average |")
    for jobs, measured in JOB_PAIRS:
        after = fmean(find_slow_down(jobs, measured, seed) for seed in seeds)
        tell(f"{measured}: {', '.join(map(describe, jobs))}", find_row(means, jobs, measured)["slowdown"], after)


def find_mean_us(jobs: Sequence[Workload], running: Sequence[str], measured: str, seed: int) -> float:
    return run_cell(Cell(SETTING, tuple(jobs), tuple(running), measured, seed)).latency.mean / 1e3


def find_slow_down(jobs: Sequence[Workload], measured: str, seed: int) -> float:
    return find_mean_us(jobs, (IO, MPI), measured, seed) / find_mean_us(jobs, (measured,), measured, seed)


def find_row(means: Sequence[Mean], jobs: Sequence[Workload], measured: str) -> Mean:
    wanted: dict[str, object] = {"measured": measured, "run": "baseline" if len(jobs) == 1 else "interference"}
    wanted |= {"job_placement": SETTING.job_placement.value}
    wanted |= {f"{job.name}_bytes": job.bytes for job in jobs}
    wanted |= {f"{job.name}_interval_us": job.interval_ns / 1e3 for job in jobs}
    wanted |= {f"{job.name}_share": job.share for job in jobs}
    return next(row for row in means if all(row[column] == value for column, value in wanted.items()))


def describe(job: Workload) -> str:
    return f"{job.name} of {job.bytes // KIB} KiB, every {job.interval_ns / 1e3:g} µs, on {100 * job.share:g}% of hosts"


def tell(name: str, survey: float, after: float) -> float:
    off = 100 * (survey / after - 1)
    print(f"| {name} | {survey:.2f} | {after:.2f} | {off:+.1f} |", flush=True)
    return off


if __name__ == "__main__":
    main()
