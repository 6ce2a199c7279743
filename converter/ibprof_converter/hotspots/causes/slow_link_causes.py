# SPDX-License-Identifier: Apache-2.0
"""Links slower than their peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ibprof_converter.hotspots.causes.load_cause import (
    SLOW_LINK,
    SMALL_GAIN,
    LoadCause,
    list_some,
    make_finding,
    name_end,
    name_node,
)
from ibprof_converter.hotspots.causes.situation import LinkDirection, Situation

_SLOWER = 0.99


def find_slow_links(situation: Situation) -> Iterator[LoadCause]:
    """Find whether the largest time is that of links that run slower than most links between the same two levels."""
    busiest = situation.most_loaded()
    usual = [_usual_gbps(situation, rail) for rail in range(len(situation.subnets))]
    fabric = situation.subnets[busiest.rail].fabric
    gbps = float(fabric.link_gbps[busiest.link])
    expected = float(usual[busiest.rail][busiest.link])
    if not gbps < _SLOWER * expected:
        return
    repaired = [
        replace(
            subnet,
            fabric=replace(subnet.fabric, link_gbps=np.fmax(subnet.fabric.link_gbps, rates)),
        )
        for subnet, rates in zip(situation.subnets, usual, strict=True)
    ]
    after = situation.changed(subnets=repaired)
    if after.max_seconds > SMALL_GAIN * situation.max_seconds:
        return
    slow = [
        LinkDirection(rail, int(link), int(seconds[link].argmax()))
        for rail, (subnet, rates, seconds) in enumerate(zip(situation.subnets, usual, situation.seconds, strict=True))
        for link in np.flatnonzero(
            (subnet.fabric.link_gbps < _SLOWER * rates) & (seconds.max(axis=1) > after.max_seconds)
        )
    ]
    slow.sort(key=lambda end: -situation.seconds[end.rail][end.link, end.end])
    names = [name_end(situation, end) for end in slow]
    ends = sorted(name_node(fabric, int(node)) for node in fabric.link_node[busiest.link])
    yield make_finding(
        SLOW_LINK,
        situation,
        after,
        names,
        [
            f"the link between {ends[0]} and {ends[1]} runs at {gbps:g} Gb/s; most links between the same two levels "
            f"run at {expected:g} Gb/s"
        ],
        f"have the cable and the two ports of {list_some(names)} looked at: at the speed of the others the busiest "
        "link would be done sooner",
    )


def _usual_gbps(situation: Situation, rail: int) -> npt.NDArray[np.float64]:
    """Return the commonest speed among the peers of each link: those between the same two levels; float64 [link]."""
    fabric, level = situation.subnets[rail].fabric, situation.levels[rail]
    pair = np.sort(level[fabric.link_node], axis=1)
    levels = pair[:, 0].astype(np.int64) * (int(level.max(initial=0)) + 1) + pair[:, 1]
    usual = fabric.link_gbps.copy()
    for kind in np.unique(levels):
        members = np.flatnonzero((levels == kind) & ~np.isnan(fabric.link_gbps))
        speeds, counts = np.unique(fabric.link_gbps[members], return_counts=True)
        # Half of the links of one speed are no fault of the other half.
        if len(speeds) and 2 * counts.max() > len(members):
            usual[members] = speeds[counts.argmax()]
    return usual
