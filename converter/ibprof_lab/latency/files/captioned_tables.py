# SPDX-License-Identifier: Apache-2.0
"""Tables of delays in the output of tools: a caption with a unit, a line of names, a line for each sender."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_lab.latency.files.pair_rows import ENDS, SECONDS

_UNIT = re.compile(r"[(\[]\s*([^\s()\[\]]+)\s*[)\]]\W*$")
_RATE = re.compile(r".*/(s|sec|second)|.*bps", re.I)
_RULE = re.compile(r"[\s|+:=\-]*")
_MISSING = re.compile(r"-+|x|\*|n/?a|nan", re.I)
_WORD = re.compile(r"[^\s\[\](){}<>:]+")
_FEWEST = 2


def find_captions(lines: Sequence[str]) -> list[int]:
    """Return the lines that are the caption of a table: they end with a unit of time or of a rate in brackets."""
    return [index for index, line in enumerate(lines) if _find_unit(line) is not None and not _is_header(lines, index)]


def _is_header(lines: Sequence[str], index: int) -> bool:
    """Return whether a line is the header of a CSV file, and not a caption: the next one has as many fields."""
    behind = lines[index + 1] if index + 1 < len(lines) else ""
    return any(lines[index].count(each) == behind.count(each) >= _FEWEST for each in (";", "\t", ","))


def _find_unit(line: str) -> str | None:
    """Return the unit of a caption; None for other lines, such as the header of a file of pairs."""
    found = _UNIT.search(line)
    fields = [field.strip().strip('"') for field in re.split(r"[,;\t]", line)]
    if found is None or (len(fields) > 1 and all(ENDS.fullmatch(field) for field in fields[:_FEWEST])):
        return None
    unit = found.group(1)
    return unit if unit.lower() in SECONDS or _RATE.fullmatch(unit) else None


def read_captioned_table(
    path: Path, lines: Sequence[str], captions: Sequence[int]
) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
    """Return the names and the delays of the only table of delays.

    Args:
        path: the file, for errors.
        lines: its lines.
        captions: from `find_captions`.

    Returns:
        Names of senders, and float64 [n, n], seconds; nan where not measured, 0 on the diagonal.

    Raises:
        InputError: with the line.
    """
    delays = [index for index in captions if (_find_unit(lines[index]) or "").lower() in SECONDS]
    if not delays:
        raise InputError(path, captions[0] + 1, "a table of delays", quote_found(lines[captions[0]].strip("# ")))
    if len(delays) > 1:
        raise InputError(path, delays[1] + 1, "one table of delays", f"another: {quote_found(lines[delays[1]])}")
    start = delays[0] + 1
    stop = next((index for index in captions if index >= start), len(lines))
    rows = [
        (index + 1, lines[index].replace("|", " ").replace(",", " ").split())
        for index in range(start, stop)
        if not _RULE.fullmatch(lines[index])
    ]
    return _read_rows(path, start, rows, (SECONDS[str(_find_unit(lines[delays[0]])).lower()]))


def _read_rows(
    path: Path, caption: int, rows: list[tuple[int, list[str]]], unit: float
) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
    if not rows:
        raise InputError(path, caption, "a line of names behind it", "nothing")
    header_line, header = rows[0]
    size = _find_size(header, [fields for _, fields in rows[1:]])
    if size < _FEWEST:
        raise InputError(path, header_line, "names of hosts, then a row of each", quote_found(" ".join(header)))
    names = tuple(header[-size:])
    values = np.full((size, size), np.nan)
    for row, (line, fields) in enumerate(rows[1 : size + 1]):
        label = fields[:-size]
        if names[row] not in _WORD.findall(" ".join(label)):
            raise InputError(path, line, f"the row of {quote_found(names[row])}", quote_found(" ".join(label)))
        values[row] = [_read_value(path, line, field) * unit for field in fields[-size:]]
    np.fill_diagonal(values, 0.0)
    return names, values


def _find_size(header: list[str], body: list[list[str]]) -> int:
    """Return the number of hosts: the largest for which there are as many rows, each with a label and the delays."""
    for size in range(min(len(header), len(body)), 0, -1):
        if all(len(fields) > size for fields in body[:size]):
            return size
    return 0


def _read_value(path: Path, line: int, field: str) -> float:
    if _MISSING.fullmatch(field):
        return math.nan
    try:
        return float(field)
    except ValueError:
        raise InputError(path, line, "a delay", quote_found(field)) from None
