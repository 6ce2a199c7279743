# SPDX-License-Identifier: Apache-2.0
"""The slots of the hosts that ranks may be placed on: one slot takes one rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic import adapter_policies
from ibprof_converter.traffic.adapter_policies import label_of_policy
from ibprof_converter.traffic.hosts import Hosts, count_ports
from ibprof_converter.traffic.traffic_data import NO_LID


@dataclass(frozen=True, slots=True)
class RankSlots:
    """Hosts with their slots, in the order of their leaf switches.

    Attributes:
        name: [host].
        host: int32 [host], index in the fabric's `Hosts`.
        group: uint32 [host], ascending from 0: hosts of one leaf switch form a group. A host with several adapters is
            in the group of the first one's leaf.
        host_of_slot: uint32 [slot], ascending.
        port_of_slot: uint32 [slot], what the rank on it sends by: an adapter of its host, one on each rail.
        lid: int32 [port, rail], the LIDs of these adapters.
        nic: how the choice among a host's adapters is known; None where no host has several on one rail.
    """

    name: tuple[str, ...]
    host: npt.NDArray[np.int32]
    group: npt.NDArray[np.uint32]
    host_of_slot: npt.NDArray[np.uint32]
    port_of_slot: npt.NDArray[np.uint32]
    lid: npt.NDArray[np.int32]
    nic: str | None = None

    @property
    def count(self) -> int:
        """Number of slots."""
        return len(self.host_of_slot)

    @property
    def rails(self) -> npt.NDArray[np.uint8]:
        """Rails of each port as a bit mask: uint8 [port]."""
        bits: npt.NDArray[np.uint8] = (
            ((self.lid != NO_LID) << np.arange(self.lid.shape[1])).sum(axis=1).astype(np.uint8)
        )
        return bits

    @property
    def first_slot_of_host(self) -> npt.NDArray[np.uint32]:
        """The first slot of each host, then the number of slots: uint32 [host + 1]."""
        return np.searchsorted(self.host_of_slot, np.arange(len(self.host) + 1)).astype(np.uint32)

    @property
    def has_several(self) -> bool:
        """True where a host has more than one slot."""
        return self.count > len(np.unique(self.host_of_slot))

    @property
    def most_of_a_host(self) -> int:
        """The largest number of slots of a host."""
        return int(np.bincount(self.host_of_slot).max(initial=0))

    @property
    def first_slot_of_group(self) -> npt.NDArray[np.uint32]:
        """The first slot of each group, then the number of slots: uint32 [group + 1]."""
        group = self.group[self.host_of_slot]
        return np.searchsorted(group, np.arange(int(self.group.max(initial=0)) + 2)).astype(np.uint32)

    @property
    def is_numbered(self) -> npt.NDArray[np.uint8]:
        """1 where a host has slots with different ports, which its ranks take in their order: uint8 [host]."""
        first = self.first_slot_of_host
        ports = self.port_of_slot
        changes = np.append(ports[1:] != ports[:-1], False)
        changes[first[1:].astype(np.int64)[first[1:] > first[:-1]] - 1] = False
        return (np.bincount(self.host_of_slot[changes], minlength=len(self.host)) > 0).astype(np.uint8)

    def rails_among(self, subnets: Sequence[Subnet]) -> tuple[Subnet, ...]:
        """Return the subnet of each column of `lid`, given those of the rails; `SPREAD` repeats the one."""
        columns: int = self.lid.shape[1]
        return tuple(subnets) * (columns // len(subnets))

    def number(self, slot_of_rank: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Return a placement with the ranks of hosts that `is_numbered` on their first slots, in their order."""
        host = self.host_of_slot[slot_of_rank]
        in_order = self.first_slot_of_host[host] + adapter_policies.number_on_host(host)
        return np.where(self.is_numbered[host], in_order, slot_of_rank).astype(np.uint32)


