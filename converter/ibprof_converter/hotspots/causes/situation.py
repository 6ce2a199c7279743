# SPDX-License-Identifier: Apache-2.0
"""The model in which causes are found: a job's flows on a fabric, and the times of link directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.row_arrays import add_by_key
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.placement.slots import RankSlots, assign_slots, hold_together, slots_as_taken, slots_on_hosts
from ibprof_converter.routing.spread import spread
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.adapter_policies import SPREAD, label_of_policy
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.link_loads import joins_switches, measure_line_rate_s, rank_directions
from ibprof_converter.traffic.traffic_data import NO_LID, NO_RANK, RankTraffic, Traffic
from ibprof_converter.traffic.training_jobs import tensor_group_size

if TYPE_CHECKING:
    from ibprof_converter.placement.placement_problem import SlotOfRank
    from ibprof_converter.routing.adaptive_paths import AdaptivePaths


@dataclass(frozen=True, slots=True)
class LinkDirection:
    """A link direction: index of the rail, of the link in the fabric, and of the sending end (0 or 1)."""

    rail: int
    link: int
    end: int


class Situation:
    """Flows on rails.

    Attributes:
        subnets: the rails.
        hosts: the hosts of the rails.
        flows: bytes from LID to LID.
        is_adaptive: true if switches route adaptively; times then come from the estimated loads.
        ranks: the flows between ranks; None if ranks are unknown or cannot be moved (`find_rank_flows`).
    """

    def __init__(
        self,
        subnets: Sequence[Subnet],
        hosts: Hosts,
        flows: PairBytes,
        is_adaptive: bool = False,
        ranks: RankFlows | None = None,
    ) -> None:
        self.subnets = tuple(subnets)
        self.hosts = hosts
        self.flows = flows
        self.is_adaptive = is_adaptive
        self.ranks = ranks

    @cached_property
    def adaptive_paths(self) -> tuple[AdaptivePaths, ...]:
        """The link directions from which adaptive switches choose, for each rail."""
        from ibprof_converter.routing.adaptive_paths import AdaptivePaths  # noqa: PLC0415  (few switches route adaptively)

        return tuple(AdaptivePaths(subnet.routes.network, subnet.adaptive) for subnet in self.subnets)

    @cached_property
    def _along_tables(self) -> tuple[tuple[npt.NDArray[np.uint64], ...], int]:
        """Two values. Bytes sent along the tables: for each rail uint64 [link, end]. Sum of bytes without a route."""
        loads, lost = [], 0
        for rail, subnet in enumerate(self.subnets):
            flows = self._flows_of(rail)
            found = spread(subnet.routes, *flows, np.zeros(len(flows[0]), np.int64), 1)
            loads.append(found.bytes[:, :, 0])
            lost += sum(found.unrouted.values())
        return tuple(loads), lost

    def _flows_of(self, rail: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint64]]:
        here = self.flows.rail == rail
        return self.flows.source_lid[here], self.flows.destination_lid[here], self.flows.bytes[here]

    @property
    def lost_bytes(self) -> int:
        """Bytes without a route in the forwarding tables."""
        return self._along_tables[1]

    @cached_property
    def amounts(self) -> tuple[npt.NDArray[np.uint64], ...]:
        """Bytes of each link direction: uint64 [link, end] for each rail; estimates with adaptive routing."""
        if not self.is_adaptive:
            return self._along_tables[0]
        from ibprof_converter.routing.adaptive_bounds import estimate_adaptive  # noqa: PLC0415  (few switches route adaptively)

        return tuple(
            np.rint(estimate_adaptive(paths, [self._flows_of(rail)])).astype(np.uint64)
            for rail, paths in enumerate(self.adaptive_paths)
        )

    @cached_property
    def seconds(self) -> tuple[npt.NDArray[np.float64], ...]:
        """Time of each link direction at line rate: float64 [link, end] for each rail; 0 if the speed is unknown."""
        return tuple(
            measure_line_rate_s(amounts, subnet.fabric.link_gbps[:, np.newaxis])
            for amounts, subnet in zip(self.amounts, self.subnets, strict=True)
        )

    @cached_property
    def max_host_seconds(self) -> float:
        """The largest time of a link direction from or to a host."""
        return max(
            float(each[~joins_switches(subnet.fabric)].max(initial=0.0))
            for each, subnet in zip(self.seconds, self.subnets, strict=True)
        )

    @cached_property
    def max_switch_seconds(self) -> float:
        """The largest time of a link direction between switches."""
        return max(
            float(each[joins_switches(subnet.fabric)].max(initial=0.0))
            for each, subnet in zip(self.seconds, self.subnets, strict=True)
        )

    @property
    def max_seconds(self) -> float:
        """The largest time of a link direction."""
        return max(self.max_host_seconds, self.max_switch_seconds)

    @cached_property
    def levels(self) -> tuple[npt.NDArray[np.int32], ...]:
        """Level of each node, for each rail."""
        return tuple(find_levels(subnet.fabric) for subnet in self.subnets)

    @cached_property
    def _ranked(self) -> npt.NDArray[np.intp]:
        return rank_directions([subnet.fabric for subnet in self.subnets], self.amounts)

    def most_loaded(self) -> LinkDirection:
        """Return the most loaded link direction; without loads, the first link direction."""
        return self._locate(next(iter(self._ranked.tolist()), 0))

    def most_loaded_between_switches(self) -> LinkDirection | None:
        """Return the most loaded link direction between switches; None without times between switches."""
        takes_time = [
            (joins_switches(subnet.fabric)[:, np.newaxis] & (seconds > 0)).reshape(-1)
            for subnet, seconds in zip(self.subnets, self.seconds, strict=True)
        ]
        between = self._ranked[np.concatenate(takes_time)[self._ranked]]
        return self._locate(int(between[0])) if len(between) else None

    def _locate(self, direction: int) -> LinkDirection:
        """Return the link direction of an index from `rank_directions`, which numbers the directions of all rails."""
        rail = 0
        while direction >= self.amounts[rail].size:
            direction -= self.amounts[rail].size
            rail += 1
        return LinkDirection(rail, *divmod(direction, 2))

    def host_of(self, rail: int, lid: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
        """Return the host of each LID of a rail; `NO_HOST` for a LID that belongs to no host."""
        node = self.subnets[rail].fabric.lid_node[lid]
        return np.asarray(np.append(self.hosts.of_node[rail], np.int32(NO_HOST))[node])

    @cached_property
    def flow_hosts(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Source and destination host of each flow: int32 [flow] each."""
        ends = []
        for lid in (self.flows.source_lid, self.flows.destination_lid):
            host = np.full(len(lid), NO_HOST, np.int32)
            for rail in range(len(self.subnets)):
                here = self.flows.rail == rail
                host[here] = self.host_of(rail, lid[here])
            ends.append(host)
        return ends[0], ends[1]

    @cached_property
    def flow_adapters(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Adapter numbers of each flow's source and destination, counted per host and rail: intp [flow] each."""
        numbers = []
        for lid, host in zip((self.flows.source_lid, self.flows.destination_lid), self.flow_hosts, strict=True):
            base = lid.copy()
            for rail, subnet in enumerate(self.subnets):
                here = self.flows.rail == rail
                base[here] = subnet.fabric.port_lid[subnet.fabric.lid_port[lid[here]]]
            numbers.append((self.hosts.ports[host, self.flows.rail] == base[:, np.newaxis]).argmax(axis=1))
        return numbers[0], numbers[1]

    def changed(self, subnets: Sequence[Subnet] | None = None, flows: PairBytes | None = None) -> Situation:
        """Return the situation with other rails or flows on the same hosts. If flows are given, `ranks` is None."""
        ranks = None if flows else self.ranks
        return self._with(subnets or self.subnets, flows or self.flows, ranks, has_same_links=not subnets)

    def reordered(self, slot_of_rank: SlotOfRank) -> Situation:
        """Return the situation with another placement of the ranks on the same slots."""
        assert self.ranks is not None
        ranks = replace(self.ranks, slot_of_rank=slot_of_rank)
        return self._with(self.subnets, ranks.on_network(len(self.subnets)), ranks, has_same_links=True)

    def _with(
        self, subnets: Sequence[Subnet], flows: PairBytes, ranks: RankFlows | None, has_same_links: bool
    ) -> Situation:
        situation = Situation(subnets, self.hosts, flows, self.is_adaptive, ranks)
        if self.is_adaptive and has_same_links:
            situation.adaptive_paths = self.adaptive_paths
        return situation


@dataclass(frozen=True, slots=True)
class PairBytes:
    """Bytes from LID to LID: arrays of equal length. Each (rail, source, destination) occurs once.

    Attributes:
        rail, source_lid, destination_lid: int32, rail and LIDs of each pair.
        bytes: uint64, bytes of each pair.
    """

    rail: npt.NDArray[np.int32]
    source_lid: npt.NDArray[np.int32]
    destination_lid: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]

    @classmethod
    def add_up(
        cls,
        rail: npt.NDArray[np.integer],
        source_lid: npt.NDArray[np.integer],
        destination_lid: npt.NDArray[np.integer],
        bytes: npt.NDArray[np.uint64],
    ) -> PairBytes:
        """Sum rows of the same rail and LIDs."""
        key = (rail.astype(np.int64) << 32) | (source_lid.astype(np.int64) << 16) | destination_lid.astype(np.int64)
        keys, total = add_by_key(key, bytes)
        return cls(
            (keys >> 32).astype(np.int32),
            (keys >> 16 & 0xFFFF).astype(np.int32),
            (keys & 0xFFFF).astype(np.int32),
            total,
        )

    @classmethod
    def of_traffic(cls, traffic: Traffic) -> PairBytes:
        """Return the flows of a traffic."""
        return cls.add_up(traffic.rail, traffic.source_lid, traffic.destination_lid, traffic.bytes)


