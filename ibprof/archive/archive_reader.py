# SPDX-License-Identifier: Apache-2.0
"""Read a profile from the definitions and events of an OTF2 archive that ibprof wrote."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.archive import otf2_names
from ibprof.archive.otf2_names import Value, from_bits, from_properties
from ibprof.errors import InputError
from ibprof.native.libraries import (
    ENTER,
    EVENT,
    LEAVE,
    METRIC,
    NUMBER,
    RECORDS,
    TEXT,
    Events,
    Otf2Library,
    load_otf2,
    read_events,
)
from ibprof.profile.profile_data import (
    SIZE_BINS,
    CallTimes,
    Counters,
    Demands,
    Host,
    Interface,
    Intervals,
    IntervalTimes,
    Mark,
    MarkKind,
    MessageSizes,
    Port,
    PortPair,
    Profile,
    Rank,
    RegionTimes,
    Site,
    Transfers,
)
from ibprof.profile.profile_rows import COLUMN_TYPES, join_rows, order_rows
from ibprof.profile.row_arrays import Columns, RowArrays, Rows
from ibprof.sites.code_location import Frame

_BATCH_EVENTS = 1 << 20


Indices = npt.NDArray[np.intp]

_LOWER_BOUNDS = np.array([otf2_names.lower_bound(size_bin) for size_bin in range(SIZE_BINS)], np.uint64)


def read_trace(path: Path) -> tuple[Profile, int | None]:
    """Return a profile without samples, and the archive's number of samples (None for archives of 0.1.0).

    Args:
        path: path of the archive's anchor.

    Raises:
        InputError: another tool or a newer version wrote the archive.
        Otf2Error: the archive cannot be read.
        LookupError, TypeError, ValueError: the archive lacks data that ibprof writes.
    """
    with _open_archive(path) as (otf2, archive):
        return _read_profile(path, otf2, archive)


@contextmanager
def _open_archive(path: Path) -> Iterator[tuple[Otf2Library, Any]]:
    otf2 = load_otf2()
    archive = otf2.call("Reader_Open", os.fsencode(path))
    try:
        otf2.call("Reader_SetSerialCollectiveCallbacks", archive)
        yield otf2, archive
    finally:
        otf2.lib.OTF2_Reader_Close(archive)


def _read_profile(path: Path, otf2: Otf2Library, archive: Any) -> tuple[Profile, int | None]:
    definitions = read_definitions(otf2, archive)
    nodes = list(definitions.nodes.values())
    version = nodes[0].properties.get(otf2_names.VERSION_PROPERTY) if nodes else None
    if version is None:
        raise InputError(path, None, "a profile of ibprof", "an OTF2 archive of another tool")
    if version != otf2_names.VERSION:
        raise InputError(path, None, f"profile version {otf2_names.VERSION}", str(version))
    host_nodes = {
        number: node for number, node in definitions.nodes.items() if node.class_name == otf2_names.HOST_CLASS
    }
    ports: dict[int, list[Port]] = {number: [] for number in host_nodes}
    interfaces: dict[int, list[Interface]] = {number: [] for number in host_nodes}
    for node in nodes:
        if node.class_name == otf2_names.PORT_CLASS:
            ports[node.parent].append(Port(**from_properties(Port, node.properties.get)))
        elif node.class_name == otf2_names.INTERFACE_CLASS:
            interfaces[node.parent].append(Interface(**from_properties(Interface, node.properties.get)))
    number_of = {node: host for host, node in enumerate(host_nodes)}
    pairs = [
        PortPair(host=number_of[node.parent], **from_properties(PortPair, node.properties.get, otf2_names.NOT_OF_PAIR))
        for node in nodes
        if node.class_name == otf2_names.PAIR_CLASS
    ]
    locations = [definitions.locations[number] for number in range(len(definitions.locations))]
    ranks = [
        Rank(
            host=number_of[location.node],
            **from_properties(Rank, location.properties.get, otf2_names.NOT_OF_RANK),
        )
        for location in locations
    ]
    regions = [region.name for region in definitions.regions.values() if region.paradigm == otf2.lib.OTF2_PARADIGM_USER]
    operations = [
        region.name for region in definitions.regions.values() if region.paradigm == otf2.lib.OTF2_PARADIGM_MPI
    ]
    sites = list(_read_sites(definitions))
    names = _EventNames(definitions, regions, operations, len(sites))
    rows = _ProfileRows(names)
    rank_numbers = np.array([rank.rank for rank in ranks], np.int32)
    counts = [location.number_of_events for location in locations]
    most_values = max(map(len, names.metrics), default=0) + 1
    for some, events in _read_events(path, otf2, archive, counts, most_values):
        rows.add(np.repeat(rank_numbers[some], counts[some]), events)
    run = Profile(
        hosts=tuple(
            Host(node.name, tuple(ports[number]), tuple(interfaces[number])) for number, node in host_nodes.items()
        ),
        ranks=tuple(sorted(ranks, key=lambda rank: rank.rank)),
        regions=tuple(regions),
        operations=tuple(operations),
        counters=rows.join(Counters),
        region_times=rows.join(RegionTimes),
        sizes=rows.sizes(),
        marks=tuple(sorted(rows.marks, key=lambda mark: mark.rank)),
        pairs=tuple(pairs),
        transfers=rows.join(Transfers),
        intervals=rows.join(Intervals),
        interval_times=rows.join(IntervalTimes),
        demands=rows.join(Demands),
        times=rows.join(CallTimes),
        sites=tuple(sites),
        **from_properties(Profile, nodes[0].properties.get, otf2_names.NOT_OF_RUN),
    )
    samples = nodes[0].properties.get(otf2_names.SAMPLES_PROPERTY)
    return run, None if samples is None else int(samples)


@dataclass(frozen=True, slots=True)
class ArchiveOrigin:
    """The run of an archive: the job's name, the command, and (rank, start in ns) of each process."""

    job: str
    command: str
    starts: frozenset[tuple[int, int]]


