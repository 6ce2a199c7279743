# SPDX-License-Identifier: Apache-2.0
"""`ibprof diff`: compare two runs, and check thresholds."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ibprof.cli.command import (
    add_row_arguments,
    command,
    make_parser,
    print_captured,
    print_json,
    row_options,
    show_stages,
)
from ibprof.errors import THRESHOLD_CROSSED
from ibprof_converter.analysis.output_files import check_files
from ibprof_converter.cli.arguments import type_of
from ibprof_converter.cli.input_arguments import (
    add_fabric_arguments,
    add_provenance_argument,
    list_fabric_arguments,
    parse_count,
    reading_options,
    refuse_options,
    shorten_paths,
)

if TYPE_CHECKING:
    from ibprof_converter.reports.run_comparison import FailCondition

NAME = "ibprof diff"

_TOP = 10

_THRESHOLDS = """\
thresholds (--fail-on, may be repeated; status 1 if B crosses one):
  METRIC>+10%            B is more than 10% above A; METRIC<-10%: more than 10% below A
  METRIC>+2GB            B is more than 2 GB above A
  METRIC>2GB             B is above 2 GB, whatever A is
  metrics: elapsed, bytes, messages, bytes_on_host, bytes_routed, bytes_unrouted, max_link, max_switch_link, mean_link,
           links_used, max_link_seconds
  of one operation, region or call site: bytes[BCAST], messages[region:solve], bytes[site:a.c:212],
           share[BCAST]>40%, share[BCAST]>+5% (points)
  of a link: link[NAME], with NAME as ibprof diff prints it
  comparisons: >, >=, <, <=
  units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB; `ns`, `us`, `ms`, `s`"""

_EXAMPLE = f"""\
examples:
  ibprof diff before.otf2 after.otf2
  ibprof diff before.otf2 after.otf2 --fabric ibdiagnet.lst --fail-on 'max_link>+10%'
  ibprof diff report-1.json report-2.json --fail-on 'bytes[BCAST]>+5%' --fail-on 'elapsed>+20%'

A and B are profiles, recordings, report.json of `ibprof-report --json`, links.csv, or any TRAFFIC of `ibprof-report`.

{_THRESHOLDS}
"""


@command(NAME)
def main(argv: Sequence[str] | None) -> int:
    """Run `ibprof diff`."""
    arguments = _parser().parse_args(argv)
    if not arguments.fabric:
        refuse_options(arguments, list_fabric_arguments(), "only with --fabric LST...")
    # --help and invalid options do not need the analysis, which is slow to import.
    from ibprof_converter.reports.compared_run import pair_runs  # noqa: PLC0415
    from ibprof_converter.reports.comparison_sections import describe_comparison, page_of_comparison  # noqa: PLC0415
    from ibprof_converter.reports.report_page import write_report_page  # noqa: PLC0415
    from ibprof_converter.reports.report_text import print_sections  # noqa: PLC0415
    from ibprof_converter.reports.run_comparison import DiffOptions, compare_runs  # noqa: PLC0415

    runs = pair_runs(
        arguments.a,
        arguments.b,
        arguments.placement or (),
        arguments.rails,
        arguments.strict,
        arguments.nic,
        row_options(arguments),
    )
    fabric = reading_options(arguments, tuple(arguments.fabric)) if arguments.fabric else None
    options = DiffOptions(*runs, fabric, tuple(arguments.fail_on))
    check_files(options.files(), {"--html": arguments.html})
    command = shlex.join([*NAME.split(), *(sys.argv[1:] if argv is None else argv)])
    with show_stages() as progress:
        comparison = compare_runs(options, command, progress)
    if arguments.html:
        named = [*map(Path, (*arguments.fabric, arguments.a, arguments.b)), arguments.html]
        paths = shorten_paths(arguments.provenance, [*options.files(), *named])
        page = page_of_comparison(comparison, arguments.top)
        write_report_page(arguments.html, replace(page, spell=paths.in_html().apply))
    if arguments.json:
        print_json(comparison.as_json())
    else:
        print_captured(lambda console: print_sections(console, describe_comparison(comparison, arguments.top)))
    return THRESHOLD_CROSSED if comparison.fails else 0


def _parse_threshold(text: str) -> FailCondition:
    """Parse a value of `--fail-on`.

    Raises:
        UsageError: the text is not a threshold.
    """
    from ibprof_converter.reports.run_comparison import parse_condition  # noqa: PLC0415  (slow to import)

    return parse_condition(text)


def _parser() -> argparse.ArgumentParser:
    description = (
        "Compare two runs by operation, region, size of messages and pair of ranks; with --fabric, also by link. The "
        "largest changes come first. Runs with different numbers of ranks are compared by share of the run's bytes. "
        "Status 1 if a threshold is crossed."
    )
    parser = make_parser(
        NAME,
        description,
        _EXAMPLE,
        shown=(
            "--fail-on",
            "--fabric",
            "--placement",
            "--operation",
            "--region",
            "--site",
            "--top",
            "--json",
            "--html",
        ),
    )
    parser.add_argument("a", metavar="A", help="the run before")
    parser.add_argument("b", metavar="B", help="the run after")
    parser.add_argument(
        "--fail-on",
        metavar="THRESHOLD",
        action="append",
        type=type_of(_parse_threshold),
        default=[],
        help="end with status 1 if this threshold is crossed, such as 'max_link>+10%%'; may be repeated",
    )
    parser.add_argument(
        "--fabric",
        metavar="LST",
        nargs="+",
        default=[],
        help="also compare the links of this fabric; name LST after A and B",
    )
    add_fabric_arguments(parser)
    add_row_arguments(parser)
    parser.add_argument(
        "--top", metavar="N", type=parse_count, default=_TOP, help=f"number of changes per table (default: {_TOP})"
    )
    parser.add_argument("--json", action="store_true", help="print all changes as JSON")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write the comparison as one HTML page")
    add_provenance_argument(parser)
    return parser
