# SPDX-License-Identifier: Apache-2.0
"""Write a report as text: a brief report of fifteen lines, or all sections with tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ibprof.text.quantities import format_bytes, format_seconds, name_call, printable
from ibprof.verdict.verdict_data import ADVICE
from ibprof_converter.hotspots.coverage import describe_left_out
from ibprof_converter.hotspots.hot_links import HOST_LINK, REST, Hotspot, LinkGroup
from ibprof_converter.reports.job_report import JobReport
from ibprof_converter.reports.link_sections import name_basis
from ibprof_converter.reports.report_sections import Section, Table, Value, ValueKind, format_lines
from ibprof_converter.traffic.link_loads import BY_BYTES
from ibprof_converter.traffic.traffic_data import ALL

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

LINES = 15
"""Largest number of lines of the brief report, at 80 columns."""

_SHOWN = 3
"""Largest number of listed link directions; after a long verdict, the list is shorter."""

_MUCH = 0.25
"""Pairs of ranks with a smaller share of a link direction's bytes are not named."""

_MOST = 0.5
"""Hosts and calls with a smaller share of a link direction's bytes are not named."""

_LEAST_VERDICT = 8
"""The verdict may have this number of lines, even if the rest of the report is long."""

_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")

_REST = "(More: --full.)"
"""Text in place of sentences that do not fit."""

_AROUND = 26
"""Number of characters in the line of a link direction, without its two node names."""

_INDENT = (0, 0, 0, 2)


def describe_in_brief(report: JobReport, names: tuple[str, ...], width: int = 80) -> Iterator[str]:
    """Yield the lines of the brief report.

    Args:
        names: names of all sections, in order.
        width: largest number of characters per line; sentences are wrapped, node names are shortened.
    """
    sentences = [each for paragraph in report.verdict.sentences for each in _SENTENCE_END.split(paragraph)]
    whole = len(_wrap(" ".join(sentences), width))
    rests = [list(_describe_rest(report, names, width, shown)) for shown in range(_SHOWN, 0, -1)]
    rest = next((each for each in rests if whole + len(each) <= LINES), rests[-1])
    yield from _choose_sentences(sentences, width, max(LINES - len(rest), _LEAST_VERDICT))
    yield from rest


def _describe_rest(report: JobReport, names: tuple[str, ...], width: int, shown: int) -> Iterator[str]:
    """Yield the lines after the verdict, which list the `shown` most loaded links."""
    if most_loaded := list(_describe_most_loaded(report, width, shown)):
        yield from ("", *most_loaded)
    yield ""
    names_lost = dict.fromkeys(name_call(each.operation) for each in report.coverage.unaccounted)
    if names_lost:
        yield from _wrap(f"Bytes of {', '.join(names_lost)} are missing (--section unaccounted)", width)
    missing = (*report.verdict.missing, *report.coverage.not_seen)
    if missing:
        more = f" (and {len(missing) - 1} more: --section seen)" if len(missing) > 1 else ""
        yield from _wrap(f"Missing: {missing[0]}{more}", width)
    if report.requests:
        asked = report.requests[0].command
        yield from _wrap(f"For the links, ask an administrator for: {asked} (--section ask)", width)
    listed = f" of {', '.join(names)}" if shown > 1 else ""
    yield from _wrap(f"More: --full, --html FILE, --json, or --section NAME{listed}", width)


def _describe_most_loaded(report: JobReport, width: int, shown: int) -> Iterator[str]:
    """Yield lines on data that were left out, then on the most loaded links.

    If no link is loaded, the last lines describe the job's sent bytes.
    """
    links = report.links
    if report.coverage.interfaces:
        yield from _wrap(f"Interfaces: {report.coverage.interfaces.text}", width)
    # If there are links, the verdict already names left-out hosts, LIDs and lines (`Coverage.lost`).
    for sentence in (*(() if links else report.coverage.lost), *describe_left_out(report.coverage)):
        yield from _wrap(sentence, width)
    if links and links.groups:
        by_bytes = links.ranked_by == BY_BYTES
        title = "Most loaded links, bytes" if by_bytes else "Most loaded links, time at line rate"
        yield f"{title}{name_basis(links.load_basis)}:"
        for number, group in enumerate(links.groups[:shown], 1):
            rail = f"rail {group.busiest.rail}: " if len(report.rails) > 1 else ""
            yield _cut(_describe_direction(number, group, rail, by_bytes, width), width)
    elif report.run and report.run.hosts:
        busiest = max(report.run.hosts, key=lambda host: host.bytes_sent)
        sent, within = format_bytes(report.run.bytes_total), format_bytes(report.run.bytes_on_host)
        most = (
            f"; {busiest.name} sends most bytes to other hosts: {format_bytes(busiest.bytes_sent)}"
            if busiest.bytes_sent
            else ""
        )
        yield from _wrap(f"{sent} sent, {within} of it within hosts{most}", width)


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), width, break_on_hyphens=False) or [""]


