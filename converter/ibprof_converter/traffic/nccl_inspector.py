# SPDX-License-Identifier: Apache-2.0
"""Traffic modelled from the files of NCCL Inspector: collectives as rings.

A line of these files is a JSON object: a communicator, the rank and its host, and one collective, send or receive with
its size. The files state neither algorithm nor peers. Collectives are modelled as NCCL's rings, in which each rank
sends to the next. Hosts follow each other in the order of their lowest ranks. With k ranks on each host there are k
rings, each with 1/k of the bytes. Each ring enters and leaves a host at a different rank, as in NCCL if each GPU has an
adapter near it.

Source of the bytes: NCCL's documentation of nccl-tests, doc/PERFORMANCE.md: in a ring each rank sends 2(n-1)/n of an
AllReduce's bytes, and (n-1)/n of all that an AllGather or a ReduceScatter moves.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import InputError, quote_found
from ibprof.profile.profile_data import Counters, Host, MessageSizes, Profile, Rank, RegionTimes, Source
from ibprof.text.host_lists import HostSpellings
from ibprof_converter.fabric.dump_files import peek_dump
from ibprof_converter.traffic.traffic_data import RANK_LIMIT, RankTraffic
from ibprof_converter.traffic.training_jobs import ring_bytes, ring_edges

MODELLED = (
    "modelled: NCCL Inspector states neither algorithms nor peers, so collectives are rings in the order of ranks"
)

_FORM = "v4.0"
"""The known form of the files."""

_FORM_LENGTH, _FORMS_SHOWN = 16, 3
_LINE_LIMIT = 1 << 24
_SIZE_LIMIT = 1 << 62


def is_inspector_file(path: Path) -> bool:
    """Return true if a file begins like a file of NCCL Inspector."""
    start = peek_dump(path).lstrip()
    return start.startswith(b'{"header"') and b'"id"' in start


def list_inspector_files(folder: Path) -> list[Path]:
    """Return the files of NCCL Inspector in a folder."""
    return [path for path in sorted(folder.iterdir()) if path.is_file() and is_inspector_file(path)]


@dataclass(slots=True)
class _Communicator:
    """A communicator, as stated in the files.

    Attributes:
        members: process of each rank.
        ranks: number of the communicator's ranks, recorded or not.
        collectives: bytes by (function, number), the largest that a rank states.
        sends: bytes by (rank, peer).
    """

    members: dict[int, tuple[str, int]] = field(default_factory=dict)
    ranks: int = 0
    collectives: dict[tuple[str, int], int] = field(default_factory=dict)
    sends: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))


def read_inspector(paths: Sequence[Path], name: str) -> RankTraffic:
    """Read files of NCCL Inspector as modelled traffic between processes.

    Args:
        paths: the files of one job.

    Raises:
        InputError: a line does not have NCCL Inspector's form.
    """
    communicators: dict[str, _Communicator] = defaultdict(_Communicator)
    spellings = HostSpellings()
    forms: set[str] = set()
    for path in paths:
        for number, line in _read_lines(path):
            forms.add(_find_form(path, number, line))
            _add_line(path, number, line, communicators, spellings)
    if not any(each.members for each in communicators.values()):
        raise InputError(paths[0], None, "records of NCCL Inspector", "none")
    processes = _order_processes(communicators)
    flows: dict[tuple[str, int, int], int] = defaultdict(int)
    missing = 0
    for each in communicators.values():
        missing += max(each.ranks - len(each.members), 0)
        _add_flows(each, processes, flows)
    notes = [f"{missing} ranks of communicators left no file"] if missing else []
    traffic = _make_traffic(processes, flows, (MODELLED, *notes, *spellings.describe()), name)
    return replace(traffic, doubts=tuple(_describe_forms(forms - {_FORM})))


def _find_form(path: Path, line: int, record: dict[str, Any]) -> str:
    """Return the version of a line's form; empty if the line states none."""
    return str(_part(path, line, record, "metadata").get("inspector_output_format_version", ""))[:_FORM_LENGTH]


def _describe_forms(unknown: set[str]) -> Iterator[str]:
    if unknown:
        forms = ", ".join(quote_found(form) if form else "none" for form in sorted(unknown)[:_FORMS_SHOWN])
        more = f" and {len(unknown) - _FORMS_SHOWN} more" if len(unknown) > _FORMS_SHOWN else ""
        yield f"NCCL Inspector's files state form {forms}{more}: only the fields of {_FORM} are read."


def _read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        number = 0
        while line := file.readline(_LINE_LIMIT):
            number += 1
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                if not line.endswith("\n"):  # the job was killed during the write
                    return
                raise InputError(path, number, "a JSON object", quote_found(line[:80])) from None
            if not isinstance(record, dict):
                raise InputError(path, number, "a JSON object", quote_found(line[:80]))
            yield number, record


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
        communicator.collectives[key] = max(communicator.collectives.get(key, 0), amount)
    elif "p2p_perf" in record:
        done = _part(path, line, record, "p2p_perf")
        if _text(path, line, done, "p2p") == "Send":
            peer = _number(path, line, done, "p2p_peer", RANK_LIMIT)
            communicator.sends[rank, peer] += _number(path, line, done, "p2p_msg_size_bytes", _SIZE_LIMIT)


def _order_processes(communicators: dict[str, _Communicator]) -> dict[tuple[str, int], int]:
    """Return a number for each process, by its rank in the largest communicator, then in smaller ones."""
    numbers: dict[tuple[str, int], int] = {}
    for _, each in sorted(communicators.items(), key=lambda item: (-len(item[1].members), item[0])):
        for rank in sorted(each.members):
            numbers.setdefault(each.members[rank], len(numbers))
    return numbers


def _add_flows(
    communicator: _Communicator,
    processes: dict[tuple[str, int], int],
    flows: dict[tuple[str, int, int], int],
) -> None:
    members = communicator.members
    for (rank, peer), amount in communicator.sends.items():
        if peer in members:
            flows["ncclSend", processes[members[rank]], processes[members[peer]]] += amount
    hosts: dict[str, list[int]] = {}
    for rank in sorted(members):
        hosts.setdefault(members[rank][0], []).append(processes[members[rank]])
    sums: dict[str, int] = defaultdict(int)
    for (function, _), amount in communicator.collectives.items():
        sums[function] += ring_bytes(function, amount, max(communicator.ranks, len(members)))
    for function, amount in sums.items():
        if len(members) < 2 or not amount:
            continue
        for sources, destinations, share in ring_edges(list(hosts.values()), amount):
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
