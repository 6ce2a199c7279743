# SPDX-License-Identifier: Apache-2.0
"""`ibprof-report`: name the most loaded links, and the ranks and calls that load them."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ibprof.cli.command import command, make_parser, print_captured, print_json, print_lines, show_stages
from ibprof.errors import UsageError
from ibprof_converter.analysis.output_files import check_files
from ibprof_converter.analysis.pipeline_options import TOP, AttributeFiles
from ibprof_converter.choices import FABRIC_FORMS, RANKINGS, TRAFFIC_FORMS
from ibprof_converter.cli.input_arguments import (
    add_adaptive_argument,
    add_attribute_arguments,
    add_counters_argument,
    add_input_arguments,
    add_provenance_argument,
    add_unrouted_argument,
    check_unrouted,
    fabric_options,
    list_fabric_arguments,
    parse_count,
    refuse_options,
    shorten_paths,
    traffic_options,
)

if TYPE_CHECKING:
    from ibprof_converter.reports.job_report import JobReport

NAME = "ibprof-report"

_EXAMPLE = """\
examples:
  ibprof-report profile.otf2
  ibprof-report ibdiagnet.lst profile.otf2
  ibprof-report ibdiagnet.lst profile.otf2 --section why
  ibprof-report rail1.lst rail2.lst profile.otf2 --json > report.json
  ibprof-report ibdiagnet.lst profile.otf2 --html report.html
"""

_SHOWN = (
    "--placement",
    "--counters",
    "--operation",
    "--region",
    "--site",
    "--json",
    "--html",
    "--full",
    "--section",
    "--top",
)
"""Options in the short help."""


@command(NAME)
def main(argv: Sequence[str] | None) -> None:
    """Run `ibprof-report`."""
    arguments = _parser().parse_intermixed_args(argv)
    # --help and invalid options do not need the analysis, which is slow to import.
    from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS  # noqa: PLC0415
    from ibprof_converter.reports.job_report import read_and_report  # noqa: PLC0415

    named = fabric_options(arguments, fabric_needed=False)
    fabric = named if named.names else None
    traffic = traffic_options(arguments, DIAGNOSED_FLOWS)
    if fabric is None:
        _check_lone_options(arguments, traffic.names)
    attributes = AttributeFiles(arguments.rank_data, arguments.node_data)
    files = [file for part in (fabric, traffic, attributes) if part for file in part.files()]
    check_files(files, {"--html": arguments.html})
    command = shlex.join([NAME, *(sys.argv[1:] if argv is None else argv)])
    top, rank_by = TOP if arguments.top is None else arguments.top, arguments.rank_by or RANKINGS[0]
    with show_stages() as progress:
        report = read_and_report(fabric, traffic, command, files, top, progress, rank_by)
    if arguments.html:
        from ibprof_converter.reports.job_page import write_job_page  # noqa: PLC0415  (most runs write no page)

        paths = [*files, *map(Path, (*named.names, *traffic.names)), arguments.html]
        write_job_page(arguments.html, report, attributes, shorten_paths(arguments.provenance, paths))
    if arguments.json:
        print_json(report.as_json())
    elif not arguments.html:
        _print_text(report, tuple(arguments.section or ()), arguments.full)
    check_unrouted(report.links.unrouted if report.links else None, arguments.max_unrouted)


def _check_lone_options(arguments: argparse.Namespace, names: Sequence[str]) -> None:
    """Raise an error if options or traffic need a fabric.

    Raises:
        UsageError: an option needs a fabric, or there is more than one traffic.
    """
    of_fabric = (*list_fabric_arguments(), "counters", "top", "rank_by", "max_unrouted")
    refuse_options(arguments, of_fabric, "only with a fabric: name the .lst before TRAFFIC")
    if len(names) > 1:
        from ibprof_converter.traffic.traffic_reader import is_traffic  # noqa: PLC0415  (--help must come at once)

        for name in names:
            if not (is_traffic(name) or Path(name).exists()):
                raise UsageError(f"{name}: no such file")
        raise UsageError("several profiles need a fabric: name the .lst before the profiles")


def _print_text(report: JobReport, chosen: Sequence[str], full: bool) -> None:
    # --json does not need these modules, which are slow to import.
    from ibprof_converter.reports.job_sections import describe_report, list_once  # noqa: PLC0415
    from ibprof_converter.reports.report_text import describe_in_brief, print_sections  # noqa: PLC0415

    sections = describe_report(report)
    names = tuple(section.name for section in sections)
    if unknown := [name for name in chosen if name not in names]:
        raise UsageError(f"--section {unknown[0]}: expected a section of this report: {', '.join(names)}")
    if chosen:
        print_captured(lambda console: print_sections(console, [each for each in sections if each.name in chosen]))
    elif full:
        print_captured(lambda console: print_sections(console, list_once(sections), report.verdict.text))
    else:
        print_lines(describe_in_brief(report, names, shutil.get_terminal_size((80, 24)).columns))


def _parser() -> argparse.ArgumentParser:
    description = (
        "Name the most loaded links, and the ranks and calls that load them. Without a LST, report the profile alone, "
        "and name the files that an administrator can provide."
    )
    parser = make_parser(NAME, description, _EXAMPLE, shown=_SHOWN, details=f"{TRAFFIC_FORMS}\n{FABRIC_FORMS}")
    add_input_arguments(parser, fabric_needed=False)
    add_adaptive_argument(parser)
    add_counters_argument(parser)
    add_attribute_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="write the report as one HTML page, with the network view"
    )
    add_provenance_argument(parser)
    parser.add_argument("--full", action="store_true", help="print the whole report, not only fifteen lines")
    parser.add_argument(
        "--section",
        metavar="NAME",
        action="append",
        help="print only this section, such as hot or why; may be repeated",
    )
    add_unrouted_argument(parser)
    parser.add_argument("--top", metavar="N", type=parse_count, help=f"number of links to name (default: {TOP})")
    parser.add_argument(
        "--rank-by",
        choices=RANKINGS,
        help=f"sort key of the links. time: time at line rate; bytes: sent bytes (default: {RANKINGS[0]})",
    )
    return parser
