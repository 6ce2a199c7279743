# SPDX-License-Identifier: Apache-2.0
"""Describe a report on a job as sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from ibprof.profile.missing_data import format_names, format_ranks
from ibprof.profile.port_sums import PortSum
from ibprof.profile.profile_data import Source
from ibprof.profile.unaccounted import Unaccounted
from ibprof.text.quantities import count_of, format_seconds, name_call, name_mpi
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.hotspots.coverage import Coverage, DumpRequest
from ibprof_converter.hotspots.run_sums import HostSum, NamedSum, RunSummary
from ibprof_converter.reports.job_report import JobReport
from ibprof_converter.reports.link_sections import (
    describe_bytes,
    describe_diagnosis,
    describe_groups,
    describe_hot_ends,
    describe_rails,
)
from ibprof_converter.reports.provenance import Provenance
from ibprof_converter.reports.recorded_job import RecordedJob
from ibprof_converter.reports.report_sections import Column, Fact, Section, Table, ValueKind, limit_table, tabulate
from ibprof_converter.reports.traffic_sums import PairMatrix
from ibprof_converter.routing.route_choice import are_modelled, describe_routes
from ibprof_converter.traffic.adapter_policies import describe_nic

_ALIKE = 5
"""Index of the column "links alike" in the table of the section "busiest"."""


def describe_report(report: JobReport) -> list[Section]:
    """Return all sections of a report, in reading order."""
    sections = [_warn_of_routes(report.loads)] if report.loads and report.loads.traffic else []
    sections += [_describe_job(report.job)] if report.job else []
    sections.append(describe_coverage(report.coverage))
    sections.append(list_unaccounted(report.coverage.unaccounted))
    if report.links:
        sections.append(describe_groups(report.links))
        sections.append(describe_bytes(report, report.links))
        sections += describe_hot_ends(report.links)
        if report.links.diagnosis:
            sections.append(describe_diagnosis(report.links.diagnosis))
        sections.append(describe_rails(report))
    if report.run:
        sections += _describe_run(report, report.run, with_hosts=report.links is None)
    matrices = (report.ranks, report.hosts, report.lids)
    sections += [_describe_pairs(matrix) for matrix in matrices if matrix and matrix.pairs]
    sections += [_describe_balance(report), _describe_timeline(report)]
    if report.addition_lines:
        head, *rest = report.addition_lines
        sections.append(Section("compared", head, sentences=tuple(("", line.strip()) for line in rest if line.strip())))
    if report.requests:
        has_places = report.coverage.world_size is not None or report.lids is not None
        sections.append(_describe_requests(report.requests, has_places))
    elif report.links is None:
        said = "all bytes stay within hosts: no link carries bytes, so no data of the fabric are needed"
        sections.append(Section("ask", "For the links", sentences=(("", said),)))
    sections.append(describe_provenance(report.provenance))
    return [section for section in sections if not section.is_empty()]


def list_once(sections: Sequence[Section]) -> list[Section]:
    """Remove links and pairs that another section shows in more detail."""
    by_name = {section.name: section for section in sections}
    hot, ranks = by_name.get("hot"), by_name.get("pairs-ranks")
    kept = []
    for section in sections:
        if section.name == "busiest" and hot and all(row[_ALIKE] == 1 for row in section.tables[0].rows):
            continue
        if section.name == "hot-switches" and hot:
            table = section.tables[0]
            rows = tuple(row for row in table.rows if row not in hot.tables[0].rows)
            title = f"{section.title}; others than above"
            kept.append(replace(section, title=title, tables=(replace(table, rows=rows),)))
        elif not (section.name == "pairs-hosts" and ranks and _amounts_of(section) == _amounts_of(ranks)):
            kept.append(section)
    return kept


def _amounts_of(pairs: Section) -> tuple[object, ...]:
    """Return the number of pairs, and the bytes of each listed pair, of a section on hosts or ranks.

    If both sections have equal amounts, each host is assumed to have one rank.
    """
    return pairs.facts[0].value, *(row[2:] for row in pairs.tables[0].rows)


def _warn_of_routes(loads: FabricLoads) -> Section:
    """Return a section that warns of modelled routes; empty if the routes follow the subnet's forwarding tables."""
    subnets = loads.fabric.subnets
    title = "Modelled routes" if are_modelled(subnets) else "Routes by OpenSM on this machine"
    routes = describe_routes(subnets)
    return Section("routes", title, sentences=(("", routes),) if routes else ())


