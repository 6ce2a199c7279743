# SPDX-License-Identifier: Apache-2.0
"""Triangles of matrices: rows that hold the delays of each pair once."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ibprof_lab.latency.files.pair_rows import MISSING

_FEWEST_ROWS = 2
_ZERO = re.compile(r"0+\.?0*|\.0+")


def complete_triangle(rows: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Return rows of equal length: of a triangle the other half, and the diagonal if it has none, stay empty.

    Rows that get longer by one field are the lower triangle, rows that get shorter are the upper one. The diagonal is
    in the file if each row has a zero or nothing in its place; otherwise the file has no zero. Other rows are returned
    as they are.

    Args:
        rows: line numbers and fields, without names.
    """
    lengths = [len(fields) for _, fields in rows]
    count = len(rows)
    if count < _FEWEST_ROWS or lengths not in (list(range(1, count + 1)), list(range(count, 0, -1))):
        return list(rows)
    is_lower = lengths[0] == 1
    diagonal = [fields[-1 if is_lower else 0] for _, fields in rows]
    if _is_diagonal(diagonal):
        return [(line, _put(fields, 0 if is_lower else row, count)) for row, (line, fields) in enumerate(rows)]
    if any(_ZERO.fullmatch(field) for _, fields in rows for field in fields):
        return list(rows)
    size = count + 1
    if is_lower:
        return [(rows[0][0], [""] * size), *((line, _put(fields, 0, size)) for line, fields in rows)]
    upper = [(line, _put(fields, row + 1, size)) for row, (line, fields) in enumerate(rows)]
    return [*upper, (rows[-1][0], [""] * size)]


def pad_row(fields: list[str], row: int, size: int) -> list[str]:
    """Return the row of a named matrix in full length if it has what a lower triangle has, with or without diagonal."""
    return _put(fields, 0, size) if len(fields) in (row, row + 1) else fields


def align_named_upper(rows: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Return rows of full length of a named upper triangle: each is shorter by one than the one above.

    The diagonal may be missing, so that the last row has no delays. Other rows are returned as they are.

    Args:
        rows: line numbers and fields, a name and the delays behind it.
    """
    count = len(rows)
    lengths = [len(fields) for _, fields in rows]
    if rows and rows[-1][1][1:] == [""]:
        lengths[-1] = 1  # no delay, but a separator
    if count < _FEWEST_ROWS or lengths != list(range(lengths[0], lengths[0] - count, -1)):
        return list(rows)
    if lengths[0] == count + 1 and not _is_diagonal([fields[1] for _, fields in rows]):
        return list(rows)
    return [
        (line, [fields[0], *_put(fields[1:length], count + 1 - length, count)])
        for length, (line, fields) in zip(lengths, rows, strict=True)
    ]


def _is_diagonal(fields: Sequence[str]) -> bool:
    return all(field.lower() in MISSING or _ZERO.fullmatch(field) for field in fields)


def _put(fields: list[str], begin: int, size: int) -> list[str]:
    return [""] * begin + fields + [""] * (size - begin - len(fields))
