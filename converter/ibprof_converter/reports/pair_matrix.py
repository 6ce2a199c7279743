# SPDX-License-Identifier: Apache-2.0
"""Bytes from each sender to each receiver: a matrix small enough to read, and the pairs that send most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.exact_sums import find_distinct
from ibprof_converter.fabric.fabric_graph import LIDS
from ibprof_converter.hotspots.hot_links import add_up
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.traffic_data import RankTraffic, Traffic

CELLS = 64
"""Rows and columns of a matrix at most; beyond, neighbours share one."""

NAMED_PAIRS = 10

RANK = "rank"
HOST = "host"
LID = "LID"


@dataclass(frozen=True, slots=True)
class PairSum:
    """Bytes that one pair sends.

    Attributes:
        source, destination: ranks' numbers or hosts' names.
        bytes: the total.
        share: of the bytes in the matrix.
    """

    source: str
    destination: str
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """Bytes from each to each.

    Attributes:
        by: `RANK`, `HOST` or `LID`.
        names: of the first in each row.
        size: ranks or hosts.
        block: how many share a row.
        bytes: [row][column], from row to column.
        pairs: the `NAMED_PAIRS` that send most, the largest first.
        pairs_in_all: that send anything.
    """

    by: str
    names: tuple[str, ...]
    size: int
    block: int
    bytes: tuple[tuple[int, ...], ...]
    pairs: tuple[PairSum, ...]
    pairs_in_all: int


def matrix_of_ranks(demand: RankTraffic) -> PairMatrix:
    """Add up what ranks send one another."""
    names = [str(rank) for rank in range(demand.ranks)]
    return _build(RANK, names, demand.source, demand.destination, demand.bytes)


def matrix_of_recorded_hosts(demand: RankTraffic) -> PairMatrix | None:
    """Add up what hosts send one another, themselves too, as they were recorded; None where that was on one."""
    run = demand.profile
    if run is None or len(run.hosts) < 2:
        return None
    host = np.full(demand.ranks, NO_HOST, np.int32)
    for rank in run.ranks:
        if rank.rank < demand.ranks:
            host[rank.rank] = rank.host
    return _build_known([each.name for each in run.hosts], host[demand.source], host[demand.destination], demand.bytes)


def matrix_of_lids(traffic: Traffic) -> PairMatrix | None:
    """Add up what addresses send one another, where no fabric says whose they are; None where nothing is sent."""
    if not len(traffic.bytes):
        return None
    rails = 1 + int(traffic.rail.max())
    both = [traffic.rail.astype(np.int64) * LIDS + lid for lid in (traffic.source_lid, traffic.destination_lid)]
    used = np.unique(np.concatenate(both))
    names = [f"{key // LIDS}:{key % LIDS}" if rails > 1 else str(key) for key in used.tolist()]
    source, destination = (np.searchsorted(used, each) for each in both)
    return _build(LID, names, source, destination, traffic.bytes)


def matrix_of_hosts(placed: Traffic, subnets: Sequence[Subnet], hosts: Hosts) -> PairMatrix | None:
    """Add up what hosts of the fabric send one another over links; None where there are none."""
    source, destination = hosts_of_flows(placed, subnets, hosts)
    return _build_known(hosts.name, source, destination, placed.bytes)


def hosts_of_flows(
    placed: Traffic, subnets: Sequence[Subnet], hosts: Hosts
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the hosts that flows leave and enter, `NO_HOST` for none: int32 [flow] each."""
    of_lid = np.full((len(subnets), LIDS), NO_HOST, np.int32)
    for number, subnet in enumerate(subnets):
        node = subnet.fabric.lid_node[:LIDS]
        of_lid[number, : len(node)] = np.where(node >= 0, hosts.of_node[number][node], NO_HOST)
    rail = placed.rail if len(subnets) > 1 else np.zeros(len(placed.bytes), np.int32)
    # LID 0 is of no port.
    known = [np.where((lid > 0) & (lid < LIDS), lid, 0) for lid in (placed.source_lid, placed.destination_lid)]
    return of_lid[rail, known[0]], of_lid[rail, known[1]]


def _build_known(
    names: Sequence[str],
    source: npt.NDArray[np.int32],
    destination: npt.NDArray[np.int32],
    amounts: npt.NDArray[np.uint64],
) -> PairMatrix | None:
    """Build the matrix of those that are in use: a fabric may have thousands of hosts, and a job be on four."""
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
    block = max(-(-size // CELLS), 1)
    rows = -(-size // block)
    cells = np.zeros((rows, rows), np.uint64)
    np.add.at(cells, (source // block, destination // block), amounts)
    pairs, sums = add_up(source.astype(np.int64) * max(size, 1) + destination, amounts)
    total = sum_exactly(amounts)
    named = [
        PairSum(names[pair // size], names[pair % size], amount, amount / total)
        for pair, amount in zip(pairs[:NAMED_PAIRS].tolist(), sums[:NAMED_PAIRS].tolist(), strict=True)
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
