# SPDX-License-Identifier: Apache-2.0
"""Compare ibprof's waiting times with the times of a tracer in the same run, for programs with known waiting.

python benchmarks/waits.py -o FOLDER [--mpi NAME] [WORD ...]

Each program with a planted wait (`ibprof_testing.waits.traced_runs`) runs under the tracer and ibprof at once. The
benchmark prints a row for each program: the tracer's waiting, ibprof's waiting and unsplit time, the largest difference
in the waiting of an operation, and the verdict. Times are fractions of MPI time. Programs with a link rate run in a
network namespace, which needs root. With WORDs, only programs whose titles contain a WORD run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ibprof.load import load_profile
from ibprof.verdict.verdict_rules import judge_run
from ibprof.waiting.wait_split import measure_waiting
from ibprof_testing.mpi import mpis
from ibprof_testing.waits.traced_runs import PLANTS, WaitPlant, run_traced
from ibprof_testing.waits.traces import split_by_operation

MOST_OFF = 0.05
"""Largest accepted difference between ibprof's and the tracer's waiting of an operation, as a fraction of MPI time."""


def compare(mpi: mpis.Mpi, plant: WaitPlant, folder: Path, programs: Path) -> tuple[str, bool]:
    """Run a program. Return a row, and whether waiting times of operations differ by at most `MOST_OFF`."""
    folder.mkdir()
    traces = run_traced(mpi, plant, folder, programs, folder / "recording", {"IBPROF_TIME": "1", "IBPROF_SITES": "1"})
    truth = split_by_operation(traces)
    whole = sum(time for time, _ in truth.values())
    run = load_profile(folder / "recording")
    verdict, measured = judge_run(run), measure_waiting(run)
    waited = sum(wait for _, wait in truth.values()) / whole
    if measured is None:
        return f"| {plant.title} | {waited:.2f} | no samples | | | {verdict.kind.value} |", False
    operations = np.array(run.operations)[measured.shares.operation]
    off = max(
        abs(measured.total(operations == name.upper()).wait_s - wait) / whole for name, (_, wait) in truth.items()
    )
    total = measured.total()
    parts = [f"{part / total.time_s:.2f}" for part in (total.wait_s, total.error_s, total.unsplit_s)]
    figures = f"{waited:.2f} | {parts[0]} +- {parts[1]} | {parts[2]} | {off:.3f}"
    return f"| {plant.title} | {figures} | {verdict.kind.value} |", off <= MOST_OFF


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if the waiting times of an operation differ by more than `MOST_OFF`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="an empty folder for recordings")
    parser.add_argument("--mpi", default=mpis.SYSTEM, help="name of the MPI (default: %(default)s)")
    parser.add_argument("word", nargs="*")
    wanted = parser.parse_args(argv)
    find = mpis.find_mpich_like if wanted.mpi in mpis.MPICH_LIKE else mpis.find_mpi
    programs = wanted.output.resolve() / "programs"
    programs.mkdir(parents=True)
    print("| plant | waiting, tracer | ibprof | unsplit | largest difference | verdict |\n|---|---|---|---|---|---|")
    right = True
    for number, plant in enumerate(PLANTS):
        if not wanted.word or any(word in plant.title for word in wanted.word):
            try:
                row, good = compare(find(wanted.mpi), plant, wanted.output.resolve() / f"run{number}", programs)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                row, good = f"| {plant.title} | did not run: {type(error).__name__} | | | | |", False
            print(row, flush=True)
            right &= good
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
