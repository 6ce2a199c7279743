# SPDX-License-Identifier: Apache-2.0
"""Reader of delays that other programs print: OSU's tests, nccl-tests, nvbandwidth, Intel's MLC, numactl and others.

A file of OSU's tests or nccl-tests has one run for each pair. NUMA distances have no unit (10 is local memory); ibprof
reads a distance of 1 as 1 ns.
"""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, UsageError, quote_found
from ibprof.text.host_lists import expand_hosts
from ibprof.text.quantities import count_of
from ibprof_lab.latency.files.pair_files import ENDS, SECONDS
from ibprof_lab.latency.model.delays import Delays

Lines = Sequence[str]
Run = tuple[tuple[str, str], dict[int, float]]
"""A run of two processes: their names, and a dict from message length, in bytes, to seconds."""

_OSU = re.compile(r"#\s*OSU\s.*\bTest\b")
_OSU_LATENCY = re.compile(r"#\s*OSU \S+ (Multi |Multi-threaded |Multi-process )?Latency Test\b")
_OSU_COLUMNS = re.compile(r"#\s*Size\s.*?(\((?:s|ms|us|ns)\))")
_HOSTS_OPTION = re.compile(r"(?:^|\s)(?:-H|--?hosts?|-w|--nodelist)[ =](\S+)")
_SLOTS = re.compile(r":\d+(?=,|$)")
_PAIR = re.compile(r"[#=+\-\s]*([^\s,#=]+?)(?:\s*(?:,|<?-+>)\s*|\s+)([^\s,#=]+?)[=:\-\s]*")
_NCCL_RANK = re.compile(r"#\s*Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+(\d+)")
_NCCL_COLUMNS = re.compile(r"#\s*(?:size|bytes)\s.*\btime\b")
_TIME_UNITS = {"(s)": 1.0, "(ms)": 1e-3, "(us)": 1e-6, "(ns)": 1e-9}
_MICROSECOND = 1e-6
_PAIR_SIZE = 2

_UNIT = re.compile(r"[(\[]\s*(?:in )?([^\s()\[\]]+)\s*[)\]]\W*$")
_PREFERRED = re.compile(r"\bidle latenc|P2P=Enabled|\bGPU\(row\).*\bGPU\(column\)", re.I)
"""Captions of Intel's MLC, p2pBandwidthLatencyTest and nvbandwidth. If a file has several tables, the first table with
such a caption is read."""

_RATE = re.compile(r".*/(s|sec|second)|.*bps", re.I)
_RULE = re.compile(r"[\s|+:=\-]*")
_MISSING = re.compile(r"-+|x|\*|n/?a|nan", re.I)
_WORD = re.compile(r"[^\s\[\](){}<>:]+")
_FEWEST = 2

_JSON_TABLE = re.compile(
    r'"bandwidth_description"\s*:\s*"([^"]*)"\s*,\s*"bandwidth_matrix"\s*:\s*\[((?:[^\[\]]|\[[^\[\]]*\])*)\]'
)
_JSON_ROW = re.compile(r"\[([^\[\]]*)\]")
_JSON_FIELD = re.compile(r'[^\s,"]+')


def has_benchmark_runs(lines: Lines) -> bool:
    """Return True if a text is the output of OSU's benchmarks or nccl-tests."""
    return any(_OSU.match(line) or _NCCL_RANK.match(line) for line in lines)


def read_benchmark_runs(path: Path, lines: Lines) -> Delays:
    """Read a file with one run of OSU's latency tests or nccl-tests per pair.

    Output of nccl-tests names the hosts; OSU's does not. A line before each OSU run must contain two hosts' names, or
    be the launcher's command with `-H`, `--host`, `-w` or `--nodelist`. The first of the two names is the sender. The
    delay of a pair with several runs is the median of these runs.

    Raises:
        InputError: the output is invalid; the message has the line.
    """
    is_osu = any(_OSU.match(line) for line in lines)
    runs = list(_read_osu(path, lines) if is_osu else _read_nccl(path, lines))
    names = tuple(dict.fromkeys(name for ends, _ in runs for name in ends))
    lengths = sorted({length for _, seconds in runs for length in seconds})
    place = {name: index for index, name in enumerate(names)}
    found: dict[tuple[int, int, int], list[float]] = {}
    for (sender, receiver), seconds in runs:
        for length, delay in seconds.items():
            found.setdefault((lengths.index(length), place[sender], place[receiver]), []).append(delay)
    cube = np.full((len(lengths), len(names), len(names)), np.nan, np.float32)
    cube[:, range(len(names)), range(len(names))] = 0
    for where, values in found.items():
        cube[where] = np.median(values)
    return Delays(names, np.array(lengths, np.int64), cube)


