# SPDX-License-Identifier: Apache-2.0
"""Model traffic from the files of NCCL Inspector: collectives become rings and trees.

Each line is a JSON object on one collective, send or receive, with size, communicator, rank and host. In formats v4.3
and v4.4, only the first line of a dump states communicator, rank and host.

No file states which ranks exchange the data of a collective. If the line states a tree (from v4.2), the collective is
modelled as NCCL's double binary trees, else as NCCL's rings. Rings pass the hosts in the order of their lowest ranks.
With k ranks on each host, there are k rings, each with 1/k of the bytes. Ring i enters each host at the host's rank i,
and leaves at rank i - 1 (ring 0: at the last rank). NCCL builds these rings if each GPU has a near adapter.

Sources:
    NVIDIA, NCCL, plugins/profiler/inspector: README.md, inspector_json.cc, comm-patterns/README.md (formats).
    AMD, "Using the RCCL Inspector plugin": RCCL writes the same fields in format v4.0.
    NVIDIA, nccl-tests, doc/PERFORMANCE.md: in a ring of n ranks, each rank sends 2(n-1)/n of an AllReduce's bytes, and
        (n-1)/n of the total bytes of an AllGather or a ReduceScatter.
"""

from __future__ import annotations

import json
import lzma
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import InputError, quote_found
from ibprof.profile.profile_data import Counters, Host, MessageSizes, Profile, Rank, RegionTimes, Source
from ibprof.text.host_lists import HostSpellings
from ibprof.text.quantities import count_of
from ibprof_converter.fabric.dump_files import peek_dump, unpack_dump
from ibprof_converter.traffic.traffic_data import RANK_LIMIT, RankTraffic
from ibprof_converter.traffic.training_jobs import ring_bytes, ring_edges, tree_edges

MODELLED = (
    "modelled: NCCL Inspector does not state which ranks exchange data in collectives. ibprof assumes NCCL's trees "
    "where the files state trees, else rings in the order of ranks"
)

_FORMS = frozenset({"v4.0", "v4.1", "v4.2", "v4.3", "v4.4"})
"""Versions of NCCL Inspector's file format that ibprof reads."""

_TREES = frozenset({"TREE", "NVLS_TREE"})
_RINGS = frozenset({"", "RING", "UNKNOWN"})
_OPERATIONS = ("coll_perf", "p2p_perf")

_FORM_LENGTH, _FORMS_SHOWN = 16, 3
_LINE_LIMIT = 1 << 24
_SIZE_LIMIT = 1 << 62


def is_inspector_file(path: Path) -> bool:
    """Return true if the beginning of a file is in NCCL Inspector's format."""
    start = peek_dump(path).lstrip()
    return start.startswith(b'{"header"') and b'"id"' in start


