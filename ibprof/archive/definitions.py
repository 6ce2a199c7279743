# SPDX-License-Identifier: Apache-2.0
"""Global definitions of an archive, written and read: texts, system tree, ranks, regions, parameters and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ibprof.archive import otf2_names
from ibprof.archive.otf2_names import Value, from_bits, to_properties
from ibprof.native.otf2_library import RECORDS, Otf2Library, load_otf2
from ibprof.profile.profile_data import Profile, Site
from ibprof.sites.code_location import Frame

_NS_PER_S = 10**9

_Record = tuple[Any, ...]
"""Name of a record in `otf2_library.RECORDS`, and the record's columns."""

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
    """Number the texts, parameters, metrics and call paths of events, and write their definitions at the end."""

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
        """Return the OTF2 region of an operation: in OTF2, operations are regions after the profile's regions."""
        return self._regions + operation

    def callpath(self, site: int) -> int:
        """Return the OTF2 reference of the call path that ends at a site (from 1); callers' call paths come first."""
        return len(self._callers) + site - 1

    def write(self, archive: Any, run: Profile, locations: Sequence[Written]) -> None:
        """Write all definitions, each after the definitions that it refers to."""
        # These calls collect all texts, which must be written first.
        tree, ranks, regions = self._system_tree(run), self._ranks(run, locations), self._regions_of(run)
        sites = list(self._sites(run))  # before `_values`, which yields the parameters of sites
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
        """Yield the properties of a site's call path: the data that the site's OTF2 region cannot hold."""
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
    """Return the functions around a site, innermost first: callers, or functions that contain it after inlining."""
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


_Row = tuple[Any, ...]

Properties = dict[str, Value]


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of the system tree; `parent` is the number of another node, unknown for the root."""

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
    """A call path; `parent` is the number of another call path, unknown for the outermost."""

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
    """Return the columns of all definitions, by the keys of `RECORDS`."""
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
    """Return the properties of each owner. A row has the owner's number, the name's number, a type and a value."""
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
