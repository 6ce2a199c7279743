# SPDX-License-Identifier: Apache-2.0
"""Read TRAFFIC of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ibprof.errors import InputError, UsageError
from ibprof_converter.fabric.dump_files import peek_dump
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic import patterns
from ibprof_converter.traffic.csv_tables import read_traffic_table
from ibprof_converter.traffic.hosts import Hosts
from ibprof_converter.traffic.port_counters import looks_like_counters, read_counters
from ibprof_converter.traffic.recorded_traffic import profile_traffic
from ibprof_converter.traffic.traffic_data import ONE_SUBNET, SINGLE_RAIL, PortCounters, RankTraffic, Traffic

_OTF2_MAGIC = b"OTF2"

_SNIFFED = 512

_SUFFIXES = (".otf2", ".ibprof", ".csv")


def is_traffic(name: str) -> bool:
    """Return whether a name looks like traffic, not like a fabric: a pattern, a profile, a recording or a CSV file."""
    path = Path(name)
    if name.startswith(patterns.PREFIX) or path.suffix.lower() in _SUFFIXES:
        return True
    if path.is_dir():  # the output folder of a run
        return any(each.suffix in _SUFFIXES[:2] for each in path.iterdir())
    return peek_dump(path).startswith(_OTF2_MAGIC)


def read_traffic(
    text: str, hosts: Hosts | None, fabrics: Sequence[Fabric] = (), over_hosts: bool = False
) -> RankTraffic | Traffic | PortCounters:
    """Read the user's TRAFFIC.

    Args:
        text: a path, or `pattern:...`.
        hosts: of the fabrics; None if there is no fabric.
        fabrics: the rails.
        over_hosts: whether the ends of a pattern are hosts; else they are the adapters of all hosts.

    Raises:
        UsageError: the pattern is unknown, or there is no fabric for it.
        InputError: the file is missing or invalid.
    """
    if text.startswith(patterns.PREFIX):
        if hosts is None:
            raise UsageError(f"{text}: a pattern covers all hosts of a fabric: put its .lst before it")
        return patterns.build_pattern(text, len(hosts.name) if over_hosts else len(hosts.ends))
    path = Path(text)
    if path.is_file() and looks_like_counters(path):
        return read_counters(path, fabrics)
    if _is_table(path):
        table = read_traffic_table(path, hosts.rails if hosts else 1)
        if isinstance(table, Traffic) and hosts and hosts.has_several and table.rail_source == SINGLE_RAIL:
            return replace(table, rail_source=ONE_SUBNET)
        return table
    from ibprof.load import load_profile  # noqa: PLC0415  (otf2 is slow to import, and tables need none of it)

    return profile_traffic(load_profile(path), text)


def _is_table(path: Path) -> bool:
    """Return whether a path is a table, not a profile or a recording."""
    if path.is_dir() or not path.exists():
        if path.suffix.lower() == ".csv":
            raise InputError(path, None, "a file", "none" if not path.exists() else "something else")
        return False
    # Only a table can come through a pipe, which can be read only once and so not be inspected first.
    if path.suffix.lower() == ".csv" or not path.is_file():
        return True
    with path.open("rb") as file:
        start = file.read(_SNIFFED)
    return bool(start) and not start.startswith(_OTF2_MAGIC) and b"\0" not in start
