# SPDX-License-Identifier: Apache-2.0
"""How evenly ranks, hosts and rails share the bytes that they send, and those that they receive."""

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

SENT = "sent"
RECEIVED = "received"


@dataclass(frozen=True, slots=True)
class SenderBalance:
    """How evenly senders, or receivers, share the bytes.

    Attributes:
        of: "ranks", "hosts" or "rails".
        count: how many there are.
        max_bytes, mean_bytes, min_bytes: of what one sends or receives.
        ratio: the largest over the mean; 1 is even, 0 when nobody does.
        greatest: the one that sends or receives most.
        bytes: of each, in their order.
        direction: `SENT` or `RECEIVED`.
    """

    of: str
    count: int
    max_bytes: int
    mean_bytes: float
    min_bytes: int
    ratio: float
    greatest: str
    bytes: tuple[int, ...]
    direction: str = SENT


def sender_imbalance(
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
    for direction in (SENT, RECEIVED):
        if demand is not None and demand.ranks:
            amounts = np.zeros(demand.ranks, np.uint64)
            np.add.at(amounts, demand.source if direction == SENT else demand.destination, demand.bytes)
            names = [f"rank {rank}" for rank in range(demand.ranks)]
            weighed.append(_balance("ranks", names, amounts.tolist(), direction))
        if run and len(run.hosts) > 1:
            sums = [host.bytes_sent if direction == SENT else host.bytes_received for host in run.hosts]
            weighed.append(_balance("hosts", [host.name for host in run.hosts], sums, direction))
        elif loads and loads.traffic:
            weighed += _weigh_hosts(loads.fabric, loads.traffic, direction)
        if len(rails) > 1 and direction == SENT:
            names = [f"rail {each.rail}" for each in rails]
            weighed.append(_balance("rails", names, [each.bytes_sent for each in rails], direction))
    return tuple(weighed)


def _weigh_hosts(fabric: RoutedFabric, placed: Traffic, direction: str) -> list[SenderBalance]:
    """Weigh what hosts send or receive over links, of those that do either; nothing where that is a single one."""
    source, destination = hosts_of_flows(placed, fabric.subnets, fabric.hosts)
    used = find_distinct(source[source != NO_HOST], destination[destination != NO_HOST])
    if len(used) < 2:
        return []
    host = source if direction == SENT else destination
    names = fabric.hosts.name
    amounts = np.zeros(len(names), np.uint64)
    np.add.at(amounts, host[host != NO_HOST], placed.bytes[host != NO_HOST])
    return [_balance("hosts", [names[each] for each in used.tolist()], amounts[used].tolist(), direction)]


def _balance(of: str, names: Sequence[str], amounts: Sequence[int], direction: str) -> SenderBalance:
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
        direction=direction,
    )
