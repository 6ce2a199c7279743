# SPDX-License-Identifier: Apache-2.0
"""`ibprof-view`: the network and what loads it, as one HTML file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ibprof.cli.command import run_command
from ibprof.errors import UsageError
from ibprof_converter.cli.inputs import (
    add_counters_argument,
    add_input_arguments,
    load_traffic,
    read_network,
    show_stages,
    split_inputs,
    warn_of_gaps,
)
from ibprof_converter.cli.layout_outputs import check_files
from ibprof_converter.cli.view_outputs import add_compare_arguments, add_data_arguments, load_compared, write_view
from ibprof_converter.routing.synthetic.spec import FORMS
from ibprof_converter.traffic.traffic_reader import KINDS
from ibprof_converter.viewer.view_runs import FLOW_LIMIT

NAME = "ibprof-view"

_EXAMPLE = f"""\
examples:
  ibprof-view ibdiagnet.lst profile.otf2 -o view.html
  ibprof-view rail1/ rail2/ profile.otf2 -o view.html --placement hosts.txt
  ibprof-view ibdiagnet.lst profile.otf2 -o view.html --rank-data cells.csv --node-data roles.csv
  ibprof-view ibdiagnet.lst before.otf2 -o view.html --compare after.otf2
  ibprof-view ibdiagnet.lst profile.otf2 -o view.html --compare-placement placement.csv
  ibprof-view ibdiagnet.lst profile.otf2 -o view.html --counters before.txt after.txt

{KINDS}
{FORMS}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-view`."""
    return run_command(NAME, _view, argv)


def _view(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_intermixed_args(argv)
    if not split_inputs(arguments.inputs)[0]:
        raise UsageError("expected at least one LST, then TRAFFIC; see --help")
    check_files(arguments, {"--output": arguments.output})
    with show_stages() as progress:
        network = read_network(arguments, progress)
        traffics = split_inputs(arguments.inputs)[1]
        loaded = load_traffic(network, arguments, traffics, progress=progress, flows_limit=FLOW_LIMIT)
        compared = load_compared(arguments, network, progress)
        progress("writing the page")
        write_view(arguments.output, loaded, arguments, compared)
    for each in (loaded, *(other.loaded for other in compared)):
        warn_of_gaps(NAME, each)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Write one HTML file that shows which links carry most, and who loads them. It opens in any "
        "browser, needs no network, and reaches for none.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_input_arguments(parser, fabric_needed=True)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file, such as view.html")
    add_data_arguments(parser)
    add_compare_arguments(parser)
    add_counters_argument(parser)
    parser.set_defaults(adaptive=False)  # bounds are not in the page
    return parser
