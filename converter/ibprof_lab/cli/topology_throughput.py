# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology throughput`: the throughput of each link of a known topology, on all processes of an MPI job."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from ibprof_converter.cli.arguments import count_in
from ibprof_converter.cli.printing import print_result
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_lab.cli.topology_options import add_outputs, build_outputs, write_outputs
from ibprof_lab.cli.topology_streams import add_stream_arguments, build_streams
from ibprof_lab.latency.measure.joint_work import work_together
from ibprof_lab.topology.model.inferred_topology import InferredTopology, LinkThroughput
from ibprof_lab.topology.outputs.inferred_graph import describe_topology
from ibprof_lab.topology.outputs.inferred_text import describe_throughput
from ibprof_lab.topology.outputs.topology_writers import TopologyOutputs
from ibprof_lab.topology.throughput.concurrent_measurement import ConcurrentOptions, measure_on_all
from ibprof_lab.topology.throughput.throughput_measurement import ThroughputMeasurement

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  mpirun ibprof-topology throughput topology.json -o measured.json -o measured.lst
  ibprof-report measured.lst profile.otf2

Start a process on each host of the topology; of several the first one counts. -o as of `ibprof-topology infer`.
"""


@dataclass(frozen=True, slots=True)
class _Options:
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
    parser = add_subcommand(commands, "throughput", summary, _EXAMPLES, _build_options, _measure, description)
    add_stream_arguments(parser)
    parser.add_argument("--pairs", metavar="N", type=count_in(1, 999_999), help="largest number at the same time over "
        "a link (default: all)")  # fmt: skip
    add_outputs(parser)


def _build_options(arguments: argparse.Namespace) -> _Options:
    return _Options(build_streams(arguments), arguments.pairs, build_outputs(arguments))


def _measure(options: _Options) -> int:
    outputs = options.outputs

    def finish(topology: InferredTopology, found: LinkThroughput) -> None:
        measured = replace(topology, throughput=found)
        write_outputs(outputs, measured, f"throughput measured on {options.measure.topology}")
        print_result(describe_topology(measured), describe_throughput(measured), outputs.json, indent=1)

    def plan(topology: InferredTopology) -> ThroughputMeasurement:
        return ThroughputMeasurement(topology, options.pairs)

    return work_together(lambda module: measure_on_all(module, options.measure, plan, finish))
