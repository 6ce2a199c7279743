# SPDX-License-Identifier: Apache-2.0
"""`ibprof-routes`: a traffic under other routes than those that a fabric has."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ibprof.cli.command import run_command
from ibprof.cli.parsers import make_parser
from ibprof.errors import UsageError, quote_found
from ibprof_converter.analysis.compared_engines import compare_engines, describe_engines
from ibprof_converter.analysis.load_options import FabricOptions, TrafficOptions
from ibprof_converter.analysis.written_tables import WRITTEN_RULES, write_rule_tables
from ibprof_converter.cli.arguments import add_subcommand, add_subcommands, parse_subcommand
from ibprof_converter.cli.input_arguments import add_input_arguments, fabric_options, traffic_options
from ibprof_converter.cli.printing import print_result, show_stages
from ibprof_converter.routing.opensm_run import ENGINES

NAME = "ibprof-routes"

_EXAMPLE = """\
examples:
  ibprof-routes compare ibnetdiscover.out profile.otf2
  ibprof-routes compare ibdiagnet.lst pattern:all-to-all --engines updn,dfsssp --json
  ibprof-routes write ibdiagnet.lst --rule balanced -o tables.lft
"""


@dataclass(frozen=True, slots=True)
class CompareRoutesOptions:
    """Inputs of `ibprof-routes compare`, and the engines."""

    fabric: FabricOptions
    traffic: TrafficOptions
    engines: tuple[str, ...]
    as_json: bool


@dataclass(frozen=True, slots=True)
class WriteRoutesOptions:
    """Input of `ibprof-routes write`, the rule and the file."""

    links: str
    rule: str
    output: Path


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-routes`."""
    return run_command(NAME, lambda words: parse_subcommand(_parser(), words)(), argv)


def _compare(options: CompareRoutesOptions) -> None:
    with show_stages() as progress:
        comparison = compare_engines(options.fabric, options.traffic, options.engines, progress)
    print_result(comparison.as_json(), describe_engines(comparison), options.as_json)


def _compare_options(arguments: argparse.Namespace) -> CompareRoutesOptions:
    engines = tuple(arguments.engines.split(","))
    if unknown := [engine for engine in engines if engine not in ENGINES]:
        raise UsageError(f"--engines: expected some of {', '.join(ENGINES)}, found {quote_found(unknown[0])}")
    if arguments.routes is not None:
        raise UsageError("--routes does not apply: engines are compared, and the tables if there are any")
    return CompareRoutesOptions(fabric_options(arguments), traffic_options(arguments, 0), engines, arguments.json)


def _write(options: WriteRoutesOptions) -> None:
    made = write_rule_tables(options.links, options.rule, options.output)
    print(
        f"{options.output}: tables of {made.switches} switches by the rule {made.rule}; load them with "
        f"`opensm -R file -U {options.output}`"
    )


def _write_options(arguments: argparse.Namespace) -> WriteRoutesOptions:
    return WriteRoutesOptions(arguments.links, arguments.rule, Path(arguments.output))


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(NAME, "Put a traffic on other routes than those that a fabric has.", _EXAMPLE)
    subcommands = add_subcommands(parser)
    compare = add_subcommand(
        subcommands,
        "compare",
        "compare OpenSM's routing engines for a traffic",
        _EXAMPLE,
        _compare_options,
        _compare,
        "Let the installed OpenSM route the fabric's links on ibsim, by each engine, and put the traffic on them.",
    )
    add_input_arguments(compare, fabric_needed=True)
    compare.add_argument(
        "--engines",
        metavar="NAME,..",
        default=",".join(ENGINES),
        help=f"routing engines (default: {','.join(ENGINES)})",
    )
    compare.add_argument("--json", action="store_true", help="the comparison for programs")
    write = add_subcommand(
        subcommands,
        "write",
        "write forwarding tables by a rule, for OpenSM to load",
        _EXAMPLE,
        _write_options,
        _write,
        "Make forwarding tables for the links of a fabric by a rule, and write them in the form that OpenSM loads.",
    )
    write.add_argument("links", metavar="LST", help="the links of the fabric, of one rail")
    write.add_argument(
        "--rule", choices=WRITTEN_RULES, default=WRITTEN_RULES[0], help=f"the rule (default: {WRITTEN_RULES[0]})"
    )
    write.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write")
    return parser
