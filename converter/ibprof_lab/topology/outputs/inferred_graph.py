# SPDX-License-Identifier: Apache-2.0
"""An inferred topology as JSON, Trivial Graph Format and DOT."""

from __future__ import annotations

from math import isnan, nan
from typing import Any, TextIO

import numpy as np

from ibprof_converter.outputs.graph_files import quote_dot, quote_line
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.model.inferred_topology import InferredTopology

_MICRO = 1e6


def describe_inferred(
    topology: InferredTopology, values: PairDelays | None, again: int, refusal: str | None = None
) -> dict[str, Any]:
    """Return what JSON has of an inference: the topology, the delays that it is of, pairs to measure again.

    Args:
        topology: what was inferred.
        values: the delays that it is of; None where these are of processes.
        again: number of pairs to measure again.
        refusal: why it is not to be relied on; None where it is.
    """
    document = describe_topology(topology)
    if values is not None:
        document |= {"statistic": values.statistic, "length": values.length}
    return document | {"pairs_to_measure_again": again, "refused": refusal}


def describe_topology(topology: InferredTopology) -> dict[str, Any]:
    """Return what JSON has: hosts, switches with the hosts directly on them, edges, and what is unknown."""
    names = topology.names
    hosts = len(topology.hosts)
    carried = topology.throughput
    on_switch: list[list[str]] = [[] for _ in topology.switches]
    for a, b in np.sort(topology.edge, axis=1).tolist():
        if a < hosts <= b:
            on_switch[b - hosts].append(names[a])
    return {
        "method": topology.method,
        "directed": topology.directed,
        "hosts": list(topology.hosts),
        "switches": [
            {"name": name, "hosts": own}
            | (_rate(carried.switch_gbps[row], carried.switch_at_least[row]) if carried else {})
            for row, (name, own) in enumerate(zip(topology.switches, on_switch, strict=True))
        ],
        "edges": [
            {
                "a": names[a],
                "b": names[b],
                "latency_us": round(float(latency) * _MICRO, 6),
                "support": None if isnan(support) else round(float(support), 4),
                "probability": round(float(probability), 4),
            }
            | (_rate(carried.edge_gbps[row], carried.edge_at_least[row]) if carried else {})
            for row, ((a, b), latency, support, probability) in enumerate(_edges(topology))
        ],
        "overhead_us": round(topology.overhead_seconds * _MICRO, 6),
        "noise": None if isnan(topology.noise) else round(topology.noise, 6),
        "notes": list(topology.notes),
        "cannot_tell": list(topology.unknown),
    }


def _rate(gbps: float, at_least: bool) -> dict[str, Any]:
    known = not isnan(gbps)
    return {"gbps": float(f"{gbps:.6g}") if known else None} | ({"gbps_at_least": True} if known and at_least else {})


def write_tgf(file: TextIO, topology: InferredTopology) -> None:
    """Write vertices, `#`, and edges: latency in microseconds, throughput in Gb/s, support, probability.

    Source: Bufe, section 2.6.
    """
    for number, name in enumerate(topology.names, 1):
        file.write(f"{number} {quote_line(name)}\n")
    file.write("#\n")
    for row, ((a, b), latency, support, probability) in enumerate(_edges(topology)):
        label = f"l: {latency * _MICRO:.6g}"
        if (gbps := _known_rate(topology, row)) is not None:
            label += f" t: {gbps:.4g}"
        if not isnan(support):
            label += f" support: {support:.3g}"
        if probability != 1:
            label += f" p: {probability:.3g}"
        file.write(f"{a + 1} {b + 1} {label}\n")


def write_dot(file: TextIO, topology: InferredTopology) -> None:
    """Write the graph for Graphviz: switches as boxes, weak edges dashed."""
    kind, arrow = ("digraph", "->") if topology.directed else ("graph", "--")
    file.write(f"{kind} topology {{\n")
    for number, name in enumerate(topology.names):
        shape = "ellipse" if number < len(topology.hosts) else "box"
        file.write(f"  {quote_dot(name)} [shape={shape}];\n")
    for row, ((a, b), latency, support, probability) in enumerate(_edges(topology)):
        attributes = f'label="{latency * _MICRO:.4g} µs", latency_us={latency * _MICRO:.6g}'
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
