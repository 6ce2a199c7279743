# SPDX-License-Identifier: Apache-2.0
"""Hand-made profiles for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ibprof.profile.profile_data import (
    Counters,
    Direction,
    Host,
    Kind,
    MessageSizes,
    Opcode,
    Port,
    PortPair,
    Profile,
    Rank,
    RegionTimes,
    Source,
    Transfers,
)
from ibprof.profile.profile_rows import COLUMN_TYPES


@dataclass(frozen=True)
class Count:
    """A counter of `rank` for traffic to or from `peer`."""

    rank: int
    peer: int
    bytes: int
    messages: int = 1
    region: int = 0
    operation: int = 0
    kind: Kind = Kind.USER
    direction: Direction = Direction.SENT
    source: Source = Source.OPENMPI


@dataclass(frozen=True)
class Posted:
    """Bytes that `rank` posted for a pair of ports."""

    rank: int
    pair: int
    bytes: int
    messages: int = 1
    region: int = 0
    opcode: Opcode = Opcode.WRITE


def make_transfers(posted: Sequence[Posted]) -> Transfers:
    def column(name: str) -> np.ndarray:
        return np.array([getattr(each, name) for each in posted], COLUMN_TYPES[name])

    return Transfers(**{field.name: column(field.name) for field in fields(Transfers)})


def make_pair(
    host: int, lid: int | None, remote_lid: int | None, device: str = "mlx5_0", gid: str = "", remote_gid: str = ""
) -> PortPair:
    return PortPair(host, device, 1, lid, gid, remote_lid, remote_gid)


def make_host(name: str, *ports: Port) -> Host:
    return Host(name=name, ports=ports)


def make_port(lid: int, port_guid: int = 0, **changes: Any) -> Port:
    port = Port(
        device="mlx5_0",
        port=1,
        lid=lid,
        lmc=0,
        node_guid="0x0000000000000000",
        port_guid=f"0x{port_guid:016x}",
        gids=(),
        rate_gbps=100.0,
        link_layer="InfiniBand",
        state=4,
    )
    return replace(port, **changes)


def make_rank(rank: int, host: int = 0, **changes: Any) -> Rank:
    made = Rank(
        rank=rank,
        host=host,
        pid=1000 + rank,
        start_ns=0,
        stop_ns=1,
        finalized=True,
        source=Source.OPENMPI,
        thread_level=0,
        lost_bytes=0,
        lost_messages=0,
        off_ns=0,
        marks_seen=0,
        notes=(),
    )
    return replace(made, **changes)


def make_profile(
    counts: Sequence[Count],
    ranks: Sequence[Rank],
    hosts: Sequence[Host] = (Host("somewhere", ()),),
    regions: Sequence[str] = ("main",),
    operations: Sequence[str] = ("SEND",),
    world_size: int | None = None,
    operations_asked: str = "",
) -> Profile:
    def column(name: str, dtype: type[np.generic]) -> np.ndarray:
        return np.array([getattr(count, name) for count in counts], dtype)

    none: Any = {name: np.zeros(0, np.int32) for name in ("rank", "region")}
    times: Any = {name: np.zeros(0, np.uint64) for name in ("visits", "wall_ns", "first_ns", "last_ns")}
    small: Any = {name: np.zeros(0, np.uint8) for name in ("kind", "direction")}
    return Profile(
        name="made by hand",
        mpi="Open MPI",
        command="app",
        job="1",
        world_size=len(ranks) if world_size is None else world_size,
        operations_asked=operations_asked,
        hosts=tuple(hosts),
        ranks=tuple(ranks),
        regions=tuple(regions),
        operations=tuple(operations),
        counters=Counters(
            rank=column("rank", np.int32),
            peer=column("peer", np.uint32),
            region=column("region", np.int32),
            operation=column("operation", np.int32),
            kind=column("kind", np.uint8),
            direction=column("direction", np.uint8),
            source=column("source", np.uint8),
            bytes=column("bytes", np.uint64),
            messages=column("messages", np.uint64),
        ),
        region_times=RegionTimes(**none, **times),
        sizes=MessageSizes(**none, operation=np.zeros(0, np.int32), **small, messages=np.zeros((0, 65), np.uint64)),
        marks=(),
    )
