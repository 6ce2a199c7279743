# SPDX-License-Identifier: Apache-2.0
"""Select rows of results for figures: rows of one machine, by default in the thesis's configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ibprof_lab.simulation.reports.charts import Row, Rows, mark_fewer_seeds

_MACHINE = ("fabric", "servers", "packet_bytes", "lane_bytes", "switch_ns", "wire_ns", "gbps")
JOBS = {"io": "I/O request", "mpi": "MPI message"}
OTHER = {"io": "mpi", "mpi": "io"}
_OF_NOBODY = {
    f"{job}_{name}": None
    for job in JOBS
    for name in ("share", "bytes", "interval_us", "window_us", "limit", "whole_ms")
}
"""Columns with the value None in studies whose jobs have other names than `io` and `mpi`."""
USUAL = {"routing": "static", "server_placement": "isolated", "job_placement": "random-node"}
"""The thesis's configuration."""


def choose_machine(means: Rows) -> tuple[list[Row], str, list[str]]:
    """Return the rows and the name of the machine with most rows, and the names of other machines.

    The column `has_fewer_seeds` is true in rows with at least one seed, but fewer seeds than another row.
    """
    of_machine = Counter(tuple(row.get(column) for column in _MACHINE) for row in means)
    if not of_machine:
        return [], "", []
    (chosen, _), *others = of_machine.most_common()
    rows = [row for row in means if tuple(row.get(column) for column in _MACHINE) == chosen]
    kept: list[Row] = [{**_OF_NOBODY, **row} for row in mark_fewer_seeds(rows)]
    return (
        kept,
        _name_machine(chosen, [each for each, _ in others]),
        [_name_machine(each, [chosen]) for each, _ in others],
    )


def _name_machine(machine: tuple[Any, ...], others: Iterable[tuple[Any, ...]]) -> str:
    """Return the name of a machine: the fabric, and parameters that differ between machines."""
    fabric, *rest = (
        str(value) if column == "fabric" else f"{column} {value:g}" if value is not None else f"{column} unknown"
        for at, (column, value) in enumerate(zip(_MACHINE, machine, strict=True))
        if column == "fabric" or any(other[at] != value for other in others)
    )
    return " with ".join(filter(None, (fabric, ", ".join(rest))))


def find_usual(rows: Rows, column: str) -> str:
    """Return the thesis's value of a column, or the most frequent value if no row has the thesis's value."""
    values = Counter(row[column] for row in rows)
    return USUAL[column] if USUAL[column] in values or not values else values.most_common(1)[0][0]


def pick(rows: Rows, **wanted: Any) -> list[Row]:
    """Return the rows with the `wanted` values, and with usual values in other columns of `USUAL`."""
    each = {**{column: find_usual(rows, column) for column in USUAL if column not in wanted}, **wanted}
    return [row for row in rows if all(row.get(column) == value for column, value in each.items())]


def pick_one(rows: Rows, **wanted: Any) -> Row | None:
    found = pick(rows, **wanted)
    return found[0] if found else None


def list_intervals(rows: Rows, column: str) -> list[float]:
    return sorted({row[column] for row in rows if row.get(column) is not None}, reverse=True)


def merge_means(tables: Iterable[Rows]) -> list[Row]:
    """Merge tables. If several tables have the same simulation, keep the row with the most seeds."""
    merged: dict[tuple[Any, ...], Row] = {}
    for table in tables:
        for row in table:
            before = list(row)[: list(row).index("seeds")]
            key = tuple((column, row[column]) for column in sorted(before))
            if key not in merged or (merged[key]["seeds"] or 0) < (row["seeds"] or 0):
                merged[key] = row
    return list(merged.values())
