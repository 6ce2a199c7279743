# SPDX-License-Identifier: Apache-2.0
"""Sum the traffic of ports and hosts, from work requests, counters of ranks and counters of ports.

Work requests name the ports at both ends. Without work requests, the bytes that a host's ranks sent are compared with
the host's port counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.profile_data import OUTWARD_OPCODES, Direction, Kind, Port, PortPair, Profile
from ibprof.profile.row_arrays import sum_by_group
from ibprof.text.quantities import format_bytes

# Names of a port's counters of sent or received data, in order of preference, and each counter's unit in bytes.
_SENT_COUNTERS = (("port_xmit_data", 4), ("tx_bytes", 1))
_RECEIVED_COUNTERS = (("port_rcv_data", 4), ("rx_bytes", 1))

NEARLY = 0.99
"""A port counted too little if it counted less than this share of the bytes that the run sent through the port.

The share is below 1 because counters are read when the host's first process ends, and other processes may still send.
"""

SMALLEST_MTU = 1024
OVERHEAD = 128
"""Upper bound of the headers of a packet and of its acknowledgement, in bytes."""


_COMPLETE = 0.99
"""Work requests are incomplete if they carry less than this share of the user data between hosts.

The share is below 1 because messages may still be in transit at MPI_Finalize.
"""

_PREFIX_DIGITS = 19
"""Length of a GID's subnet prefix in sysfs, in characters."""

_HostPort = tuple[int, Port]
"""A host's number, and one of its ports."""

_PACKETS_A_MESSAGE = 4
"""Maximum number of packets without data for a message: request to send or to receive, end of transfer."""

_PACKETS_A_PEER = 32
"""Maximum number of packets that open a connection to a peer."""

_WORTH_SAYING = 1 << 20
"""Minimum number of unexplained bytes to report. Subnet managers and other daemons send a few bytes on each port."""


@dataclass(frozen=True, slots=True)
class PortSum:
    """Traffic of one port.

    Attributes:
        guid: the port's GUID.
        bytes_sent, bytes_received: bytes over the wire, from work requests of both ends.
        hardware_sent, hardware_received: bytes of all traffic with headers, by the port's own counters, during the
            host's first process; None if unknown.
        unexplained_sent: lower bound of the bytes in `hardware_sent` that are not of work requests and headers, but of
            other jobs, file systems, or an unrecorded transport; None if unknown.
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
        # Both ends send packets: one end sends data, the other end requests or acknowledgements.
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
    """Return the growth of a port's counter, in bytes; None if the counter is missing, was read once, or was reset."""
    for name, unit in counters:
        for counter in port.hardware:
            if counter.name == name:
                grown = None if counter.after is None else counter.after - counter.before
                return None if grown is None or grown < 0 else grown * unit
    return None


def describe_ports(run: Profile) -> Iterator[str]:
    """Yield sentences on ports that counted more bytes than work requests explain, or fewer bytes than were posted."""
    for each in sum_ports(run):
        name = f"{each.host} {each.device}/{each.port}"
        if each.unexplained_sent:
            yield (
                f"{name} sent at least {each.unexplained_sent} bytes that this run's work requests do not explain; "
                "possible causes are other jobs, file systems, and transports that were not recorded"
            )
        if each.hardware_sent is not None and each.hardware_sent < NEARLY * each.bytes_sent:
            yield f"{name} counted {each.hardware_sent} bytes sent, fewer than the {each.bytes_sent} that were posted"


@dataclass(frozen=True, slots=True)
class PortEnd:
    """A port at one end of work requests.

    Attributes:
        host: index into `Profile.hosts`; None if unknown.
        port: the recorded port; None if unknown.
        name: the port's GUID, else its GID, else its LID and the local port.
        label: host, device and port number, if known.
    """

    host: int | None
    port: Port | None
    name: str
    label: str


