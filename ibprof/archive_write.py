# SPDX-License-Identifier: Apache-2.0
"""Write a profile as the files of an OTF2 archive, through OTF2's own calls.

otf2's comfortable writer keeps every location open and stamps the archive with the time of writing; this one closes
each rank behind it and keeps the times of the run. A rank's events are gathered as arrays, and a kernel writes them.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import _otf2
import numpy as np
import numpy.typing as npt
import otf2

from ibprof import archive_format as form
from ibprof.archive_events import ENTER, LEAVE, METRIC, NUMBER, TEXT, Events, event_type, write_events
from ibprof.archive_properties import Value, to_properties
from ibprof.profile import (
    Counters,
    Direction,
    Intervals,
    Kind,
    Mark,
    MessageSizes,
    Opcode,
    Profile,
    RegionTimes,
    Source,
    Transfers,
    order_rows,
)

Progress = Callable[[int, int], None]
"""Is called with how many parts of the work are done, and of how many."""

_EVENT_CHUNK_BYTES = 1 << 20
_DEFINITION_CHUNK_BYTES = 1 << 22
_NS_PER_S = 10**9


def write_files(run: Profile, folder: Path, name: str, progress: Progress | None) -> None:
    """Write an archive.

    Args:
        run: what to write.
        folder: is there, and empty.
        name: of the archive, without `.otf2`.
        progress: is told of each rank.

    Raises:
        _otf2.Error: a file could not be written.
    """
    archive = _otf2.Archive_Open(
        str(folder),
        name,
        otf2.FileMode.WRITE,
        _EVENT_CHUNK_BYTES,
        _DEFINITION_CHUNK_BYTES,
        otf2.FileSubstrate.POSIX,
        otf2.Compression.NONE,
    )
    # OTF2 keeps a pointer to these.
    flush = _otf2.FlushCallbacks(pre_flush=lambda *_: otf2.FlushType.FLUSH, post_flush=None)
    _otf2.Archive_SetFlushCallbacks(archive, flush, None)
    _otf2.Archive_SetSerialCollectiveCallbacks(archive)
    _otf2.Archive_SetCreator(archive, "ibprof")
    _otf2.Archive_OpenDefFiles(archive)
    _otf2.Archive_OpenEvtFiles(archive)
    definitions = _Definitions(run)
    rows = _Rows(run)
    locations = []
    for number, rank in enumerate(run.ranks):
        marks = rows.marks(rank.rank)
        begin_ns = min([rank.start_ns, *(mark.time_ns for mark in marks)])
        location = _Location(archive, number, begin_ns, definitions)
        _write_over_time(location, run.regions, marks, rows.intervals, rank.rank)
        location.advance(rank.stop_ns or 0)
        _write_totals(location, rows, rank.rank)
        location.close()
        locations.append(location)
        if progress:
            progress(number + 1, len(run.ranks))
    _otf2.Archive_CloseEvtFiles(archive)
    _otf2.Archive_CloseDefFiles(archive)
    definitions.write(archive, run, locations)
    _otf2.Archive_Close(archive)


# -- events of a rank ------------------------------------------------------------------------------------------------


class _Columns:
    """Rows of a profile, so that those of one rank, and in it of one region and operation, are found at once.

    Args:
        rows: in their order.
    """

    def __init__(self, rows: Counters | RegionTimes | MessageSizes | Transfers) -> None:
        self._rows = rows
        names = [name for name in ("rank", "region", "operation") if hasattr(self._rows, name)]
        changes = [np.flatnonzero(np.diff(getattr(self._rows, name))) + 1 for name in names]
        length = len(self._rows.rank)
        ends = np.unique(np.concatenate([*changes, [length]]))[: length or None]
        self._begins = np.concatenate([[0], ends[:-1]]) if length else np.empty(0, np.intp)
        self._ends = ends if length else self._begins
        self._keys = [getattr(self._rows, name)[self._begins] for name in names]

    def of_rank(self, rank: int) -> dict[tuple[int, ...], slice]:
        """Give the rows of a rank by (region, operation), or by (region,) where there are no operations."""
        first, last = np.searchsorted(self._keys[0], (rank, rank + 1)).tolist()
        keys = zip(*(key[first:last].tolist() for key in self._keys[1:]), strict=True)
        bounds = zip(self._begins[first:last].tolist(), self._ends[first:last].tolist(), strict=True)
        return {key: slice(*bound) for key, bound in zip(keys, bounds, strict=True)}

    def take(self, name: str, rows: slice) -> npt.NDArray[Any]:
        """Give some rows of a column."""
        column: npt.NDArray[Any] = getattr(self._rows, name)[rows]
        return column


class _Rows:
    """The rows of a profile."""

    def __init__(self, run: Profile) -> None:
        self.times = _Columns(order_rows(run.region_times))
        self.counters = _Columns(order_rows(run.counters))
        self.sizes = _Columns(order_rows(run.sizes))
        self.transfers = _Columns(order_rows(run.transfers))
        self.intervals = order_rows(run.intervals)
        self._marks: dict[int, list[Mark]] = {}
        for mark in run.marks:
            self._marks.setdefault(mark.rank, []).append(mark)

    def marks(self, rank: int) -> list[Mark]:
        """Give the marks of a rank."""
        return self._marks.get(rank, [])


_Call = tuple[Any, ...]
"""A function of OTF2's definition writer, and its arguments after the writer."""


