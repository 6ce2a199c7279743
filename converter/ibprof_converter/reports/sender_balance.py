# SPDX-License-Identifier: Apache-2.0
"""How evenly ranks, hosts and rails share the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ibprof.profile.exact_sums import find_distinct
from ibprof_converter.analysis.fabric_loads import FabricLoads
from ibprof_converter.analysis.routed_fabric import RoutedFabric
from ibprof_converter.hotspots.run_sums import RunSummary
from ibprof_converter.reports.pair_matrix import hosts_of_flows
from ibprof_converter.reports.rail_sums import RailSum
from ibprof_converter.traffic.hosts import NO_HOST
from ibprof_converter.traffic.traffic_data import RankTraffic, Traffic


@dataclass(frozen=True, slots=True)
class SenderBalance:
    """How evenly senders share the bytes.

    Attributes:
        of: "ranks", "hosts" or "rails".
        count: how many there are.
        max_bytes, mean_bytes, min_bytes: of what one sends.
        ratio: the largest over the mean; 1 is even, 0 when nobody sends.
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


def weigh_senders(
    demand: RankTraffic | None, run: RunSummary | None, rails: Sequence[RailSum], loads: FabricLoads | None
) -> tuple[SenderBalance, ...]:
    """Return how evenly ranks, hosts and rails share the bytes, as far as they are known.

    Args:
        demand: the traffic between ranks.
        run: sums of the run that it was recorded in.
        rails: sums of rails; empty without a fabric.
        loads: of the fabric's links.
    """
    weighed = []
    if demand is not None and demand.ranks:
        sent = np.zeros(demand.ranks, np.uint64)
        np.add.at(sent, demand.source, demand.bytes)
        weighed.append(_balance("ranks", [f"rank {rank}" for rank in range(demand.ranks)], sent.tolist()))
    if run and len(run.hosts) > 1:
        sums = [host.bytes_sent for host in run.hosts]
        weighed.append(_balance("hosts", [host.name for host in run.hosts], sums))
    elif loads and loads.traffic:
        weighed += _weigh_hosts(loads.fabric, loads.traffic)
    if len(rails) > 1:
        weighed.append(_balance("rails", [f"rail {each.rail}" for each in rails], [each.bytes_sent for each in rails]))
    return tuple(weighed)


def _weigh_hosts(fabric: RoutedFabric, placed: Traffic) -> list[SenderBalance]:
    """Weigh what hosts send over links, of those that send or receive; nothing where that is a single one."""
    source, destination = hosts_of_flows(placed, fabric.subnets, fabric.hosts)
    used = find_distinct(source[source != NO_HOST], destination[destination != NO_HOST])
    if len(used) < 2:
        return []
    names = fabric.hosts.name
    sent = np.zeros(len(names), np.uint64)
    np.add.at(sent, source[source != NO_HOST], placed.bytes[source != NO_HOST])
    return [_balance("hosts", [names[host] for host in used.tolist()], sent[used].tolist())]


def _balance(of: str, names: Sequence[str], amounts: Sequence[int]) -> SenderBalance:
    greatest = max(range(len(amounts)), key=amounts.__getitem__)
    mean = sum(amounts) / len(amounts)
    most = amounts[greatest]
    return SenderBalance(
        of=of,
        count=len(amounts),
        max_bytes=most,
        mean_bytes=mean,
        min_bytes=min(amounts),
        ratio=most / mean if mean else 0.0,
        greatest=names[greatest],
        bytes=tuple(amounts),
    )
