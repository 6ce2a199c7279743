# SPDX-License-Identifier: Apache-2.0
"""The report on a job as a page: what is hot and why before all else, the network view within."""

from __future__ import annotations

from pathlib import Path

from ibprof.profile.gaps import format_names
from ibprof.text.mpi_names import name_mpi
from ibprof.text.quantities import format_seconds
from ibprof.verdict.verdict_data import Verdict, VerdictKind
from ibprof_converter.analysis.loads_view import AttributeFiles, render_view
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.coverage import Coverage
from ibprof_converter.hotspots.hot_links import Hotspot
from ibprof_converter.hotspots.link_report import LinkReport
from ibprof_converter.reports.job_report import JobReport
from ibprof_converter.reports.job_sections import describe_report
from ibprof_converter.reports.link_sections import ends_of, name_basis
from ibprof_converter.reports.report_figures import draw_amounts, draw_bar, draw_matrix, draw_timeline
from ibprof_converter.reports.report_page import ReportPage, escape, show_number, write_report_page
from ibprof_converter.reports.report_sections import ValueKind

_FIRST = 3
"""Link directions that are to be seen at first sight."""

_NAMED = 3
"""Operations of which bytes are missing that are to be seen at first sight."""

_EVIDENCE = 4
"""Sentences of evidence that are shown for each cause."""

_HALVES = frozenset(
    {"job", "seen", "bytes", "operations", "regions", "sites", "sizes", "pairs-ranks", "pairs-hosts", "pairs-LIDs"}
)


_NO_PROBLEM = frozenset({VerdictKind.NOT_MPI, VerdictKind.WAITING, VerdictKind.ON_HOST})
"""Kinds of verdict for which the network needs no change."""

_LINKS = frozenset({VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS})
"""Kinds of verdict for which a link decides."""

_ADVICE = (
    '<p class="cause">Which links carry them is unknown without the fabric: '
    '<a href="#ask">what to ask an administrator for</a>.</p>'
)


def write_job_page(path: Path, report: JobReport, attributes: AttributeFiles | None = None) -> None:
    """Write a report as a page, with the network view if there is a fabric.

    Args:
        path: the file.
        report: what to show.
        attributes: the user's data on ranks and nodes, for the view.

    Raises:
        InputError, UsageError: as `render_view` does.
        OSError: the file cannot be written; it names it.
    """
    view = render_view(report.loads, attributes=attributes).html if report.loads else None
    write_report_page(path, page_of_report(report, view))


def page_of_report(report: JobReport, view: str | None) -> ReportPage:
    """Lay a report out.

    Args:
        report: what to show.
        view: the network view as HTML; None without a fabric.
    """
    links, job = report.links, report.job
    title = job.command if job and job.command else report.coverage.origin
    subtitle = report.coverage.origin
    if job:
        subtitle = f"{name_mpi(job.mpi)}; {job.ranks:,} ranks on {job.hosts:,} host(s)"
        if job.elapsed_s is not None:
            subtitle += f"; {format_seconds(job.elapsed_s)} from MPI_Init to MPI_Finalize"
        subtitle += f"; {report.coverage.origin}"
    figures = {
        "pairs-ranks": draw_matrix(report.ranks) if report.ranks else "",
        "pairs-LIDs": draw_matrix(report.lids) if report.lids else "",
        "pairs-hosts": draw_matrix(report.hosts) if report.hosts else "",
        "balance": "".join(
            draw_amounts(each.bytes, each.of, each.direction) for each in report.balance if each.of != "rails"
        ),
        "time": draw_timeline(report.timeline),
    }
    return ReportPage(
        title=f"{title} - ibprof report",
        subtitle=subtitle,
        sections=describe_report(report),
        head=_say_verdict(report.verdict)
        + (_answer(links, report.coverage) if links else _answer_without_fabric(report)),
        figures=figures,
        view=view,
        halves=_HALVES,
    )


def _say_verdict(verdict: Verdict) -> str:
    """Return the verdict, which comes before all else, and what would make it surer."""
    missing = f'<p class="soft">Missing: {escape("; ".join(verdict.missing))}.</p>' if verdict.missing else ""
    has_fault = verdict.kind in _LINKS and verdict.cause is not None
    tone = ' class="answer"' if has_fault else ' class="answer good"' if verdict.kind in _NO_PROBLEM else ""
    return (
        f'<section{tone} id="verdict"><h2>Is the network why this job is slow?</h2>'
        f"<p>{escape(verdict.text)}</p>{missing}</section>"
    )


def _answer(links: LinkReport, coverage: Coverage) -> str:
    """Return the three most loaded link directions, their cause, and what to do."""
    warning = _warn_of_missing(coverage)
    if not links.heat.links_used:
        tone = "" if warning else " good"
        return f'<section class="answer{tone}"><h2>No link carries anything of this job</h2>{warning}</section>'
    diagnosis = links.diagnosis
    listed = "".join(_hot_end(spot, number, links) for number, spot in enumerate(links.hotspots[:_FIRST]))
    tone = "" if diagnosis is None or diagnosis.causes or warning else " good"
    title = f"Most loaded links{name_basis(links.load_basis)}"
    return (
        f'<section class="answer{tone}" id="answer"><h2>{title}</h2><ol>{listed}</ol>'
        f"{_explain(diagnosis) if diagnosis else ''}{warning}</section>"
    )


