# SPDX-License-Identifier: Apache-2.0
"""Readers of topologies in the formats that `ibprof-topology infer` writes: JSON, Trivial Graph Format, DOT."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_lab.topology.files.dot_graph import read_dot
from ibprof_lab.topology.files.topology_json import read_topology
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


READERS: Mapping[str, Callable[[PathName], InferredTopology]] = {
    ".json": read_topology,
    ".tgf": _read_tgf,
    ".dot": _read_dot,
    ".gv": _read_dot,
}


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
