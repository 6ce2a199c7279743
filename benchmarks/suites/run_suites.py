# SPDX-License-Identifier: Apache-2.0
"""Run test suites of other projects with and without ibprof, and compare the outcome of each case.

    benchmarks/suites/run_suites.py mpich-tests MPI=FOLDER... -o DIR    # MPICH's test/mpi, built in FOLDER for that MPI
    benchmarks/suites/run_suites.py imb MPI=FOLDER... -o DIR            # the Intel MPI Benchmarks

First build the suite for each MPI by the suite's instructions. FOLDER must also contain MPICH's lists of tests
(testlist). A build outside of the sources lacks some of these lists: copy them from the sources. DIR/SUITE.csv gets a
row for each case. An interrupted run continues. The exit status is 1 if ibprof made an outcome worse.
"""

from __future__ import annotations

import argparse
import collections
import csv
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import imb
import mpich_tests
from outcomes import WORSE, Case, append_rows, compare, read_done
from rich.console import Console
from rich.progress import track

from ibprof_testing.mpi.mpis import MPICH_LIKE, NAMES, find_mpi, find_mpich_like


def main() -> int:
    options = _read_options()
    folder: Path = options.output.resolve()
    table = folder / f"{options.suite}.csv"
    for name, built in options.built:
        mpi = find_mpich_like(name) if name in MPICH_LIKE else find_mpi(name)
        (folder / name).mkdir(parents=True, exist_ok=True)
        done = read_done(table, name)
        chosen = order_by_ranks(
            case for case in _list_cases(options, built) if case.name not in done and re.search(options.only, case.name)
        )
        around = dict(options.variables)
        comparisons = (
            compare(
                mpi,
                replace(case, variables=around | dict(case.variables), preload=options.preload),
                folder / name,
                options.repeats,
            )
            for case in chosen
        )
        console = Console(stderr=True)
        steps = track(
            append_rows(table, name, comparisons),
            f"{options.suite} {name}",
            total=len(chosen),
            console=console,
            disable=not console.is_terminal,
        )
        for comparison in steps:
            if comparison.verdict == WORSE:
                print(f"{name}: {comparison.case.name}: worse: {comparison.with_ibprof[-1]}", flush=True)
    return _show_totals(table)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=("mpich-tests", "imb"))
    parser.add_argument("built", nargs="+", type=_parse_built, metavar="MPI=FOLDER", help="an MPI "
        f"({', '.join((*NAMES, *MPICH_LIKE))}) and the folder where the suite was built for it")  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the tables and the cases' files"
    )
    parser.add_argument("--lists", nargs="+", default=["testlist"], help="MPICH's lists (testlist.collalgo, ...)")
    parser.add_argument("--ranks", type=int, default=4, help="ranks of a case of imb (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="REGEX", help="run only cases whose name matches REGEX")
    parser.add_argument("--seconds", type=float, default=60, help="time limit of a case (default: %(default)s)")
    parser.add_argument(
        "--variables",
        nargs="+",
        default=[],
        type=_parse_variable,
        metavar="NAME=VALUE",
        help="environment variables of all runs, with and without ibprof",
    )
    parser.add_argument(
        "--preload", default="", metavar="FILE", help="library to preload in all runs, with and without ibprof"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="maximum number of runs of a case in each variant, while outcomes differ"
    )
    return parser.parse_args()


def _parse_built(text: str) -> tuple[str, Path]:
    name, _, folder = text.partition("=")
    if name not in (*NAMES, *MPICH_LIKE):
        raise argparse.ArgumentTypeError(f"unknown MPI {name!r}")
    if not Path(folder).is_dir() or not folder:
        raise argparse.ArgumentTypeError(f"expected MPI=FOLDER, found no folder {folder!r}")
    return name, Path(folder).resolve()


def order_by_ranks(cases: Iterable[Case]) -> list[Case]:
    """Sort cases: up to 2 ranks first, more than 8 ranks last, because ranks that share few cores take long."""
    return sorted(cases, key=lambda case: sum(case.ranks > limit for limit in (2, 4, 8)))


def _parse_variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {text!r}")
    return name, value


def _list_cases(options: argparse.Namespace, built: Path) -> Iterator[Case]:
    if options.suite == "imb":
        return imb.list_cases(built, options.ranks, options.seconds)
    return mpich_tests.list_cases(built, tuple(options.lists), options.seconds)


def _show_totals(table: Path) -> int:
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    totals = collections.Counter((row["mpi"], row["verdict"], row["without"]) for row in rows)
    for (mpi, verdict, without), number in sorted(totals.items()):
        print(f"{mpi:14} {verdict:10} {without:32} {number:6}")
    for row in rows:
        if row["unaccounted"]:
            print(f"{row['mpi']:14} {row['case']}: unaccounted: {row['unaccounted']}")
    return int(any(row["verdict"] == WORSE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