def _describe_job(job: RecordedJob) -> Section:
    started = datetime.fromtimestamp(job.started_ns // 10**9, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    facts = [
        Fact("job.command", "command", job.command),
        Fact("job.mpi", "MPI", name_mpi(job.mpi)),
        Fact("job.job", "job", job.job),
        Fact("job.scheduler", "batch system", job.scheduler.text if job.scheduler else ""),
        Fact("", "started", started if job.started_ns else ""),
        Fact("job.elapsed_s", "from MPI_Init to MPI_Finalize", job.elapsed_s, ValueKind.SECONDS),
        Fact("job.ranks", "ranks", job.ranks, ValueKind.COUNT),
        Fact("job.ranks_recorded", "ranks recorded", job.ranks_recorded, ValueKind.COUNT),
        Fact("job.hosts", "hosts", job.hosts, ValueKind.COUNT),
        Fact("", "bytes measured in", ", ".join(Source[name.upper()].layer for name in job.sources)),
    ]
    return Section("job", "What ran", facts=tuple(fact for fact in facts if fact.value not in ("", None)))


def _describe_run(report: JobReport, run: RunSummary, with_hosts: bool) -> Iterable[Section]:
    for key, title, sums in (
        ("operations", "Operations", tuple(replace(each, name=name_call(each.name)) for each in run.operations)),
        ("regions", "Regions", run.regions),
        ("sites", "Call sites", run.sites),
    ):
        tables = [] if [each.name for each in sums] == ["*"] else [_table_of_sums(key, sums)]
        if key == "regions" and report.regions:
            tables.append(_table_of_times(report))
        yield Section(key, title, tables=tuple(tables))
    if report.sizes:
        yield _describe_sizes(report)
    if with_hosts and run.hosts:
        facts = (
            Fact("bytes_on_host", "within hosts", run.bytes_on_host, ValueKind.BYTES),
            Fact("bytes_total", "total", run.bytes_total, ValueKind.BYTES),
        )
        yield Section("hosts", "Hosts", facts=facts, tables=(_table_of_hosts(run.hosts),))
    if run.ports:
        posted = any(port.bytes_sent or port.bytes_received for port in run.ports)
        seen = "bytes posted to queue pairs" if posted else "no work requests were recorded"
        title = f"Ports: {seen}; port counters of all traffic"
        yield Section("ports", title, tables=(_table_of_ports(run.ports),))


def _table_of_sums(key: str, sums: Sequence[NamedSum]) -> Table:
    columns = (
        Column("name", "name"),
        Column("bytes", "bytes", ValueKind.EXACT),
        Column("bytes", "", ValueKind.BYTES),
        Column("messages", "messages", ValueKind.COUNT),
        Column("share", "share", ValueKind.SHARE),
    )
    return tabulate(key, columns, sums)


def _table_of_times(report: JobReport) -> Table:
    waiting = "waiting (estimate)" if report.verdict.transfer_s is None else "waiting"
    optional = (
        Column("mpi_s", "in MPI, mean", ValueKind.SECONDS),
        Column("wait_s", waiting, ValueKind.SECONDS),
        Column("line_rate_s", "most loaded link at line rate", ValueKind.SECONDS),
    )
    columns = (
        Column("name", "name"),
        Column("visits", "visits", ValueKind.COUNT),
        Column("longest_s", "longest of a rank", ValueKind.SECONDS),
        Column("mean_s", "mean of its ranks", ValueKind.SECONDS),
        *(column for column in optional if any(getattr(each, column.key) is not None for each in report.regions)),
    )
    return tabulate("region_times", columns, report.regions, caption="time in regions")


