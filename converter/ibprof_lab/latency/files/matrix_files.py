# SPDX-License-Identifier: Apache-2.0
"""Delay matrices as text, with or without names."""

from __future__ import annotations

import codecs
import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_lab.lab_choices import MICROSECOND
from ibprof_lab.latency.files.benchmark_output import (
    NANOSECOND,
    find_captions,
    has_benchmark_runs,
    is_core_to_core,
    is_slit,
    read_benchmark_runs,
    read_captioned_table,
    read_machine_table,
)
from ibprof_lab.latency.files.netcdf_files import check_memory
from ibprof_lab.latency.files.pair_files import MISSING, NUMBER, find_bracketed_unit, find_value_column, read_pair_rows
from ibprof_lab.latency.model.delays import FIRMWARE, Attribute, Delays

_SEPARATORS = (";", "\t", ",")
_EXCEL = re.compile(r"sep=.")
"""First line of CSV files written for Excel."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMA_NUMBER = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+")


def read_text_matrix(path: Path, unit: float | None) -> Delays:
    """Read a matrix (rows are senders, columns are receivers), or a file with a line per pair.

    With names, the first row and the first column have the same names in the same order. The first field, or all others
    of the first row, may have a unit in brackets. Commas, semicolons, tabs or blanks separate fields. If commas do not,
    numbers may have decimal commas. An empty field, `-` or `nan` means "not measured". One triangle of a matrix is
    enough, with or without its diagonal. A line of a pair file (`a,b,latency`, header in any language) has two names
    and a delay. The first lines identify the output of OSU's benchmarks, of nccl-tests, tables with a unit in their
    caption, and firmware's distances of NUMA nodes.

    Args:
        unit: seconds per unit if the file states no unit. None for a microsecond, or a nanosecond in the format of
            `core-to-core-latency --csv`: a lower triangle without names in a square of fields.

    Raises:
        InputError: the file is invalid; the message has the line.
    """
    lines = _read_text(path).splitlines()
    if has_benchmark_runs(lines):
        return read_benchmark_runs(path, lines)
    if (known := read_machine_table(path, lines)) is not None:
        return make_median_delays(known.names, known.seconds[None], is_firmware=known.is_firmware)
    if captions := find_captions(lines):
        names_of_table, seconds = read_captioned_table(path, lines, captions)
        return make_median_delays(names_of_table, seconds[None])
    rows = [
        (number, line)
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#") and not (number == 1 and _EXCEL.fullmatch(line))
    ]
    if not rows:
        raise InputError(path, None, "a matrix of delays", "an empty file")
    separator = next((each for each in _SEPARATORS if any(each in line for _, line in rows)), None)
    _refuse_mixed_decimals(path, rows, separator)
    fields = _drop_last_separators([(number, _split(line, separator)) for number, line in rows])
    if (column := find_value_column(fields)) is not None:
        ends, lengths, cube = read_pair_rows(path, fields, column, unit or MICROSECOND)
        return make_median_delays(ends, cube, lengths)
    if all(
        len(parts) == len(fields) + 1 and not _is_value(parts[0]) and all(map(_is_value, parts[1:]))
        for _, parts in fields
    ):  # names before the rows of a square, but not above its columns
        fields = [(0, ["", *(parts[0] for _, parts in fields)]), *fields]
    table = [parts for _, parts in fields]
    is_firmware = is_slit(table)
    fields, unit = _take_units(fields, unit or (NANOSECOND if is_core_to_core(table) else MICROSECOND))
    names = _read_header(path, fields)
    body = fields if names is None else align_named_upper(fields[1:])
    if names is None:
        unit = NANOSECOND if is_firmware else unit
        body = complete_triangle(body)
    size = len(body[0][1]) if names is None else len(names)
    if len(body) != size:
        last = body[-1][0] if body else rows[-1][0]
        what = "rows, as there are columns, or two ends and a delay a line (`from,to,latency_us`)"
        raise InputError(path, last, f"{size} {what}", f"{len(body)}")
    check_memory((1, size, size), 1)
    values = np.empty((size, size), np.float64)
    for row, (number, parts) in enumerate(body):
        if names is not None:
            if parts[0] != names[row]:
                raise InputError(path, number, f"the row of {quote_found(names[row])}", quote_found(parts[0]))
            is_lower = len(parts) - 1 in (row, row + 1)  # a triangle, with or without its diagonal
            parts = _put(parts[1:], 0, size) if is_lower else parts[1:]  # noqa: PLW2901
        if len(parts) != size:
            raise InputError(path, number, f"{size} delays", f"{len(parts)}")
        values[row] = [_read_value(path, number, part) for part in parts]
    hosts = names or tuple(f"{'node' if is_firmware else ''}{each}" for each in range(size))
    return make_median_delays(hosts, values[None] * unit, is_firmware=is_firmware)


def _read_text(path: Path) -> str:
    content = path.read_bytes()
    try:
        text = content.decode("utf-16" if content.startswith(_UTF16) else "utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\0" not in content:
            line = content.count(b"\n", 0, error.start) + 1
            raise InputError(path, line, "text in UTF-8 or UTF-16", f"byte 0x{content[error.start]:02x}") from error
        raise InputError(path, None, "a matrix of delays: NetCDF, CSV, .npy or .npz", "a binary file") from error
    if "\0" in text:
        raise InputError(path, None, "a matrix of delays: NetCDF, CSV, .npy or .npz", "a binary file")
    return text


def _split(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    if '"' in line:
        parts = [part.strip() for part in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]
    else:
        parts = [part.strip() for part in line.split(separator)]
    if separator == ",":
        return parts
    return [part.replace(",", ".") if _COMMA_NUMBER.fullmatch(part) else part for part in parts]


def _refuse_mixed_decimals(path: Path, rows: list[tuple[int, str]], separator: str | None) -> None:
    """Refuse 1.234 in a file with 950,5: with a decimal comma, the point would separate thousands."""
    if separator in (None, ",") or not any("," in line for _, line in rows):
        return
    parts = [(number, part.strip()) for number, line in rows for part in line.split(separator)]
    if any(_COMMA_NUMBER.fullmatch(part) for _, part in parts):
        for number, part in parts:
            if _THOUSANDS.fullmatch(part):
                raise InputError(path, number, "a decimal comma, as in other delays", quote_found(part))


def _drop_last_separators(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Return rows without the trailing separator of each line, after names or after a square of delays."""
    _, first = rows[0]
    is_named = len(first) > 1 and all(part and not _is_value(part) for part in first[1:-1])
    if (
        len(first) > 2
        and (is_named or len(rows) == len(first) - 1)
        and all(len(parts) == len(first) and not parts[-1] for _, parts in rows)
    ):
        return [(number, parts[:-1]) for number, parts in rows]
    return rows


