# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology`: topologies inferred from measured delays, where no dumps of the fabric are at hand."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ibprof.cli.command import make_parser, run_command
from ibprof.errors import InconsistentError, UsageError
from ibprof_converter.cli.arguments import Subcommands, add_subcommand, add_subcommands, fill_options
from ibprof_converter.cli.printing import print_result
from ibprof_lab.cli.lab_commands import add_unit, run_on_ranks
from ibprof_lab.cli.topology_compare import add_compare, add_regress
from ibprof_lab.cli.topology_measure import add_direct_links_command, add_remeasure, add_throughput
from ibprof_lab.cli.topology_options import (
    add_bufe_epsilon,
    add_method_arguments,
    add_outputs,
    add_position_arguments,
    build_outputs,
    write_outputs,
)
from ibprof_lab.latency.files.pair_files import write_named_pairs
from ibprof_lab.topology.infer.inference_methods import (
    InferenceMethod,
    JoinOptions,
    apply_method,
    infer_joined,
    read_host_delays,
    read_or_infer,
)
from ibprof_lab.topology.model.topology_files import describe_topology
from ibprof_lab.topology.outputs.inferred_page import write_topology_page
from ibprof_lab.topology.outputs.topology_outputs import (
    TopologyOutputs,
    describe_inference,
    describe_inferred,
    describe_positions,
)
from ibprof_lab.topology.outputs.vertex_positions import position_vertices

NAME = "ibprof-topology"

_EXAMPLES = """\
examples:
  mpirun ibprof-latency measure -o delays.nc
  ibprof-topology infer delays.nc -o topology.lst -o topology.json --html topology.html
  mpirun ibprof-topology throughput topology.json -o topology.lst
  ibprof-layout topology.lst profile.otf2 -o links.csv
  ibprof-topology compare delays.nc plan.dot --fail
"""

_INFER_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc
  ibprof-topology infer delays.nc -o topology.lst -o topology.tgf -o topology.conf
  ibprof-topology infer delays.nc --html view.html
  ibprof-topology infer matrix.csv --method bufe --epsilon 0.1 --json
  ibprof-topology infer core-to-core.csv --unit ns
  ibprof-topology infer delays.nc --again pairs.csv
  mpirun ibprof-latency measure --pairs pairs.csv --resume -o delays.nc

-o by the name's end: .tgf, .dot, .json. A .lst is a fabric for ibprof-layout and the others, with a .fdbs of modelled
routes (shortest paths). A .conf is Slurm's topology.conf. A .html shows the topology in space. A .csv has its positions
there, for ibprof-view topology.lst TRAFFIC --node-data positions.csv -o view.html.

Weak links are found again in less than 70% of the resampled matrices. If there are any, or if hosts may have a switch
that is not claimed, the first line says so and the exit status is 5. A .lst or .conf is then only written with
--accept-weak.
"""

_JOIN_EXAMPLES = """\
example:
  ibprof-topology join hosts.csv cores.csv --external far -o cluster.tgf

cores.csv has the delays between the cores of one host, and between these and one core of another host, `far`.
"""

_VIEW_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  ibprof-topology view topology.json -o view.html
  ibprof-topology view delays.nc -o view.html --positions paper --gamma 1

TOPOLOGY is JSON as `ibprof-topology infer -o topology.json` writes it, or delays to infer it from.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-topology`."""
    return run_command(NAME, partial(run_on_ranks, _parser), argv)


def _parser() -> argparse.ArgumentParser:
    description = "Infer hosts, switches and links from measured delays, without dumps of the fabric."
    parser = make_parser(NAME, description, _EXAMPLES)
    commands = add_subcommands(parser)
    _add_infer(commands)
    _add_join(commands)
    add_remeasure(commands)
    add_throughput(commands)
    add_direct_links_command(commands)
    add_compare(commands)
    add_regress(commands)
    _add_view(commands)
    return parser


@dataclass(frozen=True, slots=True)
class _InferOptions:
    """Delays, method and outputs.

    `again` is a file for the pairs to measure again; `accept_weak` takes any answer for reliable.
    """

    delays: str
    method: InferenceMethod
    outputs: TopologyOutputs
    again: Path | None
    accept_weak: bool