def _warn_of_missing(coverage: Coverage) -> str:
    """Return a warning where links carry bytes that no source saw; empty otherwise."""
    names = dict.fromkeys(each.operation for each in coverage.unaccounted if not each.on_host)
    if not names:
        return ""
    return (
        f'<p class="cause"><strong>Bytes of {escape(format_names(list(names), _NAMED))} are missing</strong>, '
        'so links carry more: <a href="#unaccounted">how many at least</a>.</p>'
    )


def _explain(diagnosis: Diagnosis) -> str:
    """Return the causes with what would help, or that nothing would."""
    if not diagnosis.causes:
        hosts = show_number("diagnosis.max_host_link_s", diagnosis.max_host_link_s, ValueKind.SECONDS)
        between = show_number("diagnosis.max_switch_link_s", diagnosis.max_switch_link_s, ValueKind.SECONDS)
        return (
            f'<p class="cause"><strong>No network problem found:</strong> hosts\' own links need {hosts}, '
            f"links between switches {between}{_count_tried(diagnosis)}.</p>"
        )
    parts = []
    for number, cause in enumerate(diagnosis.causes):
        path = f"diagnosis.causes.{number}"
        after = show_number(f"{path}.max_time_after_s", cause.max_time_after_s, ValueKind.SECONDS)
        before = show_number(f"{path}.max_time_s", cause.max_time_s, ValueKind.SECONDS)
        parts.append(
            f'<p class="cause"><strong>Cause: {escape(cause.cause)}</strong> at {escape(", ".join(cause.at[:2]))}: '
            f"{escape('; '.join(cause.evidence[:_EVIDENCE]))}.</p>"
            f'<p class="cause"><strong>What would help:</strong> {escape(cause.advice)}. Predicted: the busiest '
            f"link then needs {after} in place of {before}.</p>"
        )
    return "".join(parts)


def _count_tried(diagnosis: Diagnosis) -> str:
    """Return how many changes were tried in vain."""
    tried = sum(each.max_time_after_s is not None for each in diagnosis.tried)
    return f"; {tried} changes were tried, and none gains enough" if tried else ""


def _hot_end(spot: Hotspot, number: int, links: LinkReport) -> str:
    source, destination = ends_of(spot)
    path = f"hotspots.{number}"
    where = f"{source.name or source.guid} port {source.port} \u2192 {destination.name or destination.guid}"
    told = [
        f"{show_number(f'{path}.bytes', spot.bytes, ValueKind.BYTES)}, "
        f"{show_number(f'{path}.share', spot.share, ValueKind.SHARE)} of all bytes on links, "
        f"{show_number(f'{path}.ratio_to_mean', spot.ratio_to_mean, ValueKind.RATIO)} times the mean"
    ]
    if spot.least_time_s is not None:
        told.append(f"{show_number(f'{path}.least_time_s', spot.least_time_s, ValueKind.SECONDS)} at line rate")
    if spot.contributors:
        told.append(_senders(spot, f"{path}.contributors"))
    bar = draw_bar(spot.bytes / links.heat.max_link)
    return f"<li><strong>{escape(where)}</strong>{bar}{'; '.join(told)}</li>"


def _senders(spot: Hotspot, path: str) -> str:
    causes = spot.contributors
    if causes is None or not causes.rank_pairs:
        return ""
    pair = causes.rank_pairs[0]
    who = f"{pair.source} \u2192 {pair.destination}"
    if pair.source_rank is not None:
        who = f"rank {pair.source_rank} \u2192 {pair.destination_rank}"
    told = [f"most by {escape(who)} ({show_number(f'{path}.rank_pairs.0.share', pair.share, ValueKind.SHARE)})"]
    for label, shares in (("region", causes.regions), ("operation", causes.operations), ("site", causes.sites)):
        if shares and shares[0].name != "*":
            share = show_number(f"{path}.{label}s.0.share", shares[0].share, ValueKind.SHARE)
            told.append(f"{label} {escape(shares[0].name)} ({share})")
    return ", ".join(told)


def _answer_without_fabric(report: JobReport) -> str:
    warning = _warn_of_missing(report.coverage)
    run = report.run
    if report.lids:
        count = show_number("matrix_LIDs.pairs_in_all", report.lids.pairs_in_all, ValueKind.COUNT)
        return f'<section class="answer" id="answer"><h2>{count} pairs of addresses</h2>{_ADVICE}</section>'
    if run is None or not run.bytes_total:
        tone = "" if warning else " good"
        return f'<section class="answer{tone}"><h2>Nothing was sent</h2>{warning}</section>'
    told = [f"{show_number('bytes_total', run.bytes_total, ValueKind.BYTES)} were sent from rank to rank"]
    if run.hosts:
        told.append(f"{show_number('bytes_on_host', run.bytes_on_host, ValueKind.BYTES)} of them within a host")
    if run.operations and run.operations[0].name != "*":
        most = run.operations[0]
        told.append(f"most by {escape(most.name)} ({show_number('operations.0.share', most.share, ValueKind.SHARE)})")
    if run.regions and run.regions[0].name != "*":
        most = run.regions[0]
        told.append(
            f"and in region {escape(most.name)} ({show_number('regions.0.share', most.share, ValueKind.SHARE)})"
        )
    return f'<section class="answer" id="answer"><h2>{", ".join(told)}</h2>{_ADVICE}{warning}</section>'