def read_origin(path: Path) -> ArchiveOrigin:
    """Return the run of an archive, reading only the archive's definitions.

    Args:
        path: path of the archive's anchor.

    Raises:
        Otf2Error: the archive cannot be read.
        LookupError, TypeError, ValueError: the archive lacks data that ibprof writes.
    """
    with _open_archive(path) as (otf2, archive):
        definitions = read_definitions(otf2, archive)
    root, *_ = definitions.nodes.values()
    job, command = (str(root.properties[f"{otf2_names.PREFIX}{name}"]) for name in ("job", "command"))
    ranks = [location.properties for location in definitions.locations.values()]
    starts = {tuple(int(rank[f"{otf2_names.PREFIX}{name}"]) for name in ("rank", "start_ns")) for rank in ranks}
    return ArchiveOrigin(job, command, frozenset((rank, start) for rank, start in starts))


def _read_sites(definitions: TraceDefinitions) -> Iterator[Site]:
    for callpath in definitions.callpaths.values():
        # Skip the call paths of callers: only the call path of a site has `OBJECT_PARAMETER`.
        if (loaded := callpath.properties.get(otf2_names.OBJECT_PARAMETER)) is None:
            continue
        site, callers = _read_place(callpath, str(loaded)), list(_read_callers(definitions, callpath))
        yield replace(
            site,
            inlined_in=tuple(each for each in callers if isinstance(each, Frame)),
            callers=tuple(each for each in callers if isinstance(each, Site)),
        )


def _read_place(callpath: Callpath, loaded: str) -> Site:
    find, (function, file, line) = callpath.properties.get, _read_frame(callpath.region)
    return Site(
        file,
        line,
        function,
        loaded,
        address=int(find(otf2_names.ADDRESS_PARAMETER) or 0),
        build_id=str(find(otf2_names.BUILD_ID_PARAMETER) or ""),
        name=str(find(otf2_names.NAME_PARAMETER) or ""),
    )