def list_inspector_files(folder: Path) -> list[Path]:
    """Return the files of NCCL Inspector in a folder."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and is_inspector_file(path)]


@dataclass(slots=True)
class _Communicator:
    """A communicator, as the files describe it.

    Attributes:
        members: rank -> (host, process id).
        ranks: number of ranks, including ranks without a file.
        collectives: (function, sequence number) -> (bytes, algorithm), with the largest number of bytes that a rank
            states.
        sends: (sending rank, receiving rank) -> bytes.
        dropped: (rank, process id, kind of operation) -> number of records that NCCL Inspector dropped until the last
            dump.
    """

    members: dict[int, tuple[str, int]] = field(default_factory=dict)
    ranks: int = 0
    collectives: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    sends: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    dropped: dict[tuple[int, int, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class _Account:
    """Counts of operations that are missing from the traffic, or modelled roughly.

    Attributes:
        forms: format versions that the lines state.
        cut: number of operations that a dump's first line announces, but that a truncated file lacks.
        unread: kind of a record that ibprof does not read (such as `proxy_trace`) -> number of records.
        unmodelled: reason -> bytes that are not modelled.
        as_rings: algorithm -> number of collectives with this algorithm that are modelled as rings.
    """

    forms: set[str] = field(default_factory=set)
    cut: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    unmodelled: Counter[str] = field(default_factory=Counter)
    as_rings: Counter[str] = field(default_factory=Counter)


def read_inspector(paths: Sequence[Path], name: str) -> RankTraffic:
    """Read files of NCCL Inspector; return the modelled traffic between processes.

    Args:
        paths: the files of one job.

    Raises:
        InputError: a file cannot be read, or a line is not in NCCL Inspector's format.
    """
    communicators: dict[str, _Communicator] = defaultdict(_Communicator)
    spellings = HostSpellings()
    account = _Account()
    for path in paths:
        _read_file(path, communicators, spellings, account)
    if not any(each.members for each in communicators.values()):
        raise InputError(paths[0], None, "records of NCCL Inspector", "none")
    processes = _order_processes(communicators)
    flows: dict[tuple[str, int, int], int] = defaultdict(int)
    for each in communicators.values():
        _add_flows(each, processes, flows, account)
    traffic = _make_traffic(processes, flows, (MODELLED, *spellings.describe()), name)
    doubts = (*_describe_forms(account.forms - _FORMS), *_describe_gaps(account, communicators.values()))
    return replace(traffic, unmapped=dict(account.unmodelled), doubts=doubts)


def _describe_forms(unknown: set[str]) -> Iterator[str]:
    if unknown:
        forms = ", ".join(quote_found(form) if form else "none" for form in sorted(unknown)[:_FORMS_SHOWN])
        more = f" and {len(unknown) - _FORMS_SHOWN} more" if len(unknown) > _FORMS_SHOWN else ""
        known = f"{min(_FORMS)} to {max(_FORMS)}"
        yield f"NCCL Inspector's files have format {forms}{more}; ibprof reads only the fields of formats {known}."


def _describe_gaps(account: _Account, communicators: Collection[_Communicator]) -> Iterator[str]:
    """Yield sentences on operations that are missing from the traffic, or modelled roughly."""
    if missing := sum(max(each.ranks - len(each.members), 0) for each in communicators):
        whose = "its" if missing == 1 else "their"
        yield f"{count_of(missing, 'rank')} of communicators left no file: {whose} sent bytes are missing."
    numbers: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, each in enumerate(communicators):
        for function, number in each.collectives:
            numbers[place, function].append(number)
    span = sum(max(each) - min(each) + 1 for each in numbers.values())
    if absent := span - sum(map(len, numbers.values())):
        yield (
            f"{absent:,} of {span:,} numbered collectives are in no file, so their bytes are missing: NCCL Inspector "
            "leaves out small collectives, and older versions keep only the last collective of each dump."
        )
    lost: Counter[str] = Counter()
    for each in communicators:
        for (*_, kind), count in each.dropped.items():
            lost[kind] += count
    if lost.total():
        yield (
            f"NCCL Inspector dropped {lost[_OPERATIONS[0]]:,} records of collectives, and {lost[_OPERATIONS[1]]:,} of "
            "sends and receives. Bytes of sends, and of collectives that every rank dropped, are missing: increase "
            "NCCL_INSPECTOR_DUMP_COLL_RING_SIZE and NCCL_INSPECTOR_DUMP_P2P_RING_SIZE."
        )
    if account.cut:
        yield f"Files of NCCL Inspector are cut off: the bytes of {count_of(account.cut, 'record')} are missing."
    if account.as_rings:
        named = ", ".join(f"{quote_found(name)} ({count:,})" for name, count in account.as_rings.most_common(3))
        yield f"Collectives of other algorithms are modelled as rings: {named}."
    if account.unread:
        named = ", ".join(f"{quote_found(kind)} ({count:,})" for kind, count in account.unread.most_common(3))
        yield f"Records of other kinds are not read: {named}."


def _read_file(path: Path, into: dict[str, _Communicator], spellings: HostSpellings, account: _Account) -> None:
    dump: dict[str, Any] = {}
    due = 0
    for number, line in _read_lines(path):
        if line is None:
            due = max(due, 1)
        elif "dump_stats" in line:
            account.cut += due
            account.forms.add(_find_form(path, number, line))
            due = _add_dump(path, number, line, into)
            dump = {key: line[key] for key in ("header", "metadata")}
        else:
            due = max(due - 1, 0)
            whole = line if "header" in line else {**dump, **line}
            account.forms.add(_find_form(path, number, whole))
            account.unread.update(line.keys() - {"header", "metadata", *_OPERATIONS})
            _add_line(path, number, whole, into, spellings)
    account.cut += due


def _find_form(path: Path, line: int, record: dict[str, Any]) -> str:
    """Return the format version of a line; empty if the line states no version."""
    return str(_part(path, line, record, "metadata").get("inspector_output_format_version", ""))[:_FORM_LENGTH]


def _add_dump(path: Path, line: int, record: dict[str, Any], into: dict[str, _Communicator]) -> int:
    """Store the numbers of dropped records in a dump's first line; return the number of records that follow."""
    header = _part(path, line, record, "header")
    pid = _number(path, line, _part(path, line, record, "metadata"), "pid", 1 << 32)
    stats = _part(path, line, record, "dump_stats")
    communicator = into[_text(path, line, header, "id")]
    rank = _number(path, line, header, "rank", RANK_LIMIT)
    for kind in _OPERATIONS:
        total = _number(path, line, stats, f"{kind.removesuffix('_perf')}_dropped_total", 1 << 64)
        key = rank, pid, kind
        communicator.dropped[key] = max(communicator.dropped.get(key, 0), total)
    counts = [f"{kind.removesuffix('_perf')}_records" for kind in _OPERATIONS]
    counts += ["proxy_records"] * ("proxy_records" in stats)
    return sum(_number(path, line, stats, count, _SIZE_LIMIT) for count in counts)


