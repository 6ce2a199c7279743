# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology throughput`, `direct-links` and `remeasure`: measurements on a known topology, as an MPI job."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.cli.arguments import Subcommands, add_subcommand, count_in, fill_options, number_in, type_of
from ibprof_converter.cli.printing import print_result
from ibprof_lab.cli.topology_options import add_outputs, build_outputs, write_outputs
from ibprof_lab.latency.measure.concurrent_loops import StreamSettings
from ibprof_lab.latency.measure.mpi_job import work_together
from ibprof_lab.latency.model.typed_quantities import parse_budget, parse_length
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput
from ibprof_lab.topology.model.topology_files import describe_topology
from ibprof_lab.topology.outputs.topology_outputs import TopologyOutputs, describe_throughput
from ibprof_lab.topology.throughput.direct_links import (
    DirectLinkResults,
    DirectLinkTest,
    add_direct_links,
    describe_direct_links,
    list_direct_links,
)
from ibprof_lab.topology.throughput.link_throughput import ThroughputMeasurement
from ibprof_lab.topology.throughput.pair_jobs import ConcurrentOptions, measure_on_all
from ibprof_lab.topology.throughput.remeasurement import RemeasureOptions, remeasure

_THROUGHPUT_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology throughput topology.json -o measured.json -o measured.lst
  ibprof-report measured.lst profile.otf2

Start a process on each host of the topology; of several the first one counts. -o as of `ibprof-topology infer`.
"""

_DIRECT_LINKS_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology throughput topology.json -o measured.json
  mpirun ibprof-topology direct-links measured.json -o corrected.json
  mpirun ibprof-topology direct-links measured.json --between node1 node7

Start a process on each host of the topology; of several the first one counts. With the throughputs of `throughput` more
pairs can be decided. -o as of `ibprof-topology infer`, with the direct links that were found.
"""

_REMEASURE_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology remeasure topology.json delays.nc --budget 20%
  ibprof-topology infer delays.nc -o better.json

Pairs that the topology does not explain come first, then a few that represent every link. Pairs of one round share no
switch. The lower value of a pair is kept.
"""


@dataclass(frozen=True, slots=True)
class _ThroughputOptions:
    measure: ConcurrentOptions
    pairs: int | None
    outputs: TopologyOutputs


def add_throughput(commands: Subcommands) -> None:
    """Add the command `throughput`."""
    description = (
        "Measure the throughput of links and switches of an inferred topology. Pairs of hosts send at the same time; "
        "no two measurements that run at the same time share a link (Bufe, section 2.3)."
    )
    summary = "throughput of each link, on all processes of an MPI job"
    parser = add_subcommand(
        commands,
        "throughput",
        summary,
        _THROUGHPUT_EXAMPLES,
        _build_throughput_options,
        _measure_throughput,
        description,
    )
    _add_stream_arguments(parser)
    parser.add_argument("--pairs", metavar="N", type=count_in(1, 999_999), help="largest number at the same time over "
        "a link (default: all)")  # fmt: skip
    add_outputs(parser)


def _build_throughput_options(arguments: argparse.Namespace) -> _ThroughputOptions:
    return _ThroughputOptions(_build_streams(arguments), arguments.pairs, build_outputs(arguments))


def _measure_throughput(options: _ThroughputOptions) -> int:
    outputs = options.outputs

    def finish(topology: InferredTopology, found: LinkThroughput) -> None:
        measured = replace(topology, throughput=found)
        write_outputs(outputs, measured, f"throughput measured on {options.measure.topology}")
        print_result(describe_topology(measured), describe_throughput(measured), outputs.json, indent=1)

    def plan(topology: InferredTopology) -> ThroughputMeasurement:
        return ThroughputMeasurement(topology, options.pairs)

    return work_together(lambda module: measure_on_all(module, options.measure, plan, finish))


def _add_stream_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the topology, and how pairs send."""
    add, count = parser.add_argument, count_in(1, 999_999)
    add("topology", metavar="TOPOLOGY", type=Path, help="as JSON, of `ibprof-topology infer`")
    add("--length", metavar="BYTES", type=type_of(parse_length), default="256K", help="of a message (256K)")
    add("--window", metavar="N", type=count, default=16, help="messages in flight (16)")
    add("--seconds", metavar="S", type=number_in(0.001, 3600), default=0.5, help="of one measurement (0.5)")
    add("--repetitions", metavar="N", type=count, default=3, help="of each measurement; the best one counts (3)")
    add("--dry-run", action="store_true", help="only print what would be measured, and for how long")