def _read_callers(definitions: TraceDefinitions, callpath: Callpath) -> Iterator[Frame | Site]:
    """Yield a site's recorded callers; without recorded callers, the functions into which the site was inlined."""
    while (caller := definitions.callpaths.get(callpath.parent)) is not None:
        callpath = caller
        loaded = callpath.properties.get(otf2_names.CALLER_OBJECT_PARAMETER)
        yield _read_frame(callpath.region) if loaded is None else _read_place(callpath, str(loaded))


def _read_frame(region: DefinedRegion) -> Frame:
    return Frame(region.name, region.file, region.line)


def _read_events(
    path: Path, otf2: Otf2Library, archive: Any, counts: Sequence[int], most_values: int
) -> Iterator[tuple[slice, Events]]:
    """Yield the events of all locations, several locations at a time.

    Only some files are open at once: thousands of ranks would exceed the limit of open files.

    Args:
        counts: number of events of each location.
        most_values: most values that one event has.

    Yields:
        Slice of consecutive locations, and all events of these locations.

    Raises:
        ValueError: the number of events of a location is wrong.
        Otf2Error: a file cannot be read.
    """
    for number, count in enumerate(counts):
        file = path.with_suffix("") / f"{number}.evt"
        # Each event takes at least one byte of the file. If the file is shorter, the number of events is damaged, and
        # would allocate too much memory.
        if not file.is_file() or count > file.stat().st_size:
            raise ValueError(f"no file with {count} events of location {number}")
        otf2.call("Reader_SelectLocation", archive, number)
    otf2.call("Reader_OpenDefFiles", archive)
    otf2.call("Reader_OpenEvtFiles", archive)
    begin = 0
    while begin < len(counts):
        end = begin + 1
        while end < len(counts) and sum(counts[begin : end + 1]) <= _BATCH_EVENTS:
            end += 1
        yield slice(begin, end), _read_batch(otf2, archive, begin, counts[begin:end], most_values)
        begin = end
    otf2.call("Reader_CloseEvtFiles", archive)
    otf2.call("Reader_CloseDefFiles", archive)


def _read_batch(otf2: Otf2Library, archive: Any, first: int, counts: Sequence[int], most_values: int) -> Events:
    total = sum(counts)
    batch = Events(np.empty(total, EVENT), np.empty(total * most_values, np.uint64))
    read = values = 0
    for number, expected in enumerate(counts, first):
        local = otf2.call("Reader_GetDefReader", archive, number)
        otf2.call("Reader_ReadAllLocalDefinitions", archive, local, otf2.ffi.new("uint64_t *"))
        otf2.call("Reader_CloseDefReader", archive, local)
        events = otf2.call("Reader_GetEvtReader", archive, number)
        before = read
        read, values = read_events(archive, events, batch, read, values)
        otf2.call("Reader_CloseEvtReader", archive, events)
        if read - before != expected:
            raise ValueError(f"{read - before} of {expected} events of location {number}")
    return Events(batch.records, batch.values[:values])


class _EventNames:
    """Definitions that events refer to by index."""

    def __init__(
        self, definitions: TraceDefinitions, regions: Sequence[str], operations: Sequence[str], sites: int
    ) -> None:
        self.regions = list(regions)
        self.operations = len(operations)
        self.sites = sites
        # The call paths of callers come first, then the call paths of sites.
        self.callers = len(definitions.callpaths) - sites
        self.texts = definitions.texts
        self.parameters = list(definitions.parameters.values())
        self.metrics = list(definitions.metrics.values())


