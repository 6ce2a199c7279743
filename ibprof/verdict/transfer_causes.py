# SPDX-License-Identifier: Apache-2.0
"""Find causes of slow transfer: transport in use, adapters, errors, other traffic, congestion, copies within hosts.

The evidence comes from data that any user of the hosts can read (docs/causes.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ibprof.profile.port_sums import OVERHEAD, SMALLEST_MTU, find_ends, sum_ports
from ibprof.profile.profile_data import HardwareCounter, HardwareType, Host, Interface, Kind, Port, Profile, Rank
from ibprof.profile.row_arrays import sum_by_group
from ibprof.text.quantities import format_bytes
from ibprof.verdict.shared_cores import count_cores
from ibprof.verdict.verdict_data import TransferCause

if TYPE_CHECKING:
    from ibprof.waiting.wait_split import HostPair

CARRIES = 0.5
"""A transport counts as used if it carries at least this share of the job's bytes."""

_LOOPBACK = "lo"

_IDLE = 0.1
"""A port is idle if it sends at most this share of the bytes that its host's ranks send to other hosts."""

_SLOWER = 0.75
"""An adapter is slow below this share of the median rate of all hosts' adapters with the same name."""

_USUAL_WIDTH = 4
"""Usual number of lanes of an InfiniBand link."""

_PCI_LANE_GBPS = ((2.5, 2.0), (5.0, 4.0), (8.0, 7.88), (16.0, 15.75), (32.0, 31.5), (64.0, 63.0))
"""GT/s and Gb/s of a PCI Express lane, by generation. Source: PCI Express Base Specification, encodings."""

_PCI_OVERHEAD = 0.85
"""Share of payload in the rate of a PCI Express lane."""

_MANY_ERRORS = 10
"""Minimum growth of an error counter to report the link."""

_LOST = 0.005
"""Packet loss is a cause if at least this share of the TCP segments was retransmitted."""

_MANY_SEGMENTS = 100
"""Minimum number of retransmitted segments (for packet loss) or notifications (for congestion) to report a cause."""

_MUCH_OTHER = 0.5
"""A port's other traffic is a cause if it is at least this multiple of the job's own bytes."""

_WORTH_SAYING = 1 << 20
"""Minimum number of bytes to report a cause, because daemons send a few bytes over each interface."""

_WAITS = 1.0
"""A port counts as congested if it waited at least this number of ticks per sent word."""

_MARKED = 1e-4
"""A port is congested if congestion notifications / sent packets are at least this."""

_MUCH_TRANSFER = 0.5
"""Copies within hosts are a cause only if transfer takes at least this share of the time in MPI."""

_COPIED = 0.9
"""Copies within hosts are a cause only if at least this share of all bytes stays within hosts."""

_LARGE_BYTES = 16 << 10
"""For messages of at least this mean size, bytes take longer than latency."""

_MOST_NAMED = 3

_LINK_ERRORS = (
    ("symbol_error", _MANY_ERRORS),
    ("link_error_recovery", 1),
    ("link_downed", 1),
    ("port_rcv_errors", _MANY_ERRORS),
    ("local_ack_timeout_err", _MANY_ERRORS),
    ("rnr_nak_retry_err", _MANY_ERRORS),
    ("packet_seq_err", _MANY_ERRORS),
)
"""Error counters of a port, and the smallest reported growth of each counter."""

_INTERFACE_ERRORS = (("rx_errors", _MANY_ERRORS), ("tx_errors", _MANY_ERRORS))


@dataclass(slots=True)
class _HostTraffic:
    """The job's traffic on one host.

    Attributes:
        sent, received: bytes of user data to and from other hosts.
        within: bytes between ranks of the host.
        packets: upper bound of the packets for `sent` and `received`.
        tcp: bytes of TCP connections, sent and received, by interface.
        segments, retransmitted: numbers of sent and of retransmitted TCP segments.
        posted: bytes that work requests sent, by device and port.
    """

    host: Host
    ranks: list[Rank]
    sent: int
    received: int
    within: int
    packets: int
    tcp: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    segments: int = 0
    retransmitted: int = 0
    posted: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))

    @property
    def moved(self) -> int:
        """Bytes to and from other hosts."""
        return self.sent + self.received

    def find_interface(self) -> Interface | None:
        """Return the interface whose TCP connections carry most bytes; None if TCP carries few bytes.

        TCP must carry at least `CARRIES` of the job's bytes to and from other hosts. Loopback connections do not count.
        """
        names = [name for name in self.tcp if name != _LOOPBACK]
        # Connections with few bytes may be the launcher's, not MPI's.
        if not self.moved or sum(self.tcp[name] for name in names) < max(CARRIES * self.moved, _WORTH_SAYING):
            return None
        most = max(names, key=lambda name: self.tcp[name])
        return next((each for each in self.host.interfaces if each.name == most), None)

    def find_ports(self) -> list[Port]:
        """Return the active ports that carry bytes to other hosts.

        Return all active ports if it is unknown which of them carry bytes, and no port if TCP carries the bytes.
        """
        if not self.moved or self.find_interface():
            return []
        active = [port for port in self.host.ports if port.is_active]
        if sum(self.posted.values()) >= CARRIES * self.sent > 0:
            return [port for port in active if self.posted[port.device, port.port] > _IDLE * self.sent]
        used = [port for port in active if (bytes_sent_by(port) or 0) > _IDLE * self.sent]
        return used or active


