# SPDX-License-Identifier: Apache-2.0
"""Links and nodes as Parquet, for pandas, DuckDB, Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ibprof.errors import MissingToolError
from ibprof_converter.outputs.rows import Row

_BYTES = frozenset(f"{end}_{what}" for end in "ab" for what in ("bytes", "counted", "shared", "most"))
_INTEGERS = frozenset({"rail", "a_port", "b_port", "a_level", "b_level", "level"})
_NUMBERS = frozenset({"gbps", "a_x", "a_y", "b_x", "b_y", "x", "y"})


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
