# SPDX-License-Identifier: Apache-2.0
"""The report on a job: the data from which text, JSON and HTML page are made."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ibprof.errors import UsageError
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import printable
from ibprof.verdict.verdict_data import Verdict, VerdictKind
from ibprof_converter.analysis.pipeline_options import TOP, FabricOptions, Progress, TrafficOptions, no_progress
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.analysis.pipeline_stages import Demand, judge_loads, load_fabric
from ibprof_converter.hotspots.coverage import REQUESTS, Coverage, DumpRequest, describe_coverage
from ibprof_converter.hotspots.link_report import LinkReport, judge_job, links_as_json
from ibprof_converter.hotspots.run_sums import RunSummary, summarise
from ibprof_converter.reports.provenance import Provenance, describe_provenance
from ibprof_converter.reports.recorded_job import (
    RecordedJob,
    RegionTime,
    SizeClass,
    TimeBin,
    count_sizes,
    describe_job,
    follow_time,
    measure_regions,
)
from ibprof_converter.reports.traffic_sums import (
    LevelSum,
    PairMatrix,
    RailSum,
    SenderBalance,
    matrix_of_hosts,
    matrix_of_lids,
    matrix_of_ranks,
    matrix_of_recorded_hosts,
    sender_imbalance,
    sum_levels,
    sum_rails,
)
from ibprof_converter.traffic.adapter_policies import NEAR
from ibprof_converter.traffic.link_loads import BY_TIME, bounds_as_json, describe_bounds
from ibprof_converter.traffic.port_counters import agreement_as_json, describe_agreement
from ibprof_converter.traffic.traffic_data import RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import choose_demand, read_traffic

SCHEMA = 2
"""Version of the schema of the JSON; it increases when a key changes its meaning."""

_PLACE = "ibprof-place LST... TRAFFIC"

_ONE_FABRIC = " LST -o "


@dataclass(frozen=True, slots=True)
class RoutedBytes:
    """Total of the bytes that were routed, stayed within a host, or were not routed for one reason.

    Attributes:
        fate: `routed over links`, `within a host`, `not routed: REASON` or `total`.
        share: `bytes` as a fraction (0 to 1) of all bytes.
    """

    fate: str
    bytes: int
    share: float


@dataclass(frozen=True, slots=True, repr=False)
class JobReport(NotebookView):
    """The report on a job.

    Attributes:
        verdict: whether the network slows the job down.
        coverage: the measured, modelled and missing data.
        links: loads of links, senders and causes; None without a fabric.
        run: sums per operation, region and host; None if the traffic has no ranks.
        requests: commands with which an administrator can dump the fabric; empty with a fabric.
        loads: loads of the links; None without a fabric.
        job: the recorded job; None if no run was recorded.
        rails, levels: loads of rails and levels; empty without a fabric.
        sizes: number of messages per size class.
        timeline: traffic over time; empty if it was not recorded.
        ranks: bytes from rank to rank; None if the traffic has no ranks or no bytes.
        hosts: bytes from host to host; None without bytes between known hosts, and for a run that was recorded on one
            host.
        lids: bytes from LID to LID; None with a fabric, with known ranks, or without bytes.
        additions: JSON key -> comparison with port counters, or bounds of adaptive routing.
        addition_lines: `additions` as lines of text.
    """

    verdict: Verdict
    coverage: Coverage
    provenance: Provenance
    links: LinkReport | None = None
    run: RunSummary | None = None
    requests: tuple[DumpRequest, ...] = ()
    loads: FabricLoads | None = None
    job: RecordedJob | None = None
    rails: tuple[RailSum, ...] = ()
    levels: tuple[LevelSum, ...] = ()
    regions: tuple[RegionTime, ...] = ()
    sizes: tuple[SizeClass, ...] = ()
    timeline: tuple[TimeBin, ...] = ()
    ranks: PairMatrix | None = None
    hosts: PairMatrix | None = None
    lids: PairMatrix | None = None
    balance: tuple[SenderBalance, ...] = ()
    additions: Mapping[str, object] = field(default_factory=dict)
    addition_lines: tuple[str, ...] = ()

    def __repr__(self) -> str:
        where = self.loads.title if self.loads else f"{self.coverage.origin}, no fabric"
        return f"<JobReport {printable(where)}>"

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values for JSON; the schema is docs/formats/report.md."""
        document: dict[str, Any] = {"schema": SCHEMA, "verdict": self.verdict.as_json()}
        document |= links_as_json(self.links) if self.links else {}
        if self.run:
            document |= {name: value for name, value in asdict(self.run).items() if name not in document}
        document["nic"] = self.coverage.nic
        document["routes"] = self.coverage.routes
        document["coverage"] = asdict(self.coverage)
        if self.requests:
            document["ask_the_administrator_for"] = [asdict(request) for request in self.requests]
        document["job"] = asdict(self.job) if self.job else None
        if self.links:
            document["bytes_by_fate"] = [asdict(each) for each in self.fates]
            document["rails"] = [asdict(each) for each in self.rails]
            document["levels"] = [asdict(each) for each in self.levels]
        document["region_times"] = [asdict(each) for each in self.regions]
        document["message_sizes"] = [asdict(each) for each in self.sizes]
        document["timeline"] = [asdict(each) for each in self.timeline]
        document["matrix_ranks"] = asdict(self.ranks) if self.ranks else None
        document["matrix_hosts"] = asdict(self.hosts) if self.hosts else None
        if self.lids:
            document["matrix_LIDs"] = asdict(self.lids)
            document["bytes_total"] = sum(map(sum, self.lids.bytes))
        # asdict would be slow: it copies each single number of `SenderBalance.bytes`.
        names = [each.name for each in fields(SenderBalance)]
        document["balance"] = [{name: getattr(each, name) for name in names} for each in self.balance]
        provenance = asdict(self.provenance)
        document["reproduce"] = provenance | {"versions": dict(self.provenance.versions)}
        return document | dict(self.additions)

    @property
    def fates(self) -> tuple[RoutedBytes, ...]:
        """Bytes over links, within hosts, not routed (for each reason), and total; empty without a fabric."""
        if self.links is None:
            return ()
        total = self.links.bytes_total
        rows = {"routed over links": self.links.bytes_routed, "within a host": self.links.bytes_on_host}
        rows |= {f"not routed: {reason}": amount for reason, amount in self.links.bytes_unrouted.items()}
        rows["total"] = total
        return tuple(RoutedBytes(fate, amount, amount / total if total else 0.0) for fate, amount in rows.items())


