# SPDX-License-Identifier: Apache-2.0
"""Sum a traffic between ranks by operation, region, host and port. No fabric is needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.port_sums import PortSum, sum_ports
from ibprof.profile.profile_data import Port
from ibprof_converter.traffic.traffic_data import RankTraffic


@dataclass(frozen=True, slots=True)
class NamedSum:
    """Bytes and messages of one operation, region or call site.

    Attributes:
        share: share of all bytes, 0 to 1.
    """

    name: str
    bytes: int
    messages: int
    share: float


@dataclass(frozen=True, slots=True)
class HostSum:
    """Bytes of the ranks of one host.

    Attributes:
        ranks: the host's recorded ranks.
        ports: ports of the host's InfiniBand or RoCE devices.
        bytes_on_host: bytes between the host's ranks.
        bytes_sent, bytes_received: bytes to other hosts, and bytes from other hosts.
    """

    name: str
    ranks: tuple[int, ...]
    ports: tuple[Port, ...]
    bytes_on_host: int
    bytes_sent: int
    bytes_received: int


@dataclass(frozen=True, slots=True)
class RegionBalance:
    """Comparison of the largest sender with the mean of all senders.

    Attributes:
        max_bytes: bytes of the largest sender.
        mean_bytes: mean bytes of all senders.
        ratio: `max_bytes` / `mean_bytes`; 1 if all senders send equally many bytes, 0 if no bytes are sent.
        greatest: index of the largest sender.
    """

    max_bytes: int
    mean_bytes: float
    ratio: float
    greatest: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Sums of a traffic between ranks.

    Attributes:
        bytes_total: bytes from rank to rank, including bytes within a host and bytes without a receiving rank.
        bytes_on_host: bytes between ranks of one host, as recorded.
        operations, regions, sites: sums, sorted by bytes, descending; `sites` is empty if fewer than two are known.
        hosts: sums in the order of the profile; empty without a recorded run, or if ranks are placed on other hosts.
        balance_ranks: comparison of the ranks' sent bytes.
        balance_hosts: comparison of the bytes that hosts send to other hosts; None without hosts.
        ports: bytes of each port, if work requests were recorded or the ports have counters; else empty.
    """

    bytes_total: int
    bytes_on_host: int
    operations: tuple[NamedSum, ...]
    regions: tuple[NamedSum, ...]
    sites: tuple[NamedSum, ...]
    hosts: tuple[HostSum, ...]
    balance_ranks: RegionBalance
    balance_hosts: RegionBalance | None
    ports: tuple[PortSum, ...]


def summarise(demand: RankTraffic, with_hosts: bool = True) -> RunSummary:
    """Return the sums of a traffic between ranks.

    Args:
        with_hosts: true to also sum the bytes of each recorded host.
    """
    total = sum_exactly(demand.bytes) + sum(demand.unmapped.values())
    ports = sum_ports(demand.profile) if demand.profile else ()
    has_bytes = demand.profile and len(demand.profile.transfers.bytes)
    hosts = _sum_by_host(demand) if with_hosts else ()
    return RunSummary(
        bytes_total=total,
        bytes_on_host=sum(host.bytes_on_host for host in hosts),
        operations=_sum_by(demand.operation, demand.operations, demand, total),
        regions=_sum_by(demand.region, demand.regions, demand, total),
        sites=_sum_by(demand.site, demand.sites, demand, total) if len(demand.sites) > 1 else (),
        hosts=hosts,
        balance_ranks=_balance(add_by(demand.source, demand.bytes, demand.ranks).tolist()),
        balance_hosts=_balance([host.bytes_sent for host in hosts]) if hosts else None,
        ports=ports if has_bytes or any(port.hardware_sent is not None for port in ports) else (),
    )


def add_by(key: npt.NDArray[np.int32], amounts: npt.NDArray[np.uint64], length: int) -> npt.NDArray[np.uint64]:
    """Sum the amounts of each key from 0 to `length` - 1: uint64 [length]."""
    sums = np.zeros(length, np.uint64)
    np.add.at(sums, key, amounts)
    return sums


def _sum_by(
    key: npt.NDArray[np.int32], names: tuple[str, ...], demand: RankTraffic, total: int
) -> tuple[NamedSum, ...]:
    amounts = add_by(key, demand.bytes, len(names)).tolist()
    messages = add_by(key, demand.messages, len(names)).tolist()
    sums = [
        NamedSum(name, amount, count, amount / total)
        for name, amount, count in zip(names, amounts, messages, strict=True)
        if amount
    ]
    return tuple(sorted(sums, key=lambda each: -each.bytes))


def _sum_by_host(demand: RankTraffic) -> tuple[HostSum, ...]:
    run = demand.profile
    if run is None:
        return ()
    none = len(run.hosts)  # an additional index for ranks that were not recorded
    host_of_rank = np.full(demand.ranks, none, np.int32)
    for rank in run.ranks:
        host_of_rank[rank.rank] = rank.host
    source, destination = host_of_rank[demand.source], host_of_rank[demand.destination]
    inside = (source == destination) & (source != none) | (demand.source == demand.destination)
    on_host = add_by(source[inside], demand.bytes[inside], none + 1).tolist()
    sent = add_by(source[~inside], demand.bytes[~inside], none + 1).tolist()
    received = add_by(destination[~inside], demand.bytes[~inside], none + 1).tolist()
    return tuple(
        HostSum(
            name=host.name,
            ranks=tuple(np.flatnonzero(host_of_rank == number).tolist()),
            ports=host.ports,
            bytes_on_host=on_host[number],
            bytes_sent=sent[number],
            bytes_received=received[number],
        )
        for number, host in enumerate(run.hosts)
    )


def _balance(amounts: list[int]) -> RegionBalance:
    greatest = max(range(len(amounts)), key=amounts.__getitem__, default=0)
    mean = sum(amounts) / len(amounts) if amounts else 0.0
    most = amounts[greatest] if amounts else 0
    return RegionBalance(max_bytes=most, mean_bytes=mean, ratio=most / mean if mean else 0.0, greatest=greatest)