def _describe_sizes(report: JobReport) -> Section:
    columns = (
        Column("name", "size of a message"),
        Column("messages", "messages", ValueKind.COUNT),
        Column("share", "share", ValueKind.SHARE),
        Column("least_bytes", "bytes, at least", ValueKind.BYTES),
        Column("most_bytes", "at most", ValueKind.BYTES),
    )
    return Section("sizes", "Sizes of messages", tables=(tabulate("message_sizes", columns, report.sizes),))


def _table_of_hosts(hosts: Sequence[HostSum]) -> Table:
    columns = (
        Column("name", "host"),
        Column("", "ranks"),
        Column("bytes_on_host", "within", ValueKind.BYTES),
        Column("bytes_sent", "to others", ValueKind.BYTES),
        Column("bytes_received", "from others", ValueKind.BYTES),
        Column("", "ports"),
    )
    rows = []
    for host in hosts:
        ports = ", ".join(
            f"{port.device}:{port.port} {port.link_layer}" + (f" LID {port.lid}" if port.lid else "")
            for port in host.ports
        )
        amounts = (host.bytes_on_host, host.bytes_sent, host.bytes_received)
        rows.append((host.name, format_ranks(host.ranks), *amounts, ports or "no InfiniBand or RoCE port"))
    return limit_table("hosts", columns, rows)


def _table_of_ports(ports: Sequence[PortSum]) -> Table:
    columns = (
        Column("host", "host"),
        Column("", "port"),
        Column("bytes_sent", "sent", ValueKind.EXACT),
        Column("bytes_sent", "", ValueKind.BYTES),
        Column("", "share", ValueKind.SHARE),
        Column("bytes_received", "received", ValueKind.BYTES),
        Column("hardware_sent", "port counter sent", ValueKind.BYTES),
        Column("hardware_received", "port counter received", ValueKind.BYTES),
    )
    totals: dict[str, int] = {}
    for port in ports:
        totals[port.host] = totals.get(port.host, 0) + port.bytes_sent
    rows = [
        (
            *(port.host, f"{port.device}/{port.port}", port.bytes_sent, port.bytes_sent),
            port.bytes_sent / totals[port.host] if totals[port.host] else 0.0,
            *(port.bytes_received, port.hardware_sent, port.hardware_received),
        )
        for port in ports
    ]
    return limit_table("ports", columns, rows)


def _describe_pairs(matrix: PairMatrix) -> Section:
    key = f"matrix_{matrix.by}s"
    columns = (
        Column("source", f"from {matrix.by}"),
        Column("destination", "to"),
        Column("bytes", "bytes", ValueKind.BYTES),
        Column("share", "share", ValueKind.SHARE),
    )
    facts = (Fact(f"{key}.pairs_in_all", "pairs that send", matrix.pairs_in_all, ValueKind.COUNT),)
    title = f"Who sends to whom by {matrix.by}"
    caption = "largest" if matrix.pairs_in_all > len(matrix.pairs) else ""
    table = tabulate(f"{key}.pairs", columns, matrix.pairs, caption)
    return Section(f"pairs-{matrix.by}s", title, facts=facts, tables=(table,))


def _describe_balance(report: JobReport) -> Section:
    columns = (
        Column("of", "over"),
        Column("direction", ""),
        Column("count", "", ValueKind.COUNT),
        Column("max_bytes", "max", ValueKind.BYTES),
        Column("mean_bytes", "mean", ValueKind.BYTES),
        Column("min_bytes", "min", ValueKind.BYTES),
        Column("ratio", "max/mean", ValueKind.RATIO),
        Column("greatest", "most by"),
    )
    return Section(
        "balance", "Balance: bytes sent, and received", tables=(tabulate("balance", columns, report.balance),)
    )


