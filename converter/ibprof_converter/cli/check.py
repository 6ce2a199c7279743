# SPDX-License-Identifier: Apache-2.0
"""`ibprof-layout --check`: say what is wrong with a fabric and its dumps."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

from ibprof.errors import InconsistentError
from ibprof.text.quantities import printable
from ibprof_converter.analysis.load_options import FabricOptions
from ibprof_converter.checks.fabric_check import FabricHealth, RailSummary, check_fabric_files
from ibprof_converter.cli.printing import print_json, show_stages
from ibprof_converter.routing.rail_files import find_rails

_WIDTH = 120


def check_fabric(name: str, options: FabricOptions, as_json: bool) -> int:
    """Check fabrics and print what was found.

    Args:
        name: of the command, for stderr.
        options: which fabrics.
        as_json: whether to print JSON.

    Returns:
        0, or the status of inconsistent data where routes cannot be trusted.

    Raises:
        IbprofError: of any kind.
    """
    with show_stages() as progress:
        health = check_fabric_files(find_rails(options.names, options.tables), progress)
    if as_json:
        print_json(health.as_json())
    else:
        for line in _describe(health):
            print(printable(line))
    if health.trusted:
        return 0
    print(f"{name}: routes cannot be trusted", file=sys.stderr)
    return InconsistentError.status


def _describe(health: FabricHealth) -> Iterator[str]:
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
    adaptive = "; switches route adaptively: the tables give one of the paths" if rail.adaptive else ""
    return (
        f"rail {number}: {rail.links_from}: {rail.switches} switches, {rail.adapters} adapters{routers}, "
        f"{rail.links} links; {rail.tables} tables from {rail.tables_from}{adaptive}"
    )
