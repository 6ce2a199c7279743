# SPDX-License-Identifier: Apache-2.0
"""Read the global definitions of an OTF2 archive: texts, system tree, locations, regions, metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ibprof.archive.otf2_names import Value, from_bits
from ibprof.native.otf2_library import RECORDS, Otf2Library

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
    # The columns of each kind are the arguments of OTF2_GlobalDefWriter_WriteX.
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
    # This memory belongs to OTF2 and lasts as long as the callback.
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
    """Return the properties of each owner, from rows of the owner's number, the name's number, a type and a value."""
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
