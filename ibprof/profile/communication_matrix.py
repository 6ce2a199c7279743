# SPDX-License-Identifier: Apache-2.0
"""Build a profile's communication matrix by rank, host or port, and write matrices as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.native.libraries import load_kernels, sum_exactly
from ibprof.profile.port_sums import PortIndex, describe_unmeasured
from ibprof.profile.profile_data import OUTWARD_OPCODES, Direction, Host, Kind, MarkKind, Profile, Source
from ibprof.profile.profile_rows import RowChoice, find_name
from ibprof.profile.row_arrays import sum_by_key

Flags = npt.NDArray[np.bool_]

_NO_REGION = "--since-start needs --region, the region that ends the interval"

_COUNTERS_AT_ONCE = 1 << 20
_ROWS_AT_ONCE = 1 << 16


_LINES_AT_ONCE = 1 << 15


@dataclass(frozen=True, slots=True)
class Selection:
    """A choice of a profile's bytes.

    Attributes:
        operation, region: names; None for all.
        site: name of a call site; None for all.
        since_start: true to add, on each rank, the bytes of regions that last ended before `region`.
        kind: user data or MPI's own messages.
        received: true for bytes that receivers counted, false for bytes that senders and fetchers counted.
    """

    operation: str | None = None
    region: str | None = None
    since_start: bool = False
    kind: Kind = Kind.USER
    received: bool = False
    site: str | None = None


@dataclass(frozen=True, slots=True)
class Matrix:
    """Bytes of each pair of source and destination with traffic, sorted by source, then by destination.

    Attributes:
        names: numbers of ranks, names of hosts, or GUIDs of ports.
        source, destination: int64 [pair], indices into the names.
        bytes, messages: [pair], uint64; Python integers if a sum exceeds 64 bits.
        notes: sentences on traffic that the matrix lacks.
        labels: host, device and number of each port, if known; empty for ranks and hosts.
    """

    names: list[str]
    source: npt.NDArray[np.int64]
    destination: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.uint64]
    messages: npt.NDArray[np.uint64]
    notes: list[str]
    labels: tuple[str, ...] = ()

    def rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield source, destination, bytes and messages of each pair."""
        return chain.from_iterable(self._some_rows(begin) for begin in range(0, len(self.source), _ROWS_AT_ONCE))

    def to_frame(self) -> dict[str, npt.NDArray[Any]]:
        """Return columns for `pandas.DataFrame` or `polars.DataFrame`: src, dst (ranks or names), bytes, messages."""
        numbers = all(name.isdecimal() for name in self.names)
        names = np.array(self.names, np.int64 if numbers else np.str_)
        ends = {"src": names[self.source], "dst": names[self.destination]}
        return ends | {"bytes": self.bytes, "messages": self.messages}

    def text(self) -> Iterator[str]:
        """Yield the matrix as CSV text, many lines at a time."""
        if object in (self.bytes.dtype, self.messages.dtype):
            return map(format_row, self.rows())
        return format_pairs(self.names, self.source, self.destination, self.bytes, self.messages)

    def _some_rows(self, begin: int) -> Iterator[tuple[str, str, int, int]]:
        some = slice(begin, begin + _ROWS_AT_ONCE)
        source = map(self.names.__getitem__, self.source[some].tolist())
        destination = map(self.names.__getitem__, self.destination[some].tolist())
        return zip(source, destination, self.bytes[some].tolist(), self.messages[some].tolist(), strict=True)