def _read_osu(path: Path, lines: Lines) -> Iterator[Run]:
    starts = [index for index, line in enumerate(lines) if _OSU.match(line)]
    for number, start in enumerate(starts):
        if not _OSU_LATENCY.match(lines[start]):
            raise InputError(path, start + 1, "a test of latency between two processes", quote_found(lines[start]))
        previous = starts[number - 1] if number else -1
        ends = _find_ends(path, lines, previous, start)
        stop = starts[number + 1] if number + 1 < len(starts) else len(lines)
        seconds = {}
        unit = _MICROSECOND
        for index in range(start + 1, stop):
            fields = lines[index].split()
            if columns := _OSU_COLUMNS.match(lines[index]):
                unit = _TIME_UNITS[columns.group(1)]
            elif fields and fields[0].isdigit():
                seconds[int(fields[0])] = _read_field(path, index, fields, 1) * unit
        if not seconds:
            raise InputError(path, start + 1, "a size and a delay", "none")
        yield ends, seconds


def _find_ends(path: Path, lines: Lines, previous: int, start: int) -> tuple[str, str]:
    """Return the names of a run's two hosts, from the nearest line before the run that names two hosts."""
    for index in range(start - 1, previous, -1):
        if option := _HOSTS_OPTION.search(lines[index]):
            hosts = _expand_hosts(path, index, _SLOTS.sub("", option.group(1)))
            if len(set(hosts)) != _PAIR_SIZE:
                raise InputError(
                    path, index + 1, "the two hosts of a run",
                    f"{len(set(hosts))}: osu_multi_lat prints the mean of all pairs",
                )  # fmt: skip
            return hosts[0], hosts[1]
        pair = _PAIR.fullmatch(lines[index])
        if pair and not pair.group(1).isdigit() and pair.group(1) != pair.group(2):
            return pair.group(1), pair.group(2)
    raise InputError(
        path, start + 1, "a line with the two hosts in front of each run, such as `# n1 n2`", quote_found(lines[start])
    )


def _expand_hosts(path: Path, index: int, expression: str) -> list[str]:
    try:
        return expand_hosts(expression)
    except UsageError as error:
        raise InputError(path, index + 1, "the two hosts of a run", str(error)) from error


def _read_nccl(path: Path, lines: Lines) -> Iterator[Run]:
    devices: list[tuple[int, str, int]] = []
    collected = []
    for index, line in enumerate(lines):
        if rank := _NCCL_RANK.match(line):
            number = int(rank.group(1))
            if number == 0:
                devices = []
            if len(devices) == _PAIR_SIZE:
                raise InputError(path, index + 1, "runs of two ranks", "a third")
            if number != len(devices):
                raise InputError(path, index + 1, f"rank {len(devices)}", f"{number}")
            devices.append((number, rank.group(2), int(rank.group(3))))
        elif _NCCL_COLUMNS.match(line):
            if len(devices) != _PAIR_SIZE:
                raise InputError(path, index + 1, "the devices of two ranks before the table", f"{len(devices)}")
            seconds = _read_times(path, lines, index)
            collected.append(([(host, device) for _, host, device in devices], seconds))
    if not collected:
        raise InputError(path, None, "a table of nccl-tests with the column `time`", "none")
    seen = {end for ends, _ in collected for end in ends}
    shared = len({host for host, _ in seen}) < len(seen)
    for (first, second), seconds in collected:
        yield (_name(*first, shared), _name(*second, shared)), seconds


def _name(host: str, device: int, shared: bool) -> str:
    return f"{host}:gpu{device}" if shared else host


