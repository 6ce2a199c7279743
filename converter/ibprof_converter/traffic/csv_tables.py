# SPDX-License-Identifier: Apache-2.0
"""Read traffic from CSV files, whose header line shows the content: LID pairs, port counters or a rank matrix."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.native.libraries import sum_exactly
from ibprof_converter.fabric.fabric_graph import LIDS
from ibprof_converter.traffic.traffic_data import RANK_LIMIT, SINGLE_RAIL, PortCounters, RankTraffic, Traffic

_LINE_LIMIT = 1 << 16
"""Largest number of characters in a line. A longer line shows a damaged file, and might not fit in memory."""

_BLOCK = 1 << 22
"""Number of bytes that `_read_plain` reads at once."""

_PLAIN_DIGITS = 19
"""Each number of at most this number of digits fits into 64 bits."""

_TOTAL_LIMIT = 1 << 64
"""The sum of a file's bytes must be below this limit, so that sums fit into 64 bits."""

_FORMS = {
    ("src_lid", "dst_lid", "bytes"),
    ("src_lid", "dst_lid", "bytes", "rail"),
    ("guid", "port", "bytes"),
    ("src", "dst", "bytes", "messages"),
}


def read_traffic_table(path: Path, rails: int) -> Traffic | PortCounters | RankTraffic:
    """Read a CSV file of traffic.

    Args:
        rails: number of fabrics; indices in a column `rail` must be below this number.

    Raises:
        InputError: the header is unknown, or a row does not match the header.
    """
    rows = read_rows(path)
    _, header = next(rows, (1, [""]))
    form = tuple(column.strip().lower() for column in header)
    if form not in _FORMS:
        known = " or ".join(",".join(columns) for columns in sorted(_FORMS))
        raise InputError(path, 1, f"the header {known}", quote_found(",".join(header)))
    if form[0] == "guid":
        return _read_port_counters(path, rows)
    if form[0] == "src":
        return _read_rank_matrix(path, rows)
    return _read_lid_pairs(path, rows, len(form), rails)


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, fields) of each row of a CSV file; blank rows are left out.

    Raises:
        InputError: the text is not CSV or not UTF-8, or a line has more than `_LINE_LIMIT` characters.
    """
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(_checked_lines(path, file), strict=True)
        try:
            for fields in reader:
                if fields:
                    yield reader.line_num, fields
        except csv.Error as error:
            raise InputError(path, reader.line_num, "a row of a CSV file", str(error)) from None


def read_number(path: Path, line: int, text: str, what: str, limit: int) -> int:
    """Return a number from 0 to `limit` - 1; the text is decimal, or hexadecimal after `0x`.

    Raises:
        InputError: `text` is not a valid number.
    """
    text = text.strip()
    try:
        # int() alone would also accept "1_000", "+1" and digits of other scripts.
        if not text.isascii() or not text.isalnum() or len(text) > 24:
            raise ValueError
        number = int(text, 16 if text[:2].lower() == "0x" else 10)
    except ValueError:
        raise InputError(path, line, what, quote_found(text)) from None
    if number >= limit:
        raise InputError(path, line, f"{what} below {limit}", quote_found(text))
    return number


def _checked_lines(path: Path, file: TextIO) -> Iterator[str]:
    count = 0
    while text := file.readline(_LINE_LIMIT):
        count += 1
        if len(text) == _LINE_LIMIT:
            raise InputError(path, count, f"lines of fewer than {_LINE_LIMIT} characters", "a longer one")
        try:
            text.encode()
        except UnicodeEncodeError:
            found = quote_found(text.encode(errors="surrogateescape").rstrip())
            raise InputError(path, count, "UTF-8 text", found) from None
        yield text


def _read_columns(
    path: Path, rows: Iterator[tuple[int, list[str]]], columns: tuple[tuple[str, int], ...]
) -> Sequence[Sequence[int] | npt.NDArray[np.uint64]]:
    """Read rows of numbers into one list or array per column.

    Args:
        columns: for each column, its noun in error messages, and an upper limit (exclusive).
    """
    plain = _read_plain(path, [limit for _, limit in columns]) if path.is_file() else None
    if plain is not None:
        return list(plain)
    values: list[list[int]] = [[] for _ in columns]
    for line, fields in rows:
        if len(fields) != len(columns):
            raise InputError(path, line, f"{len(columns)} columns", f"{len(fields)}")
        for column, text, (what, limit) in zip(values, fields, columns, strict=True):
            column.append(read_number(path, line, text, what, limit))
    return values


def _read_plain(path: Path, limits: Sequence[int]) -> npt.NDArray[np.uint64] | None:
    """Read a file whose rows have only decimal numbers of at most 19 digits. Return uint64 [column, row].

    Returns:
        None for all other files, which `_read_columns` reads row by row.
    """
    blocks = []
    with path.open("rb") as file:
        if b"\r" in file.readline(_LINE_LIMIT).removesuffix(b"\n").removesuffix(b"\r"):
            return None  # a carriage return alone ends the header, as in old Mac files
        while lines := file.read(_BLOCK):
            if not lines.endswith(b"\n"):
                lines += file.readline(_LINE_LIMIT)
            lines = lines.replace(b"\r\n", b"\n")
            if lines.translate(None, b"0123456789,\n"):
                return None
            lines += b"" if lines.endswith(b"\n") else b"\n"
            letters = np.frombuffer(lines, np.uint8)
            ends = np.flatnonzero(letters < ord("0"))
            if len(ends) % len(limits):
                return None
            digits = np.diff(ends, prepend=-1) - 1
            is_last = (letters[ends] == ord("\n")).reshape(-1, len(limits))
            if digits.min() < 1 or digits.max() > _PLAIN_DIGITS or is_last[:, :-1].any() or not is_last[:, -1].all():
                return None
            rows = np.fromstring(lines.replace(b"\n", b",").decode(), np.uint64, sep=",").reshape(-1, len(limits))
            if any(int(most) >= limit for most, limit in zip(rows.max(axis=0), limits, strict=True)):
                return None
            blocks.append(rows.T)
    return np.concatenate(blocks, axis=1) if blocks else np.zeros((len(limits), 0), np.uint64)


def _byte_counts(path: Path, values: Sequence[int] | npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    counts = np.array(values, np.uint64)
    if (total := sum_exactly(counts)) >= _TOTAL_LIMIT:
        raise InputError(path, None, f"bytes that sum to less than {_TOTAL_LIMIT}", f"{total}")
    return counts


_BYTES = ("a number of bytes", 1 << 64)


def _read_lid_pairs(path: Path, rows: Iterator[tuple[int, list[str]]], columns: int, rails: int) -> Traffic:
    lid = ("a LID", LIDS)
    spec = (lid, lid, _BYTES, ("a rail index", rails))[:columns]
    values = _read_columns(path, rows, spec)
    rail_source, notes = SINGLE_RAIL, []
    if rails > 1:
        rail_source = "measured"
        if columns == 3:
            rail_source = "assumed (first fabric)"
            notes.append(f"{path} has no column `rail`: the LIDs are assumed to belong to the first fabric")
    return Traffic.without_ranks(
        np.array(values[0], np.int32),
        np.array(values[1], np.int32),
        _byte_counts(path, values[2]),
        rank_lid=np.zeros((0, rails), np.int32),
        origin=f"LID pairs of {path}",
        rail=np.array(values[3], np.int32) if columns == 4 else None,
        rail_source=rail_source,
        notes=tuple(notes),
    )


def _read_port_counters(path: Path, rows: Iterator[tuple[int, list[str]]]) -> PortCounters:
    guid, port, counted = _read_columns(path, rows, (("a GUID", 1 << 64), ("a port", 256), _BYTES))
    repeated = len(guid) - len(set(zip(guid, port, strict=True)))
    notes = (f"{path}: {repeated} row(s) repeat the port of another row; the bytes of these rows are added",)
    return PortCounters(
        node_guid=np.array(guid, np.uint64),
        port=np.array(port, np.int32),
        bytes=_byte_counts(path, counted),
        origin=f"port counters of {path}",
        notes=notes if repeated else (),
    )


def _read_rank_matrix(path: Path, rows: Iterator[tuple[int, list[str]]]) -> RankTraffic:
    rank = ("a rank", RANK_LIMIT)
    source, destination, counted, messages = _read_columns(
        path, rows, (rank, rank, _BYTES, ("a number of messages", 1 << 63))
    )
    return RankTraffic.without_regions(
        np.array(source, np.int32),
        np.array(destination, np.int32),
        _byte_counts(path, counted),
        ranks=max((int(np.max(end)) + 1 for end in (source, destination) if len(end)), default=0),
        origin=f"rank matrix {path}",
        messages=np.array(messages, np.uint64),
    )
