# SPDX-License-Identifier: Apache-2.0
"""Verdicts on runs whose time was put where it goes, on fabrics of several shapes with one thing wrong, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import ibprof_converter
from ibprof.profile.profile_data import CallTimes, Profile
from ibprof.profile.profile_rows import order_rows
from ibprof.verdict.verdict_data import VerdictKind
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.subnet import Subnet
from ibprof_testing.lab.lab_fabrics import LabRail
from ibprof_testing.lab.routed_network import host_names, write_dumps
from ibprof_testing.samples.planted_causes import leaves_of, make_rails, uplinks_of, without_links
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

GBPS = 100.0
GB = 10**9

Pairs = list[tuple[int, int]]


def everybody(ranks: int) -> Pairs:
    return [(one, other) for one in range(ranks) for other in range(ranks) if one != other]


def ring(ranks: int) -> Pairs:
    return [(rank, (rank + 1) % ranks) for rank in range(ranks)]


def to_one(ranks: int) -> Pairs:
    return [(rank, 0) for rank in range(1, ranks)]


def partners(ranks: int) -> Pairs:
    return [(rank, rank ^ 1) for rank in range(ranks)]


@dataclass(frozen=True)
class Plant:
    """A run.

    Attributes:
        kind, cause: of the right verdict.
        fabric: its shape.
        pairs: of ranks that send `size` bytes, in messages of `message` bytes.
        hosts: that have `each` ranks; all if empty.
        rails: of the fabric; `policy` says which of them bytes take.
        fault: what is done to the first rail.
        mpi_s: time in MPI of each rank; as a function of the seconds of the busiest link.
        late: whether one rank is late, so that it is not in MPI.
        share: part of the run that is in MPI.
        operation: of the calls.
    """

    kind: VerdictKind
    cause: str | None
    fabric: str
    pairs: Callable[[int], Pairs]
    size: int = GB
    message: int = 1 << 20
    hosts: tuple[int, ...] = ()
    each: int = 1
    rails: int = 1
    policy: str | None = None
    fault: Callable[[Subnet], Subnet] = lambda subnet: subnet
    mpi_s: Callable[[float], float] = lambda line: 1.5 * line
    late: bool = False
    share: float = 0.7
    operation: str = "WAITALL"


def slow_cable(subnet: Subnet) -> Subnet:
    gbps = subnet.fabric.link_gbps.copy()
    is_switch = (subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    gbps[np.flatnonzero(is_switch)[3]] /= 8
    return Subnet(replace(subnet.fabric, link_gbps=gbps), subnet.tables, ())


def without_an_uplink(subnet: Subnet) -> Subnet:
    return without_links(subnet, uplinks_of(subnet, leaves_of(subnet)[1])[:1])


PLANTS = {
    "slow cable of a torus": Plant(
        VerdictKind.SWITCH_LINKS, "slow-link", "torus:5x5:1", everybody, fault=slow_cable, operation="ALLTOALL"
    ),
    "slow cable of a rail": Plant(
        VerdictKind.SWITCH_LINKS, "slow-link", "xgft:2:5,7:1,5", everybody, rails=2, fault=slow_cable
    ),
    "missing cable": Plant(
        VerdictKind.SWITCH_LINKS, "missing-uplink", "xgft:2:7,5:1,7", everybody, fault=without_an_uplink
    ),
    "tapered": Plant(VerdictKind.SWITCH_LINKS, "oversubscription", "xgft:2:10,5:1,2", everybody),
    "to one host of a dragonfly": Plant(VerdictKind.HOST_LINKS, "many-to-few", "dragonfly:4,2,2,5", to_one),
    "one of two rails": Plant(VerdictKind.HOST_LINKS, "one-rail", "xgft:2:6,6:1,6", everybody, rails=2, policy="first"),
    "as busy as links of hosts": Plant(VerdictKind.HOST_LINKS, None, "xgft:2:8,8:1,8", ring),
    "two ranks": Plant(VerdictKind.HOST_LINKS, None, "torus:4x4:2", partners, hosts=(0, 1)),
    "a late rank": Plant(
        VerdictKind.WAITING, None, "xgft:2:4,4:1,4", everybody, rails=2, late=True, mpi_s=lambda line: 6 * line
    ),
    "late in turn": Plant(
        *(VerdictKind.WAITING, None, "dragonfly:4,2,2,3", ring, 1000),
        mpi_s=lambda _: 1.0,
        operation="ALLREDUCE",
    ),
    "small messages": Plant(
        VerdictKind.SMALL_MESSAGES, None, "tree:4,2", partners, 10**7, 8, hosts=(0, 9), mpi_s=lambda _: 2.5
    ),
    "within a host": Plant(
        VerdictKind.ON_HOST, None, "torus:3x3:2", everybody, hosts=(3,), each=64, mpi_s=lambda _: 20.0
    ),
    "little MPI": Plant(VerdictKind.NOT_MPI, None, "dragonfly:2,1,1", partners, hosts=(0, 1), share=0.04),
    "slowed by other jobs": Plant(
        VerdictKind.UNKNOWN, None, "tree:4,2", everybody, 10**7, hosts=(0, 5), each=32, mpi_s=lambda line: 12 * line
    ),
}


@pytest.mark.parametrize("name", PLANTS)
def test_time_goes_where_it_was_put(name: str, tmp_path: Path) -> None:
    plant = PLANTS[name]
    first, *others = make_rails(plant.fabric, plant.rails)
    subnets = [plant.fault(_at_one_speed(first)), *map(_at_one_speed, others)]
    rails = [LabRail(subnet.fabric, subnet.tables) for subnet in subnets]
    fabric = ibprof_converter.read_fabric(*map(str, write_dumps(rails, tmp_path)))
    names = host_names(rails[0])
    hosts = [names[number] for number in plant.hosts or range(len(names))]
    ranks = len(hosts) * plant.each
    sent = [Count(one, other, plant.size, max(1, plant.size // plant.message)) for one, other in plant.pairs(ranks)]
    run = make_profile(
        sent,
        [replace(make_rank(rank, rank // plant.each), has_times=True) for rank in range(ranks)],
        [make_host(each) for each in hosts],
        ("main",),
        (plant.operation,),
    )
    diagnosis = ibprof_converter.report(ibprof_converter.load_links(fabric, run, rails=plant.policy)).links
    line_s = diagnosis.diagnosis.max_time_s if diagnosis and diagnosis.diagnosis else 0.0
    timed = _put_time(run, plant, plant.mpi_s(line_s))
    verdict = ibprof_converter.report(ibprof_converter.load_links(fabric, timed, rails=plant.policy)).verdict
    assert verdict.kind is plant.kind, verdict.text
    if plant.cause:
        assert verdict.cause == plant.cause
    if plant.kind in (VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS):
        assert ("HCA" in (verdict.evidence[0].link or "")) == (plant.kind is VerdictKind.HOST_LINKS)


def _at_one_speed(subnet: Subnet) -> Subnet:
    return Subnet(replace(subnet.fabric, link_gbps=np.full(subnet.fabric.links, GBPS)), subnet.tables, ())


def _put_time(run: Profile, plant: Plant, mpi_s: float) -> Profile:
    ranks = len(run.ranks)
    inside = np.full(ranks, mpi_s)
    if plant.late:
        inside[ranks // 3] = mpi_s / 10
    stop_ns = round(mpi_s / plant.share * 1e9)
    times = CallTimes(
        rank=np.arange(ranks, dtype=np.int32),
        region=np.zeros(ranks, np.int32),
        operation=np.zeros(ranks, np.int32),
        calls=np.full(ranks, 10, np.uint64),
        time_ns=(inside * 1e9).astype(np.uint64),
        error_ns=np.zeros(ranks, np.uint64),
        site=np.zeros(ranks, np.int32),
    )
    return replace(run, ranks=tuple(replace(rank, stop_ns=stop_ns) for rank in run.ranks), times=order_rows(times))
