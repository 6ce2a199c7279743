# SPDX-License-Identifier: Apache-2.0
"""Which hosts ranks may be put on: all, those of a file, or those that they are on already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, UsageError, quote_found
from ibprof_converter.fabric.fabric_graph import NO_NODE, Fabric
from ibprof_converter.traffic.hostlists import ListedHost, read_listed_hosts
from ibprof_converter.traffic.hosts import NO_HOST, HostIndex, Hosts
from ibprof_converter.traffic.rank_placement import Placement
from ibprof_converter.traffic.traffic_data import NO_LID

OWN = "own"
"""The word in place of a file for the hosts that the ranks are on already."""

_SLOTS_LIMIT = 1 << 16


def all_hosts(hosts: Hosts, slots: int, ranks: int) -> tuple[dict[int, int], tuple[str, ...]]:
    """Take all hosts; without those that are not on every rail, where the others do.

    Returns:
        Host -> ranks that it takes; what to tell the user.
    """
    on_all = (hosts.lid != NO_LID).all(axis=1)
    if on_all.all() or int(on_all.sum()) * slots < ranks:
        return dict.fromkeys(range(len(hosts.name)), slots), ()
    left_out = f"{int((~on_all).sum())} host(s) that are not on all rails are left out"
    return dict.fromkeys(np.flatnonzero(on_all).tolist(), slots), (left_out,)


def own_hosts(host_of_rank: npt.NDArray[np.int32], slots: int | None) -> dict[int, int]:
    """Take the hosts that the ranks are on: host -> ranks that it takes, as many as it has if `slots` says nothing."""
    number, count = np.unique(host_of_rank, return_counts=True)
    return {host: slots or ranks for host, ranks in zip(number.tolist(), count.tolist(), strict=True)}


def read_free_hosts(path: Path, hosts: Hosts, slots: int) -> dict[int, int]:
    """Read hosts from a list of any form that `hostlists` reads: of Slurm, PBS, Open MPI or MPICH, or a host a line.

    Args:
        path: the list. Lines of one host add up; where a host is named again, as in a PBS node file, each line that
            says nothing of slots is one.
        hosts: of the fabric.
        slots: that a host takes of which the list says nothing.

    Returns:
        Host -> ranks that it takes.

    Raises:
        InputError: a line names no host of the fabric, or is none of a host list.
    """
    index = HostIndex(hosts.name, hosts.shared)
    listed: dict[int, list[ListedHost]] = {}
    for each in read_listed_hosts(path):
        found = index.find(each.name)
        if found is None:
            why = ", which several adapters are called" if index.is_shared(each.name) else ""
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
    return {host: room for host, room in free.items() if room} or free


def host_of_ranks(placement: Placement, hosts: Hosts, fabrics: list[Fabric]) -> npt.NDArray[np.int32] | None:
    """Give the host of the fabric that each rank is on: int32 [rank]; None where one is on no host of it."""
    host = np.full(len(placement.lid), NO_HOST, np.int32)
    for rail, fabric in enumerate(fabrics):
        node = fabric.lid_node[placement.lid[:, rail]]
        here = (host == NO_HOST) & (placement.lid[:, rail] != NO_LID) & (node != NO_NODE)
        host[here] = hosts.of_node[rail][node[here]]
    return None if (host == NO_HOST).any() else host


def check_slots(slots: int | None) -> None:
    """Refuse a number of slots that is none.

    Raises:
        UsageError: it is below 1 or beyond all measure.
    """
    if slots is not None and not 1 <= slots < _SLOTS_LIMIT:
        raise UsageError(f"--slots {slots}: expected a number from 1 to {_SLOTS_LIMIT - 1}")
