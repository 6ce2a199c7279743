# SPDX-License-Identifier: Apache-2.0
"""`ibprof diff`: two runs compared: what changed, and whether that crosses a threshold."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ibprof.cli.command import run_command
from ibprof.errors import THRESHOLD_CROSSED, UsageError
from ibprof_converter.cli.inputs import add_fabric_arguments, load_inputs, show_stages
from ibprof_converter.cli.layout_outputs import check_files, named_files, naming
from ibprof_converter.cli.printing import print_captured, print_json
from ibprof_converter.hotspots.report import DIAGNOSED_FLOWS, report_on_links, report_on_run
from ibprof_converter.outputs.rows import link_rows
from ibprof_converter.reports.comparison import Comparison, compare
from ibprof_converter.reports.comparison_sections import describe_comparison
from ibprof_converter.reports.conditions import HELP, Condition, parse_condition
from ibprof_converter.reports.job_report import OnLinks, report_as_json, report_on_flows, report_on_job
from ibprof_converter.reports.provenance import Provenance, describe_provenance
from ibprof_converter.reports.side import (
    LINK,
    PAIR,
    Side,
    links_of_rows,
    looks_like_links,
    looks_like_report,
    pairs_of_demand,
    read_links,
    read_report,
    side_of_report,
)
from ibprof_converter.reports.terminal import print_sections
from ibprof_converter.traffic.traffic_data import RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import read_traffic

NAME = "ibprof diff"

_TOP = 10

_EXAMPLE = f"""\
examples:
  ibprof diff before.otf2 after.otf2
  ibprof diff before.otf2 after.otf2 --fabric ibdiagnet.lst --fail-on 'max_link>+10%'
  ibprof diff report-1.json report-2.json --fail-on 'bytes[BCAST]>+5%' --fail-on 'elapsed>+20%'

A and B are profiles, recordings, report.json of `ibprof-report --json`, links.csv, or any TRAFFIC of `ibprof-report`.

{HELP}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof diff`."""
    return run_command(NAME, _diff, argv)


def _diff(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    _check(arguments)
    with show_stages() as progress:
        sides = [
            _read_side(name, number, arguments, progress) for number, name in enumerate((arguments.a, arguments.b))
        ]
    command = shlex.join([*NAME.split(), *(sys.argv[1:] if argv is None else argv)])
    comparison = compare(sides[0], sides[1], arguments.fail_on, describe_provenance(command, _files(arguments)))
    _write(arguments, comparison)
    return THRESHOLD_CROSSED if comparison.fails else 0


def _check(arguments: argparse.Namespace) -> None:
    if len(arguments.placement or ()) > 2:
        raise UsageError("--placement: expected one for both runs, or one for each")
    if not arguments.fabric and (arguments.placement or arguments.rails or arguments.fdbs):
        raise UsageError("--placement, --rails and --fdbs need --fabric LST...")
    check_files(_inputs(arguments, arguments.a, 0), {"--html": arguments.html})
    check_files(_inputs(arguments, arguments.b, 1), {"--html": arguments.html})


def _files(arguments: argparse.Namespace) -> list[Path]:
    both = ((arguments.a, 0), (arguments.b, 1))
    return [path for name, number in both for path in named_files(_inputs(arguments, name, number))]


def _inputs(arguments: argparse.Namespace, name: str, number: int) -> argparse.Namespace:
    """Give the arguments as if `ibprof-report` was asked of one run."""
    placements = arguments.placement or []
    placement = placements[number : number + 1] if len(placements) == 2 else placements
    inputs = [*(arguments.fabric or ()), name]
    return argparse.Namespace(
        **{**vars(arguments), "inputs": inputs, "placement": placement or None, "counters": [], "adaptive": False}
    )


def _read_side(name: str, number: int, arguments: argparse.Namespace, progress: Callable[[str], None]) -> Side:
    path = Path(name)
    if looks_like_report(path):
        return read_report(path)
    if looks_like_links(path):
        return read_links(path)
    if arguments.fabric:
        return _load_side(name, _inputs(arguments, name, number), progress)
    progress("reading the traffic")
    nowhere = Provenance("", (), ())
    demand = read_traffic(name, None)
    if isinstance(demand, Traffic):
        return replace(side_of_report(name, report_as_json(report_on_flows(demand, nowhere))), notes=())
    if not isinstance(demand, RankTraffic):
        raise UsageError(f"{demand.origin}: port counters are compared on a fabric: give --fabric LST...")
    document = report_as_json(report_on_job(report_on_run(demand), nowhere, demand, None))
    return _with_pairs(replace(side_of_report(name, document), notes=()), demand)


def _load_side(name: str, inputs: argparse.Namespace, progress: Callable[[str], None]) -> Side:
    """Put a run on the fabric, and take every link end and every pair in place of those that a report names."""
    loaded = load_inputs(inputs, progress=progress, flows_limit=DIAGNOSED_FLOWS)
    answer = report_on_links(loaded.demand, loaded.placed, loaded.subnets, loaded.layouts, loaded.loads, 0)
    on_links = OnLinks(loaded.subnets, loaded.layouts, loaded.hosts, loaded.placed, loaded.loads)
    document = report_as_json(report_on_job(answer, Provenance("", (), ()), loaded.demand, on_links))
    fabrics = [subnet.fabric for subnet in loaded.subnets]
    links = links_of_rows(link_rows(fabrics, loaded.layouts, loaded.loads, only_used=True))
    side = side_of_report(name, document)
    side = replace(side, parts={**side.parts, LINK: links}, notes=answer.coverage.notes)
    return _with_pairs(side, loaded.demand) if loaded.demand else side


def _with_pairs(side: Side, demand: RankTraffic) -> Side:
    return replace(side, parts={**side.parts, PAIR: pairs_of_demand(demand)})


def _write(arguments: argparse.Namespace, comparison: Comparison) -> None:
    if arguments.html:
        from ibprof_converter.reports.comparison_sections import page_of_comparison  # noqa: PLC0415
        from ibprof_converter.reports.page import write_report_page  # noqa: PLC0415

        with naming(arguments.html):
            write_report_page(arguments.html, page_of_comparison(comparison, arguments.top))
    if arguments.json:
        print_json(comparison.as_json())
    else:
        print_captured(lambda console: print_sections(console, describe_comparison(comparison, arguments.top)))


def _condition(text: str) -> Condition:
    try:
        return parse_condition(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Compare two runs by operation, region, size of messages, pair of ranks and, on a fabric, link; "
        "what changed most comes first. Runs of different size are compared by share. Status 1 when a threshold is "
        "crossed.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("a", metavar="A", help="the run before")
    parser.add_argument("b", metavar="B", help="the run after")
    parser.add_argument(
        "--fail-on",
        metavar="THRESHOLD",
        action="append",
        type=_condition,
        default=[],
        help="end with status 1 when it holds, such as 'max_link>+10%%'; several: when any does",
    )
    parser.add_argument(
        "--fabric", metavar="LST", nargs="+", default=[], help="the fabric, behind A and B: compare links too"
    )
    add_fabric_arguments(parser)
    parser.add_argument(
        "--top", metavar="N", type=_count, default=_TOP, help=f"changes to list of each kind (default: {_TOP})"
    )
    parser.add_argument("--json", action="store_true", help="all changes for programs, on stdout")
    parser.add_argument("--html", metavar="FILE", type=Path, help="the same as one page for any browser")
    return parser