def _build_streams(arguments: argparse.Namespace) -> ConcurrentOptions:
    """Return how pairs send.

    Raises:
        UsageError: messages of no bytes.
    """
    if not arguments.length:
        raise UsageError("--length: expected bytes above 0, found 0")
    return fill_options(ConcurrentOptions, arguments, streams=fill_options(StreamSettings, arguments))


@dataclass(frozen=True, slots=True)
class _DirectLinkOptions:
    measure: ConcurrentOptions
    between: tuple[tuple[str, str], ...]
    outputs: TopologyOutputs


def add_direct_links_command(commands: Subcommands) -> None:
    """Add the command `direct-links`."""
    description = (
        "Find links that delays cannot show, since a path over other links is as long. Two hosts send while others "
        "fill a link of that path: with a link of their own their rate stays (Bufe, section 2.2.1)."
    )
    summary = "links that delays cannot show, on all processes of an MPI job"
    parser = add_subcommand(
        commands,
        "direct-links",
        summary,
        _DIRECT_LINKS_EXAMPLES,
        _build_direct_link_options,
        _measure_direct_links,
        description,
    )
    _add_stream_arguments(parser)
    parser.add_argument("--between", metavar="HOST", nargs=2, action="append", default=[], help="only these two hosts; "
        "repeatable (default: a host of each two switches that are at least two links apart)")  # fmt: skip
    add_outputs(parser)


def _build_direct_link_options(arguments: argparse.Namespace) -> _DirectLinkOptions:
    outputs = build_outputs(arguments)
    between = tuple((str(one), str(other)) for one, other in arguments.between)
    return _DirectLinkOptions(_build_streams(arguments), between, outputs)


def _measure_direct_links(options: _DirectLinkOptions) -> int:
    def plan(topology: InferredTopology) -> DirectLinkTest:
        return DirectLinkTest(topology, _find_hosts(topology, options.between) if options.between else None)

    def finish(topology: InferredTopology, found: DirectLinkResults) -> None:
        path = options.measure.topology
        write_outputs(options.outputs, add_direct_links(topology, found.rates), f"direct links tried on {path}")
        document, lines = list_direct_links(topology, found), describe_direct_links(topology, found)
        print_result(document, lines, options.outputs.json, indent=1)

    return work_together(lambda module: measure_on_all(module, options.measure, plan, finish))


def _find_hosts(topology: InferredTopology, between: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """Return the numbers of pairs of hosts.

    Raises:
        UsageError: the topology lacks one.
    """
    number = {name: row for row, name in enumerate(topology.hosts)}
    for name in (name for pair in between for name in pair):
        if name not in number:
            raise UsageError(f"--between: expected a host of the topology, such as {topology.hosts[0]}, found {name}")
    return [(number[one], number[other]) for one, other in between]


def add_remeasure(commands: Subcommands) -> None:
    """Add the command `remeasure`."""
    description = (
        "Measure again, with the topology known: outlying pairs, and a few of each class of paths (Bufe, section 2.5)."
    )
    summary = "few pairs again, longer, on all processes of an MPI job"
    parser = add_subcommand(
        commands, "remeasure", summary, _REMEASURE_EXAMPLES, RemeasureOptions, _remeasure, description
    )
    add, count, budget = parser.add_argument, count_in(1, 9_999), type_of(parse_budget)
    add("topology", metavar="TOPOLOGY", type=Path, help="as JSON, of `ibprof-topology infer`")
    add("delays", metavar="DELAYS", type=Path, help="of ibprof-latency (.nc), which are read and written")
    add("--each", metavar="N", type=count, default=1, help="representatives of a link, each of other hosts (1)")
    add("--budget", metavar="BUDGET", type=budget, default=(1.0, None), help="of all pairs a share such as "
        "20%%, or a time such as 30s (default: no limit)")  # fmt: skip
    add("--repetitions", metavar="N", type=count, default=11, help="batches of a pair, three times as many (11)")
    add("--sequential", action="store_true", help="one pair at a time")


def _remeasure(options: RemeasureOptions) -> int:
    return work_together(lambda module: remeasure(module, options))
