# SPDX-License-Identifier: Apache-2.0
"""Find the most loaded link directions, and their senders and receivers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.row_arrays import add_by_key
from ibprof_converter.fabric.fabric_graph import LIDS, Fabric
from ibprof_converter.layout.positions import FabricLayout, lower_ends
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.subnet_routes import scan_flows
from ibprof_converter.traffic.link_loads import (
    BY_BYTES,
    BY_TIME,
    Bounds,
    Loads,
    group_alike,
    joins_switches,
    measure_line_rate_s,
    rank_directions,
)
from ibprof_converter.traffic.traffic_data import NO_RANK, Traffic, join_parts

NAMED_PAIRS = 3
NAMED_SHARES = 5
"""Largest number of names in each list of shares (regions, sites, hosts, ...); `REST` sums all others."""

GROUPS = 8
"""Default number of groups of link directions with about equal load."""

HOST_LINK = "host"
SWITCH_LINK = "switch"

REST = "others"


@dataclass(frozen=True, slots=True)
class LinkPort:
    """One of a link's two ports, with its node."""

    guid: str
    name: str
    port: int

    @property
    def node(self) -> str:
        """Name of the node, or the GUID of a node without a name."""
        return self.name or self.guid

    def __str__(self) -> str:
        return f"{self.node} port {self.port}"


@dataclass(frozen=True, slots=True)
class Contention:
    """Flows that share a link direction.

    Attributes:
        flows: number of pairs of ports whose bytes pass the link direction.
        host_flows: largest number of flows that a sender or receiver of these flows has, on any links.
        ratio: `flows` / `host_flows`; above 1, more flows share this link direction than share any of these ports'
            links.
    """

    flows: int
    host_flows: int
    ratio: float


@dataclass(frozen=True, slots=True)
class NamedShare:
    """Part of the bytes of a link direction.

    Attributes:
        name: region, operation, call site, job or host; `REST` for the sum of all smaller parts.
        share: share of the link direction's bytes, 0 to 1.
    """

    name: str
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class PairShare:
    """Bytes of a pair of ranks on a link direction; if the traffic has no ranks, bytes of a pair of ports.

    Attributes:
        source_rank, destination_rank: rank numbers in their job; None if the traffic has no ranks.
        source, destination: node descriptions of the hosts.
        bytes, share: as in `NamedShare`.
        job: the pair's job; None if there is only one job.
    """

    source_rank: int | None
    destination_rank: int | None
    source: str
    destination: str
    bytes: int
    share: float
    job: str | None = None