def _add_infer(commands: Subcommands) -> None:
    description = "Infer hosts, switches and links from the delays between all pairs of hosts."
    summary = "hosts, switches and links from delays"
    parser = add_subcommand(commands, "infer", summary, _INFER_EXAMPLES, _build_infer_options, _infer, description)
    add = parser.add_argument
    add(
        "delays",
        metavar="DELAYS",
        help="of ibprof-latency (.nc), clustbench, a matrix or one triangle of it (.csv, .npy), a line for each pair "
        "(a,b,latency), or the output of osu_latency or nccl-tests",
    )
    add_method_arguments(parser)
    add("--again", metavar="FILE", type=Path, help="pairs to measure again: sender,receiver")
    add("--accept-weak", action="store_true", help="write a .lst or .conf, and end with status 0, in any case")
    add_outputs(parser)


def _add_join(commands: Subcommands) -> None:
    description = "Put the model of a host's inside in the place of each host (Bufe, section 2.7)."
    summary = "a model of hosts and one of what is inside them"
    parser = add_subcommand(commands, "join", summary, _JOIN_EXAMPLES, _build_join_options, _join, description)
    add = parser.add_argument
    add("outer", metavar="HOSTS", help="delays between hosts")
    add("inner", metavar="CORES", help="delays between cores of one host and a core of another")
    add("--external", metavar="NAME", required=True, help="the core of another host, in CORES")
    add("--core", metavar="NAME", help="the core that HOSTS was measured from (default: the nearest)")
    add("--method", choices=("auto", "bufe"), default="bufe", help="for both (bufe)")
    add_bufe_epsilon(parser)
    add_unit(parser)
    add_outputs(parser)


def _build_infer_options(arguments: argparse.Namespace) -> _InferOptions:
    return fill_options(
        _InferOptions, arguments, method=fill_options(InferenceMethod, arguments), outputs=build_outputs(arguments)
    )


def _build_join_options(arguments: argparse.Namespace) -> tuple[JoinOptions, TopologyOutputs]:
    return fill_options(JoinOptions, arguments), build_outputs(arguments)


def _infer(options: _InferOptions) -> None:
    inferred, values = apply_method(options.method, read_host_delays(options.delays, options.method.unit))
    topology, again, refusal = inferred.topology, inferred.again, inferred.refusal
    stops = refusal is not None and not options.accept_weak
    outputs = options.outputs.without_fabrics() if stops else options.outputs
    write_outputs(outputs, topology, f"inferred from {options.delays} by {topology.method}")
    if options.again:
        pairs = [(values.hosts[a], values.hosts[b]) for a, b in again.tolist()] if values else []
        write_named_pairs(options.again, pairs)
    document = describe_inferred(topology, values, len(again), refusal)
    print_result(document, describe_inference(topology, values, len(again), refusal), outputs.json, indent=1)
    if stops:
        unwritten = [str(path) for path in options.outputs.output if path not in outputs.output]
        raise InconsistentError(
            f"{options.delays}: the topology is not reliable: {refusal}"
            + (f"; not written: {', '.join(unwritten)} (--accept-weak)" if unwritten else "")
        )


def _join(options: tuple[JoinOptions, TopologyOutputs]) -> None:
    join, outputs = options
    topology = infer_joined(join)
    write_outputs(outputs, topology, f"joined from {join.outer} and {join.inner}")
    print_result(describe_topology(topology), describe_inference(topology), outputs.json, indent=1)


@dataclass(frozen=True, slots=True)
class _ViewOptions:
    """The topology or delays, the unit of these, the page, and how positions are found."""

    topology: str
    unit: str
    output: Path
    positions: str
    gamma: float


def _add_view(commands: Subcommands) -> None:
    description = (
        "Write one HTML file that shows a topology in space, links about as long as their delays and coloured by "
        "delay, probability or support. It opens in any browser and needs no network."
    )
    summary = "a topology in space, as one HTML file"
    parser = add_subcommand(commands, "view", summary, _VIEW_EXAMPLES, _ViewOptions, _view, description)
    parser.add_argument("topology", metavar="TOPOLOGY", help="a topology or delays, see below")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file, such as view.html")
    add_unit(parser)
    add_position_arguments(parser)


def _view(options: _ViewOptions) -> None:
    if options.output.resolve() == Path(options.topology).resolve():
        raise UsageError(f"-o {options.output}: this is also the input")
    topology = read_or_infer(options.topology, options.unit)
    space = position_vertices(topology, options.positions, options.gamma)
    print(describe_positions(space), file=sys.stderr)
    write_topology_page(options.output, topology, options.topology, space)
