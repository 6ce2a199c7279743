# SPDX-License-Identifier: Apache-2.0
"""Read any kind of TRAFFIC argument, and choose the traffic of calls that the user names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, UsageError
from ibprof.native.libraries import sum_exactly
from ibprof.profile.missing_data import choose_sent
from ibprof.profile.profile_data import Direction, Profile, Source
from ibprof.profile.profile_rows import RowChoice, name_sites
from ibprof_converter.choices import PATTERN_PREFIX
from ibprof_converter.fabric.dump_files import peek_dump
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic.csv_tables import read_traffic_table
from ibprof_converter.traffic.hosts import Hosts
from ibprof_converter.traffic.nccl_inspector import is_inspector_file, list_inspector_files, read_inspector
from ibprof_converter.traffic.patterns import build_pattern
from ibprof_converter.traffic.port_counters import looks_like_counters, read_counters
from ibprof_converter.traffic.traffic_data import (
    ALL,
    ONE_SUBNET,
    RANK_LIMIT,
    SINGLE_RAIL,
    PortCounters,
    RankTraffic,
    Traffic,
    choose_rows,
)

_OTF2_MAGIC = b"OTF2"

_SNIFFED = 512

_SUFFIXES = (".otf2", ".ibprof", ".csv")


UNKNOWN_PEER_REASON = "peer is no rank of MPI_COMM_WORLD"

LEFT_OUT = (
    "with --operation or --site, link loads are only the bytes that ibprof attributes to the chosen calls. Work "
    "requests of unknown ports or calls are left out"
)


def is_traffic(name: str) -> bool:
    """Return true if an argument names traffic, not a fabric: a pattern, a profile, a recording or a CSV file."""
    path = Path(name)
    if name.startswith(PATTERN_PREFIX) or path.suffix.lower() in _SUFFIXES:
        return True
    if path.is_dir():  # also true for a run's output folder
        return any(each.suffix in _SUFFIXES[:2] for each in path.iterdir()) or bool(list_inspector_files(path))
    return peek_dump(path).startswith(_OTF2_MAGIC) or is_inspector_file(path)


def read_traffic(
    text: str, hosts: Hosts | None, fabrics: Sequence[Fabric] = (), over_hosts: bool = False
) -> RankTraffic | Traffic | PortCounters:
    """Read the user's TRAFFIC.

    Args:
        text: a path, or `pattern:...`.
        hosts: the fabrics' hosts; None without a fabric.
        over_hosts: true if patterns are between hosts, not between adapters.

    Raises:
        UsageError: the pattern is unknown, or needs a fabric.
        InputError: the file is missing or invalid.
    """
    if text.startswith(PATTERN_PREFIX):
        if hosts is None:
            raise UsageError(f"{text}: a pattern covers all hosts of a fabric: put the fabric's .lst before it")
        return build_pattern(text, len(hosts.name) if over_hosts else len(hosts.ends))
    path = Path(text)
    if inspected := list_inspector_files(path) if path.is_dir() else [path] if is_inspector_file(path) else []:
        return read_inspector(inspected, text)
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
    """Return true if a path is a file with a table, not a profile or a recording."""
    if path.is_dir() or not path.exists():
        if path.suffix.lower() == ".csv":
            raise InputError(path, None, "a file", "none" if not path.exists() else "something else")
        return False
    # Every pipe is read as a table, because a pipe can be read only once.
    if path.suffix.lower() == ".csv" or not path.is_file():
        return True
    with path.open("rb") as file:
        start = file.read(_SNIFFED)
    return bool(start) and not start.startswith(_OTF2_MAGIC) and b"\0" not in start


def refuse_many_ranks(run: Profile) -> None:
    """Check the number of ranks that a run claims.

    Raises:
        InputError: the run claims more ranks than `RANK_LIMIT`.
    """
    if run.world_size > RANK_LIMIT:
        raise InputError(run.name, None, f"at most {RANK_LIMIT} ranks", f"{run.world_size}")


def profile_traffic(run: Profile, name: str | None = None) -> RankTraffic:
    """Return a run's traffic between ranks, from the counters that `choose_sent` chooses.

    Args:
        name: the run's name in messages; None for `run.name`.

    Raises:
        InputError: the run claims more ranks than `RANK_LIMIT`.
    """
    refuse_many_ranks(run)
    counters = run.counters
    chosen = choose_sent(run) & (counters.bytes > 0)
    known = chosen & (counters.peer < run.world_size)
    unknown = sum_exactly(counters.bytes[chosen & ~known])
    rows = choose_rows(known)
    source, destination = counters.rank[rows], counters.peer[rows].view(np.int32)
    fetched = counters.direction[rows] == Direction.FETCHED
    if fetched.any():
        source, destination = np.where(fetched, destination, source), np.where(fetched, source, destination)
    names = name_sites(run)
    sites = tuple(dict.fromkeys(names)) if run.sites else (ALL,)
    return RankTraffic(
        source=source,
        destination=destination,
        bytes=counters.bytes[rows],
        messages=counters.messages[rows],
        region=counters.region[rows],
        operation=counters.operation[rows],
        regions=run.regions or (ALL,),
        operations=run.operations or (ALL,),
        ranks=run.world_size,
        unmapped={UNKNOWN_PEER_REASON: unknown} if unknown else {},
        origin=f"profile {name or run.name}",
        profile=run,
        site=_number_sites(counters.site[rows], names, sites) if len(sites) > 1 else np.zeros(0, np.int32),
        sites=sites,
        layer=Source(int(counters.source[chosen][0])).layer if chosen.any() else "",
    )


def _number_sites(
    site: npt.NDArray[np.int32], names: tuple[str, ...], distinct: tuple[str, ...]
) -> npt.NDArray[np.int32]:
    """Return each row's index into `distinct`; call sites with equal names have the same index."""
    number = {name: index for index, name in enumerate(distinct)}
    return np.array([number[name] for name in names], np.int32)[site]


