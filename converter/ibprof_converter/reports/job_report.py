# SPDX-License-Identifier: Apache-2.0
"""The report on a job: everything that its text, its JSON and its page say, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ibprof.profile.exact_sums import find_distinct
from ibprof_converter.hotspots.coverage import describe_coverage
from ibprof_converter.hotspots.report import REQUESTS, LinkReport, Report, as_json
from ibprof_converter.layout.positions import FabricLayout
from ibprof_converter.reports.matrix import (
    PairMatrix,
    hosts_of_flows,
    matrix_of_hosts,
    matrix_of_lids,
    matrix_of_ranks,
    matrix_of_recorded_hosts,
)
from ibprof_converter.reports.network import LevelSum, RailSum, sum_levels, sum_rails
from ibprof_converter.reports.provenance import Provenance
from ibprof_converter.reports.recorded import (
    Job,
    RegionTime,
    SizeClass,
    TimeBin,
    count_sizes,
    describe_job,
    follow_time,
    measure_regions,
)
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.loaded_links import Loads
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of some of the bytes.

    Attributes:
        fate: in words.
        bytes, share: how many, and of all.
    """

    fate: str
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class Balance:
    """How evenly senders share the bytes.

    Attributes:
        of: "ranks", "hosts" or "rails".
        count: how many there are.
        max_bytes, mean_bytes, min_bytes: of what one sends.
        ratio: the greatest over the mean; 1 is even, 0 when nobody sends.
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


@dataclass(frozen=True, slots=True)
class JobReport:
    """All that is said of a job.

    Attributes:
        answer: links, who loads them and why, operations, regions, hosts, and what all that rests on.
        provenance: how the report was made.
        job: None where no run was recorded.
        rails, levels: empty without a fabric.
        regions: time in them.
        sizes: of messages.
        timeline: empty where it was not recorded.
        ranks: who sends to whom; None where the traffic knows no ranks.
        hosts: the same by host; None where there is one alone.
        lids: the same by address, where that is all that is known.
        balance: of ranks, hosts, rails.
        beside: what stands beside the loads, as JSON, by its key there.
        beside_lines: the same in lines.
    """

    answer: Report
    provenance: Provenance
    job: Job | None = None
    rails: tuple[RailSum, ...] = ()
    levels: tuple[LevelSum, ...] = ()
    regions: tuple[RegionTime, ...] = ()
    sizes: tuple[SizeClass, ...] = ()
    timeline: tuple[TimeBin, ...] = ()
    ranks: PairMatrix | None = None
    hosts: PairMatrix | None = None
    lids: PairMatrix | None = None
    balance: tuple[Balance, ...] = ()
    beside: Mapping[str, object] = field(default_factory=dict)
    beside_lines: tuple[str, ...] = ()

    @property
    def fates(self) -> tuple[Fate, ...]:
        """What became of all bytes; empty without a fabric."""
        return _list_fates(self.answer.links) if self.answer.links else ()


@dataclass(frozen=True, slots=True)
class OnLinks:
    """A traffic on the links of a fabric, as a report needs it.

    Attributes:
        subnets, layouts: the rails.
        hosts: of them.
        placed: the traffic on them.
        loads: of their links.
    """

    subnets: Sequence[Subnet]
    layouts: Sequence[FabricLayout]
    hosts: Hosts
    placed: Traffic | PortCounters
    loads: Loads


def report_on_job(
    answer: Report,
    provenance: Provenance,
    demand: RankTraffic | None,
    on_links: OnLinks | None,
    beside: Mapping[str, object] | None = None,
    beside_lines: Sequence[str] = (),
) -> JobReport:
    """Put together all that is said of a job.

    Args:
        answer: of `report_on_links` or `report_on_run`.
        provenance: how the report was made.
        demand: the traffic between ranks; None where it knows no ranks.
        on_links: the same on a fabric; None without one.
        beside, beside_lines: counters and bounds of adaptive routing, as JSON and in lines.
    """
    run = demand.profile if demand else None
    placed = on_links.placed if on_links else None
    hosts = None
    if on_links and isinstance(placed, Traffic):
        hosts = matrix_of_hosts(placed, on_links.subnets, on_links.hosts)
    elif demand is not None:
        hosts = matrix_of_recorded_hosts(demand)
    rails = sum_rails(on_links.subnets, on_links.loads) if on_links else ()
    return JobReport(
        answer=answer,
        provenance=provenance,
        job=describe_job(run) if run else None,
        rails=rails,
        levels=sum_levels(on_links.subnets, on_links.layouts, on_links.loads) if on_links else (),
        regions=measure_regions(run) if run else (),
        sizes=count_sizes(run) if run else (),
        timeline=follow_time(run.intervals) if run else (),
        ranks=matrix_of_ranks(demand) if demand is not None and len(demand.bytes) else None,
        hosts=hosts,
        balance=tuple(_weigh(answer, demand, rails, on_links)),
        beside=beside or {},
        beside_lines=tuple(beside_lines),
    )


def report_on_flows(traffic: Traffic, provenance: Provenance) -> JobReport:
    """Report on a traffic from address to address without any fabric."""
    answer = Report(describe_coverage(None, traffic, ()), links=None, run=None, requests=REQUESTS)
    return JobReport(answer, provenance, lids=matrix_of_lids(traffic))


def _list_fates(links: LinkReport) -> tuple[Fate, ...]:
    rows = [("routed over links", links.bytes_routed), ("within a host", links.bytes_on_host)]
    rows += [(f"not routed: {reason}", amount) for reason, amount in links.bytes_unrouted.items()]
    rows.append(("in all", links.bytes_total))
    return tuple(
        Fate(label, amount, amount / links.bytes_total if links.bytes_total else 0.0) for label, amount in rows
    )


def _weigh(
    answer: Report, demand: RankTraffic | None, rails: Sequence[RailSum], on_links: OnLinks | None
) -> list[Balance]:
    weighed = []
    if demand is not None and demand.ranks:
        sent = np.zeros(demand.ranks, np.uint64)
        np.add.at(sent, demand.source, demand.bytes)
        weighed.append(_balance("ranks", [f"rank {rank}" for rank in range(demand.ranks)], sent.tolist()))
    if answer.run and len(answer.run.hosts) > 1:
        hosts = answer.run.hosts
        weighed.append(_balance("hosts", [host.name for host in hosts], [host.bytes_sent for host in hosts]))
    elif on_links and isinstance(on_links.placed, Traffic):
        weighed += _weigh_hosts(on_links, on_links.placed)
    if len(rails) > 1:
        weighed.append(_balance("rails", [f"rail {each.rail}" for each in rails], [each.bytes_sent for each in rails]))
    return weighed


def _weigh_hosts(on_links: OnLinks, placed: Traffic) -> list[Balance]:
    """Weigh what the fabric's hosts send over links, of those that send or receive; nothing where that is one alone."""
    source, destination = hosts_of_flows(placed, on_links.subnets, on_links.hosts)
    used = find_distinct(source[source != NO_HOST], destination[destination != NO_HOST])
    if len(used) < 2:
        return []
    sent = np.zeros(len(on_links.hosts.name), np.uint64)
    np.add.at(sent, source[source != NO_HOST], placed.bytes[source != NO_HOST])
    return [_balance("hosts", [on_links.hosts.name[host] for host in used.tolist()], sent[used].tolist())]