@dataclass(frozen=True, slots=True)
class RankFlows:
    """Bytes between ranks; each rank has a slot on its present host.

    Attributes:
        source, destination: int32 [flow], ranks.
        rail: int32 [flow], rail of each flow; bytes within hosts are divided over rails in proportion to network bytes.
        bytes: uint64 [flow], bytes of each flow.
        slots: one slot for each rank, on the rank's host, with the adapters that the rank uses.
        slot_of_rank: the present placement.
    """

    source: npt.NDArray[np.int32]
    destination: npt.NDArray[np.int32]
    rail: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]
    slots: RankSlots
    slot_of_rank: SlotOfRank

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.slot_of_rank)

    def on_network(self, rails: int) -> PairBytes:
        """Return the bytes between hosts, from LID to LID.

        A flow is divided evenly over the slots' adapters on the flow's rail. If a rank has no port on this rail, the
        flow uses the first rail on which both ranks have ports.
        """
        slots, at = self.slots, self.slot_of_rank
        apart = np.flatnonzero(slots.host_of_slot[at[self.source]] != slots.host_of_slot[at[self.destination]])
        of_rank = slots.lid[slots.port_of_slot[at]]
        ends = of_rank[self.source[apart]], of_rank[self.destination[apart]]
        joined = (ends[0] != NO_LID) & (ends[1] != NO_LID)
        of_rail = np.arange(slots.lid.shape[1]) % rails
        usable = joined & (of_rail == self.rail[apart, np.newaxis])
        elsewhere = ~usable.any(axis=1)
        usable[elsewhere] = joined[elsewhere] & (joined[elsewhere].cumsum(axis=1) == 1)
        flow, column = np.nonzero(usable)
        shares = usable.sum(axis=1).astype(np.uint64)[flow]
        amount = self.bytes[apart][flow]
        turn = (usable.cumsum(axis=1)[flow, column] - 1).astype(np.uint64)
        return PairBytes.add_up(
            of_rail[column], ends[0][flow, column], ends[1][flow, column], amount // shares + (turn < amount % shares)
        )

    def as_demand(self) -> RankTraffic:
        """Return the bytes as traffic without rails."""
        return RankTraffic.without_regions(self.source, self.destination, self.bytes, self.ranks, "flows of the model")