def read_and_report(
    fabric: FabricOptions | None,
    traffic: TrafficOptions,
    command: str,
    files: Iterable[Path],
    top: int = TOP,
    progress: Progress = no_progress,
    rank_by: str = BY_TIME,
) -> JobReport:
    """Read traffic and report on it; with a fabric, the report has link loads.

    Args:
        fabric: the fabrics to read; None without a fabric.
        traffic: the traffic to read; without a fabric, only the first job (`names[0]`) is read.
        command: the command as typed.
        top: number of most loaded link directions to list.
        rank_by: one of `RANKINGS`.

    Raises:
        IbprofError: as `load_fabric` and `report_on_demand` do.
    """
    if fabric is None:
        progress("reading the traffic")
        name = traffic.names[0]
        demand = choose_demand(read_traffic(name, None), traffic.chosen, name)
        return report_on_demand(demand, describe_provenance(command, files))
    loads = load_fabric(fabric, traffic, progress)
    # Hash the inputs after they were read: reading may turn a recording into a profile.
    report = report_on_loads(loads, describe_provenance(command, files), top, progress, rank_by)
    return _name_files(report, fabric, traffic)


def _name_files(report: JobReport, fabric: FabricOptions, traffic: TrafficOptions) -> JobReport:
    """Return the report with the real file names and options in the advised commands."""
    if report.links is None or report.links.diagnosis is None:
        return report
    diagnosis = report.links.diagnosis
    place = shlex.join(["ibprof-place", *fabric.names, *traffic.names, *_list_options(fabric, traffic)])
    one = f" {shlex.quote(fabric.names[0])} -o " if len(fabric.names) == 1 else _ONE_FABRIC
    causes = tuple(
        replace(cause, change=cause.change.replace(_PLACE, place).replace(_ONE_FABRIC, one))
        for cause in diagnosis.causes
    )
    return replace(report, links=replace(report.links, diagnosis=replace(diagnosis, causes=causes)))


