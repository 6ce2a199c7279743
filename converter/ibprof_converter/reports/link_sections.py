# SPDX-License-Identifier: Apache-2.0
"""Describe link loads as sections: routed bytes, and the most loaded link directions with senders and causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ibprof.text.quantities import format_seconds, name_call
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.causes.load_cause import REPAIR, TriedChange, list_some
from ibprof_converter.hotspots.hot_links import HOST_LINK, REST, Hotspot, LinkPort, NamedShare
from ibprof_converter.hotspots.link_report import LinkReport
from ibprof_converter.reports.job_report import JobReport
from ibprof_converter.reports.report_sections import Column, Fact, Section, Table, ValueKind, format_value, tabulate
from ibprof_converter.traffic.link_loads import ESTIMATE
from ibprof_converter.traffic.traffic_data import ALL

_SHOWN = 4
"""At most this number of sentences of evidence per cause are printed."""

_TRIED = 1
"""At most this number of rejected changes are printed for each reason."""

_NOT_TRIED = "not tried: "
"""First words of `why_not` for changes that were not tried."""

_SENDERS = (("job", "jobs"), ("region", "regions"), ("operation", "operations"), ("site", "sites"))


def name_basis(basis: str) -> str:
    """Return words that end a title if loads are estimates; empty for other loads."""
    return " (estimate, adaptive routing)" if basis == ESTIMATE else ""


def describe_bytes(report: JobReport, links: LinkReport) -> Section:
    """Return the section on bytes over links, within hosts, and without a route."""
    heat = links.heat
    facts = [Fact("links_used", f"links used, of {heat.links:,}", heat.links_used, ValueKind.COUNT)]
    if heat.links_used:
        most = [number for number, spot in enumerate(links.hotspots) if spot.bytes == heat.max_link]
        ratio = f"hotspots.{most[0]}.ratio_to_mean" if most else ""
        facts += [
            Fact(
                "max_link", f"most loaded link direction{name_basis(links.load_basis)}", heat.max_link, ValueKind.BYTES
            ),
            Fact("max_switch_link", "most loaded between switches", heat.max_switch_link, ValueKind.BYTES),
            Fact("mean_link", "mean of link directions in use", heat.mean_link, ValueKind.BYTES),
            Fact(ratio, "max/mean", heat.max_link / heat.mean_link, ValueKind.RATIO),
        ]
    table = tabulate(
        "bytes_by_fate",
        (
            Column("fate", ""),
            Column("bytes", "bytes", ValueKind.EXACT),
            Column("bytes", "", ValueKind.BYTES),
            Column("share", "share", ValueKind.SHARE),
        ),
        report.fates,
    )
    return Section("bytes", "Where the bytes went", facts=tuple(facts), tables=(table,))


def describe_hot_ends(links: LinkReport) -> tuple[Section, ...]:
    """Return the sections on the most loaded link directions and their senders."""
    rails = 1 + max((spot.rail for spot in links.hotspots), default=0)
    sections = [
        Section(
            "hot",
            f"Most loaded links, and who loads them{name_basis(links.load_basis)}",
            tables=(_table_of_ends("hotspots", links.hotspots, rails),),
        )
    ]
    if links.switch_hotspots and any(spot.kind == HOST_LINK for spot in links.hotspots):
        title = "Most loaded links between switches: those that another rank placement can relieve"
        table = _table_of_ends("switch_hotspots", links.switch_hotspots, rails)
        sections.append(Section("hot-switches", title, tables=(table,)))
    return tuple(sections)


def describe_groups(links: LinkReport) -> Section:
    """Return the section on groups of the most loaded link directions, numbered as in the page's picture."""
    columns = (
        Column("", "no."),
        Column("busiest.line_rate_s", "at line rate", ValueKind.SECONDS),
        Column("busiest.bytes", "bytes", ValueKind.BYTES),
        Column("", "from"),
        Column("", "to"),
        Column("directions", "alike", ValueKind.COUNT),
        Column("", "loaded by"),
    )
    rows = tuple(
        (
            str(number),
            group.busiest.line_rate_s,
            group.busiest.bytes,
            _write_side(group.busiest.sender),
            _write_side(group.busiest.receiver),
            len(group.members),
            tuple(f"{_percent(share):>6}  {who}" for _, share, who in name_loaders(group.busiest)),
        )
        for number, group in enumerate(links.groups, 1)
    )
    title = f"Most loaded links, alike ones together{name_basis(links.load_basis)}"
    said = "Links alike share a row here. The next table has the most loaded directions one by one, with more senders."
    return Section("busiest", title, sentences=(("", said),), tables=(Table("link_groups", columns, rows),))


