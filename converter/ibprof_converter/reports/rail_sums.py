# SPDX-License-Identifier: Apache-2.0
"""Sums of loads, rail by rail and level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ibprof.native.kernel_library import sum_exactly
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.layout.lower_end import lower_ends
from ibprof_converter.layout.positions import FabricLayout
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.loaded_links import Loads


@dataclass(frozen=True, slots=True)
class RailSum:
    """Load of one rail.

    Attributes:
        rail: its number.
        name: of the fabric.
        bytes_sent: by the hosts' adapters onto it.
        share: of what they send onto all rails.
        links, links_used: how many, and how many of them carry anything.
        max_link: bytes of the link direction that carries most.
    """

    rail: int
    name: str
    bytes_sent: int
    share: float
    links: int
    links_used: int
    max_link: int


@dataclass(frozen=True, slots=True)
class LevelSum:
    """Load of the links between two levels of a rail. Bytes count once on each link that they pass.

    Attributes:
        rail: its number.
        lower, upper: the levels; hosts are on level 0.
        links, links_used: as in `RailSum`.
        bytes_up, bytes_down: away from the hosts' level, and towards it.
        max_link: as in `RailSum`.
        max_link_seconds: the largest time that a link direction needs at its speed; None where none is known.
    """

    rail: int
    lower: int
    upper: int
    links: int
    links_used: int
    bytes_up: int
    bytes_down: int
    max_link: int
    max_link_seconds: float | None


def sum_rails(subnets: Sequence[Subnet], loads: Loads) -> tuple[RailSum, ...]:
    """Return the load of each rail."""
    sums = []
    for rail, (subnet, loaded) in enumerate(zip(subnets, loads.by_rail, strict=True)):
        fabric = subnet.fabric
        total = loaded.sum(axis=2, dtype=np.uint64)
        from_host = fabric.node_kind[fabric.link_node] == NodeKind.CA
        used = int(total.any(axis=1).sum())
        sums.append(
            RailSum(rail, fabric.name, sum_exactly(total[from_host]), 0.0, len(total), used, int(total.max(initial=0)))
        )
    whole = sum(each.bytes_sent for each in sums)
    return tuple(
        RailSum(
            rail=each.rail,
            name=each.name,
            bytes_sent=each.bytes_sent,
            share=each.bytes_sent / whole if whole else 0.0,
            links=each.links,
            links_used=each.links_used,
            max_link=each.max_link,
        )
        for each in sums
    )


def sum_levels(subnets: Sequence[Subnet], layouts: Sequence[FabricLayout], loads: Loads) -> tuple[LevelSum, ...]:
    """Return the load of the links between each two levels."""
    sums = []
    for rail, (subnet, layout, loaded) in enumerate(zip(subnets, layouts, loads.by_rail, strict=True)):
        fabric = subnet.fabric
        total = loaded.sum(axis=2, dtype=np.uint64)
        links = np.arange(len(total))
        lower = lower_ends(fabric, layout)
        levels = layout.level[fabric.link_node]
        pair = np.stack([levels[links, lower], levels[links, 1 - lower]], axis=1)
        seconds = total.max(axis=1, initial=0) * 8 / (fabric.link_gbps * 1e9)
        for between in np.unique(pair, axis=0):
            here = np.flatnonzero((pair == between).all(axis=1))
            longest = float(np.nanmax(seconds[here])) if not np.isnan(seconds[here]).all() else None
            sums.append(
                LevelSum(
                    rail=rail,
                    lower=int(between[0]),
                    upper=int(between[1]),
                    links=len(here),
                    links_used=int(total[here].any(axis=1).sum()),
                    bytes_up=sum_exactly(total[here, lower[here]]),
                    bytes_down=sum_exactly(total[here, 1 - lower[here]]),
                    max_link=int(total[here].max(initial=0)),
                    max_link_seconds=longest,
                )
            )
    return tuple(sums)
