# SPDX-License-Identifier: Apache-2.0
"""An inferred topology as lines of text: hosts of each switch, links, throughputs, and what is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

import numpy as np

from ibprof_converter.outputs.slurm_topology import compress
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.infer.refusal import WEAK
from ibprof_lab.topology.model.inferred_topology import InferredTopology

_SHOWN_SWITCHES = 40
_SHOWN_LINKS = 8
_SHOWN_WEAK = 10


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
    own: list[list[str]] = [[] for _ in topology.switches]
    linked: list[list[str]] = [[] for _ in topology.switches]
    for (a, b), latency in zip(np.sort(topology.edge, axis=1).tolist(), topology.latency_seconds, strict=True):
        if a < hosts <= b:
            own[b - hosts].append(topology.hosts[a])
        elif a >= hosts:
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
        yield f"{one} to {other}: {_rate(found.edge_gbps[edge], found.edge_at_least[edge])}"
    for switch, name in enumerate(topology.switches):
        yield f"through {name}: {_rate(found.switch_gbps[switch], found.switch_at_least[switch])}"


def _rate(gbps: float, at_least: bool) -> str:
    if np.isnan(gbps):
        return "not measured: no pair of hosts is sure to use it"
    return f"{'at least ' if at_least else ''}{gbps:.3g} Gb/s"
