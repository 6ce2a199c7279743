# SPDX-License-Identifier: Apache-2.0
"""The report as text, for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ibprof.gaps import format_ranks
from ibprof.port_sums import PortSum
from ibprof.show import format_bytes, format_seconds, printable
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.coverage import Coverage
from ibprof_converter.hotspots.links import HOST_LINK, Hotspot, Node, Share
from ibprof_converter.hotspots.report import LinkReport, Report, Request
from ibprof_converter.hotspots.run import HostSum, RunSummary, Sum


def print_report(console: Console, report: Report) -> None:
    """Print a report: what it rests on, where the bytes went, hot link ends, who loads them.

    Args:
        console: where to; its markup must be off, since names are anyone's text.
        report: what to print.
    """
    rails = 1 + max((spot.rail for spot in report.links.hotspots), default=0) if report.links else 1
    _print_coverage(console, report.coverage)
    if report.links:
        _print_bytes(console, report.links)
        _print_hotspots(console, report.links, rails)
        if report.links.diagnosis:
            _print_diagnosis(console, report.links.diagnosis)
    if report.run:
        _print_run(console, report.run, with_hosts=report.links is None)
    if report.requests:
        _print_requests(console, report.requests, has_hosts=report.coverage.world_size is not None)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _sentences(console: Console, label: str, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        console.print(Padding(Text(f"{label}: {printable(sentence)}"), (0, 0, 0, 2)))


def _table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _print_coverage(console: Console, coverage: Coverage) -> None:
    console.print(Text("What was seen", style="bold"))
    _sentences(console, "traffic", [coverage.origin])
    if coverage.world_size is not None:
        hosts = ", ".join(coverage.hosts[:8]) + (" ..." if len(coverage.hosts) > 8 else "")
        recorded = f"{coverage.ranks_recorded} of {coverage.world_size}, on {len(coverage.hosts)} host(s): {hosts}"
        _sentences(console, "ranks recorded", [recorded])
    if coverage.rails is not None:
        _sentences(console, "rails", [coverage.rails])
    _sentences(console, "not seen", coverage.not_seen)
    _sentences(console, "modelled", coverage.modelled)
    _sentences(console, "note", coverage.notes)


def _print_bytes(console: Console, links: LinkReport) -> None:
    _heading(console, "Where the bytes went")
    table = _table("", "bytes", " ", "share", numbers=("bytes", " ", "share"))
    rows = [("routed over links", links.bytes_routed), ("within a host", links.bytes_on_host)]
    rows += [(f"not routed: {reason}", amount) for reason, amount in links.bytes_unrouted.items()]
    for label, amount in [*rows, ("in all", links.bytes_total)]:
        share = amount / links.bytes_total if links.bytes_total else 0.0
        table.add_row(printable(label), f"{amount:,}", format_bytes(amount), _percent(share))
    console.print(Padding(table, (0, 0, 0, 2)))
    heat = links.heat
    said = f"links used: {heat.links_used:,} of {heat.links:,}"
    if heat.links_used:
        ratio = heat.max_link / heat.mean_link
        said += (
            f"; the hottest link end sends {format_bytes(heat.max_link)}, {ratio:.2f} times the mean of those used; "
            f"the hottest between switches {format_bytes(heat.max_switch_link)}"
        )
    console.print(Padding(Text(said), (0, 0, 0, 2)))


def _print_hotspots(console: Console, links: LinkReport, rails: int) -> None:
    if not links.hotspots:
        return
    _heading(console, "Hot link ends, and who loads them")
    _print_ends(console, links.hotspots, rails)
    if links.switch_hotspots and any(spot.kind == HOST_LINK for spot in links.hotspots):
        _heading(console, "Hot link ends between switches: the ones that another placement can relieve")
        _print_ends(console, links.switch_hotspots, rails)


def _print_ends(console: Console, spots: Sequence[Hotspot], rails: int) -> None:
    table = _table(
        *(["rail"] if rails > 1 else []),
        *("from", "to", "bytes", "x mean", "least time", "loaded by"),
        numbers=("rail", "bytes", "x mean", "least time"),
    )
    for spot in spots:
        source, destination = (spot.a, spot.b) if spot.end == "a" else (spot.b, spot.a)
        least = "-" if spot.least_time_s is None else format_seconds(spot.least_time_s)
        cells = [_side(source), _side(destination), format_bytes(spot.bytes), f"{spot.ratio_to_mean:.2f}", least]
        table.add_row(*([str(spot.rail)] if rails > 1 else []), *cells, _causes(spot), end_section=True)
    console.print(Padding(table, (0, 0, 0, 2)))


def _print_diagnosis(console: Console, diagnosis: Diagnosis) -> None:
    _heading(console, "Why: bounds, causes and what would help")
    lines = [
        f"busiest by time: {diagnosis.hottest}, {format_seconds(diagnosis.max_time_s)}",
        f"hosts' own links need {format_seconds(diagnosis.max_host_link_s)}: no network can do better",
        f"ideal routing of this placement needs {format_seconds(diagnosis.ideal_routing_s)}: no tables can do better",
        f"links between switches need {format_seconds(diagnosis.max_switch_link_s)}",
    ]
    if not diagnosis.causes:
        lines.append("nothing is at fault")
    for number, cause in enumerate(diagnosis.causes, 1):
        before, after = format_seconds(cause.max_time_s), format_seconds(cause.max_time_after_s)
        lines.append(f"{number}. {cause.cause}: {', '.join(cause.at[:3])}")
        lines += [f"   because {sentence}" for sentence in cause.evidence]
        lines.append(f"   {cause.advice}")
        lines.append(f"   on the model the busiest link then needs {after} in place of {before}")
    for line in lines:
        console.print(Padding(Text(line.strip()), (0, 0, 0, 5 if line.startswith(" ") else 2)))


def _side(node: Node) -> str:
    return f"{printable(node.name) or node.guid}\nport {node.port}"


def _causes(spot: Hotspot) -> str:
    causes = spot.contributors
    if causes is None:
        return "(counted at the port)"
    lines = []
    for pair in causes.rank_pairs:
        job = f"job {pair.job}, " if pair.job else ""
        ranks = job if pair.source_rank is None else f"{job}rank {pair.source_rank} -> {pair.destination_rank}, "
        lines.append(f"{_percent(pair.share):>7}  {ranks}{printable(pair.source)} -> {printable(pair.destination)}")
    if causes.other_pairs.pairs:
        lines.append(f"{_percent(causes.other_pairs.share):>7}  {causes.other_pairs.pairs} more pair(s)")
    for label, shares in (("job", causes.jobs), ("region", causes.regions), ("operation", causes.operations)):
        if shares and [share.name for share in shares] != ["*"]:
            lines.append(f"by {label}: {_shares(shares)}")
    return "\n".join(lines)


def _shares(shares: Sequence[Share]) -> str:
    return ", ".join(f"{printable(share.name)} {_percent(share.share)}" for share in shares)


def _print_run(console: Console, run: RunSummary, with_hosts: bool) -> None:
    for label, sums in (("Operations", run.operations), ("Regions", run.regions)):
        if [each.name for each in sums] != ["*"]:
            _heading(console, label)
            _print_sums(console, sums)
    if with_hosts and run.hosts:
        _heading(console, "Hosts")
        _print_hosts(console, run.hosts)
    if run.ports:
        _heading(
            console, "Ports, as measured: bytes posted to queue pairs, and the port's own count of all its traffic"
        )
        _print_ports(console, run.ports)
    _heading(console, "Balance")
    said = f"rank {run.balance_ranks.greatest} sends most: {format_bytes(run.balance_ranks.max_bytes)}"
    said += f", {run.balance_ranks.ratio:.2f} times the mean of all ranks"
    if with_hosts and run.balance_hosts and run.balance_hosts.max_bytes:
        host = run.hosts[run.balance_hosts.greatest].name
        said += f"; host {printable(host)} sends most to others: {format_bytes(run.balance_hosts.max_bytes)}"
        said += f", {run.balance_hosts.ratio:.2f} times the mean of all hosts"
    console.print(Padding(Text(said), (0, 0, 0, 2)))
    if with_hosts and run.hosts:
        said = f"{format_bytes(run.bytes_on_host)} of {format_bytes(run.bytes_total)} stay within a host"
        console.print(Padding(Text(said), (0, 0, 0, 2)))


def _print_sums(console: Console, sums: Sequence[Sum]) -> None:
    table = _table("name", "bytes", " ", "messages", "share", numbers=("bytes", " ", "messages", "share"))
    for each in sums:
        amount = f"{each.bytes:,}", format_bytes(each.bytes)
        table.add_row(printable(each.name), *amount, f"{each.messages:,}", _percent(each.share))
    console.print(Padding(table, (0, 0, 0, 2)))


def _print_hosts(console: Console, hosts: Sequence[HostSum]) -> None:
    numbers = ("within", "to others", "from others")
    table = _table("host", "ranks", *numbers, "ports", numbers=numbers)
    for host in hosts:
        ports = [
            f"{port.device}:{port.port} {port.link_layer}" + (f" LID {port.lid}" if port.lid else "")
            for port in host.ports
        ]
        amounts = (host.bytes_on_host, host.bytes_sent, host.bytes_received)
        table.add_row(
            printable(host.name),
            format_ranks(host.ranks),
            *map(format_bytes, amounts),
            printable(", ".join(ports)) or "no InfiniBand or RoCE port",
        )
    console.print(Padding(table, (0, 0, 0, 2)))


def _print_ports(console: Console, ports: Sequence[PortSum]) -> None:
    numbers = ("sent", " ", "share", "received", "own count sent", "own count received")
    table = _table("host", "port", *numbers, numbers=numbers)
    totals: dict[str, int] = {}
    for port in ports:
        totals[port.host] = totals.get(port.host, 0) + port.bytes_sent
    for port in ports:
        share = port.bytes_sent / totals[port.host] if totals[port.host] else 0.0
        own = [
            "?" if amount is None else format_bytes(amount) for amount in (port.hardware_sent, port.hardware_received)
        ]
        table.add_row(
            printable(port.host),
            printable(f"{port.device}/{port.port}"),
            f"{port.bytes_sent:,}",
            format_bytes(port.bytes_sent),
            _percent(share),
            format_bytes(port.bytes_received),
            *own,
        )
    console.print(Padding(table, (0, 0, 0, 2)))


def _print_requests(console: Console, requests: Sequence[Request], has_hosts: bool) -> None:
    _heading(console, "For the links: what to ask an administrator for")
    console.print(Padding(Text("once on each subnet (rail), and soon after the job: routes change"), (0, 0, 0, 2)))
    for request in requests:
        # A command must be copied whole, so it is never wrapped.
        console.print(f"\n  $ {request.command}", soft_wrap=True)
        console.print(Padding(Text(f"gives {', '.join(request.files)}\n{request.remark}"), (0, 0, 0, 4)))
    placement = "" if has_hosts else " --placement HOW"
    console.print(f"\n  then: ibprof-report ibdiagnet.lst TRAFFIC{placement}", soft_wrap=True)
