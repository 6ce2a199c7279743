# SPDX-License-Identifier: Apache-2.0
"""`ibprof-layout`: where nodes lie and what every link end carries."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ibprof.cli.command import run_command
from ibprof.errors import UsageError
from ibprof_converter.cli.check import check_fabric
from ibprof_converter.cli.inputs import (
    add_beside_arguments,
    add_input_arguments,
    load_inputs,
    show_stages,
    split_inputs,
    warn_of_gaps,
)
from ibprof_converter.cli.layout_outputs import add_output_arguments, check_outputs, write_outputs
from ibprof_converter.cli.patterns import SAMPLES, measure_patterns
from ibprof_converter.routing.synthetic.spec import FORMS
from ibprof_converter.traffic.traffic_reader import KINDS

NAME = "ibprof-layout"

_EXAMPLE = f"""\
examples:
  ibprof-layout ibdiagnet.lst profile.otf2 -o links.csv
  ibprof-layout rail1.lst rail2.lst profile.otf2 -o links.csv --nodes nodes.csv --png heatmap.png
  ibprof-layout ibdiagnet.lst pattern:all-to-all --png capacity.png -o links.csv
  ibprof-layout ibdiagnet.lst job1.otf2 job2.otf2 -o links.csv
  ibprof-layout rail1/ rail2/ profile.otf2 --by region -o links.parquet --figure regions.pdf --panels region --used
  ibprof-layout --check rail1/ rail2/
  ibprof-layout --patterns ibdiagnet.lst --samples 50

{KINDS}
{FORMS}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-layout`."""
    return run_command(NAME, _lay_out, argv)


def _lay_out(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_intermixed_args(argv)
    if arguments.check and not arguments.patterns:
        return check_fabric(NAME, arguments)
    if arguments.patterns:
        measure_patterns(arguments)
        return 0
    if arguments.json or arguments.samples is not None:
        raise UsageError("--json and --samples are for --check and --patterns; links.csv and --yaml hold the loads")
    if not split_inputs(arguments.inputs)[0]:
        raise UsageError("expected at least one LST, then TRAFFIC; see --help")
    check_outputs(arguments)
    with show_stages() as progress:
        loaded = load_inputs(arguments, arguments.by, progress, flows_limit=0)
    warn_of_gaps(NAME, loaded)
    write_outputs(arguments, loaded)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Lay a fabric out, follow its forwarding tables, and write what every link end carries.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_input_arguments(parser, fabric_needed=True)
    add_beside_arguments(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="look the fabric over instead, with no TRAFFIC: gaps in the dumps, routes that lead nowhere, links and "
        "switches unlike their kin; status 5 where routes cannot be trusted",
    )
    parser.add_argument(
        "--patterns",
        action="store_true",
        help="measure instead, with no TRAFFIC, what the tables leave of the links' speed in common patterns; bisect "
        "is the effective bisection bandwidth",
    )
    parser.add_argument(
        "--samples", metavar="N", type=int, help=f"with --patterns: samples of each pattern (default: {SAMPLES})"
    )
    parser.add_argument("--json", action="store_true", help="with --check and --patterns: the same for programs")
    add_output_arguments(parser)
    return parser
