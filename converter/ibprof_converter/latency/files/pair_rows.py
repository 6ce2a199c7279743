# SPDX-License-Identifier: Apache-2.0
"""Delays in long form: a line each, with the two ends and the delay between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found

Fields = Sequence[tuple[int, list[str]]]
"""Line numbers, and the fields of each line."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
ENDS = re.compile(
    r"(a|b|src|dst|from|to|sender|receiver|source|destination|target|(host|node|rank|core|cpu)\W?\w*)", re.I
)
"""Names of the first two columns of a file of pairs."""

_DELAY = re.compile(r"(.*\b)?_?(latency|delay|time|rtt|ping|median|mean|avg|average|value)(?=\b|_).*", re.I)
_FEWEST = 2
_SENDER, _RECEIVER, _VALUE = 0, 1, 2


def find_value_column(rows: Fields) -> int | None:
    """Return the column of the delays in a file of pairs; None where the file has another form.

    A header names two ends, such as `a,b,latency` or `src,dst,bytes,latency_us`. Without one, lines have two names
    and a number.
    """
    _, first = rows[0]
    if len(first) <= _VALUE or [fields[0] for _, fields in rows[1:]] == first[1:]:
        return None
    if all(ENDS.fullmatch(field) for field in first[:_VALUE]) and not _NUMBER.fullmatch(first[_VALUE]):
        named = [column for column in range(_VALUE, len(first)) if _DELAY.fullmatch(first[column])]
        return named[0] if named else _VALUE
    is_long = len(rows) >= _FEWEST and all(
        len(fields) == _VALUE + 1
        and fields[_SENDER]
        and not _NUMBER.fullmatch(fields[_SENDER])
        and not _NUMBER.fullmatch(fields[_RECEIVER])
        and _NUMBER.fullmatch(fields[_VALUE])
        for _, fields in rows
    )
    return _VALUE if is_long else None


def read_pair_rows(path: Path, rows: Fields, column: int) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
    """Return the names of the ends in the order of their first lines, and the delays between them.

    Args:
        path: the file, for errors.
        rows: its lines.
        column: of the delays, from `find_value_column`.

    Returns:
        Names, and float64 [n, n] in the file's unit: the median where a pair has several lines, nan where it has none.

    Raises:
        InputError: with the line.
    """
    start = 0 if _NUMBER.fullmatch(rows[0][1][column]) else 1
    place: dict[str, int] = {}
    found: dict[tuple[int, int], list[float]] = {}
    for line, fields in rows[start:]:
        if len(fields) <= column:
            raise InputError(path, line, f"two ends and a delay in column {column + 1}", quote_found(",".join(fields)))
        ends = tuple(place.setdefault(name, len(place)) for name in fields[:_VALUE])
        if not _NUMBER.fullmatch(fields[column]):
            raise InputError(path, line, "a delay", quote_found(fields[column]))
        found.setdefault((ends[_SENDER], ends[_RECEIVER]), []).append(float(fields[column]))
    values = np.full((len(place), len(place)), np.nan)
    for (sender, receiver), delays in found.items():
        values[sender, receiver] = np.median(delays)
    np.fill_diagonal(values, 0.0)
    return tuple(place), values