def _read_times(path: Path, lines: Lines, header: int) -> dict[int, float]:
    """Return the times of a table: message size, in bytes -> seconds.

    The time column is counted from the end of the line, since the column `redop` may be empty.
    """
    names = lines[header].lstrip("# ").split()
    units = lines[header + 1].split() if header + 1 < len(lines) else []
    unit = next((_TIME_UNITS[field] for field in units if field in _TIME_UNITS), None)
    if unit is None:
        raise InputError(path, header + 2, "a line with the unit of the times", quote_found(" ".join(units)))
    column = names.index("time") - len(names)
    seconds = {}
    for index in range(header + 2, len(lines)):
        fields = lines[index].split()
        if not fields or not fields[0].isdigit():
            break
        if -column > len(fields):
            raise InputError(path, index + 1, "a size and a time", quote_found(lines[index].strip()))
        seconds[int(fields[0])] = _read_field(path, index, fields, column, "time") * unit
    if not seconds:
        raise InputError(path, header + 1, "a size and a time", "none")
    return seconds


def _read_field(path: Path, index: int, fields: Sequence[str], column: int, what: str = "delay") -> float:
    try:
        return float(fields[column])
    except (ValueError, IndexError):
        raise InputError(path, index + 1, f"a size and a {what}", quote_found(" ".join(fields))) from None


def find_captions(lines: Sequence[str]) -> list[int]:
    """Return the indices of caption lines. A caption ends with a unit of time or rate in brackets."""
    return [index for index, line in enumerate(lines) if _find_unit(line) is not None and not _is_header(lines, index)]


def _is_header(lines: Sequence[str], index: int) -> bool:
    """Return True if a line is a CSV header instead of a caption: the next line has the same number of fields."""
    behind = lines[index + 1] if index + 1 < len(lines) else ""
    return any(lines[index].count(each) == behind.count(each) >= _FEWEST for each in (";", "\t", ","))


def _find_unit(line: str) -> str | None:
    """Return the unit in a caption; None for other lines, such as the header of a pair file."""
    found = _UNIT.search(line)
    fields = [field.strip().strip('"') for field in re.split(r"[,;\t]", line)]
    if found is None or (len(fields) > 1 and all(ENDS.fullmatch(field) for field in fields[:_FEWEST])):
        return None
    unit = found.group(1)
    return unit if unit.lower() in SECONDS or _RATE.fullmatch(unit) else None


def read_captioned_table(
    path: Path, lines: Sequence[str], captions: Sequence[int]
) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
    """Return the senders' names, and the delays of the delay table, float64 [n, n], seconds.

    If there are several delay tables, ibprof reads the table of idle latencies (Intel's MLC) or of delays between GPUs
    with peer access. Delays are nan where not measured, 0 on the diagonal. `captions` is the result of `find_captions`.

    Raises:
        InputError: the table is invalid; the message has the line.
    """
    start = captions[_choose_table(path, [(index + 1, lines[index]) for index in captions])] + 1
    stop = next((index for index in captions if index >= start), len(lines))
    rows = [
        (index + 1, lines[index].replace("|", " ").replace(",", " ").split())
        for index in range(start, stop)
        if not _RULE.fullmatch(lines[index])
    ]
    return _read_rows(path, start, rows, (SECONDS[str(_find_unit(lines[start - 1])).lower()]))


def _choose_table(path: Path, captions: Sequence[tuple[int, str]]) -> int:
    """Return the index of the delay table; `captions` has the line and the caption of each table."""
    delays = [place for place, (_, text) in enumerate(captions) if (_find_unit(text) or "").lower() in SECONDS]
    if not delays:
        line, found = (captions[0][0], quote_found(captions[0][1].strip("# "))) if captions else (None, "none")
        raise InputError(path, line, "a table of delays", found)
    delays = [place for place in delays if _PREFERRED.search(captions[place][1])][:1] or delays
    if len(delays) > 1:
        line, text = captions[delays[1]]
        raise InputError(path, line, "one table of delays", f"another: {quote_found(text)}")
    return delays[0]


def _read_rows(
    path: Path, caption: int, rows: list[tuple[int, list[str]]], unit: float
) -> tuple[tuple[str, ...], npt.NDArray[np.float64]]:
    if not rows:
        raise InputError(path, caption, "a line of names after the caption", "nothing")
    if len(rows) > 1 and rows[0][1] == rows[1][1][: len(rows[0][1])] != rows[1][1]:
        rows = rows[1:]  # the first row is a title above the column names
    header_line, header = rows[0]
    size = _find_size(header, [fields for _, fields in rows[1:]])
    if size < _FEWEST:
        raise InputError(path, header_line, "names of hosts, then a row for each host", quote_found(" ".join(header)))
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
    """Return the table's size: the largest n so that each of the first n rows has a label and n delays."""
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


