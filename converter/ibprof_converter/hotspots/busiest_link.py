# SPDX-License-Identifier: Apache-2.0
"""The verdict on a job from the links of its fabric: time of the most loaded link at line rate, cause and remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ibprof.profile.profile_data import Profile
from ibprof.verdict.verdict_data import BusiestLink, Verdict, VerdictKind
from ibprof.verdict.verdict_rules import CANNOT_TELL, judge_run, judge_traffic
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.causes.load_cause import REPAIR
from ibprof_converter.hotspots.hot_links import HOST_LINK
from ibprof_converter.hotspots.link_report import LinkReport


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
        links: links of the job's fabric; None if the fabric is unknown.
        routes: sentence on routes that are not the subnet's own; empty for the subnet's routes.
        by_region: seconds of each region's most loaded link direction at line rate; None if unknown.
        moved: true if ranks are placed on hosts where they did not run.
        lost: sentences on hosts that were left out.
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
    # NCCL Inspector's files give modelled ranks. Nobody counted their bytes.
    is_recorded = run is not None and bool(len(run.counters.bytes) or len(run.transfers.bytes) or len(run.times.calls))
    return judge_run(run, times) if run and is_recorded else judge_traffic(times)


def has_fault(verdict: Verdict, diagnosis: Diagnosis | None) -> bool:
    """Return true if the network has a problem, which pages show in red.

    A problem is a link that limits the job and has a worthwhile remedy. An undecided verdict is no problem. If no run
    shows the cost, only a fault of the fabric counts: a cable or a link to be repaired.
    """
    if CANNOT_TELL in verdict.sentences:
        return False
    decides = verdict.kind in (VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS) and verdict.cause is not None
    if verdict.run_s is None or (decides and verdict.is_worth_it is None):
        return bool(diagnosis and diagnosis.causes and diagnosis.causes[0].kind == REPAIR)
    return decides and bool(verdict.is_worth_it)


def _time_links(links: LinkReport, routes: str) -> BusiestLink | None:
    """Return the times of the most loaded link direction; None if no link of known speed carries bytes."""
    on_host = links.bytes_on_host / links.bytes_total if links.bytes_total else 0.0
    diagnosis = links.diagnosis
    if diagnosis is None:
        spots = [spot for spot in (*links.hotspots, *links.switch_hotspots) if spot.line_rate_s]
        if not spots:
            return BusiestLink("", 0.0, is_host_link=True, routes=routes, on_host_share=on_host)
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