def _describe_timeline(report: JobReport) -> Section:
    if not report.timeline:
        return Section("time", "Over time")
    most = max(range(len(report.timeline)), key=lambda number: report.timeline[number].bytes)
    busiest = report.timeline[most]
    facts: tuple[Fact, ...] = (
        Fact(
            f"timeline.{len(report.timeline) - 1}.end_s",
            "from first to last byte",
            report.timeline[-1].end_s,
            ValueKind.SECONDS,
        ),
        Fact(f"timeline.{most}.bytes", "sent in the busiest interval", busiest.bytes, ValueKind.BYTES),
        Fact(f"timeline.{most}.begin_s", "which begins at", busiest.begin_s, ValueKind.SECONDS),
    )
    waits = [each.wait_s or 0.0 for each in report.timeline]
    if any(waits):
        longest = max(range(len(waits)), key=waits.__getitem__)
        label = f"most waiting in an interval, which begins at {format_seconds(report.timeline[longest].begin_s)}"
        facts += (Fact(f"timeline.{longest}.wait_s", label, waits[longest], ValueKind.SECONDS),)
    sentence = ("", "assumption: the bytes of a recorded interval are spread evenly over it")
    return Section("time", "Over time", facts=facts, sentences=(sentence,))


def _describe_requests(requests: Sequence[DumpRequest], has_places: bool) -> Section:
    commands: list[tuple[str, tuple[str, ...]]] = [
        (each.command, (f"writes {', '.join(each.files)}", each.remark)) for each in requests
    ]
    placement = "" if has_places else " --placement HOW"
    commands.append((f"ibprof-report ibdiagnet.lst TRAFFIC{placement}", ("then run this where the profile is",)))
    return Section(
        "ask",
        "For the links: what to ask an administrator for",
        sentences=(("", "run these commands once on each subnet (rail), soon after the job, because routes change"),),
        commands=tuple(commands),
    )


def describe_provenance(provenance: Provenance) -> Section:
    """Return a section with the command, versions and inputs that reproduce a report."""
    columns = (
        Column("path", "input"),
        Column("bytes", "bytes", ValueKind.EXACT),
        Column("sha256", "SHA-256"),
    )
    return Section(
        "reproduce",
        "Reproduce",
        sentences=(("made by", ", ".join(" ".join(pair) for pair in provenance.versions)),),
        tables=(tabulate("reproduce.inputs", columns, provenance.inputs),),
        commands=((provenance.command, ()),),
    )


def describe_coverage(coverage: Coverage) -> Section:
    """Return the section on coverage: measured, modelled and missing data."""
    sentences = [("traffic", coverage.origin)]
    if coverage.world_size is not None:
        hosts = f"on {count_of(len(coverage.hosts), 'host')}: {format_names(coverage.hosts, 8)}"
        sentences.append(("ranks recorded", f"{coverage.ranks_recorded} of {coverage.world_size}, {hosts}"))
    if coverage.rails is not None:
        sentences.append(("rails", coverage.rails))
    if coverage.interfaces is not None:
        sentences.append(("interfaces", coverage.interfaces.text))
    if coverage.nic is not None:
        sentences.append(("nic", describe_nic(coverage.nic)))
    if coverage.routes is not None:
        sentences.append(("routes", coverage.routes))
    for label, told in (
        ("not seen", coverage.not_seen),
        ("modelled", coverage.modelled),
        ("note", coverage.notes),
    ):
        sentences += [(label, sentence) for sentence in told]
    if coverage.world_size is not None and not coverage.not_seen:
        sentences.append(("not seen", "no known gap"))
    return Section("seen", "Coverage", sentences=tuple(sentences))


def list_unaccounted(unaccounted: Sequence[Unaccounted]) -> Section:
    """Return the section on operations whose recorded bytes are fewer than their calls must send."""
    columns = (
        Column("operation", "operation"),
        Column("region", "region"),
        Column("calls", "calls", ValueKind.COUNT),
        Column("least_bytes", "must send at least", ValueKind.BYTES),
        Column("seen_bytes", "seen", ValueKind.BYTES),
        Column("", "the rest"),
    )
    rows = [
        (
            *(name_call(each.operation), each.region, each.calls, each.least_bytes, each.seen_bytes),
            "stayed on hosts" if each.on_host else "by a path that ibprof does not see",
        )
        for each in unaccounted
    ]
    table = limit_table("coverage.unaccounted", columns, rows)
    return Section("unaccounted", "Operations with missing bytes", tables=(table,))
