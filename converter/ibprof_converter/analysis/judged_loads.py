# SPDX-License-Identifier: Apache-2.0
"""The verdict on loads: is the network why their job is slow?"""

from __future__ import annotations

from dataclasses import dataclass

from ibprof.verdict.verdict_data import Verdict
from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.analysis.load_options import Progress, no_progress
from ibprof_converter.analysis.region_links import time_regions
from ibprof_converter.hotspots.causes.diagnosis import Diagnosis
from ibprof_converter.hotspots.link_report import LinkReport, report_on_links
from ibprof_converter.hotspots.verdict_links import judge_job
from ibprof_converter.routing.route_choice import describe_routes

TOP = 10
"""Link directions that a report lists, and that are compared where no flows are known."""


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
