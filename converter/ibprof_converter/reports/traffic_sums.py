# SPDX-License-Identifier: Apache-2.0
"""Sum a job's traffic: bytes of each pair, load of each rail and level, balance of senders and of receivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.row_arrays import find_distinct
from ibprof_converter.analysis.pipeline_results import FabricLoads
from ibprof_converter.fabric.fabric_graph import LIDS, NodeKind
from ibprof_converter.hotspots.hot_links import add_up
from ibprof_converter.hotspots.run_sums import RunSummary
from ibprof_converter.layout.positions import FabricLayout, lower_ends
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.link_loads import Loads
from ibprof_converter.traffic.traffic_data import RankTraffic, Traffic

_MOST_ROWS = 64
"""Largest number of rows and columns of a matrix. With more ranks or hosts, adjacent ranks or hosts share a row."""

_NAMED_PAIRS = 10

RANK = "rank"
HOST = "host"
LID = "LID"

_SENT = "sent"
_RECEIVED = "received"


@dataclass(frozen=True, slots=True)
class PairSum:
    """Bytes of one pair.

    Attributes:
        source, destination: rank numbers or host names.
        bytes: total bytes of the pair.
        share: the pair's fraction of all bytes in the matrix.
    """

    source: str
    destination: str
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """Bytes from each sender to each receiver.

    Attributes:
        by: one of `RANK`, `HOST` and `LID`.
        names: name of each row: the first of the row's ranks, hosts or LIDs.
        size: number of ranks, hosts or LIDs.
        block: number of adjacent ranks, hosts or LIDs that share a row.
        bytes: [row][column], bytes from the row's ranks (hosts, LIDs) to the column's.
        pairs: the ten pairs with most bytes, the largest first.
        pairs_in_all: number of pairs with bytes.
    """

    by: str
    names: tuple[str, ...]
    size: int
    block: int
    bytes: tuple[tuple[int, ...], ...]
    pairs: tuple[PairSum, ...]
    pairs_in_all: int


def matrix_of_ranks(demand: RankTraffic) -> PairMatrix:
    """Return the bytes from rank to rank."""
    names = [str(rank) for rank in range(demand.ranks)]
    return _build(RANK, names, demand.source, demand.destination, demand.bytes)


def matrix_of_recorded_hosts(demand: RankTraffic) -> PairMatrix | None:
    """Return the bytes between recorded hosts, including bytes within hosts.

    The result is None if fewer than two hosts were recorded, or if the hosts' ranks exchanged no bytes.
    """
    run = demand.profile
    if run is None or len(run.hosts) < 2:
        return None
    host = np.full(demand.ranks, NO_HOST, np.int32)
    for rank in run.ranks:
        if rank.rank < demand.ranks:
            host[rank.rank] = rank.host
    return _build_known([each.name for each in run.hosts], host[demand.source], host[demand.destination], demand.bytes)


def matrix_of_lids(traffic: Traffic) -> PairMatrix | None:
    """Return the bytes from LID to LID of traffic without a fabric; None if there are no bytes."""
    if not len(traffic.bytes):
        return None
    rails = 1 + int(traffic.rail.max())
    both = [traffic.rail.astype(np.int64) * LIDS + lid for lid in (traffic.source_lid, traffic.destination_lid)]
    used = np.unique(np.concatenate(both))
    names = [f"{key // LIDS}:{key % LIDS}" if rails > 1 else str(key) for key in used.tolist()]
    source, destination = (np.searchsorted(used, each) for each in both)
    return _build(LID, names, source, destination, traffic.bytes)


def matrix_of_hosts(placed: Traffic, subnets: Sequence[Subnet], hosts: Hosts) -> PairMatrix | None:
    """Return the bytes over links from host to host of the fabric; None if no host sent bytes to another host."""
    return _build_known(hosts.name, *_find_hosts(placed, subnets, hosts), placed.bytes)


def _find_hosts(
    placed: Traffic, subnets: Sequence[Subnet], hosts: Hosts
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return each flow's sending and receiving host: int32 [flow] each, `NO_HOST` if the port belongs to no host."""
    of_lid = np.full((len(subnets), LIDS), NO_HOST, np.int32)
    for number, subnet in enumerate(subnets):
        node = subnet.fabric.lid_node[:LIDS]
        of_lid[number, : len(node)] = np.where(node >= 0, hosts.of_node[number][node], NO_HOST)
    rail = placed.rail if len(subnets) > 1 else np.zeros(len(placed.bytes), np.int32)
    # Replace impossible LIDs by LID 0, which belongs to no port.
    known = [np.where((lid > 0) & (lid < LIDS), lid, 0) for lid in (placed.source_lid, placed.destination_lid)]
    return of_lid[rail, known[0]], of_lid[rail, known[1]]


def _build_known(
    names: Sequence[str],
    source: npt.NDArray[np.int32],
    destination: npt.NDArray[np.int32],
    amounts: npt.NDArray[np.uint64],
) -> PairMatrix | None:
    """Return the matrix of bytes between hosts; None if no flow has two known hosts."""
    both = (source != NO_HOST) & (destination != NO_HOST)
    used = find_distinct(source[both], destination[both])
    if not len(used):
        return None
    row, column = np.searchsorted(used, source[both]), np.searchsorted(used, destination[both])
    return _build(HOST, [names[number] for number in used.tolist()], row, column, amounts[both])


