# SPDX-License-Identifier: Apache-2.0
"""Files with a line per pair of processes: delays, or pairs to measure again."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.outputs.atomic_write import write_atomically

Fields = Sequence[tuple[int, list[str]]]
"""The line number and the fields of each line."""

MISSING = {"", "-", "na", "n/a", "nan", "none", "null"}
"""Field values, in lower case, that mean "not measured"."""

SECONDS = {
    "s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "usec": 1e-6, "microseconds": 1e-6, "µs": 1e-6, "μs": 1e-6,
    "ns": 1e-9, "nsec": 1e-9, "nanoseconds": 1e-9,
}  # fmt: skip
"""Unit of time, in lower case -> seconds."""

NUMBER = re.compile(r"[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|inf(inity)?)", re.I)
ENDS = re.compile(
    r"(a|b|i|j|from|to|sender|receiver|client|server|local|remote|"
    r"(src|dst|source|dest|destination|target|host|node|rank|core|cpu|proc|process|peer)\W?\w*)",
    re.I,
)
"""Names of the first two columns of a pair file."""

_DELAY = re.compile(r"(.*\b)?_?(latency|delay|time|rtt|ping|median|mean|avg|average|value)(?=\b|_).*", re.I)
_LENGTH = re.compile(r"((msg|message|packet)[\W_]*)?(bytes|size|length|len)\W*(b|bytes)?\W*", re.I)
_IN_BRACKETS = re.compile(r"(.*?)\s*[\[(]\s*(\S+?)\s*[\])]")
_UNITS = re.compile(r"(time\W?)?units?", re.I)
_WHOLE = re.compile(r"\d+")
_COLUMN_UNIT = re.compile(r"(?:.*[\W_])?([a-zµμ]+)\W*", re.I)
_NAME = re.compile(rf"(?!{NUMBER.pattern}$).+", re.I)
_FEWEST, _MATRIX = 2, 3
_SENDER, _RECEIVER, _VALUE = 0, 1, 2
_MOST = 0.5

HEADER = ("sender", "receiver")


def find_bracketed_unit(text: str) -> tuple[str, float] | None:
    """Split `NAME [UNIT]` into the name and the seconds of the time unit; return None for another text."""
    found = _IN_BRACKETS.fullmatch(text)
    unit = SECONDS.get(found.group(2).lower()) if found else None
    return (found.group(1), unit) if found and unit is not None else None


def find_value_column(rows: Fields) -> int | None:
    """Return the index of the delay column in a pair file, or None if the rows are not a pair file.

    The header names the two ends, such as `a,b,latency` or `src,dst,bytes,latency_us`; a header of three columns may be
    in any language. Without a header, each line has two names, or the numbers of two ranks, and a delay. With
    numbers of ranks, more than three lines are needed, because three lines of three numbers may be a matrix.
    """
    _, first = rows[0]
    if len(first) <= _VALUE or [fields[0] for _, fields in rows[1:]] == first[1:]:
        return None
    if all(ENDS.fullmatch(field) for field in first[:_VALUE]) and not NUMBER.fullmatch(first[_VALUE]):
        named = [column for column in range(_VALUE, len(first)) if _DELAY.fullmatch(first[column])]
        return named[0] if named else _VALUE
    if len(rows) < _FEWEST or any(len(fields) != _VALUE + 1 for _, fields in rows):
        return None
    body = rows[1:] if all(_NAME.fullmatch(field) for field in first) else rows
    is_long = _are_pairs(body, _NAME) or (len(body) >= _MATRIX and len(rows) > _MATRIX and _are_pairs(body, _WHOLE))
    return _VALUE if is_long else None


def _are_pairs(rows: Fields, end: re.Pattern[str]) -> bool:
    """Return True if all lines have valid ends, most have a delay or a missing value, and at least one has a delay."""
    values = [fields[_VALUE] for _, fields in rows]
    delays = sum(NUMBER.fullmatch(value) is not None for value in values)
    missing = sum(value.lower() in MISSING for value in values)
    ends = all(end.fullmatch(fields[_SENDER]) and end.fullmatch(fields[_RECEIVER]) for _, fields in rows)
    return ends and delays > 0 and delays + missing > _MOST * len(rows)


def read_pair_rows(
    path: Path, rows: Fields, column: int, unit: float
) -> tuple[tuple[str, ...], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the names of the ends in order of appearance, message lengths, and the delays between the ends.

    Args:
        rows: lines of the file.
        column: index of the delay column, from `find_value_column`.
        unit: seconds per unit if neither the column's name nor another column states the unit.

    Returns:
        Names of the n ends. Message lengths in bytes, int64 [length], ascending; 0 if the file has no lengths. Delays
        in seconds, float64 [length, n, n]: the median of a pair's lines, nan for a pair without a delay, 0 on the
        diagonal.

    Raises:
        InputError: a line is invalid; the message has the line.
    """
    header = rows[0][1]
    title = header[column]
    start = 0 if NUMBER.fullmatch(title) else 1
    named = _COLUMN_UNIT.fullmatch(title)
    unit = SECONDS.get(named.group(1).lower(), unit) if named else unit
    units = [each for each in range(_VALUE, len(header)) if start and _UNITS.fullmatch(header[each])]
    sizes = [
        each for each in range(_VALUE, len(header)) if start and each != column and _LENGTH.fullmatch(header[each])
    ]
    place: dict[str, int] = {}
    found: dict[tuple[int, int, int], list[float]] = {}
    for line, fields in rows[start:]:
        if len(fields) <= column:
            raise InputError(path, line, f"two ends and a delay in column {column + 1}", quote_found(",".join(fields)))
        if any(fields[len(header) :]):
            raise InputError(path, line, f"{len(header)} fields, as in the first line", f"{len(fields)}")
        if not all(fields[:_VALUE]):
            raise InputError(path, line, "two ends and a delay", quote_found(",".join(fields)))
        ends = tuple(place.setdefault(name, len(place)) for name in fields[:_VALUE])
        if fields[column].lower() in MISSING:
            continue
        if not NUMBER.fullmatch(fields[column]):
            raise InputError(path, line, "a delay", quote_found(fields[column]))
        size = fields[sizes[0]] if sizes else "0"
        if not _WHOLE.fullmatch(size):
            raise InputError(path, line, f"a number of bytes in column {sizes[0] + 1}", quote_found(size))
        scale = unit
        if units:
            scale = SECONDS.get(fields[units[0]].lower(), 0.0) if len(fields) > units[0] else 0.0
            if not scale:
                raise InputError(path, line, f"a unit of time in column {units[0] + 1}", quote_found(",".join(fields)))
        found.setdefault((int(size), ends[_SENDER], ends[_RECEIVER]), []).append(float(fields[column]) * scale)
    if not found:
        raise InputError(path, rows[-1][0], "two ends and a delay", "no line with a delay")
    lengths = sorted({length for length, _, _ in found})
    values = np.full((len(lengths), len(place), len(place)), np.nan)
    for (length, sender, receiver), delays in found.items():
        # Keep impossible times only for a pair without a valid time, so that `read_delays` reports this pair.
        times = [each for each in delays if 0 <= each < np.inf] or delays
        values[lengths.index(length), sender, receiver] = np.median(times)
    values[:, range(len(place)), range(len(place))] = 0.0
    return tuple(place), np.array(lengths, np.int64), values


