# SPDX-License-Identifier: Apache-2.0
"""Write a profile as the files of an OTF2 archive.

A rank's file is closed before the next file is opened: the number of open files does not grow with the job. Events have
the times of the recorded run.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ibprof.archive import otf2_names
from ibprof.archive.otf2_names import Value, to_properties
from ibprof.native.libraries import ENTER, EVENT, LEAVE, METRIC, NUMBER, TEXT, Events, load_otf2, write_events
from ibprof.profile.profile_data import (
    CallTimes,
    Counters,
    Demands,
    Direction,
    Intervals,
    IntervalTimes,
    Kind,
    Mark,
    MessageSizes,
    Opcode,
    Profile,
    RegionTimes,
    Site,
    Source,
    Transfers,
)
from ibprof.profile.profile_rows import order_rows
from ibprof.sites.code_location import Frame

Progress = Callable[[int, int], None]
"""Function that receives the number of written ranks and the number of all ranks."""

_EVENT_CHUNK_BYTES = 1 << 20
_DEFINITION_CHUNK_BYTES = 1 << 22


def write_files(run: Profile, folder: Path, name: str, progress: Progress | None) -> None:
    """Write an archive.

    Args:
        folder: an existing, empty folder.
        name: name of the archive, without `.otf2`.

    Raises:
        Otf2Error: a file could not be written.
    """
    otf2 = load_otf2()
    ffi, lib, call = otf2.ffi, otf2.lib, otf2.call
    chunks = _EVENT_CHUNK_BYTES, _DEFINITION_CHUNK_BYTES
    files = lib.OTF2_SUBSTRATE_POSIX, lib.OTF2_COMPRESSION_NONE
    archive = call("Archive_Open", os.fsencode(folder), os.fsencode(name), lib.OTF2_FILEMODE_WRITE, *chunks, *files)
    # Keep the callbacks alive, because OTF2 only stores the callbacks' address.
    flush = ffi.callback("uint8_t(void *, uint8_t, uint64_t, void *, _Bool)", lambda *_: lib.OTF2_FLUSH)
    callbacks = ffi.new("struct ibp_flush_callbacks *", {"pre_flush": flush})
    call("Archive_SetFlushCallbacks", archive, callbacks, ffi.NULL)
    call("Archive_SetSerialCollectiveCallbacks", archive)
    call("Archive_SetCreator", archive, b"ibprof")
    call("Archive_OpenDefFiles", archive)
    call("Archive_OpenEvtFiles", archive)
    definitions = Definitions(run)
    rows = _RowsByRank(run)
    locations = []
    for number, rank in enumerate(run.ranks):
        marks = rows.marks(rank.rank)
        begin_ns = min([rank.start_ns, *(mark.time_ns for mark in marks)])
        location = Location(archive, number, begin_ns, definitions)
        _write_over_time(location, run.regions, marks, rows.intervals_of(rank.rank))
        location.advance(rank.stop_ns or 0)
        _write_totals(location, definitions, rows, rank.rank)
        location.close()
        locations.append(location)
        if progress:
            progress(number + 1, len(run.ranks))
    call("Archive_CloseEvtFiles", archive)
    call("Archive_CloseDefFiles", archive)
    definitions.write(archive, run, locations)
    call("Archive_Close", archive)


# -- events of a rank ------------------------------------------------------------------------------------------------


class _RankColumns:
    """Rows of a profile, indexed by rank, then by region, operation and site.

    Args:
        rows: rows, sorted by rank, then by region, operation and site, where these columns exist.
    """

    def __init__(self, rows: Counters | RegionTimes | MessageSizes | Transfers | Demands | CallTimes) -> None:
        self._rows = rows
        names = [name for name in ("rank", "region", "operation", "site") if hasattr(self._rows, name)]
        changes = [np.flatnonzero(np.diff(getattr(self._rows, name))) + 1 for name in names]
        length = len(self._rows.rank)
        ends = np.unique(np.concatenate([*changes, [length]]))[: length or None]
        self._begins = np.concatenate([[0], ends[:-1]]) if length else np.empty(0, np.intp)
        self._ends = ends if length else self._begins
        self._keys = [getattr(self._rows, name)[self._begins] for name in names]

    def of_rank(self, rank: int) -> dict[tuple[int, ...], slice]:
        """Return key -> slice of a rank's rows; a key is (region, operation, site), without columns that rows lack."""
        first, last = np.searchsorted(self._keys[0], (rank, rank + 1)).tolist()
        keys = zip(*(key[first:last].tolist() for key in self._keys[1:]), strict=True)
        bounds = zip(self._begins[first:last].tolist(), self._ends[first:last].tolist(), strict=True)
        return {key: slice(*bound) for key, bound in zip(keys, bounds, strict=True)}

    def take(self, name: str, rows: slice) -> npt.NDArray[Any]:
        """Return some rows of a column."""
        column: npt.NDArray[Any] = getattr(self._rows, name)[rows]
        return column