def _build(
    by: str,
    names: Sequence[str],
    source: npt.NDArray[np.integer],
    destination: npt.NDArray[np.integer],
    amounts: npt.NDArray[np.uint64],
) -> PairMatrix:
    size = len(names)
    block = max(-(-size // _MOST_ROWS), 1)
    rows = -(-size // block)
    cells = np.zeros((rows, rows), np.uint64)
    np.add.at(cells, (source // block, destination // block), amounts)
    pairs, sums = add_up(source.astype(np.int64) * max(size, 1) + destination, amounts)
    total = sum_exactly(amounts)
    named = [
        PairSum(names[pair // size], names[pair % size], amount, amount / total)
        for pair, amount in zip(pairs[:_NAMED_PAIRS].tolist(), sums[:_NAMED_PAIRS].tolist(), strict=True)
        if amount
    ]
    return PairMatrix(
        by=by,
        names=tuple(names[::block]),
        size=size,
        block=block,
        bytes=tuple(tuple(row) for row in cells.tolist()),
        pairs=tuple(named),
        pairs_in_all=int(np.count_nonzero(sums)),
    )


@dataclass(frozen=True, slots=True)
class RailSum:
    """Load of one rail.

    Attributes:
        rail: the rail's number.
        bytes_sent: bytes that the hosts' adapters inject.
        share: `bytes_sent` / bytes injected into all rails.
        links, links_used: number of links, and of links with traffic.
        max_link: bytes of the most loaded link direction.
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
    """Load of the links between two levels of a rail. A byte counts on each link of its route.

    Attributes:
        rail: the rail's number.
        lower, upper: the levels; hosts are on level 0.
        links, links_used: numbers of links, as in `RailSum`.
        bytes_up, bytes_down: bytes to the upper level, and to the lower level.
        max_link: bytes of the most loaded link direction.
        max_link_seconds: the longest time of a link direction at line rate; None if no speed is known.
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
    totals = [loaded.sum(axis=2, dtype=np.uint64) for loaded in loads.by_rail]
    sent = [
        sum_exactly(total[subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.CA])
        for subnet, total in zip(subnets, totals, strict=True)
    ]
    whole = sum(sent)
    return tuple(
        RailSum(
            rail=rail,
            name=subnet.fabric.name,
            bytes_sent=sent[rail],
            share=sent[rail] / whole if whole else 0.0,
            links=len(total),
            links_used=int(total.any(axis=1).sum()),
            max_link=int(total.max(initial=0)),
        )
        for rail, (subnet, total) in enumerate(zip(subnets, totals, strict=True))
    )


def sum_levels(subnets: Sequence[Subnet], layouts: Sequence[FabricLayout], loads: Loads) -> tuple[LevelSum, ...]:
    """Return the load of the links between each pair of levels."""
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


@dataclass(frozen=True, slots=True)
class SenderBalance:
    """Balance of sent or received bytes over ranks, hosts or rails.

    Attributes:
        of: one of "ranks", "hosts" and "rails".
        count: number of ranks, hosts or rails (members).
        max_bytes, mean_bytes, min_bytes: largest, mean and smallest bytes of a member.
        ratio: max/mean; 1 if all members have equal bytes, 0 if there is no traffic.
        greatest: member with most bytes.
        bytes: bytes of each member, in order of their numbers.
        direction: one of `sent` and `received`.
    """

    of: str
    count: int
    max_bytes: int
    mean_bytes: float
    min_bytes: int
    ratio: float
    greatest: str
    bytes: tuple[int, ...]
    direction: str


def sender_imbalance(
    demand: RankTraffic | None, run: RunSummary | None, rails: Sequence[RailSum], loads: FabricLoads | None
) -> tuple[SenderBalance, ...]:
    """Return those balances that are known: of sent and received bytes over ranks and hosts, of sent bytes over rails.

    Args:
        run: sums of the recorded run.
        rails: sums of rails; empty without a fabric.
    """
    weighed = []
    for direction in (_SENT, _RECEIVED):
        if demand is not None and demand.ranks:
            amounts = np.zeros(demand.ranks, np.uint64)
            np.add.at(amounts, demand.source if direction == _SENT else demand.destination, demand.bytes)
            names = [f"rank {rank}" for rank in range(demand.ranks)]
            weighed.append(_balance("ranks", names, amounts.tolist(), direction))
        if run and len(run.hosts) > 1:
            sums = [host.bytes_sent if direction == _SENT else host.bytes_received for host in run.hosts]
            weighed.append(_balance("hosts", [host.name for host in run.hosts], sums, direction))
        elif loads and loads.traffic:
            fabric, placed = loads.fabric, loads.traffic
            ends = dict(zip((_SENT, _RECEIVED), _find_hosts(placed, fabric.subnets, fabric.hosts), strict=True))
            used = find_distinct(*(host[host != NO_HOST] for host in ends.values()))
            if len(used) > 1:
                host = ends[direction]
                amounts = np.zeros(len(fabric.hosts.name), np.uint64)
                np.add.at(amounts, host[host != NO_HOST], placed.bytes[host != NO_HOST])
                names = [fabric.hosts.name[each] for each in used.tolist()]
                weighed.append(_balance("hosts", names, amounts[used].tolist(), direction))
        if len(rails) > 1 and direction == _SENT:
            names = [f"rail {each.rail}" for each in rails]
            weighed.append(_balance("rails", names, [each.bytes_sent for each in rails], direction))
    return tuple(weighed)


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
