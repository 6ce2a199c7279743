# SPDX-License-Identifier: Apache-2.0
"""What the warm-up of the thesis's survey costs in truth: means of I/O alone against those after 50 messages.

Run it where ibprof is installed:  python benchmarks/simulation_warm_up.py [--seeds N]
A row a pattern of table 5.1, and a share of the machine at 2 ms: the survey's mean over its seeds (docs/thesis), the
mean over as many seeds after 50 messages of each client, both in us, and what the former is off by.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import fmean

from ibprof_converter.simulation.cell import Cell, Setting, run_cell
from ibprof_converter.simulation.measure import Effort
from ibprof_converter.simulation.patterns import IO, MIB, MS, TABLE_5_1, THESIS_FABRIC, io
from ibprof_converter.simulation.results import read_means

TABLES = Path(__file__).resolve().parents[1] / "docs" / "thesis"
PATTERNS = [io(size, interval) for size, row in TABLE_5_1.items() for interval in row]
PATTERNS += [io(4 * MIB, 2 * MS, share) for share in (0.25, 0.5, 0.75)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="of each pattern (default: 5)")
    seeds = range(1, parser.parse_args().seeds + 1)
    survey = {
        (row["io_bytes"], row["io_interval_us"], row["io_share"]): row["mean_us"]
        for row in read_means([TABLES / "interference.csv", TABLES / "scaling.csv"])
        if (row["measured"], row["run"]) == (IO, "baseline")
    }
    setting = Setting(THESIS_FABRIC, effort=Effort())
    print("| bytes | interval, us | share | survey, us | after 50, us | off, % |\n|---|---|---|---|---|---|")
    off = []
    for job in PATTERNS:
        found = [run_cell(Cell(setting, (job,), (IO,), IO, seed)).latency.mean / 1e3 for seed in seeds]
        named = job.bytes, job.interval_ns / 1e3, job.share
        off.append(100 * (survey[named] / fmean(found) - 1))
        row = f"| {named[0]} | {named[1]:g} | {named[2]} | {survey[named]:.2f} | {fmean(found):.2f} | {off[-1]:+.1f} |"
        print(row, flush=True)
    print(f"\noff by {min(off):+.1f} to {max(off):+.1f} %, {fmean(map(abs, off)):.1f} % on average")


if __name__ == "__main__":
    main()
