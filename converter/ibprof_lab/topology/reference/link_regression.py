# SPDX-License-Identifier: Apache-2.0
"""Bufe's linear regression: the latencies of all links of a known topology, from delays over paths of these links.

Source: A. Bufe (see `published_methods`), section 2.4.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from ibprof.errors import UsageError
from ibprof.text.quantities import count_of
from ibprof_converter.outputs.atomic_write import write_text
from ibprof_lab.lab_choices import MINIMUM, NONE, UNIQUE
from ibprof_lab.topology.infer.inference_methods import read_host_delays
from ibprof_lab.topology.infer.pair_delays import take_pair_delays
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.model.topology_files import READERS, describe_topology, read_graph
from ibprof_lab.topology.reference.differences import average_processes, choose_pairs, match_hosts
from ibprof_lab.topology.reference.reference_topology import (
    Reference,
    ReferencePaths,
    find_reference_paths,
    keep_unique,
    read_reference,
    take_topology,
)

Floats = npt.NDArray[np.float64]

_BITS = 8
_GIGA = 1e9
_NOTHING = 1e-6

_SHOWN_LINKS = 40


@dataclass(frozen=True, slots=True)
class LinkRegression:
    """Result of the regression.

    Attributes:
        latency_seconds: float64 [link]; nan if the paths do not determine the link's latency.
        r_squared: coefficient of determination; 1 if the latencies explain all delays exactly, nan if all delays are
            equal.
        paths: number of paths with a delay.
        corrected: correction of the delays for the message length, from `CORRECTIONS`.
    """

    latency_seconds: Floats
    r_squared: float
    paths: int
    corrected: str


def correct_for_size(paths: ReferencePaths, delays: Floats, gbps: Floats, length: int, how: str) -> Floats:
    """Subtract the transfer time of the message's bytes from delays.

    Args:
        delays: float64 [pair], seconds.
        gbps: float64 [link], throughput of one direction in Gb/s; a link of unknown throughput (nan) adds no time.
        length: message length, bytes.
        how: `MINIMUM` subtracts the transfer time over the slowest link of the path, `STORE_AND_FORWARD` the sum over
            all links of the path, `NONE` nothing.

    Raises:
        UsageError: no link's throughput is known.
    """
    if how == NONE:
        return delays
    known = gbps > 0
    if not known.any():
        raise UsageError(f"--correct {how}: no link's throughput is known; give --gbps, or measure the throughput")
    seconds = np.zeros(len(gbps))
    seconds[known] = length * _BITS / (gbps[known] * _GIGA)
    taken = np.zeros(len(delays))
    if how == MINIMUM:
        np.maximum.at(taken, paths.pair, seconds[paths.link])
    else:
        np.add.at(taken, paths.pair, seconds[paths.link])
    return delays - taken


def regress(paths: ReferencePaths, delays: Floats, links: int, corrected: str = NONE) -> LinkRegression:
    """Fit latencies of links by least squares, so that sums along the paths approximate the delays. `delays`: float64
    [pair], seconds. `corrected`: name of the correction of `delays`, for the result.
    """
    used = (paths.hops > 0) & np.isfinite(delays)
    matrix = csr_matrix((np.ones(len(paths.link)), paths.link, paths.offset), (len(delays), links))[used]
    target = delays[used]
    if not len(target):
        return LinkRegression(np.full(links, nan), nan, 0, corrected)
    gram = (matrix.T @ matrix).toarray()
    value, vector = np.linalg.eigh(gram)
    determined = value > _NOTHING * value[-1]
    base = vector[:, determined]
    latency: Floats = base @ ((base.T @ (matrix.T @ target)) / value[determined])
    # A latency with a part in the null space is undetermined, since other values give the same sums over all paths.
    hidden = np.square(vector[:, ~determined]).sum(axis=1) > _NOTHING
    left = target - matrix @ latency
    spread = float(np.square(target - target.mean()).sum())
    r_squared = 1 - float(np.square(left).sum()) / spread if spread > 0 else nan
    latency[hidden] = nan
    return LinkRegression(latency, r_squared, len(target), corrected)


def is_fabric(topology: str) -> bool:
    """Return True if an argument names a fabric, not a file of a topology."""
    return Path(topology).suffix not in READERS


@dataclass(frozen=True, slots=True)
class RegressedLinks:
    """A topology or fabric with regressed latencies.

    Attributes:
        gbps: float64 [link], data rates used for the correction, Gb/s; nan where unknown.
        regression: the regressed latencies.
        topology: the topology with the regressed latencies; None for a fabric.
    """

    reference: Reference
    gbps: npt.NDArray[np.float64]
    regression: LinkRegression
    topology: InferredTopology | None


def regress_files(
    topology: str,
    delays: str,
    correct: str | None,
    gbps: float | None,
    paths: str,
    epsilon: float,
    length: int | None,
    unit: str,
) -> RegressedLinks:
    """Read a topology and delays, and regress the latencies. `ibprof-topology regress` has the same arguments.

    Raises:
        InputError: a file is damaged.
        UsageError: the topology is directed, no throughput is known for the correction, or the graph is too large.
        InconsistentError: the topology and the delays have no common host.
    """
    graph = None if is_fabric(topology) else read_graph(topology)
    if graph is not None and graph.directed:
        raise UsageError(f"{topology}: expected links, found arcs of one direction; infer by another method")
    reference = read_reference(topology) if graph is None else take_topology(topology, graph)
    rates = reference.gbps if gbps is None else np.where(reference.gbps > 0, reference.gbps, gbps)
    values = take_pair_delays(read_host_delays(delays, unit), length, "median")
    matched = match_hosts(values.hosts, reference)
    matrix = average_processes(values.seconds, matched.of_inferred)
    pair = choose_pairs(matrix)
    pair = pair[pair[:, 0] < pair[:, 1]]
    source, destination = matched.vertex[pair].T
    between = find_reference_paths(reference, source, destination)
    if paths == UNIQUE:
        between = keep_unique(reference, between, source, epsilon)
    correction = correct or (MINIMUM if (rates > 0).any() else NONE)
    seconds = matrix[tuple(pair.T)] - (graph.overhead_seconds if graph else 0.0)
    seconds = correct_for_size(between, seconds, rates, values.length, correction)
    found = regress(between, seconds, len(reference.link), correction)
    return RegressedLinks(reference, rates, found, graph and _set_latencies(graph, reference, found))


def _set_latencies(topology: InferredTopology, reference: Reference, found: LinkRegression) -> InferredTopology:
    """Return a topology with the regressed latencies. Undetermined latencies keep their old values."""
    new = {tuple(ends): seconds for ends, seconds in zip(reference.link.tolist(), found.latency_seconds, strict=True)}
    seconds = np.array([new[min(a, b), max(a, b)] for a, b in topology.edge.tolist()])
    unknown = list(topology.unknown)
    if hidden := int(np.isnan(seconds).sum()):
        unknown.append(
            f"the delays do not determine the latencies of {count_of(hidden, 'link')}, which stay as they were"
        )
    return replace(
        topology,
        latency_seconds=np.where(np.isnan(seconds), topology.latency_seconds, seconds),
        notes=(*topology.notes, f"latencies by linear regression, R2 {found.r_squared:.6g}"),
        unknown=tuple(unknown),
    )


def describe_regression(links: RegressedLinks) -> dict[str, Any]:
    """Return the JSON document of a regression: quality of the fit, and the topology or the fabric's links."""
    found = links.regression
    document: dict[str, Any] = {
        "r_squared": None if isnan(found.r_squared) else round(found.r_squared, 9),
        "ways": found.paths,
        "corrected": found.corrected,
    }
    return document | ({"edges": _list_rows(links)} if links.topology is None else describe_topology(links.topology))


