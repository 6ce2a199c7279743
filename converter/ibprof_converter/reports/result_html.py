# SPDX-License-Identifier: Apache-2.0
"""Render results as HTML for notebooks: verdict, picture, tables, coverage."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Sequence

from ibprof.errors import MissingToolError, need_lab
from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.row_arrays import sum_by_group
from ibprof.text.notebook_html import escape, render_html, render_table
from ibprof.text.quantities import format_bytes, format_change, format_seconds, name_call
from ibprof.verdict.verdict_data import Verdict
from ibprof_converter.analysis.loads_outputs import draw_loads
from ibprof_converter.analysis.loads_view import NetworkView
from ibprof_converter.analysis.pipeline_results import FabricLoads, RoutedFabric
from ibprof_converter.checks.fabric_check import FabricHealth
from ibprof_converter.hotspots.coverage import Coverage
from ibprof_converter.hotspots.hot_links import Hotspot
from ibprof_converter.hotspots.link_report import diagnose_traffic
from ibprof_converter.placement.candidates import PlacementComparison
from ibprof_converter.reports.comparison_sections import format_threshold, name_part
from ibprof_converter.reports.job_report import JobReport, describe_additions
from ibprof_converter.reports.link_sections import format_verdict, name_loaders
from ibprof_converter.reports.run_comparison import RunComparison
from ibprof_converter.traffic.link_loads import STATIC
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic

_SHOWN = 10
_CHANGES = 5


@render_html.register
def render_fabric(fabric: RoutedFabric) -> str:
    """Return a fabric as HTML: its rails and their anomalies."""
    head = ("rail", "dump", "nodes", "links", "forwarding tables")
    rows = (
        (str(rail), subnet.fabric.name, f"{subnet.fabric.nodes:,}", f"{subnet.fabric.links:,}", subnet.tables.name)
        for rail, subnet in enumerate(fabric.subnets)
    )
    return join_parts([_head_of(fabric), render_table(head, rows), *render_sentences("note", fabric.warnings)])


@render_html.register
def render_rank_traffic(demand: RankTraffic) -> str:
    """Return traffic between ranks as HTML: bytes per operation, and bytes with an unknown sender or receiver."""
    sums = sum_by_group(demand.operation, len(demand.operations), demand.bytes)
    largest = sorted(zip(sums, demand.operations, strict=True), reverse=True)[:_SHOWN]
    rows = ((name_call(name), format_bytes(amount)) for amount, name in largest if amount)
    gone = (f"{format_bytes(amount)}: {reason}" for reason, amount in demand.unmapped.items())
    return join_parts([
        _head_of(demand),
        render_table(("operation", "bytes"), rows),
        *render_sentences("not mapped", gone),
        *render_sentences("not seen", describe_gaps(run) if (run := demand.whole.profile) else ()),
    ])  # fmt: skip


@render_html.register
def render_lid_traffic(traffic: Traffic) -> str:
    """Return traffic between LIDs as HTML."""
    gone = (f"{format_bytes(amount)}: {reason}" for reason, amount in traffic.unmapped.items())
    return join_parts(
        [_head_of(traffic), *render_sentences("not mapped", gone), *render_sentences("note", traffic.notes)]
    )


@render_html.register
def render_counters(counters: PortCounters) -> str:
    """Return port counters as HTML."""
    return join_parts([_head_of(counters), *render_sentences("note", counters.notes)])


@render_html.register
def render_loads(loads: FabricLoads) -> str:
    """Return loads as HTML: verdict, picture, most loaded link directions, missing data."""
    is_adaptive = loads.judging_bounds is not None
    diagnosis = (
        diagnose_traffic(loads.traffic, loads.fabric.subnets, is_adaptive, loads.demand) if loads.traffic else None
    )
    return _render_loads(loads, format_verdict(diagnosis) if diagnosis else "")


def _render_loads(loads: FabricLoads, verdict: str) -> str:
    bytes_of, heat = loads.loads, loads.heat()
    said = f"{format_bytes(bytes_of.bytes_routed)} over {heat.links_used:,} of {heat.links:,} links"
    unrouted = sum(bytes_of.bytes_unrouted.values())
    head = ("rail", "from", "to", "bytes", "x mean", "at line rate", "most by")
    return join_parts([
        *render_sentences("verdict", filter(None, [verdict])),
        render_head(loads.title),
        f"<p>{said}; {format_bytes(bytes_of.bytes_on_host)} within hosts; {format_bytes(unrouted)} not routed</p>",
        _picture(loads),
        render_table(head, map(_describe_direction, loads.most_loaded(_SHOWN))),
        *_gaps(loads.coverage, loads.warnings),
        *(f"<div>{escape(line)}</div>" for line in describe_additions(loads)),
    ])  # fmt: skip


@render_html.register
def render_verdict(verdict: Verdict) -> str:
    """Return a verdict as HTML: its sentences, and missing data that would make the verdict surer."""
    return join_parts([*render_sentences("verdict", [verdict.text]), *render_sentences("missing", verdict.missing)])


@render_html.register
def render_report(report: JobReport) -> str:
    """Return a report as HTML: verdict, picture, most loaded link directions or operations, missing data."""
    if report.loads:
        return _render_loads(report.loads, report.verdict.text)
    run = report.run
    head = ("operation", "bytes", "messages", "share")
    rows = (
        (name_call(each.name), format_bytes(each.bytes), f"{each.messages:,}", f"{each.share * 100:.1f}%")
        for each in (run.operations[:_SHOWN] if run else ())
    )
    unknown = "which links carry these bytes is unknown without the fabric"
    commands = (request.command for request in report.requests)
    return join_parts([
        *render_sentences("verdict", [report.verdict.text]),
        render_head(report.coverage.origin),
        render_table(head, rows),
        *render_sentences("note", [unknown]),
        *_gaps(report.coverage, report.coverage.notes),
        *render_sentences("ask an administrator for", commands),
    ])  # fmt: skip


@render_html.register
def render_comparison(comparison: RunComparison) -> str:
    """Return a comparison as HTML: thresholds, and the largest changes of each kind."""
    head = ("", "A", "B", "relative change")
    rows = (
        (
            f"{part.dimension} {name_part(part.dimension, change.name)}",
            f"{change.a:,.12g}",
            f"{change.b:,.12g}",
            "new" if change.relative is None else format_change(change.relative),
        )
        for part in comparison.parts
        for change in part.changes[:_CHANGES]
    )
    crossed = [format_threshold(verdict) for verdict in comparison.verdicts if verdict.holds]
    return join_parts([
        render_head(f"A: {comparison.a}; B: {comparison.b}"),
        *render_sentences("verdict", crossed or ["no threshold crossed"] if comparison.verdicts else []),
        render_table(head, rows),
        *render_sentences("note", comparison.notes),
    ])  # fmt: skip


@render_html.register
def render_placement(comparison: PlacementComparison) -> str:
    """Return the result of a placement search as HTML: times of each candidate, lower bounds, notes."""
    most = "most loaded link"
    head = ("placement", most, f"{most} between switches", f"{most} of a host", "not routed")
    rows = [
        (
            row.name,
            format_seconds(row.bottleneck_seconds),
            format_seconds(row.max_link_seconds),
            format_seconds(row.host_link_seconds),
            format_bytes(row.lost_bytes),
        )
        for row in comparison.rows
    ]
    if comparison.load_basis == STATIC:
        bounds = comparison.bounds
        times = (format_seconds(bounds.bottleneck_seconds), format_seconds(bounds.max_seconds))
        rows.append(("lower bound", *times, "", ""))
    slots = f"{comparison.slots} slots on {comparison.free_hosts} hosts"
    return join_parts([
        render_head(f"{len(comparison.hosts)} ranks, {slots} to choose from"),
        render_table(head, rows),
        *render_sentences("note", (*comparison.notes, comparison.limits)),
    ])  # fmt: skip


@render_html.register
def render_health(health: FabricHealth) -> str:
    """Return the check of a fabric as HTML: the verdict on routes, and each finding."""
    head = ("rail", "finding", "where", "meaning")
    rows = ((str(each.rail), each.kind.value.name, each.line, each.kind.value.text) for each in health.findings)
    return join_parts([
        _head_of(health),
        *render_sentences("verdict", ["routes can be trusted" if health.trusted else "routes cannot be trusted"]),
        render_table(head, rows),
        *render_sentences("note", (remark for rail in health.rails for remark in rail.remarks)),
    ])  # fmt: skip


@render_html.register
def render_network_view(view: NetworkView) -> str:
    """Return the network view as an HTML frame with a data URL, whose scripts cannot access the notebook."""
    data = base64.b64encode(view.html.encode()).decode("ascii")
    return (
        f'<iframe title="{escape(view.title)}" style="width:100%;height:640px;border:0" '
        f'src="data:text/html;charset=utf-8;base64,{data}"></iframe>'
    )


def _gaps(coverage: Coverage, notes: Iterable[str]) -> Iterator[str]:
    yield from render_sentences("not seen", coverage.not_seen)
    yield from render_sentences("modelled", coverage.modelled)
    yield from render_sentences("note", notes)


def _picture(loads: FabricLoads) -> str:
    try:
        need_lab("matplotlib")
    except MissingToolError as error:
        return f"<p>picture: {escape(str(error))}</p>"
    file = io.BytesIO()
    draw_loads(file, loads)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    return f'<img style="max-width:100%" alt="{escape(loads.title)}" src="data:image/png;base64,{data}">'


def _describe_direction(spot: Hotspot) -> Sequence[str]:
    _, share, who = next(name_loaders(spot), ("", 0.0, ""))
    return (
        str(spot.rail),
        str(spot.sender),
        str(spot.receiver),
        format_bytes(spot.bytes),
        f"{spot.ratio_to_mean:.2f}",
        "-" if spot.line_rate_s is None else format_seconds(spot.line_rate_s),
        f"{who} ({share * 100:.1f}%)" if who else "",
    )


def join_parts(parts: Iterable[str]) -> str:
    """Join parts of a result into one block of HTML."""
    return "<div>" + "".join(parts) + "</div>"


def _head_of(result: object) -> str:
    return render_head(repr(result).strip("<>"))


def render_head(text: str) -> str:
    """Return HTML of the title of a result."""
    return f"<strong>{escape(text)}</strong>"


def render_sentences(label: str, sentences: Iterable[str]) -> Iterator[str]:
    """Yield each sentence as an HTML paragraph that begins with `label`."""
    for sentence in sentences:
        yield f"<p>{label}: {escape(sentence)}</p>"