def build_matrix(run: Profile, by: str = "rank", selection: Selection = Selection()) -> Matrix:
    """Return the traffic between ranks, hosts or ports.

    Bytes between ports come from recorded work requests, and include MPI's headers. If there are no work requests, or
    if work requests lack the data for `selection`, bytes come from the MPI calls. In this case, each host must have
    exactly one active port, because MPI calls do not show ports.

    Args:
        by: "rank", "host" or "port".

    Raises:
        UsageError: the operation, region or site is unknown, or ports cannot be identified.
    """
    if by == "port" and len(run.transfers.bytes) and _is_of_wire(selection):
        return _build_measured(run, selection)
    chosen = _choose(run, selection)
    counters = run.counters
    notes = _note_left_out(run, selection)
    sources = np.unique(counters.source[chosen & (counters.source != Source.NCCL)])
    if len(sources) > 1:
        # Of sources that count the same bytes, keep the source nearest to the MPI calls, which knows ranks and
        # operations. Keep NCCL's source too: NCCL's bytes do not pass through MPI.
        chosen &= (counters.source == sources[0]) | (counters.source == Source.NCCL)
        notes.append(
            f"several sources counted the same bytes: the matrix has the bytes measured in {Source(sources[0]).layer}"
        )
    names, row_of = _name_ranks(run, by)
    if by == "port":
        notes.append("ports were not measured: bytes between hosts are assigned to the only port of each host")
    lost = 0
    parts = []
    for begin in range(0, max(len(chosen), 1), _COUNTERS_AT_ONCE):
        rows = np.flatnonzero(chosen[begin : begin + _COUNTERS_AT_ONCE]) + begin
        mine, theirs = row_of[counters.rank[rows]], row_of[np.minimum(counters.peer[rows], run.world_size)]
        unknown = (mine < 0) | (theirs < 0)
        lost += sum_exactly(counters.bytes[rows[unknown]])
        rows, mine, theirs = rows[~unknown], mine[~unknown], theirs[~unknown]
        outward = counters.direction[rows] == Direction.SENT
        pair = np.where(outward, mine, theirs) * len(names) + np.where(outward, theirs, mine)
        parts.append(sum_by_key(pair, counters.bytes[rows], counters.messages[rows]))
    if lost:
        notes.append(f"{lost} bytes are left out: the {by} at the other end is unknown")
    found, amounts, messages = sum_by_key(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    source, destination = np.divmod(found, len(names))
    # Leave out traffic within a host, which uses no port.
    kept = (amounts > 0) | (messages > 0) if by != "port" else source != destination
    return Matrix(names, source[kept], destination[kept], amounts[kept], messages[kept], notes, _label(run, by, names))


def _is_of_wire(selection: Selection) -> bool:
    """Return whether work requests have a selection's data: the sent user data of all operations and sites."""
    return (
        selection.operation is None
        and selection.site is None
        and selection.kind == Kind.USER
        and not selection.received
    )


def _build_measured(run: Profile, selection: Selection) -> Matrix:
    """Return the traffic of work requests between ports."""
    transfers = run.transfers
    notes = ["bytes are those posted to queue pairs (verbs), headers of MPI included: ports are measured"]
    if why := describe_unmeasured(run):
        notes.append(f"bytes posted to queue pairs are incomplete: {why}")
    notes += _note_left_out(run, selection)
    rows: npt.NDArray[np.intp] = np.arange(len(transfers.bytes))
    if selection.region is not None:
        region = find_name("region", selection.region, run.regions, run.regions)
        included = _closed_until(run, region) if selection.since_start else _only_region(run, region)
        rows = np.flatnonzero(included[transfers.rank, transfers.region])
    elif selection.since_start:
        raise UsageError(_NO_REGION)
    index = PortIndex(run)
    ends = [index.ends(pair) for pair in run.pairs]
    labels = {end.name: end.label for both in ends for end in both if end.label}
    names = sorted({end.name for both in ends for end in both})
    number = {name: row for row, name in enumerate(names)}
    row_of = np.array([[number[end.name] for end in both] for both in ends], np.int64)[transfers.pair[rows]]
    outward = np.isin(transfers.opcode[rows], OUTWARD_OPCODES)
    source, destination = np.where(outward, row_of.T, row_of.T[::-1])
    key = source * len(names) + destination
    found, amounts, messages = sum_by_key(key, transfers.bytes[rows], transfers.messages[rows])
    source, destination = np.divmod(found, max(len(names), 1))
    # Leave out traffic from a port to itself, which uses no network.
    kept = source != destination
    label = tuple(labels.get(name, "") for name in names)
    return Matrix(names, source[kept], destination[kept], amounts[kept], messages[kept], notes, label)


def _label(run: Profile, by: str, names: Sequence[str]) -> tuple[str, ...]:
    if by != "port":
        return ()
    known = {port.port_guid: f"{host.name} {port.device}/{port.port}" for host in run.hosts for port in host.ports}
    return tuple(known.get(name, "") for name in names)


def _choose(run: Profile, selection: Selection) -> Flags:
    counters = run.counters
    chosen: Flags = counters.kind == selection.kind
    chosen &= (counters.direction == Direction.RECEIVED) == selection.received
    chosen &= RowChoice(operation=selection.operation, site=selection.site).choose(run, counters)
    if selection.region is not None:
        region = find_name("region", selection.region, run.regions, run.regions)
        if selection.since_start:
            chosen &= _closed_until(run, region)[counters.rank, counters.region]
        else:
            chosen &= counters.region == region
    elif selection.since_start:
        raise UsageError(_NO_REGION)
    return chosen


def _closed_until(run: Profile, region: int) -> Flags:
    """Return a mask [process, region]: true for `region`, and for regions that last ended before `region`."""
    # A region with many visits may lack marks, but last_ns is the time of its last exit. A region with begin and end
    # has no CLOSE mark. last_ns is 0 if the rank never left the region.
    times = run.region_times
    last_ns = np.zeros((_processes(run), len(run.regions)), np.uint64)
    last_ns[times.rank, times.region] = times.last_ns
    has_ended, is_closed = last_ns > 0, np.zeros(last_ns.shape, bool)
    for mark in run.marks:
        if mark.kind in (MarkKind.BEGIN, MarkKind.CLOSE):
            last_ns[mark.rank, mark.region] = max(int(last_ns[mark.rank, mark.region]), mark.time_ns)
            is_closed[mark.rank, mark.region] |= mark.kind == MarkKind.CLOSE
    included: Flags = is_closed[:, [region]] & (is_closed | has_ended) & (last_ns <= last_ns[:, [region]])
    if not included.any():
        raise UsageError(
            f"--since-start needs the end of region {run.regions[region]!r}, but no mark closes this region"
        )
    return included


def _note_left_out(run: Profile, selection: Selection) -> list[str]:
    """Return a note on bytes that the matrix lacks although they were sent before `selection.region` last ended."""
    if selection.region is None or not selection.since_start:
        return []
    region = find_name("region", selection.region, run.regions, run.regions)
    included = _closed_until(run, region)
    closed = {mark.rank: mark for mark in run.marks if mark.kind == MarkKind.CLOSE and mark.region == region}
    counters, times = run.counters, run.region_times
    chosen = (counters.kind == Kind.USER) & (counters.direction == Direction.SENT)
    chosen &= included[counters.rank, counters.region] & np.isin(counters.rank, list(closed))
    left_out = sum(mark.sent_bytes for mark in closed.values()) - sum_exactly(counters.bytes[chosen])
    if left_out <= 0:
        return []
    # The number of recorded marks is limited, so the last visit may have no mark.
    rows = np.flatnonzero(times.region == region)
    is_least = any(
        rank in closed and closed[rank].time_ns < last_ns
        for rank, last_ns in zip(times.rank[rows].tolist(), times.last_ns[rows].tolist(), strict=True)
    )
    return [
        f"{'at least ' if is_least else ''}{left_out} more bytes, sent before {selection.region} last ended, are left "
        "out: their regions were still open, or were opened again later. Such a region has one sum for all its bytes"
    ]


def _only_region(run: Profile, region: int) -> Flags:
    included = np.zeros((_processes(run), len(run.regions)), bool)
    included[:, region] = True
    return included


def _processes(run: Profile) -> int:
    """Return the length of arrays that are indexed by rank; processes without MPI have numbers after the ranks."""
    return max([run.world_size, *(1 + rank.rank for rank in run.ranks)])


def _name_ranks(run: Profile, by: str) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the names of a matrix's rows, and the row of each rank.

    A rank whose host was not recorded has row -1. The last element, also -1, is the row of peers without a rank.
    """
    row_of = np.full(run.world_size + 1, -1, np.int64)
    if by == "rank":
        row_of[:-1] = np.arange(run.world_size)
        return [str(rank) for rank in range(run.world_size)], row_of
    of_host = [host.name for host in run.hosts] if by == "host" else [_only_port(host) for host in run.hosts]
    names = sorted(set(of_host))
    number = {name: row for row, name in enumerate(names)}
    for rank in (rank for rank in run.ranks if rank.rank < run.world_size):
        row_of[rank.rank] = number[of_host[rank.host]]
    return names, row_of


def _only_port(host: Host) -> str:
    active = [port for port in host.ports if port.is_active]
    if len(active) != 1:
        raise UsageError(
            f"host {host.name} has {len(active)} active ports, and the port of the bytes was not measured: "
            "use --by host"
        )
    return active[0].port_guid


def format_pairs(
    names: Sequence[str],
    source: npt.NDArray[np.int64],
    destination: npt.NDArray[np.int64],
    size: npt.NDArray[np.uint64],
    messages: npt.NDArray[np.uint64],
) -> Iterator[str]:
    """Yield text with lines `source,destination,bytes,messages`, many lines at a time.

    Args:
        source, destination, size, messages: [row].
    """
    if not len(source):
        return
    kernels = load_kernels()
    quoted = [_quote(name).encode("utf-8", "surrogateescape") for name in names]
    text = np.frombuffer(b"".join(quoted), np.uint8)
    begin = np.concatenate([[0], np.cumsum([len(name) for name in quoted])]).astype(np.uint64)
    row_bytes = 2 * max(map(len, quoted)) + 2 * kernels.lib.IBP_CSV_DIGITS + 4
    rows = np.empty(min(len(source), _LINES_AT_ONCE) * row_bytes, np.uint8)
    columns = [np.ascontiguousarray(column) for column in (source, destination, size, messages)]
    for first in range(0, len(source), _LINES_AT_ONCE):
        some = [column[first : first + _LINES_AT_ONCE] for column in columns]
        written = kernels.lib.ibp_csv_pairs(
            kernels.ffi.cast("char *", text.ctypes.data),
            kernels.pointer(begin),
            *map(kernels.pointer, some),
            len(some[0]),
            kernels.ffi.cast("char *", rows.ctypes.data),
        )
        yield rows[:written].tobytes().decode("utf-8", "surrogateescape")


def format_row(row: Sequence[object]) -> str:
    """Return a row as a line of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(row)
    return line.getvalue()


def _quote(name: str) -> str:
    # Add a second field: csv quotes an empty name in a row of one field.
    return format_row((name, 0)).removesuffix(",0\n")
