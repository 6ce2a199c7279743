# SPDX-License-Identifier: Apache-2.0
"""Write the report on a job as an HTML page: verdict, most loaded links (picture and list), advice, folded sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ibprof.profile.missing_data import format_names
from ibprof.text.quantities import count_of, format_seconds, name_call, name_mpi
from ibprof.verdict.verdict_data import WORTH_HAVING, Verdict, VerdictKind
from ibprof.verdict.verdict_rules import NOT_THERE
from ibprof_converter.analysis.loads_view import render_view
from ibprof_converter.analysis.output_files import FULL_PATHS, PathRedactor, shorten_command
from ibprof_converter.analysis.pipeline_options import AttributeFiles
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.causes.load_cause import LINKS, PROGRAM, REPAIR, LoadCause
from ibprof_converter.hotspots.coverage import Coverage, ask_question, describe_left_out
from ibprof_converter.hotspots.hot_links import Hotspot, LinkGroup, compare_times
from ibprof_converter.hotspots.link_report import LinkReport, has_fault
from ibprof_converter.reports.job_report import JobReport
from ibprof_converter.reports.job_sections import describe_report
from ibprof_converter.reports.link_sections import name_basis, name_loaders
from ibprof_converter.reports.network_picture import draw_network
from ibprof_converter.reports.report_page import (
    ReportPage,
    draw_amounts,
    draw_bar,
    draw_matrix,
    draw_timeline,
    escape,
    show_number,
    write_report_page,
)
from ibprof_converter.reports.report_sections import ValueKind

_NAMED = 3
"""The warning of missing bytes names at most this number of operations."""

_HYPHENATED = re.compile(r"(?<!\S)(?=\S{3,32}(?:\s|$))\S*-\S*")
"""Matches words with hyphens that are short enough for one line of the narrow page."""

_TO = " \N{RIGHTWARDS ARROW} "

_EVIDENCE = 1
"""The head of the page shows this number of sentences of evidence per cause."""

_ITEM = 57
_LINE = 19
_LETTERS = 66
"""Height of the list of links: `_ITEM` pixels per link, and `_LINE` pixels per line of at most `_LETTERS` letters."""

_HALVES = frozenset(
    {"job", "seen", "bytes", "operations", "regions", "sites", "sizes", "pairs-ranks", "pairs-hosts", "pairs-LIDs"}
)

_IN_HEAD = "busiest"
"""Name of a section that the page leaves out, because its head shows the same data as picture and list."""

_NO_PROBLEM = frozenset({VerdictKind.NOT_MPI, VerdictKind.WAITING, VerdictKind.ON_HOST})
"""Kinds of verdicts without a network problem; pages mark these verdicts as good."""

_ADVICE = (
    '<p class="cause">Which links carry them is unknown without the fabric: '
    '<a href="#ask">what to ask an administrator for</a>.</p>'
)


def write_job_page(
    path: Path, report: JobReport, attributes: AttributeFiles | None = None, paths: PathRedactor = FULL_PATHS
) -> None:
    """Write a report as a page, with the network view if there is a fabric.

    Args:
        attributes: the user's data on ranks and nodes, which the network view shows.
        paths: redactor that replaces paths by file names; by default, paths are shown.

    Raises:
        InputError, UsageError: as `render_view` does.
        OSError: the file cannot be written; the error names the file.
    """
    if paths.names and report.job:
        report = replace(report, job=replace(report.job, command=shorten_command(report.job.command)))
    view = render_view(report.loads, attributes=attributes, spell=paths.apply).html if report.loads else None
    page = page_of_report(report, view)
    write_report_page(path, replace(page, spell=paths.in_html().apply))


def page_of_report(report: JobReport, view: str | None) -> ReportPage:
    """Return a report as a page.

    Args:
        view: the network view as HTML; None without a fabric.
    """
    links, job = report.links, report.job
    title = job.command if job and job.command else report.coverage.origin
    subtitle = report.coverage.origin
    if job:
        subtitle = f"{name_mpi(job.mpi)}; {count_of(job.ranks, 'rank')} on {count_of(job.hosts, 'host')}"
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
        sections=[each for each in describe_report(report) if each.name != _IN_HEAD],
        head=_show_verdict(report)
        + (_answer(report, links) if links else _answer_without_fabric(report))
        + _show_remedies(report.verdict, links.diagnosis if links else None),
        figures=figures,
        view=view,
        halves=_HALVES,
        is_folded=True,
    )


def _show_verdict(report: JobReport) -> str:
    """Return HTML of the verdict, and of a list of missing data that would make the verdict surer."""
    verdict = report.verdict
    missing = f'<p class="soft">Missing: {escape("; ".join(verdict.missing))}.</p>' if verdict.missing else ""
    tone = (
        " fault"
        if _has_fault(report)
        else " good"
        if verdict.kind in _NO_PROBLEM and NOT_THERE not in verdict.missing
        else ""
    )
    losses = "".join(f'<p class="soft">{escape(each)}</p>' for each in describe_left_out(report.coverage))
    return (
        f'<section class="answer{tone}" id="verdict"><h2>{ask_question(report.coverage)}</h2>'
        f"<p>{_escape_whole(verdict.text)}</p>{missing}{_warn_of_missing(report.coverage)}{losses}</section>"
    )


def _has_fault(report: JobReport) -> bool:
    return has_fault(report.verdict, report.links.diagnosis if report.links else None)


def _answer(report: JobReport, links: LinkReport) -> str:
    """Return HTML of the most loaded links (picture and list)."""
    if not links.groups:
        return '<section id="answer"><h2>No link carries bytes of this job</h2></section>'
    rails = len(report.rails)
    listed = "".join(
        _list_group(group, number, links.groups[0].busiest, rails) for number, group in enumerate(links.groups)
    )
    picture = (
        draw_network(report.loads, links.groups, _has_fault(report), _list_height(links.groups)) if report.loads else ""
    )
    title = f"Most loaded links, by time at line rate{name_basis(links.load_basis)}"
    diagnosis = links.diagnosis
    loaded_by = diagnosis.loaded_by if diagnosis else None
    is_said = loaded_by is not None and loaded_by.text in report.verdict.text
    loaders = f"<p>The first one is loaded by {escape(loaded_by.text)}.</p>" if loaded_by and not is_said else ""
    return (
        f'<section id="answer"><h2>{title}</h2><div class="pair">{picture}'
        f'<div>{loaders}<ol class="busiest">{listed}</ol></div></div></section>'
    )


def _list_height(groups: Sequence[LinkGroup]) -> int:
    """Estimate the height, in pixels, of the list of the most loaded links, which is next to the picture."""
    letters = [sum(len(words) + 10 for _, _, words in name_loaders(group.busiest)) for group in groups]
    return sum(_ITEM + _LINE * -(-each // _LETTERS) for each in letters)


def _warn_of_missing(coverage: Coverage) -> str:
    """Return HTML that names operations with unrecorded bytes on links; empty if all bytes were recorded."""
    names = dict.fromkeys(each.operation for each in coverage.unaccounted if not each.on_host)
    if not names:
        return ""
    return (
        f'<p class="cause"><strong>Bytes of {escape(format_names(list(names), _NAMED))} are missing</strong>, '
        'so the loads of links are <a href="#unaccounted">lower bounds</a>.</p>'
    )


def _show_remedies(verdict: Verdict, diagnosis: Diagnosis | None) -> str:
    """Return HTML of the advice of the verdict, on causes of transfer time, and on causes of link loads, in this order.

    If the diagnosis has no causes, a sentence states that no remedy makes the most loaded link faster.
    """
    causes = diagnosis.causes if diagnosis else ()
    items = [
        *(f"<li><p><strong>{_escape_whole(_capitalise(each))}.</strong></p></li>" for each in verdict.advice),
        *(
            f"<li><p><strong>{_escape_whole(each.advice)}</strong></p>"
            f'<p class="soft">Cause: {_escape_whole(f"{each.name}: {each.evidence}")}</p></li>'
            for each in verdict.transfer_causes
        ),
        *map(_advise_on, range(len(causes)), causes),
    ]
    todo = f'<ol class="causes">{"".join(items)}</ol>' if items else ""
    if verdict.is_worth_it is False:
        least = f"{WORTH_HAVING:.0%} of the run"
        note = f"Changes for the most loaded link are not worth it: together they save less than {least}."
        todo = f"<p>{note}</p>{todo}"
    if diagnosis and not causes:
        hosts = show_number("diagnosis.max_host_link_s", diagnosis.max_host_link_s, ValueKind.SECONDS)
        between = show_number("diagnosis.max_switch_link_s", diagnosis.max_switch_link_s, ValueKind.SECONDS)
        todo += (
            f"<p>No remedy that was tried makes the most loaded link faster. Hosts' own links need {hosts}, "
            f"links between switches {between}{_count_tried(diagnosis)}.</p>"
        )
    return f'<section id="todo"><h2>What to do</h2>{todo}</section>' if todo else ""


def _advise_on(number: int, cause: LoadCause) -> str:
    path = f"diagnosis.causes.{number}"
    after = show_number(f"{path}.max_time_after_s", cause.max_time_after_s, ValueKind.SECONDS)
    before = show_number(f"{path}.max_time_s", cause.max_time_s, ValueKind.SECONDS)
    loaders = f" Loaded by {escape(cause.loaded_by.text)}." if number and cause.loaded_by else ""
    left = len(cause.evidence) - _EVIDENCE
    more = f' (<a href="#why">and {left} more</a>)' if left > 0 else ""
    change = "" if cause.kind == REPAIR else f'<pre tabindex="0">{_escape_whole(cause.change)}</pre>'
    if cause.kind in (PROGRAM, LINKS):  # `change` is a sentence, not a command
        is_new = cause.change.split(" (")[0].casefold() not in cause.advice.casefold()
        change = f"<p>{_escape_whole(_capitalise(cause.change))}.</p>" if is_new else ""
    evidence = "; ".join(cause.evidence[:_EVIDENCE])
    at = "" if any(each in evidence for each in cause.at[:1]) else ", ".join(cause.at[:2])
    return (
        f"<li><p><strong>{_escape_whole(_capitalise(cause.advice))}.</strong></p>{change}"
        f"<p>Predicted: the most loaded link then needs {after} in place of {before}.</p>"
        f'<p class="soft">Cause: {_escape_whole(f"{cause.cause} at {at}" if at else cause.cause)}: '
        f"{_escape_whole(evidence)}{more}.{loaders}</p></li>"
    )


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _escape_whole(text: str) -> str:
    """Return text as HTML; browsers do not break its lines at the hyphens of options and names."""
    return _HYPHENATED.sub(r'<span class="whole">\g<0></span>', escape(text))


def _count_tried(diagnosis: Diagnosis) -> str:
    """Return words that end a sentence with the number of tried changes; empty if no change was tried."""
    tried = sum(each.max_time_after_s is not None for each in diagnosis.tried)
    return f"; ibprof tried {count_of(tried, 'change')}, and none gains enough" if tried else ""


def _list_group(group: LinkGroup, number: int, first: Hotspot, rails: int) -> str:
    """Return HTML of a list item: the most loaded link direction of a group, with its time and senders."""
    spot, path = group.busiest, f"link_groups.{number}.busiest"
    where = f"{spot.sender}{_TO}{spot.receiver.node}"
    time = show_number(f"{path}.line_rate_s", spot.line_rate_s, ValueKind.SECONDS)
    amount = show_number(f"{path}.bytes", spot.bytes, ValueKind.BYTES)
    count = show_number(f"link_groups.{number}.directions", len(group.members), ValueKind.COUNT)
    alike = f"; {count} links alike" if len(group.members) > 1 else ""
    bar = draw_bar(compare_times(spot, first))
    loaders = [(key, share, escape(words.replace(" -> ", _TO))) for key, share, words in name_loaders(spot)]
    most = ", ".join(
        f"{words} ({show_number(f'{path}.contributors.{key}.0.share', share, ValueKind.SHARE)})"
        for key, share, words in loaders
        if share < 1
    )
    whole = ", ".join(words for _, share, words in loaders if share >= 1)
    who = "; ".join([*([f"most by {most}"] if most else ()), *([f"all by {whole}"] if whole else ())])
    rail = f"rail {spot.rail}: " if rails > 1 else ""
    return (
        f'<li><b class="badge">{number + 1}</b><div><strong>{escape(rail + where)}</strong>'
        f"<p>{time if spot.line_rate_s is not None else 'time unknown'}, {amount}{alike}</p>{bar}"
        + (f'<p class="soft">{_capitalise(who)}</p>' if who else "")
        + "</div></li>"
    )


def _answer_without_fabric(report: JobReport) -> str:
    run = report.run
    if report.lids:
        count = show_number("matrix_LIDs.pairs_in_all", report.lids.pairs_in_all, ValueKind.COUNT)
        return f'<section id="answer"><h2>{count} pairs of addresses</h2>{_ADVICE}</section>'
    if run is None or not run.bytes_total:
        return '<section id="answer"><h2>Nothing was sent</h2></section>'
    told = [f"{show_number('bytes_total', run.bytes_total, ValueKind.BYTES)} were sent from rank to rank"]
    if run.hosts:
        told.append(f"{show_number('bytes_on_host', run.bytes_on_host, ValueKind.BYTES)} of them within a host")
    if run.operations and run.operations[0].name != "*":
        most = run.operations[0]
        share = show_number("operations.0.share", most.share, ValueKind.SHARE)
        told.append(f"most by {escape(name_call(most.name))} ({share})")
    if run.regions and run.regions[0].name != "*":
        most = run.regions[0]
        told.append(
            f"and in region {escape(most.name)} ({show_number('regions.0.share', most.share, ValueKind.SHARE)})"
        )
    return f'<section id="answer"><h2>{", ".join(told)}</h2>{_ADVICE}</section>'