NANOSECOND = 1e-9
_MEANS_LATENCY = 4
"""HWLOC_DISTANCES_KIND_MEANS_LATENCY: this bit of a table's kind is set if hwloc's distances are latencies."""

_LOCAL, _LARGEST = 10, 254
"""Distance of a NUMA node to itself, and largest possible distance between two nodes. Source: ACPI 6.5, section 5.2.17
(SLIT)."""

_DISTANCES = "node distances:"
_HEADER = re.compile(r"\s*node((?:\s+\d+)+)\s*")
_ROW = re.compile(r"\s*(\d+):((?:\s+\d+)+)\s*")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_CORES = re.compile(r"\s+\d+(\s+\d+)+\s*")
_CORE_ROW = re.compile(r"\s*\d+((?:\s*\d+±\d+)*)\s*")


@dataclass(frozen=True, slots=True)
class MachineTable:
    """Delays inside a machine.

    Attributes:
        names: names of nodes or cores.
        seconds: float64 [n, n], nan where not measured.
        is_firmware: True for NUMA distances of the firmware (ACPI's SLIT), which have no unit: 10 is stored as 10e-9.
    """

    names: tuple[str, ...]
    seconds: npt.NDArray[np.float64]
    is_firmware: bool = True


def read_machine_table(path: Path, lines: Lines) -> MachineTable | None:
    """Read output of `numactl -H`, `lstopo --of xml`, `nvbandwidth -j` or core-to-core-latency; None for other text.

    Raises:
        InputError: the output is invalid; the message has the line.
    """
    text = [line for line in lines[:_LARGEST] if line.strip()]
    if text and text[0].startswith("<?xml") and any("<topology" in line for line in text[:3]):
        return _read_hwloc(path, "\n".join(lines))
    if text and text[0].lstrip().startswith("{") and any('"nvbandwidth"' in line for line in text):
        return _read_nvbandwidth(path, "\n".join(lines))
    start = next((index for index, line in enumerate(lines) if line.strip() == _DISTANCES), None)
    if start is not None:
        return _read_numactl(path, lines, start + 1)
    if any(line.startswith("Num cores:") for line in lines) and any("±" in line for line in lines):
        return _read_core_to_core(path, [_COLOUR.sub("", line) for line in lines])
    return None