@dataclass(frozen=True, slots=True)
class OtherPairs:
    """Sum of all pairs that `Contributors.rank_pairs` does not list.

    Attributes:
        pairs: number of these pairs.
        bytes, share: as in `NamedShare`.
    """

    pairs: int
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class Contributors:
    """Senders and receivers of a link direction's bytes; each list is sorted by bytes, descending.

    Attributes:
        rank_pairs: the pairs with the most bytes, at most `NAMED_PAIRS`.
        other_pairs: sum of all other pairs.
        regions, operations: shares by region and by operation, with a last entry `REST` for all others.
        jobs: shares by job; empty if there is only one job.
        sites: shares by call site; empty if fewer than two are known.
        sources, destinations: shares by sending host and by receiving host.
        contention: flows that share the link direction.
    """

    rank_pairs: tuple[PairShare, ...]
    other_pairs: OtherPairs
    regions: tuple[NamedShare, ...]
    operations: tuple[NamedShare, ...]
    jobs: tuple[NamedShare, ...]
    sites: tuple[NamedShare, ...]
    sources: tuple[NamedShare, ...]
    destinations: tuple[NamedShare, ...]
    contention: Contention


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A heavily loaded link direction.

    Attributes:
        rail: index of the rail.
        a, b: the link's two ports; `a` is on the lower level.
        end: "a" or "b", the sending port.
        kind: `HOST_LINK` or `SWITCH_LINK` (between switches).
        gbps: data rate in Gbit/s; None if unknown.
        bytes: bytes that the sending port sends; with adaptive routing, an estimate.
        share: `bytes` / sum of the bytes of all link directions.
        ratio_to_mean: `bytes` / mean of all link directions that carry bytes.
        line_rate_s: time of the bytes at the link's data rate; None if the rate is unknown.
        contributors: senders and receivers of the bytes along the forwarding tables; None without such bytes, and for
            port counters.
        static_bytes: with adaptive routing, the bytes along the forwarding tables; else None.
    """

    rail: int
    a: LinkPort
    b: LinkPort
    end: str
    kind: str
    gbps: float | None
    bytes: int
    share: float
    ratio_to_mean: float
    line_rate_s: float | None
    contributors: Contributors | None
    static_bytes: int | None = None

    @property
    def sender(self) -> LinkPort:
        """The sending side."""
        return self.a if self.end == "a" else self.b

    @property
    def receiver(self) -> LinkPort:
        """The receiving side."""
        return self.b if self.end == "a" else self.a


def compare_times(spot: Hotspot, first: Hotspot) -> float:
    """Return time of `spot` / time of `first` (the busiest link direction); ratio of bytes if a speed is unknown."""
    if spot.line_rate_s is None or not first.line_rate_s:
        return min(spot.bytes / first.bytes, 1.0)
    return spot.line_rate_s / first.line_rate_s


@dataclass(frozen=True, slots=True)
class LinkGroup:
    """Link directions with about the same load that join the same two levels.

    Attributes:
        busiest: the busiest link direction of the group.
        members: intp [direction, 3], rail, link and end of each direction, sorted by load, descending.
    """

    busiest: Hotspot
    members: npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class BusyLinks:
    """The most loaded link directions, sorted by load, descending.

    Attributes:
        hotspots: the most loaded of all link directions.
        switch_hotspots: the most loaded link directions between switches.
        groups: groups of the most loaded link directions with about equal load.
    """

    hotspots: tuple[Hotspot, ...]
    switch_hotspots: tuple[Hotspot, ...]
    groups: tuple[LinkGroup, ...]


@dataclass(frozen=True, slots=True)
class LinkHeat:
    """Largest and mean load of link directions. With adaptive routing, the loads are estimates.

    Attributes:
        links: number of links of all rails.
        links_used: number of links that carry bytes in any direction.
        max_link: bytes of the most loaded link direction.
        mean_link: mean bytes of all link directions that carry bytes.
        max_switch_link: bytes of the most loaded link direction between switches.
    """

    links: int
    links_used: int
    max_link: int
    mean_link: float
    max_switch_link: int


class FlowCounter:
    """Counts the destinations and sources of each LID of each rail."""

    def __init__(self, rails: int) -> None:
        self._sent, self._received = np.zeros((rails, LIDS), np.int64), np.zeros((rails, LIDS), np.int64)

    def add(self, rail: int, source_lid: npt.NDArray[np.int32], destination_lid: npt.NDArray[np.int32]) -> None:
        """Count flows of a rail. Pass all flows of a pair of LIDs in one call: a second call counts the pair again."""
        pairs = _pairs(source_lid, destination_lid)
        self._sent[rail] += np.bincount(pairs // LIDS, minlength=LIDS)
        self._received[rail] += np.bincount(pairs % LIDS, minlength=LIDS)

    def compare(self, rail: int, flows: Traffic) -> Contention:
        """Compare the number of flows on a link direction with the number of flows of each sender and receiver."""
        pairs = _pairs(flows.source_lid, flows.destination_lid)
        most = max(self._sent[rail, pairs // LIDS].max(initial=0), self._received[rail, pairs % LIDS].max(initial=0))
        return Contention(len(pairs), int(most), len(pairs) / max(int(most), 1))


def _pairs(source: npt.NDArray[np.int32], destination: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return each pair of LIDs once, as source * LIDS + destination."""
    key = source.astype(np.int64) * LIDS + destination
    # The rows of patterns, which can be very many, are already sorted and distinct.
    if len(key) < 2 or bool((key[1:] > key[:-1]).all()):
        return key
    # Since numpy 2.3, np.unique uses a hash table here, which is many times slower than sorting.
    key.sort()
    is_first = np.ones(len(key), np.bool_)
    is_first[1:] = key[1:] != key[:-1]
    return key[is_first]


