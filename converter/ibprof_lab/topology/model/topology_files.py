# SPDX-License-Identifier: Apache-2.0
"""Readers of topologies in the formats that `ibprof-topology infer` writes: JSON, Trivial Graph Format, DOT."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_lab.topology.model.dot_graph import read_dot
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput

_MICRO = 1e-6
_SWITCH_NAME = re.compile(r"(?:.*/)?switch\d+", re.DOTALL)
"""Names that `infer` gives to switches; nothing else in Trivial Graph Format distinguishes them from hosts."""
_QUANTITY = re.compile(r"(\w+):\s*([-+.\w]+)")

PathName = str | PathLike[str]
Edge = tuple[str, str, float, float, float, float]
"""Two names, latency in microseconds, support, probability, throughput in Gb/s."""


def read_graph(path: PathName) -> InferredTopology:
    """Read a topology, by the name's end.

    Raises:
        InputError: the file does not have the format of its name.
    """
    return READERS[Path(path).suffix](path)


def _read_tgf(path: PathName) -> InferredTopology:
    names: dict[str, str] = {}
    edges: list[Edge] = []
    of_edges = False
    for number, line in enumerate(read_dump(path).decode("utf-8", "backslashreplace").splitlines(), 1):
        if line.strip() == "#":
            of_edges = True
        elif line.strip() and not of_edges:
            key, _, name = line.strip().partition(" ")
            names[key] = name or key
        elif line.strip():
            ends = line.split(maxsplit=2)
            if len(ends) < 2 or not (ends[0] in names and ends[1] in names):
                raise InputError(path, number, "two numbers of vertices", quote_found(line))
            edges.append((names[ends[0]], names[ends[1]], *_quantities(ends[2] if len(ends) > 2 else "")))
    if not of_edges:
        raise InputError(path, None, "Trivial Graph Format: vertices, a line #, edges", "no line #")
    switches = [name for name in names.values() if _SWITCH_NAME.fullmatch(name)]
    hosts = [name for name in names.values() if not _SWITCH_NAME.fullmatch(name)]
    return _make(path, hosts, switches, edges, False)


def _quantities(label: str) -> tuple[float, float, float, float]:
    found = dict(_QUANTITY.findall(label))
    return _number(found.get("l")), _number(found.get("support")), _number(found.get("p", 1)), _number(found.get("t"))


def _read_dot(path: PathName) -> InferredTopology:
    graph = read_dot(path)
    shown = any("shape" in attributes for attributes in graph.vertices.values())
    switches = [
        name
        for name, attributes in graph.vertices.items()
        if (attributes.get("shape") in ("box", "rect", "square") if shown else _SWITCH_NAME.fullmatch(name))
    ]
    apart = set(switches)
    edges = [
        (
            a,
            b,
            _number(attributes.get("latency_us")),
            _number(attributes.get("support")),
            _number(attributes.get("probability", 1)),
            _number(attributes.get("gbps")),
        )
        for a, b, attributes in graph.edges
    ]
    hosts = [name for name in graph.vertices if name not in apart]
    return _make(path, hosts, switches, edges, graph.directed)


def _make(
    path: PathName, hosts: Sequence[str], switches: Sequence[str], edges: Sequence[Edge], directed: bool
) -> InferredTopology:
    number = {name: vertex for vertex, name in enumerate((*hosts, *switches))}
    if len(number) != len(hosts) + len(switches):
        raise InputError(path, None, "a name for each vertex", "several vertices of one name")
    columns = np.array([edge[2:] for edge in edges], np.float64).reshape(-1, 4).T
    ends = np.array([[number[a], number[b]] for a, b, *_ in edges], np.int32).reshape(-1, 2)
    measured = not np.isnan(columns[3]).all()
    nobody = np.full(len(switches), nan)
    return InferredTopology(
        method="file",
        hosts=tuple(hosts),
        switches=tuple(switches),
        edge=ends if directed else np.sort(ends, axis=1),
        latency_seconds=columns[0] * _MICRO,
        support=columns[1],
        probability=np.nan_to_num(columns[2], nan=1.0),
        directed=directed,
        throughput=LinkThroughput(columns[3], np.zeros(len(edges), bool), nobody, np.zeros(len(switches), bool))
        if measured
        else None,
    )


def _number(value: Any) -> float:
    """Return a number of a file; nan where it has none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return nan
    return number if isfinite(number) else nan


