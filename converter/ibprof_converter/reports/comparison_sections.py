# SPDX-License-Identifier: Apache-2.0
"""Describe a comparison of two runs as sections and as an HTML page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ibprof.text.quantities import format_seconds, name_call
from ibprof_converter.reports.compared_run import LINK, OPERATION, PAIR, REGION, SITE, SIZE
from ibprof_converter.reports.job_sections import describe_provenance
from ibprof_converter.reports.report_page import ReportPage, escape
from ibprof_converter.reports.report_sections import Column, Section, Table, Value, ValueKind, format_value
from ibprof_converter.reports.run_comparison import (
    METRICS,
    AmountChange,
    DimensionChange,
    RunComparison,
    ThresholdVerdict,
)

_LITTLE_CHANGE = 0.05
"""A change of time is described if change / larger time in MPI of both runs is at least this number."""

_TITLES = {
    OPERATION: "By operation",
    REGION: "By region",
    SITE: "By call site",
    SIZE: "By size of messages",
    PAIR: "By pair of ranks",
    LINK: "By link direction: bytes that the first node sends",
}
_CHANGE = "change"
"""Name of a section that the page leaves out, because its head shows the same text."""

_WORDS = {
    "elapsed": "from MPI_Init to MPI_Finalize",
    "bytes": "bytes from rank to rank",
    "messages": "messages",
    "bytes_on_host": "bytes within hosts",
    "bytes_routed": "bytes over links",
    "bytes_unrouted": "bytes not routed",
    "max_link": "most loaded link direction",
    "max_switch_link": "most loaded between switches",
    "mean_link": "mean of link directions in use",
    "links_used": "links used",
    "max_link_seconds": "longest time of a link direction at line rate",
}


def describe_comparison(comparison: RunComparison, top: int) -> list[Section]:
    """Return the sections of a comparison.

    Args:
        top: number of changes to list in each dimension.
    """
    sections = [
        _describe_jobs(comparison),
        Section(_CHANGE, "What changed", sentences=(("", comparison.change.text),)),
        Section(
            "compared",
            "What is compared",
            sentences=(
                ("A", _name_side(comparison.a, comparison.a_ranks)),
                ("B", _name_side(comparison.b, comparison.b_ranks)),
                *(("note", note) for note in comparison.notes),
            ),
        ),
        _describe_verdicts(comparison),
        _list_most_loaded(comparison),
        _describe_totals(comparison),
        *(_describe_part(number, part, comparison.by_share, top) for number, part in enumerate(comparison.parts)),
        describe_provenance(comparison.provenance),
    ]
    return [section for section in sections if not section.is_empty()]


def _describe_jobs(comparison: RunComparison) -> Section:
    sentences = [
        (side, str(verdict["text"]))
        for side, verdict in zip("AB", comparison.job_verdicts, strict=True)
        if verdict is not None and verdict.get("text")
    ]
    sentences += [(side, each) for side, lost in zip("AB", comparison.lost, strict=True) for each in lost]
    a, b = comparison.job_verdicts
    if a and b and (change := describe_time_change(a, b)):
        sentences.append(("B minus A", change))
    if a and b:
        sentences += [("transfer", each) for each in describe_transfer_changes(a, b)]
    return Section("verdict", "Is the network why it is slow?", sentences=tuple(sentences))


def describe_time_change(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """Return a sentence on the change of time in MPI; empty if the change is small or unknown.

    Args:
        a, b: verdicts of the two runs, as in a report's JSON.
    """
    parts = {"wait_s": "waiting", "transfer_s": "transfer", "unsplit_s": "not split"}
    if any(verdict.get(name) is None for verdict in (a, b) for name in ("mpi_s", *parts)):
        return ""
    change = b["mpi_s"] - a["mpi_s"]
    grown = {name: b[name] - a[name] for name in parts}
    if abs(change) < _LITTLE_CHANGE * max(a["mpi_s"], b["mpi_s"]) or not change:
        return ""
    more = "more" if change > 0 else "less"
    sign = 1 if change > 0 else -1
    most = max(grown, key=lambda name: sign * grown[name])
    text = f"MPI takes {format_seconds(abs(change))} {more}, {format_seconds(abs(grown[most]))} of it {parts[most]}"
    if most != "wait_s":
        return f"{text}."
    waits: dict[int, float] = defaultdict(float)
    for verdict, factor in ((a, -sign), (b, sign)):
        for late in verdict.get("late", ()):
            waits[late["rank"]] += factor * late["wait_s"]
    rank = max(waits, key=lambda each: waits[each], default=None)
    # These times are sums over ranks. Never compare these sums with `mpi_s`, which is a mean.
    one = rank is not None and waits[rank] >= sum(each for each in waits.values() if each > 0) / 2 > 0
    return f"{text} for rank {rank}." if one else f"{text}."


def describe_transfer_changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Return a line for each call site whose transfer time changed clearly; the largest change comes first.

    Args:
        a, b: verdicts as in a report's JSON. If any run has no sampled calls, the result is empty.
    """
    before, after = (
        {(each["operation"], each["site"], each["region"]): each["transfer_s"] for each in side["transfer_sites"]}
        if a.get("transfer_sites") and b.get("transfer_sites")
        else {}
        for side in (a, b)
    )
    least = _LITTLE_CHANGE * max(a.get("mpi_s") or 0.0, b.get("mpi_s") or 0.0)
    change = {place: after.get(place, 0.0) - before.get(place, 0.0) for place in {**before, **after}}
    large = sorted((place for place in change if abs(change[place]) >= least > 0), key=lambda each: -abs(change[each]))
    return [
        f"{operation}{f' at {site}' if site else ''}{f' in region {region}' if region else ''}: "
        f"{format_seconds(after.get((operation, site, region), 0.0))}, before "
        f"{format_seconds(before.get((operation, site, region), 0.0))}"
        for operation, site, region in large
    ]


