# SPDX-License-Identifier: Apache-2.0
"""Hosts on which ranks may be placed, and the hosts' slots; a slot is a place for one rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, UsageError, quote_found
from ibprof_converter.fabric.fabric_graph import NO_NODE, Fabric
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic import adapter_policies
from ibprof_converter.traffic.adapter_policies import label_of_policy
from ibprof_converter.traffic.hosts import NO_HOST, HostIndex, Hosts, count_ports
from ibprof_converter.traffic.rank_placement import RankPlacement
from ibprof_converter.traffic.traffic_data import NO_LID

if TYPE_CHECKING:
    from ibprof_converter.traffic.hostlists import ListedHost

OWN = "own"
"""`--hosts own` means: the hosts on which the ranks ran."""

_SLOTS_LIMIT = 1 << 16

RAIL_LIMIT = 8
"""Largest number of rails in a search for placements; with `--nic spread`, each adapter of a host counts as a rail."""


@dataclass(frozen=True, slots=True)
class RankSlots:
    """Hosts, sorted by leaf switch, and their slots.

    Attributes:
        name: [host], names of the hosts.
        host: int32 [host], index of each host in the fabric's `Hosts`.
        group: uint32 [host], index of the leaf switch of each host's first adapter, ascending from 0.
        host_of_slot: uint32 [slot], host of each slot, ascending.
        port_of_slot: uint32 [slot], port that the slot's rank uses. Here a port means adapters of one host, one adapter
            on each rail.
        lid: int32 [port, rail], LIDs of the port's adapters.
        nic: how the adapters were chosen; None if no host has several adapters on one rail.
        is_whole: true if ranks must occupy as few hosts as possible, as in jobs on GPUs.
        together: number of successive ranks that must have successive slots of one host; 1 without this condition. The
            number of slots of each host is a multiple of `together`.
    """

    name: tuple[str, ...]
    host: npt.NDArray[np.int32]
    group: npt.NDArray[np.uint32]
    host_of_slot: npt.NDArray[np.uint32]
    port_of_slot: npt.NDArray[np.uint32]
    lid: npt.NDArray[np.int32]
    nic: str | None = None
    is_whole: bool = False
    together: int = 1

    @property
    def groups(self) -> RankSlots:
        """The first slot of each group of `together` successive slots."""
        every = slice(None, None, self.together)
        return replace(self, host_of_slot=self.host_of_slot[every], port_of_slot=self.port_of_slot[every], together=1)

    def place_groups(self, slot_of_group: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Return the slot of each rank, from the slot of each group of ranks in `groups`: uint32 [rank]."""
        first = slot_of_group.astype(np.int64)[:, np.newaxis] * self.together
        return self.number((first + np.arange(self.together)).ravel().astype(np.uint32))

    def keeps_groups(self, slot_of_rank: npt.NDArray[np.uint32]) -> bool:
        """Return true if each group of `together` successive ranks has, in order, the slots of one group of slots."""
        of_group = slot_of_rank.astype(np.int64).reshape(-1, self.together)
        own = of_group[:, :1] // self.together * self.together + np.arange(self.together)
        return bool((of_group == own).all())

    @property
    def count(self) -> int:
        """Number of slots."""
        return len(self.host_of_slot)

    @property
    def rails(self) -> npt.NDArray[np.uint8]:
        """The rails on which each port has an adapter, as a bit mask: uint8 [port]."""
        bits: npt.NDArray[np.uint8] = (
            ((self.lid != NO_LID) << np.arange(self.lid.shape[1])).sum(axis=1).astype(np.uint8)
        )
        return bits

    @property
    def first_slot_of_host(self) -> npt.NDArray[np.uint32]:
        """Index of each host's first slot; the last element is the number of slots: uint32 [host + 1]."""
        return np.searchsorted(self.host_of_slot, np.arange(len(self.host) + 1)).astype(np.uint32)

    @property
    def has_several(self) -> bool:
        """True if any host has more than one slot."""
        return self.count > len(np.unique(self.host_of_slot))

    @property
    def most_of_a_host(self) -> int:
        """The largest number of slots of a host."""
        return int(np.bincount(self.host_of_slot).max(initial=0))

    @property
    def first_slot_of_group(self) -> npt.NDArray[np.uint32]:
        """Index of each group's first slot; the last element is the number of slots: uint32 [group + 1]."""
        group = self.group[self.host_of_slot]
        return np.searchsorted(group, np.arange(int(self.group.max(initial=0)) + 2)).astype(np.uint32)

    @property
    def is_numbered(self) -> npt.NDArray[np.uint8]:
        """1 for hosts whose slots have different ports: uint8 [host].

        On these hosts, ranks have the slots in rank order.
        """
        first = self.first_slot_of_host
        ports = self.port_of_slot
        changes = np.append(ports[1:] != ports[:-1], False)
        changes[first[1:].astype(np.int64)[first[1:] > first[:-1]] - 1] = False
        return (np.bincount(self.host_of_slot[changes], minlength=len(self.host)) > 0).astype(np.uint8)

    def rails_among(self, subnets: Sequence[Subnet]) -> tuple[Subnet, ...]:
        """Return the subnet of each column of `lid`; with `SPREAD`, all columns have the same subnet."""
        columns: int = self.lid.shape[1]
        return tuple(subnets) * (columns // len(subnets))

    def number(self, slot_of_rank: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Move the ranks of each `is_numbered` host to the host's first slots, in rank order; return the placement."""
        host = self.host_of_slot[slot_of_rank]
        in_order = self.first_slot_of_host[host] + adapter_policies.number_on_host(host)
        return np.where(self.is_numbered[host], in_order, slot_of_rank).astype(np.uint32)


def assign_slots(
    hosts: Hosts, slots: dict[int, int], ranks: int, nic: str | None = None, whole: int | None = None
) -> RankSlots:
    """Return the slots of hosts.

    Args:
        hosts: the fabric's hosts.
        slots: host -> its number of slots.
        ranks: number of ranks to place.
        nic: `adapter_policies.RANK` or None: successive slots use the host's adapters in turn. `FIRST`: all slots use
            the first adapter. `SPREAD`: each slot uses all adapters, and `lid` has a column for each adapter.
        whole: number of slots of a whole host; `is_whole` is true if all hosts have this number.

    Raises:
        UsageError: there are fewer slots than ranks, or `nic` is impossible on these hosts.
    """
    host = np.array(sorted(slots), np.int32)
    count = np.array([slots[number] for number in host.tolist()], np.int64)
    if ranks > count.sum():
        raise UsageError(
            f"{ranks} ranks need a slot each, and {len(host)} host(s) have {int(count.sum())} slots; "
            "--slots N sets the slots of a host"
        )
    _, group = np.unique(hosts.leaf[host], return_inverse=True)
    host_of_slot = np.repeat(np.arange(len(host)), count)
    policy = nic or adapter_policies.RANK
    ports = hosts.turns if policy == adapter_policies.RANK else hosts.ports
    lid, port_of_slot = _find_ports(ports[host], host_of_slot, policy)
    return RankSlots(
        name=tuple(hosts.name[number] for number in host.tolist()),
        host=host,
        group=group.astype(np.uint32),
        host_of_slot=host_of_slot.astype(np.uint32),
        port_of_slot=port_of_slot.astype(np.uint32),
        lid=lid,
        nic=label_of_policy(policy) if adapter_policies.has_choice(hosts.ports[host]) else None,
        is_whole=bool((count == whole).all()),
    )


def hold_together(slots: RankSlots, size: int) -> RankSlots:
    """Return the slots, with `together` = `size` if each host's number of slots is a multiple of `size`."""
    fits = not (np.bincount(slots.host_of_slot) % size).any()
    return replace(slots, together=size) if fits else slots


def _find_ports(
    ports: npt.NDArray[np.int32], host_of_slot: npt.NDArray[np.intp], nic: str
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.intp]]:
    """Return the LIDs of all ports that slots use, and the port of each slot.

    Args:
        ports: int32 [host, rail, adapter], LIDs of the hosts' ports. A missing port may have the LID of another port.
        host_of_slot: [slot], host of each slot.
        nic: the adapter policy.
    """
    if nic == adapter_policies.NEAR:
        raise UsageError(
            "--nic near: cores are unknown for ranks that get a new placement; expected rank, first or spread"
        )
    if nic == adapter_policies.FIRST:
        return ports[:, :, 0], host_of_slot
    if nic == adapter_policies.SPREAD:
        return _spread_ports(ports), host_of_slot
    first = np.searchsorted(host_of_slot, host_of_slot)
    turn = (np.arange(len(host_of_slot)) - first)[:, np.newaxis] % np.maximum(count_ports(ports[host_of_slot]), 1)
    lid = np.take_along_axis(ports[host_of_slot], turn[:, :, np.newaxis], axis=2)[:, :, 0]
    turn = (ports[host_of_slot] == lid[:, :, np.newaxis]).argmax(axis=2)
    taken = np.column_stack([host_of_slot, turn])
    _, index, port_of_slot = np.unique(taken, axis=0, return_index=True, return_inverse=True)
    return lid[index], port_of_slot.reshape(-1)


def _spread_ports(ports: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the LIDs of each host's adapters, as if each adapter was on a separate rail: int32 [host, adapter].

    Part i of a message uses adapter i mod n of a host with n adapters. The parts are those of separate rails if each
    host's number of adapters divides the largest number of adapters.

    Raises:
        UsageError: a host's number of adapters does not divide the largest number, or there are several subnets.
    """
    if ports.shape[1] > 1:
        raise UsageError("--nic spread is possible on one subnet only; expected rank or first")
    count = count_ports(ports[:, 0])
    most = ports.shape[2]
    if (most % np.maximum(count, 1)).any():
        numbers = ", ".join(str(number) for number in np.unique(count).tolist())
        raise UsageError(
            f"--nic spread: expected numbers of adapters per host that divide {most}, found {numbers}; "
            "use rank or first"
        )
    turn = np.arange(most) % np.maximum(count, 1)[:, np.newaxis]
    return np.take_along_axis(ports[:, 0], turn, axis=1)


def slots_on_hosts(slots: RankSlots, host_of_rank: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32] | None:
    """Return a slot for each rank on the rank's present host: uint32 [rank]; None if a host has too few slots."""
    if not np.isin(host_of_rank, slots.host).all():
        return None
    index = np.searchsorted(slots.host, host_of_rank)
    first = slots.first_slot_of_host.astype(np.int64)
    slot = first[index] + adapter_policies.number_on_host(host_of_rank)
    return None if (slot >= first[index + 1]).any() else slot.astype(np.uint32)


def slots_as_taken(
    hosts: Hosts, host_of_rank: npt.NDArray[np.int32], lid: npt.NDArray[np.int32]
) -> tuple[RankSlots, npt.NDArray[np.uint32]]:
    """Return one slot per rank, on the rank's present host and with the rank's present ports.

    Args:
        hosts: the fabric's hosts.
        host_of_rank: int32 [rank], host of each rank.
        lid: int32 [rank, rail], LIDs of each rank's ports.

    Returns:
        The slots, one for each rank; and the slot of each rank: uint32 [rank]. On each host, ranks have the slots in
        rank order.
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


def all_hosts(hosts: Hosts, slots: int, ranks: int) -> tuple[dict[int, int], tuple[str, ...]]:
    """Return the number of slots of each host of the fabric, and notes.

    Hosts without a port on every rail are left out if all other hosts have enough slots.

    Returns:
        Index of a host -> its number of slots; and notes for the user.
    """
    on_all = (hosts.lid != NO_LID).all(axis=1)
    if on_all.all() or int(on_all.sum()) * slots < ranks:
        return dict.fromkeys(range(len(hosts.name)), slots), ()
    left_out = f"{int((~on_all).sum())} host(s) that are not on all rails are left out"
    return dict.fromkeys(np.flatnonzero(on_all).tolist(), slots), (left_out,)


def own_hosts(host_of_rank: npt.NDArray[np.int32], slots: int | None) -> dict[int, int]:
    """Return host -> `slots`, for hosts with ranks; if `slots` is None, host -> number of its ranks."""
    number, count = np.unique(host_of_rank, return_counts=True)
    return {host: slots or ranks for host, ranks in zip(number.tolist(), count.tolist(), strict=True)}


def read_free_hosts(path: Path, hosts: Hosts, slots: int) -> dict[int, int]:
    """Read hosts from a list in any form that `hostlists` reads: Slurm, PBS, Open MPI, MPICH, or one host per line.

    Args:
        path: the list. Slots of lines with the same host are summed. If a host is in several lines (PBS), each line
            without a number means one slot.
        slots: number of slots of a host whose line has no number.

    Returns:
        Index of a host -> its number of slots.

    Raises:
        InputError: a line is in no known form, or names a host that is not in the fabric.
    """
    from ibprof_converter.traffic.hostlists import read_listed_hosts  # noqa: PLC0415  (few commands name a list)

    index = HostIndex(hosts.name, hosts.shared)
    listed: dict[int, list[ListedHost]] = {}
    for each in read_listed_hosts(path):
        found = index.find(each.name)
        if found is None:
            found_name = quote_found(each.name) + index.describe_unknown(each.name)
            raise InputError(path, each.line, "a host of the fabric", found_name)
        listed.setdefault(found, []).append(each)
    if not listed:
        raise InputError(path, None, "a host a line", "none")
    unsaid = 1 if any(len(lines) > 1 for lines in listed.values()) else slots
    free: dict[int, int] = {}
    for host, lines in listed.items():
        free[host] = sum(unsaid if each.slots is None else each.slots for each in lines)
        if free[host] >= _SLOTS_LIMIT:
            raise InputError(path, lines[-1].line, f"fewer than {_SLOTS_LIMIT} slots a host", str(free[host]))
    return {host: count for host, count in free.items() if count} or free


def host_of_ranks(placement: RankPlacement, hosts: Hosts, fabrics: list[Fabric]) -> npt.NDArray[np.int32] | None:
    """Return the host of each rank: int32 [rank]; None if any rank is not on a host of the fabric."""
    host = np.full(len(placement.lid), NO_HOST, np.int32)
    for rail, fabric in enumerate(fabrics):
        node = fabric.lid_node[placement.lid[:, rail]]
        here = (host == NO_HOST) & (placement.lid[:, rail] != NO_LID) & (node != NO_NODE)
        host[here] = hosts.of_node[rail][node[here]]
    return None if (host == NO_HOST).any() else host


def check_slots(slots: int | None) -> None:
    """Check a number of slots per host.

    Raises:
        UsageError: the number is below 1 or too large.
    """
    if slots is not None and not 1 <= slots < _SLOTS_LIMIT:
        raise UsageError(f"--slots {slots}: expected a number from 1 to {_SLOTS_LIMIT - 1}")