def choose_demand(
    demand: RankTraffic | Traffic | PortCounters, choice: RowChoice, name: str
) -> RankTraffic | Traffic | PortCounters:
    """Return the traffic sent by the chosen calls.

    Args:
        choice: the chosen calls; a choice of all calls changes nothing.
        name: the traffic's name in messages.

    Raises:
        UsageError: the traffic is not a recorded run, or the run has no call with the chosen names.
    """
    if not choice:
        return demand
    if not isinstance(demand, RankTraffic) or demand.profile is None:
        raise UsageError(f"{choice}: {name}: only recorded runs know the calls that sent bytes")
    try:
        chosen = profile_traffic(choice.restrict(demand.profile), name)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    return replace(chosen, origin=f"{demand.origin}, only {choice}", part_of=demand)


def choose_flows(measured: Traffic, chosen: RankTraffic) -> Traffic:
    """Return those measured flows that are attributed to the chosen calls.

    `measured` is attributed to all calls of the run: if only the chosen calls were known, all bytes would be attributed
    to these.

    Args:
        measured: flows of the whole run (`map_measured_to_lids`).
        chosen: traffic sent by the chosen calls of the same run.
    """
    kept = np.full(len(measured.bytes), len(chosen.bytes) > 0)
    for column in ("region", "operation", "site"):
        kept &= _has_name_of(measured, chosen, column)
    return replace(
        measured.take(np.flatnonzero(kept)),
        origin=chosen.origin,
        on_host_bytes=0,
        unmapped={},
        notes=(*measured.notes, LEFT_OUT),
    )


def _has_name_of(measured: Traffic, chosen: RankTraffic, column: str) -> npt.NDArray[np.bool_]:
    """Return the flows whose name in a column (region, operation or site) occurs in `chosen`: bool [flow]."""
    names: tuple[str, ...] = getattr(measured, f"{column}s")
    if len(names) == 1:
        return np.ones(len(measured.bytes), np.bool_)
    of_chosen: tuple[str, ...] = getattr(chosen, f"{column}s")
    rows = getattr(chosen, column)
    used = {of_chosen[number] for number in np.unique(rows).tolist()} if len(rows) else set(of_chosen)
    is_used = np.array([name in used for name in names], np.bool_)
    found: npt.NDArray[np.bool_] = is_used[getattr(measured, column)]
    return found