class _Batch:
    """Events of several ranks, with the region, operation, site and parameters of each event."""

    def __init__(self, names: _EventNames, rank: npt.NDArray[np.int32], events: Events) -> None:
        self.rank = rank
        self._names = names
        self.kind, self.reference = events.records["kind"], events.records["reference"]
        self.lengths = events.records["values"]
        self._values = events.values
        self._first_value = np.cumsum(self.lengths, dtype=np.int64) - self.lengths
        self._depth = np.cumsum((self.kind == ENTER).astype(np.int64) - (self.kind == LEAVE))
        last_of_rank = np.flatnonzero(np.diff(rank, append=-1))
        if self._depth.min(initial=0) < 0 or self._depth.max(initial=0) > 2 or self._depth[last_of_rank].any():
            raise ValueError("nested enter and leave events of regions and operations")

    def entered(self, depth: int, rows: Indices) -> npt.NDArray[np.int64]:
        """Return for each event in `rows` the OTF2 number of the region that was entered last at nesting `depth`."""
        if (self._depth[rows] < depth).any():
            raise ValueError("counters inside a region and an operation")
        begins = np.flatnonzero((self.kind == ENTER) & (self._depth == depth))
        return self.reference[begins[np.searchsorted(begins, rows) - 1]].astype(np.int64)

    def region(self, rows: Indices) -> npt.NDArray[np.int64]:
        """Return the region of each event in `rows`."""
        region = self.entered(1, rows)
        if (region >= len(self._names.regions)).any():
            raise LookupError("a region of the program")
        return region

    def operation(self, rows: Indices) -> npt.NDArray[np.int64]:
        """Return the operation of each event in `rows`, as an index into the profile's operations."""
        operation = self.entered(2, rows) - len(self._names.regions)
        if (operation < 0).any() or (operation >= self._names.operations).any():
            raise LookupError("an MPI operation")
        return operation

    def site(self, rows: Indices) -> npt.NDArray[np.int64]:
        """Return the call site of each event in `rows` inside an operation, 0 if unknown."""
        numbers = [number for number, known in enumerate(self._names.parameters) if known == otf2_names.SITE_PARAMETER]
        given = np.flatnonzero((self.kind == NUMBER) & np.isin(self.reference, numbers))
        begins = np.flatnonzero((self.kind == ENTER) & (self._depth == 2))
        last = np.searchsorted(given, rows) - 1
        if not len(given):
            return np.zeros(len(rows), np.int64)
        is_given = (last >= 0) & (given[last] > begins[np.searchsorted(begins, rows) - 1])
        callpath = self._values[self._first_value[given[last]]]
        if (callpath[is_given] - np.uint64(self._names.callers) >= self._names.sites).any():
            raise LookupError("a call path of a call site")
        return np.where(is_given, callpath.astype(np.int64) - self._names.callers + 1, 0)

    def parameter(self, rows: Indices, distance: int, kind: int, name: str) -> npt.NDArray[np.uint64]:
        """Return the value of the parameter event `name` that is `distance` events before each event in `rows`."""
        ahead = rows - distance
        numbers = [number for number, known in enumerate(self._names.parameters) if known == name]
        if (ahead < 0).any() or (self.kind[ahead] != kind).any() or not np.isin(self.reference[ahead], numbers).all():
            raise LookupError(f"parameter {name!r} in front of its metric")
        values: npt.NDArray[np.uint64] = self._values[self._first_value[ahead]]
        return values

    def numbers(self, rows: Indices, length: int) -> npt.NDArray[np.uint64]:
        """Return the `length` values of each metric event in `rows`: [row, value]."""
        if (self.lengths[rows] != length).any():
            raise ValueError(f"{length} numbers of a metric")
        values: npt.NDArray[np.uint64] = self._values[self._first_value[rows, None] + np.arange(length)]
        return values


