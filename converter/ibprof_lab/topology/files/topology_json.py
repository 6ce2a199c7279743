# SPDX-License-Identifier: Apache-2.0
"""Reader of the JSON that `ibprof-topology` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite, nan
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput

_MICRO = 1e-6


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
