# SPDX-License-Identifier: Apache-2.0
"""The report on a job: everything that its text, its JSON and its page say, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ibprof.errors import UsageError
from ibprof.profile.exact_sums import find_distinct
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import printable
from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.analysis.load_pipeline import Demand
from ibprof_converter.analysis.routed_fabric import RoutedFabric
from ibprof_converter.hotspots.adaptive_bounds_text import bounds_as_json, describe_bounds
from ibprof_converter.hotspots.counter_text import agreement_as_json, describe_agreement
from ibprof_converter.hotspots.coverage import describe_coverage
from ibprof_converter.hotspots.traffic_answer import (
    REQUESTS,
    LinkReport,
    TrafficAnswer,
    as_json,
    report_on_links,
    report_on_run,
)
from ibprof_converter.reports.pair_matrix import (
    PairMatrix,
    hosts_of_flows,
    matrix_of_hosts,
    matrix_of_lids,
    matrix_of_ranks,
    matrix_of_recorded_hosts,
)
from ibprof_converter.reports.provenance import Provenance
from ibprof_converter.reports.rail_sums import LevelSum, RailSum, sum_levels, sum_rails
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
from ibprof_converter.traffic.hosts import NO_HOST
from ibprof_converter.traffic.traffic_data import RankTraffic, Traffic

TOP = 10
"""Hot link directions that a report names, unless asked for others."""


@dataclass(frozen=True, slots=True)
class BytesFate:
    """Fate of some of the bytes.

    Attributes:
        fate: in words.
        bytes, share: how many, and of all.
    """

    fate: str
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class SenderBalance:
    """How evenly senders share the bytes.

    Attributes:
        of: "ranks", "hosts" or "rails".
        count: how many there are.
        max_bytes, mean_bytes, min_bytes: of what one sends.
        ratio: the largest over the mean; 1 is even, 0 when nobody sends.
        greatest: the one that sends most.
        bytes: of each, in their order.
    """

    of: str
    count: int
    max_bytes: int
    mean_bytes: float
    min_bytes: int
    ratio: float
    greatest: str
    bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class JobReport(NotebookView):
    """All that is said of a job.

    Attributes:
        answer: links, who loads them and why, operations, regions, hosts, and what all that rests on.
        provenance: how the report was made.
        loads: of the links; None without a fabric.
        job: None where no run was recorded.
        rails, levels: empty without a fabric.
        regions: time in them.
        sizes: of messages.
        timeline: empty where it was not recorded.
        ranks: who sends to whom; None where the traffic knows no ranks.
        hosts: the same by host; None where there is one alone.
        lids: the same by address, where that is all that is known.
        balance: of ranks, hosts, rails.
        additions: counters and bounds next to the loads, as JSON, by their keys there.
        addition_lines: the same in lines.
    """

    answer: TrafficAnswer
    provenance: Provenance
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
        where = self.loads.title if self.loads else f"{self.answer.coverage.origin}, no fabric"
        return f"<JobReport {printable(where)}>"

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values for JSON; the schema is docs/formats/report.md."""
        document: dict[str, Any] = as_json(self.answer)
        document["job"] = asdict(self.job) if self.job else None
        if self.answer.links:
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
        document["balance"] = [asdict(each) for each in self.balance]
        provenance = asdict(self.provenance)
        document["reproduce"] = provenance | {"versions": dict(self.provenance.versions)}
        return document | dict(self.additions)

    @property
    def fates(self) -> tuple[BytesFate, ...]:
        """Fates of all bytes; empty without a fabric."""
        return _list_fates(self.answer.links) if self.answer.links else ()


def report_on_loads(loads: FabricLoads, provenance: Provenance, top: int = TOP) -> JobReport:
    """Report on traffic on the links of a fabric.

    Args:
        loads: of the links.
        provenance: how the report was made.
        top: number of hot link directions to name.
    """
    fabric, demand = loads.fabric, loads.demand
    answer = report_on_links(demand, loads.placed, fabric.subnets, fabric.layouts, loads.loads, top)
    hosts = matrix_of_recorded_hosts(demand) if demand else None
    if loads.traffic:
        hosts = matrix_of_hosts(loads.traffic, fabric.subnets, fabric.hosts)
    rails = sum_rails(fabric.subnets, loads.loads)
    report = JobReport(
        answer=answer,
        provenance=provenance,
        loads=loads,
        rails=rails,
        levels=sum_levels(fabric.subnets, fabric.layouts, loads.loads),
        hosts=hosts,
        balance=tuple(_weigh(answer, demand, rails, loads)),
        additions=_additions_as_json(loads),
        addition_lines=tuple(_describe_additions(loads)),
    )
    return _with_ranks(report, demand) if demand else report