class PortIndex:
    """Finds the recorded port of a GID or a LID."""

    def __init__(self, run: Profile) -> None:
        self._hosts = run.hosts
        self._by_gid: dict[str, list[_HostPort]] = {}
        self._by_lid: dict[int, list[_HostPort]] = {}
        self._by_name: dict[tuple[int, str, int], Port] = {}
        for number, host in enumerate(run.hosts):
            for port in host.ports:
                self._by_name[number, port.device, port.port] = port
                for gid in set(port.gids):
                    self._by_gid.setdefault(gid, []).append((number, port))
                for lid in range(port.lid, port.lid + (1 << port.lmc)) if port.lid is not None and port.lmc < 8 else ():
                    self._by_lid.setdefault(lid, []).append((number, port))

    def ends(self, pair: PortPair) -> tuple[PortEnd, PortEnd]:
        """Return the local and the remote end of a pair."""
        own = self._own(pair)
        return own, self._remote(pair, own)

    def _own(self, pair: PortPair) -> PortEnd:
        found = self._by_name.get((pair.host, pair.device, pair.port))
        label = self._label(pair.host, pair.device or "unknown device", pair.port)
        return PortEnd(pair.host, found, found.port_guid if found else pair.gid or label, label)

    def _remote(self, pair: PortPair, own: PortEnd) -> PortEnd:
        found = _only(self._by_gid.get(pair.remote_gid, []))
        if found is None and pair.remote_lid is not None:
            found = self._with_lid(pair.remote_lid, own)
        if found:
            host, port = found
            return PortEnd(host, port, port.port_guid, self._label(host, port.device, port.port))
        if pair.remote_gid:
            return PortEnd(None, None, pair.remote_gid, "")
        name = f"LID {pair.remote_lid} from {own.label}" if pair.remote_lid is not None else f"unknown from {own.label}"
        return PortEnd(None, None, name, "")

    def _label(self, host: int, device: str, port: int) -> str:
        return f"{self._hosts[host].name} {device}/{port}"

    def _with_lid(self, lid: int, own: PortEnd) -> _HostPort | None:
        """Return the recorded port with a LID; None if no port has it, or if several ports fit equally well.

        Ports of different subnets can have the same LID. Ports with the local subnet prefix are preferred, then the
        port with the local device name and number, because hosts are usually cabled alike.
        """
        found = self._by_lid.get(lid, [])
        if len(found) > 1 and own.port:
            found = [each for each in found if _prefix(each[1]) == _prefix(own.port)] or found
        if len(found) > 1 and own.port:
            found = [each for each in found if (each[1].device, each[1].port) == (own.port.device, own.port.port)]
        return _only(found)


def _prefix(port: Port) -> str:
    return port.gids[0][:_PREFIX_DIGITS] if port.gids else ""


def _only(found: Sequence[_HostPort]) -> _HostPort | None:
    return found[0] if len(found) == 1 else None


def bytes_posted(run: Profile) -> int:
    """Return the bytes posted to queue pairs between different ports."""
    own = np.array([_is_loop(pair) for pair in run.pairs], bool)
    return sum_exactly(run.transfers.bytes[~own[run.transfers.pair]]) if len(own) else 0


def _is_loop(pair: PortPair) -> bool:
    """Return whether a pair leads from a port to itself, without using a wire."""
    by_gid = bool(pair.gid) and pair.gid == pair.remote_gid
    return by_gid or (pair.lid is not None and pair.lid == pair.remote_lid)


def describe_unmeasured(run: Profile) -> str | None:
    """Return why the recorded work requests lack bytes between hosts; None if no bytes are known to be missing."""
    posted = bytes_posted(run)
    if not posted:
        return "no work requests were recorded at queue pairs"
    if unseen := sum(rank.queue_pairs_unseen for rank in run.ranks):
        return f"{unseen} queue pair(s) bypass verbs; IBPROF_SOURCE=exact selects transports that are recorded"
    between = _bytes_between_hosts(run)
    if posted < _COMPLETE * between:
        return f"only {posted} of {between} bytes between hosts were posted to queue pairs: MPI sent the rest elsewhere"
    return None