def _read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield number and record of each line; None is the record of a last line that a killed job left unfinished."""
    try:
        with path.open("rb") as raw, unpack_dump(raw) as file:
            number = 0
            while line := file.readline(_LINE_LIMIT):
                number += 1
                if line.strip():
                    yield number, _parse_line(path, number, line.decode(errors="surrogateescape"))
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(path, None, "a readable file", quote_found(str(error))) from error


def _parse_line(path: Path, number: int, line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        if not line.endswith("\n"):
            return None
        raise InputError(path, number, "a JSON object", quote_found(line[:80])) from None
    if not isinstance(record, dict):
        raise InputError(path, number, "a JSON object", quote_found(line[:80]))
    return record


def _number(path: Path, line: int, record: dict[str, Any], key: str, limit: int) -> int:
    value = record.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        raise InputError(path, line, f'"{key}", a number from 0 to {limit - 1}', quote_found(str(value)[:40]))
    return value


def _text(path: Path, line: int, record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str) or len(value) > 256:
        raise InputError(path, line, f'"{key}", a text', quote_found(str(value)[:40]))
    return value


def _part(path: Path, line: int, record: dict[str, Any], key: str) -> dict[str, Any]:
    value = record.get(key)
    if not isinstance(value, dict):
        raise InputError(path, line, f'"{key}", an object', quote_found(str(value)[:40]))
    return value


def _add_line(
    path: Path, line: int, record: dict[str, Any], into: dict[str, _Communicator], spellings: HostSpellings
) -> None:
    header = _part(path, line, record, "header")
    metadata = _part(path, line, record, "metadata")
    communicator = into[_text(path, line, header, "id")]
    rank = _number(path, line, header, "rank", RANK_LIMIT)
    communicator.ranks = max(communicator.ranks, _number(path, line, header, "n_ranks", RANK_LIMIT))
    host = spellings.find(_text(path, line, metadata, "hostname"))
    process = (host, _number(path, line, metadata, "pid", 1 << 32))
    communicator.members[rank] = process
    if "coll_perf" in record:
        done = _part(path, line, record, "coll_perf")
        key = (_text(path, line, done, "coll"), _number(path, line, done, "coll_sn", 1 << 64))
        amount = _number(path, line, done, "coll_msg_size_bytes", _SIZE_LIMIT)
        algorithm = _text(path, line, done, "coll_algo").upper() if "coll_algo" in done else ""
        communicator.collectives[key] = max(communicator.collectives.get(key, (0, "")), (amount, algorithm))
    elif "p2p_perf" in record:
        done = _part(path, line, record, "p2p_perf")
        if _text(path, line, done, "p2p") == "Send":
            peer = _number(path, line, done, "p2p_peer", RANK_LIMIT)
            communicator.sends[rank, peer] += _number(path, line, done, "p2p_msg_size_bytes", _SIZE_LIMIT)


def _order_processes(communicators: dict[str, _Communicator]) -> dict[tuple[str, int], int]:
    """Number processes by their ranks, first in the largest communicator: (host, process id) -> number."""
    numbers: dict[tuple[str, int], int] = {}
    for _, each in sorted(communicators.items(), key=lambda item: (-len(item[1].members), item[0])):
        for rank in sorted(each.members):
            numbers.setdefault(each.members[rank], len(numbers))
    return numbers


def _add_flows(
    communicator: _Communicator,
    processes: dict[tuple[str, int], int],
    flows: dict[tuple[str, int, int], int],
    account: _Account,
) -> None:
    members = communicator.members
    for (rank, peer), amount in communicator.sends.items():
        if peer in members:
            flows["ncclSend", processes[members[rank]], processes[members[peer]]] += amount
        else:
            account.unmodelled["sends to ranks that left no file"] += amount
    hosts: dict[str, list[int]] = {}
    for rank in sorted(members):
        hosts.setdefault(members[rank][0], []).append(processes[members[rank]])
    ranks = max(communicator.ranks, len(members))
    sums: Counter[tuple[str, bool]] = Counter()
    for (function, _), (amount, algorithm) in communicator.collectives.items():
        is_tree = function == "AllReduce" and algorithm in _TREES and ranks > 1
        sent = amount if is_tree else ring_bytes(function, amount, ranks)
        sums[function, is_tree] += sent
        if amount and not sent and ranks > 1:
            account.unmodelled[f"collectives that ibprof cannot model: {quote_found(function)}"] += amount
        elif sent and not is_tree and algorithm not in _RINGS:
            account.as_rings[algorithm] += 1
    if len(members) < 2:
        alone = sum(sums.values())
        account.unmodelled.update({"collectives with a file of only one rank": alone} if alone else {})
        return
    for (function, is_tree), amount in sums.items():
        for sources, destinations, share in (tree_edges if is_tree else ring_edges)(list(hosts.values()), amount):
            for source, destination in zip(sources, destinations, strict=True):
                flows[f"nccl{function}", source, destination] += share


def _make_traffic(
    processes: dict[tuple[str, int], int], flows: dict[tuple[str, int, int], int], notes: tuple[str, ...], name: str
) -> RankTraffic:
    names = list(dict.fromkeys(host for host, _ in processes))
    place = {host: index for index, host in enumerate(names)}
    ranks = tuple(
        Rank(
            rank=number,
            host=place[host],
            pid=pid,
            start_ns=0,
            stop_ns=None,
            finalized=True,
            source=Source.NONE,
            thread_level=0,
            lost_bytes=0,
            lost_messages=0,
            off_ns=0,
            marks_seen=0,
            notes=notes,
        )
        for (host, pid), number in processes.items()
    )
    operations = tuple(dict.fromkeys(operation for operation, _, _ in flows)) or ("*",)
    profile = Profile(
        name=name,
        mpi="NCCL, by NCCL Inspector",
        command="",
        job="",
        world_size=len(processes),
        operations_asked="",
        hosts=tuple(Host(host, ()) for host in names),
        ranks=ranks,
        regions=("*",),
        operations=operations,
        counters=Counters.empty(),
        region_times=RegionTimes.empty(),
        sizes=MessageSizes.empty(),
        marks=(),
    )
    rows = [(operations.index(operation), *ends, amount) for (operation, *ends), amount in flows.items() if amount]
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    operation, source, destination = (np.array(column, np.int32) for column in columns[:3])
    return RankTraffic(
        source=source,
        destination=destination,
        bytes=np.array(columns[3], np.uint64),
        messages=np.zeros(len(rows), np.uint64),
        region=np.zeros(len(rows), np.int32),
        operation=operation,
        regions=("*",),
        operations=operations,
        ranks=len(processes),
        unmapped={},
        origin=f"NCCL Inspector's files in {name}, {MODELLED}",
        profile=profile,
    )
