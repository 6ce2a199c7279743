# SPDX-License-Identifier: Apache-2.0
"""Read and write delay files in all formats; the first bytes of a file determine its format."""

from __future__ import annotations

import codecs
import csv
import logging
import math
import re
import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.text.quantities import format_seconds
from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_lab.lab_choices import MICROSECOND, NO_CLUSTER, STATISTICS
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
from ibprof_lab.latency.files.netcdf_files import (
    CLASSIC_MAGICS,
    NETCDF4_MAGIC,
    check_heaps,
    check_memory,
    has_layout,
    read_classic,
    read_netcdf,
    write_netcdf,
)
from ibprof_lab.latency.files.pair_files import MISSING, NUMBER, find_bracketed_unit, find_value_column, read_pair_rows
from ibprof_lab.latency.model.delays import FIRMWARE, Attribute, Delays, clear_diagonal

_NUMPY_MAGIC = (b"\x93NUMPY", b"PK\x03\x04")

_SHORTEST = 1e-10
"""If the longest delay of a file, in seconds, is shorter than this, the assumed unit is wrong."""

_log = logging.getLogger(__name__)


def read_delays(
    path: str | PathLike[str],
    statistics: Sequence[str] = STATISTICS,
    unit: float | None = None,
) -> Delays:
    """Read delays in any format: ibprof's NetCDF-4, clustbench's classic NetCDF, text, or numpy's .npy or .npz.

    If `path` is one of clustbench's four files, the other three are read too. Negative and infinite times become NaN
    (not measured), and a warning reports their number. The diagonal becomes 0.

    Args:
        statistics: statistics to read if the file has several; the median is always read.
        unit: seconds per unit, for a text or numpy matrix that states no unit. None means microseconds, or nanoseconds
            in files of core-to-core-latency.

    Raises:
        InputError: the file has another format, or is damaged.
        MemoryError: the cubes do not fit into this machine's memory.
    """
    path = Path(path)
    wanted = tuple(name for name in STATISTICS if name == "median" or name in statistics)
    try:
        with path.open("rb") as file:
            magic = file.read(8)
        if magic.startswith(NETCDF4_MAGIC):
            check_heaps(path)
    except OSError as error:
        raise InputError(path, None, "a readable file", error.strerror or str(error)) from error
    if magic.startswith(CLASSIC_MAGICS) or (magic.startswith(NETCDF4_MAGIC) and has_layout(path)):
        delays = read_classic(path, wanted)
    elif magic.startswith(NETCDF4_MAGIC):
        delays = read_netcdf(path, wanted)
    else:
        is_numpy = magic.startswith(_NUMPY_MAGIC)
        delays = _read_numpy(path, unit or MICROSECOND) if is_numpy else read_text_matrix(path, unit)
        _check_unit(path, delays)
    _forget_impossible(path, delays)
    return delays


def _check_unit(path: Path, delays: Delays) -> None:
    longest = float(np.nanmax(delays.median, initial=0.0))
    if 0 < longest < _SHORTEST:
        least, most = format_seconds(_SHORTEST), format_seconds(longest)
        raise InputError(path, None, f"delays of at least {least}", f"at most {most}; --unit names another unit")


def write_delays(path: str | PathLike[str], delays: Delays) -> None:
    """Write delays as NetCDF-4; if the name ends with `.csv`, write the only length's matrix in microseconds.

    The file is written completely or not at all.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
        InputError: the name ends with `.csv`, and there are several lengths.
    """
    path = Path(path)
    if path.suffix == ".csv":
        write_text_matrix(path, delays, MICROSECOND)
    else:
        write_netcdf(path, delays)


def _forget_impossible(path: Path, delays: Delays) -> None:
    """Replace impossible times by NaN, in place, and log their number."""
    for name, cube in delays.present.items():
        least, most = (extreme.reduce(cube, axis=None, initial=0.0) for extreme in (np.fmin, np.fmax))
        if least < 0 or most == np.inf:
            impossible: npt.NDArray[np.bool_] = np.isinf(cube) | (cube < 0)
            found, first = np.count_nonzero(impossible), tuple(np.argwhere(impossible)[0].tolist())
            _log.warning(
                "%s: %d values of the %s are not valid times and count as not measured, such as %s at %s",
                path, found, name, quote_found(str(cube[first])), first,
            )  # fmt: skip
            cube[impossible] = np.nan
        clear_diagonal(cube)


