# SPDX-License-Identifier: Apache-2.0
"""Measure the time that IBPROF_INTERVAL adds to a message, and the time that recording adds to a large job's end.

Runs with and without ibprof alternate. The program prints Markdown. The exit status is 1 if recording adds more than
the goal to the end of a job. Run it from a checkout on an idle machine, with a library that was built or installed:

    python benchmarks/overhead/over_time.py [--library FILE] [--mpi FOLDER_OF_MPIRUN] [--rounds N] [--ranks N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from bench import ENVIRONMENT, HERE, WITH, WITHOUT, Bench, median_interval, ratio_interval, show_table, take_turns

from ibprof.native.installed_files import find_library

MESSAGES = 300_000
INTERVAL = "IBPROF_INTERVAL=100"
END_GOAL_MS = 10


def show_interval(bench: Bench, rounds: int) -> None:
    program = bench.build("selfsend")
    commands = {WITHOUT: (WITHOUT, []), WITH: (WITH, []), INTERVAL: (WITH, ["env", INTERVAL])}

    def measure(name: str) -> float:
        variant, around = commands[name]
        return float(bench.run(variant, 1, *around, program, str(MESSAGES)).split()[0])

    measured = take_turns(list(commands), rounds, measure)
    print(f"Self-send of 8 bytes (Irecv, Send, Wait), medians of {rounds} rounds of {MESSAGES:,} messages\n")
    rows = []
    for name, values in measured.items():
        ratio, low, high = ratio_interval(values, measured[WITHOUT])
        rows.append([name, f"{np.median(values):.1f}", f"{ratio:.3f}", f"{low:.3f} to {high:.3f}"])
    show_table(["", "ns a message", "ratio", "95% interval"], rows)


def build_ends(bench: Bench) -> Path:
    """Build ends.c as a program and a library, which measure the time that MPI_Finalize spends outside of MPI."""
    library: Path = bench.folder / "libends.so"
    program: Path = bench.folder / "ends"
    compiler = [str(bench.mpi / "mpicc"), "-O2", str(HERE / "ends.c")]
    to_preload = ["-DWITHIN", "-shared", "-fPIC", "-o", str(library)]
    for options in (to_preload, ["-o", str(program), str(library), "-rdynamic"]):
        subprocess.run([*compiler, *options], check=True, env={**os.environ, **ENVIRONMENT})
    return program


def show_end(bench: Bench, rounds: int, ranks: int) -> bool:
    """Show the processor time that MPI_Finalize spends outside of MPI, over all ranks. Return whether the goal is met.

    The time of a job is the sum of the ranks' times, divided by the number of used cores. The last line shows the
    median rank's wall time from MPI_Finalize to the end of the process, without and with ibprof. The line ends with the
    median difference over rounds. With more ranks than cores, other ranks run during most of this time.
    """
    program = build_ends(bench)

    def measure(variant: str) -> list[list[float]]:
        return [[float(word) for word in line.split()] for line in bench.run(variant, ranks, program).splitlines()]

    both = {name: np.array(values) / 1e3 for name, values in take_turns([WITHOUT, WITH], rounds, measure).items()}
    measured = {name: values[:, :, 0] for name, values in both.items()}
    wall = {name: np.median(values[:, :, 1], axis=1) for name, values in both.items()}
    cores = min(os.cpu_count() or 1, ranks)
    print(f"Processor time in MPI_Finalize outside MPI: {ranks} ranks on {cores} cores, medians of {rounds} rounds\n")
    added = {name: float(np.median(values.sum(axis=1))) / cores for name, values in measured.items()}
    rows = [
        [name, f"{np.median(values):.3f}", f"{np.median(values.max(axis=1)):.3f}", f"{added[name]:.2f}"]
        for name, values in measured.items()
    ]
    show_table(["", "ms a rank", "ms, slowest rank", "ms a job"], rows)
    more, low, high = median_interval(wall[WITH] - wall[WITHOUT])
    print(
        f"Wall time of the median rank from MPI_Finalize to its end: {np.median(wall[WITHOUT]):.1f} ms without ibprof, "
        f"{np.median(wall[WITH]):.1f} ms with ibprof; difference {more:+.1f} ms (95%: {low:+.1f} to {high:+.1f})\n"
    )
    return added[WITH] - added[WITHOUT] < END_GOAL_MS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path, metavar="FILE", help="libibprof.so (default: the installed one)")
    parser.add_argument(
        "--mpi", type=Path, default=Path("/usr/bin"), metavar="FOLDER", help="folder of mpirun (default: /usr/bin)"
    )
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="rounds of each measurement (default: 15)")
    parser.add_argument(
        "--ranks", type=int, default=64, metavar="N", help="number of ranks of the large job (default: 64)"
    )
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(wanted.mpi, Path(folder), wanted.library or find_library())
        version = bench.ask("mpirun", "--version").splitlines()[0]
        print(f"{version}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}\n")
        show_interval(bench, wanted.rounds)
        met = show_end(bench, wanted.rounds, wanted.ranks)
    sys.exit(not met)


if __name__ == "__main__":
    main()