def is_slit(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if a square of fields has NUMA distances, as in `/sys/devices/system/node/node*/distance`."""
    if len(rows) < 2 or not all(len(row) == len(rows) and all(map(str.isdecimal, row)) for row in rows):
        return False
    values = np.array(rows, np.int64)
    own = np.eye(len(rows), dtype=bool)
    return bool((values[own] == _LOCAL).all() and (values[~own] > _LOCAL).all() and (values <= _LARGEST).all())


def is_core_to_core(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if a square of fields has values only below its diagonal: the CSV format of core-to-core-latency."""
    return len(rows) > 1 and all(
        len(row) == len(rows) and all("." in field for field in row[:place]) and not any(row[place:])
        for place, row in enumerate(rows)
    )


def _read_numactl(path: Path, lines: Lines, start: int) -> MachineTable:
    header = _HEADER.fullmatch(lines[start]) if start < len(lines) else None
    if not header:
        raise InputError(path, start + 1, "the line `node 0 1 ...` after the title", "none")
    nodes = header.group(1).split()
    values = np.full((len(nodes), len(nodes)), np.nan)
    for place, node in enumerate(nodes):
        line = lines[start + 1 + place] if start + 1 + place < len(lines) else ""
        row = _ROW.fullmatch(line)
        if not row or row.group(1) != node or len(row.group(2).split()) != len(nodes):
            raise InputError(path, start + 2 + place, f"{len(nodes)} distances of node {node}", quote_found(line))
        values[place] = [float(field) for field in row.group(2).split()]
    return MachineTable(tuple(f"node{node}" for node in nodes), values * NANOSECOND)


def _read_hwloc(path: Path, text: str) -> MachineTable:
    """Read hwloc's XML: the first table of latencies (version 2), or the first table of distances (version 1)."""
    try:
        return _find_latencies(path, ET.fromstring(text))
    except (ET.ParseError, ValueError) as error:
        raise InputError(path, None, "XML of lstopo", str(error)) from error


def _find_latencies(path: Path, root: ET.Element) -> MachineTable:
    for found in root.iter("distances2"):
        if int(found.get("kind", "0")) & _MEANS_LATENCY:
            indexes = _read_fields(found, "indexes")
            key = "gp_index" if found.get("indexing") == "gp" else "os_index"
            kind = found.get("type", "")
            objects = {each.get(key): each for each in root.iter("object") if each.get("type") == kind}
            names = [_name_object(kind, objects[index].get("os_index", index)) for index in indexes if index in objects]
            return _square(path, names, _read_fields(found, "u64values"))
    for found in root.iter("distances"):
        base = float(found.get("latency_base", "1"))
        fields = [each.get("value", "") for each in found.iter("latency")]
        names = [_name_object("NUMANode", str(index)) for index in range(math.isqrt(len(fields)))]
        table = _square(path, names, fields)
        return replace(table, seconds=table.seconds * base)
    raise InputError(path, None, "distances that are latencies (`lstopo --distances` shows those of a machine)", "none")


def _read_fields(distances: ET.Element, tag: str) -> list[str]:
    return [field for part in distances.iter(tag) for field in (part.text or "").split()]


def _name_object(kind: str, index: str) -> str:
    return f"node{index}" if kind == "NUMANode" else f"{kind}{index}"


def _square(path: Path, names: Sequence[str], fields: Sequence[str]) -> MachineTable:
    try:
        values = np.array([float(field) for field in fields]).reshape(len(names), len(names))
    except ValueError:
        raise InputError(
            path, None, f"{len(names) ** 2} distances of {len(names)} objects", f"{len(fields)} values"
        ) from None
    return MachineTable(tuple(names), values * NANOSECOND)


def _read_core_to_core(path: Path, lines: Lines) -> MachineTable:
    """Read the first table: a line of cores, then each core's number and `mean±error` (ns) for each earlier core."""
    start = next((index for index, line in enumerate(lines) if _CORES.fullmatch(line)), None)
    if start is None:
        raise InputError(path, None, "a line with the numbers of the cores", "none")
    cores = lines[start].split()
    values = np.full((len(cores), len(cores)), np.nan)
    for place, core in enumerate(cores):
        line = lines[start + 1 + place] if start + 1 + place < len(lines) else ""
        row = _CORE_ROW.fullmatch(line)
        if not row or line.split()[0] != core or row.group(1).count("±") != place:
            raise InputError(path, start + 2 + place, f"{place} delays of core {core}", quote_found(line.strip()))
        values[place, :place] = [float(field.partition("±")[0]) for field in row.group(1).split()]
    return MachineTable(tuple(cores), values * NANOSECOND, is_firmware=False)


def _read_nvbandwidth(path: Path, text: str) -> MachineTable:
    """Read delays between GPUs from the JSON of `nvbandwidth -j`; choose the table as in nvbandwidth's text."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(path, getattr(error, "lineno", None), "JSON of nvbandwidth", str(error)) from None
    tables = list(_JSON_TABLE.finditer(text))
    table = tables[_choose_table(path, [(_number_line(text, each), each[1]) for each in tables])]
    rows = list(_JSON_ROW.finditer(text, *table.span(2)))
    fields = [list(_JSON_FIELD.finditer(text, *row.span(1))) for row in rows]
    for row, values in zip(rows or [table], fields or [[]], strict=True):
        if len(values) != len(rows) or len(rows) < _FEWEST:
            found = f"{count_of(len(values), 'value')} in a row, and {count_of(len(rows), 'row')}"
            raise InputError(path, _number_line(text, row), "a square table of delays between GPUs", found)
    seconds = np.array([[_read_value(path, _number_line(text, each), each[0]) for each in row] for row in fields])
    np.fill_diagonal(seconds, 0.0)
    seconds *= SECONDS[str(_find_unit(table[1])).lower()]
    return MachineTable(tuple(map(str, range(len(rows)))), seconds, is_firmware=False)


def _number_line(text: str, place: re.Match[str]) -> int:
    return text.count("\n", 0, place.start()) + 1
