# SPDX-License-Identifier: Apache-2.0
"""`ibprof-view`: write an HTML file that shows the network and its traffic."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ibprof.cli.command import command, make_parser, print_warnings, show_stages
from ibprof_converter.analysis.output_files import check_files
from ibprof_converter.analysis.pipeline_options import AttributeFiles, list_compared
from ibprof_converter.choices import FABRIC_FORMS, TRAFFIC_FORMS
from ibprof_converter.cli.input_arguments import (
    add_attribute_arguments,
    add_counters_argument,
    add_input_arguments,
    add_provenance_argument,
    add_unrouted_argument,
    check_unrouted,
    fabric_options,
    shorten_paths,
    traffic_options,
)

NAME = "ibprof-view"

_EXAMPLE = """\
examples:
  ibprof-view ibdiagnet.lst profile.otf2
  ibprof-view rail1/ rail2/ profile.otf2 -o view.html --placement hosts.txt
  ibprof-view ibdiagnet.lst profile.otf2 -o view.html --rank-data cells.csv --node-data roles.csv
  ibprof-view ibdiagnet.lst before.otf2 -o view.html --compare after.otf2
  ibprof-view ibdiagnet.lst profile.otf2 -o view.html --compare-placement placement.csv
  ibprof-view ibdiagnet.lst profile.otf2 -o view.html --counters before.txt after.txt
"""

_SHOWN = ("--output", "--placement", "--compare", "--counters", "--operation", "--region", "--site")
"""Options in the short help."""


@command(NAME)
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof-view`."""
    arguments = _parser().parse_intermixed_args(argv)
    # --help and invalid options do not need the analysis, which is slow to import.
    from ibprof_converter.analysis.loads_view import NamedLoads, render_view  # noqa: PLC0415
    from ibprof_converter.analysis.pipeline_stages import judge_loads, load_traffic, read_routed_fabric  # noqa: PLC0415
    from ibprof_converter.viewer.view_runs import FLOW_LIMIT  # noqa: PLC0415

    options = fabric_options(arguments)
    own = traffic_options(arguments, FLOW_LIMIT)
    attributes = AttributeFiles(arguments.rank_data, arguments.node_data)
    compared = map(Path, (*arguments.compare, *arguments.compare_placement))
    files = (*options.files(), *own.files(), *compared, *attributes.files())
    check_files(files, {"--output": arguments.output})
    traffics = [own, *list_compared(own, arguments.compare, arguments.compare_placement)]
    with show_stages() as progress:
        fabric = read_routed_fabric(options, progress)
        runs = []
        for traffic in traffics:
            loads = load_traffic(fabric, traffic, progress)
            runs.append(NamedLoads(loads, traffic.names, traffic.placements, judge_loads(loads, progress)))
        progress("writing the page")
        paths = shorten_paths(arguments.provenance, (*files, *map(Path, options.names), arguments.output))
        render_view(runs[0], runs[1:], attributes, paths.apply).save(arguments.output)
    for run in runs:
        print_warnings(NAME, run.loads.warnings)
    for run in runs:
        check_unrouted(run.loads.find_unrouted(), arguments.max_unrouted)


def _parser() -> argparse.ArgumentParser:
    description = (
        "Write one HTML file with the most loaded links, and the ranks and calls that load these links. The file opens "
        "in any browser, and makes no network request."
    )
    parser = make_parser(NAME, description, _EXAMPLE, shown=_SHOWN, details=f"{TRAFFIC_FORMS}\n{FABRIC_FORMS}")
    add_input_arguments(parser, fabric_needed=True)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("view.html"), help="the file (default: %(default)s)"
    )
    add_attribute_arguments(parser)
    compared = parser.add_argument_group("compare", "show TRAFFIC side by side with other traffic, and the difference")
    compared.add_argument(
        "--compare",
        metavar="TRAFFIC",
        action="append",
        default=[],
        help="another traffic on the same fabric; may be repeated",
    )
    compared.add_argument(
        "--compare-placement",
        metavar="HOW",
        action="append",
        default=[],
        help="rank placement for --compare; repeat the option for each --compare. Without --compare: another placement "
        "of TRAFFIC; repeat the option for each job, in the same order",
    )
    add_counters_argument(parser)
    add_unrouted_argument(parser)
    add_provenance_argument(parser)
    return parser
