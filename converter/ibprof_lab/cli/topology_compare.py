# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology compare` and `regress`: delays on a known topology, compared with it or fitted to its links."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import THRESHOLD_CROSSED, UsageError
from ibprof_converter.cli.arguments import Subcommands, add_subcommand, fill_options, number_in, parse_share, type_of
from ibprof_converter.cli.printing import print_result
from ibprof_lab.cli.lab_commands import add_unit
from ibprof_lab.cli.topology_options import (
    add_method_arguments,
    add_outputs,
    build_outputs,
    write_outputs,
)
from ibprof_lab.latency.model.typed_quantities import parse_length
from ibprof_lab.topology.infer.inference_methods import InferenceMethod
from ibprof_lab.topology.outputs.compared_topology import (
    COMPARISON_ENDINGS,
    describe_comparison,
    describe_comparison_lines,
    write_comparison,
)
from ibprof_lab.topology.outputs.topology_outputs import TopologyOutputs, check_files
from ibprof_lab.topology.reference.link_regression import (
    CORRECTIONS,
    SHORTEST,
    UNIQUE,
    RegressOptions,
    describe_regression,
    describe_regression_lines,
    regress_files,
    write_regression_csv,
)
from ibprof_lab.topology.reference.reference_comparison import CompareOptions, compare_files
from ibprof_lab.topology.reference.slow_link_detection import LEAST_DELAY, LEAST_SPEED

_COMPARE_EXAMPLES = """\
examples:
  ibprof-topology compare delays.nc plan.dot
  ibprof-topology compare delays.nc ibdiagnet2.lst --fail
  ibprof-topology compare topology.json plan.dot -o differences.svg -o differences.dot
  ibprof-topology compare delays.nc plan.dot --length 1M --json

A plan in DOT has hosts and switches by their names, and on its edges speeds in Gb/s, as label or gbps:
  graph plan { n1 -- leaf1 [label=100]; n2 -- leaf1 [label=100]; leaf1 -- spine [label=200] }
"""

_REGRESS_EXAMPLES = """\
examples:
  ibprof-topology regress topology.json delays.nc
  ibprof-topology regress topology.json delays.nc --correct minimum -o latencies.tgf
  ibprof-topology regress ibdiagnet2.lst delays.nc -o latencies.csv
"""


@dataclass(frozen=True, slots=True)
class _CompareOutputs:
    """Files of the reference coloured by its differences; whether to print JSON, and to exit with status 1."""

    output: tuple[Path, ...]
    json: bool
    fail: bool


def add_compare(commands: Subcommands) -> None:
    """Add the command `compare`."""
    description = (
        "Compare an inferred topology, or delays, with a plan in DOT or with the fabric's own files: wrong cables, "
        "slow links."
    )
    summary = "with the topology that should be there"
    parser = add_subcommand(
        commands, "compare", summary, _COMPARE_EXAMPLES, _build_compare_options, _compare, description
    )
    add = parser.add_argument
    add("inferred", metavar="INFERRED", help="what infer wrote (.json, .dot, .tgf, .lst), or delays")
    add("reference", metavar="REFERENCE", help="a plan (.dot), a fabric as ibprof-layout takes it, or what infer wrote")
    add("--rail", metavar="N", type=int, default=0, help="of a REFERENCE with several (0)")
    add("--least", metavar="SHARE", type=parse_share, default=LEAST_DELAY, help="relative excess of a delay for which "
        "a link is blamed (10%%)")  # fmt: skip
    add("--least-speed", metavar="SHARE", type=parse_share, default=LEAST_SPEED, help="of its speed that a link must "
        "reach, where delays of long messages show it (50%%)")  # fmt: skip
    add("--fail", action="store_true", help="exit with status 1 when there is a difference")
    add("-o", "--output", metavar="FILE", type=Path, action="append", default=[], help="the reference coloured by its "
        "differences (.dot, .svg), or .json")  # fmt: skip
    add("--json", action="store_true", help="the same for programs")
    add_method_arguments(parser)


def _build_compare_options(arguments: argparse.Namespace) -> tuple[CompareOptions, _CompareOutputs]:
    check_files(arguments.output, COMPARISON_ENDINGS, (arguments.inferred, arguments.reference))
    return (
        fill_options(CompareOptions, arguments, method=fill_options(InferenceMethod, arguments)),
        fill_options(_CompareOutputs, arguments, output=tuple(arguments.output)),
    )


def _compare(options: tuple[CompareOptions, _CompareOutputs]) -> int:
    compare, outputs = options
    comparison = compare_files(compare)
    for path in outputs.output:
        write_comparison(path, comparison)
    print_result(describe_comparison(comparison), describe_comparison_lines(comparison), outputs.json, indent=1)
    return THRESHOLD_CROSSED if outputs.fail and comparison.differences else 0


def add_regress(commands: Subcommands) -> None:
    """Add the command `regress`."""
    description = (
        "Find the latency of each link of a known topology by ordinary least squares over all delays (Bufe, section "
        "2.4)."
    )
    summary = "latencies of all links by linear regression"
    parser = add_subcommand(
        commands, "regress", summary, _REGRESS_EXAMPLES, _build_regress_options, _regress, description
    )
    add = parser.add_argument
    add("topology", metavar="TOPOLOGY", help="what infer wrote (.json, .dot, .tgf), or a fabric")
    add("delays", metavar="DELAYS", help="of its hosts")
    add("--correct", choices=CORRECTIONS, help="for the time that the bytes take: that of the slowest link of the "
        "path, or of all its links in turn (default: minimum where throughputs are known, else none)")  # fmt: skip
    add("--gbps", metavar="X", type=number_in(1e-6, 1e6), help="of links whose throughput is unknown")
    add("--paths", choices=(UNIQUE, SHORTEST), default=UNIQUE, help="leave out pairs with several paths of the same "
        "length; or take one of these paths (unique)")  # fmt: skip
    add("--epsilon", metavar="E", type=number_in(0, 1), default=0.01, help="relative difference of path lengths that "
        "are the same (0.01)")  # fmt: skip
    add("--length", metavar="BYTES", type=type_of(parse_length), help="of the messages (default: the shortest)")
    add_unit(parser)
    add_outputs(parser)


def _build_regress_options(arguments: argparse.Namespace) -> tuple[RegressOptions, tuple[Path, ...], TopologyOutputs]:
    options = fill_options(RegressOptions, arguments)
    tables = tuple(path for path in arguments.output if path.suffix == ".csv")
    arguments.output = [path for path in arguments.output if path not in tables]
    if options.is_fabric and arguments.output:
        raise UsageError(f"-o {arguments.output[0]}: a fabric's links go to .csv; .json is for what infer wrote")
    return options, tables, build_outputs(arguments)


def _regress(options: tuple[RegressOptions, tuple[Path, ...], TopologyOutputs]) -> None:
    regress, tables, outputs = options
    links = regress_files(regress)
    for path in tables:
        write_regression_csv(path, links)
    if links.topology is not None:
        write_outputs(outputs, links.topology, f"latencies regressed on {regress.delays}")
    print_result(describe_regression(links), describe_regression_lines(links), outputs.json, indent=1)
