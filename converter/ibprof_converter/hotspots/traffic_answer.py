# SPDX-License-Identifier: Apache-2.0
"""The post-mortem report: all that is said of a traffic, as data. `text` shows it to people, `as_json` to programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from ibprof_converter.hotspots.causes.diagnosis import Diagnosis, diagnose
from ibprof_converter.hotspots.causes.situation import PairBytes, Situation
from ibprof_converter.hotspots.coverage import Coverage, describe_coverage
from ibprof_converter.hotspots.hot_links import Hotspot, LinkEnds, LinkHeat
from ibprof_converter.hotspots.run_sums import RunSummary, summarise
from ibprof_converter.layout.positions import FabricLayout
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.loaded_links import Loads
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic

DIAGNOSED_FLOWS = 5_000_000
"""Flows beyond which trying remedies takes longer than a report may."""


@dataclass(frozen=True, slots=True)
class LinkReport:
    """Loads of the links of a fabric under a traffic.

    bytes_total = bytes_routed + bytes_on_host + all of bytes_unrouted.

    Attributes:
        bytes_total, bytes_routed, bytes_on_host, bytes_unrouted: as in `Loads`.
        heat: how the loads compare.
        hotspots: the link directions that carry most.
        diagnosis: why the busiest link direction is as busy as it is; None for port counters, which know no flows,
            where no speed is known, and beyond `DIAGNOSED_FLOWS`.
        switch_hotspots: those between switches that carry most: a host's own link is as hot as its ranks talk, whatever
            the placement.
    """

    bytes_total: int
    bytes_routed: int
    bytes_on_host: int
    bytes_unrouted: dict[str, int]
    heat: LinkHeat
    hotspots: tuple[Hotspot, ...]
    switch_hotspots: tuple[Hotspot, ...]
    diagnosis: Diagnosis | None


@dataclass(frozen=True, slots=True)
class TrafficAnswer:
    """All that is said of a traffic.

    Attributes:
        coverage: what the rest stands on.
        links: None without a fabric.
        run: None where the traffic knows no ranks.
        requests: what to ask an administrator for; empty where there is a fabric.
    """

    coverage: Coverage
    links: LinkReport | None
    run: RunSummary | None
    requests: tuple[DumpRequest, ...]


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """A command for an administrator.

    Attributes:
        command: to type.
        files: what it leaves, to hand over.
        remark: where and how to run it.
    """

    command: str
    files: tuple[str, ...]
    remark: str


REQUESTS = (
    DumpRequest(
        "ibdiagnet -o fabric",
        ("fabric/ibdiagnet.lst", "fabric/ibdiagnet.fdbs"),
        "on any node of the subnet, as root; on a busy fabric look whether every switch is in the .fdbs",
    ),
    DumpRequest(
        "echo 'log_flags 0x43' >> /etc/opensm/opensm.conf && kill -HUP $(pidof opensm)",
        ("/var/log/opensm-subnet.lst", "/var/log/opensm.fdbs", "/var/cache/opensm/guid2lid"),
        "instead of ibdiagnet, on the host of OpenSM, which goes on running; these have the links' true speeds and the "
        "LMC (they lie elsewhere where dump_files_dir or OSM_CACHE_DIR is set)",
    ),
    DumpRequest(
        "ibnetdiscover > ibnetdiscover.out && dump_fts > dump_fts.out",
        ("ibnetdiscover.out", "dump_fts.out"),
        "instead of the above, on any node of the subnet, as root, where infiniband-diags is all there is",
    ),
)


def report_on_run(demand: RankTraffic) -> TrafficAnswer:
    """Report on a traffic between ranks without any fabric."""
    return TrafficAnswer(
        coverage=describe_coverage(demand, None, ()), links=None, run=summarise(demand), requests=REQUESTS
    )


def report_on_links(
    demand: RankTraffic | None,
    placed: Traffic | PortCounters,
    subnets: Sequence[Subnet],
    layouts: Sequence[FabricLayout],
    loads: Loads,
    top: int,
) -> TrafficAnswer:
    """Report on a traffic on the links of a fabric.

    Args:
        demand: the traffic between ranks; None where it knows no ranks.
        placed: the same on the fabric.
        subnets, layouts: the rails.
        loads: what `placed` puts on their links.
        top: number of hot link directions to name.
    """
    ends = LinkEnds(subnets, layouts, loads, placed if isinstance(placed, Traffic) else None)
    hotspots, switch_hotspots = ends.hottest(top)
    links = LinkReport(
        bytes_total=loads.bytes_total,
        bytes_routed=loads.bytes_routed,
        bytes_on_host=loads.bytes_on_host,
        bytes_unrouted=loads.bytes_unrouted,
        heat=ends.heat(),
        hotspots=hotspots,
        switch_hotspots=switch_hotspots,
        diagnosis=diagnose_traffic(placed, subnets) if isinstance(placed, Traffic) else None,
    )
    return TrafficAnswer(
        coverage=describe_coverage(demand, placed, subnets),
        links=links,
        run=summarise(demand, with_hosts=not (isinstance(placed, Traffic) and placed.moved)) if demand else None,
        requests=(),
    )


def diagnose_traffic(placed: Traffic, subnets: Sequence[Subnet]) -> Diagnosis | None:
    """Return why the busiest link is as busy as it is; None for no traffic, and beyond `DIAGNOSED_FLOWS`."""
    if not 0 < len(placed.bytes) <= DIAGNOSED_FLOWS:
        return None
    hosts = find_hosts([subnet.fabric for subnet in subnets])
    return diagnose(Situation(subnets, hosts, PairBytes.of_traffic(placed)))


def as_json(report: TrafficAnswer) -> dict[str, object]:
    """Return the report as plain values for a JSON file."""
    document: dict[str, object] = {}
    if report.links:
        links = asdict(replace(report.links, diagnosis=None))
        diagnosis = report.links.diagnosis
        links["diagnosis"] = diagnosis.as_json() if diagnosis else None
        heat = links.pop("heat")
        hot = {name: [_hotspot(spot) for spot in links.pop(name)] for name in ("hotspots", "switch_hotspots")}
        document |= links | heat | hot
    if report.run:
        document |= {name: value for name, value in asdict(report.run).items() if name not in document}
    document["coverage"] = asdict(report.coverage)
    if report.requests:
        document["ask_the_administrator_for"] = [asdict(request) for request in report.requests]
    return document


def _hotspot(spot: dict[str, object]) -> dict[str, object]:
    """Put what identifies the link under one key."""
    link = {name: spot.pop(name) for name in ("rail", "a", "b", "kind", "gbps")}
    contributors = spot["contributors"]
    # With a single job nothing distinguishes jobs.
    if isinstance(contributors, dict) and not contributors["jobs"]:
        del contributors["jobs"]
        for pair in contributors["rank_pairs"]:
            del pair["job"]
    return {"link": link, **spot}
