# SPDX-License-Identifier: Apache-2.0
"""Synthetic runs with known times and verdicts, on fabrics with one fault or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import ibprof_converter
from ibprof.profile.profile_data import CallTimes, Profile
from ibprof.profile.profile_rows import order_rows
from ibprof.verdict.verdict_data import Verdict, VerdictKind
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.subnet import Subnet
from ibprof_testing.lab.lab_fabrics import LabRail
from ibprof_testing.lab.routed_network import host_names, write_dumps
from ibprof_testing.samples.planted_causes import leaves_of, make_rails, uplinks_of, without_links
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

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
        kind, cause: kind and cause of the correct verdict.
        pairs: pairs of ranks that send `size` bytes, in messages of `message` bytes.
        hosts: hosts with `each` ranks; empty for all hosts.
        rails: number of rails; `policy` assigns bytes to rails.
        fault: function that plants a fault on the first rail and returns this rail.
        mpi_s: function from the most loaded link's time at line rate to a time in MPI, in s.
        inside: function from the number of ranks to each rank's time in MPI / result of `mpi_s`.
        share: result of `mpi_s` / the run's time.
        gbps: speed of all links, Gb/s.
        order: order in which ranks are assigned to hosts; None for the order of hosts in the fabric.
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
    inside: Callable[[int], Sequence[float]] = lambda ranks: [1.0] * ranks
    share: float = 0.7
    operation: str = "WAITALL"
    gbps: float = 100.0
    order: int | None = None


def one_late(ranks: int) -> list[float]:
    return [0.1 if rank == ranks // 3 else 1.0 for rank in range(ranks)]


def slow_cable(subnet: Subnet) -> Subnet:
    gbps = subnet.fabric.link_gbps.copy()
    is_switch = (subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    gbps[np.flatnonzero(is_switch)[3]] /= 8
    return Subnet(replace(subnet.fabric, link_gbps=gbps), subnet.tables, ())


def without_an_uplink(subnet: Subnet) -> Subnet:
    return without_links(subnet, uplinks_of(subnet, leaves_of(subnet)[1])[:1])


def judge_plant(plant: Plant, folder: Path) -> Verdict:
    """Return the verdict on a run. The fabric's dumps are written to a folder."""
    first, *others = make_rails(plant.fabric, plant.rails)
    subnets = [plant.fault(_at_one_speed(first, plant.gbps)), *(_at_one_speed(each, plant.gbps) for each in others)]
    rails = [LabRail(subnet.fabric, subnet.tables) for subnet in subnets]
    fabric = ibprof_converter.read_fabric(*map(str, write_dumps(rails, folder)))
    names = host_names(rails[0])
    if plant.order is not None:
        names = np.random.default_rng(plant.order).permutation(np.array(names)).tolist()
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
    return ibprof_converter.report(ibprof_converter.load_links(fabric, timed, rails=plant.policy)).verdict


def _at_one_speed(subnet: Subnet, gbps: float) -> Subnet:
    return Subnet(replace(subnet.fabric, link_gbps=np.full(subnet.fabric.links, gbps)), subnet.tables, ())


def _put_time(run: Profile, plant: Plant, mpi_s: float) -> Profile:
    ranks = len(run.ranks)
    inside = mpi_s * np.array(plant.inside(ranks))
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
