# SPDX-License-Identifier: Apache-2.0
"""Write a profile as the files of an OTF2 archive, through OTF2's own calls.

otf2's comfortable writer keeps every location open and stamps the archive with the time of writing; this one closes
each rank behind it and keeps the times of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import _otf2
import numpy as np
import otf2

from ibprof import archive_format as form
from ibprof.archive_properties import Value, to_properties
from ibprof.profile import (
    Counters,
    Direction,
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
        _write_marks(location, run.regions, marks)
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


class _Rows:
    """The rows of a profile, so that those of one rank are found at once."""

    def __init__(self, run: Profile) -> None:
        self._times = order_rows(run.region_times)
        self._counters = order_rows(run.counters)
        self._sizes = order_rows(run.sizes)
        self._transfers = order_rows(run.transfers)
        self._marks: dict[int, list[Mark]] = {}
        for mark in run.marks:
            self._marks.setdefault(mark.rank, []).append(mark)

    def marks(self, rank: int) -> list[Mark]:
        """Give the marks of a rank."""
        return self._marks.get(rank, [])

    def times(self, rank: int) -> dict[int, list[int]]:
        """Give `archive_format.TIME_MEMBERS` by region."""
        columns = _columns_of(self._times, rank, ("region", *form.TIME_MEMBERS))
        return {region: numbers for region, *numbers in zip(*columns, strict=True)}

    def counters(self, rank: int) -> _ByCall:
        """Give (direction, kind, source, peer, bytes, messages) by region and operation."""
        names = ("region", "operation", "direction", "kind", "source", "peer", "bytes", "messages")
        return _by_call(_columns_of(self._counters, rank, names))

    def sizes(self, rank: int) -> _ByCall:
        """Give (direction, kind, messages of each size) by region and operation."""
        names = ("region", "operation", "direction", "kind", "messages")
        return _by_call(_columns_of(self._sizes, rank, names))

    def transfers(self, rank: int) -> dict[int, list[list[int]]]:
        """Give (opcode, pair, bytes, messages) by region."""
        found: dict[int, list[list[int]]] = {}
        names = ("region", "opcode", "pair", "bytes", "messages")
        for region, *rest in zip(*_columns_of(self._transfers, rank, names), strict=True):
            found.setdefault(region, []).append(rest)
        return found


_Call = tuple[Any, ...]
"""A function of OTF2's definition writer, and its arguments after the writer."""

_ByCall = dict[tuple[int, int], list[list[Any]]]


def _columns_of(
    rows: Counters | RegionTimes | MessageSizes | Transfers, rank: int, names: Sequence[str]
) -> list[list[Any]]:
    begin, end = np.searchsorted(rows.rank, (rank, rank + 1))
    return [getattr(rows, name)[begin:end].tolist() for name in names]


def _by_call(columns: Sequence[Sequence[Any]]) -> _ByCall:
    found: _ByCall = {}
    for region, operation, *rest in zip(*columns, strict=True):
        found.setdefault((region, operation), []).append(rest)
    return found


def _write_marks(location: _Location, regions: Sequence[str], marks: Iterable[Mark]) -> None:
    for mark in marks:
        location.advance(mark.time_ns)
        location.text_parameter(form.MARK_PARAMETER, mark.kind.name)
        location.text_parameter(form.MARK_REGION_PARAMETER, regions[mark.region])
        location.metric(form.MARK_MEMBERS, [getattr(mark, name) for name in form.MARK_MEMBERS])


def _write_totals(location: _Location, rows: _Rows, rank: int) -> None:
    """Write each region once, the operations in it, at the end of the rank: that is when its totals were these."""
    times, counters, sizes, transfers = rows.times(rank), rows.counters(rank), rows.sizes(rank), rows.transfers(rank)
    operations: dict[int, list[int]] = {region: [] for region in (*times, *transfers)}
    for region, operation in sorted({*counters, *sizes}):
        operations.setdefault(region, []).append(operation)
    for region in sorted(operations):
        location.enter_region(region)
        if region in times:
            location.metric(form.TIME_MEMBERS, times[region])
        for opcode, pair, *amount in transfers.get(region, ()):
            location.number_parameter(form.PAIR_PARAMETER, pair)
            location.metric(form.transfer_members(Opcode(opcode)), amount)
        for operation in operations[region]:
            location.enter_operation(operation)
            _write_counters(location, counters.get((region, operation), ()))
            _write_sizes(location, sizes.get((region, operation), ()))
            location.leave_operation(operation)
        location.leave_region(region)


def _write_counters(location: _Location, counters: Iterable[Sequence[int]]) -> None:
    for direction, kind, source, peer, amount, messages in counters:
        location.number_parameter(form.PEER_PARAMETERS[Direction(direction)], peer)
        location.metric(form.counter_members((Direction(direction), Kind(kind), Source(source))), (amount, messages))


def _write_sizes(location: _Location, sizes: Iterable[Sequence[Any]]) -> None:
    for direction, kind, messages in sizes:
        member = form.size_member(Direction(direction), Kind(kind))
        for size_bin, number in enumerate(messages):
            if number:
                location.number_parameter(form.SIZE_PARAMETER, form.lower_bound(size_bin))
                location.metric((member,), (number,))


class _Location:
    """Writes the events of one rank.

    Attributes:
        begin_ns, time_ns: of its first event, and of the one written last; times of an archive never decrease.
        events: how many it has.
    """

    def __init__(self, archive: Any, number: int, begin_ns: int, definitions: _Definitions) -> None:
        self._definitions = definitions
        self._archive = archive
        self._local = _otf2.Archive_GetDefWriter(archive, number)
        self._writer = _otf2.Archive_GetEvtWriter(archive, number)
        self.begin_ns = self.time_ns = begin_ns
        self.events = 0

    def advance(self, time_ns: int) -> None:
        """Go on to a time, unless it has passed: a clock that was set back must not set the archive back."""
        self.time_ns = max(self.time_ns, time_ns)

    def enter_region(self, region: int) -> None:
        _otf2.EvtWriter_Enter(self._writer, None, self.time_ns, region)

    def leave_region(self, region: int) -> None:
        _otf2.EvtWriter_Leave(self._writer, None, self.time_ns, region)

    def enter_operation(self, operation: int) -> None:
        self.enter_region(self._definitions.operation(operation))

    def leave_operation(self, operation: int) -> None:
        self.leave_region(self._definitions.operation(operation))

    def number_parameter(self, name: str, value: int) -> None:
        parameter = self._definitions.parameter(name, otf2.ParameterType.UINT64)
        _otf2.EvtWriter_ParameterUnsignedInt(self._writer, None, self.time_ns, parameter, value)

    def text_parameter(self, name: str, value: str) -> None:
        parameter = self._definitions.parameter(name, otf2.ParameterType.STRING)
        _otf2.EvtWriter_ParameterString(self._writer, None, self.time_ns, parameter, self._definitions.text(value))

    def metric(self, members: Sequence[str], values: Sequence[int]) -> None:
        metric = self._definitions.metric(members)
        types = [otf2.Type.UINT64] * len(values)
        numbers = [_otf2.MetricValue(unsigned_int=value) for value in values]
        _otf2.EvtWriter_Metric(self._writer, None, self.time_ns, metric, types, numbers)

    def close(self) -> None:
        """End the rank's events; nothing of them stays in memory."""
        self.events = _otf2.EvtWriter_GetNumberOfEvents(self._writer)
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