def _list_most_loaded(comparison: RunComparison) -> Section:
    columns = (
        Column("name", "link direction"),
        Column("bytes", "bytes", ValueKind.BYTES),
        Column("seconds", "at line rate", ValueKind.SECONDS),
        Column("call", "most of it"),
    )
    tables = tuple(
        Table(
            f"change.most_loaded.{side}",
            columns,
            tuple((each.name, each.bytes, each.seconds, each.call) for each in most_loaded),
            caption=side.upper(),
        )
        for side, most_loaded in zip("ab", comparison.change.most_loaded, strict=True)
        if most_loaded
    )
    return Section("most-loaded", "Most loaded links", tables=tables)


def _name_side(name: str, ranks: int | None) -> str:
    return name if ranks is None else f"{name}, {ranks} ranks"


def _describe_verdicts(comparison: RunComparison) -> Section:
    sentences = tuple(("CROSSED" if each.holds else "kept", format_threshold(each)) for each in comparison.verdicts)
    return Section("thresholds", "Thresholds", sentences=sentences)


def format_threshold(verdict: ThresholdVerdict) -> str:
    """Return a threshold and the compared value as one line."""
    if verdict.value is None:
        return f"{verdict.condition}: A has none"
    if "%" in verdict.condition:
        signed = "+" in verdict.condition or "-" in verdict.condition.rpartition("]")[2]
        return f"{verdict.condition}: {format_value(verdict.value, ValueKind.CHANGE if signed else ValueKind.SHARE)}"
    return f"{verdict.condition}: {verdict.value:,.12g}"


def _describe_totals(comparison: RunComparison) -> Section:
    columns = (
        Column("", ""),
        Column("", "A", ValueKind.WRITTEN),
        Column("", "B", ValueKind.WRITTEN),
        Column("relative", "change", ValueKind.CHANGE),
    )
    rows = []
    for total in comparison.totals:
        kind = METRICS[total.name]
        written = (format_value(total.a, kind), format_value(total.b, kind))
        rows.append((_WORDS[total.name], *written, total.relative))
    title = "Totals" + (": bytes are compared by share" if comparison.by_share else "")
    return Section("totals", title, tables=(Table("totals", columns, tuple(rows)),))


