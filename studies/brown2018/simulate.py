#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulate the studies of chapters 5 and 6, and write the tables of complete studies.

    python studies/brown2018/simulate.py --minutes 60 --folder build/brown2018

The presets of `ibprof-sim study` are these studies, with five seeds. The folder keeps results: the same command
continues with missing simulations, the cheapest first. To write the page from the tables, run write_page.py.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from thesis_results import TABLES

from ibprof_lab.simulation.study.cell import Cell, Outcome
from ibprof_lab.simulation.study.cost_estimate import estimate_seconds
from ibprof_lab.simulation.study.presets import PRESETS
from ibprof_lab.simulation.study.result_tables import average_seeds, list_results, write_table
from ibprof_lab.simulation.study.simulated_machine import MachineOptions
from ibprof_lab.simulation.study.study_file import plan_preset
from ibprof_lab.simulation.study.sweep import find_stored, open_pool, run_cells

SURVEY = TABLES.parent / "survey.csv"
SEEDS = range(1, 6)
_AT_ONCE = 8
"""Number of simulations that each process runs before the time limit is checked again."""


def make_cells(study: str) -> list[Cell]:
    """Return the simulations of a study; for `throttle`, the simulations with --quick and those without."""
    forms = (False, True) if study == "throttle" else (False,)
    machine = MachineOptions(fabric=None)
    return list(dict.fromkeys(cell for quick in forms for cell in plan_preset(study, machine, SEEDS, quick).cells))


def simulate(cells: Sequence[Cell], folder: Path, minutes: float, workers: int) -> None:
    """Run the missing simulations, the cheapest first, until about `minutes` have passed."""
    outcomes = find_stored(cells, folder)
    missing = sorted({cell.key: cell for cell in cells if cell.key not in outcomes}.values(), key=estimate_seconds)
    ends = time.monotonic() + 60 * minutes
    with open_pool(workers) as pool:
        for begin in range(0, len(missing), _AT_ONCE * workers):
            if pool is None or time.monotonic() > ends:
                return
            run_cells(missing[begin : begin + _AT_ONCE * workers], folder, pool)
            print(f"{min(begin + _AT_ONCE * workers, len(missing))} of {len(missing)}", file=sys.stderr, flush=True)


def count_survey(cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> Iterator[tuple[str, str, float, int]]:
    """Yield the rows of survey.csv: run, quantity, value, and number of simulations with this value."""
    hops: Counter[str] = Counter()
    simulations: Counter[str] = Counter()
    values: Counter[tuple[str, str, float]] = Counter()
    for cell in {cell.key: cell for cell in cells}.values():
        run, latency = "baseline" if cell.is_alone else "interference", outcomes[cell.key].latency
        simulations[run] += 1
        hops[run] += outcomes[cell.key].packet_hops
        own = next(job for job in cell.workloads if job.name == cell.measured)
        if latency.is_settled:
            for quantity, length in (("left_out", latency.left_out_ns), ("measured", latency.measured_ns)):
                messages = length / (own.interval_ns + latency.mean)
                values[run, f"{quantity}_messages", round(messages, 1 if messages < 20 else None)] += 1
    for run in sorted(hops):
        yield run, "packet_hops", hops[run], simulations[run]
    for (run, quantity, value), count in sorted(values.items()):
        yield run, quantity, value, count


def write_survey(rows: Iterator[tuple[str, str, float, int]], path: Path) -> None:
    """Write the rows of survey.csv."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["run", "quantity", "value", "simulations"])
        writer.writerows(rows)


def main() -> None:
    """Run missing simulations, and write the tables of complete studies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="start no simulation after this many minutes (default: 0)"
    )
    parser.add_argument("--study", action="append", choices=PRESETS, help="this study; repeatable (default: all)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--folder", type=Path, default=Path("build/brown2018"), help="folder of results")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    studies = {name: make_cells(name) for name in arguments.study or PRESETS}
    simulate(
        [cell for each in studies.values() for cell in each], arguments.folder, arguments.minutes, arguments.workers
    )
    for name, cells in studies.items():
        outcomes = find_stored(cells, arguments.folder)
        missing = len({cell.key for cell in cells}) - len(outcomes)
        if missing:
            print(f"{name}: {missing} simulations are missing, so the study's table is not written", file=sys.stderr)
            continue
        write_table(TABLES / f"{name}.csv", average_seeds(list_results(cells, outcomes)))
        if name == "interference":
            write_survey(count_survey(cells, outcomes), SURVEY)


if __name__ == "__main__":
    main()
