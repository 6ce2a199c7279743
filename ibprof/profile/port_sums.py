# SPDX-License-Identifier: Apache-2.0
"""Traffic of each port: as posted to queue pairs, and as the port itself counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ibprof.profile.profile_data import OUTWARD_OPCODES, Port, Profile
from ibprof.profile.transfer_ports import PortEnd, PortIndex

# Bytes of the port's own counters, the first that exists: InfiniBand counts words of 4 bytes.
_SENT_COUNTERS = (("port_xmit_data", 4), ("tx_bytes", 1))
_RECEIVED_COUNTERS = (("port_rcv_data", 4), ("rx_bytes", 1))

NEARLY = 0.99
"""The port is read when the host's first process ends, which need not be the last one."""

SMALLEST_MTU = 1024
OVERHEAD = 128
"""Bytes, more than the headers of a packet and of its acknowledgement."""


@dataclass(frozen=True, slots=True)
class PortSum:
    """Traffic of one port.

    Attributes:
        host, device, port: the port.
        guid: of the port.
        bytes_sent, bytes_received: over the wire, as posted to queue pairs at either end.
        hardware_sent, hardware_received: bytes with all headers by the port's own counters, of all traffic, from the
            start of the host's first process to its end; None where unknown.
        unexplained_sent: bytes of `hardware_sent` that at least are not the run's work requests with their headers.
            They belong to other jobs, file systems, or a transport that was not recorded. None where unknown.
    """

    host: str
    device: str
    port: int
    guid: str
    bytes_sent: int
    bytes_received: int
    hardware_sent: int | None
    hardware_received: int | None
    unexplained_sent: int | None


@dataclass(slots=True)
class _Posted:
    sent: int = 0
    received: int = 0
    packets: int = 0


@dataclass(slots=True)
class _PostedByPort:
    amounts: dict[tuple[int | None, str], _Posted] = field(default_factory=dict)

    def of(self, end: PortEnd) -> _Posted:
        return self.amounts.setdefault((end.host, end.name), _Posted())


def sum_ports(run: Profile) -> tuple[PortSum, ...]:
    """Return the traffic of each recorded port, host by host."""
    index = PortIndex(run)
    ends = [index.ends(pair) for pair in run.pairs]
    posted_by_port = _PostedByPort()
    moved = run.transfers
    columns = (moved.pair, moved.opcode, moved.bytes, moved.messages)
    for pair, opcode, amount, messages in zip(*(column.tolist() for column in columns), strict=True):
        own, remote = ends[pair]
        if own.name == remote.name:
            continue
        source, destination = (own, remote) if opcode in OUTWARD_OPCODES else (remote, own)
        posted_by_port.of(source).sent += amount
        posted_by_port.of(destination).received += amount
        # Requests, data and acknowledgements: both ends send some of them.
        for end in (own, remote):
            posted_by_port.of(end).packets += messages + amount // SMALLEST_MTU
    return tuple(_sum_ports(run, posted_by_port))


def _sum_ports(run: Profile, posted_by_port: _PostedByPort) -> Iterator[PortSum]:
    for number, host in enumerate(run.hosts):
        for port in host.ports:
            posted = posted_by_port.amounts.get((number, port.port_guid), _Posted())
            sent, received = _grown(port, _SENT_COUNTERS), _grown(port, _RECEIVED_COUNTERS)
            explained = posted.sent + OVERHEAD * posted.packets
            yield PortSum(
                host=host.name,
                device=port.device,
                port=port.port,
                guid=port.port_guid,
                bytes_sent=posted.sent,
                bytes_received=posted.received,
                hardware_sent=sent,
                hardware_received=received,
                unexplained_sent=None if sent is None else max(0, sent - explained),
            )


def _grown(port: Port, counters: tuple[tuple[str, int], ...]) -> int | None:
    """Return the growth of a counter, in bytes; None if it is missing, was not read again, or was reset."""
    for name, unit in counters:
        for counter in port.hardware:
            if counter.name == name:
                grown = None if counter.after is None else counter.after - counter.before
                return None if grown is None or grown < 0 else grown * unit
    return None


def describe_ports(run: Profile) -> Iterator[str]:
    """Yield where ports carried other traffic too, or less than was posted, a sentence each."""
    for each in sum_ports(run):
        name = f"{each.host} {each.device}/{each.port}"
        if each.unexplained_sent:
            yield (
                f"{name} sent at least {each.unexplained_sent} bytes that this run's work requests do not explain "
                "(other jobs, file systems, or a transport that was not recorded)"
            )
        if each.hardware_sent is not None and each.hardware_sent < NEARLY * each.bytes_sent:
            yield f"{name} counted {each.hardware_sent} bytes sent, fewer than the {each.bytes_sent} that were posted"