def read_topology(path: str | PathLike[str]) -> InferredTopology:
    """Read a topology from JSON, as `ibprof-topology infer -o topology.json` writes it.

    Raises:
        InputError: the file cannot be read, or has another form.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, None, "a readable file", error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, getattr(error, "lineno", None), "a topology as JSON", str(error)[:100]) from error
    return _Reader(path).read(document)


class _Reader:
    """Takes values out of a document; raises errors that name the place."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = path

    def read(self, document: Any) -> InferredTopology:
        """Return the topology that the document describes."""
        document = self._take(document, dict, "a topology as `ibprof-topology infer --json` prints it")
        hosts = self._names(document, "hosts")
        switches = self._objects(document, "switches")
        names = [self._field(each, "name", str, f"switches[{row}]") for row, each in enumerate(switches)]
        vertex = {name: number for number, name in enumerate([*hosts, *names])}
        if len(vertex) < len(hosts) + len(names):
            raise self._error("names of hosts and switches, each different", "one twice")
        edges = self._objects(document, "edges")
        ends = [[self._end(each, key, row, vertex) for key in ("a", "b")] for row, each in enumerate(edges)]
        return InferredTopology(
            method=self._field(document, "method", str, "the document"),
            hosts=tuple(hosts),
            switches=tuple(names),
            edge=np.array(ends, np.int32).reshape(-1, 2),
            latency_seconds=self._numbers(edges, "edges", "latency_us") * _MICRO,
            support=self._numbers(edges, "edges", "support"),
            probability=self._numbers(edges, "edges", "probability", 1.0),
            directed=bool(document.get("directed", False)),
            overhead_seconds=self._number(document, "overhead_us", "the document", 0.0) * _MICRO,
            noise=self._number(document, "noise", "the document", nan),
            notes=tuple(self._names(document, "notes")),
            unknown=tuple(self._names(document, "cannot_tell")),
            throughput=self._throughput(edges, switches),
        )

    def _throughput(self, edges: list[dict[str, Any]], switches: list[dict[str, Any]]) -> LinkThroughput | None:
        if not any("gbps" in each for each in (*edges, *switches)):
            return None
        return LinkThroughput(
            self._numbers(edges, "edges", "gbps"),
            np.array([each.get("gbps_at_least") is True for each in edges], bool),
            self._numbers(switches, "switches", "gbps"),
            np.array([each.get("gbps_at_least") is True for each in switches], bool),
        )

    def _end(self, edge: dict[str, Any], key: str, row: int, vertex: Mapping[str, int]) -> int:
        name = self._field(edge, key, str, f"edges[{row}]")
        if name not in vertex:
            raise self._error(f"the name of a host or switch as `{key}` of edges[{row}]", quote_found(name))
        return vertex[name]

    def _objects(self, document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        rows = self._field(document, key, list, "the document")
        return [self._take(each, dict, f"an object as {key}[{row}]") for row, each in enumerate(rows)]

    def _names(self, document: Mapping[str, Any], key: str) -> list[str]:
        rows = self._field(document, key, list, "the document")
        return [self._take(each, str, f"a text as {key}[{row}]") for row, each in enumerate(rows)]

    def _numbers(
        self, rows: Sequence[Mapping[str, Any]], what: str, key: str, otherwise: float = nan
    ) -> npt.NDArray[np.float64]:
        numbers = [self._number(each, key, f"{what}[{row}]", otherwise) for row, each in enumerate(rows)]
        return np.array(numbers, np.float64)

    def _number(self, row: Mapping[str, Any], key: str, where: str, otherwise: float) -> float:
        value = row.get(key)
        if value is None:
            return otherwise
        if isinstance(value, bool) or not isinstance(value, int | float) or not (isfinite(value) and value >= 0):
            raise self._error(f"a number that is not negative as `{key}` of {where}", quote_found(repr(value)))
        return float(value)

    def _field(self, row: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
        if key not in row:
            raise self._error(f"`{key}` in {where}", "nothing of that name")
        return self._take(row[key], kind, f"`{key}` in {where}")

    def _take(self, value: Any, kind: type, expected: str) -> Any:
        if not isinstance(value, kind):
            raise self._error(expected, quote_found(repr(value)))
        return value

    def _error(self, expected: str, found: str) -> InputError:
        return InputError(self.path, None, expected, found)


READERS: Mapping[str, Callable[[PathName], InferredTopology]] = {
    ".json": read_topology,
    ".tgf": _read_tgf,
    ".dot": _read_dot,
    ".gv": _read_dot,
}
