# SPDX-License-Identifier: Apache-2.0
"""Delays inside a machine: NUMA distances from firmware, and the output of core-to-core-latency.

Firmware's distances have no unit: 10 is local memory. Here 1 counts as 1 ns.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found

Lines: TypeAlias = Sequence[str]

NANOSECOND = 1e-9
_MEANS_LATENCY = 4
"""Bit of hwloc's kind of distances: HWLOC_DISTANCES_KIND_MEANS_LATENCY."""

_LOCAL, _LARGEST = 10, 254
"""Distances of a node to itself and to the farthest one. Source: ACPI 6.5, section 5.2.17 (SLIT)."""

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
        is_firmware: True for distances stated by firmware.
    """

    names: tuple[str, ...]
    seconds: npt.NDArray[np.float64]
    is_firmware: bool = True


def read_machine_table(path: Path, lines: Lines) -> MachineTable | None:
    """Read the output of `numactl -H`, `lstopo --of xml` or core-to-core-latency; return None for other text.

    Raises:
        InputError: the output is invalid; the message has the line.
    """
    text = [line for line in lines[:_LARGEST] if line.strip()]
    if text and text[0].startswith("<?xml") and any("<topology" in line for line in text[:3]):
        return _read_hwloc(path, "\n".join(lines))
    start = next((index for index, line in enumerate(lines) if line.strip() == _DISTANCES), None)
    if start is not None:
        return _read_numactl(path, lines, start + 1)
    if any(line.startswith("Num cores:") for line in lines) and any("±" in line for line in lines):
        return _read_core_to_core(path, [_COLOUR.sub("", line) for line in lines])
    return None


def is_slit(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if a square of fields has firmware's distances, as in `/sys/devices/system/node/node*/distance`."""
    if len(rows) < 2 or not all(len(row) == len(rows) and all(map(str.isdecimal, row)) for row in rows):
        return False
    values = np.array(rows, np.int64)
    own = np.eye(len(rows), dtype=bool)
    return bool((values[own] == _LOCAL).all() and (values[~own] > _LOCAL).all() and (values <= _LARGEST).all())


def is_core_to_core(rows: Sequence[Sequence[str]]) -> bool:
    """Return True if a square has means only below its diagonal: the CSV format of core-to-core-latency."""
    return len(rows) > 1 and all(
        len(row) == len(rows) and all("." in field for field in row[:place]) and not any(row[place:])
        for place, row in enumerate(rows)
    )


def _read_numactl(path: Path, lines: Lines, start: int) -> MachineTable:
    header = _HEADER.fullmatch(lines[start]) if start < len(lines) else None
    if not header:
        raise InputError(path, start + 1, "the line `node 0 1 ...` behind the title", "none")
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
    """Read the first latencies of hwloc version 2, or the distances of version 1."""
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
    """Read the first table: a line of cores, then per core a line with its number and `mean±error` in nanoseconds."""
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
