# SPDX-License-Identifier: Apache-2.0
"""The fabrics of a store, each valid from a day on: copied dumps, tables of link directions, and changes of links."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ibprof.errors import InputError, quote_found
from ibprof_converter.analysis.pipeline_options import FabricOptions
from ibprof_converter.analysis.pipeline_results import RoutedFabric
from ibprof_converter.analysis.pipeline_stages import read_routed_fabric
from ibprof_converter.fabric.fabric_graph import NodeKind

FOLDER = "fabrics"
TABLE = "links.parquet"
_OPTIONS = "fabric.json"
_DUMPS = "dumps"
_NAME = slice(11, 27)
"""Position of the fabric's hash in the name of its folder."""
_PATTERNS = ("host_names", "level_hosts")

LINK_SCHEMA = pa.schema(
    {
        "fabric": pa.string(),
        "link": pa.int32(),
        "rail": pa.int32(),
        "guid": pa.string(),
        "port": pa.int32(),
        "name": pa.string(),
        "peer_guid": pa.string(),
        "peer_port": pa.int32(),
        "peer": pa.string(),
        "gbps": pa.float64(),
        "between_switches": pa.bool_(),
    }
)
"""Columns of a fabric's table of link directions; `link` is the index of the row."""

_Port = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class DatedFabric:
    """A fabric of the store.

    Attributes:
        since: first day on which the fabric is valid.
        name: hash of the fabric's links.
        routed: the fabric with its forwarding tables.
        number: (rail, GUID, port) of a sender -> index of its link direction in the table.
    """

    since: date
    name: str
    routed: RoutedFabric
    number: Mapping[Any, int]


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A link direction that changed from one fabric to the next.

    Attributes:
        since: day of the later fabric.
        what: one of `added`, `removed` and `changed`.
        sender: node and port of the sender.
        before, after: text with receiver and speed in the earlier (later) fabric; empty if this fabric lacks the link.
    """

    since: date
    what: str
    sender: str
    before: str
    after: str


def add_fabric(store: Path, options: FabricOptions, since: date) -> str:
    """Copy all dumps of a fabric into a store; return the fabric's name. After an error, no dump is in the store.

    If the fabric that is valid on this day has the same dumps, no dumps are copied. Existing fabrics are never
    replaced: stored jobs refer to their link directions by index.

    Raises:
        IbprofError: as `read_routed_fabric` does.
        OSError: the store cannot be written.
    """
    folder = store / FOLDER
    folder.mkdir(exist_ok=True)
    made = Path(mkdtemp(dir=folder, prefix="."))
    try:
        made.chmod(folder.stat().st_mode & 0o777)
        stored = _copy_dumps(options, made / _DUMPS)
        valid = [place for day, place in list_fabrics(store) if day <= since]
        if valid and json.loads((valid[-1] / _OPTIONS).read_text()) == stored:
            return valid[-1].name[_NAME]
        (made / _OPTIONS).write_text(json.dumps(stored))
        table = _list_directions(read_routed_fabric(_read_options(made)))
        pq.write_table(table, made / TABLE)
        name = str(table["fabric"][0])
        again = sum(place.name.startswith(f"{since.isoformat()}-{name}") for place in valid)
        made.rename(folder / f"{since.isoformat()}-{name}-{again}")
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return name


def _copy_dumps(options: FabricOptions, place: Path) -> dict[str, Any]:
    """Copy all files of a fabric; return its options, with paths relative to the fabric's folder."""
    place.mkdir()
    digest = hashlib.sha256()
    read = [path for path in options.files() if path.is_file()]

    def copy(path: Path, into: str) -> str:
        target = place / into / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        digest.update(hashlib.sha256(target.read_bytes()).digest())
        return os.fspath(target.relative_to(place.parent))

    names = []
    for number, name in enumerate(options.names):
        path = Path(name)
        around = path if path.is_dir() else path.parent
        for file in read:
            if file.is_relative_to(around):
                copy(file, f"{number}/{file.parent.relative_to(around)}")
        if path.is_file():
            names.append(copy(path, str(number)))
        else:
            names.append(f"{_DUMPS}/{number}" if path.is_dir() else name)
    tables = [copy(Path(each), f"tables-{number}") for number, each in enumerate(options.tables)]
    name_map = copy(Path(options.name_map), "names") if options.name_map and Path(options.name_map).is_file() else None
    patterns = {name: pattern.pattern if (pattern := getattr(options, name)) else None for name in _PATTERNS}
    digest.update(json.dumps(names).encode())
    return {
        "names": names,
        "sha256": digest.hexdigest(),
        "tables": tables,
        "name_map": name_map,
        "routes": options.routes,
        **patterns,
    }


