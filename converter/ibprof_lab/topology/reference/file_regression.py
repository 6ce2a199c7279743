# SPDX-License-Identifier: Apache-2.0
"""Regression of the links' latencies of a known topology or fabric, from files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_lab.topology.files.topology_files import READERS, read_graph
from ibprof_lab.topology.infer.inference_methods import read_host_delays
from ibprof_lab.topology.infer.pair_delays import take_pair_delays
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.reference.host_matching import match_hosts
from ibprof_lab.topology.reference.link_regression import (
    MINIMUM,
    NONE,
    LinkRegression,
    correct_for_size,
    keep_unique,
    regress,
)
from ibprof_lab.topology.reference.link_times import average_processes
from ibprof_lab.topology.reference.reference_comparison import choose_pairs
from ibprof_lab.topology.reference.reference_paths import find_reference_paths
from ibprof_lab.topology.reference.reference_topology import Reference, read_reference, take_topology

UNIQUE, SHORTEST = "unique", "shortest"


@dataclass(frozen=True, slots=True)
class RegressOptions:
    """The files to regress, and how.

    Attributes:
        topology: file of a topology or a fabric.
        delays: file of delays between its hosts.
        correct: of `CORRECTIONS`; None for `MINIMUM` where throughputs are known, else `NONE`.
        gbps: data rate of links whose throughput is unknown, Gb/s; None where unknown too.
        paths: `UNIQUE` leaves out pairs with several paths of the same length; `SHORTEST` takes one of these.
        epsilon: relative difference of lengths that are the same.
        length: bytes of the messages; None for the shortest.
        unit: of delays in a CSV or numpy matrix, of `UNITS`.
    """

    topology: str
    delays: str
    correct: str | None
    gbps: float | None
    paths: str
    epsilon: float
    length: int | None
    unit: str = "us"

    @property
    def is_fabric(self) -> bool:
        """True where the topology is a fabric's own file, by the name's end."""
        return Path(self.topology).suffix not in READERS


@dataclass(frozen=True, slots=True)
class RegressedLinks:
    """Latencies of the links of a topology or fabric.

    Attributes:
        reference: the links.
        gbps: float64 [link], data rates that corrected the delays; nan where unknown.
        regression: the latencies.
        topology: with these latencies; None of a fabric.
    """

    reference: Reference
    gbps: npt.NDArray[np.float64]
    regression: LinkRegression
    topology: InferredTopology | None


def regress_files(options: RegressOptions) -> RegressedLinks:
    """Read a topology and delays, and regress.

    Raises:
        InputError: a file is damaged.
        UsageError: the topology is directed, no throughput is known for the correction, or the graph is too large.
        InconsistentError: the two have no host in common.
    """
    topology = None if options.is_fabric else read_graph(options.topology)
    if topology is not None and topology.directed:
        raise UsageError(f"{options.topology}: arcs of one direction have no common latency")
    reference = read_reference(options.topology) if topology is None else take_topology(options.topology, topology)
    known = reference.gbps > 0
    gbps = reference.gbps if options.gbps is None else np.where(known, reference.gbps, options.gbps)
    found = _regress(options, reference, gbps, topology.overhead_seconds if topology else 0.0)
    if topology is not None:
        topology = _set_latencies(topology, reference, found)
    return RegressedLinks(reference, gbps, found, topology)


def _regress(
    options: RegressOptions, reference: Reference, gbps: npt.NDArray[np.float64], overhead: float
) -> LinkRegression:
    values = take_pair_delays(read_host_delays(options.delays, options.unit), options.length, "median")
    matched = match_hosts(values.hosts, reference)
    matrix = average_processes(values.seconds, matched.of_inferred)
    pair = choose_pairs(matrix)
    pair = pair[pair[:, 0] < pair[:, 1]]
    source, destination = matched.vertex[pair].T
    paths = find_reference_paths(reference, source, destination)
    if options.paths == UNIQUE:
        paths = keep_unique(reference, paths, source, options.epsilon)
    correction = options.correct or (MINIMUM if (gbps > 0).any() else NONE)
    seconds = correct_for_size(paths, matrix[tuple(pair.T)] - overhead, gbps, values.length, correction)
    return regress(paths, seconds, len(reference.link), correction)


def _set_latencies(topology: InferredTopology, reference: Reference, found: LinkRegression) -> InferredTopology:
    """Return a topology with regressed latencies; those that the delays do not determine stay as they were."""
    new = {tuple(ends): seconds for ends, seconds in zip(reference.link.tolist(), found.latency_seconds, strict=True)}
    seconds = np.array([new[min(a, b), max(a, b)] for a, b in topology.edge.tolist()])
    unknown = list(topology.unknown)
    if hidden := int(np.isnan(seconds).sum()):
        unknown.append(f"the delays do not determine the latencies of {hidden} links, which stay as they were")
    return replace(
        topology,
        latency_seconds=np.where(np.isnan(seconds), topology.latency_seconds, seconds),
        notes=(*topology.notes, f"latencies by linear regression, R2 {found.r_squared:.6g}"),
        unknown=tuple(unknown),
    )