def _choose_sentences(sentences: Sequence[str], width: int, most: int) -> list[str]:
    """Return the lines of the first sentences that fit in `most` lines; always include the first sentence.

    If the last sentence is advice, sentences before the advice are left out first.
    """
    lines = _wrap(" ".join(sentences), width)
    advice = [each for each in sentences[-1:] if each.startswith(ADVICE)]
    for end in (advice, []):
        for kept in range(len(sentences) - 1 - len(end), 0, -1):
            if len(lines) <= most:
                return lines
            lines = _wrap(" ".join([*sentences[:kept], _REST, *end]), width)
    return lines


def _cut(line: str, width: int) -> str:
    shown = printable(line)
    return shown if len(shown) <= width else shown[: width - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _shorten(name: str, most: int) -> str:
    """Shorten a name in its middle: switch descriptions often differ only at their ends."""
    if len(name) <= most:
        return name
    end = (most - 1) * 2 // 3
    return f"{name[: most - 1 - end]}\N{HORIZONTAL ELLIPSIS}{name[-end:]}"


def _describe_direction(number: int, group: LinkGroup, rail: str, by_bytes: bool, width: int) -> str:
    spot, count = group.busiest, len(group.members)
    load = format_bytes(spot.bytes) if by_bytes or spot.line_rate_s is None else format_seconds(spot.line_rate_s)
    alike = f" (+ {count - 1} alike)" if count > 1 else ""
    most = (width - _AROUND - len(rail + alike)) // 2
    sender, receiver = (_shorten(each.node, most) for each in (spot.sender, spot.receiver))
    where = f"{rail}{sender} port {spot.sender.port} -> {receiver}"
    return f"{number:>3}  {load:>7}  {where}{alike}{_describe_largest_part(spot)}"


def _describe_largest_part(spot: Hotspot) -> str:
    """Return text on the pair, host or call with the most bytes; empty if its share is small."""
    causes = spot.contributors
    if causes is None or not causes.rank_pairs:
        return ""
    pair = causes.rank_pairs[0]
    if pair.share >= _MUCH:
        ranks = pair.source_rank is not None
        who = f"rank {pair.source_rank} -> {pair.destination_rank}" if ranks else f"{pair.source} -> {pair.destination}"
        return f", {pair.share:.0%} by {who}"
    is_own = spot.kind == HOST_LINK
    ends = () if is_own else (("from", causes.sources), ("to", causes.destinations))
    parts = [(f"{word} {part.name}", part) for word, hosts in ends for part in hosts[:1]]
    parts += [(name_call(part.name), part) for part in causes.operations[:1]]
    return next(
        (f", {part.share:.0%} {what}" for what, part in parts if part.share >= _MOST and part.name not in {ALL, REST}),
        "",
    )


def print_sections(console: Console, sections: Sequence[Section], head: str = "") -> None:
    """Print sections.

    Args:
        console: the output, with markup off: names are untrusted text.
        sections: sections to print; empty sections are left out.
        head: text above the sections, or empty.
    """
    from rich.padding import Padding  # noqa: PLC0415  (rich is slow to import, and the brief report needs none of it)
    from rich.text import Text  # noqa: PLC0415

    def say(sentence: str) -> None:
        console.print(Padding(Text(sentence), _INDENT))

    if head:
        console.print(Text(printable(head)), end="\n\n")
    for number, section in enumerate(each for each in sections if not each.is_empty()):
        if number:
            console.print()
        console.print(Text(section.title, style="bold"))
        for fact in section.facts:
            say(f"{fact.label}: {_show(fact.value, fact.kind)}")
        for label, sentence in section.sentences:
            say(printable(f"{label}: {sentence}" if label else sentence))
        for place, table in enumerate(table for table in section.tables if table.rows):
            if place or table.caption:
                console.print()
            if table.caption:
                say(f"{printable(table.caption)}:")
            console.print(Padding(_draw_table(table), _INDENT))
            if table.left_out:
                say(f"and {table.left_out:,} more, which --json lists")
        for command, remarks in section.commands:
            # Never wrap commands: users copy whole lines.
            console.print(f"\n  $ {printable(command)}", soft_wrap=True)
            for remark in remarks:
                console.print(Padding(Text(printable(remark)), (0, 0, 0, 4)))


def _draw_table(table: Table) -> RichTable:
    from rich import box  # noqa: PLC0415  (slow to import)
    from rich.table import Table as RichTable  # noqa: PLC0415

    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.columns:
        shown.add_column(column.label, justify="left" if column.kind is ValueKind.TEXT else "right", overflow="fold")
    has_parts = any(isinstance(value, tuple) for row in table.rows for value in row)
    for row in table.rows:
        cells = (_show(value, column.kind) for value, column in zip(row, table.columns, strict=True))
        shown.add_row(*cells, end_section=has_parts)
    return shown


def _show(value: Value, kind: ValueKind) -> str:
    return "\n".join(format_lines(value, kind))