def name_carriers(run: Profile, pairs: Sequence[HostPair]) -> tuple[HostPair, ...]:
    """Return the pairs, with `via` set to the carrier of messages: a TCP interface, the sender's ports, or memory."""
    carriers: dict[tuple[str, bool], str] = {}
    for each in _sum_hosts(run) if pairs else ():
        interface = each.find_interface()
        ports = ", ".join(f"{port.device}/{port.port}" for port in each.find_ports())
        carriers[each.host.name, False] = f"TCP over {interface.name}" if interface else ports
        over_tcp = each.tcp[_LOOPBACK] >= 2 * CARRIES * each.within > 0
        carriers[each.host.name, True] = f"TCP over {_LOOPBACK}" if over_tcp else "memory"
    return tuple(replace(pair, via=carriers.get((pair.source, pair.source == pair.destination), "")) for pair in pairs)


def find_growth(counters: Iterable[HardwareCounter], name: str) -> int | None:
    """Return the growth of a counter; None if unknown, or if the counter was reset."""
    for counter in counters:
        if counter.name == name and counter.after is not None and counter.after >= counter.before:
            return counter.after - counter.before
    return None


def bytes_sent_by(port: Port) -> int | None:
    """Return the bytes of all traffic that a port sent; None if unknown."""
    words = find_growth(port.hardware, "port_xmit_data")
    return find_growth(port.hardware, "tx_bytes") if words is None else 4 * words


def find_possible_rate(run: Profile) -> float | None:
    """Return the upper median, over hosts, of the fastest adapter's rate with all lanes, in Gb/s; None if unknown.

    If no adapter's rate is known, use the rate that the kernel reports for the used virtual interfaces.
    """
    rates = []
    for host in run.hosts:
        ports = [_whole_rate(port) for port in host.ports if port.is_active]
        interfaces = [each.speed_mbps / 1e3 for each in host.interfaces if each.is_up and each.speed_mbps]
        rates.append(max([*ports, *interfaces], default=0.0))
    used = [] if any(rates) else [traffic.find_interface() for traffic in _sum_hosts(run)]
    return _usual(rates) or _usual([each.virtual_mbps / 1e3 for each in used if each and each.virtual_mbps]) or None


def _whole_rate(port: Port) -> float:
    """Return the rate of a port with all lanes, in Gb/s."""
    lost = port.width == 1 and port.link_layer == "InfiniBand"
    return port.rate_gbps * (_USUAL_WIDTH if lost else 1)


