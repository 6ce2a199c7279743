# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology throughput`: the throughput of each link of a known topology, on all processes of an MPI job."""

from __future__ import annotations

import argparse
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.cli.arguments import count_in, fill_options, number_in, type_of
from ibprof_converter.cli.printing import print_result
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_converter.cli.topology_options import add_outputs, build_outputs, write_outputs
from ibprof_converter.latency.measure.concurrent_streams import StreamSettings
from ibprof_converter.latency.measure.joint_work import work_together
from ibprof_converter.latency.model.message_lengths import parse_length
from ibprof_converter.outputs.inferred_graph import describe_topology
from ibprof_converter.outputs.inferred_text import describe_throughput
from ibprof_converter.outputs.topology_writers import TopologyOutputs
from ibprof_converter.topology.model.inferred_topology import InferredTopology
from ibprof_converter.topology.throughput.throughput_measurement import ThroughputOptions, measure_throughput

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology throughput topology.json -o measured.json -o measured.lst
  ibprof-report measured.lst profile.otf2

Start a process on each host of the topology; of several the first one counts. -o as of `ibprof-topology infer`.
"""


def add_throughput(commands: Subcommands) -> None:
    """Add the command `throughput`."""
    description = (
        "Measure the throughput of links and switches of an inferred topology. Pairs of hosts send at the same time; "
        "no two measurements that run at the same time share a link (Bufe, section 2.3)."
    )
    summary = "throughput of each link, on all processes of an MPI job"
    parser = add_subcommand(commands, "throughput", summary, _EXAMPLES, _build_options, _measure, description)
    add, count = parser.add_argument, count_in(1, 999_999)
    add("topology", metavar="TOPOLOGY", type=Path, help="as JSON, of `ibprof-topology infer`")
    add("--length", metavar="BYTES", type=type_of(parse_length), default="256K", help="of a message (256K)")
    add("--window", metavar="N", type=count, default=16, help="messages in flight (16)")
    add("--seconds", metavar="S", type=number_in(0.001, 3600), default=0.5, help="of one measurement (0.5)")
    add("--repetitions", metavar="N", type=count, default=3, help="of each measurement; the best one counts (3)")
    add("--pairs", metavar="N", type=count, help="largest number at the same time over a link (default: all)")
    add("--dry-run", action="store_true", help="only print what would be measured, and for how long")
    add_outputs(parser)


def _build_options(arguments: argparse.Namespace) -> tuple[ThroughputOptions, TopologyOutputs]:
    outputs = build_outputs(arguments)
    if not arguments.length:
        raise UsageError("--length: expected bytes above 0, found 0")
    return fill_options(ThroughputOptions, arguments, streams=fill_options(StreamSettings, arguments)), outputs


def _measure(options: tuple[ThroughputOptions, TopologyOutputs]) -> int:
    measure, outputs = options

    def finish(topology: InferredTopology) -> None:
        write_outputs(outputs, topology, f"throughput measured on {measure.topology}")
        print_result(describe_topology(topology), describe_throughput(topology), outputs.json, indent=1)

    return work_together(lambda module: measure_throughput(module, measure, finish))
