# SPDX-License-Identifier: Apache-2.0
"""`ibprof-report`: the links that carry most, and who loads them."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ibprof.cli.command import run_command
from ibprof.cli.parsers import make_parser
from ibprof.errors import UsageError
from ibprof.text.quantities import printable
from ibprof_converter.analysis.load_options import TOP, AttributeFiles, FabricOptions, TrafficOptions
from ibprof_converter.analysis.output_files import check_files
from ibprof_converter.cli.input_arguments import (
    add_adaptive_argument,
    add_attribute_arguments,
    add_counters_argument,
    add_input_arguments,
    add_provenance_argument,
    attribute_options,
    fabric_options,
    parse_count,
    shorten_paths,
    traffic_options,
)
from ibprof_converter.cli.printing import print_captured, print_json, print_lines, show_stages
from ibprof_converter.hotspots.link_order import BY_TIME, RANKINGS
from ibprof_converter.routing.synthetic.spec import FORMS
from ibprof_converter.traffic.traffic_reader import KINDS, is_traffic

if TYPE_CHECKING:
    from rich.console import Console

    from ibprof_converter.reports.job_report import JobReport
    from ibprof_converter.reports.report_sections import Section

NAME = "ibprof-report"


_EXAMPLE = f"""\
examples:
  ibprof-report profile.otf2
  ibprof-report ibdiagnet.lst profile.otf2
  ibprof-report ibdiagnet.lst profile.otf2 --section why
  ibprof-report rail1.lst rail2.lst profile.otf2 --json > report.json
  ibprof-report ibdiagnet.lst profile.otf2 --html report.html

{KINDS}
{FORMS}"""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Inputs and outputs of `ibprof-report`; `fabric` is None without one."""

    fabric: FabricOptions | None
    traffic: TrafficOptions
    attributes: AttributeFiles
    top: int
    rank_by: str
    html: Path | None
    provenance: str
    as_json: bool
    full: bool
    sections: tuple[str, ...]

    def files(self) -> Iterator[Path]:
        """Yield the files to read."""
        for part in (self.fabric, self.traffic, self.attributes):
            yield from part.files() if part else ()

    def paths(self) -> Iterator[Path]:
        """Yield the files to read, and what the user named: folders among them."""
        yield from self.files()
        yield from map(Path, (*(self.fabric.names if self.fabric else ()), *self.traffic.names))


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-report`."""
    return run_command(NAME, _report, argv)


def _report(argv: Sequence[str] | None) -> None:
    options = _report_options(_parser().parse_intermixed_args(argv))
    # --help and wrong options need none of the analysis, whose import takes most of a second.
    from ibprof_converter.reports.job_report import read_and_report  # noqa: PLC0415
    from ibprof_converter.reports.typed_commands import name_files  # noqa: PLC0415

    command = shlex.join([NAME, *(sys.argv[1:] if argv is None else argv)])
    with show_stages() as progress:
        report = read_and_report(
            options.fabric, options.traffic, command, options.files(), options.top, progress, options.rank_by
        )
    report = name_files(report, options.fabric, options.traffic)
    if options.html:
        from ibprof_converter.reports.job_page import write_job_page  # noqa: PLC0415  (pages are wanted seldom)

        paths = shorten_paths(options.provenance, [*options.paths(), options.html])
        write_job_page(options.html, report, options.attributes, paths)
    if options.as_json:
        print_json(report.as_json())
    elif not options.html:
        _print_text(report, options)


def _print_text(report: JobReport, options: ReportOptions) -> None:
    # As above; --json needs none of these.
    from ibprof_converter.reports.brief_report import describe_in_brief  # noqa: PLC0415
    from ibprof_converter.reports.job_sections import describe_report  # noqa: PLC0415
    from ibprof_converter.reports.terminal_text import print_sections  # noqa: PLC0415

    sections = describe_report(report)
    names = tuple(section.name for section in sections)
    if unknown := [name for name in options.sections if name not in names]:
        raise UsageError(f"--section {unknown[0]}: this report has {', '.join(names)}")
    if options.sections:
        chosen = [section for section in sections if section.name in options.sections]
        print_captured(lambda console: print_sections(console, chosen))
    elif options.full:
        print_captured(lambda console: _print_all(console, report, sections))
    else:
        print_lines(describe_in_brief(report, names, shutil.get_terminal_size((80, 24)).columns))


def _print_all(console: Console, report: JobReport, sections: list[Section]) -> None:
    from rich.text import Text  # noqa: PLC0415  (as above)

    from ibprof_converter.reports.terminal_text import print_sections  # noqa: PLC0415  (as above)

    console.print(Text(printable(report.verdict.text)), end="\n\n")
    print_sections(console, sections)


def _report_options(arguments: argparse.Namespace) -> ReportOptions:
    from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS  # noqa: PLC0415  (as above)

    fabric = fabric_options(arguments, fabric_needed=False)
    options = ReportOptions(
        fabric=fabric if fabric.names else None,
        traffic=traffic_options(arguments, DIAGNOSED_FLOWS),
        attributes=attribute_options(arguments),
        top=TOP if arguments.top is None else arguments.top,
        rank_by=arguments.rank_by or BY_TIME,
        html=arguments.html,
        provenance=arguments.provenance,
        as_json=arguments.json,
        full=arguments.full,
        sections=tuple(arguments.section or ()),
    )
    of_fabric = (
        arguments.placement,
        arguments.rails,
        arguments.nic,
        arguments.fdbs,
        arguments.routes,
        arguments.strict,
        arguments.counters,
        arguments.rank_by,
    )
    if options.fabric is None and (any(of_fabric) or arguments.top is not None):
        raise UsageError(
            "--placement, --rails, --nic, --fdbs, --routes, --strict, --counters, --top and --rank-by need a "
            "fabric: give its .lst before TRAFFIC"
        )
    if options.fabric is None and len(options.traffic.names) > 1:
        for name in options.traffic.names:
            if not (is_traffic(name) or Path(name).exists()):
                raise UsageError(f"{name}: no such file")
        raise UsageError("several jobs share a network: give its .lst before them")
    check_files(options.files(), {"--html": options.html})
    return options


def _parser() -> argparse.ArgumentParser:
    description = (
        "Name the links that carry most and who loads them. Without a LST: what the profile alone can say, and what to "
        "ask an administrator for."
    )
    parser = make_parser(NAME, description, _EXAMPLE)
    add_input_arguments(parser, fabric_needed=False)
    add_adaptive_argument(parser)
    add_counters_argument(parser)
    add_attribute_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the same numbers for programs, on stdout")
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="the same numbers as one page for any browser, with the network view"
    )
    add_provenance_argument(parser)
    parser.add_argument("--full", action="store_true", help="print all of the report, not only its fifteen lines")
    parser.add_argument(
        "--section", metavar="NAME", action="append", help="print this part alone: hot, why, ...; may be repeated"
    )
    parser.add_argument("--top", metavar="N", type=parse_count, help=f"most loaded links to name (default: {TOP})")
    parser.add_argument(
        "--rank-by",
        choices=RANKINGS,
        help=f"name the links with the longest time at line rate, or with most bytes (default: {BY_TIME})",
    )
    return parser
