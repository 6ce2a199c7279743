# SPDX-License-Identifier: Apache-2.0
"""Plans of synthetic topologies in DOT, their delays, and comparisons of topologies with a reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import take_pair_delays
from ibprof_lab.topology.reference.reference_comparison import ReferenceComparison, compare_with_reference
from ibprof_lab.topology.reference.reference_topology import Reference
from ibprof_testing.samples.topologies import Made, disturb


def name(vertex: int | str) -> str:
    return f"n{vertex + 1}" if isinstance(vertex, int) else vertex


def write_plan(made: Made, path: str = "plan.dot", gbps: float = 100) -> str:
    lines = [f'  "{name(a)}" -- "{name(b)}" [label={gbps:g}];' for a, b in made.graph.edges]
    Path(path).write_text("\n".join(["graph plan {", *lines, "}"]))
    return path


def as_delays(made: Made, noise: float = 0.03, seed: int = 1) -> Delays:
    matrix = disturb(made.delays(), noise, seed).astype(np.float32)
    return Delays(tuple(name(host) for host in range(made.hosts)), np.array([8]), matrix[None])


def compare_made(made: Made, reference: Reference, noise: float = 0.03, seed: int = 1) -> ReferenceComparison:
    delays = as_delays(made, noise, seed)
    found = infer(take_pair_delays(delays), InferenceEffort(replicates=0)).topology
    return compare_with_reference(found, reference, delays, 8)


def switch_of(made: Made, host: int) -> str:
    (switch,) = made.graph[host]
    return str(switch)


def name_slow(compared: ReferenceComparison) -> set[frozenset[str]]:
    """Return the names of both ends of each link that the comparison reports as slow."""
    reference = compared.reference
    return {frozenset(reference.names[end] for end in reference.link[each.link]) for each in compared.slow}