def _bytes_between_hosts(run: Profile) -> int:
    """Return the bytes that ranks sent to ranks on other hosts, without bytes to unknown peers."""
    counters = run.counters
    host = np.full(run.world_size + 1, -1, np.int64)
    for rank in run.ranks:
        if rank.rank < run.world_size:
            host[rank.rank] = rank.host
    sent = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED)
    mine, theirs = host[counters.rank[sent]], host[np.minimum(counters.peer[sent], run.world_size)]
    apart = (mine >= 0) & (theirs >= 0) & (mine != theirs)
    sources = counters.source[sent][apart]
    amounts = counters.bytes[sent][apart]
    return max((sum_exactly(amounts[sources == source]) for source in np.unique(sources)), default=0)


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Bytes that a host sent: by its ranks' counters, and by its ports' counters.

    Attributes:
        host: name of the host.
        bytes_sent: bytes that the host's ranks passed to the MPI library for ranks on other hosts.
        hardware_sent: bytes of all traffic with all headers, by the host's port counters; None where unknown.
        unexplained_sent: lower bound of the bytes in `hardware_sent` that messages do not explain; None if unknown.
    """

    host: str
    bytes_sent: int
    hardware_sent: int | None
    unexplained_sent: int | None


def check_hosts(run: Profile) -> tuple[HostCheck, ...]:
    """Compare the bytes that each host's ranks sent with the host's port counters; empty without counters."""
    counted = _sum_hardware(run)
    if all(hardware is None for hardware in counted):
        return ()
    count = len(run.hosts)
    source, destination, rows = find_ends(run)
    counters = run.counters
    amounts, messages = counters.bytes[rows], counters.messages[rows]
    surely = (source < count) & (destination < count) & (source != destination) & (counters.kind[rows] == Kind.USER)
    sent = sum_by_group(source[surely], count, amounts[surely])
    # Count messages to unknown peers as explained bytes, because unknown peers may be on other hosts.
    perhaps = (source != destination) | (source == count)
    carried = sum_by_group(source[perhaps], count + 1, amounts[perhaps])
    packets = messages * _PACKETS_A_MESSAGE + amounts // SMALLEST_MTU + np.uint64(_PACKETS_A_PEER)
    # Count messages in both directions: a host also sends packets for received messages.
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
    """Yield sentences on hosts whose ports counted more than ranks' messages explain, or less than the ranks sent."""
    for each in check_hosts(run):
        if each.hardware_sent is None or each.unexplained_sent is None:
            continue
        counted = f"the ports of {each.host} counted {format_bytes(each.hardware_sent)} of sent data"
        if each.hardware_sent < NEARLY * each.bytes_sent:
            yield (
                f"{counted}, less than the {format_bytes(each.bytes_sent)} that its ranks sent to other hosts: "
                "messages also took another network, or ports that were not recorded"
            )
        elif each.unexplained_sent > max(_WORTH_SAYING, (1 - NEARLY) * each.hardware_sent):
            yield (
                f"{counted}; messages of its ranks do not explain at least {format_bytes(each.unexplained_sent)}. "
                "Possible causes are other jobs, file systems, and calls that were not recorded"
            )


def _sum_hardware(run: Profile) -> list[int | None]:
    """Return the bytes that each host's active ports sent; None without active ports, or if a port has no counter."""
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


def find_ends(run: Profile) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.intp]]:
    """Return the source host, the destination host and the row of each counter except RECEIVED counters.

    An unknown host has the number `len(run.hosts)`.
    """
    counters = run.counters
    host = np.full(run.world_size + 1, len(run.hosts), np.int64)
    for rank in run.ranks:
        if rank.rank < run.world_size:
            host[rank.rank] = rank.host
    rows = np.flatnonzero(counters.direction != Direction.RECEIVED)
    mine, theirs = host[counters.rank[rows]], host[np.minimum(counters.peer[rows], run.world_size)]
    fetched = counters.direction[rows] == Direction.FETCHED
    return np.where(fetched, theirs, mine), np.where(fetched, mine, theirs), rows
