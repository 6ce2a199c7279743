# SPDX-License-Identifier: Apache-2.0
"""Definitions of an archive: texts, regions, parameters, metrics, the system's tree and its ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import _otf2
import otf2

from ibprof.archive import otf2_names
from ibprof.archive.otf2_names import Value, to_properties
from ibprof.profile.profile_data import Profile, Site
from ibprof.sites.code_location import Frame

_NS_PER_S = 10**9

_Call = tuple[Any, ...]
"""A function of OTF2's definition writer, and its arguments after the writer."""

_Callers = tuple[Frame, ...] | tuple[Site, ...]


class Written(Protocol):
    """The written events of a rank.

    Attributes:
        begin_ns, time_ns: of the first and of the last one.
        events: their number.
    """

    begin_ns: int
    time_ns: int
    events: int


class Definitions:
    """Number what events refer to, and write the definitions when all are known."""

    def __init__(self, run: Profile) -> None:
        self._texts: dict[str, int] = {"": 0}
        self._parameters: dict[str, tuple[int, Any]] = {}
        self._metrics: dict[tuple[str, ...], int] = {}
        self._regions = len(run.regions)
        self._operations = len(run.operations)
        self._callers = _number_callers(run.sites)

    def text(self, text: str) -> int:
        """Return the number of a text."""
        return self._texts.setdefault(text, len(self._texts))

    def parameter(self, name: str, kind: Any) -> int:
        """Return the number of a parameter of a type."""
        return self._parameters.setdefault(name, (len(self._parameters), kind))[0]

    def metric(self, members: Sequence[str]) -> int:
        """Return the number of a metric by the names of its values."""
        return self._metrics.setdefault(tuple(members), len(self._metrics))

    def operation(self, operation: int) -> int:
        """Return the number of an operation among OTF2's regions: operations follow the profile's regions."""
        return self._regions + operation

    def callpath(self, site: int) -> int:
        """Return the number of the call path that ends at a site, which counts from 1; those of its callers precede."""
        return len(self._callers) + site - 1

    def write(self, archive: Any, run: Profile, locations: Sequence[Written]) -> None:
        """Write all definitions, each after those that it refers to."""
        # Collecting them finds all texts, which must be written first.
        tree, ranks, regions = self._system_tree(run), self._ranks(run, locations), self._regions_of(run)
        sites = list(self._sites(run))  # before the parameters that it needs
        calls = [*tree, *ranks, *regions, *self._values(), *sites]
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
        properties = [(otf2_names.VERSION_PROPERTY, otf2_names.VERSION), *to_properties(run, otf2_names.NOT_OF_RUN)]
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

    def _ranks(self, run: Profile, locations: Sequence[Written]) -> Iterator[_Call]:
        for number, (rank, location) in enumerate(zip(run.ranks, locations, strict=True)):
            name, node = self.text(f"rank {rank.rank}"), 1 + rank.host
            process = otf2.LocationGroupType.PROCESS, node, otf2.Undefined.LOCATION_GROUP
            yield _otf2.GlobalDefWriter_WriteLocationGroup, number, name, *process
            thread = otf2.LocationType.CPU_THREAD, location.events, number
            yield _otf2.GlobalDefWriter_WriteLocation, number, name, *thread
            properties = to_properties(rank, otf2_names.NOT_OF_RANK)
            yield from self._properties(_otf2.GlobalDefWriter_WriteLocationProperty, number, properties)

    def _regions_of(self, run: Profile) -> Iterator[_Call]:
        user, mpi = otf2.Paradigm.USER, otf2.Paradigm.MPI
        named = [(name, user) for name in run.regions] + [(name, mpi) for name in run.operations]
        for number, (name, paradigm) in enumerate(named):
            text = self.text(name)
            role, flags = otf2.RegionRole.CODE, otf2.RegionFlag.NONE
            yield _otf2.GlobalDefWriter_WriteRegion, number, text, text, 0, role, paradigm, flags, 0, 0, 0

    def _sites(self, run: Profile) -> Iterator[_Call]:
        """Yield a source code location for each site, and a call path that ends with the function of the site."""
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
            yield _otf2.GlobalDefWriter_WriteSourceCodeLocation, number, self.text(site.file), site.line
            yield from self._place(callpath, site, otf2_names.OBJECT_PARAMETER)

    def _place(self, callpath: int, site: Site, object_parameter: str) -> Iterator[_Call]:
        """Yield what a call path's region does not say of a site."""
        texts = {object_parameter: site.object, otf2_names.NAME_PARAMETER: site.name}
        texts |= {otf2_names.BUILD_ID_PARAMETER: site.build_id} if site.build_id else {}
        for name, text in texts.items():
            value = otf2.Type.STRING, _otf2.AttributeValue(stringRef=self.text(text))
            parameter = self.parameter(name, otf2.ParameterType.STRING)
            yield _otf2.GlobalDefWriter_WriteCallpathParameter, callpath, parameter, *value
        address = otf2.Type.UINT64, _otf2.AttributeValue(uint64=site.address)
        parameter = self.parameter(otf2_names.ADDRESS_PARAMETER, otf2.ParameterType.UINT64)
        yield _otf2.GlobalDefWriter_WriteCallpathParameter, callpath, parameter, *address

    def _callpath(self, number: int, callers: _Callers, frame: Frame) -> Iterator[_Call]:
        region = self._regions + self._operations + number
        function, file = self.text(frame.function), self.text(frame.file)
        compiled = otf2.RegionRole.FUNCTION, otf2.Paradigm.COMPILER, otf2.RegionFlag.NONE
        yield _otf2.GlobalDefWriter_WriteRegion, region, function, function, 0, *compiled, file, frame.line, 0
        parent = self._callers.get(callers, otf2.Undefined.CALLPATH)
        yield _otf2.GlobalDefWriter_WriteCallpath, number, parent, region

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
            elif value < 0:
                union, kind = _otf2.AttributeValue(int64=value), otf2.Type.INT64
            else:
                union, kind = _otf2.AttributeValue(uint64=value), otf2.Type.UINT64
            yield function, owner, self.text(name), kind, union


def _callers_of(site: Site) -> _Callers:
    """Return the functions around a site, from the inside: its callers, or those that it was inlined into."""
    return site.callers or site.inlined_in


def _frame_of(site: Site) -> Frame:
    return Frame(site.function, site.file, site.line)


def _number_callers(sites: Iterable[Site]) -> dict[_Callers, int]:
    """Return the numbers of call paths of the functions around sites, each after that of its callers."""
    numbers: dict[_Callers, int] = {}
    for site in sites:
        callers = _callers_of(site)
        for begin in reversed(range(len(callers))):
            numbers.setdefault(callers[begin:], len(numbers))
    return numbers
