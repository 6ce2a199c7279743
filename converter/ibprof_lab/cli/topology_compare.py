# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology compare`: a measurement compared with the topology that a network should have."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import THRESHOLD_CROSSED
from ibprof_converter.cli.arguments import fill_options, parse_share
from ibprof_converter.cli.printing import print_result
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_lab.cli.topology_options import add_method_arguments, build_method
from ibprof_lab.topology.outputs.compared_topology import COMPARISON_ENDINGS, describe_comparison, write_comparison
from ibprof_lab.topology.outputs.comparison_text import describe_comparison_lines
from ibprof_lab.topology.outputs.topology_writers import check_files
from ibprof_lab.topology.reference.file_comparison import CompareOptions, compare_files
from ibprof_lab.topology.reference.slow_link_detection import LEAST_DELAY, LEAST_SPEED

_EXAMPLES = """\
examples:
  ibprof-topology compare delays.nc plan.dot
  ibprof-topology compare delays.nc ibdiagnet2.lst --fail
  ibprof-topology compare topology.json plan.dot -o differences.svg -o differences.dot
  ibprof-topology compare delays.nc plan.dot --length 1M --json

A plan in DOT has hosts and switches by their names, and on its edges speeds in Gb/s, as label or gbps:
  graph plan { n1 -- leaf1 [label=100]; n2 -- leaf1 [label=100]; leaf1 -- spine [label=200] }
"""


@dataclass(frozen=True, slots=True)
class _Outputs:
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
    parser = add_subcommand(commands, "compare", summary, _EXAMPLES, _build_options, _compare, description)
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


def _build_options(arguments: argparse.Namespace) -> tuple[CompareOptions, _Outputs]:
    check_files(arguments.output, COMPARISON_ENDINGS, (arguments.inferred, arguments.reference))
    return (
        fill_options(CompareOptions, arguments, method=build_method(arguments)),
        fill_options(_Outputs, arguments, output=tuple(arguments.output)),
    )


def _compare(options: tuple[CompareOptions, _Outputs]) -> int:
    compare, outputs = options
    comparison = compare_files(compare)
    for path in outputs.output:
        write_comparison(path, comparison)
    print_result(describe_comparison(comparison), describe_comparison_lines(comparison), outputs.json, indent=1)
    return THRESHOLD_CROSSED if outputs.fail and comparison.differences else 0
