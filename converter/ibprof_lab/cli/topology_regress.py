# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology regress`: the latencies of a known topology's links, from all delays at once."""

from __future__ import annotations

import argparse
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.cli.arguments import fill_options, number_in, type_of
from ibprof_converter.cli.printing import print_result
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_lab.cli.delay_unit import add_unit
from ibprof_lab.cli.topology_options import add_outputs, build_outputs, write_outputs
from ibprof_lab.latency.model.message_lengths import parse_length
from ibprof_lab.topology.outputs.regression_table import (
    describe_regression,
    describe_regression_lines,
    write_regression_csv,
)
from ibprof_lab.topology.outputs.topology_writers import TopologyOutputs
from ibprof_lab.topology.reference.file_regression import SHORTEST, UNIQUE, RegressOptions, regress_files
from ibprof_lab.topology.reference.link_regression import CORRECTIONS

_EXAMPLES = """\
examples:
  ibprof-topology regress topology.json delays.nc
  ibprof-topology regress topology.json delays.nc --correct minimum -o latencies.tgf
  ibprof-topology regress ibdiagnet2.lst delays.nc -o latencies.csv
"""


def add_regress(commands: Subcommands) -> None:
    """Add the command `regress`."""
    description = (
        "Find the latency of each link of a known topology by ordinary least squares over all delays (Bufe, section "
        "2.4)."
    )
    summary = "latencies of all links by linear regression"
    parser = add_subcommand(commands, "regress", summary, _EXAMPLES, _build_options, _regress, description)
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


def _build_options(arguments: argparse.Namespace) -> tuple[RegressOptions, tuple[Path, ...], TopologyOutputs]:
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
