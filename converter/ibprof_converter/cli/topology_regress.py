# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology regress`: the latencies of a known topology's links, from all delays at once."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from dataclasses import replace
from io import StringIO
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.text.quantities import printable
from ibprof_converter.cli.arguments import number_between, parse_length
from ibprof_converter.cli.topology_infer import add_outputs, check_outputs, write_outputs
from ibprof_converter.cli.topology_methods import read_processes
from ibprof_converter.latency.files.atomic_write import write_atomically
from ibprof_converter.outputs.inferred_graph import describe_topology
from ibprof_converter.topology.files.topology_files import READERS, read_graph
from ibprof_converter.topology.infer.pair_delays import take_pair_delays
from ibprof_converter.topology.model.inferred_topology import InferredTopology
from ibprof_converter.topology.reference.host_matching import match_hosts
from ibprof_converter.topology.reference.link_regression import (
    CORRECTIONS,
    MINIMUM,
    NONE,
    LinkRegression,
    correct_for_size,
    keep_unique,
    regress,
)
from ibprof_converter.topology.reference.link_times import average_processes
from ibprof_converter.topology.reference.reference_comparison import choose_pairs
from ibprof_converter.topology.reference.reference_paths import find_reference_paths
from ibprof_converter.topology.reference.reference_topology import Reference, read_reference, take_topology

_SHOWN = 40

_EXAMPLES = """\
examples:
  ibprof-topology regress topology.json delays.nc
  ibprof-topology regress topology.json delays.nc --correct minimum -o latencies.tgf
  ibprof-topology regress ibdiagnet2.lst delays.nc -o latencies.csv
"""


def add_regress(commands: Any, raw: type[argparse.HelpFormatter]) -> None:
    """Add the command `regress`."""
    parser = commands.add_parser(
        "regress",
        help="latencies of all links by linear regression",
        description="Find the latency of each link of a known topology by ordinary least squares over all delays "
        "(Bufe, section 2.4).",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    parser.set_defaults(run=_run)
    add = parser.add_argument
    add(
        "topology",
        metavar="TOPOLOGY",
        help="what infer wrote (.json, .dot, .tgf), or a fabric",
    )
    add("delays", metavar="DELAYS", help="of its hosts")
    add(
        "--correct",
        choices=CORRECTIONS,
        help="for the time that the bytes take: that of the slowest link of the way, or of all its links one after "
        "another (default: minimum where throughputs are known, else none)",
    )
    add("--gbps", metavar="X", type=lambda text: number_between(text, 1e-6, 1e6), help="of links whose throughput "
        "is not known")  # fmt: skip
    add("--paths", choices=("unique", "shortest"), default="unique", help="leave pairs out that have several ways of "
        "the same length; or take one of them (unique)")  # fmt: skip
    add("--epsilon", metavar="E", type=lambda text: number_between(text, 0, 1), default=0.01, help="by which ways "
        "are of the same length (0.01)")  # fmt: skip
    add("--length", metavar="BYTES", type=parse_length, help="of the messages (default: the shortest)")
    add_outputs(parser)


def _run(arguments: argparse.Namespace) -> None:
    is_fabric = Path(arguments.topology).suffix not in READERS
    tables = [path for path in arguments.output if path.suffix == ".csv"]
    graphs = [path for path in arguments.output if path not in tables]
    if is_fabric and graphs:
        raise UsageError(f"-o {graphs[0]}: of a fabric's links there is .csv; .json is for what infer wrote")
    arguments.output = graphs
    check_outputs(arguments)
    topology = None if is_fabric else read_graph(arguments.topology)
    if topology is None:
        reference = read_reference(arguments.topology)
    else:
        if topology.directed:
            raise UsageError(f"{arguments.topology}: arcs that lead one way have no common latency")
        reference = take_topology(arguments.topology, topology)
    gbps = reference.gbps if arguments.gbps is None else np.where(reference.gbps > 0, reference.gbps, arguments.gbps)
    found = _regress(arguments, reference, gbps, topology.overhead_seconds if topology else 0.0)
    for path in tables:
        text = StringIO()
        _write_table(text, reference, found, gbps)
        write_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))
    document: dict[str, Any] = {
        "r_squared": None if isnan(found.r_squared) else round(found.r_squared, 9),
        "ways": found.ways,
        "corrected": found.corrected,
    }
    if topology is not None:
        topology = _with_latencies(topology, reference, found)
        write_outputs(arguments, topology, f"latencies regressed on {arguments.delays}")
        document |= describe_topology(topology)
    else:
        document |= {"edges": [_describe_link(reference, found, gbps, link) for link in range(len(reference.link))]}
    if arguments.json:
        print(json.dumps(document, indent=1))
        return
    _show(reference, found)


