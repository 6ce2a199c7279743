# SPDX-License-Identifier: Apache-2.0
"""The verdict on loads: is the network why their job is slow?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ibprof.verdict.verdict_data import Verdict
from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.analysis.load_options import TOP, Progress, no_progress
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS, LinkReport, report_on_links
from ibprof_converter.hotspots.verdict_links import judge_job
from ibprof_converter.routing.route_choice import describe_routes
from ibprof_converter.traffic.loaded_links import load_links


@dataclass(frozen=True, slots=True)
class JudgedLoads:
    """The verdict on loads, and what it rests on.

    Attributes:
        verdict: as in the report on the same loads.
        links: the report on the links.
    """

    verdict: Verdict
    links: LinkReport

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis of the links; None where they are not diagnosed."""
        return self.links.diagnosis


def judge_loads(loads: FabricLoads, progress: Progress = no_progress) -> JudgedLoads:
    """Return the verdict on loads.

    Args:
        loads: of the links.
        progress: receives each stage of the diagnosis.
    """
    fabric, bounds = loads.fabric, loads.judging_bounds
    links = report_on_links(
        loads.placed, fabric.subnets, fabric.layouts, loads.loads, TOP, bounds, loads.demand, progress
    )
    return JudgedLoads(judge_links(loads, links), links)


def judge_links(loads: FabricLoads, links: LinkReport) -> Verdict:
    """Return the verdict on loads that were reported on."""
    traffic = loads.traffic
    routes = (describe_routes(loads.fabric.subnets) or "") if traffic else ""
    run = loads.demand.profile if loads.demand else None
    return judge_job(run, links, routes, time_regions(loads), moved=bool(traffic and traffic.moved))


MOST_REGIONS = 64
"""Regions beyond which loads are not split by region, since memory grows with links times regions."""


def time_regions(loads: FabricLoads) -> Mapping[str, float] | None:
    """Return the seconds at line rate of each region's own most loaded link direction.

    None where there is only one region, or too much to split; where routes are adaptive, since then only the total is
    estimated; and where no link's speed is known.
    """
    traffic = loads.traffic
    if traffic is None or loads.demand is None or loads.judging_bounds:
        return None
    if not 1 < len(traffic.regions) <= MOST_REGIONS or len(traffic.bytes) > DIAGNOSED_FLOWS:
        return None
    split = load_links(traffic, loads.fabric.subnets, by_region=True)
    seconds = np.zeros(len(split.groups))
    for fabric, amounts in zip(loads.fabric.fabrics, split.by_rail, strict=True):
        known = fabric.link_gbps > 0
        each = amounts[known] * 8e-9 / fabric.link_gbps[known, np.newaxis, np.newaxis]
        seconds = np.maximum(seconds, each.max(axis=(0, 1), initial=0.0))
    found = dict(zip((region for region, _ in split.groups), seconds.tolist(), strict=True))
    return found if any(found.values()) else None