def _usual(rates: Sequence[float]) -> float:
    """Return the upper median."""
    return sorted(rates)[len(rates) // 2] if rates else 0.0


def find_transfer_causes(run: Profile, transfer_s: float, mpi_s: float) -> tuple[TransferCause, ...]:
    """Return possible causes of a run's slow transfer, the surest first.

    Args:
        transfer_s: time of transfer, mean over ranks, in seconds.
        mpi_s: time in MPI, mean over ranks, in seconds.
    """
    hosts = _sum_hosts(run)
    found: dict[str, TransferCause] = {}
    finders: tuple[Iterable[TransferCause], ...] = (
        _find_wrong_transport(run, hosts),
        _find_slow_adapters(hosts),
        _find_link_errors(hosts),
        _find_other_traffic(hosts),
        _find_lost_segments(hosts),
        _find_congestion(hosts),
        _find_copies(run, hosts, transfer_s) if transfer_s >= _MUCH_TRANSFER * mpi_s else (),
    )
    for causes in finders:
        for cause in causes:
            found.setdefault(cause.name, cause)
    return tuple(found.values())


def _sum_hosts(run: Profile) -> list[_HostTraffic]:
    count = len(run.hosts)
    source, destination, rows = find_ends(run)
    amounts, messages = run.counters.bytes[rows], run.counters.messages[rows]
    user = run.counters.kind[rows] == Kind.USER
    # Unknown peers have host number `count`, so they count as ranks of another host.
    apart, within = source != destination, user & (source == destination) & (source < count)
    packets = messages * np.uint64(4) + amounts // np.uint64(SMALLEST_MTU) + np.uint64(32)
    sent, received = (
        sum_by_group(end[apart & user], count + 1, amounts[apart & user]) for end in (source, destination)
    )
    stayed = sum_by_group(source[within], count + 1, amounts[within])
    ends = [sum_by_group(end[apart], count + 1, packets[apart]) for end in (source, destination)]
    hosts = [
        _HostTraffic(
            host=host,
            ranks=[rank for rank in run.ranks if rank.host == number],
            sent=sent[number],
            received=received[number],
            within=stayed[number],
            packets=ends[0][number] + ends[1][number],
        )
        for number, host in enumerate(run.hosts)
    ]
    for each in hosts:
        for transport in (transport for rank in each.ranks for transport in rank.transports):
            if transport.kind != "tcp":
                continue
            each.tcp[transport.device] += transport.sent_bytes + transport.received_bytes
            if transport.device != _LOOPBACK:
                each.segments += transport.segments
                each.retransmitted += transport.retransmitted
    by_name = {each.host.name: each for each in hosts}
    for port in sum_ports(run):
        by_name[port.host].posted[port.device, port.port] += port.bytes_sent
    return hosts


def _join(parts: Sequence[str]) -> str:
    """Join the first parts by commas, and add the number of further parts."""
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    return f"{', '.join(parts[:_MOST_NAMED])}{more}"


def _gbps(rate: float) -> str:
    return f"{rate:g} Gb/s"


# -- the transport in use


def _find_wrong_transport(run: Profile, hosts: Sequence[_HostTraffic]) -> Iterator[TransferCause]:
    moving = [each for each in hosts if each.moved]
    over_tcp = [(each, interface) for each in moving if (interface := each.find_interface())]
    # All hosts with traffic to other hosts must have the faster device: a network needs both ends.
    ports = [_find_idle_port(each, interface) for each, interface in over_tcp]
    faster = [_find_faster_interface(each, interface) for each, interface in over_tcp]
    if len(over_tcp) == len(moving) > 1:
        interface = over_tcp[0][1]
        carried = sum(host.tcp[used.name] for host, used in over_tcp) // 2
        kind = "IPoIB" if interface.type == HardwareType.INFINIBAND else "TCP"
        speed = f" ({_gbps(interface.speed_mbps / 1e3)})" if interface.speed_mbps else ""
        begin = f"{kind} over {interface.name}{speed} carries {format_bytes(carried)} between hosts"
        if all(ports) and (port := ports[0]):
            evidence = f"{begin}; {port.device} ({_gbps(port.rate_gbps)}, {port.link_layer}) is active on all of them."
            yield TransferCause("wrong-transport", evidence + _say_settings(run), _advise_port(run, port))
        elif all(faster) and (other := faster[0]):
            evidence = f"{begin}; {other.name} ({_gbps((other.speed_mbps or 0) / 1e3)}) is up and idle on all of them."
            yield TransferCause("wrong-transport", evidence + _say_settings(run), _advise_interface(run, other))
    slow = [(each, pair) for each in moving if (pair := _find_faster_port(each))]
    if moving and len(slow) == len(moving):
        (used, better) = slow[0][1]
        evidence = (
            f"{used.device} ({_gbps(used.rate_gbps)}) carries the bytes between hosts; {better.device} "
            f"({_gbps(better.rate_gbps)}) is active but idle on all of them."
        )
        yield TransferCause("wrong-transport", evidence + _say_settings(run), _advise_port(run, better))
    loops = [
        each for each in hosts if each.within >= _WORTH_SAYING and each.tcp[_LOOPBACK] >= 2 * CARRIES * each.within
    ]
    # Report TCP within hosts only if most bytes stay within hosts; otherwise causes between hosts matter more.
    if loops and sum(each.within for each in loops) >= sum(each.sent for each in hosts):
        carried = sum(each.tcp[_LOOPBACK] for each in loops) // 2
        evidence = (
            f"TCP over the loopback carries {format_bytes(carried)} between ranks of "
            f"{_join([each.host.name for each in loops])}, which share memory."
        )
        yield TransferCause("wrong-transport", evidence + _say_settings(run), _advise_memory(run))


def _find_idle_port(traffic: _HostTraffic, interface: Interface) -> Port | None:
    """Return the fastest active port that could replace an interface; None without one.

    The port must belong to the interface's device, or be idle and faster than the interface.
    """
    speed = (interface.speed_mbps or 0) / 1e3
    better = []
    for port in traffic.host.ports:
        same = bool(port.device) and port.device == interface.device
        if not port.is_active or (port.rate_gbps <= speed and not same):
            continue
        if same or (bytes_sent_by(port) or 0) <= _IDLE * traffic.sent:
            better.append(port)
    return max(better, key=lambda port: port.rate_gbps, default=None)


def _find_faster_interface(traffic: _HostTraffic, used: Interface) -> Interface | None:
    """Return the fastest idle interface that is at least twice as fast as the used interface; None without one."""
    better = [
        each
        for each in traffic.host.interfaces
        if each.is_up and used.speed_mbps and (each.speed_mbps or 0) >= 2 * used.speed_mbps
        if (find_growth(each.hardware, "tx_bytes") or 0) <= _IDLE * traffic.sent
    ]
    return max(better, key=lambda each: each.speed_mbps or 0, default=None)


def _find_faster_port(traffic: _HostTraffic) -> tuple[Port, Port] | None:
    """Return the used port, and an idle port at least twice as fast; None if one of them is missing or unknown."""
    used = [port for port in traffic.find_ports() if (bytes_sent_by(port) or 0) >= CARRIES * traffic.sent > 0]
    if len(used) != 1:
        return None
    better = [
        port
        for port in traffic.host.ports
        if port.is_active and port.rate_gbps >= 2 * used[0].rate_gbps
        if (amount := bytes_sent_by(port)) is not None and amount <= _IDLE * traffic.sent
    ]
    fastest = max(better, key=lambda port: port.rate_gbps, default=None)
    return (used[0], fastest) if fastest else None


def _say_settings(run: Profile) -> str:
    """Return a sentence on the environment variables that choose a transport; empty if none is set."""
    own = "OMPI_MCA_" if _is_open_mpi(run) else "I_MPI_" if "Intel" in run.mpi else "MPIR_CVAR_"
    begins = (own, "UCX_", "IBPROF_", "FI_") if own != "OMPI_MCA_" else (own, "UCX_", "IBPROF_")
    chosen = run.ranks[0].choices if run.ranks else ()
    texts = [f"{choice.name}={choice.text}" for choice in chosen if choice.name.startswith(begins)]
    return f" The environment has {', '.join(texts)}." if texts else ""


def _is_open_mpi(run: Profile) -> bool:
    return "Open MPI" in run.mpi


def _has_ucx(run: Profile) -> bool:
    """Return whether the MPI library uses UCX."""
    loaded = {each.device for rank in run.ranks for each in rank.transports if each.kind == "library"}
    return "libucp" in loaded and "libfabric" not in loaded


def _advise_port(run: Profile, port: Port) -> str:
    if run.is_of_nccl:
        return (
            f"Use it: set NCCL_IB_HCA={port.device}:{port.port}, unset NCCL_IB_DISABLE and any NCCL_NET=Socket; "
            "with NCCL_DEBUG=INFO, NCCL then prints NET/IB."
        )
    device = f"UCX_NET_DEVICES={port.device}:{port.port}"
    if _is_open_mpi(run):
        return (
            f"Use it: OMPI_MCA_pml=ucx {device}, and no OMPI_MCA_btl; `ompi_info` must list `pml: ucx`, "
            "or else this Open MPI was built without UCX."
        )
    if "Intel" in run.mpi:
        return f"Use it: I_MPI_OFI_PROVIDER=mlx with {device}, or I_MPI_OFI_PROVIDER=verbs."
    if _has_ucx(run):
        return f"Use it: {device}, and no UCX_TLS."
    return f"Use it: FI_PROVIDER=verbs FI_VERBS_DEVICE_NAME={port.device}, or an MPICH with UCX."


def _advise_interface(run: Profile, interface: Interface) -> str:
    name = interface.name
    if run.is_of_nccl:
        return f"Use it: NCCL_SOCKET_IFNAME={name}."
    if _is_open_mpi(run):
        return f"Use it: OMPI_MCA_btl_tcp_if_include={name}, or UCX_NET_DEVICES={name} with UCX."
    return f"Use it: {'UCX_NET_DEVICES' if _has_ucx(run) else 'FI_TCP_IFACE'}={name}."


def _advise_memory(run: Profile) -> str:
    if run.is_of_nccl:
        return "Let NCCL use shared memory or NVLink: unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE."
    if _is_open_mpi(run):
        return (
            "Let MPI use shared memory: unset OMPI_MCA_btl, or add vader to it (sm in Open MPI 5). With UCX, add sm to "
            "UCX_TLS."
        )
    if "Intel" in run.mpi:
        return "Let MPI use shared memory: I_MPI_FABRICS=shm:ofi."
    return "Let MPI use shared memory: unset MPIR_CVAR_NOLOCAL. With UCX, add sm to UCX_TLS."


# -- adapters and links


def _find_slow_adapters(hosts: Sequence[_HostTraffic]) -> Iterator[TransferCause]:
    rates: dict[str, list[float]] = defaultdict(list)
    used = [(each.host, each.find_ports(), each.find_interface()) for each in hosts]
    for _, ports, interface in used:
        for port in ports:
            rates[port.device].append(port.rate_gbps)
        if interface and interface.speed_mbps:
            rates[interface.name].append(interface.speed_mbps / 1e3)
    slow = []
    for host, ports, interface in used:
        for port in ports:
            usual = _usual(rates[port.device])
            name = f"{host.name} {port.device}/{port.port}"
            if port.rate_gbps < _SLOWER * usual:
                lanes = f", {port.width} lane(s)" if port.width else ""
                slow.append(f"{name} runs at {_gbps(port.rate_gbps)}{lanes} (most hosts: {_gbps(usual)})")
            elif port.width == 1 and port.link_layer == "InfiniBand":
                slow.append(f"{name} runs at {_gbps(port.rate_gbps)} with 1 of {_USUAL_WIDTH} lanes")
            elif (pci := _find_pci_rate(port)) and pci < _SLOWER * port.rate_gbps:
                slow.append(
                    f"the PCI link of {name} has {port.pci_width} of {port.pci_width_max} lanes at {port.pci_gts:g} of "
                    f"{port.pci_gts_max:g} GT/s: {_gbps(round(pci, 1))} for a port of {_gbps(port.rate_gbps)}"
                )
        if interface and interface.speed_mbps:
            usual = _usual(rates[interface.name])
            if interface.speed_mbps / 1e3 < _SLOWER * usual:
                speed = _gbps(interface.speed_mbps / 1e3)
                slow.append(f"{host.name} {interface.name} runs at {speed} (most hosts: {_gbps(usual)})")
    if slow:
        text = _join(slow)
        yield TransferCause(
            "slow-adapter",
            f"{text[:1].upper()}{text[1:]}." if text.startswith("the PCI") else f"{text}.",
            "Run without that host; have its cable and slot checked: the link was negotiated below its maximum.",
        )


def _find_pci_rate(port: Port) -> float | None:
    """Return the rate of a port's PCI link in Gb/s if the link runs below the device's maximum; otherwise None."""
    if not port.pci_width or not port.pci_gts:
        return None
    if port.pci_width >= port.pci_width_max and port.pci_gts >= port.pci_gts_max:
        return None
    lane = next((gbps for gts, gbps in reversed(_PCI_LANE_GBPS) if port.pci_gts >= gts), 0.0)
    return lane * port.pci_width * _PCI_OVERHEAD


def _find_link_errors(hosts: Sequence[_HostTraffic]) -> Iterator[TransferCause]:
    found = []
    for each in hosts:
        for port in each.find_ports():
            grown = [
                f"{name} {growth:,}"
                for name, least in _LINK_ERRORS
                if (growth := find_growth(port.hardware, name)) is not None and growth >= least
            ]
            if grown:
                found.append(f"{each.host.name} {port.device}/{port.port}: {', '.join(grown)}")
        if interface := each.find_interface():
            grown = [
                f"{name} {growth:,}"
                for name, least in _INTERFACE_ERRORS
                if (growth := find_growth(interface.hardware, name)) is not None and growth >= least
            ]
            if grown:
                found.append(f"{each.host.name} {interface.name}: {', '.join(grown)}")
    if found:
        yield TransferCause(
            "link-errors",
            f"Counters of errors grew during the run ({_join(found)}).",
            "Have the cables and ports of these links checked (ibdiagnet, mlxlink, ethtool -S).",
        )


def _find_lost_segments(hosts: Sequence[_HostTraffic]) -> Iterator[TransferCause]:
    lossy = [
        each
        for each in hosts
        if each.find_interface() and each.retransmitted >= max(_MANY_SEGMENTS, _LOST * each.segments)
    ]
    if lossy:
        texts = [f"{each.host.name} resent {each.retransmitted:,} of {each.segments:,} segments" for each in lossy]
        yield TransferCause(
            "link-errors",
            f"Packets of the job's TCP connections are lost: {_join(texts)}.",
            "Have the links of these hosts and the switches' drop counters checked (ethtool -S, tc -s qdisc).",
        )


# -- other traffic and congestion


def _find_other_traffic(hosts: Sequence[_HostTraffic]) -> Iterator[TransferCause]:
    found = []
    for each in hosts:
        if not each.moved:
            continue
        headers = OVERHEAD * each.packets
        devices = []
        if interface := each.find_interface():
            counted = (interface.hardware, ("tx_bytes", 1), ("rx_bytes", 1))
            devices.append((interface.name, counted))
        for port in each.find_ports():
            if find_growth(port.hardware, "port_xmit_data") is None:
                counted = (port.hardware, ("tx_bytes", 1), ("rx_bytes", 1))
            else:
                counted = (port.hardware, ("port_xmit_data", 4), ("port_rcv_data", 4))
            devices.append((f"{port.device}/{port.port}", counted))
        for name, (counters, sent, received) in devices:
            for (counter, unit), own, verb in ((sent, each.sent, "sent"), (received, each.received, "received")):
                growth = find_growth(counters, counter)
                if growth is None:
                    continue
                other = growth * unit - own - headers - each.retransmitted * SMALLEST_MTU * 2
                if other >= max(_MUCH_OTHER * own, _WORTH_SAYING):
                    found.append(
                        f"{each.host.name} {name} {verb} at least {format_bytes(other)} in addition to the job's "
                        f"{format_bytes(own)}"
                    )
    if found:
        yield TransferCause(
            "other-traffic",
            f"{_join(found)}.",
            "Other jobs, a file system or daemons use these links: run on other hosts, or ask the administrator who "
            "sends there.",
        )


def _find_congestion(hosts: Sequence[_HostTraffic]) -> Iterator[TransferCause]:
    found = []
    for each in hosts:
        for port in each.find_ports():
            waited, words = (find_growth(port.hardware, name) for name in ("port_xmit_wait", "port_xmit_data"))
            name = f"{each.host.name} {port.device}/{port.port}"
            if waited and words and waited >= _WAITS * words:
                found.append(f"{name} waited {waited / words:.1f} ticks for each word that it sent (port_xmit_wait)")
            packets = find_growth(port.hardware, "port_xmit_packets") or 0
            for counter in ("rp_cnp_handled", "np_cnp_sent"):
                marks = find_growth(port.hardware, counter)
                if marks and marks >= max(_MANY_SEGMENTS, _MARKED * packets):
                    found.append(f"{name} has {marks:,} congestion notifications ({counter})")
                    break
            if (lost := find_growth(port.hardware, "port_xmit_discards")) and lost >= _MANY_ERRORS:
                found.append(f"{name} discarded {lost:,} packets (port_xmit_discards)")
    if found:
        yield TransferCause(
            "congestion",
            f"The network keeps ports from sending: {_join(found)}.",
            "See which links the job shares: `ibprof-report LST... PROFILE`; other jobs may load them too.",
        )


def _find_copies(run: Profile, hosts: Sequence[_HostTraffic], transfer_s: float) -> Iterator[TransferCause]:
    within, sent = sum(each.within for each in hosts), sum(each.sent for each in hosts)
    user = run.counters.kind == Kind.USER
    messages = int(run.counters.messages[user].sum())
    if not within or within < _COPIED * (within + sent) or within < _LARGE_BYTES * messages / 2 or not transfer_s:
        return
    if any(each.tcp[_LOOPBACK] >= 2 * CARRIES * each.within > 0 for each in hosts):
        return
    most = max(hosts, key=lambda each: each.within)
    if len(most.ranks) > count_cores(most.ranks):
        return
    yield TransferCause(
        "memory-bound",
        f"Ranks of {most.host.name} copy {format_bytes(most.within)} to each other through memory, at "
        f"{format_bytes(round(most.within / transfer_s))}/s.",
        "Fewer bytes or fewer copies help: one copy by CMA or XPMEM (kernel.yama.ptrace_scope=0), fewer ranks with "
        "more threads, or MPI_Win_allocate_shared.",
    )
