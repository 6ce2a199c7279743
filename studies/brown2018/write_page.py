#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the tables and figures of README.md from the results in `tables`. With --check, only compare."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import product

import thesis_chapter5
import thesis_chapter6
from thesis_facts import FACTS, list_lacks, write_steady
from thesis_results import ALL_SEEDS, BORDERLINE, KB, PAGE, STUDIES, Row, find, show
from unstated import CLAIMS as CLAIMS_OF_INPUTS
from unstated import INPUTS, read_table

CLAIMS = {"chapter-5": thesis_chapter5.CLAIMS, "chapter-6": thesis_chapter6.CLAIMS}


def write_claims(chapter: str) -> str:
    lines = ["| figure | quantity | thesis | ibprof | verdict |", "|---|---|---|---|---|"]
    for figure, what, printed, ask in CLAIMS[chapter]:
        simulated, passed = ask()
        verdict = {True: "pass", BORDERLINE: BORDERLINE, False: "**mismatch**", None: ""}[passed]
        lines.append(f"| {figure} | {what} | {printed} | {simulated} | {verdict} |")
    return "\n".join(lines)


def write_parameters() -> str:
    base = {"lane_bytes": 65536.0, "packet_bytes": 4096.0, "switch_ns": 90.0, "routing": "static"}
    rows = STUDIES.get("parameters", ())
    settings = list(dict.fromkeys(tuple(row[key] for key in base) for row in rows if row["mean_us"] is not None))
    lines = ["| lane | packet | switch | routing | 4 KB MPI next to a checkpoint | 4 KB I/O next to 4 MB MPI | "
             "4 MB I/O alone at 5 ms | at 1 ms | random-switch |", "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    found: list[list[tuple[Row | None, str]]] = []
    for setting in settings:
        here = dict(zip(base, setting, strict=True))
        found.append([
            (find("parameters", "mpi", "interference", **here, job_placement="random-node"), "slowdown"),
            (find("parameters", "io", "interference", **here, io_bytes=4 * KB), "slowdown"),
            (find("parameters", "io", "baseline", **here, io_interval_us=5000.0), "mean_us"),
            (find("parameters", "io", "baseline", **here, io_interval_us=1000.0), "mean_us"),
            (find("parameters", "mpi", "interference", **here, job_placement="random-switch"), "slowdown"),
        ])  # fmt: skip
        said = ["" if row is None else show(row, column, _DIGITS[column], _UNITS[column]) for row, column in found[-1]]
        lines.append(f"| {here['lane_bytes'] / 1024:g} KiB | {here['packet_bytes']:g} B | {here['switch_ns']:g} ns | "
                     f"{here['routing']} | {' | '.join(said)} |")  # fmt: skip
    ranges = []
    for cells in zip(
        *(each for each, setting in zip(found, settings, strict=True) if setting[-1] == "static"), strict=True
    ):
        values, column = [row[column] for row, column in cells if row], cells[0][1]
        ranges.append(f"{_say(min(values), column)} to {_say(max(values), column)}" if values else "")
    lines.append(f"| | | | static, all | {' | '.join(ranges)} |")
    return "\n".join(lines)


_DIGITS, _UNITS = {"slowdown": 2, "mean_us": 0}, {"slowdown": "", "mean_us": " µs"}


def _say(value: float, column: str) -> str:
    return f"{value:.{_DIGITS[column]}f}{_UNITS[column]}"


def write_progress() -> str:
    lines = [
        "| study | rows | rows with a mean | with five seeds | with a seed without a steady state |",
        "|---|---|---|---|---|",
    ]
    for name, rows in STUDIES.items():
        done = [row for row in rows if row["mean_us"] is not None]
        full = sum(row["seeds"] == ALL_SEEDS for row in done)
        unsteady = sum("no steady state" in row["note"] for row in rows)
        lines.append(f"| {name} | {len(rows)} | {len(done)} | {full} | {unsteady} |")
    return "\n".join(lines)


def write_unstated() -> str:
    """Return the table of results: a row for each claim and set of unstated values, in the order of the search.

    A row has the results of all seeds, in the order of the seeds.
    """
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in sorted(read_table(), key=lambda row: int(row["seed"])):
        found.setdefault((row["claim"], row["inputs"]), []).append(row)
    lines = ["| figure and claim | inputs | result of short runs | verdict |", "|---|---|---|---|"]
    order = list(product(CLAIMS_OF_INPUTS, INPUTS))
    for claim, inputs in sorted(found, key=order.index):
        rows = found[claim, inputs]
        passes = sum(int(row["passes"]) for row in rows)
        verdict = {0: "**mismatch**", len(rows): "pass"}.get(passes, f"pass in {passes} of {len(rows)} seeds")
        lines.append(f"| {claim} | {inputs} | {' / '.join(row['figures'] for row in rows)} | {verdict} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    **{name: partial(write_claims, name) for name in CLAIMS},
    "parameters": write_parameters,
    "progress": write_progress,
    "lacks": list_lacks,
    "steady": write_steady,
    "unstated": write_unstated,
}


_MARK = re.compile(r"(<!-- (table|fact): ([\w-]+) -->\n?).*?(<!-- end -->)", re.DOTALL)


def fill(page: str) -> str:
    """Return the page with current tables and facts between the comments that mark them."""

    def write(mark: re.Match[str]) -> str:
        return mark[1] + (TABLES[mark[3]]() + "\n" if mark[2] == "table" else FACTS[mark[3]]()) + mark[4]

    return _MARK.sub(write, page)


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = fill(before)
    if "--check" in sys.argv:
        sys.exit(0 if before == after else f"{PAGE}: tables or figures differ from the results")
    PAGE.write_text(after, encoding="utf-8")
