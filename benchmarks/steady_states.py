# SPDX-License-Identifier: Apache-2.0
"""Compare packet hops, CPU time and error: measurements that end when steady, and measurements of all messages.

Run it where ibprof is installed:  python benchmarks/steady_states.py [--seeds N] [--cells N]

Each row of the printed table is for a pair of jobs on a fat-tree of 64 hosts with 8 servers. One job is measured,
twice. Both measurements leave out the first 50 messages of each client. The first measurement takes the next 1,000
messages of each client. The second measurement ends when the mean is steady.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import islice

from ibprof_lab.simulation.measure.message_latency import FULL
from ibprof_lab.simulation.study.cell import Cell, Outcome, Setting, run_cell
from ibprof_lab.simulation.workload.workloads import IO, MPI, Role, Workload

KIB, US = 1 << 10, 1e3
FABRIC, SERVERS, CLIENTS = "xgft:2:8,8:1,8@100", 8, 28


def mpi(size: int, interval: float) -> Workload:
    return Workload(MPI, Role.PAIRS, size, interval_ns=interval)


def io(size: int, interval: float = 0.0) -> Workload:
    return Workload(IO, Role.IO, size, interval_ns=interval)


CELLS = {
    "I/O of 128 KiB, every 1 ms, next to MPI of 64 KiB, every 5 µs": (
        io(128 * KIB, 1000 * US),
        mpi(64 * KIB, 5 * US),
        IO,
    ),
    "I/O of 4 KiB, every 500 µs, next to MPI of 4 KiB, every 100 µs": (
        io(4 * KIB, 500 * US),
        mpi(4 * KIB, 100 * US),
        IO,
    ),
    "checkpoint of 512 KiB, next to MPI of 4 KiB, every 50 µs": (io(512 * KIB), mpi(4 * KIB, 50 * US), IO),
    "MPI of 4 KiB, every 5 µs, next to I/O of 64 KiB, every 50 µs": (
        io(64 * KIB, 50 * US),
        mpi(4 * KIB, 5 * US),
        MPI,
    ),
    "MPI of 512 KiB, every 200 µs, next to equal I/O": (io(512 * KIB, 200 * US), mpi(512 * KIB, 200 * US), MPI),
    "I/O of 512 KiB, every 500 µs, next to MPI of 4 KiB, every 100 µs": (
        io(512 * KIB, 500 * US),
        mpi(4 * KIB, 100 * US),
        IO,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="number of seeds of each row (default: 1)")
    parser.add_argument("--cells", type=int, default=len(CELLS), metavar="N", help="run only the first N rows")
    arguments = parser.parse_args()
    print("| measured | messages of a client | packet hops | with early end | ratio | s | with early end | error, % |\n"
          "|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, (*jobs, measured) in islice(CELLS.items(), arguments.cells):
        for seed in range(1, arguments.seeds + 1):
            every, skipped = (simulate(jobs, measured, seed, steady) for steady in (0.0, FULL.steady))
            error = 100 * (skipped.latency.mean / every.latency.mean - 1)
            ratio = every.packet_hops / skipped.packet_hops
            print(f"| {name} | {skipped.latency.messages / CLIENTS:.0f} | {every.packet_hops:.2e} | "
                  f"{skipped.packet_hops:.2e} | {ratio:.1f} | {every.cpu_seconds:.2f} | {skipped.cpu_seconds:.2f} | "
                  f"{error:+.2f} |", flush=True)  # fmt: skip


def simulate(jobs: list[Workload], measured: str, seed: int, steady: float) -> Outcome:
    setting = Setting(FABRIC, servers=SERVERS, effort=replace(FULL, steady=steady))
    return run_cell(Cell(setting, tuple(jobs), (IO, MPI), measured, seed))


if __name__ == "__main__":
    main()
