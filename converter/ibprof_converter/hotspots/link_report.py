# SPDX-License-Identifier: Apache-2.0
"""Report on the loads of a fabric's links: largest and mean load, most loaded links, causes. Return the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ibprof.profile.profile_data import Profile
from ibprof.verdict.verdict_data import BusiestLink, Verdict, VerdictKind
from ibprof.verdict.verdict_rules import CANNOT_TELL, judge_run, judge_traffic
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis, Progress, diagnose
from ibprof_converter.hotspots.causes.load_cause import REPAIR, LoadCause, find_alike, find_loaders
from ibprof_converter.hotspots.causes.sender_causes import advise_on_call
from ibprof_converter.hotspots.causes.situation import PairBytes, Situation, find_rank_flows
from ibprof_converter.hotspots.hot_links import HOST_LINK, Hotspot, LinkDirections, LinkGroup, LinkHeat
from ibprof_converter.layout.positions import FabricLayout
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import Hosts, find_hosts
from ibprof_converter.traffic.link_loads import BY_TIME, ESTIMATE, STATIC, Bounds, Loads
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic
from ibprof_converter.traffic.unrouted_bytes import UnroutedBytes, find_unrouted

DIAGNOSED_FLOWS = 5_000_000
"""Remedies are tried for at most this number of flows; with more flows, the trials take too long."""


@dataclass(frozen=True, slots=True)
class LinkReport:
    """Link loads that a traffic causes on a fabric.

    Attributes:
        bytes_total, bytes_routed, bytes_on_host, bytes_unrouted: as in `Loads`.
        ranked_by: one of `RANKINGS`.
        load_basis: `static` for loads along the forwarding tables, `estimate` for estimates of adaptive routing.
        heat: largest and mean load.
        hotspots: the most loaded link directions.
        switch_hotspots: the most loaded link directions between switches.
        diagnosis: causes of the most loaded link direction's time; None for port counters, without times, and for more
            than `DIAGNOSED_FLOWS` flows.
        groups: groups of the most loaded link directions with about equal load.
        unrouted: bytes without a route; None if all bytes have a route.
    """

    bytes_total: int
    bytes_routed: int
    bytes_on_host: int
    bytes_unrouted: dict[str, int]
    ranked_by: str
    load_basis: str
    heat: LinkHeat
    hotspots: tuple[Hotspot, ...]
    switch_hotspots: tuple[Hotspot, ...]
    diagnosis: Diagnosis | None
    groups: tuple[LinkGroup, ...] = ()
    unrouted: UnroutedBytes | None = None


def report_on_links(
    placed: Traffic | PortCounters,
    subnets: Sequence[Subnet],
    layouts: Sequence[FabricLayout],
    loads: Loads,
    top: int,
    bounds: Bounds | None = None,
    demand: RankTraffic | None = None,
    progress: Progress = lambda _: None,
    rank_by: str = BY_TIME,
    hosts: Hosts | None = None,
) -> LinkReport:
    """Report on the link loads of a traffic on a fabric.

    Args:
        subnets, layouts: subnet and layout of each rail.
        loads: the link loads caused by `placed`.
        top: number of link directions to list.
        bounds: bounds of adaptive routing, whose estimates sort links; None for loads along the forwarding tables.
        demand: the traffic of `placed` between ranks, with bytes within hosts; None without ranks, and for several
            jobs.
        progress: function that is called with the name of each stage of the diagnosis.
        rank_by: one of `RANKINGS`, the sort key of the listed link directions.
        hosts: the hosts of the rails; None to find the hosts by the adapters' descriptions.
    """
    ends = LinkDirections(subnets, layouts, loads, placed if isinstance(placed, Traffic) else None, bounds)
    busy = ends.most_loaded(top, rank_by)
    return LinkReport(
        bytes_total=loads.bytes_total,
        bytes_routed=loads.bytes_routed,
        bytes_on_host=loads.bytes_on_host,
        bytes_unrouted=loads.bytes_unrouted,
        ranked_by=rank_by,
        load_basis=ESTIMATE if bounds else STATIC,
        heat=ends.heat(),
        hotspots=busy.hotspots,
        switch_hotspots=busy.switch_hotspots,
        groups=busy.groups,
        unrouted=find_unrouted(placed, subnets, loads),
        diagnosis=diagnose_traffic(placed, subnets, bounds is not None, demand, progress, hosts)
        if isinstance(placed, Traffic)
        else None,
    )


def diagnose_traffic(
    placed: Traffic,
    subnets: Sequence[Subnet],
    is_adaptive: bool = False,
    demand: RankTraffic | None = None,
    progress: Progress = lambda _: None,
    hosts: Hosts | None = None,
) -> Diagnosis | None:
    """Return the causes of the most loaded link's time; None if no link has a time, or flows exceed `DIAGNOSED_FLOWS`.

    Args:
        is_adaptive: true if switches route adaptively.
        demand, progress, hosts: as in `report_on_links`.
    """
    if not 0 < len(placed.bytes) <= DIAGNOSED_FLOWS:
        return None
    hosts = hosts or find_hosts([subnet.fabric for subnet in subnets])
    ranks = find_rank_flows(placed, demand, hosts, subnets)
    situation = Situation(subnets, hosts, PairBytes.of_traffic(placed), is_adaptive, ranks)
    diagnosis = diagnose(situation, progress)
    if diagnosis is None:
        return None
    loaders = find_loaders(placed, subnets, situation.most_loaded())
    causes = tuple(_name_loaders(placed, situation, diagnosis.causes))
    return replace(diagnosis, causes=causes, loaded_by=loaders, alike=find_alike(situation))


def _name_loaders(placed: Traffic, situation: Situation, causes: Sequence[LoadCause]) -> Iterator[LoadCause]:
    """Yield each cause with the senders of the link direction that is busiest before the cause's remedy.

    After a remedy that changes the flows, causes have no senders.
    """
    before = situation
    for cause in causes:
        if before.flows is situation.flows:
            loaders = find_loaders(placed, before.subnets, before.most_loaded())
            yield advise_on_call(replace(cause, loaded_by=loaders))
        else:
            yield cause
        before = cause.remedy


def links_as_json(links: LinkReport) -> dict[str, Any]:
    """Return a link report as a JSON object."""
    document: dict[str, Any] = asdict(replace(links, diagnosis=None, groups=()))
    document["diagnosis"] = links.diagnosis.as_json() if links.diagnosis else None
    heat: dict[str, Any] = document.pop("heat")
    for name in ("hotspots", "switch_hotspots"):
        heat[name] = [_hotspot(spot) for spot in document.pop(name)]
    del document["groups"]
    heat["link_groups"] = [
        {"directions": len(group.members), "busiest": _hotspot(asdict(group.busiest))} for group in links.groups
    ]
    return document | heat


def _hotspot(spot: dict[str, object]) -> dict[str, object]:
    """Return the JSON object of a link direction; its member `link` contains rail, ports, kind and data rate."""
    link = {name: spot.pop(name) for name in ("rail", "a", "b", "kind", "gbps")}
    if spot["static_bytes"] is None:
        del spot["static_bytes"]
    contributors = spot["contributors"]
    # With a single job, the keys `jobs` and `job` are left out.
    if isinstance(contributors, dict) and not contributors["jobs"]:
        del contributors["jobs"]
        for pair in contributors["rank_pairs"]:
            del pair["job"]
    return {"link": link, **spot}


def judge_job(
    run: Profile | None,
    links: LinkReport | None,
    routes: str = "",
    by_region: Mapping[str, float] | None = None,
    *,
    moved: bool = False,
    lost: str = "",
) -> Verdict:
    """Return the verdict on a job.

    Args:
        run: the job's profile; None for traffic that was not recorded.
        links: report on the links of the job's fabric; None if the fabric is unknown.
        routes: sentences on modelled routes and assumed speeds; empty without them.
        by_region: region -> time at line rate of the region's most loaded link direction, in seconds; None if unknown.
        moved: true if `--placement` moved ranks to other hosts.
        lost: sentences on hosts, LIDs and lines that were left out when files were read (`Coverage.lost`).
    """
    times = _time_links(links, routes) if links else None
    if times and links:
        unrouted = links.unrouted
        times = replace(
            times,
            by_region=by_region,
            moved=moved,
            unrouted=" ".join(filter(None, (unrouted.text if unrouted else "", lost))),
            unrouted_share=unrouted.share if unrouted else 0.0,
        )
    # Profiles from NCCL Inspector contain neither bytes nor times, and their ranks have no start. A recorded run may
    # have no bytes and times either, but its ranks have a start.
    has_data = run is not None and bool(len(run.counters.bytes) or len(run.transfers.bytes) or len(run.times.calls))
    is_recorded = has_data or (run is not None and any(rank.start_ns for rank in run.ranks))
    return judge_run(run, times) if run and is_recorded else judge_traffic(times)


def has_fault(verdict: Verdict, diagnosis: Diagnosis | None) -> bool:
    """Return true if the network has a problem. Pages show a problem in red.

    A problem is a link that limits the job and has a worthwhile remedy. If the verdict is undecided, return false. If
    the run time is unknown, the only problem is a cable or link that needs repair.
    """
    if CANNOT_TELL in verdict.sentences:
        return False
    decides = verdict.kind in (VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS) and verdict.cause is not None
    if verdict.run_s is None or (decides and verdict.is_worth_it is None):
        return bool(diagnosis and diagnosis.causes and diagnosis.causes[0].kind == REPAIR)
    return decides and bool(verdict.is_worth_it)


def _time_links(links: LinkReport, routes: str) -> BusiestLink | None:
    """Return the times of the most loaded link direction. If no link of known speed carries bytes, the times are 0."""
    on_host = links.bytes_on_host / links.bytes_total if links.bytes_total else 0.0
    diagnosis = links.diagnosis
    if diagnosis is None:
        spots = [spot for spot in (*links.hotspots, *links.switch_hotspots) if spot.line_rate_s]
        if not spots:
            first = str(links.hotspots[0].sender) if links.hotspots else ""
            return BusiestLink(first, 0.0, is_host_link=True, routes=routes, on_host_share=on_host)
        busiest = max(spots, key=lambda spot: (spot.line_rate_s or 0.0, spot.kind == HOST_LINK))
        return BusiestLink(
            busiest=str(busiest.sender),
            line_rate_s=busiest.line_rate_s or 0.0,
            is_host_link=busiest.kind == HOST_LINK,
            routes=routes,
            on_host_share=on_host,
        )
    causes, loader = diagnosis.causes, diagnosis.loaded_by
    best = min((cause.max_time_after_s for cause in causes), default=None)
    return BusiestLink(
        busiest=diagnosis.busiest,
        line_rate_s=diagnosis.max_time_s,
        is_host_link=diagnosis.max_host_link_s >= diagnosis.max_switch_link_s,
        loaded_by=loader.text if loader else "",
        operation=loader.operation if loader else None,
        site=loader.site if loader else None,
        region=loader.region if loader else None,
        cause=causes[0].cause if causes else None,
        advice=causes[0].advice if causes else "",
        first_gain_s=max(diagnosis.max_time_s - causes[0].max_time_after_s, 0.0) if causes else None,
        gain_s=None if best is None else max(diagnosis.max_time_s - best, 0.0),
        routes=routes,
        on_host_share=on_host,
    )
