# SPDX-License-Identifier: Apache-2.0
"""`ibprof-report`: the links that carry most, and who loads them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence

from rich.console import Console

from ibprof.cli.command import run_command
from ibprof.errors import UsageError
from ibprof.show import printable
from ibprof_converter.cli.inputs import (
    Loaded,
    add_beside_arguments,
    add_input_arguments,
    load_inputs,
    show_stages,
    split_inputs,
)
from ibprof_converter.hotspots.bounded import bounds_as_json, describe_bounds
from ibprof_converter.hotspots.counted import agreement_as_json, describe_agreement
from ibprof_converter.hotspots.report import Report, as_json, report_on_links, report_on_run
from ibprof_converter.hotspots.text import print_report
from ibprof_converter.routing.generated.spec import FORMS
from ibprof_converter.traffic.model import RankTraffic
from ibprof_converter.traffic.read import KINDS, read_traffic

NAME = "ibprof-report"

_PIPE_WIDTH = 140
"""Columns where there is no terminal to ask."""

_TOP = 10

_EXAMPLE = f"""\
examples:
  ibprof-report profile.otf2
  ibprof-report ibdiagnet.lst profile.otf2
  ibprof-report rail1.lst rail2.lst profile.otf2 --json > report.json

{KINDS}
{FORMS}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-report`."""
    return run_command(NAME, _report, argv)


def _report(argv: Sequence[str] | None) -> None:
    arguments = _parser().parse_intermixed_args(argv)
    loaded = _load(arguments)
    report = _make_report(arguments, loaded)
    if arguments.json:
        json.dump(as_json(report) | (_beside_as_json(loaded) if loaded else {}), sys.stdout, indent=2)
        print()
        return
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(width=width, force_terminal=sys.stdout.isatty(), markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        print_report(console, report)
    for line in captured.get().splitlines():
        print(line.rstrip())  # rich fills every line of a table with blanks
    for line in _describe_beside(loaded) if loaded else ():
        print(printable(line))


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
        yield ""
        yield from describe_agreement(loaded.agreement, fabrics)
    if loaded.bounds:
        yield ""
        yield from describe_bounds(loaded.bounds, loaded.loads, fabrics)


def _load(arguments: argparse.Namespace) -> Loaded | None:
    """Read fabrics and traffic, if there is a fabric."""
    listings, traffics = split_inputs(arguments.inputs)
    if not listings:
        if len(traffics) > 1:
            raise UsageError("several jobs share a network: give its .lst before them")
        return None
    with show_stages() as progress:
        return load_inputs(arguments, progress=progress)


def _make_report(arguments: argparse.Namespace, loaded: Loaded | None) -> Report:
    if loaded is not None:
        top = _TOP if arguments.top is None else arguments.top
        return report_on_links(loaded.demand, loaded.placed, loaded.subnets, loaded.layouts, loaded.loads, top)
    options = (arguments.placement, arguments.rails, arguments.fdbs, arguments.strict, arguments.counters)
    if any(options) or arguments.top is not None:
        raise UsageError(
            "--placement, --rails, --fdbs, --strict, --counters and --top need a fabric: give its .lst before TRAFFIC"
        )
    demand = read_traffic(arguments.inputs[0], None)
    if not isinstance(demand, RankTraffic):
        raise UsageError(f"{demand.origin}: without a fabric nothing can be said; give its .lst before TRAFFIC")
    return report_on_run(demand)


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
    parser.add_argument("--json", action="store_true", help="the same numbers for programs")
    parser.add_argument("--top", metavar="N", type=_count, help=f"hot link ends to name (default: {_TOP})")
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
    return int(text)