def _describe_part(number: int, part: DimensionChange, by_share: bool, top: int) -> Section:
    kind = ValueKind.COUNT if part.dimension == SIZE else ValueKind.BYTES
    columns = [
        Column("name", part.dimension),
        Column("a", "A", kind),
        Column("b", "B", kind),
    ]
    shares = any(each.a_share is not None or each.b_share is not None for each in part.changes)
    if shares:
        columns += [
            Column("a_share", "share of A", ValueKind.SHARE),
            Column("b_share", "share of B", ValueKind.SHARE),
        ]
    if not by_share and kind is ValueKind.BYTES:
        columns.append(Column("change", "change", ValueKind.BYTES_CHANGE))
    columns.append(Column("relative", "of A's share" if by_share else "of A", ValueKind.CHANGE))
    rows = tuple(_row(part.dimension, each, columns) for each in part.changes[:top])
    left_out = max(len(part.changes) - top, 0)
    same = part.compared - len(part.changes)
    sentences = (
        [("", f"the {'messages' if part.dimension == SIZE else 'bytes'} did not change")] if not part.changes else []
    )
    if same and part.changes:
        sentences.append(("", f"{same:,} of {part.compared:,} rows are the same in both runs"))
    table = Table(f"parts.{number}.changes", tuple(columns), rows, left_out=left_out)
    return Section(
        part.dimension.replace(" ", "-"), _TITLES[part.dimension], sentences=tuple(sentences), tables=(table,)
    )


def name_part(dimension: str, name: str) -> str:
    """Return the printed name of an operation, region, ...; for an operation, the name of the MPI call."""
    return name_call(name) if dimension == OPERATION else name


def _row(dimension: str, change: AmountChange, columns: list[Column]) -> tuple[Value, ...]:
    values: list[Value] = [name_part(dimension, change.name), *(getattr(change, column.key) for column in columns[1:])]
    if change.relative is None:
        values[-1] = "new"
    return tuple(values)


def page_of_comparison(comparison: RunComparison, top: int) -> ReportPage:
    """Return a comparison as a page, whose head shows crossed thresholds and the largest changes."""
    crossed = [each for each in comparison.verdicts if each.holds]
    parts = [f'<p class="change">{escape(comparison.change.text)}</p>']
    if comparison.verdicts:
        head = f"{len(crossed)} of {len(comparison.verdicts)} thresholds crossed" if crossed else "No threshold crossed"
        parts.append(f"<h2>{head}</h2>")
        parts += [f'<p class="cause worse">{escape(format_threshold(each))}</p>' for each in crossed]
    else:
        parts.append("<h2>What changed most</h2>")
    for part in comparison.parts:
        if part.changes:
            parts.append(f'<p class="cause">{escape(_describe_change(part, comparison.by_share))}</p>')
    if not any(part.changes for part in comparison.parts):
        parts.append('<p class="cause">None of the compared amounts changed.</p>')
    tone = " fault" if crossed else " good"
    sides = _name_side(comparison.a, comparison.a_ranks), _name_side(comparison.b, comparison.b_ranks)
    return ReportPage(
        title="Two runs compared - ibprof diff",
        subtitle=f"A: {sides[0]}; B: {sides[1]}",
        sections=[each for each in describe_comparison(comparison, top) if each.name != _CHANGE],
        head=f'<section class="answer{tone}" id="answer">{"".join(parts)}</section>',
    )


def _describe_change(part: DimensionChange, by_share: bool) -> str:
    most = part.changes[0]
    name = name_part(part.dimension, most.name)
    kind = ValueKind.COUNT if part.dimension == SIZE else ValueKind.BYTES
    if by_share and most.a_share is not None and most.b_share is not None:
        amounts = (format_value(most.a_share, ValueKind.SHARE), format_value(most.b_share, ValueKind.SHARE))
    else:
        amounts = (format_value(most.a, kind), format_value(most.b, kind))
    relative = "new" if most.relative is None else format_value(most.relative, ValueKind.CHANGE)
    return f"{_TITLES[part.dimension].partition(':')[0]}: {name}, from {amounts[0]} to {amounts[1]} ({relative})"