def write_regression_csv(path: Path, links: RegressedLinks) -> None:
    """Write a CSV file with a row for each link.

    Raises:
        OSError: the file cannot be written.
    """
    rows = _list_rows(links)

    def write(file: TextIO) -> None:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["a", "b", "gbps", "latency_us"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)

    write_text(path, write)


def describe_regression_lines(links: RegressedLinks) -> Iterator[str]:
    """Yield the lines of a regression: quality of the fit, the first links, and the number of unknown latencies."""
    reference, found = links.reference, links.regression
    count = len(reference.link)
    subtracted = f"transfer time subtracted (--correct): {found.corrected}"
    yield f"{count_of(count, 'link')}, {count_of(found.paths, 'path')}, R2 {found.r_squared:.6f}, {subtracted}"
    for (a, b), seconds in zip(reference.link[:_SHOWN_LINKS].tolist(), found.latency_seconds, strict=False):
        latency = "unknown" if isnan(seconds) else f"{seconds * 1e6:.4g} µs"
        yield f"  {reference.names[a]} to {reference.names[b]}: {latency}"
    if count > _SHOWN_LINKS:
        yield f"  and {count - _SHOWN_LINKS} more: --json or -o latencies.csv has all"
    if hidden := int(np.isnan(found.latency_seconds).sum()):
        yield f"unknown: the latencies of {count_of(hidden, 'link')}; the delays determine at most sums of latencies"


def _list_rows(links: RegressedLinks) -> list[dict[str, str | int | float | None]]:
    return [_describe_row(links, link) for link in range(len(links.reference.link))]


def _describe_row(links: RegressedLinks, link: int) -> dict[str, str | int | float | None]:
    reference, fabric = links.reference, links.reference.fabric
    a, b = reference.link[link].tolist()
    row: dict[str, str | int | float | None] = {"a": reference.names[a], "b": reference.names[b]}
    if fabric is not None:
        for end, node, port in zip("ab", fabric.link_node[link].tolist(), fabric.link_port[link].tolist(), strict=True):
            row |= {f"{end}_guid": f"0x{int(fabric.node_guid[node]):016x}", f"{end}_port": port}
    latency, rate = float(links.regression.latency_seconds[link]), float(links.gbps[link])
    return row | {
        "gbps": None if isnan(rate) else rate,
        "latency_us": None if isnan(latency) else round(latency * 1e6, 6),
    }
