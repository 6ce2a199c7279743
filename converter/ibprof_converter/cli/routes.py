# SPDX-License-Identifier: Apache-2.0
"""`ibprof-routes`: compare OpenSM's routing engines for a traffic, or write forwarding tables of a rule."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from ibprof.cli.command import command, make_parser, print_result, show_stages
from ibprof.errors import UsageError, quote_found
from ibprof.text.quantities import count_of
from ibprof_converter.choices import BALANCED, D_MOD_K, ENGINES, MIN_HOP
from ibprof_converter.cli.arguments import add_subcommand, add_subcommands, parse_subcommand
from ibprof_converter.cli.input_arguments import add_input_arguments, fabric_options, traffic_options

NAME = "ibprof-routes"

_EXAMPLE = """\
examples:
  ibprof-routes compare ibnetdiscover.out profile.otf2
  ibprof-routes compare ibdiagnet.lst pattern:all-to-all --engines updn,dfsssp --json
  ibprof-routes write ibdiagnet.lst --rule balanced -o tables.lft
"""

WRITTEN_RULES = (BALANCED, D_MOD_K, MIN_HOP)


@command(NAME)
def main(argv: Sequence[str] | None) -> int | None:
    """Run `ibprof-routes`."""
    return parse_subcommand(_parser(), argv)()


def _build_compare(arguments: argparse.Namespace) -> Callable[[], None]:
    engines = tuple(arguments.engines.split(","))
    if unknown := [engine for engine in engines if engine not in ENGINES]:
        raise UsageError(f"--engines: expected some of {', '.join(ENGINES)}, found {quote_found(unknown[0])}")
    if arguments.routes is not None:
        raise UsageError(
            "--routes does not apply: the command compares the routes of --engines and of the fabric's tables"
        )
    # --help and invalid options do not need these modules, which are slow to import.
    from ibprof_converter.analysis.engine_comparison import compare_engines, describe_engines  # noqa: PLC0415

    fabric, traffic, as_json = fabric_options(arguments), traffic_options(arguments, 0), arguments.json

    def run() -> None:
        with show_stages() as progress:
            comparison = compare_engines(fabric, traffic, engines, progress)
        print_result(comparison.as_json(), describe_engines(comparison), as_json)

    return run


def _build_write(arguments: argparse.Namespace) -> Callable[[], None]:
    from ibprof_converter.analysis.engine_comparison import write_rule_tables  # noqa: PLC0415  (slow to import)

    links, rule, output = arguments.links, arguments.rule, arguments.output

    def run() -> None:
        switches, lost = write_rule_tables(links, rule, output)
        print(*lost, sep="\n", end="\n" if lost else "")
        print(
            f"{output}: tables of {count_of(switches, 'switch')} by the rule {rule}; load them with "
            f"`opensm -R file -U {output}`"
        )

    return run


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(NAME, "Compare other routes for a traffic, or write them as forwarding tables.", _EXAMPLE)
    subcommands = add_subcommands(parser)
    compare = add_subcommand(
        subcommands,
        "compare",
        "compare OpenSM's routing engines for a traffic",
        _EXAMPLE,
        "Let the installed OpenSM route the fabric on ibsim by each engine, and compute the link loads of the traffic.",
        _build_compare,
        shown=("--engines", "--placement", "--operation", "--region", "--site", "--json"),
    )
    add_input_arguments(compare, fabric_needed=True)
    compare.add_argument(
        "--engines",
        metavar="NAME,..",
        default=",".join(ENGINES),
        help=f"routing engines (default: {','.join(ENGINES)})",
    )
    compare.add_argument("--json", action="store_true", help="print the comparison as JSON")
    write = add_subcommand(
        subcommands,
        "write",
        "write forwarding tables by a rule, for OpenSM to load",
        _EXAMPLE,
        "Compute forwarding tables for a fabric by a rule, and write them in the format that OpenSM loads.",
        _build_write,
    )
    write.add_argument("links", metavar="LST", help="a dump with the links of one rail")
    write.add_argument(
        "--rule", choices=WRITTEN_RULES, default=WRITTEN_RULES[0], help=f"the rule (default: {WRITTEN_RULES[0]})"
    )
    write.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file to write")
    return parser