def assign_slots(hosts: Hosts, slots: dict[int, int], ranks: int, nic: str | None = None) -> RankSlots:
    """Return the slots of hosts.

    Args:
        hosts: of the fabric.
        slots: host -> number of its slots.
        ranks: number of ranks to place.
        nic: `adapter_policies.RANK` (also None): the slots of a host take its adapters in turn. `FIRST`: its first
            adapter. `SPREAD`: all of them; each is then a column of `lid`, and each stands for a rail of its own.

    Raises:
        UsageError: there are fewer slots than ranks, or the policy does not apply.
    """
    host = np.array(sorted(slots), np.int32)
    count = np.array([slots[number] for number in host.tolist()], np.int64)
    if ranks > count.sum():
        raise UsageError(
            f"{ranks} ranks need a slot each, and {len(host)} host(s) have {int(count.sum())}; --slots N adds slots"
        )
    _, group = np.unique(hosts.leaf[host], return_inverse=True)
    host_of_slot = np.repeat(np.arange(len(host)), count)
    lid, port_of_slot = _find_ports(hosts.ports[host], host_of_slot, nic or adapter_policies.RANK)
    return RankSlots(
        name=tuple(hosts.name[number] for number in host.tolist()),
        host=host,
        group=group.astype(np.uint32),
        host_of_slot=host_of_slot.astype(np.uint32),
        port_of_slot=port_of_slot.astype(np.uint32),
        lid=lid,
        nic=label_of_policy(nic or adapter_policies.RANK) if adapter_policies.has_choice(hosts.ports[host]) else None,
    )


def _find_ports(
    ports: npt.NDArray[np.int32], host_of_slot: npt.NDArray[np.intp], nic: str
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
    """Return the LIDs of the ports that slots have, and the port of each slot.

    Args:
        ports: int32 [host, rail, adapter].
        host_of_slot: [slot].
        nic: the policy.
    """
    if nic == adapter_policies.NEAR:
        raise UsageError("--nic near: ranks that are placed anew have no cores yet; expected rank, first or spread")
    if nic == adapter_policies.FIRST:
        return ports[:, :, 0], host_of_slot
    if nic == adapter_policies.SPREAD:
        return _spread_ports(ports), host_of_slot
    first = np.searchsorted(host_of_slot, host_of_slot)
    turn = (np.arange(len(host_of_slot)) - first)[:, np.newaxis] % np.maximum(count_ports(ports[host_of_slot]), 1)
    lid = np.take_along_axis(ports[host_of_slot], turn[:, :, np.newaxis], axis=2)[:, :, 0]
    taken = np.column_stack([host_of_slot, turn])
    _, index, port_of_slot = np.unique(taken, axis=0, return_index=True, return_inverse=True)
    return lid[index], port_of_slot.reshape(-1)


def _spread_ports(ports: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the adapters of hosts as if each was on a rail of its own: int32 [host, adapter].

    Part i of a message leaves by adapter i and enters by adapter i, each modulo the host's number of adapters. This is
    what rails do if these numbers divide the largest one.

    Raises:
        UsageError: they do not, or there are several subnets.
    """
    if ports.shape[1] > 1:
        raise UsageError("--nic spread places ranks on one subnet only; expected rank or first")
    count = count_ports(ports[:, 0])
    most = ports.shape[2]
    if (most % np.maximum(count, 1)).any():
        numbers = ", ".join(str(number) for number in np.unique(count).tolist())
        raise UsageError(
            f"--nic spread places ranks on hosts whose numbers of adapters divide {most}, found {numbers}; "
            "expected rank or first"
        )
    turn = np.arange(most) % np.maximum(count, 1)[:, np.newaxis]
    return np.take_along_axis(ports[:, 0], turn, axis=1)


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


def slots_as_taken(
    hosts: Hosts, host_of_rank: npt.NDArray[np.int32], lid: npt.NDArray[np.int32]
) -> tuple[RankSlots, npt.NDArray[np.uint32]]:
    """Return a slot for each rank on its host, with the ports that it uses there.

    Args:
        hosts: of the fabric.
        host_of_rank: int32 [rank].
        lid: int32 [rank, rail], the ports of each rank.

    Returns:
        The slots, and the slot of each rank: uint32 [rank]. The ranks of a host have its slots in their order.
    """
    in_order = np.argsort(host_of_rank, kind="stable")
    host, host_of_slot = np.unique(host_of_rank[in_order], return_inverse=True)
    ports = np.column_stack([host_of_slot, lid[in_order]])
    _, index, port_of_slot = np.unique(ports, axis=0, return_index=True, return_inverse=True)
    _, group = np.unique(hosts.leaf[host], return_inverse=True)
    slot_of_rank = np.empty(len(host_of_rank), np.uint32)
    slot_of_rank[in_order] = np.arange(len(host_of_rank), dtype=np.uint32)
    slots = RankSlots(
        name=tuple(hosts.name[number] for number in host.tolist()),
        host=host,
        group=group.astype(np.uint32),
        host_of_slot=host_of_slot.astype(np.uint32),
        port_of_slot=port_of_slot.reshape(-1).astype(np.uint32),
        lid=lid[in_order][index],
    )
    return slots, slot_of_rank