def _read_options(folder: Path) -> FabricOptions:
    stored = json.loads((folder / _OPTIONS).read_text())

    def find(name: str) -> str:
        return os.fspath(folder / name) if name.startswith(f"{_DUMPS}/") else name

    host_names, level_hosts = (re.compile(stored[name]) if stored[name] else None for name in _PATTERNS)
    return FabricOptions(
        tuple(map(find, stored["names"])),
        tuple(map(find, stored["tables"])),
        host_names,
        level_hosts,
        name_map=find(stored["name_map"]) if stored["name_map"] else None,
        routes=stored["routes"],
    )


def _list_directions(routed: RoutedFabric) -> pa.Table:
    """Return a row of `LINK_SCHEMA` for each link direction, sorted by rail, GUID and port."""
    rows = []
    for rail, fabric in enumerate(routed.fabrics):
        guids = [f"0x{guid:016x}" for guid in fabric.node_guid.tolist()]
        is_switch = fabric.node_kind == NodeKind.SWITCH
        between = is_switch[fabric.link_node].all(axis=1).tolist()
        ends = zip(
            fabric.link_node.tolist(), fabric.link_port.tolist(), fabric.link_gbps.tolist(), between, strict=True
        )
        for nodes, ports, gbps, both in ends:
            for end in (0, 1):
                here, there = nodes[end], nodes[1 - end]
                sender = (rail, guids[here], ports[end], fabric.node_name[here])
                receiver = (guids[there], ports[1 - end], fabric.node_name[there])
                rows.append((*sender, *receiver, None if math.isnan(gbps) else gbps, both))
    rows.sort(key=lambda row: row[:3])
    name = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
    columns = [[name] * len(rows), range(len(rows)), *zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, LINK_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=LINK_SCHEMA)


def list_fabrics(store: Path) -> list[tuple[date, Path]]:
    """Return the first day and the folder of each fabric, in chronological order.

    Of several fabrics of one day, the last added fabric is valid.

    Raises:
        InputError: a folder has an invalid name.
        OSError: the folder of fabrics cannot be read.
    """
    folder = store / FOLDER
    folders = [path for path in (folder.iterdir() if folder.exists() else ()) if not path.name.startswith(".")]
    folders.sort(key=lambda path: (_since(path), path.stat().st_mtime_ns))
    return [(_since(path), path) for path in folders]


def _since(folder: Path) -> date:
    try:
        return date.fromisoformat(folder.name[:10])
    except ValueError:
        raise InputError(folder, None, "a folder such as 2026-11-29-HASH", quote_found(folder.name)) from None


def list_tables(store: Path) -> list[Path]:
    """Return the path of the table of link directions of each distinct fabric."""
    return list({path.name[_NAME]: path / TABLE for _, path in list_fabrics(store)}.values())


def name_fabric(store: Path, day: date) -> str:
    """Return the name of the fabric that is valid on a day; empty without a fabric."""
    names = [path.name[_NAME] for since, path in list_fabrics(store) if since <= day]
    return names[-1] if names else ""


class FabricCalendar:
    """Finds the fabric that is valid on a day; caches the last fabric."""

    def __init__(self, store: Path) -> None:
        self._days = list_fabrics(store)
        self._read: dict[Path, DatedFabric] = {}

    def find(self, day: date) -> DatedFabric | None:
        """Return the fabric that is valid on a day; None without a fabric.

        Raises:
            IbprofError: as `read_routed_fabric` does.
        """
        earlier = [(since, path) for since, path in self._days if since <= day]
        if not earlier:
            return None
        since, folder = earlier[-1]
        if folder not in self._read:
            table = pq.read_table(folder / TABLE)
            ports = zip(*(table[name].to_pylist() for name in ("rail", "guid", "port")), strict=True)
            routed = read_routed_fabric(_read_options(folder))
            number = {port: link for link, port in enumerate(ports)}
            self._read = {folder: DatedFabric(since, folder.name[_NAME], routed, number)}
        return self._read[folder]


def compare_fabrics(store: Path) -> Iterator[LinkChange]:
    """Yield the link directions that changed from one fabric to the next, for all fabrics."""
    ends: list[tuple[date, dict[_Port, tuple[str, str]]]] = []
    for since, folder in list_fabrics(store):
        rows = pq.read_table(folder / TABLE).to_pylist()
        ends.append((since, {(row["rail"], row["guid"], row["port"]): _describe(row) for row in rows}))
    for (_, earlier), (since, later) in pairwise(ends):
        for port in sorted(earlier.keys() | later.keys()):
            (name, before), (new_name, after) = earlier.get(port, ("", "")), later.get(port, ("", ""))
            if before != after:
                what = "changed" if before and after else "added" if after else "removed"
                yield LinkChange(since, what, new_name or name, before, after)


def _describe(row: dict[str, Any]) -> tuple[str, str]:
    speed = "unknown speed" if row["gbps"] is None else f"{row['gbps']:g} Gb/s"
    sender = f"{row['name'] or row['guid']} port {row['port']}"
    return sender, f"{row['peer'] or row['peer_guid']} port {row['peer_port']}, {speed}"
