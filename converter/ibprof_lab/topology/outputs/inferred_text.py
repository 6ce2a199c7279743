# SPDX-License-Identifier: Apache-2.0
"""An inferred topology as lines of text, JSON, Trivial Graph Format and DOT."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, nan
from typing import Any, TextIO

import numpy as np

from ibprof_converter.outputs.graph_files import quote_dot, quote_line
from ibprof_converter.outputs.slurm_topology import compress
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.infer.reliability import WEAK
from ibprof_lab.topology.model.inferred_topology import InferredTopology

_SHOWN_SWITCHES = 40
_SHOWN_LINKS = 8
_SHOWN_WEAK = 10

_MICRO = 1e6


def describe_inference(
    topology: InferredTopology, values: PairDelays | None = None, again: int = 0, refusal: str | None = None
) -> Iterator[str]:
    """Yield the lines of a topology: what matters most first.

    Args:
        topology: what was inferred.
        values: the delays that it is of; None where these are of processes.
        again: number of pairs to measure again.
        refusal: why it is not to be relied on; None where it is.
    """
    if refusal:
        yield f"not reliable: {refusal}"
    measured = f", {values.statistic.replace('_', ' ')} for {values.length} bytes" if values else ""
    noise = "" if isnan(topology.noise) else f"; delays deviate by {topology.noise:.1%} from it"
    levels = f", {count} levels" if (count := topology.count_levels()) else ""
    yield (
        f"{len(topology.hosts)} hosts, {len(topology.switches)} switches{levels}, {len(topology.edge)} "
        f"{'arcs' if topology.directed else 'links'} by {topology.method}{measured}{noise}"
    )
    yield from (f"unknown: {text}" for text in topology.unknown)
    yield from (f"note: {text}" for text in topology.notes)
    if topology.overhead_seconds:
        yield f"overhead of a message, in addition to its path: {topology.overhead_seconds * 1e6:.4g} µs"
    if topology.switches:
        yield from _describe_switches(topology)
    weak = np.flatnonzero(topology.support < WEAK)
    for edge in weak[np.argsort(topology.support[weak], kind="stable")][:_SHOWN_WEAK].tolist():
        a, b = (topology.names[end] for end in topology.edge[edge])
        yield f"weak: {a} to {b}, support {topology.support[edge]:.2f}"
    if len(weak) > _SHOWN_WEAK:
        yield f"weak: and {len(weak) - _SHOWN_WEAK} more"
    if again:
        yield f"measure again: {again} pairs (--again FILE writes them)"


def _describe_switches(topology: InferredTopology) -> Iterator[str]:
    hosts = len(topology.hosts)
    own = topology.hosts_of_switches()
    linked: list[list[str]] = [[] for _ in topology.switches]
    for (a, b), latency in zip(np.sort(topology.edge, axis=1).tolist(), topology.latency_seconds, strict=True):
        if a >= hosts:
            linked[a - hosts].append(f"{topology.names[b]} ({latency * 1e6:.3g} µs)")
            linked[b - hosts].append(f"{topology.names[a]} ({latency * 1e6:.3g} µs)")
    for number, name in enumerate(topology.switches[:_SHOWN_SWITCHES]):
        parts = [compress(own[number])] if own[number] else []
        if links := linked[number]:
            more = f" and {len(links) - _SHOWN_LINKS} more" if len(links) > _SHOWN_LINKS else ""
            parts.append(f"links to {', '.join(links[:_SHOWN_LINKS])}{more}")
        yield f"  {name}: {'; '.join(parts)}"
    if len(topology.switches) > _SHOWN_SWITCHES:
        yield f"  and {len(topology.switches) - _SHOWN_SWITCHES} more"


def describe_throughput(topology: InferredTopology) -> Iterator[str]:
    """Yield a line for each link, the slowest first, then for each switch; none where nothing was measured."""
    if (found := topology.throughput) is None:
        return
    for edge in np.argsort(found.edge_gbps, kind="stable").tolist():
        one, other = (topology.names[end] for end in topology.edge[edge])
        yield f"{one} to {other}: {_describe_rate(found.edge_gbps[edge], found.edge_at_least[edge])}"
    for switch, name in enumerate(topology.switches):
        yield f"through {name}: {_describe_rate(found.switch_gbps[switch], found.switch_at_least[switch])}"


def _describe_rate(gbps: float, at_least: bool) -> str:
    if np.isnan(gbps):
        return "not measured: no pair of hosts is sure to use it"
    return f"{'at least ' if at_least else ''}{gbps:.3g} Gb/s"


def describe_inferred(
    topology: InferredTopology, values: PairDelays | None, again: int, refusal: str | None = None
) -> dict[str, Any]:
    """Return what JSON has of an inference; the arguments are those of `describe_inference`."""
    document = describe_topology(topology)
    if values is not None:
        document |= {"statistic": values.statistic, "length": values.length}
    return document | {"pairs_to_measure_again": again, "refused": refusal}


def describe_topology(topology: InferredTopology) -> dict[str, Any]:
    """Return what JSON has: hosts, switches with the hosts directly on them, edges, and what is unknown."""
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
