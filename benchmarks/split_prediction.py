# SPDX-License-Identifier: Apache-2.0
"""Compare run times that `ibprof-scaling predict` predicts with measured times, on other numbers of ranks.

python benchmarks/split_prediction.py -o FOLDER [--kinds KIND,...]    (as root, for real-time priority)

The benchmark records the programs of `tests/mpi/programs/scaling_kinds.c` on 1 to 16 ranks, with strong and weak
scaling, twice each. From some of these runs, the benchmark predicts the held-out runs, on up to 4 times as many ranks.
Existing profiles are read, not recorded again. Ranks sleep instead of computing, and sleep between polls of MPI, so
that 16 ranks share two processors without delay. Real-time priority prevents delays by other work of the machine. The
benchmark prints the number of held-out runs inside the 95% interval, and the number of failed fits.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from ibprof.errors import InconsistentError
from ibprof_lab.scaling.measured.split_prediction import RunParts, predict_split, read_parts
from ibprof_testing.lab.routed_jobs import PROGRAMS, SCRIPTS

KINDS = ("halo", "solver", "transform", "workers", "serial", "sweep", "bodies")
RANKS = (1, 2, 3, 4, 6, 8, 12, 16)
REPEATS = 2
FITTED = ((2, 4), (1, 2, 4), (2, 3, 4), (1, 2, 3, 4), (2, 4, 8), (1, 2, 4, 8), (1, 2, 3, 4, 6, 8))
ROUNDS = 10
_TIMEOUT = 180

Held = tuple[bool, float, float]
"""True if the run's time is in the predicted interval; the interval's upper / lower end; the relative error."""


def record(program: Path, kind: str, scaling: str, ranks: int, folder: Path) -> RunParts:
    """Record a run, unless its profile exists; return the run's times."""
    settings = [
        "--oversubscribe",
        "--bind-to",
        "none",
        "--mca",
        "mpi_yield_when_idle",
        "1",
        "--mca",
        "btl",
        "self,vader",
    ]
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if not folder.exists():
        line: list[str | Path] = [SCRIPTS / "ibprof", "run", "-o", folder, "--", "mpirun", *settings, "-n", str(ranks)]
        line += ["chrt", "-r", "1", program, kind, scaling, str(ROUNDS)]
        subprocess.run(line, env=environment, check=True, capture_output=True, timeout=_TIMEOUT)
    return read_parts(folder)


def predict_held_out(
    runs: dict[int, list[RunParts]], scaling: str, fitted: tuple[int, ...], repeats: int
) -> Iterator[tuple[str, Held]]:
    """Yield (label, result) of each held-out run; the label is `beyond` for more ranks than any fitted run has."""
    others = [ranks for ranks in runs if ranks not in fitted and fitted[0] <= ranks <= 4 * fitted[-1]]
    train = [run for ranks in fitted for run in runs[ranks][:repeats]]
    for row in predict_split(train, scaling, False, others)["curve"]:
        for run in runs[row["processes"]]:
            held = row["low"] <= run.seconds <= row["high"], row["high"] / max(row["low"], 1e-9)
            yield "beyond" if row["beyond"] > 1 else "between", (*held, abs(row["seconds"] / run.seconds - 1))


def main() -> int:
    """Print the table. Return 1 if fewer than 9 of 10 held-out runs are inside of their intervals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="a folder for recordings")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS, help=",".join(KINDS))
    wanted = parser.parse_args()
    folder = wanted.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "scaling_kinds"
    source = PROGRAMS / "scaling_kinds.c"
    # Export the program's sched_yield, which sleeps, so that Open MPI calls it.
    subprocess.run(["mpicc", "-O1", "-g", "-rdynamic", "-o", program, source], check=True)
    table: defaultdict[tuple[tuple[int, ...], int, str], list[Held]] = defaultdict(list)
    sets = refused = 0
    for kind in wanted.kinds:
        for scaling in ("strong", "weak"):
            runs = {
                ranks: [
                    record(program, kind, scaling, ranks, folder / f"{kind}-{scaling}-{ranks}-{number}")
                    for number in range(1, REPEATS + 1)
                ]
                for ranks in RANKS
            }
            for fitted in FITTED:
                for repeats in range(1, REPEATS + 1):
                    sets += 1
                    try:
                        for side, held in predict_held_out(runs, scaling, fitted, repeats):
                            table[fitted, repeats, side].append(held)
                    except InconsistentError:  # no formula fits the runs
                        refused += 1
    print("| fitted ranks | runs each | held out | inside | upper / lower end, median | error, median |")
    print("|---|---|---|---|---|---|")
    for (used, repeats, side), rows in sorted(table.items()):
        hits, widths, errors = zip(*rows, strict=True)
        print(
            f"| {', '.join(map(str, used))} | {repeats} | {side} | {sum(hits)} of {len(hits)} "
            f"| {statistics.median(widths):.2f} | {statistics.median(errors):.0%} |"
        )
    inside = [each[0] for rows in table.values() for each in rows]
    print(f"\n{sum(inside)} of {len(inside)} times are inside the predicted interval")
    return int(sum(inside) < 0.9 * len(inside))


if __name__ == "__main__":
    sys.exit(main())
