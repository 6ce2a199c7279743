# SPDX-License-Identifier: Apache-2.0
"""Read a profile from the definitions and events of an OTF2 archive that ibprof wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import _otf2
import numpy as np
import numpy.typing as npt
import otf2

from ibprof import archive_format as form
from ibprof.archive_properties import Value, from_properties
from ibprof.errors import InputError
from ibprof.profile import (
    COLUMN_TYPES,
    SIZE_BINS,
    Counters,
    Host,
    Mark,
    MarkKind,
    MessageSizes,
    Port,
    PortPair,
    Profile,
    Rank,
    RegionTimes,
    Transfers,
    order_rows,
)


def read_trace(path: Path, trace: Any) -> Profile:
    """Read a profile.

    Args:
        path: of the archive, for messages.
        trace: the open `otf2.reader.Reader`.

    Raises:
        InputError: the archive is another tool's, or of a newer version.
        LookupError, TypeError, ValueError: it lacks what ibprof writes.
    """
    definitions = trace.definitions
    nodes = list(definitions.system_tree_nodes)
    version = _property_of(nodes[0])(form.VERSION_PROPERTY) if nodes else None
    if version is None:
        raise InputError(path, None, "a profile of ibprof", "an OTF2 archive of another tool")
    if version != form.VERSION:
        raise InputError(path, None, f"profile version {form.VERSION}", str(version))
    host_nodes = [node for node in nodes if node.class_name == form.HOST_CLASS]
    ports: dict[Any, list[Port]] = {node: [] for node in host_nodes}
    for node in nodes:
        if node.class_name == form.PORT_CLASS:
            ports[node.parent].append(Port(**from_properties(Port, _property_of(node))))
    number_of = {node: number for number, node in enumerate(host_nodes)}
    pairs = [
        PortPair(host=number_of[node.parent], **from_properties(PortPair, _property_of(node), form.NOT_OF_PAIR))
        for node in nodes
        if node.class_name == form.PAIR_CLASS
    ]
    locations = [definitions.locations[number] for number in range(len(definitions.locations))]
    ranks = [
        Rank(
            host=number_of[location.group.system_tree_parent],
            **from_properties(Rank, _property_of(location), form.NOT_OF_RANK),
        )
        for location in locations
    ]
    regions = [region.name for region in definitions.regions if region.paradigm == otf2.Paradigm.USER]
    operations = [region.name for region in definitions.regions if region.paradigm == otf2.Paradigm.MPI]
    rows = _Rows(definitions, regions)
    counts = [location.number_of_events for location in locations]
    for rank, events in zip(ranks, _read_events(trace.handle, counts), strict=True):
        rows.add(rank.rank, events)
    return Profile(
        hosts=tuple(Host(node.name, tuple(found)) for node, found in ports.items()),
        ranks=tuple(sorted(ranks, key=lambda rank: rank.rank)),
        regions=tuple(regions),
        operations=tuple(operations),
        counters=rows.counters(),
        region_times=rows.region_times(),
        sizes=rows.sizes(),
        marks=tuple(sorted(rows.marks, key=lambda mark: mark.rank)),
        pairs=tuple(pairs),
        transfers=rows.transfers(),
        **from_properties(Profile, _property_of(nodes[0]), form.NOT_OF_RUN),
    )


def _property_of(definition: Any) -> Any:
    def find(name: str) -> Value | None:
        try:
            value: Value = definition[name]
        except KeyError:
            return None
        return value

    return find


def _read_events(reader: Any, counts: Sequence[int]) -> Iterator[list[_Event]]:
    """Read the events of each location in turn.

    otf2's own reader opens the files of all locations at once, and thousands of ranks are more files than a process may
    have open.

    Args:
        reader: OTF2's.
        counts: how many events each location has.

    Raises:
        ValueError: a location has another number of events.
        _otf2.Error: a file cannot be read.
    """
    found: list[_Event] = []
    callbacks = _otf2.EvtReaderCallbacks_New()
    # Here events are but kept: an exception that passed through OTF2 would be printed and lost.
    keepers = {
        what: partial(_keep_metric if what == "Metric" else _keep, found, what)
        for what in ("Enter", "Leave", "ParameterUnsignedInt", "ParameterString", "Metric")
    }
    # OTF2 holds on to the functions, and Python must too, for as long as events are read: `keepers` does.
    for what, keep in keepers.items():
        getattr(_otf2, f"EvtReaderCallbacks_Set{what}Callback")(callbacks, keep)
    for number in range(len(counts)):
        _otf2.Reader_SelectLocation(reader, number)
    _otf2.Reader_OpenDefFiles(reader)
    _otf2.Reader_OpenEvtFiles(reader)
    for number, expected in enumerate(counts):
        local = _otf2.Reader_GetDefReader(reader, number)
        _otf2.Reader_ReadAllLocalDefinitions(reader, local)
        _otf2.Reader_CloseDefReader(reader, local)
        events = _otf2.Reader_GetEvtReader(reader, number)
        _otf2.Reader_RegisterEvtCallbacks(reader, events, callbacks, None)
        _otf2.Reader_ReadAllLocalEvents(reader, events)
        _otf2.Reader_CloseEvtReader(reader, events)
        if len(found) != expected:
            raise ValueError(f"{len(found)} events of {expected} of location {number}")
        yield found
        found.clear()
    _otf2.Reader_CloseEvtFiles(reader)
    _otf2.Reader_CloseDefFiles(reader)
    _otf2.EvtReaderCallbacks_Delete(callbacks)


_Event = tuple[str, int, Any]
"""The name of an event in OTF2, what definition it refers to, and its value."""


def _keep(found: list[_Event], what: str, *event: Any) -> None:
    _location, _time, _position, _user, _attributes, reference, *value = event
    found.append((what, reference, value[0] if value else None))


def _keep_metric(found: list[_Event], what: str, *event: Any) -> None:
    reference, _types, values = event[-3:]
    found.append((what, reference, [value.unsigned_int for value in values]))


class _Rows:
    """Collects the rows of a profile from the events of its ranks."""

    def __init__(self, definitions: Any, regions: Sequence[str]) -> None:
        self.marks: list[Mark] = []
        self._texts = definitions.strings
        self._parameter = {number: parameter.name for number, parameter in enumerate(definitions.parameters)}
        self._member = {number: metric.members[0].name for number, metric in enumerate(definitions.metrics)}
        self._regions = {name: number for number, name in enumerate(regions)}
        self._counters: list[tuple[int, ...]] = []
        self._times: list[tuple[int, ...]] = []
        self._transfers: list[tuple[int, ...]] = []
        self._sizes: dict[tuple[int, ...], dict[int, int]] = {}

    def add(self, rank: int, events: Sequence[_Event]) -> None:
        """Take in all events of a rank."""
        entered: list[int] = []
        parameters: dict[str, Any] = {}
        for what, reference, value in events:
            if what == "Metric":
                self._add_metric(rank, entered, parameters, self._member[reference], value)
            elif what == "ParameterUnsignedInt":
                parameters[self._parameter[reference]] = value
            elif what == "ParameterString":
                parameters[self._parameter[reference]] = self._texts[value]
            elif what == "Enter":
                # Operations follow the regions, which they lie in.
                entered.append(reference - len(self._regions) if entered else reference)
            else:
                entered.pop()

    def _add_metric(
        self, rank: int, entered: Sequence[int], parameters: Mapping[str, Any], name: str, values: Sequence[int]
    ) -> None:
        if name == form.MARK_MEMBERS[0]:
            kind = MarkKind[parameters[form.MARK_PARAMETER]]
            region = self._regions[parameters[form.MARK_REGION_PARAMETER]]
            numbers = dict(zip(form.MARK_MEMBERS, values, strict=True))
            self.marks.append(Mark(rank=rank, kind=kind, region=region, **numbers))
        elif name == form.TIME_MEMBERS[0]:
            self._times.append((rank, entered[-1], *values))
        elif name.startswith(form.TRANSFER_MEMBER):
            pair = parameters[form.PAIR_PARAMETER]
            self._transfers.append((rank, entered[-1], form.parse_transfer_member(name), pair, *values))
        elif name.startswith(form.SIZE_MEMBER):
            call = rank, *entered, *form.parse_size_member(name)
            size_bin = parameters[form.SIZE_PARAMETER].bit_length()
            self._sizes.setdefault(call, {})[size_bin] = values[0]
        else:
            tag = form.parse_counter_member(name)
            peer = parameters[form.PEER_PARAMETERS[tag[0]]]
            self._counters.append((rank, *entered, *tag, peer, *values))

    def counters(self) -> Counters:
        """Give all counters."""
        names = ("rank", "region", "operation", "direction", "kind", "source", "peer", "bytes", "messages")
        return order_rows(Counters(**_columns(names, self._counters)))

    def region_times(self) -> RegionTimes:
        """Give all visits of regions."""
        return order_rows(RegionTimes(**_columns(("rank", "region", *form.TIME_MEMBERS), self._times)))

    def transfers(self) -> Transfers:
        """Give all transfers."""
        names = ("rank", "region", "opcode", "pair", "bytes", "messages")
        return order_rows(Transfers(**_columns(names, self._transfers)))

    def sizes(self) -> MessageSizes:
        """Give all messages by size."""
        messages = np.zeros((len(self._sizes), SIZE_BINS), np.uint64)
        for row, numbers in enumerate(self._sizes.values()):
            messages[row, list(numbers)] = list(numbers.values())
        names = ("rank", "region", "operation", "direction", "kind")
        return order_rows(MessageSizes(**_columns(names, list(self._sizes)), messages=messages))


def _columns(names: Sequence[str], rows: Sequence[Sequence[int]]) -> dict[str, npt.NDArray[Any]]:
    """Turn rows into columns of the types that a Profile has."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: np.array(column, COLUMN_TYPES[name]) for name, column in zip(names, columns, strict=True)}