def read_pairs(path: Path, labels: Sequence[str]) -> npt.NDArray[np.int64]:
    """Read lines `sender,receiver` with process numbers, labels, or names of hosts.

    The name of a host stands for all of its processes. Further columns and a header are ignored. `labels` has the label
    of each process (`Delays.labels`).

    Returns:
        Pairs of processes, int64 [p, 2].

    Raises:
        InputError: a line is invalid; the message has the line.
    """
    known: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        for name in {label, label.rpartition("#")[0] or label}:
            known.setdefault(name, []).append(place)
    for place in range(len(labels)):
        known.setdefault(str(place), [place])
    pairs: list[tuple[int, int]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line, fields in enumerate(csv.reader(file), 1):
                names = [field.strip() for field in fields[:2]]
                if not any(names) or names[0].startswith("#") or (line == 1 and tuple(names) == HEADER):
                    continue
                if len(names) < 2:
                    raise InputError(path, line, "sender,receiver", quote_found(",".join(fields)))
                for name in names:
                    if name not in known:
                        raise InputError(path, line, f"one of {len(labels)} processes, or a host", quote_found(name))
                pairs += [(one, other) for one in known[names[0]] for other in known[names[1]] if one != other]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, None, "a readable CSV file", getattr(error, "strerror", None) or str(error)) from error
    return np.array(pairs, np.int64).reshape(-1, 2)


def write_named_pairs(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Write a line `sender,receiver` for each direction of each pair; a host stands for all of its processes.

    Raises:
        OSError: the file cannot be written.
    """
    _write_rows(path, [HEADER, *(pair for a, b in pairs for pair in ((a, b), (b, a)))], "backslashreplace")


def write_pairs(
    path: Path, labels: Sequence[str], pairs: npt.NDArray[np.int64], ratios: npt.NDArray[np.float64]
) -> None:
    """Write changed pairs as lines `sender,receiver,ratio`; `read_pairs` can read the file.

    Raises:
        OSError: the file cannot be written.
    """
    rows = (
        (labels[one], labels[other], f"{ratio:.6g}")
        for (one, other), ratio in zip(pairs.tolist(), ratios.tolist(), strict=True)
    )
    _write_rows(path, [(*HEADER, "ratio"), *rows], "surrogateescape")


def _write_rows(path: Path, rows: Sequence[Sequence[str]], errors: str) -> None:
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows(rows)
    write_atomically(path, content.getvalue().encode("utf-8", errors))
