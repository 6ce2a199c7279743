# SPDX-License-Identifier: Apache-2.0
"""Verdicts on synthetic runs with known times are right, on fabrics of several shapes with a planted fault or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.verdict.verdict_data import VerdictKind
from ibprof_testing.samples.planted_runs import (
    Plant,
    everybody,
    judge_plant,
    one_late,
    partners,
    ring,
    slow_cable,
    to_one,
    without_an_uplink,
)

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
        VerdictKind.WAITING, None, "xgft:2:4,4:1,4", everybody, rails=2, inside=one_late, mpi_s=lambda line: 6 * line
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
    verdict = judge_plant(plant, tmp_path)
    assert verdict.kind is plant.kind, verdict.text
    if plant.cause:
        assert verdict.cause == plant.cause
    if plant.kind in (VerdictKind.HOST_LINKS, VerdictKind.SWITCH_LINKS):
        assert ("HCA" in (verdict.evidence[0].link or "")) == (plant.kind is VerdictKind.HOST_LINKS)
