# SPDX-License-Identifier: Apache-2.0
"""The hosts that ranks may be put on, and their seats: a seat takes one rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.traffic.hosts import Hosts
from ibprof_converter.traffic.traffic_data import NO_LID


@dataclass(frozen=True, slots=True)
class Sites:
    """Hosts with room for ranks, leaf switch after leaf switch.

    Attributes:
        name: [site].
        host: int32 [site], its number in the fabric's `Hosts`.
        lid: int32 [site, rail].
        group: uint32 [site], hosts of one leaf switch are a group; from 0, ascending.
        of_seat: uint32 [seat], ascending.
    """

    name: tuple[str, ...]
    host: npt.NDArray[np.int32]
    lid: npt.NDArray[np.int32]
    group: npt.NDArray[np.uint32]
    of_seat: npt.NDArray[np.uint32]

    @property
    def seats(self) -> int:
        """Number of ranks that there is room for."""
        return len(self.of_seat)

    @property
    def rails(self) -> npt.NDArray[np.uint8]:
        """Rails that each site is on, a bit each: uint8 [site]."""
        bits: npt.NDArray[np.uint8] = (
            ((self.lid != NO_LID) << np.arange(self.lid.shape[1])).sum(axis=1).astype(np.uint8)
        )
        return bits

    @property
    def first_seat_of_group(self) -> npt.NDArray[np.uint32]:
        """Where the seats of each group begin, and where the last one's end: uint32 [group + 1]."""
        group = self.group[self.of_seat]
        return np.searchsorted(group, np.arange(int(self.group.max(initial=0)) + 2)).astype(np.uint32)


def make_sites(hosts: Hosts, slots: dict[int, int], ranks: int) -> Sites:
    """Give hosts their seats.

    Args:
        hosts: of the fabric.
        slots: host -> ranks that it takes.
        ranks: that need a seat.

    Raises:
        UsageError: there is not room for all.
    """
    host = np.array(sorted(slots), np.int32)
    room = np.array([slots[number] for number in host.tolist()], np.int64)
    if ranks > room.sum():
        raise UsageError(
            f"{ranks} ranks need a seat each, and {len(host)} host(s) have {int(room.sum())}; --slots N makes more"
        )
    _, group = np.unique(hosts.leaf[host], return_inverse=True)
    return Sites(
        name=tuple(hosts.name[number] for number in host.tolist()),
        host=host,
        lid=hosts.lid[host],
        group=group.astype(np.uint32),
        of_seat=np.repeat(np.arange(len(host)), room).astype(np.uint32),
    )


def seat_on_hosts(sites: Sites, host_of_rank: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32] | None:
    """Seat ranks on the hosts that they are on: uint32 [rank]; None where one of these has no seat left."""
    first = {host: int(np.searchsorted(sites.of_seat, site)) for site, host in enumerate(sites.host.tolist())}
    last = {host: int(np.searchsorted(sites.of_seat, site, "right")) for site, host in enumerate(sites.host.tolist())}
    seats = np.zeros(len(host_of_rank), np.uint32)
    for rank, host in enumerate(host_of_rank.tolist()):
        if host not in first or first[host] == last[host]:
            return None
        seats[rank] = first[host]
        first[host] += 1
    return seats
