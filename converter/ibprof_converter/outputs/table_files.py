# SPDX-License-Identifier: Apache-2.0
"""Rows of links and nodes as CSV, and as Parquet for pandas, DuckDB and Spark."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from ibprof.errors import MissingToolError
from ibprof_converter.outputs.rows import Row, Value

_BYTES = frozenset(f"{end}_{what}" for end in "ab" for what in ("bytes", "counted", "shared", "most"))

_INTEGERS = frozenset({"rail", "a_port", "b_port", "a_level", "b_level", "level"})

_NUMBERS = frozenset({"gbps", "a_x", "a_y", "b_x", "b_y", "x", "y"})


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


def write_parquet(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write rows; bytes are uint64, lists are lists of text.

    Raises:
        MissingToolError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  (an extra)
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise MissingToolError("Parquet needs pyarrow: pip install 'ibprof[parquet]'") from None
    table = list(rows)
    fields = [(column, _type_of(pa, column)) for column in columns]
    arrays = [pa.array([_plain(row[column]) for row in table], kind) for column, kind in fields]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(columns)), str(path))


def _type_of(pa: Any, column: str) -> Any:
    if column in _BYTES:
        return pa.uint64()
    if column in _INTEGERS:
        return pa.int32()
    if column in _NUMBERS:
        return pa.float64()
    return pa.list_(pa.string()) if column in ("lids", "ranks") else pa.string()


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [str(item) for item in value]
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