class _RowsByRank:
    """The rows of a profile, indexed by rank."""

    def __init__(self, run: Profile) -> None:
        self.times = _RankColumns(order_rows(run.region_times))
        self.counters = _RankColumns(order_rows(run.counters))
        self.sizes = _RankColumns(order_rows(run.sizes))
        self.transfers = _RankColumns(order_rows(run.transfers))
        self.demands = _RankColumns(order_rows(run.demands))
        self.calls = _RankColumns(order_rows(run.times))
        self.intervals = order_rows(run.intervals)
        self.interval_times = order_rows(run.interval_times)
        self._marks: dict[int, list[Mark]] = {}
        for mark in run.marks:
            self._marks.setdefault(mark.rank, []).append(mark)

    def marks(self, rank: int) -> list[Mark]:
        """Return the marks of a rank."""
        return self._marks.get(rank, [])

    def intervals_of(self, rank: int) -> list[_Interval]:
        """Return a rank's intervals of traffic, and of time in calls, sorted by end."""
        return sorted([*_sent_over_time(self.intervals, rank), *_times_over_time(self.interval_times, rank)], key=_end)


@dataclass(frozen=True, slots=True)
class _Interval:
    """Metrics of an interval: names and values."""

    begin_ns: int
    end_ns: int
    members: tuple[str, ...]
    values: tuple[int, ...]


def _end(interval: _Interval) -> int:
    return interval.end_ns


def _sent_over_time(intervals: Intervals, rank: int) -> Iterator[_Interval]:
    for row in _rows_of(intervals.rank, rank):
        members = otf2_names.interval_members(int(intervals.first_peer[row]), int(intervals.last_peer[row]))
        end_ns, sent = int(intervals.end_ns[row]), (int(intervals.bytes[row]), int(intervals.messages[row]))
        yield _Interval(int(intervals.begin_ns[row]), end_ns, members, (*sent, end_ns))


def _times_over_time(times: IntervalTimes, rank: int) -> Iterator[_Interval]:
    for row in _rows_of(times.rank, rank):
        begin_ns, end_ns = int(times.begin_ns[row]), int(times.end_ns[row])
        yield _Interval(begin_ns, end_ns, otf2_names.INTERVAL_TIME_MEMBERS, (int(times.time_ns[row]), end_ns))


def _rows_of(ranks: npt.NDArray[np.int32], rank: int) -> range:
    first, last = np.searchsorted(ranks, (rank, rank + 1)).tolist()
    return range(first, last)


def _write_over_time(
    location: Location, regions: Sequence[str], marks: Iterable[Mark], intervals: Iterable[_Interval]
) -> None:
    """Write marks and intervals in the order of time. An interval is written at its end."""
    moments = deque(intervals)
    for mark in marks:
        while moments and moments[0].end_ns <= mark.time_ns:
            _write_interval(location, moments.popleft())
        _write_mark(location, regions, mark)
    for moment in moments:
        _write_interval(location, moment)