def _read_numpy(path: Path, unit: float) -> Delays:
    """Read an array [n, n] or [L, n, n] from .npy, or from .npz with `delays`, and optionally `hosts` and `lengths`.

    Raises:
        InputError: the file has other content.
    """
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            members = dict(loaded) if isinstance(loaded, np.lib.npyio.NpzFile) else {"delays": loaded}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(path, None, "a numpy file", f"a damaged one ({error})") from error
    if {"centroids", "labels"} <= set(members):
        members["delays"], unit = _expand(path, members), 1.0
    if "delays" not in members:
        raise InputError(path, None, "an array `delays`", f"{sorted(members)}")
    values = members["delays"]
    if values.ndim not in (2, 3) or values.shape[-1] != values.shape[-2] or values.dtype.kind not in "fiu":
        raise InputError(path, None, "numbers in an array [n, n] or [L, n, n]", f"{values.dtype} {values.shape}")
    cube = np.atleast_3d(values) if values.ndim == 3 else values[None]
    hosts = members.get("hosts", np.arange(cube.shape[1]))
    lengths = members.get("lengths", np.arange(len(cube)))
    if hosts.shape != cube.shape[1:2] or lengths.shape != cube.shape[:1] or lengths.dtype.kind not in "iu":
        raise InputError(path, None, f"n hosts and L lengths as in {cube.shape}", f"{hosts.shape} and {lengths.shape}")
    if np.any(np.diff(lengths) <= 0):
        raise InputError(path, None, "lengths that ascend", quote_found(str(lengths.tolist())))
    seconds = np.multiply(cube, unit, out=cube if cube.dtype.kind == "f" else None)
    return make_median_delays(tuple(str(each) for each in hosts), seconds, lengths.astype(np.int64))


def _expand(path: Path, members: dict[str, npt.NDArray[np.generic]]) -> npt.NDArray[np.float32]:
    """Return delays [L, n, n] from a compressed file, which stores a centroid for each cluster of pairs."""
    centroids, labels = np.asarray(members["centroids"]), np.asarray(members["labels"])
    if centroids.ndim != 2 or labels.ndim != 2 or labels.dtype != np.uint8 or len(centroids) > NO_CLUSTER:
        raise InputError(path, None, "centroids [K, L] and labels [n, n], uint8", f"{centroids.shape}, {labels.shape}")
    if np.any((labels >= len(centroids)) & (labels != NO_CLUSTER)):
        raise InputError(
            path, None, f"labels of {len(centroids)} clusters", f"label {labels[labels != NO_CLUSTER].max()}"
        )
    check_memory((centroids.shape[1], *labels.shape), 2)
    known = np.vstack((centroids, np.full((NO_CLUSTER + 1 - len(centroids), centroids.shape[1]), np.nan)))
    return np.ascontiguousarray(known[labels].transpose(2, 0, 1), np.float32)


_SEPARATORS = (";", "\t", ",")
_EXCEL = re.compile(r"sep=.")
"""First line of CSV files written for Excel."""

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMMA_NUMBER = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(\.\d{3})+")


