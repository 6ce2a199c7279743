# SPDX-License-Identifier: Apache-2.0
"""`ibprof-layout --check`: say what is wrong with a fabric and its dumps."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator

from ibprof.errors import InconsistentError, UsageError
from ibprof.text.quantities import printable
from ibprof_converter.checks.check import Health, RailSummary, look_over
from ibprof_converter.cli.inputs import show_stages
from ibprof_converter.cli.layout_outputs import OPTIONS
from ibprof_converter.routing.rail_files import find_rails

_WIDTH = 120


def check_fabric(name: str, arguments: argparse.Namespace) -> int:
    """Check the fabrics that were named.

    Returns:
        0, or the status of inconsistent data where routes cannot be trusted.

    Raises:
        UsageError: something was asked for that is of a traffic.
        IbprofError: of any other kind.
    """
    options = (*OPTIONS, "panels", "placement", "rails", "by", "used", "counters")
    if wanted := next((option for option in options if getattr(arguments, option)), None):
        raise UsageError(f"--check has no traffic: --{wanted} does not apply")
    with show_stages() as progress:
        health = look_over(find_rails(arguments.inputs, arguments.fdbs), progress)
    if arguments.json:
        json.dump(health.as_json(), sys.stdout, indent=2)
        print()
    else:
        for line in _describe(health):
            print(printable(line))
    if health.trusted:
        return 0
    print(f"{name}: routes cannot be trusted", file=sys.stderr)
    return InconsistentError.status


def _describe(health: Health) -> Iterator[str]:
    for number, rail in enumerate(health.rails):
        yield _describe_rail(number, rail)
    if not health.findings:
        yield "nothing is wrong"
    for finding in health.findings:
        meaning = finding.kind.value
        yield ""
        yield f"rail {finding.rail}: {meaning.name}: {finding.line}"
        # The mark is what to look for where the list is long.
        text = f"{'ROUTES CANNOT BE TRUSTED: ' if meaning.untrusted else ''}{meaning.text}"
        yield from textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _describe_rail(number: int, rail: RailSummary) -> str:
    if rail.tables_from is None:
        return f"rail {number}: {rail.links_from}: cannot be used"
    routers = f", {rail.routers} routers" if rail.routers else ""
    adaptive = "; switches route adaptively: the tables give one of the ways" if rail.adaptive else ""
    return (
        f"rail {number}: {rail.links_from}: {rail.switches} switches, {rail.adapters} adapters{routers}, "
        f"{rail.links} links; {rail.tables} tables from {rail.tables_from}{adaptive}"
    )