class LinkDirections:
    """All link directions of all rails in one list, with their loads."""

    def __init__(
        self,
        subnets: Sequence[Subnet],
        layouts: Sequence[FabricLayout],
        loads: Loads,
        traffic: Traffic | None,
        bounds: Bounds | None = None,
    ) -> None:
        self._subnets = subnets
        self._traffic = traffic
        self._routed = max(loads.bytes_routed, 1)
        self._counter = FlowCounter(len(subnets))
        self._on_end: dict[int, Traffic] = {}
        self._lower = [lower_ends(subnet.fabric, layout) for subnet, layout in zip(subnets, layouts, strict=True)]
        static = [loaded.sum(axis=2, dtype=np.uint64) for loaded in loads.by_rail]
        totals = static if bounds is None else list(bounds.estimates)
        self._static = None if bounds is None else np.concatenate([total.reshape(-1) for total in static])
        self._totals = totals
        self._links = sum(map(len, totals))
        self._links_used = sum(int(total.any(axis=1).sum()) for total in totals)
        self._bytes = np.concatenate([total.reshape(-1) for total in totals])
        self._rail = np.repeat(np.arange(len(totals)), [total.size for total in totals])
        self._first = np.cumsum([0, *(total.size for total in totals)])
        self._seconds = measure_line_rate_s(
            self._bytes, np.concatenate([np.repeat(each.fabric.link_gbps, 2) for each in subnets])
        )
        self._between_switches = np.concatenate([np.repeat(joins_switches(each.fabric), 2) for each in subnets])
        self._kind = np.concatenate(
            [_number_kinds(each.fabric, layout) for each, layout in zip(subnets, layouts, strict=True)]
        )
        used = int(np.count_nonzero(self._bytes))
        self._mean = sum_exactly(self._bytes) / used if used else 0.0

    def heat(self) -> LinkHeat:
        """Return the largest load of a link direction, and the mean load of all link directions that carry bytes."""
        return LinkHeat(
            links=self._links,
            links_used=self._links_used,
            max_link=int(self._bytes.max(initial=0)),
            mean_link=self._mean,
            max_switch_link=int(self._bytes[self._between_switches].max(initial=0)),
        )

    def most_loaded(self, count: int, by: str = BY_TIME, groups: int = GROUPS) -> BusyLinks:
        """Return the most loaded link directions, those between switches, and groups with about equal load.

        Args:
            count: number of link directions in each list.
            by: one of `RANKINGS`.
            groups: number of groups.
        """
        order = rank_directions([each.fabric for each in self._subnets], self._totals, by_bytes=by == BY_BYTES)
        busiest: list[int] = order[:count].tolist()
        on_switches: list[int] = order[self._between_switches[order]][:count].tolist()
        by_time = by == BY_TIME and self._seconds.any()
        amounts = self._seconds if by_time else self._bytes.astype(np.float64)
        # Link directions without a load are in no group. If loads are times, a link with unknown speed has load 0.
        grouped = order[amounts[order] > 0]
        members = [grouped[each] for each in group_alike(amounts[grouped], self._kind[grouped], groups)]
        named = sorted({*busiest, *on_switches, *(int(each[0]) for each in members)})
        if self._traffic is not None and named:
            self._collect_flows(self._traffic, named)
        spots = {end: self._describe(end) for end in named}
        return BusyLinks(
            tuple(spots[end] for end in busiest),
            tuple(spots[end] for end in on_switches),
            tuple(LinkGroup(spots[int(each[0])], self._locate(each)) for each in members),
        )

    def _locate(self, indices: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """Return rail, link and end of link directions: intp [direction, 3]."""
        rail = self._rail[indices]
        link, end = np.divmod(indices - self._first[rail], 2)
        return np.stack([rail, link, end], axis=1)

    def _collect_flows(self, traffic: Traffic, indices: Sequence[int]) -> None:
        """Store the flows of each of the given link directions.

        Following flows is slow, so each flow is followed only once.
        """
        taken: dict[int, list[Traffic]] = {index: [] for index in indices}
        for part in traffic.parts():
            for rail, subnet in enumerate(self._subnets):
                here = np.flatnonzero(part.rail == rail)
                source, destination = part.source_lid[here], part.destination_lid[here]
                self._counter.add(rail, source, destination)
                wanted = [index for index in indices if self._rail[index] == rail]
                ends = [index - int(self._first[rail]) for index in wanted]
                for index, rows in zip(wanted, scan_flows(subnet.routes, source, destination, ends), strict=True):
                    taken[index].append(part.take(here[rows]))
        self._on_end = {index: join_parts(parts) for index, parts in taken.items()}

    def _describe(self, index: int) -> Hotspot:
        rail = int(self._rail[index])
        fabric = self._subnets[rail].fabric
        link, end = divmod(index - int(self._first[rail]), 2)
        lower = int(self._lower[rail][link])
        amount = int(self._bytes[index])
        gbps = float(fabric.link_gbps[link])
        return Hotspot(
            rail=rail,
            a=_find_port(fabric, link, lower),
            b=_find_port(fabric, link, 1 - lower),
            end="a" if end == lower else "b",
            kind=SWITCH_LINK if self._between_switches[index] else HOST_LINK,
            gbps=None if math.isnan(gbps) else gbps,
            bytes=amount,
            share=amount / self._routed,
            ratio_to_mean=amount / self._mean,
            line_rate_s=None if math.isnan(gbps) else float(self._seconds[index]),
            contributors=self._contributors(index, amount if self._static is None else int(self._static[index])),
            static_bytes=None if self._static is None else int(self._static[index]),
        )

    def _contributors(self, index: int, amount: int) -> Contributors | None:
        flows = self._on_end.get(index)
        if flows is None or not amount:
            return None
        rail = int(self._rail[index])
        fabric = self._subnets[rail].fabric
        rank_pairs, other_pairs = _pair_shares(flows, fabric, amount)

        def shares(key: npt.NDArray[np.int32], names: Sequence[str]) -> tuple[NamedShare, ...]:
            return _shares(key, flows.bytes, names, amount)

        return Contributors(
            rank_pairs=rank_pairs,
            other_pairs=other_pairs,
            regions=shares(flows.region, flows.regions),
            operations=shares(flows.operation, flows.operations),
            jobs=shares(flows.job, flows.jobs) if len(flows.jobs) > 1 else (),
            sites=shares(flows.site, flows.sites) if len(flows.sites) > 1 else (),
            sources=shares(fabric.lid_node[flows.source_lid], fabric.node_name),
            destinations=shares(fabric.lid_node[flows.destination_lid], fabric.node_name),
            contention=self._counter.compare(rail, flows),
        )


def _number_kinds(fabric: Fabric, layout: FabricLayout) -> npt.NDArray[np.int64]:
    """Encode the levels of each link direction's sender and receiver as one number: int64 [2 * link + end]."""
    level = layout.level[fabric.link_node].astype(np.int64)
    return (level << 32 | level[:, ::-1]).reshape(-1)


def _find_port(fabric: Fabric, link: int, end: int) -> LinkPort:
    node = fabric.link_node[link, end]
    return LinkPort(f"0x{int(fabric.node_guid[node]):016x}", fabric.node_name[node], int(fabric.link_port[link, end]))


def add_up(
    key: npt.NDArray[np.integer], counts: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Sum the bytes of each key. Return keys and sums, sorted by sum, descending."""
    keys, sums = add_by_key(key, counts)
    order = np.argsort(~sums, kind="stable")
    return keys[order], sums[order]


def _shares(
    key: npt.NDArray[np.int32], counts: npt.NDArray[np.uint64], names: Sequence[str], amount: int
) -> tuple[NamedShare, ...]:
    keys, sums = add_up(key, counts)
    shares = [
        NamedShare(names[index], value, value / amount)
        for index, value in zip(keys[:NAMED_SHARES].tolist(), sums[:NAMED_SHARES].tolist(), strict=True)
    ]
    if rest := sum_exactly(sums[NAMED_SHARES:]):
        shares.append(NamedShare(REST, rest, rest / amount))
    return tuple(shares)


def _pair_shares(flows: Traffic, fabric: Fabric, amount: int) -> tuple[tuple[PairShare, ...], OtherPairs]:
    """Sum the bytes of each pair of ranks, or of each pair of LIDs if the traffic has no ranks."""
    source, destination = flows.source_rank, flows.destination_rank
    if (source == NO_RANK).any():
        # A pair of LIDs that two jobs use counts as two pairs.
        job = flows.job.astype(np.int64) * LIDS if len(flows.jobs) > 1 else np.int64(0)
        source, destination = job + flows.source_lid, job + flows.destination_lid
    pair = source.astype(np.int64) << 32 | destination.astype(np.int64)
    keys, sums = add_up(pair, flows.bytes)
    greatest = []
    for key, value in zip(keys[:NAMED_PAIRS].tolist(), sums[:NAMED_PAIRS].tolist(), strict=True):
        flow = int(np.argmax(pair == key))
        ranks = int(flows.source_rank[flow]), int(flows.destination_rank[flow])
        greatest.append(
            PairShare(
                source_rank=None if ranks[0] == NO_RANK else flows.job_of_rank(ranks[0])[1],
                destination_rank=None if ranks[1] == NO_RANK else flows.job_of_rank(ranks[1])[1],
                source=fabric.node_name[fabric.lid_node[flows.source_lid[flow]]],
                destination=fabric.node_name[fabric.lid_node[flows.destination_lid[flow]]],
                bytes=value,
                share=value / amount,
                job=flows.jobs[flows.job[flow]] if len(flows.jobs) > 1 else None,
            )
        )
    rest = sum_exactly(sums[NAMED_PAIRS:])
    return tuple(greatest), OtherPairs(len(keys) - len(greatest), rest, rest / amount)
