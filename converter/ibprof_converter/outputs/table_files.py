# SPDX-License-Identifier: Apache-2.0
"""Write tables of links and nodes as CSV, or as Parquet for pandas, DuckDB and Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from ibprof.errors import MissingToolError
from ibprof_converter.outputs.rows import BOUND_COLUMNS, COUNTER_COLUMNS, Table, Value

_BYTES = frozenset({"a_bytes", "b_bytes", *COUNTER_COLUMNS, *BOUND_COLUMNS})

_INTEGERS = frozenset({"rail", "a_port", "b_port", "a_level", "b_level", "level"})

_NUMBERS = frozenset({"gbps", "a_x", "a_y", "b_x", "b_y", "x", "y"})


_ROWS_AT_ONCE = 4096

_QUOTED = re.compile(r'[,"\r\n]')


def write_csv(file: TextIO, table: Table) -> None:
    """Write a header and one line per row.

    Lists become JSON text, because a list of one element would look like a number. None becomes an empty field.
    """
    file.write(",".join(table) + "\n")
    rows = len(next(iter(table.values())))
    for begin in range(0, rows, _ROWS_AT_ONCE):
        columns = [_fields_of(column[begin : begin + _ROWS_AT_ONCE]) for column in table.values()]
        file.write("\n".join(map(",".join, zip(*columns, strict=True))) + "\n")


def _fields_of(column: Sequence[Value]) -> Iterable[str]:
    """Format a column as CSV fields; each distinct value is formatted once."""
    try:
        fields = {value: _as_field(value) for value in set(column)}
    except TypeError:  # lists
        return map(_as_field, column)
    return map(fields.__getitem__, column)


def _as_field(value: Value) -> str:
    if type(value) is int:
        return str(value)
    if isinstance(value, float):
        return f"{value:.10g}"
    text = json.dumps(value) if isinstance(value, list) else "" if value is None else str(value)
    # Escape NUL: before Python 3.11, the module csv cannot read NUL. Quote carriage returns, which would end a row.
    text = text.replace("\0", r"\x00")
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def write_parquet(path: Path, table: Table) -> None:
    """Write a table as Parquet. Columns of bytes are uint64; lists are lists of text.

    Raises:
        MissingToolError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415  (an extra)
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise MissingToolError("Parquet needs pyarrow: pip install 'ibprof[parquet]'") from None
    arrays = [pa.array(map(_plain, values), _type_of(pa, column)) for column, values in table.items()]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(table)), str(path))


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
