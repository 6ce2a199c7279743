# SPDX-License-Identifier: Apache-2.0
"""The health of a fabric in lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from ibprof_converter.checks.fabric_check import FabricHealth, RailSummary

_WIDTH = 120


def describe_health(health: FabricHealth) -> Iterator[str]:
    """Yield lines on what was checked and on each finding, the gravest first."""
    for number, rail in enumerate(health.rails):
        yield _describe_rail(number, rail)
        if max(rail.hosts_by_adapters, default=1) > 1:
            yield f"rail {number}: {_describe_hosts(rail.hosts_by_adapters)}"
        for director in rail.directors:
            yield f"rail {number}: director {director}"
        yield from rail.unused
    if not health.findings:
        yield "nothing is wrong"
    for finding in health.findings:
        meaning = finding.kind.value
        yield ""
        yield f"rail {finding.rail}: {meaning.name}: {finding.line}"
        # The mark is what to look for where the list is long.
        text = f"{'ROUTES CANNOT BE TRUSTED: ' if meaning.untrusted else ''}{meaning.text}"
        yield from textwrap.wrap(text, _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _describe_hosts(hosts_by_adapters: Mapping[int, int]) -> str:
    parts = [
        f"{hosts} {'host' if hosts == 1 else 'hosts'} with {ports} {'adapter' if ports == 1 else 'adapters'}"
        for ports, hosts in hosts_by_adapters.items()
    ]
    return f"{', '.join(parts)} in one subnet"


def _describe_rail(number: int, rail: RailSummary) -> str:
    if rail.tables_from is None:
        return f"rail {number}: {rail.links_from}: cannot be used"
    routers = f", {rail.routers} routers" if rail.routers else ""
    adaptive = "; switches route adaptively: the tables give one of the paths" if rail.adaptive else ""
    return (
        f"rail {number}: {rail.links_from}: {rail.switches} switches, {rail.adapters} adapters{routers}, "
        f"{rail.links} links; {rail.tables} tables from {rail.tables_from}{adaptive}"
    )