class _ProfileRows:
    """Collect the rows of a profile from the events of its ranks."""

    def __init__(self, names: _EventNames) -> None:
        self.marks: list[Mark] = []
        self._names = names
        self._parts: defaultdict[type[RowArrays], list[Columns]] = defaultdict(list)

    def add(self, rank: npt.NDArray[np.int32], events: Events) -> None:
        """Add all events of some ranks; `rank` has the rank of each event."""
        batch = _Batch(self._names, rank, events)
        metrics = np.flatnonzero(batch.kind == METRIC)
        for number in np.unique(batch.reference[metrics]).tolist():
            self._add_metric(batch, metrics[batch.reference[metrics] == number], self._names.metrics[number])

    def _add_metric(self, batch: _Batch, rows: Indices, members: tuple[str, ...]) -> None:
        numbers = batch.numbers(rows, len(members))
        if members == otf2_names.MARK_MEMBERS:
            self._add_marks(batch, rows, numbers)
            return
        if members[0].startswith(otf2_names.INTERVAL_MEMBER):
            first_peer, last_peer = otf2_names.parse_interval_member(members[0])
            times = {
                "begin_ns": batch.parameter(rows, 1, NUMBER, otf2_names.INTERVAL_PARAMETER),
                "end_ns": numbers[:, 2],
            }
            sent = {"bytes": numbers[:, 0], "messages": numbers[:, 1]}
            peers = _tag(rows, first_peer=first_peer, last_peer=last_peer)
            self._parts[Intervals].append({"rank": batch.rank[rows]} | times | peers | sent)
            return
        if members == otf2_names.INTERVAL_TIME_MEMBERS:
            begin_ns = batch.parameter(rows, 1, NUMBER, otf2_names.INTERVAL_PARAMETER)
            inside: Columns = {"rank": batch.rank[rows], "begin_ns": begin_ns}
            self._parts[IntervalTimes].append(inside | {"end_ns": numbers[:, 1], "time_ns": numbers[:, 0]})
            return
        row: Columns = {"rank": batch.rank[rows], "region": batch.region(rows)}
        if members == otf2_names.TIME_MEMBERS:
            self._parts[RegionTimes].append(row | dict(zip(members, numbers.T, strict=True)))
            return
        if members[0].startswith(otf2_names.TRANSFER_MEMBER):
            opcode = otf2_names.parse_transfer_member(members[0])
            pair = batch.parameter(rows, 1, NUMBER, otf2_names.PAIR_PARAMETER)
            posted = {"pair": pair, "bytes": numbers[:, 0], "messages": numbers[:, 1]}
            self._parts[Transfers].append(row | _tag(rows, opcode=opcode) | posted)
            return
        row["operation"], row["site"] = batch.operation(rows), batch.site(rows)
        if members == otf2_names.DEMAND_MEMBERS:
            partner = batch.parameter(rows, 1, NUMBER, otf2_names.DEMAND_PARAMETER)
            self._parts[Demands].append(row | {"partner": partner, "bytes": numbers[:, 0], "calls": numbers[:, 1]})
        elif members == otf2_names.CALL_MEMBERS:
            self._parts[CallTimes].append(row | dict(zip(("calls", "time_ns", "error_ns"), numbers.T, strict=True)))
        elif members[0].startswith(otf2_names.SIZE_MEMBER):
            direction, kind = otf2_names.parse_size_member(members[0])
            bound = batch.parameter(rows, 1, NUMBER, otf2_names.SIZE_PARAMETER)
            sized = {"size_bin": np.searchsorted(_LOWER_BOUNDS, bound, "right") - 1, "messages": numbers[:, 0]}
            self._parts[MessageSizes].append(row | _tag(rows, direction=direction, kind=kind) | sized)
        else:
            direction, kind, source = otf2_names.parse_counter_member(members[0])
            peer = batch.parameter(rows, 1, NUMBER, otf2_names.PEER_PARAMETERS[direction])
            counted = {"peer": peer, "bytes": numbers[:, 0], "messages": numbers[:, 1]}
            self._parts[Counters].append(row | _tag(rows, direction=direction, kind=kind, source=source) | counted)

    def _add_marks(self, batch: _Batch, rows: Indices, numbers: npt.NDArray[np.uint64]) -> None:
        region_of = {name: number for number, name in enumerate(self._names.regions)}
        ranks = batch.rank[rows].tolist()
        kinds = batch.parameter(rows, 2, TEXT, otf2_names.MARK_PARAMETER).tolist()
        regions = batch.parameter(rows, 1, TEXT, otf2_names.MARK_REGION_PARAMETER).tolist()
        texts = self._names.texts
        for rank, kind, region, values in zip(ranks, kinds, regions, numbers.tolist(), strict=True):
            made = dict(zip(otf2_names.MARK_MEMBERS, values, strict=True))
            self.marks.append(Mark(rank=rank, kind=MarkKind[texts[kind]], region=region_of[texts[region]], **made))

    def join(self, made: type[Rows]) -> Rows:
        """Return all rows of a class, and free the collected parts: two copies of the rows may exceed the memory."""
        return join_rows(made, self._parts[made])

    def sizes(self) -> MessageSizes:
        """Return the message counts by size."""
        names = ("rank", "region", "operation", "site", "direction", "kind")
        columns = {name: _take_column(self._parts[MessageSizes], name) for name in (*names, "size_bin", "messages")}
        keys = np.stack([columns[name].astype(np.int64) for name in names], axis=1)
        found, row = np.unique(keys, axis=0, return_inverse=True)
        messages = np.zeros((len(found), SIZE_BINS), np.uint64)
        messages[row.ravel(), columns["size_bin"].astype(np.intp)] = columns["messages"]
        typed = {name: found[:, column].astype(COLUMN_TYPES[name]) for column, name in enumerate(names)}
        return order_rows(MessageSizes(**typed, messages=messages))