def _list_options(fabric: FabricOptions, traffic: TrafficOptions) -> Iterator[str]:
    """Yield those options of the report, with values, that `ibprof-place` also has."""
    if fabric.tables:
        yield from ("--fdbs", *fabric.tables)
    options = {
        "--node-name-map": fabric.name_map,
        "--host-names": fabric.host_names.pattern if fabric.host_names else None,
        "--routes": fabric.routes,
        "--interfaces": fabric.interfaces,
        "--placement": traffic.placements[0] if traffic.placements else None,
        "--rails": traffic.rails,
        "--nic": None if traffic.nic == NEAR else traffic.nic,  # ibprof-place refuses NEAR: it knows no cores
    }
    for option, value in options.items():
        if value is not None:
            yield from (option, value)
    if traffic.adaptive:
        yield "--adaptive"


def report_on_loads(
    loads: FabricLoads,
    provenance: Provenance,
    top: int = TOP,
    progress: Progress = no_progress,
    rank_by: str = BY_TIME,
) -> JobReport:
    """Return the report on traffic with known link loads.

    Args:
        top: number of most loaded link directions to list.
        progress: function that is called with the name of each stage of the diagnosis.
        rank_by: one of `RANKINGS`.
    """
    fabric, demand = loads.fabric, loads.demand
    moved = loads.traffic is not None and loads.traffic.moved
    run = summarise(demand, with_hosts=not moved) if demand else None
    hosts = matrix_of_recorded_hosts(demand) if demand else None
    if loads.traffic:
        hosts = matrix_of_hosts(loads.traffic, fabric.subnets, fabric.hosts)
    rails = sum_rails(fabric.subnets, loads.loads)
    judged = judge_loads(loads, progress, top, rank_by)
    additions: dict[str, object] = {}
    if loads.agreement:
        additions["counters"] = agreement_as_json(loads.agreement, fabric.fabrics)
    if loads.bounds:
        additions["adaptive"] = bounds_as_json(loads.bounds, loads.loads, fabric.fabrics)
    report = JobReport(
        verdict=judged.verdict,
        coverage=loads.coverage,
        provenance=provenance,
        links=judged.links,
        run=run,
        loads=loads,
        rails=rails,
        levels=sum_levels(fabric.subnets, fabric.layouts, loads.loads),
        hosts=hosts,
        balance=sender_imbalance(demand, run, rails, loads),
        additions=additions,
        addition_lines=tuple(describe_additions(loads)),
    )
    return _with_ranks(report, demand) if demand else report


def report_on_demand(demand: Demand, provenance: Provenance) -> JobReport:
    """Return the report on traffic without a fabric.

    Raises:
        UsageError: the traffic is port counters, which need a fabric.
    """
    if isinstance(demand, Traffic):
        coverage = describe_coverage(None, demand, ())
        return JobReport(judge_job(None, None), coverage, provenance, requests=REQUESTS, lids=matrix_of_lids(demand))
    if not isinstance(demand, RankTraffic):
        raise UsageError(
            f"{demand.origin}: bytes counted at ports cannot be reported without a fabric: name a .lst before TRAFFIC"
        )
    run = summarise(demand)
    verdict = judge_job(demand.profile, None)
    stays_on_host = verdict.kind is VerdictKind.ON_HOST or 0 < run.bytes_total == run.bytes_on_host
    report = JobReport(
        verdict=verdict,
        coverage=describe_coverage(demand, None, ()),
        provenance=provenance,
        run=run,
        requests=() if stays_on_host else REQUESTS,  # if no link carries bytes, no dumps are needed
        hosts=matrix_of_recorded_hosts(demand),
        balance=sender_imbalance(demand, run, (), None),
    )
    return _with_ranks(report, demand)


def _with_ranks(report: JobReport, demand: RankTraffic) -> JobReport:
    """Add the bytes between ranks, and facts of the recorded run, to a report."""
    run = demand.profile
    report = replace(report, ranks=matrix_of_ranks(demand) if len(demand.bytes) else None)
    if run is None:
        return report
    return replace(
        report,
        job=describe_job(run),
        regions=measure_regions(run, report.verdict.regions),
        sizes=count_sizes(run),
        timeline=follow_time(run),
    )


def describe_additions(loads: FabricLoads) -> Iterator[str]:
    """Yield lines on the comparison with port counters, and on the bounds of adaptive routing."""
    if loads.agreement:
        yield from describe_agreement(loads.agreement, loads.fabric.fabrics)
    if loads.bounds:
        yield from describe_bounds(loads.bounds, loads.loads, loads.fabric.fabrics)