def _balance(of: str, names: Sequence[str], amounts: Sequence[int]) -> Balance:
    greatest = max(range(len(amounts)), key=amounts.__getitem__)
    mean = sum(amounts) / len(amounts)
    most = amounts[greatest]
    return Balance(
        of=of,
        count=len(amounts),
        max_bytes=most,
        mean_bytes=mean,
        min_bytes=min(amounts),
        ratio=most / mean if mean else 0.0,
        greatest=names[greatest],
        bytes=tuple(amounts),
    )


def report_as_json(report: JobReport) -> dict[str, Any]:
    """Give the report as plain values for a JSON file."""
    document: dict[str, Any] = as_json(report.answer)
    document["job"] = asdict(report.job) if report.job else None
    if report.answer.links:
        document["bytes_by_fate"] = [asdict(each) for each in report.fates]
        document["rails"] = [asdict(each) for each in report.rails]
        document["levels"] = [asdict(each) for each in report.levels]
    document["region_times"] = [asdict(each) for each in report.regions]
    document["message_sizes"] = [asdict(each) for each in report.sizes]
    document["timeline"] = [asdict(each) for each in report.timeline]
    document["matrix_ranks"] = asdict(report.ranks) if report.ranks else None
    document["matrix_hosts"] = asdict(report.hosts) if report.hosts else None
    if report.lids:
        document["matrix_LIDs"] = asdict(report.lids)
        document["bytes_total"] = sum(map(sum, report.lids.bytes))
    document["balance"] = [asdict(each) for each in report.balance]
    provenance = asdict(report.provenance)
    document["reproduce"] = provenance | {"versions": dict(report.provenance.versions)}
    return document | dict(report.beside)