def _write_interval(location: Location, interval: _Interval) -> None:
    location.advance(interval.end_ns)
    begin = np.array([interval.begin_ns], np.uint64)
    values = np.array([interval.values], np.uint64)
    location.numbered_metrics(otf2_names.INTERVAL_PARAMETER, begin, interval.members, values)


def _write_mark(location: Location, regions: Sequence[str], mark: Mark) -> None:
    location.advance(mark.time_ns)
    location.text_parameter(otf2_names.MARK_PARAMETER, mark.kind.name)
    location.text_parameter(otf2_names.MARK_REGION_PARAMETER, regions[mark.region])
    location.metric(otf2_names.MARK_MEMBERS, [getattr(mark, name) for name in otf2_names.MARK_MEMBERS])


def _write_totals(location: Location, definitions: Definitions, rows: _RowsByRank, rank: int) -> None:
    """Write the totals of each region and of each operation in a region, at the time of the rank's end."""
    times, transfers = rows.times.of_rank(rank), rows.transfers.of_rank(rank)
    counters, sizes, demands = rows.counters.of_rank(rank), rows.sizes.of_rank(rank), rows.demands.of_rank(rank)
    calls = rows.calls.of_rank(rank)
    operations: dict[int, dict[int, list[int]]] = {region: {} for (region,) in (*times, *transfers)}
    for region, operation, site in sorted({*counters, *sizes, *demands, *calls}):
        operations.setdefault(region, {}).setdefault(operation, []).append(site)
    for region in sorted(operations):
        location.enter_region(region)
        if (visited := times.get((region,))) is not None:
            for row in range(visited.start, visited.stop):
                values = [rows.times.take(name, slice(row, row + 1)).item() for name in otf2_names.TIME_MEMBERS]
                location.metric(otf2_names.TIME_MEMBERS, values)
        if (posted := transfers.get((region,))) is not None:
            _write_transfers(location, rows.transfers, posted)
        for operation, sites in operations[region].items():
            location.enter_operation(operation)
            for site in sites:
                key = region, operation, site
                if site:
                    location.number_parameter(otf2_names.SITE_PARAMETER, definitions.callpath(site))
                if (counted := counters.get(key)) is not None:
                    _write_counters(location, rows.counters, counted)
                if (sized := sizes.get(key)) is not None:
                    _write_sizes(location, rows.sizes, sized)
                if (called := calls.get(key)) is not None:
                    values = [rows.calls.take(name, called).item() for name in ("calls", "time_ns", "error_ns")]
                    location.metric(otf2_names.CALL_MEMBERS, values)
                if (asked := demands.get(key)) is not None:
                    partners = rows.demands.take("partner", asked)
                    numbers = np.stack([rows.demands.take(name, asked) for name in ("bytes", "calls")], axis=1)
                    location.numbered_metrics(otf2_names.DEMAND_PARAMETER, partners, otf2_names.DEMAND_MEMBERS, numbers)
            location.leave_operation(operation)
        location.leave_region(region)


def _write_transfers(location: Location, transfers: _RankColumns, rows: slice) -> None:
    opcodes = transfers.take("opcode", rows)
    numbers = np.stack([transfers.take(name, rows) for name in ("bytes", "messages")], axis=1)
    for opcode in np.unique(opcodes).tolist():
        chosen = opcodes == opcode
        pairs = transfers.take("pair", rows)[chosen]
        location.numbered_metrics(
            otf2_names.PAIR_PARAMETER, pairs, otf2_names.transfer_members(Opcode(opcode)), numbers[chosen]
        )