def _tag(rows: Indices, **numbers: int) -> Columns:
    return {name: np.full(len(rows), number, COLUMN_TYPES[name]) for name, number in numbers.items()}


def _take_column(parts: Sequence[Columns], name: str) -> npt.NDArray[Any]:
    """Join the parts of a column, and remove the column from `parts`."""
    return np.concatenate([np.empty(0, COLUMN_TYPES.get(name, np.uint64)), *(part.pop(name) for part in parts)])


# -- definitions -------------------------------------------------------------------------------------------------------

_Row = tuple[Any, ...]


Properties = dict[str, Value]


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of the system tree. `parent` is the parent's number; an unused number for the root."""

    name: str
    class_name: str
    parent: int
    properties: Properties


@dataclass(frozen=True, slots=True)
class DefinedLocation:
    """A location; `node` is the tree node of the location's group."""

    node: int
    number_of_events: int
    properties: Properties


@dataclass(frozen=True, slots=True)
class DefinedRegion:
    """A region of the program, an operation, or a function."""

    name: str
    paradigm: int
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Callpath:
    """A call path. `parent` is the number of the caller's call path; an unused number without a caller."""

    parent: int
    region: DefinedRegion
    properties: Properties


@dataclass(frozen=True, slots=True)
class TraceDefinitions:
    """Definitions by number, in the order of the archive."""

    texts: dict[int, str] = field(default_factory=dict)
    nodes: dict[int, TreeNode] = field(default_factory=dict)
    locations: dict[int, DefinedLocation] = field(default_factory=dict)
    regions: dict[int, DefinedRegion] = field(default_factory=dict)
    callpaths: dict[int, Callpath] = field(default_factory=dict)
    metrics: dict[int, tuple[str, ...]] = field(default_factory=dict)
    parameters: dict[int, str] = field(default_factory=dict)


