# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology throughput`: what each link of a known topology carries, measured by all processes of an MPI job."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ibprof.errors import InconsistentError, UsageError
from ibprof.text.quantities import printable
from ibprof_converter.cli.ranks import KILLED_BY, end_together
from ibprof_converter.cli.topology_infer import add_outputs, check_outputs, write_outputs
from ibprof_converter.latency.measure.concurrent_streams import ConcurrentStreams, StreamSettings
from ibprof_converter.latency.measure.message_lengths import parse_lengths
from ibprof_converter.latency.measure.mpi_start import start_mpi
from ibprof_converter.latency.measure.process_agreement import RoundBarrier, on_first
from ibprof_converter.latency.measure.progress_meter import ProgressMeter, show_seconds
from ibprof_converter.latency.model.delays import name_processes
from ibprof_converter.outputs.inferred_graph import describe_topology
from ibprof_converter.topology.files.topology_json import read_topology
from ibprof_converter.topology.model.inferred_topology import InferredTopology, LinkThroughput
from ibprof_converter.topology.throughput.throughput_measurement import ThroughputMeasurement, follow_measurement

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology throughput topology.json -o measured.json -o measured.lst
  ibprof-report measured.lst profile.otf2

One process a host of the topology; of several the first one counts. -o as of `ibprof-topology infer`.
"""


def add_throughput(commands: Any, raw: type[argparse.HelpFormatter]) -> None:
    """Add the command `throughput`."""
    parser = commands.add_parser(
        "throughput",
        help="what each link carries, on all processes of an MPI job",
        description="Measure what links and switches of an inferred topology carry. Pairs of hosts send at the same "
        "time; no two measurements that run at once share a link (Bufe, section 2.3).",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    parser.set_defaults(run=_run)
    parser.add_argument("topology", metavar="TOPOLOGY", type=Path, help="as JSON, of `ibprof-topology infer`")
    parser.add_argument("--length", metavar="BYTES", default="256K", help="of a message (256K)")
    parser.add_argument("--window", metavar="N", type=_count, default=16, help="messages under way at once (16)")
    parser.add_argument("--seconds", metavar="S", type=_seconds, default=0.5, help="of one measurement (0.5)")
    parser.add_argument(
        "--repetitions", metavar="N", type=_count, default=3, help="of each measurement; the best one counts (3)"
    )
    parser.add_argument("--pairs", metavar="N", type=_count, help="at once over a link, at most (default: all)")
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be measured, and for how long")
    add_outputs(parser)


def _run(arguments: argparse.Namespace) -> int:
    check_outputs(arguments)
    lengths = parse_lengths(arguments.length)
    if len(lengths) != 1 or not lengths[0]:
        raise UsageError(f"--length: expected one length above 0, found {arguments.length!r}")
    streaming = StreamSettings(int(lengths[0]), arguments.window, arguments.seconds)
    module = start_mpi()
    return end_together(module, lambda: _measure(module, arguments, streaming))


def _measure(module: Any, arguments: argparse.Namespace, streaming: StreamSettings) -> int:
    comm = module.COMM_WORLD.Dup()
    processors = comm.allgather(module.Get_processor_name())
    planned = on_first(comm, lambda: _plan(arguments, processors))
    barrier = RoundBarrier(comm)
    meter = ProgressMeter(lambda line: print(f"ibprof-topology: {line}", file=sys.stderr, flush=True))
    rounds = planned[1].rounds if planned else 0
    if planned:
        each = 2 * arguments.repetitions * 1.5 * streaming.seconds
        meter.say(
            f"{len(planned[0].hosts)} hosts, {rounds} rounds of measurements; about {show_seconds(rounds * each)}"
        )
    if arguments.dry_run:
        return 0
    flows = ConcurrentStreams(comm, barrier, streaming)
    with barrier:
        if planned:
            topology, measurement = planned
            meter.start("measuring", rounds)
            topology = replace(topology, throughput=measurement.run(flows, lambda: meter.advance(1)))
            meter.stop()
        else:
            follow_measurement(flows)
    on_first(comm, lambda: _write(arguments, topology))
    number: int = comm.allreduce(barrier.signal, module.MAX)
    return KILLED_BY + number if number else 0


def _plan(arguments: argparse.Namespace, processors: Sequence[str]) -> tuple[InferredTopology, ThroughputMeasurement]:
    topology = read_topology(arguments.topology)
    if topology.directed:
        raise UsageError(f"{arguments.topology}: arcs that lead one way tell no route; infer by another method")
    ranks = find_ranks(topology.hosts, processors, str(arguments.topology))
    return topology, ThroughputMeasurement(topology, ranks, arguments.repetitions, arguments.pairs)


def find_ranks(hosts: Sequence[str], processors: Sequence[str], path: str) -> list[int]:
    """Give the rank that measures for each host: the first one there.

    Args:
        hosts: of the topology; where it is of one host alone, its processes, `host#0` and so on.
        processors: the host of each rank.
        path: of the topology, for messages.

    Raises:
        InconsistentError: a host has no rank.
    """
    first: dict[str, int] = {}
    for rank, (name, label) in enumerate(zip(processors, name_processes(processors), strict=True)):
        first.setdefault(name, rank)
        first.setdefault(label, rank)
    missing = [host for host in hosts if host not in first]
    if missing:
        shown = ", ".join(missing[:5]) + (" and more" if len(missing) > 5 else "")
        raise InconsistentError(
            f"{path}: expected a process on each of its {len(hosts)} hosts, found none on {printable(shown)}"
        )
    return [first[host] for host in hosts]


def _write(arguments: argparse.Namespace, topology: InferredTopology) -> None:
    write_outputs(arguments, topology, f"throughput measured on {arguments.topology}")
    if arguments.json:
        print(json.dumps(describe_topology(topology), indent=1))
    elif topology.throughput is not None:
        _show(sys.stdout, topology, topology.throughput)


def _show(file: TextIO, topology: InferredTopology, found: LinkThroughput) -> None:
    """Print links, the slowest first, and switches."""
    for edge in np.argsort(found.edge_gbps, kind="stable").tolist():
        one, other = (topology.names[end] for end in topology.edge[edge])
        print(printable(f"{one} to {other}: {_rate(found.edge_gbps[edge], found.edge_at_least[edge])}"), file=file)
    for switch, name in enumerate(topology.switches):
        print(
            printable(f"through {name}: {_rate(found.switch_gbps[switch], found.switch_at_least[switch])}"), file=file
        )


def _rate(gbps: float, at_least: bool) -> str:
    if np.isnan(gbps):
        return "not measured: no pair of hosts is sure to use it"
    return f"{'at least ' if at_least else ''}{gbps:.3g} Gb/s"


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) < 1_000_000):
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.001 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"expected seconds from 0.001 to 3600, found {text!r}")
    return seconds
