# SPDX-License-Identifier: Apache-2.0
"""The time at line rate of the links that each region of a program loads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS
from ibprof_converter.traffic.loaded_links import load_links

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
