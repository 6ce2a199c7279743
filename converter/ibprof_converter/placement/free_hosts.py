# SPDX-License-Identifier: Apache-2.0
"""Which hosts ranks may be put on: all, those of a file, or those that they are on already."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, UsageError, quote_found
from ibprof_converter.fabric.model import NO_NODE, Fabric
from ibprof_converter.traffic.csv_tables import read_number
from ibprof_converter.traffic.hosts import NO_HOST, HostIndex, Hosts
from ibprof_converter.traffic.model import NO_LID
from ibprof_converter.traffic.placement import Placement

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
    """Read hosts, one a line, with `slots=N` or `:N` after it for how many ranks it takes; `#` begins a remark.

    Raises:
        InputError: a line names no host of the fabric, or one that was named before.
    """
    index = HostIndex(hosts.name, hosts.shared)
    free: dict[int, int] = {}
    for line, text in enumerate(path.read_text(encoding="utf-8-sig", errors="backslashreplace").splitlines(), 1):
        words = text.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        name, _, count = words[0].partition(":")
        rest = words[1:] if not count else [f"slots={count}", *words[1:]]
        found = index.find(name)
        if found is None:
            why = ", which several adapters are called" if index.is_shared(name) else ""
            raise InputError(path, line, "a host of the fabric", quote_found(name) + why)
        if found in free:
            raise InputError(path, line, "each host once", f"{quote_found(name)} again")
        free[found] = slots
        for word in rest:
            key, _, value = word.partition("=")
            if key != "slots":
                raise InputError(path, line, "HOST, HOST slots=N or HOST:N", quote_found(text.strip()))
            free[found] = read_number(path, line, value, "a number of slots", _SLOTS_LIMIT)
    if not free:
        raise InputError(path, None, "a host a line", "none")
    return free


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