def _read_header(path: Path, rows: list[tuple[int, list[str]]]) -> tuple[str, ...] | None:
    """Return the names in the first row; None if the row has no names."""
    number, first = rows[0]
    if not any(first):  # the first row of a triangle
        return None
    if len(first) > 1 and first[0] == "" and len(rows) == len(first):
        return tuple(first[1:])
    if all(_is_value(part) for part in first):
        return None
    if len(first) < 2:
        raise InputError(path, number, "a matrix of delays", quote_found(" ".join(first)))
    if first[0] and _is_value(first[0]) and any(map(_is_value, first[1:])):
        raise InputError(path, number, "a delay", quote_found(next(part for part in first if not _is_value(part))))
    if len(rows) > 1 and len(rows[1][1]) == len(first) + 1:  # no field above the names
        return tuple(first)
    return tuple(first[1:])


def _take_units(rows: list[tuple[int, list[str]]], unit: float) -> tuple[list[tuple[int, list[str]]], float]:
    """Return rows without the unit in brackets in the first or all other fields of the first row, and the unit.

    Without a unit in the first row, `unit` is returned.
    """
    number, first = rows[0]
    of_fields = [find_bracketed_unit(part) for part in first]
    found = sorted({each[1] for each in of_fields if each})
    if len(found) != 1 or not (of_fields[0] or all(of_fields[1:])):
        return rows, unit
    names = [each[0] if each else part for each, part in zip(of_fields, first, strict=True)]
    return [(number, names), *rows[1:]], found[0]


def _is_value(part: str) -> bool:
    return part.lower() in MISSING or NUMBER.fullmatch(part) is not None


def _read_value(path: Path, line: int, part: str) -> float:
    if part.lower() in MISSING:
        return math.nan
    if not _is_value(part):
        raise InputError(path, line, "a delay", quote_found(part))
    return float(part)


def make_median_delays(
    hosts: tuple[str, ...],
    seconds: npt.NDArray[np.floating],
    lengths: npt.NDArray[np.int64] | None = None,
    is_firmware: bool = False,
) -> Delays:
    """Return delays with a single known statistic, in single precision.

    Args:
        hosts: one name per process.
        seconds: [L, n, n].
        lengths: int64 [L], bytes; None for a single unknown length, stored as 0.
        is_firmware: True for distances stated by firmware, without errors; recorded as attribute `FIRMWARE`.
    """
    with np.errstate(over="ignore"):
        median = np.ascontiguousarray(seconds, np.float32)
    attributes: dict[str, Attribute] = {"source": FIRMWARE} if is_firmware else {}
    return Delays(hosts, np.zeros(1, np.int64) if lengths is None else lengths, median, attributes=attributes)


def write_text_matrix(path: Path, delays: Delays, unit: float) -> None:
    """Write the median of the only length as CSV with names.

    Raises:
        InputError: there are several lengths.
        OSError: the file cannot be written.
    """
    if len(delays.lengths) != 1:
        raise InputError(path, None, "one message length in a CSV", f"{len(delays.lengths)} of them")
    labels = delays.labels
    lines = [",".join(("", *labels))]
    for label, row in zip(labels, delays.median[0] / unit, strict=True):
        lines.append(",".join((label, *("" if math.isnan(value) else f"{value:.6g}" for value in row))))
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


_FEWEST_ROWS = 2
_ZERO = re.compile(r"0+\.?0*|\.0+")


def complete_triangle(rows: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Complete the rows of a triangle to equal length; the missing half stays empty.

    Rows have line numbers and fields, without names. In a lower triangle each row is one field longer than the last; in
    an upper triangle, one field shorter. The file has the diagonal if each row has a zero or nothing at its position.
    Otherwise the file has no zero. Other rows are returned unchanged.
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


def align_named_upper(rows: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Complete the rows of an upper triangle with names, where each row is one field shorter than the row above.

    Each row has a line number and fields: a name, then the delays. The diagonal may be missing, so that the last row
    has no delays. Other rows are returned unchanged.
    """
    count = len(rows)
    lengths = [len(fields) for _, fields in rows]
    if rows and rows[-1][1][1:] == [""]:
        lengths[-1] = 1  # a separator without a delay
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
