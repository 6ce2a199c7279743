# SPDX-License-Identifier: Apache-2.0
"""Regions, operations and call sites by their bytes on the most loaded link direction, as folded stacks."""

from __future__ import annotations

from ibprof.errors import UsageError
from ibprof.profile.folded_stacks import fold_stacks
from ibprof.text.call_names import name_call
from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.analysis.links_over_time import find_busiest, name_end
from ibprof_converter.traffic.loaded_links import load_links
from ibprof_converter.traffic.traffic_data import ALL


def fold_busiest_link(loads: FabricLoads) -> str:
    """Return a line `LINK;region;operation;line BYTES` for each call that loads the most loaded link direction.

    It is the busiest by its time at line rate along static routes. What the traffic does not distinguish is left out.

    Raises:
        UsageError: bytes were counted at the ports, or no link carries any.
    """
    busiest = find_busiest(loads)
    if loads.traffic is None or not busiest:
        raise UsageError("--folded: no link carries bytes whose senders are known")
    rail, link, end = busiest[0]
    split = load_links(loads.traffic, loads.fabric.subnets, by_region=True, by_operation=True, by_site=True)
    amounts = split.by_rail[rail][link, end].tolist()
    jobs = split.jobs or (ALL,) * len(amounts)
    calls = (
        (job, region, name_call(operation), site)
        for job, (region, operation), site in zip(jobs, split.groups, split.sites, strict=True)
    )
    link_name = name_end(loads, rail, link, end)
    stacks = [(link_name, *(name for name in call if name != ALL)) for call in calls]
    return fold_stacks(sorted(zip(stacks, amounts, strict=True), key=lambda row: -row[1]))