def name_loaders(spot: Hotspot) -> Iterator[tuple[str, float, str]]:
    """Yield (JSON key, share, text) for the pair, operation, site and region that load a link direction most."""
    causes = spot.contributors
    if causes is None or not causes.rank_pairs:
        return
    pair = causes.rank_pairs[0]
    ranks = pair.source_rank is not None
    who = f"rank {pair.source_rank} -> {pair.destination_rank}" if ranks else f"{pair.source} -> {pair.destination}"
    yield "rank_pairs", pair.share, f"job {pair.job}, {who}" if pair.job else who
    for key, parts, words in (
        ("operations", causes.operations, "{}"),
        ("sites", causes.sites, "at {}"),
        ("regions", causes.regions, "in '{}'"),
    ):
        if parts and parts[0].name not in {ALL, REST}:
            name = name_call(parts[0].name) if key == "operations" else parts[0].name
            yield key, parts[0].share, words.format(name)


def _table_of_ends(key: str, spots: Sequence[Hotspot], rails: int) -> Table:
    columns = (
        *((Column("link.rail", "rail", ValueKind.COUNT),) if rails > 1 else ()),
        Column("", "from"),
        Column("", "to"),
        Column("bytes", "bytes", ValueKind.BYTES),
        Column("share", "share", ValueKind.SHARE),
        Column("ratio_to_mean", "x mean", ValueKind.RATIO),
        Column("line_rate_s", "at line rate", ValueKind.SECONDS),
        Column(
            "", "loaded by, on static routes" if any(spot.static_bytes is not None for spot in spots) else "loaded by"
        ),
    )
    rows = tuple(
        (
            *((spot.rail,) if rails > 1 else ()),
            _write_side(spot.sender),
            _write_side(spot.receiver),
            spot.bytes,
            spot.share,
            spot.ratio_to_mean,
            spot.line_rate_s,
            _list_senders(spot),
        )
        for spot in spots
    )
    return Table(key, columns, rows)


def _write_side(port: LinkPort) -> tuple[str, str]:
    return port.node, f"port {port.port}"


def _percent(share: float) -> str:
    return format_value(share, ValueKind.SHARE)


def _list_senders(spot: Hotspot) -> tuple[str, ...]:
    causes = spot.contributors
    if causes is None:
        return ("(counted at the port)" if spot.static_bytes is None else "(on no static route)",)
    lines = []
    for pair in causes.rank_pairs:
        job = f"job {pair.job}, " if pair.job else ""
        ranks = job if pair.source_rank is None else f"{job}rank {pair.source_rank} -> {pair.destination_rank}, "
        lines.append(f"{_percent(pair.share):>7}  {ranks}{pair.source} -> {pair.destination}")
    if causes.other_pairs.pairs:
        lines.append(f"{_percent(causes.other_pairs.share):>7}  {causes.other_pairs.pairs} more pair(s)")
    for label, name in _SENDERS:
        shares: Sequence[NamedShare] = getattr(causes, name)
        if shares and [share.name for share in shares] != ["*"]:
            write = name_call if name == "operations" else str
            lines.append(f"by {label}: {', '.join(f'{write(each.name)} {_percent(each.share)}' for each in shares)}")
    return tuple(lines)