def read_text_matrix(path: Path, unit: float | None) -> Delays:
    """Read a matrix (rows are senders, columns are receivers), or a file with a line per pair.

    A matrix may have names: the first row and the first column then have the same names in the same order. In the first
    row, either the first field or all other fields may have a unit in brackets. Commas, semicolons, tabs or blanks
    separate fields. If the separator is not a comma, numbers may have decimal commas. An empty field, `-` or `nan`
    means "not measured". One triangle of a matrix is enough, with or without its diagonal. A line of a pair file
    (`a,b,latency`, header in any language) has two names and a delay. Other formats are recognised by their first
    lines: output of OSU's benchmarks and of nccl-tests, tables with a unit in the caption, and NUMA distances.

    Args:
        unit: seconds per unit if the file states no unit. None means microseconds, or nanoseconds in files of
            `core-to-core-latency --csv` (a lower triangle without names, padded with empty fields).

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
    ):  # Each row begins with a name, but the columns have no names.
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
        what = "rows, one for each column, or lines with two ends and a delay (`from,to,latency_us`)"
        raise InputError(path, last, f"{size} {what}", f"{len(body)}")
    check_memory((1, size, size), 1)
    values = np.empty((size, size), np.float64)
    for row, (number, parts) in enumerate(body):
        if names is not None:
            if parts[0] != names[row]:
                raise InputError(path, number, f"the row of {quote_found(names[row])}", quote_found(parts[0]))
            is_lower = len(parts) - 1 in (row, row + 1)  # lower triangle, with or without the diagonal
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
    """Refuse a file that has both decimal commas (950,5) and points (1.234): the points may separate thousands."""
    if separator in (None, ",") or not any("," in line for _, line in rows):
        return
    parts = [(number, part.strip()) for number, line in rows for part in line.split(separator)]
    if any(_COMMA_NUMBER.fullmatch(part) for _, part in parts):
        for number, part in parts:
            if _THOUSANDS.fullmatch(part):
                raise InputError(path, number, "a decimal comma, as in other delays", quote_found(part))


def _drop_last_separators(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Return rows; drop the empty last fields of a matrix whose lines end with a separator."""
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
    if not any(first):  # this is the first row of a triangle
        return None
    if len(first) > 1 and first[0] == "" and len(rows) == len(first):
        return tuple(first[1:])
    if all(_is_value(part) for part in first):
        return None
    if len(first) < 2:
        raise InputError(path, number, "a matrix of delays", quote_found(" ".join(first)))
    if first[0] and _is_value(first[0]) and any(map(_is_value, first[1:])):
        raise InputError(path, number, "a delay", quote_found(next(part for part in first if not _is_value(part))))
    if len(rows) > 1 and len(rows[1][1]) == len(first) + 1:  # the header has no field above the column of names
        return tuple(first)
    return tuple(first[1:])


def _take_units(rows: list[tuple[int, list[str]]], unit: float) -> tuple[list[tuple[int, list[str]]], float]:
    """Remove bracketed units from the first row; return all rows, and the seconds per unit (default: `unit`)."""
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
    """Return delays, in single precision, with the median as their only statistic.

    Args:
        hosts: one name per process.
        seconds: [L, n, n].
        lengths: int64 [L], bytes; None: one unknown length, stored as 0.
        is_firmware: True for NUMA distances of the firmware, which have no measurement errors. True sets
            `attributes["source"]` to `FIRMWARE`.
    """
    with np.errstate(over="ignore"):
        median = np.ascontiguousarray(seconds, np.float32)
    attributes: dict[str, Attribute] = {"source": FIRMWARE} if is_firmware else {}
    return Delays(hosts, np.zeros(1, np.int64) if lengths is None else lengths, median, attributes=attributes)


def write_text_matrix(path: Path, delays: Delays, unit: float) -> None:
    """Write the median delays of the only message length as CSV with names.

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
    """Pad the rows of a triangle with empty fields to equal length.

    A row is a line number and its fields, without a name. Each row of a lower triangle has one field more than the row
    above; each row of an upper triangle has one field less. The diagonal is the last field of each row (lower triangle)
    or the first field (upper triangle), if all these fields are zero or empty. Otherwise the diagonal is missing, and
    no field may be zero. Rows that are not a triangle are returned unchanged.
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

    Each row has a line number and fields: a name, then the delays. The diagonal may be missing; the last row then has
    no delays. Rows of another shape are returned unchanged.
    """
    count = len(rows)
    lengths = [len(fields) for _, fields in rows]
    if rows and rows[-1][1][1:] == [""]:
        lengths[-1] = 1  # the row ends with a separator and has no delay
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