def find_rank_flows(
    placed: Traffic, demand: RankTraffic | None, hosts: Hosts, subnets: Sequence[Subnet]
) -> RankFlows | None:
    """Return the traffic between a job's ranks; None if the search cannot move the ranks to other slots.

    The result is None for several jobs, and for bytes with an unknown rank or host. The result is also None if a host
    is not on all rails, or if the search does not support `SPREAD` on these hosts.

    Args:
        placed: the flows on the network.
        demand: bytes between the ranks, including bytes within a host; None if the traffic has no ranks.
        hosts: the hosts of the rails.
        subnets: the rails.
    """
    if demand is None or len(placed.jobs) > 1 or len(placed.rank_lid) != demand.ranks or not demand.ranks:
        return None
    if (placed.source_rank == NO_RANK).any() or (placed.destination_rank == NO_RANK).any():
        return None
    host = _host_of_ranks(placed.rank_lid, hosts, subnets)
    if (host == NO_HOST).any() or (host[placed.source_rank] == host[placed.destination_rank]).any():
        return None  # the ranks of a pattern may be adapters: two adapters of one host send to each other
    if placed.nic == label_of_policy(SPREAD):
        try:
            own = {number: int((host == number).sum()) for number in np.unique(host).tolist()}
            slots = assign_slots(hosts, own, len(host), SPREAD)
        except UsageError:
            return None
        slot_of_rank = slots_on_hosts(slots, host)
        assert slot_of_rank is not None
    else:
        slots, slot_of_rank = slots_as_taken(hosts, host, placed.rank_lid)
    held = hold_together(slots, tensor_group_size(demand.origin))
    slots = held if held.keeps_groups(slot_of_rank) else slots
    if (slots.lid == NO_LID).any():
        return None  # without a port on every rail, a rank may be unable to reach another rank
    within = np.flatnonzero(host[demand.source] == host[demand.destination])
    by_rail = np.bincount(placed.rail, weights=placed.bytes.astype(np.float64), minlength=len(subnets))
    share = by_rail / by_rail.sum() if by_rail.sum() else np.full(len(subnets), 1 / len(subnets))
    used = np.flatnonzero(share)
    parts = [(demand.bytes[within] * share[rail]).astype(np.uint64) for rail in used]
    source = np.concatenate([placed.source_rank, np.tile(demand.source[within], len(used))])
    destination = np.concatenate([placed.destination_rank, np.tile(demand.destination[within], len(used))])
    return RankFlows(
        source=source.astype(np.int32),
        destination=destination.astype(np.int32),
        rail=np.concatenate([placed.rail, np.repeat(used, len(within))]).astype(np.int32),
        bytes=np.concatenate([placed.bytes, *parts]),
        slots=slots,
        slot_of_rank=slot_of_rank,
    )


def _host_of_ranks(rank_lid: npt.NDArray[np.int32], hosts: Hosts, subnets: Sequence[Subnet]) -> npt.NDArray[np.int32]:
    """Return the host of each rank's port on the rank's first rail: int32 [rank], `NO_HOST` without a port."""
    host = np.full(len(rank_lid), NO_HOST, np.int32)
    for rail, subnet in reversed(list(enumerate(subnets))):
        known = rank_lid[:, rail] != NO_LID
        node = subnet.fabric.lid_node[rank_lid[known, rail]]
        host[known] = np.append(hosts.of_node[rail], np.int32(NO_HOST))[node]
    return host