def _write_over_time(
    location: _Location, regions: Sequence[str], marks: Iterable[Mark], intervals: Intervals, rank: int
) -> None:
    """Write marks, and intervals at their ends, in the order of time."""
    first, last = np.searchsorted(intervals.rank, (rank, rank + 1)).tolist()
    rows = slice(first, last)
    ends = intervals.end_ns[rows].tolist()
    moments = deque((end, row) for row, end in enumerate(ends, first))
    for mark in marks:
        while moments and moments[0][0] <= mark.time_ns:
            _write_interval(location, intervals, *moments.popleft())
        _write_mark(location, regions, mark)
    for moment in moments:
        _write_interval(location, intervals, *moment)


def _write_interval(location: _Location, intervals: Intervals, end_ns: int, row: int) -> None:
    location.advance(end_ns)
    members = form.interval_members(int(intervals.first_peer[row]), int(intervals.last_peer[row]))
    numbers = np.array([[intervals.bytes[row], intervals.messages[row], end_ns]], np.uint64)
    location.numbered_metrics(form.INTERVAL_PARAMETER, intervals.begin_ns[row : row + 1], members, numbers)


def _write_mark(location: _Location, regions: Sequence[str], mark: Mark) -> None:
    location.advance(mark.time_ns)
    location.text_parameter(form.MARK_PARAMETER, mark.kind.name)
    location.text_parameter(form.MARK_REGION_PARAMETER, regions[mark.region])
    location.metric(form.MARK_MEMBERS, [getattr(mark, name) for name in form.MARK_MEMBERS])


def _write_totals(location: _Location, rows: _Rows, rank: int) -> None:
    """Write each region once, the operations in it, at the end of the rank: that is when its totals were these."""
    times, transfers = rows.times.of_rank(rank), rows.transfers.of_rank(rank)
    counters, sizes = rows.counters.of_rank(rank), rows.sizes.of_rank(rank)
    operations: dict[int, list[int]] = {region: [] for (region,) in (*times, *transfers)}
    for region, operation in sorted({*counters, *sizes}):
        operations.setdefault(region, []).append(operation)
    for region in sorted(operations):
        location.enter_region(region)
        if (visited := times.get((region,))) is not None:
            for row in range(visited.start, visited.stop):
                values = [rows.times.take(name, slice(row, row + 1)).item() for name in form.TIME_MEMBERS]
                location.metric(form.TIME_MEMBERS, values)
        if (posted := transfers.get((region,))) is not None:
            _write_transfers(location, rows.transfers, posted)
        for operation in operations[region]:
            location.enter_operation(operation)
            if (counted := counters.get((region, operation))) is not None:
                _write_counters(location, rows.counters, counted)
            if (sized := sizes.get((region, operation))) is not None:
                _write_sizes(location, rows.sizes, sized)
            location.leave_operation(operation)
        location.leave_region(region)


def _write_transfers(location: _Location, transfers: _Columns, rows: slice) -> None:
    opcodes = transfers.take("opcode", rows)
    numbers = np.stack([transfers.take(name, rows) for name in ("bytes", "messages")], axis=1)
    for opcode in np.unique(opcodes).tolist():
        chosen = opcodes == opcode
        pairs = transfers.take("pair", rows)[chosen]
        location.numbered_metrics(form.PAIR_PARAMETER, pairs, form.transfer_members(Opcode(opcode)), numbers[chosen])


def _write_counters(location: _Location, counters: _Columns, rows: slice) -> None:
    tags = np.stack([counters.take(name, rows) for name in ("direction", "kind", "source")], axis=1)
    peers = counters.take("peer", rows)
    numbers = np.stack([counters.take(name, rows) for name in ("bytes", "messages")], axis=1)
    # In the order of rows, the tags come one after another.
    bounds = [0, *(np.flatnonzero((tags[1:] != tags[:-1]).any(axis=1)) + 1).tolist(), len(tags)]
    for begin, end in itertools.pairwise(bounds):
        direction, kind, source = tags[begin].tolist()
        members = form.counter_members((Direction(direction), Kind(kind), Source(source)))
        parameter = form.PEER_PARAMETERS[Direction(direction)]
        location.numbered_metrics(parameter, peers[begin:end], members, numbers[begin:end])


