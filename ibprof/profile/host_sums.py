# SPDX-License-Identifier: Apache-2.0
"""Bytes that the ranks of each host sent to others, compared with its port counters; used without work requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.exact_sums import sum_by_group
from ibprof.profile.port_sums import NEARLY, OVERHEAD, SMALLEST_MTU, sum_ports
from ibprof.profile.profile_data import Direction, Kind, Profile
from ibprof.text.quantities import format_bytes

_PACKETS_A_MESSAGE = 4
"""Packets of a message other than its data: request to send, request to receive, end of transfer."""

_PACKETS_A_PEER = 32
"""More packets than the connection to a peer takes."""

_WORTH_SAYING = 1 << 20
"""Bytes: subnet managers and other daemons use each port a little."""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Bytes sent by one host, from two counts.

    Attributes:
        host: its name.
        bytes_sent: bytes that its ranks passed to the MPI library for ranks on other hosts.
        hardware_sent: bytes with all headers by its port counters, of all traffic; None where unknown.
        unexplained_sent: bytes of `hardware_sent` that at least are not the ranks' messages with their overhead; None
            where unknown.
    """

    host: str
    bytes_sent: int
    hardware_sent: int | None
    unexplained_sent: int | None


def check_hosts(run: Profile) -> tuple[HostCheck, ...]:
    """Compare what ranks sent with their hosts' port counters, host by host."""
    counted = _sum_hardware(run)
    if all(hardware is None for hardware in counted):
        return ()
    count = len(run.hosts)
    source, destination, rows = _ends(run)
    counters = run.counters
    amounts, messages = counters.bytes[rows], counters.messages[rows]
    surely = (source < count) & (destination < count) & (source != destination) & (counters.kind[rows] == Kind.USER)
    sent = sum_by_group(source[surely], count, amounts[surely])
    # The peer is unknown: it may have been on another host.
    perhaps = (source != destination) | (source == count)
    carried = sum_by_group(source[perhaps], count + 1, amounts[perhaps])
    packets = messages * _PACKETS_A_MESSAGE + amounts // SMALLEST_MTU + np.uint64(_PACKETS_A_PEER)
    # Both ends send some of them.
    headers = [
        OVERHEAD * (out + back)
        for out, back in zip(
            *(sum_by_group(end[perhaps], count + 1, packets[perhaps]) for end in (source, destination)), strict=True
        )
    ]
    return tuple(
        HostCheck(
            host=host.name,
            bytes_sent=sent[number],
            hardware_sent=hardware,
            unexplained_sent=None if hardware is None else max(0, hardware - carried[number] - headers[number]),
        )
        for number, (host, hardware) in enumerate(zip(run.hosts, counted, strict=True))
    )


def describe_hosts(run: Profile) -> Iterator[str]:
    """Yield where ports carried other traffic too, or less than ranks sent, a sentence each."""
    for each in check_hosts(run):
        if each.hardware_sent is None or each.unexplained_sent is None:
            continue
        counted = f"the ports of {each.host} counted {format_bytes(each.hardware_sent)} sent"
        if each.hardware_sent < NEARLY * each.bytes_sent:
            yield (
                f"{counted}, fewer than the {format_bytes(each.bytes_sent)} that its ranks sent to other hosts: "
                "messages also took another network, or ports that were not recorded"
            )
        elif each.unexplained_sent > max(_WORTH_SAYING, (1 - NEARLY) * each.hardware_sent):
            yield (
                f"{counted}; its ranks' messages do not explain at least {format_bytes(each.unexplained_sent)} of them "
                "(other jobs, file systems, or calls that were not recorded)"
            )


def _sum_hardware(run: Profile) -> list[int | None]:
    """Return what the active ports of each host counted; None where there are none, or a port has no counter."""
    grown: dict[str, list[int | None]] = {host.name: [] for host in run.hosts}
    active = {(host.name, port.device, port.port) for host in run.hosts for port in host.ports if port.is_active}
    for port in sum_ports(run):
        if (port.host, port.device, port.port) in active:
            grown[port.host].append(port.hardware_sent)
    sums: list[int | None] = []
    for host in run.hosts:
        known = [amount for amount in grown[host.name] if amount is not None]
        sums.append(sum(known) if known and len(known) == len(grown[host.name]) else None)
    return sums


def _ends(run: Profile) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.intp]]:
    """Return the source and destination hosts of data, one beyond the last where unknown, and the counters' rows."""
    counters = run.counters
    host = np.full(run.world_size + 1, len(run.hosts), np.int64)
    for rank in run.ranks:
        if rank.rank < run.world_size:
            host[rank.rank] = rank.host
    rows = np.flatnonzero(counters.direction != Direction.RECEIVED)
    mine, theirs = host[counters.rank[rows]], host[np.minimum(counters.peer[rows], run.world_size)]
    fetched = counters.direction[rows] == Direction.FETCHED
    return np.where(fetched, theirs, mine), np.where(fetched, mine, theirs), rows
