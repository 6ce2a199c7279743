# SPDX-License-Identifier: Apache-2.0
"""Rows as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

from ibprof_converter.outputs.rows import Row, Value


def write_csv(file: TextIO, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a header and a line a row; the numbers of a list stand in one field, apart by blanks; None is empty."""
    plain = csv.writer(file, lineterminator="\n")
    # The csv module does not quote a lone carriage return, which readers take for the end of the row.
    careful = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
    plain.writerow(columns)
    for row in rows:
        fields = [_as_text(row[column]) for column in columns]
        (careful if "\r" in "".join(fields) else plain).writerow(fields)


def _as_text(value: Value) -> str:
    if type(value) is int:
        return str(value)
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.10g}"
    # Python's csv before 3.11 neither writes nor reads a NUL.
    return "" if value is None else str(value).replace("\0", r"\x00")
