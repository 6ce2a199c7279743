# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology direct-links`: links that delays cannot show, found by filling the path that is as long."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from ibprof.errors import UsageError
from ibprof_converter.cli.printing import print_result
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_lab.cli.topology_options import add_outputs, build_outputs, write_outputs
from ibprof_lab.cli.topology_streams import add_stream_arguments, build_streams
from ibprof_lab.latency.measure.joint_work import work_together
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs.direct_link_text import describe_direct_links, list_direct_links
from ibprof_lab.topology.outputs.topology_writers import TopologyOutputs
from ibprof_lab.topology.throughput.concurrent_measurement import ConcurrentOptions, measure_on_all
from ibprof_lab.topology.throughput.direct_links import DirectLinkResults, DirectLinkTest, add_direct_links

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology throughput topology.json -o measured.json
  mpirun ibprof-topology direct-links measured.json -o corrected.json
  mpirun ibprof-topology direct-links measured.json --between node1 node7

Start a process on each host of the topology; of several the first one counts. With the throughputs of `throughput` more
pairs can be decided. -o as of `ibprof-topology infer`, with the direct links that were found.
"""


@dataclass(frozen=True, slots=True)
class _Options:
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
    parser = add_subcommand(commands, "direct-links", summary, _EXAMPLES, _build_options, _measure, description)
    add_stream_arguments(parser)
    parser.add_argument("--between", metavar="HOST", nargs=2, action="append", default=[], help="only these two hosts; "
        "repeatable (default: a host of each two switches that are at least two links apart)")  # fmt: skip
    add_outputs(parser)


def _build_options(arguments: argparse.Namespace) -> _Options:
    outputs = build_outputs(arguments)
    between = tuple((str(one), str(other)) for one, other in arguments.between)
    return _Options(build_streams(arguments), between, outputs)


def _measure(options: _Options) -> int:
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
