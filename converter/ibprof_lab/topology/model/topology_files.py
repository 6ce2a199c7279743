# SPDX-License-Identifier: Apache-2.0
"""Files of topologies, for reading and writing: JSON, Trivial Graph Format, DOT."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isnan, nan
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.outputs.graph_files import quote_dot, quote_line
from ibprof_lab.topology.model.dot_graph import read_dot
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput

_MICRO = 1e-6
_SWITCH_NAME = re.compile(r"(?:.*/)?switch\d+", re.DOTALL)
"""Names that `infer` gives to switches. In Trivial Graph Format, only the name distinguishes a switch from a host."""
_QUANTITY = re.compile(r"(\w+):\s*([-+.\w]+)")

PathName = str | PathLike[str]
Edge = tuple[str, str, list[float]]
"""Names of two vertices, then a list: latency in microseconds, support, probability, throughput in Gb/s."""


def read_graph(path: PathName) -> InferredTopology:
    """Read a topology; the suffix of the file name selects the format.

    Raises:
        InputError: the file does not have this format.
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
            label = dict(_QUANTITY.findall(ends[2] if len(ends) > 2 else ""))
            known = (label.get("l"), label.get("support"), label.get("p", 1), label.get("t"))
            edges.append((names[ends[0]], names[ends[1]], [_number(each) for each in known]))
    if not of_edges:
        raise InputError(path, None, "Trivial Graph Format: vertices, a line #, edges", "no line #")
    switches = [name for name in names.values() if _SWITCH_NAME.fullmatch(name)]
    hosts = [name for name in names.values() if not _SWITCH_NAME.fullmatch(name)]
    return _make(path, hosts, switches, edges, False)


def _read_dot(path: PathName) -> InferredTopology:
    graph = read_dot(path)
    shown = any("shape" in attributes for attributes in graph.vertices.values())
    switches = [
        name
        for name, attributes in graph.vertices.items()
        if (attributes.get("shape") in ("box", "rect", "square") if shown else _SWITCH_NAME.fullmatch(name))
    ]
    apart = set(switches)
    edges: list[Edge] = []
    for a, b, found in graph.edges:
        known = (found.get("latency_us"), found.get("support"), found.get("probability", 1), found.get("gbps"))
        edges.append((a, b, [_number(each) for each in known]))
    hosts = [name for name in graph.vertices if name not in apart]
    return _make(path, hosts, switches, edges, graph.directed)


def _make(
    path: PathName, hosts: Sequence[str], switches: Sequence[str], edges: Sequence[Edge], directed: bool
) -> InferredTopology:
    number = {name: vertex for vertex, name in enumerate((*hosts, *switches))}
    if len(number) != len(hosts) + len(switches):
        raise InputError(path, None, "a different name for each vertex", "several vertices with the same name")
    columns = np.array([known for _, _, known in edges], np.float64).reshape(-1, 4).T
    ends = np.array([[number[a], number[b]] for a, b, _ in edges], np.int32).reshape(-1, 2)
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
    """Return a value of a file as float; nan if it is not a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return nan
    return number if isfinite(number) else nan


def read_topology(path: str | PathLike[str]) -> InferredTopology:
    """Read a topology from JSON, the output of `ibprof-topology infer -o topology.json`.

    Raises:
        InputError: the file cannot be read, or has another format.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, None, "a readable file", error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, getattr(error, "lineno", None), "a topology as JSON", str(error)[:100]) from error
    return _Reader(path).read(document)


class _Reader:
    """Reader of a JSON document; its errors name the wrong member of the document."""

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
            raise self._error("a different name for each host and switch", "one name twice")
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


_MICROSECONDS = 1e6


def describe_topology(topology: InferredTopology) -> dict[str, Any]:
    """Return the JSON document: hosts, switches with their hosts, edges, and undetermined details."""
    names, carried = topology.names, topology.throughput
    return {
        "method": topology.method,
        "directed": topology.directed,
        "hosts": list(topology.hosts),
        "switches": [
            {"name": name, "hosts": own}
            | (_rate(carried.switch_gbps[row], carried.switch_at_least[row]) if carried else {})
            for row, (name, own) in enumerate(zip(topology.switches, topology.hosts_of_switches(), strict=True))
        ],
        "edges": [
            {
                "a": names[a],
                "b": names[b],
                "latency_us": round(float(latency) * _MICROSECONDS, 6),
                "support": None if isnan(support) else round(float(support), 4),
                "probability": round(float(probability), 4),
            }
            | (_rate(carried.edge_gbps[row], carried.edge_at_least[row]) if carried else {})
            for row, ((a, b), latency, support, probability) in enumerate(_edges(topology))
        ],
        "overhead_us": round(topology.overhead_seconds * _MICROSECONDS, 6),
        "noise": None if isnan(topology.noise) else round(topology.noise, 6),
        "notes": list(topology.notes),
        "cannot_tell": list(topology.unknown),
    }


def _rate(gbps: float, at_least: bool) -> dict[str, Any]:
    known = not isnan(gbps)
    return {"gbps": float(f"{gbps:.6g}") if known else None} | ({"gbps_at_least": True} if known and at_least else {})


def write_tgf(file: TextIO, topology: InferredTopology) -> None:
    """Write Trivial Graph Format. Labels of edges: latency in microseconds, throughput in Gb/s, support, probability.

    Source: Bufe, section 2.6.
    """
    for number, name in enumerate(topology.names, 1):
        file.write(f"{number} {quote_line(name)}\n")
    file.write("#\n")
    for row, ((a, b), latency, support, probability) in enumerate(_edges(topology)):
        label = f"l: {latency * _MICROSECONDS:.6g}"
        if (gbps := _known_rate(topology, row)) is not None:
            label += f" t: {gbps:.4g}"
        if not isnan(support):
            label += f" support: {support:.3g}"
        if probability != 1:
            label += f" p: {probability:.3g}"
        file.write(f"{a + 1} {b + 1} {label}\n")


def write_dot(file: TextIO, topology: InferredTopology) -> None:
    """Write the graph for Graphviz: switches are boxes, and edges with a support below 0.5 are dashed."""
    kind, arrow = ("digraph", "->") if topology.directed else ("graph", "--")
    file.write(f"{kind} topology {{\n")
    for number, name in enumerate(topology.names):
        shape = "ellipse" if number < len(topology.hosts) else "box"
        file.write(f"  {quote_dot(name)} [shape={shape}];\n")
    for row, ((a, b), latency, support, probability) in enumerate(_edges(topology)):
        attributes = f'label="{latency * _MICROSECONDS:.4g} µs", latency_us={latency * _MICROSECONDS:.6g}'
        if (gbps := _known_rate(topology, row)) is not None:
            attributes += f", gbps={gbps:.4g}"
        if not isnan(support):
            attributes += f", support={support:.3g}" + (", style=dashed" if support < 0.5 else "")
        if probability != 1:
            attributes += f", probability={probability:.3g}"
        file.write(f"  {quote_dot(topology.names[a])} {arrow} {quote_dot(topology.names[b])} [{attributes}];\n")
    file.write("}\n")


def _known_rate(topology: InferredTopology, row: int) -> float | None:
    gbps = topology.throughput.edge_gbps[row] if topology.throughput else nan
    return None if isnan(gbps) else float(gbps)


def _edges(topology: InferredTopology) -> list[tuple[tuple[int, int], float, float, float]]:
    columns = (topology.edge, topology.latency_seconds, topology.support, topology.probability)
    return list(zip(*(column.tolist() for column in columns), strict=True))
