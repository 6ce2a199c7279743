# SPDX-License-Identifier: Apache-2.0
"""`ibprof-report`: the links that carry most, and who loads them."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ibprof.cli.command import run_command
from ibprof.errors import UsageError
from ibprof_converter.cli.inputs import (
    Loaded,
    add_beside_arguments,
    add_input_arguments,
    load_inputs,
    show_stages,
    split_inputs,
)
from ibprof_converter.cli.layout_outputs import check_files, named_files, naming
from ibprof_converter.cli.printing import print_captured, print_json
from ibprof_converter.cli.view_outputs import add_data_arguments, describe_view
from ibprof_converter.hotspots.bounded import bounds_as_json, describe_bounds
from ibprof_converter.hotspots.counted import agreement_as_json, describe_agreement
from ibprof_converter.hotspots.report import DIAGNOSED_FLOWS, report_on_links, report_on_run
from ibprof_converter.reports.job_report import JobReport, OnLinks, report_as_json, report_on_flows, report_on_job
from ibprof_converter.reports.job_sections import describe_report
from ibprof_converter.reports.provenance import describe_provenance
from ibprof_converter.reports.terminal import print_sections
from ibprof_converter.routing.synthetic.spec import FORMS
from ibprof_converter.traffic.traffic_data import RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import KINDS, read_traffic

NAME = "ibprof-report"

_TOP = 10

_EXAMPLE = f"""\
examples:
  ibprof-report profile.otf2
  ibprof-report ibdiagnet.lst profile.otf2
  ibprof-report rail1.lst rail2.lst profile.otf2 --json > report.json
  ibprof-report ibdiagnet.lst profile.otf2 --html report.html

{KINDS}
{FORMS}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-report`."""
    return run_command(NAME, _report, argv)


def _report(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_intermixed_args(argv)
    _check(arguments)
    loaded = _load(arguments)
    report = _make_report(arguments, loaded, sys.argv[1:] if argv is None else argv)
    if arguments.html:
        _write_page(arguments.html, report, loaded, arguments)
    if arguments.json:
        print_json(report_as_json(report))
    elif not arguments.html:
        print_captured(lambda console: print_sections(console, describe_report(report)))


def _check(arguments: argparse.Namespace) -> None:
    check_files(arguments, {"--html": arguments.html})
    if split_inputs(arguments.inputs)[0]:
        return
    options = (arguments.placement, arguments.rails, arguments.fdbs, arguments.strict, arguments.counters)
    if any(options) or arguments.top is not None:
        raise UsageError(
            "--placement, --rails, --fdbs, --strict, --counters and --top need a fabric: give its .lst before TRAFFIC"
        )


def _write_page(path: Path, report: JobReport, loaded: Loaded | None, arguments: argparse.Namespace) -> None:
    from ibprof_converter.reports.job_page import page_of_report  # noqa: PLC0415  (pages are wanted seldom)
    from ibprof_converter.reports.page import write_report_page  # noqa: PLC0415
    from ibprof_converter.viewer.html_page import render_page  # noqa: PLC0415

    view = render_page(describe_view(loaded, arguments)) if loaded else None
    with naming(path):
        write_report_page(path, page_of_report(report, view))


def _beside_as_json(loaded: Loaded) -> dict[str, object]:
    """Give what stands beside the loads: counters, bounds of adaptive routing."""
    fabrics = [subnet.fabric for subnet in loaded.subnets]
    beside: dict[str, object] = {}
    if loaded.agreement:
        beside["counters"] = agreement_as_json(loaded.agreement, fabrics)
    if loaded.bounds:
        beside["adaptive"] = bounds_as_json(loaded.bounds, loaded.loads, fabrics)
    return beside


def _describe_beside(loaded: Loaded) -> Iterator[str]:
    fabrics = [subnet.fabric for subnet in loaded.subnets]
    if loaded.agreement:
        yield from describe_agreement(loaded.agreement, fabrics)
    if loaded.bounds:
        yield from describe_bounds(loaded.bounds, loaded.loads, fabrics)


def _load(arguments: argparse.Namespace) -> Loaded | None:
    """Read fabrics and traffic, if there is a fabric."""
    listings, traffics = split_inputs(arguments.inputs)
    if not listings:
        if len(traffics) > 1:
            raise UsageError("several jobs share a network: give its .lst before them")
        return None
    with show_stages() as progress:
        return load_inputs(arguments, progress=progress, flows_limit=DIAGNOSED_FLOWS)


def _make_report(arguments: argparse.Namespace, loaded: Loaded | None, argv: Sequence[str]) -> JobReport:
    provenance = describe_provenance(shlex.join([NAME, *argv]), named_files(arguments))
    if loaded is not None:
        top = _TOP if arguments.top is None else arguments.top
        answer = report_on_links(loaded.demand, loaded.placed, loaded.subnets, loaded.layouts, loaded.loads, top)
        on_links = OnLinks(loaded.subnets, loaded.layouts, loaded.hosts, loaded.placed, loaded.loads)
        beside, lines = _beside_as_json(loaded), tuple(_describe_beside(loaded))
        return report_on_job(answer, provenance, loaded.demand, on_links, beside, lines)
    demand = read_traffic(arguments.inputs[0], None)
    if isinstance(demand, Traffic):
        return report_on_flows(demand, provenance)
    if not isinstance(demand, RankTraffic):
        raise UsageError(f"{demand.origin}: without a fabric nothing can be said; give its .lst before TRAFFIC")
    return report_on_job(report_on_run(demand), provenance, demand, None)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Name the links that carry most and who loads them. Without a LST: what the profile alone can say, "
        "and what to ask an administrator for.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_input_arguments(parser, fabric_needed=False)
    add_beside_arguments(parser)
    add_data_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the same numbers for programs, on stdout")
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="the same numbers as one page for any browser, with the network view"
    )
    parser.add_argument("--top", metavar="N", type=_count, help=f"hot link ends to name (default: {_TOP})")
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
    return int(text)