def describe_diagnosis(diagnosis: Diagnosis) -> Section:
    """Return the section on the causes of the largest link time, and on remedies."""
    facts = (
        Fact("diagnosis.max_link", "most loaded link direction", diagnosis.busiest),
        Fact("diagnosis.max_time_s", "its time at line rate", diagnosis.max_time_s, ValueKind.SECONDS),
        Fact(
            "diagnosis.max_host_link_s",
            "lower bound by hosts' own links",
            diagnosis.max_host_link_s,
            ValueKind.SECONDS,
        ),
        Fact(
            "diagnosis.ideal_routing_s",
            "lower bound by ideal routing of this placement",
            diagnosis.ideal_routing_s,
            ValueKind.SECONDS,
        ),
        Fact(
            "diagnosis.max_switch_link_s",
            "most loaded link direction between switches",
            diagnosis.max_switch_link_s,
            ValueKind.SECONDS,
        ),
    )
    sentences: list[tuple[str, str]] = [] if diagnosis.causes else [("", "no network problem found")]
    if diagnosis.loaded_by:
        sentences.append(("loaded by", diagnosis.loaded_by.text))
    if diagnosis.alike and diagnosis.alike.count > 1:
        sentences.append(("as busy", diagnosis.alike.text))
    for number, cause in enumerate(diagnosis.causes, 1):
        sentences.append((f"{number}. {cause.cause}", ", ".join(cause.at[:3])))
        if number > 1 and cause.loaded_by:
            sentences.append(("loaded by", cause.loaded_by.text))
        sentences += [("because", sentence) for sentence in cause.evidence[:_SHOWN]]
        if (more := len(cause.evidence) - _SHOWN) > 0:
            sentences.append(("because", f"{more} more reasons, which --json lists"))
        sentences.append(("advice", cause.advice))
        after, before = format_seconds(cause.max_time_after_s), format_seconds(cause.max_time_s)
        sentences.append(("predicted", f"the most loaded link then needs {after} in place of {before}"))
        if cause.kind != REPAIR:
            sentences.append(("change", cause.change))
    sentences += _list_rejected(diagnosis.tried)
    title = f"Why: bounds, causes and what would help{name_basis(diagnosis.load_basis)}"
    return Section("why", title, facts=facts, sentences=tuple(sentences))


def _list_rejected(tried: Sequence[TriedChange]) -> Iterator[tuple[str, str]]:
    """Yield (label, line) for each reason to reject changes; the line names the changes and the reason."""
    reasons: dict[tuple[int, str], list[str]] = {}
    for each in tried:
        if each.why_not is not None:
            after = "" if each.max_time_after_s is None else f" ({format_seconds(each.max_time_after_s)})"
            reasons.setdefault((each.causes_before, each.why_not), []).append(f"{each.what}{after}")
    for (causes_before, why_not), changes in reasons.items():
        reason = why_not.removeprefix(_NOT_TRIED)
        label = "rejected" if reason == why_not else "not tried"
        after = f" after remedy {causes_before}" if causes_before else ""
        yield f"{label}{after}", f"{list_some(changes, _TRIED)}; reason: {reason}"


def format_verdict(diagnosis: Diagnosis) -> str:
    """Return the first cause and its evidence as text; without causes, "no network problem found"."""
    if not diagnosis.causes:
        return f"no network problem found{name_basis(diagnosis.load_basis)}"
    cause = diagnosis.causes[0]
    evidence = "; ".join(cause.evidence[:_SHOWN])
    return f"{cause.cause}{name_basis(diagnosis.load_basis)} at {', '.join(cause.at[:3])}: {evidence}"


def describe_rails(report: JobReport) -> Section:
    """Return the section on the load of each rail and level."""
    rails = tabulate(
        "rails",
        (
            Column("rail", "rail", ValueKind.COUNT),
            Column("name", "fabric"),
            Column("bytes_sent", "injected by hosts", ValueKind.BYTES),
            Column("share", "share", ValueKind.SHARE),
            Column("links_used", "links used", ValueKind.COUNT),
            Column("links", "of", ValueKind.COUNT),
            Column("max_link", "most loaded direction", ValueKind.BYTES),
        ),
        report.rails,
    )
    levels = tabulate(
        "levels",
        (
            Column("rail", "rail", ValueKind.COUNT),
            Column("lower", "level", ValueKind.COUNT),
            Column("upper", "to level", ValueKind.COUNT),
            Column("links_used", "links used", ValueKind.COUNT),
            Column("links", "of", ValueKind.COUNT),
            Column("bytes_up", "bytes up", ValueKind.BYTES),
            Column("bytes_down", "bytes down", ValueKind.BYTES),
            Column("max_link", "most loaded direction", ValueKind.BYTES),
            Column("max_link_seconds", "longest time at line rate", ValueKind.SECONDS),
        ),
        report.levels,
        caption="between levels; level 0: hosts",
    )
    estimated = report.links is not None and report.links.load_basis == ESTIMATE
    title = "By rail and level (static routes)" if estimated else "By rail and level"
    return Section("rails", title, tables=(rails, levels))