def _write_sizes(location: _Location, sizes: _Columns, rows: slice) -> None:
    tags = zip(sizes.take("direction", rows).tolist(), sizes.take("kind", rows).tolist(), strict=True)
    for (direction, kind), messages in zip(tags, sizes.take("messages", rows), strict=True):
        bins = np.flatnonzero(messages)
        bounds = np.array([form.lower_bound(size_bin) for size_bin in bins.tolist()], np.uint64)
        member = form.size_member(Direction(direction), Kind(kind))
        location.numbered_metrics(form.SIZE_PARAMETER, bounds, (member,), messages[bins, None])


class _Location:
    """Gathers the events of one rank, and writes them in the end.

    Attributes:
        begin_ns, time_ns: of its first event, and of the last one so far; times of an archive never decrease.
        events: how many were written.
    """

    def __init__(self, archive: Any, number: int, begin_ns: int, definitions: _Definitions) -> None:
        self._definitions = definitions
        self._archive = archive
        self._local = _otf2.Archive_GetDefWriter(archive, number)
        self._writer = _otf2.Archive_GetEvtWriter(archive, number)
        self._records: list[npt.NDArray[np.void]] = []
        self._values: list[npt.NDArray[np.uint64]] = []
        self.begin_ns = self.time_ns = begin_ns
        self.events = 0

    def advance(self, time_ns: int) -> None:
        """Go on to a time, unless it has passed: a clock that was set back must not set the archive back."""
        self.time_ns = max(self.time_ns, time_ns)

    def enter_region(self, region: int) -> None:
        self._add(ENTER, region)

    def leave_region(self, region: int) -> None:
        self._add(LEAVE, region)

    def enter_operation(self, operation: int) -> None:
        self.enter_region(self._definitions.operation(operation))

    def leave_operation(self, operation: int) -> None:
        self.leave_region(self._definitions.operation(operation))

    def text_parameter(self, name: str, value: str) -> None:
        parameter = self._definitions.parameter(name, otf2.ParameterType.STRING)
        self._add(TEXT, parameter, [self._definitions.text(value)])

    def metric(self, members: Sequence[str], values: Sequence[int]) -> None:
        self._add(METRIC, self._definitions.metric(members), values)

    def numbered_metrics(
        self, name: str, parameters: npt.NDArray[Any], members: Sequence[str], numbers: npt.NDArray[np.uint64]
    ) -> None:
        """Add metrics, each behind a parameter.

        Args:
            name: of the parameters.
            parameters: their values [metric].
            members: names of a metric's numbers.
            numbers: [metric, member].
        """
        records = np.empty((len(parameters), 2), event_type())
        records["time_ns"] = self.time_ns
        records["kind"] = NUMBER, METRIC
        records["values"] = 1, len(members)
        parameter = self._definitions.parameter(name, otf2.ParameterType.UINT64)
        records["reference"] = parameter, self._definitions.metric(members)
        self._records.append(records.ravel())
        self._values.append(np.concatenate([parameters[:, None].astype(np.uint64), numbers], axis=1).ravel())

    def _add(self, kind: int, reference: int, values: Sequence[int] = ()) -> None:
        self._records.append(np.array([(self.time_ns, reference, kind, len(values))], event_type()))
        self._values.append(np.array(values, np.uint64))

    def close(self) -> None:
        """Write all events. The archive keeps no file of this location open."""
        none = np.empty(0, event_type()), np.empty(0, np.uint64)
        events = Events(np.concatenate([none[0], *self._records]), np.concatenate([none[1], *self._values]))
        self._records.clear()
        self._values.clear()
        write_events(self._writer, events)
        self.events = len(events.records)
        _otf2.Archive_CloseDefWriter(self._archive, self._local)
        _otf2.Archive_CloseEvtWriter(self._archive, self._writer)


# -- definitions -----------------------------------------------------------------------------------------------------


