# SPDX-License-Identifier: Apache-2.0
"""Thousands of communicators with times, sites and samples: memory is bounded, and each call and byte is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, read_tally, recorded
from ibprof_testing.mpi.mpis import Build, find_mpi, find_mpich_like, in_every_run, run_mpi

RANKS, KEPT = 2, 50
MORE_KB = 500
"""Limit of the memory, KiB, that ibprof adds to a rank while the last 90% of the communicators are made."""


@pytest.mark.parametrize("name", in_every_run(*mpis.NAMES, *mpis.MPICH_LIKE[:-1]))
def test_communicators_made_used_and_freed(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_mpich_like(name) if name in mpis.MPICH_LIKE else find_mpi(name)
    number = 10_000 if name == mpis.SYSTEM else 3000
    books, folder = tmp_path / "books", tmp_path / "recording"
    books.mkdir()
    command: list[str | Path] = [build(mpi, "many_communicators.c"), str(number)]
    bare = run_mpi(mpi, RANKS, command, env=mpis.THROUGH_NETWORK)
    done = run_mpi(mpi, RANKS, command, recording=folder, env={"TALLY": str(books), **mpis.THROUGH_NETWORK})
    assert "ibprof" not in done.stderr
    assert max(map(int, done.stdout.split())) <= max(map(int, bare.stdout.split())) + MORE_KB
    profile = load_complete(folder, RANKS)
    assert recorded(profile, operation="SENDRECV") == read_tally(books)["SENDRECV"]
    made = [len(range(kind, number, 3)) for kind in range(3)]
    expected = {"COMM_DUP": made[0], "COMM_SPLIT": made[1], "COMM_IDUP": made[2], "WAIT": made[2]}
    expected |= {"SENDRECV": number, "ALLREDUCE": number, "COMM_FREE": number - KEPT}
    times = profile.times
    counted = np.zeros(len(profile.operations), np.int64)
    np.add.at(counted, times.operation, times.calls)
    found = {name: int(n) for name, n in zip(profile.operations, counted, strict=True) if n}
    assert {name: RANKS * n for name, n in expected.items()} == found
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
