# SPDX-License-Identifier: Apache-2.0
"""Compare events and CPU time of simulations with and without `skip_hops`, which leaves out hops without contention.

Run it where ibprof is installed:  python benchmarks/skipped_hops.py [--rounds N] [--cells N]

Each row of the printed table is for a pair of jobs on 1,296 hosts. The pair runs with and without skipping in turn. The
shortest time of N rounds counts.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice

from ibprof_lab.simulation.engine.packet_engine import Simulation
from ibprof_lab.simulation.study.cell import Cell, Setting, set_up
from ibprof_lab.simulation.workload.workloads import IO, MPI, Role, Workload

KIB, MIB, US = 1 << 10, 1 << 20, 1e3
SETTING = Setting("xgft:3:18,18,4:1,18,2:1,1,9@100", servers=72)
_LOOKS = 4

CELLS = [
    ("I/O of 4 MiB, every 50 ms, next to MPI of 512 KiB, every 10 µs", (4 * MIB, 50_000), (512 * KIB, 10), 9.0),
    ("I/O of 4 MiB, every 50 ms, next to MPI of 4 MiB, every 100 µs", (4 * MIB, 50_000), (4 * MIB, 100), 9.0),
    ("I/O of 512 KiB, every 5 ms, next to MPI of 512 KiB, every 100 µs", (512 * KIB, 5_000), (512 * KIB, 100), 9.0),
    ("I/O of 4 MiB, every 50 ms, next to MPI of 4 KiB, every 1 µs", (4 * MIB, 50_000), (4 * KIB, 1), 5.0),
    ("I/O of 4 MiB, every 100 µs, next to MPI of 4 MiB, every 100 µs", (4 * MIB, 100), (4 * MIB, 100), 9.0),
    ("I/O of 512 KiB, every 500 µs, next to MPI of 512 KiB, every 500 µs", (512 * KIB, 500), (512 * KIB, 500), 9.0),
    ("I/O of 4 MiB, every 100 µs, next to MPI of 4 MiB, every 50 ms", (4 * MIB, 100), (4 * MIB, 50_000), 9.0),
    ("I/O of 512 KiB, every 10 µs, next to MPI of 4 MiB, every 50 ms", (512 * KIB, 10), (4 * MIB, 50_000), 9.0),
    ("I/O of 4 MiB, every 1 ms, next to MPI of 4 KiB, every 100 µs", (4 * MIB, 1_000), (4 * KIB, 100), 9.0),
    ("I/O of 4 KiB, every 1 µs, next to MPI of 4 KiB, every 1 µs", (4 * KIB, 1), (4 * KIB, 1), 2.0),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="number of runs of each row (default: 3)")
    parser.add_argument("--cells", type=int, default=len(CELLS), metavar="N", help="run only the first N rows")
    arguments = parser.parse_args()
    print("| jobs | simulated ms | packet hops | events | without skipping, s | with skipping, s | ratio |\n"
          "|---|---|---|---|---|---|---|")  # fmt: skip
    for name, io, mpi, simulated_ms in islice(CELLS, arguments.cells):
        jobs = make(IO, Role.IO, *io), make(MPI, Role.PAIRS, *mpi)
        cell = Cell(SETTING, jobs, (IO, MPI), IO, 1)
        every = skipping = float("inf")
        for _ in range(arguments.rounds):
            every = min(every, run(set_up(cell, (MPI,)).simulation, simulated_ms))
            simulation = set_up(cell, (MPI,), skip_hops=True).simulation
            skipping = min(skipping, run(simulation, simulated_ms))
        hops, skipped = simulation.state.packet_hops, simulation.state.skipped_hops
        print(f"| {name} | {simulated_ms:g} | {hops:.2e} | {hops - skipped:.2e} | {every:.2f} | {skipping:.2f} | "
              f"{every / skipping:.1f} |", flush=True)  # fmt: skip


def make(name: str, role: Role, size: int, interval_us: float) -> Workload:
    return Workload(name, role, size, interval_ns=interval_us * US, share=0.5)


def run(simulation: Simulation, simulated_ms: float) -> float:
    end, began = simulation.network.ticks(simulated_ms * 1e6), time.process_time()
    while simulation.state.now < end:
        simulation.run(min(simulation.state.now + end // _LOOKS, end))
    return time.process_time() - began


if __name__ == "__main__":
    main()