class _Definitions:
    """Numbers what events refer to, and writes what they mean when all are known."""

    def __init__(self, run: Profile) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._parameters: dict[str, tuple[int, Any]] = {}
        self._metrics: dict[tuple[str, ...], int] = {}
        self._regions = len(run.regions)

    def text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def parameter(self, name: str, kind: Any) -> int:
        return self._parameters.setdefault(name, (len(self._parameters), kind))[0]

    def metric(self, members: Sequence[str]) -> int:
        return self._metrics.setdefault(tuple(members), len(self._metrics))

    def operation(self, operation: int) -> int:
        """Give the number of an operation among OTF2's regions: they follow ours."""
        return self._regions + operation

    def write(self, archive: Any, run: Profile, locations: Sequence[_Location]) -> None:
        """Write all definitions, none before those that it refers to."""
        # Collecting them finds all texts, which must stand first.
        calls = [*self._system_tree(run), *self._ranks(run, locations), *self._regions_of(run), *self._values()]
        writer = _otf2.Archive_GetGlobalDefWriter(archive)
        begin = min((location.begin_ns for location in locations), default=0)
        end = max((location.time_ns for location in locations), default=0)
        _otf2.GlobalDefWriter_WriteClockProperties(writer, _NS_PER_S, begin, end - begin, begin)
        for text, number in self._texts.items():
            _otf2.GlobalDefWriter_WriteString(writer, number, text)
        for function, *arguments in calls:
            function(writer, *arguments)
        _otf2.Archive_CloseGlobalDefWriter(archive, writer)

    def _system_tree(self, run: Profile) -> Iterator[_Call]:
        node, add, add_property = (
            0,
            _otf2.GlobalDefWriter_WriteSystemTreeNode,
            _otf2.GlobalDefWriter_WriteSystemTreeNodeProperty,
        )
        yield add, node, self.text("job"), self.text("machine"), otf2.Undefined.SYSTEM_TREE_NODE
        properties = [(form.VERSION_PROPERTY, form.VERSION), *to_properties(run, form.NOT_OF_RUN)]
        yield from self._properties(add_property, node, properties)
        hosts = range(1, len(run.hosts) + 1)
        for node, host in zip(hosts, run.hosts, strict=True):
            yield add, node, self.text(host.name), self.text(form.HOST_CLASS), 0
        for parent, host in zip(hosts, run.hosts, strict=True):
            for port in host.ports:
                node += 1
                yield add, node, self.text(f"{port.device} port {port.port}"), self.text(form.PORT_CLASS), parent
                yield from self._properties(add_property, node, to_properties(port))
        for pair in run.pairs:
            node += 1
            name = f"{pair.device} port {pair.port} to {pair.remote_lid or pair.remote_gid}"
            yield add, node, self.text(name), self.text(form.PAIR_CLASS), 1 + pair.host
            yield from self._properties(add_property, node, to_properties(pair, form.NOT_OF_PAIR))

    def _ranks(self, run: Profile, locations: Sequence[_Location]) -> Iterator[_Call]:
        for number, (rank, location) in enumerate(zip(run.ranks, locations, strict=True)):
            name, node = self.text(f"rank {rank.rank}"), 1 + rank.host
            process = otf2.LocationGroupType.PROCESS, node, otf2.Undefined.LOCATION_GROUP
            yield _otf2.GlobalDefWriter_WriteLocationGroup, number, name, *process
            thread = otf2.LocationType.CPU_THREAD, location.events, number
            yield _otf2.GlobalDefWriter_WriteLocation, number, name, *thread
            properties = to_properties(rank, form.NOT_OF_RANK)
            yield from self._properties(_otf2.GlobalDefWriter_WriteLocationProperty, number, properties)

    def _regions_of(self, run: Profile) -> Iterator[_Call]:
        user, mpi = otf2.Paradigm.USER, otf2.Paradigm.MPI
        named = [(name, user) for name in run.regions] + [(name, mpi) for name in run.operations]
        for number, (name, paradigm) in enumerate(named):
            text = self.text(name)
            role, flags = otf2.RegionRole.CODE, otf2.RegionFlag.NONE
            yield _otf2.GlobalDefWriter_WriteRegion, number, text, text, 0, role, paradigm, flags, 0, 0, 0

    def _values(self) -> Iterator[_Call]:
        member = 0
        for members, number in self._metrics.items():
            for name in members:
                kind = otf2.MetricType.OTHER, otf2.MetricMode.ABSOLUTE_POINT, otf2.Type.UINT64, otf2.Base.DECIMAL, 0
                unit = self.text("ns" if name.endswith("_ns") else "B" if "bytes" in name else "#")
                yield _otf2.GlobalDefWriter_WriteMetricMember, member, self.text(name), 0, *kind, unit
                member += 1
            numbers = list(range(member - len(members), member))
            when = otf2.MetricOccurrence.ASYNCHRONOUS, otf2.RecorderKind.CPU
            yield _otf2.GlobalDefWriter_WriteMetricClass, number, numbers, *when
        for name, (number, kind) in self._parameters.items():
            yield _otf2.GlobalDefWriter_WriteParameter, number, self.text(name), kind

    def _properties(
        self, function: Callable[..., None], owner: int, properties: Iterable[tuple[str, Value]]
    ) -> Iterator[_Call]:
        for name, value in properties:
            if isinstance(value, str):
                union, kind = _otf2.AttributeValue(stringRef=self.text(value)), otf2.Type.STRING
            elif isinstance(value, float):
                union, kind = _otf2.AttributeValue(float64=value), otf2.Type.DOUBLE
            else:
                union, kind = _otf2.AttributeValue(uint64=value), otf2.Type.UINT64
            yield function, owner, self.text(name), kind, union