def _write_counters(location: Location, counters: _RankColumns, rows: slice) -> None:
    tags = np.stack([counters.take(name, rows) for name in ("direction", "kind", "source")], axis=1)
    peers = counters.take("peer", rows)
    numbers = np.stack([counters.take(name, rows) for name in ("bytes", "messages")], axis=1)
    # Equal tags are adjacent, since rows are sorted.
    bounds = [0, *(np.flatnonzero((tags[1:] != tags[:-1]).any(axis=1)) + 1).tolist(), len(tags)]
    for begin, end in itertools.pairwise(bounds):
        direction, kind, source = tags[begin].tolist()
        members = otf2_names.counter_members((Direction(direction), Kind(kind), Source(source)))
        parameter = otf2_names.PEER_PARAMETERS[Direction(direction)]
        location.numbered_metrics(parameter, peers[begin:end], members, numbers[begin:end])


def _write_sizes(location: Location, sizes: _RankColumns, rows: slice) -> None:
    tags = zip(sizes.take("direction", rows).tolist(), sizes.take("kind", rows).tolist(), strict=True)
    for (direction, kind), messages in zip(tags, sizes.take("messages", rows), strict=True):
        bins = np.flatnonzero(messages)
        bounds = np.array([otf2_names.lower_bound(size_bin) for size_bin in bins.tolist()], np.uint64)
        member = otf2_names.size_member(Direction(direction), Kind(kind))
        location.numbered_metrics(otf2_names.SIZE_PARAMETER, bounds, (member,), messages[bins, None])


class Location:
    """Collect the events of one rank; `close` writes the events.

    Attributes:
        begin_ns, time_ns: times of the first event and of the last event so far.
        events: number of written events.
    """

    def __init__(self, archive: Any, number: int, begin_ns: int, definitions: Definitions) -> None:
        self._definitions = definitions
        self._archive = archive
        self._otf2 = load_otf2()
        self._local = self._otf2.call("Archive_GetDefWriter", archive, number)
        self._writer = self._otf2.call("Archive_GetEvtWriter", archive, number)
        self._records: list[npt.NDArray[np.void]] = []
        self._values: list[npt.NDArray[np.uint64]] = []
        self.begin_ns = self.time_ns = begin_ns
        self.events = 0

    def advance(self, time_ns: int) -> None:
        """Advance to a time. Ignore an earlier time, because times in an archive never decrease."""
        self.time_ns = max(self.time_ns, time_ns)

    def enter_region(self, region: int) -> None:
        """Add an event: the rank enters the region with this index in the profile."""
        self._add(ENTER, region)

    def leave_region(self, region: int) -> None:
        """Add an event: the rank leaves the region with this index in the profile."""
        self._add(LEAVE, region)

    def enter_operation(self, operation: int) -> None:
        """Add an event: the rank enters the operation with this index in the profile."""
        self.enter_region(self._definitions.operation(operation))

    def leave_operation(self, operation: int) -> None:
        """Add an event: the rank leaves the operation with this index in the profile."""
        self.leave_region(self._definitions.operation(operation))

    def text_parameter(self, name: str, value: str) -> None:
        """Add a parameter with a text value."""
        parameter = self._definitions.parameter(name, self._otf2.lib.OTF2_PARAMETER_TYPE_STRING)
        self._add(TEXT, parameter, [self._definitions.text(value)])

    def number_parameter(self, name: str, value: int) -> None:
        """Add a parameter with a number as its value."""
        self._add(NUMBER, self._definitions.parameter(name, self._otf2.lib.OTF2_PARAMETER_TYPE_UINT64), [value])

    def metric(self, members: Sequence[str], values: Sequence[int]) -> None:
        """Add a metric: names and values."""
        self._add(METRIC, self._definitions.metric(members), values)

    def numbered_metrics(
        self, name: str, parameters: npt.NDArray[Any], members: Sequence[str], numbers: npt.NDArray[np.uint64]
    ) -> None:
        """Add metrics, each after a parameter.

        Args:
            name: name of the parameters.
            parameters: values of the parameters, [metric].
            members: names of a metric's values.
            numbers: values of the metrics, [metric, member].
        """
        records = np.empty((len(parameters), 2), EVENT)
        records["time_ns"] = self.time_ns
        records["kind"] = NUMBER, METRIC
        records["values"] = 1, len(members)
        parameter = self._definitions.parameter(name, self._otf2.lib.OTF2_PARAMETER_TYPE_UINT64)
        records["reference"] = parameter, self._definitions.metric(members)
        self._records.append(records.ravel())
        self._values.append(np.concatenate([parameters[:, None].astype(np.uint64), numbers], axis=1).ravel())

    def _add(self, kind: int, reference: int, values: Sequence[int] = ()) -> None:
        self._records.append(np.array([(self.time_ns, reference, kind, len(values))], EVENT))
        self._values.append(np.array(values, np.uint64))

    def close(self) -> None:
        """Write all events, and close the location's file."""
        none = np.empty(0, EVENT), np.empty(0, np.uint64)
        events = Events(np.concatenate([none[0], *self._records]), np.concatenate([none[1], *self._values]))
        self._records.clear()
        self._values.clear()
        write_events(self._writer, events)
        self.events = len(events.records)
        self._otf2.call("Archive_CloseDefWriter", self._archive, self._local)
        self._otf2.call("Archive_CloseEvtWriter", self._archive, self._writer)


