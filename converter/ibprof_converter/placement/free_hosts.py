# SPDX-License-Identifier: Apache-2.0
"""The hosts that ranks may be placed on: all, those of a file, or those that the ranks ran on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, UsageError, quote_found
from ibprof_converter.fabric.fabric_graph import NO_NODE, Fabric
from ibprof_converter.traffic.hostlists import ListedHost, read_listed_hosts
from ibprof_converter.traffic.hosts import NO_HOST, HostIndex, Hosts
from ibprof_converter.traffic.rank_placement import RankPlacement
from ibprof_converter.traffic.traffic_data import NO_LID

OWN = "own"
"""Given instead of a file: the hosts that the ranks ran on."""

_SLOTS_LIMIT = 1 << 16


def all_hosts(hosts: Hosts, slots: int, ranks: int) -> tuple[dict[int, int], tuple[str, ...]]:
    """Return the slots of all hosts.

    Hosts that are not on every rail are left out when the others suffice.

    Returns:
        Host -> number of its slots; notes for the user.
    """
    on_all = (hosts.lid != NO_LID).all(axis=1)
    if on_all.all() or int(on_all.sum()) * slots < ranks:
        return dict.fromkeys(range(len(hosts.name)), slots), ()
    left_out = f"{int((~on_all).sum())} host(s) that are not on all rails are left out"
    return dict.fromkeys(np.flatnonzero(on_all).tolist(), slots), (left_out,)


def own_hosts(host_of_rank: npt.NDArray[np.int32], slots: int | None) -> dict[int, int]:
    """Return the slots of the hosts that ranks run on: host -> `slots`, or its number of ranks if None."""
    number, count = np.unique(host_of_rank, return_counts=True)
    return {host: slots or ranks for host, ranks in zip(number.tolist(), count.tolist(), strict=True)}


def read_free_hosts(path: Path, hosts: Hosts, slots: int) -> dict[int, int]:
    """Read hosts from a list in any form of `hostlists`: Slurm, PBS, Open MPI, MPICH, or one host a line.

    Args:
        path: the list. Slots of lines with the same host add up. Where a host repeats, as in a PBS node file, a line
            without a slot count is one slot.
        hosts: of the fabric.
        slots: slots of a host for which the list gives none.

    Returns:
        Host -> number of its slots.

    Raises:
        InputError: a line names no host of the fabric, or does not belong in a host list.
    """
    index = HostIndex(hosts.name, hosts.shared)
    listed: dict[int, list[ListedHost]] = {}
    for each in read_listed_hosts(path):
        found = index.find(each.name)
        if found is None:
            why = ", a name that several adapters share" if index.is_shared(each.name) else ""
            raise InputError(path, each.line, "a host of the fabric", quote_found(each.name) + why)
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
    """Return the host of each rank: int32 [rank]; None if any rank is on no host of the fabric."""
    host = np.full(len(placement.lid), NO_HOST, np.int32)
    for rail, fabric in enumerate(fabrics):
        node = fabric.lid_node[placement.lid[:, rail]]
        here = (host == NO_HOST) & (placement.lid[:, rail] != NO_LID) & (node != NO_NODE)
        host[here] = hosts.of_node[rail][node[here]]
    return None if (host == NO_HOST).any() else host


def check_slots(slots: int | None) -> None:
    """Refuse an invalid number of slots.

    Raises:
        UsageError: it is below 1 or too large.
    """
    if slots is not None and not 1 <= slots < _SLOTS_LIMIT:
        raise UsageError(f"--slots {slots}: expected a number from 1 to {_SLOTS_LIMIT - 1}")