def report_on_demand(demand: Demand, provenance: Provenance) -> JobReport:
    """Report on traffic without any fabric.

    Raises:
        UsageError: bytes were counted at the ports, of which nothing can be said without a fabric.
    """
    if isinstance(demand, Traffic):
        answer = TrafficAnswer(describe_coverage(None, demand, ()), links=None, run=None, requests=REQUESTS)
        return JobReport(answer, provenance, lids=matrix_of_lids(demand))
    if not isinstance(demand, RankTraffic):
        raise UsageError(f"{demand.origin}: without a fabric nothing can be said; give its .lst before TRAFFIC")
    answer = report_on_run(demand)
    balance = tuple(_weigh(answer, demand, (), None))
    report = JobReport(answer, provenance, hosts=matrix_of_recorded_hosts(demand), balance=balance)
    return _with_ranks(report, demand)


def _with_ranks(report: JobReport, demand: RankTraffic) -> JobReport:
    """Add what only a traffic between ranks, and the run that it was recorded in, can say."""
    run = demand.profile
    report = replace(report, ranks=matrix_of_ranks(demand) if len(demand.bytes) else None)
    if run is None:
        return report
    return replace(
        report,
        job=describe_job(run),
        regions=measure_regions(run),
        sizes=count_sizes(run),
        timeline=follow_time(run.intervals),
    )


def _additions_as_json(loads: FabricLoads) -> dict[str, object]:
    """Return what stands next to the loads, counters and bounds of adaptive routing, by its key in the JSON."""
    document: dict[str, object] = {}
    if loads.agreement:
        document["counters"] = agreement_as_json(loads.agreement, loads.fabric.fabrics)
    if loads.bounds:
        document["adaptive"] = bounds_as_json(loads.bounds, loads.loads, loads.fabric.fabrics)
    return document


def _describe_additions(loads: FabricLoads) -> Iterator[str]:
    if loads.agreement:
        yield from describe_agreement(loads.agreement, loads.fabric.fabrics)
    if loads.bounds:
        yield from describe_bounds(loads.bounds, loads.loads, loads.fabric.fabrics)


def _list_fates(links: LinkReport) -> tuple[BytesFate, ...]:
    rows = [("routed over links", links.bytes_routed), ("within a host", links.bytes_on_host)]
    rows += [(f"not routed: {reason}", amount) for reason, amount in links.bytes_unrouted.items()]
    rows.append(("in all", links.bytes_total))
    return tuple(
        BytesFate(label, amount, amount / links.bytes_total if links.bytes_total else 0.0) for label, amount in rows
    )


def _weigh(
    answer: TrafficAnswer, demand: RankTraffic | None, rails: Sequence[RailSum], loads: FabricLoads | None
) -> list[SenderBalance]:
    weighed = []
    if demand is not None and demand.ranks:
        sent = np.zeros(demand.ranks, np.uint64)
        np.add.at(sent, demand.source, demand.bytes)
        weighed.append(_balance("ranks", [f"rank {rank}" for rank in range(demand.ranks)], sent.tolist()))
    if answer.run and len(answer.run.hosts) > 1:
        hosts = answer.run.hosts
        weighed.append(_balance("hosts", [host.name for host in hosts], [host.bytes_sent for host in hosts]))
    elif loads and loads.traffic:
        weighed += _weigh_hosts(loads.fabric, loads.traffic)
    if len(rails) > 1:
        weighed.append(_balance("rails", [f"rail {each.rail}" for each in rails], [each.bytes_sent for each in rails]))
    return weighed


def _weigh_hosts(fabric: RoutedFabric, placed: Traffic) -> list[SenderBalance]:
    """Weigh what hosts send over links, of those that send or receive; nothing where that is a single one."""
    source, destination = hosts_of_flows(placed, fabric.subnets, fabric.hosts)
    used = find_distinct(source[source != NO_HOST], destination[destination != NO_HOST])
    if len(used) < 2:
        return []
    names = fabric.hosts.name
    sent = np.zeros(len(names), np.uint64)
    np.add.at(sent, source[source != NO_HOST], placed.bytes[source != NO_HOST])
    return [_balance("hosts", [names[host] for host in used.tolist()], sent[used].tolist())]


def _balance(of: str, names: Sequence[str], amounts: Sequence[int]) -> SenderBalance:
    greatest = max(range(len(amounts)), key=amounts.__getitem__)
    mean = sum(amounts) / len(amounts)
    most = amounts[greatest]
    return SenderBalance(
        of=of,
        count=len(amounts),
        max_bytes=most,
        mean_bytes=mean,
        min_bytes=min(amounts),
        ratio=most / mean if mean else 0.0,
        greatest=names[greatest],
        bytes=tuple(amounts),
    )