# -- definitions -------------------------------------------------------------------------------------------------------

_NS_PER_S = 10**9

_Record = tuple[Any, ...]
"""Name of a record in `libraries.RECORDS`, and the record's columns."""

_Callers = tuple[Frame, ...] | tuple[Site, ...]


class Written(Protocol):
    """The written events of a rank.

    Attributes:
        begin_ns, time_ns: times of the first and of the last event.
    """

    begin_ns: int
    time_ns: int
    events: int


class Definitions:
    """Number the texts, parameters, metrics and call paths of events; write the definitions at the end."""

    def __init__(self, run: Profile) -> None:
        self._otf2 = load_otf2().lib
        self._texts: dict[str, int] = {"": 0}
        self._parameters: dict[str, tuple[int, Any]] = {}
        self._metrics: dict[tuple[str, ...], int] = {}
        self._regions = len(run.regions)
        self._operations = len(run.operations)
        self._callers = _number_callers(run.sites)

    def text(self, text: str) -> int:
        """Return the OTF2 reference of a text."""
        return self._texts.setdefault(text, len(self._texts))

    def parameter(self, name: str, kind: Any) -> int:
        """Return the OTF2 reference of a parameter; `kind` is the parameter's type."""
        return self._parameters.setdefault(name, (len(self._parameters), kind))[0]

    def metric(self, members: Sequence[str]) -> int:
        """Return the OTF2 reference of a metric; `members` are the names of the metric's values."""
        return self._metrics.setdefault(tuple(members), len(self._metrics))

    def operation(self, operation: int) -> int:
        """Return the number of an operation among OTF2's regions, where operations follow the profile's regions."""
        return self._regions + operation

    def callpath(self, site: int) -> int:
        """Return the OTF2 reference of the call path that ends at site number `site`, counted from 1."""
        return len(self._callers) + site - 1

    def write(self, archive: Any, run: Profile, locations: Sequence[Written]) -> None:
        """Write all definitions. A definition follows the definitions to which it refers."""
        # Make all records before writing: this collects all texts, which are the first definitions to write.
        tree, ranks, regions = self._system_tree(run), self._ranks(run, locations), self._regions_of(run)
        sites = list(self._sites(run))  # call before `_values`: `_sites` adds parameters, which `_values` yields
        records = [*tree, *ranks, *regions, *self._values(), *sites]
        call = load_otf2().call
        writer = call("Archive_GetGlobalDefWriter", archive)
        begin = min((location.begin_ns for location in locations), default=0)
        end = max((location.time_ns for location in locations), default=0)
        texts = (("String", number, text.encode()) for text, number in self._texts.items())
        for name, *columns in [("ClockProperties", _NS_PER_S, begin, end - begin, begin), *texts, *records]:
            call(f"GlobalDefWriter_Write{name}", writer, *columns)
        call("Archive_CloseGlobalDefWriter", archive, writer)

    def _system_tree(self, run: Profile) -> Iterator[_Record]:
        node, add, add_property = 0, "SystemTreeNode", "SystemTreeNodeProperty"
        yield add, node, self.text("job"), self.text("machine"), self._otf2.OTF2_UNDEFINED_REFERENCE
        properties = [
            (otf2_names.VERSION_PROPERTY, otf2_names.VERSION),
            (otf2_names.SAMPLES_PROPERTY, len(run.collective_samples.rank) + len(run.message_samples.rank)),
            *to_properties(run, otf2_names.NOT_OF_RUN),
        ]
        yield from self._properties(add_property, node, properties)
        hosts = range(1, len(run.hosts) + 1)
        for node, host in zip(hosts, run.hosts, strict=True):
            yield add, node, self.text(host.name), self.text(otf2_names.HOST_CLASS), 0
        for parent, host in zip(hosts, run.hosts, strict=True):
            for port in host.ports:
                node += 1
                yield add, node, self.text(f"{port.device} port {port.port}"), self.text(otf2_names.PORT_CLASS), parent
                yield from self._properties(add_property, node, to_properties(port))
            for interface in host.interfaces:
                node += 1
                yield add, node, self.text(interface.name), self.text(otf2_names.INTERFACE_CLASS), parent
                yield from self._properties(add_property, node, to_properties(interface))
        for pair in run.pairs:
            node += 1
            name = f"{pair.device} port {pair.port} to {pair.remote_lid or pair.remote_gid}"
            yield add, node, self.text(name), self.text(otf2_names.PAIR_CLASS), 1 + pair.host
            yield from self._properties(add_property, node, to_properties(pair, otf2_names.NOT_OF_PAIR))

    def _ranks(self, run: Profile, locations: Sequence[Written]) -> Iterator[_Record]:
        for number, (rank, location) in enumerate(zip(run.ranks, locations, strict=True)):
            name, node = self.text(f"rank {rank.rank}"), 1 + rank.host
            process = self._otf2.OTF2_LOCATION_GROUP_TYPE_PROCESS, node, self._otf2.OTF2_UNDEFINED_REFERENCE
            yield "LocationGroup", number, name, *process
            thread = self._otf2.OTF2_LOCATION_TYPE_CPU_THREAD, location.events, number
            yield "Location", number, name, *thread
            properties = to_properties(rank, otf2_names.NOT_OF_RANK)
            yield from self._properties("LocationProperty", number, properties)

    def _regions_of(self, run: Profile) -> Iterator[_Record]:
        user, mpi = self._otf2.OTF2_PARADIGM_USER, self._otf2.OTF2_PARADIGM_MPI
        named = [(name, user) for name in run.regions] + [(name, mpi) for name in run.operations]
        for number, (name, paradigm) in enumerate(named):
            text = self.text(name)
            role, flags = self._otf2.OTF2_REGION_ROLE_CODE, self._otf2.OTF2_REGION_FLAG_NONE
            yield "Region", number, text, text, 0, role, paradigm, flags, 0, 0, 0

    def _sites(self, run: Profile) -> Iterator[_Record]:
        """Yield a source code location for each site, and a call path that ends with the site's function."""
        for chain, number in self._callers.items():
            caller = chain[0]
            if isinstance(caller, Site):
                yield from self._callpath(number, chain[1:], _frame_of(caller))
                yield from self._place(number, caller, otf2_names.CALLER_OBJECT_PARAMETER)
            else:
                yield from self._callpath(number, chain[1:], caller)
        for number, site in enumerate(run.sites):
            callpath = self.callpath(number + 1)
            yield from self._callpath(callpath, _callers_of(site), _frame_of(site))
            yield "SourceCodeLocation", number, self.text(site.file), site.line
            yield from self._place(callpath, site, otf2_names.OBJECT_PARAMETER)

    def _place(self, callpath: int, site: Site, object_parameter: str) -> Iterator[_Record]:
        """Yield the properties of a site's call path: the data that the site's OTF2 region cannot contain."""
        texts = {object_parameter: site.object, otf2_names.NAME_PARAMETER: site.name}
        texts |= {otf2_names.BUILD_ID_PARAMETER: site.build_id} if site.build_id else {}
        for name, text in texts.items():
            parameter = self.parameter(name, self._otf2.OTF2_PARAMETER_TYPE_STRING)
            yield "CallpathParameter", callpath, parameter, *self._value(text)
        parameter = self.parameter(otf2_names.ADDRESS_PARAMETER, self._otf2.OTF2_PARAMETER_TYPE_UINT64)
        yield "CallpathParameter", callpath, parameter, *self._value(site.address)

    def _callpath(self, number: int, callers: _Callers, frame: Frame) -> Iterator[_Record]:
        region = self._regions + self._operations + number
        function, file = self.text(frame.function), self.text(frame.file)
        compiled = (
            self._otf2.OTF2_REGION_ROLE_FUNCTION,
            self._otf2.OTF2_PARADIGM_COMPILER,
            self._otf2.OTF2_REGION_FLAG_NONE,
        )
        yield "Region", region, function, function, 0, *compiled, file, frame.line, 0
        parent = self._callers.get(callers, self._otf2.OTF2_UNDEFINED_REFERENCE)
        yield "Callpath", number, parent, region

    def _values(self) -> Iterator[_Record]:
        member, lib = 0, self._otf2
        for members, number in self._metrics.items():
            for name in members:
                kind = (
                    lib.OTF2_METRIC_TYPE_OTHER,
                    lib.OTF2_METRIC_ABSOLUTE_POINT,
                    lib.OTF2_TYPE_UINT64,
                    lib.OTF2_BASE_DECIMAL,
                    0,
                )
                unit = self.text("ns" if name.endswith("_ns") else "B" if "bytes" in name else "#")
                yield "MetricMember", member, self.text(name), 0, *kind, unit
                member += 1
            numbers = list(range(member - len(members), member))
            when = lib.OTF2_METRIC_ASYNCHRONOUS, lib.OTF2_RECORDER_KIND_CPU
            yield "MetricClass", number, len(numbers), numbers, *when
        for name, (number, kind) in self._parameters.items():
            yield "Parameter", number, self.text(name), kind

    def _properties(self, record: str, owner: int, properties: Iterable[tuple[str, Value]]) -> Iterator[_Record]:
        for name, value in properties:
            yield record, owner, self.text(name), *self._value(value)

    def _value(self, value: Value) -> tuple[int, int]:
        """Return the type of a value, and the value as 64 bits, for `otf2_names.from_bits`."""
        if isinstance(value, str):
            return self._otf2.OTF2_TYPE_STRING, otf2_names.to_bits("I", self.text(value))
        if isinstance(value, float):
            return self._otf2.OTF2_TYPE_DOUBLE, otf2_names.to_bits("d", value)
        if value < 0:
            return self._otf2.OTF2_TYPE_INT64, otf2_names.to_bits("q", value)
        return self._otf2.OTF2_TYPE_UINT64, otf2_names.to_bits("Q", value)


def _callers_of(site: Site) -> _Callers:
    """Return a site's callers, innermost first; without callers, the functions into which the site was inlined."""
    return site.callers or site.inlined_in


def _frame_of(site: Site) -> Frame:
    return Frame(site.function, site.file, site.line)


def _number_callers(sites: Iterable[Site]) -> dict[_Callers, int]:
    """Number the call paths of callers. A caller has a lower number than the functions that it calls."""
    numbers: dict[_Callers, int] = {}
    for site in sites:
        callers = _callers_of(site)
        for begin in reversed(range(len(callers))):
            numbers.setdefault(callers[begin:], len(numbers))
    return numbers