def _regress(
    arguments: argparse.Namespace, reference: Reference, gbps: npt.NDArray[np.float64], overhead: float
) -> LinkRegression:
    delays = read_processes(arguments.delays)
    values = take_pair_delays(delays, arguments.length, "median")
    matched = match_hosts(values.hosts, reference)
    matrix = average_processes(values.seconds, matched.of_inferred)
    pair = choose_pairs(matrix)
    pair = pair[pair[:, 0] < pair[:, 1]]
    source, destination = matched.vertex[pair].T
    ways = find_reference_paths(reference, source, destination)
    if arguments.paths == "unique":
        ways = keep_unique(reference, ways, source, arguments.epsilon)
    how = arguments.correct or (MINIMUM if (gbps > 0).any() else NONE)
    seconds = correct_for_size(ways, matrix[tuple(pair.T)] - overhead, gbps, values.length, how)
    return regress(ways, seconds, len(reference.link), how)


def _with_latencies(topology: InferredTopology, reference: Reference, found: LinkRegression) -> InferredTopology:
    """Put latencies into a topology; those that are not told stay what they were."""
    new = {tuple(ends): seconds for ends, seconds in zip(reference.link.tolist(), found.latency_seconds, strict=True)}
    seconds = np.array([new[min(a, b), max(a, b)] for a, b in topology.edge.tolist()])
    unknown = list(topology.unknown)
    if hidden := int(np.isnan(seconds).sum()):
        unknown.append(f"the delays do not tell the latencies of {hidden} links, which stay what they were")
    return replace(
        topology,
        latency_seconds=np.where(np.isnan(seconds), topology.latency_seconds, seconds),
        notes=(*topology.notes, f"latencies by linear regression, R2 {found.r_squared:.6g}"),
        unknown=tuple(unknown),
    )


def _describe_link(
    reference: Reference, found: LinkRegression, gbps: npt.NDArray[np.float64], link: int
) -> dict[str, str | int | float | None]:
    a, b = reference.link[link].tolist()
    row: dict[str, str | int | float | None] = {"a": reference.names[a], "b": reference.names[b]}
    if reference.fabric is not None:
        fabric = reference.fabric
        for end, node, port in zip("ab", fabric.link_node[link].tolist(), fabric.link_port[link].tolist(), strict=True):
            row |= {f"{end}_guid": f"0x{int(fabric.node_guid[node]):016x}", f"{end}_port": port}
    latency, rate = float(found.latency_seconds[link]), float(gbps[link])
    return row | {
        "gbps": None if isnan(rate) else rate,
        "latency_us": None if isnan(latency) else round(latency * 1e6, 6),
    }


def _write_table(file: StringIO, reference: Reference, found: LinkRegression, gbps: npt.NDArray[np.float64]) -> None:
    rows = [_describe_link(reference, found, gbps, link) for link in range(len(reference.link))]
    writer = csv.DictWriter(file, list(rows[0]) if rows else ["a", "b", "gbps", "latency_us"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _show(reference: Reference, found: LinkRegression) -> None:
    quality = f"R2 {found.r_squared:.6f}, corrected for size: {found.corrected}"
    print(f"{len(reference.link)} links, {found.ways} ways, {quality}")
    for (a, b), seconds in zip(reference.link[:_SHOWN].tolist(), found.latency_seconds, strict=False):
        told = "not told" if isnan(seconds) else f"{seconds * 1e6:.4g} us"
        print(printable(f"  {reference.names[a]} to {reference.names[b]}: {told}"))
    if len(reference.link) > _SHOWN:
        print(f"  and {len(reference.link) - _SHOWN} more: --json, -o latencies.csv")
    if hidden := int(np.isnan(found.latency_seconds).sum()):
        print(f"cannot be told: the latencies of {hidden} links, by themselves or apart from others", file=sys.stdout)
