# SPDX-License-Identifier: Apache-2.0
"""Seconds inside calls of a program whose threads wait at once."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.profile_data import Profile
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi

ON = {"IBPROF_TIME": "1", "IBPROF_SITES": "1"}
LATE_S, SLICE_S = 0.3, 0.01


def seconds_of(run: Profile, rank: int) -> dict[tuple[str, str], float]:
    """The seconds of each region and operation of a rank."""
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    rows = run.times
    for row in range(len(rows.rank)):
        if rows.rank[row] == rank:
            key = run.regions[rows.region[row]], run.operations[rows.operation[row]]
            seconds[key] += int(rows.time_ns[row]) * 1e-9
    return dict(seconds)


def test_threads_that_wait_at_once(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """The time of each thread counts: together more than the run took."""
    program = build(system_mpi, "late_threads.c", "-O2", "-pthread")
    ran = run_mpi(system_mpi, 2, [program, str(LATE_S)], recording=tmp_path, env=ON)
    run = load_profile(tmp_path)
    own = {operation: float(s) for operation, s in map(str.split, ran.stdout.splitlines())}
    assert min(own.values()) >= 0.5 * LATE_S
    seconds: defaultdict[str, float] = defaultdict(float)
    for (_, operation), s in seconds_of(run, 1).items():
        seconds[operation] += s
    for operation, expected in own.items():
        assert seconds[operation] == pytest.approx(expected, rel=0.03, abs=SLICE_S), operation