def read_definitions(otf2: Otf2Library, archive: Any) -> TraceDefinitions:
    """Read the global definitions.

    Raises:
        Otf2Error: the definitions cannot be read.
        LookupError, ValueError: the definitions contradict each other.
    """
    rows = _read_rows(otf2, archive)
    if not rows["ClockProperties"]:
        raise LookupError("the clock of the archive")
    # `RECORDS` explains the columns of rows.
    texts = _number((row[0], row[1].decode()) for row in rows["String"])
    node_properties = _properties(otf2, texts, rows["SystemTreeNodeProperty"])
    rank_properties = _properties(otf2, texts, rows["LocationProperty"])
    parameters = _number((number, texts[name]) for number, name, _ in rows["Parameter"])
    values = _properties(otf2, texts, rows["CallpathParameter"], parameters)
    groups = _number((row[0], row[3]) for row in rows["LocationGroup"])
    regions = _number((row[0], DefinedRegion(texts[row[1]], row[5], texts[row[7]], row[8])) for row in rows["Region"])
    members = _number((row[0], texts[row[1]]) for row in rows["MetricMember"])
    return TraceDefinitions(
        texts,
        _number(
            (number, TreeNode(texts[name], texts[class_name], parent, node_properties.get(number, {})))
            for number, name, class_name, parent in rows["SystemTreeNode"]
        ),
        _number(
            (number, DefinedLocation(groups[group], events, rank_properties.get(number, {})))
            for number, _, _, events, group in rows["Location"]
        ),
        regions,
        _number(
            (number, Callpath(parent, regions[region], values.get(number, {})))
            for number, parent, region in rows["Callpath"]
        ),
        _number((row[0], tuple(members[member] for member in row[2])) for row in rows["MetricClass"]),
        parameters,
    )


def _read_rows(otf2: Otf2Library, archive: Any) -> dict[str, list[_Row]]:
    """Return the definitions of each kind in `RECORDS`; a definition is a tuple of its fields."""
    ffi, call = otf2.ffi, otf2.call
    rows: dict[str, list[_Row]] = {name: [] for name in RECORDS}
    kept: dict[str, Any] = {name: rows[name].append for name in RECORDS}
    # The text's memory belongs to OTF2, and is valid only during the callback.
    kept["String"] = lambda row: rows["String"].append((row[0], ffi.string(row[1])))
    kept["MetricClass"] = lambda row: rows["MetricClass"].append((*row[:2], ffi.unpack(row[2], row[1])))

    def make(name: str) -> Any:
        setter = getattr(otf2.lib, f"OTF2_GlobalDefReaderCallbacks_Set{name}Callback")
        return ffi.callback(ffi.typeof(setter).args[1], lambda _, *row: kept[name](row) or 0)

    made = [(name, make(name)) for name in RECORDS]
    callbacks = call("GlobalDefReaderCallbacks_New")
    for name, callback in made:
        call(f"GlobalDefReaderCallbacks_Set{name}Callback", callbacks, callback)
    reader = call("Reader_GetGlobalDefReader", archive)
    call("Reader_RegisterGlobalDefCallbacks", archive, reader, callbacks, ffi.NULL)
    otf2.lib.OTF2_GlobalDefReaderCallbacks_Delete(callbacks)
    call("Reader_ReadAllGlobalDefinitions", archive, reader, ffi.new("uint64_t *"))
    call("Reader_CloseGlobalDefReader", archive, reader)
    return rows


def _number(definitions: Iterable[tuple[int, Any]]) -> dict[int, Any]:
    """Return definitions by number.

    Raises:
        ValueError: two definitions have the same number.
    """
    rows = list(definitions)
    numbered = dict(rows)
    if len(numbered) < len(rows):
        raise ValueError("two definitions with the same number")
    return numbered


def _properties(
    otf2: Otf2Library, texts: dict[int, str], rows: Iterable[_Row], names: dict[int, str] | None = None
) -> dict[int, Properties]:
    """Return the properties of nodes, locations or call paths, by number.

    A row has four columns: number of the node, location or call path; number of the property's name; type; value.
    """
    found: dict[int, Properties] = {}
    for owner, name, kind, bits in rows:
        found.setdefault(owner, {})[(names or texts)[name]] = _read_value(otf2, texts, kind, bits)
    return found


def _read_value(otf2: Otf2Library, texts: dict[int, str], kind: int, bits: int) -> Value:
    if kind == otf2.lib.OTF2_TYPE_STRING:
        return texts[from_bits("I", bits)]
    forms = {otf2.lib.OTF2_TYPE_UINT64: "Q", otf2.lib.OTF2_TYPE_INT64: "q", otf2.lib.OTF2_TYPE_DOUBLE: "d"}
    value: Value = from_bits(forms[kind], bits)
    return value
