# SPDX-License-Identifier: Apache-2.0
"""Bytes of a job in the model: from port to port, and between ranks on their present slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.row_arrays import add_by_key
from ibprof_converter.placement.slots import RankSlots, assign_slots, slots_as_taken, slots_on_hosts
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.adapter_policies import SPREAD, label_of_policy
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.traffic_data import NO_LID, NO_RANK, RankTraffic, Traffic

if TYPE_CHECKING:
    from ibprof_converter.placement.placement_problem import SlotOfRank


@dataclass(frozen=True, slots=True)
class PairBytes:
    """Bytes from LID to LID; arrays of one length. Each pair of a rail occurs once.

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
    """Bytes between ranks on slots of their present hosts.

    Attributes:
        source, destination: int32 [flow], ranks.
        rail: int32 [flow], rail of each flow; flows within a host have the rail that they would take.
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
        """Return the bytes that leave their host, from LID to LID.

        If the slots have several adapters of a rail, a flow is divided evenly over them. If its ranks have no common
        port on its rail, the flow takes the first rail with a common port.
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
    """Return the traffic between the ranks of a job; None if the ranks of some bytes are unknown.

    Args:
        placed: the flows on the network.
        demand: bytes between the ranks, including bytes within a host.
        hosts: the hosts of the rails.
        subnets: the rails.
    """
    if demand is None or len(placed.jobs) > 1 or len(placed.rank_lid) != demand.ranks or not demand.ranks:
        return None
    if (placed.source_rank == NO_RANK).any() or (placed.destination_rank == NO_RANK).any():
        return None
    host = _host_of_ranks(placed.rank_lid, hosts, subnets)
    if (host == NO_HOST).any() or (host[placed.source_rank] == host[placed.destination_rank]).any():
        return None  # The ends of a pattern may be adapters of one host.
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
    if (slots.lid == NO_LID).any():
        return None  # Ranks on hosts without a common rail could not communicate.
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
    """Return the host of each rank by its first port on any rail: int32 [rank], `NO_HOST` without a port."""
    host = np.full(len(rank_lid), NO_HOST, np.int32)
    for rail, subnet in reversed(list(enumerate(subnets))):
        known = rank_lid[:, rail] != NO_LID
        node = subnet.fabric.lid_node[rank_lid[known, rail]]
        host[known] = np.append(hosts.of_node[rail], np.int32(NO_HOST))[node]
    return host
