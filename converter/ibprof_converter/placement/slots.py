# SPDX-License-Identifier: Apache-2.0
"""The slots of the hosts that ranks may be placed on: one slot takes one rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.traffic.hosts import Hosts
from ibprof_converter.traffic.traffic_data import NO_LID


@dataclass(frozen=True, slots=True)
class RankSlots:
    """Hosts with their slots, in the order of their leaf switches.

    Attributes:
        name: [host].
        host: int32 [host], index in the fabric's `Hosts`.
        lid: int32 [host, rail].
        group: uint32 [host], ascending from 0: hosts of one leaf switch form a group.
        host_of_slot: uint32 [slot], ascending.
    """

    name: tuple[str, ...]
    host: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]
    group: npt.NDArray[np.uint32]
    host_of_slot: npt.NDArray[np.uint32]

    @property
    def count(self) -> int:
        """Number of slots."""
        return len(self.host_of_slot)

    @property
    def rails(self) -> npt.NDArray[np.uint8]:
        """Rails of each host as a bit mask: uint8 [host]."""
        bits: npt.NDArray[np.uint8] = (
            ((self.lid != NO_LID) << np.arange(self.lid.shape[1])).sum(axis=1).astype(np.uint8)
        )
        return bits

    @property
    def first_slot_of_group(self) -> npt.NDArray[np.uint32]:
        """The first slot of each group, then the number of slots: uint32 [group + 1]."""
        group = self.group[self.host_of_slot]
        return np.searchsorted(group, np.arange(int(self.group.max(initial=0)) + 2)).astype(np.uint32)


def assign_slots(hosts: Hosts, slots: dict[int, int], ranks: int) -> RankSlots:
    """Return the slots of hosts.

    Args:
        hosts: of the fabric.
        slots: host -> number of its slots.
        ranks: number of ranks to place.

    Raises:
        UsageError: there are fewer slots than ranks.
    """
    host = np.array(sorted(slots), np.int32)
    count = np.array([slots[number] for number in host.tolist()], np.int64)
    if ranks > count.sum():
        raise UsageError(
            f"{ranks} ranks need a slot each, and {len(host)} host(s) have {int(count.sum())}; --slots N adds slots"
        )
    _, group = np.unique(hosts.leaf[host], return_inverse=True)
    return RankSlots(
        name=tuple(hosts.name[number] for number in host.tolist()),
        host=host,
        lid=hosts.lid[host],
        group=group.astype(np.uint32),
        host_of_slot=np.repeat(np.arange(len(host)), count).astype(np.uint32),
    )


def slots_on_hosts(slots: RankSlots, host_of_rank: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32] | None:
    """Return a slot for each rank on the host that it runs on: uint32 [rank]; None if a host has too few slots."""
    in_order = list(enumerate(slots.host.tolist()))
    first = {host: int(np.searchsorted(slots.host_of_slot, index)) for index, host in in_order}
    last = {host: int(np.searchsorted(slots.host_of_slot, index, "right")) for index, host in in_order}
    slot_of_rank = np.zeros(len(host_of_rank), np.uint32)
    for rank, host in enumerate(host_of_rank.tolist()):
        if host not in first or first[host] == last[host]:
            return None
        slot_of_rank[rank] = first[host]
        first[host] += 1
    return slot_of_rank
