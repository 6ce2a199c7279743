# SPDX-License-Identifier: Apache-2.0
"""The recording and the archive contain the coordinates on Cartesian grids that MPI itself returns."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.load import load_profile
from ibprof.profile.profile_data import Grid
from ibprof_testing.mpi.mpis import (
    INTEL,
    MPICH_SYSTEM,
    NAMES,
    STANDARD_ABI,
    THROUGH_NETWORK,
    Build,
    find_mpi,
    find_mpich_like,
    in_every_run,
    run_mpi,
)

RANKS = 5


@pytest.mark.parametrize("name", in_every_run(*NAMES, MPICH_SYSTEM, STANDARD_ABI, INTEL))
def test_grids(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_mpi(name) if name in NAMES else find_mpich_like(name)
    said = run_mpi(mpi, RANKS, [build(mpi, "grids.c")], recording=tmp_path / "recording", env=THROUGH_NETWORK)
    profile = load_profile(tmp_path / "recording")
    places = {rank: rest for rank, *rest in (map(int, line.split()) for line in said.stdout.splitlines())}
    assert sorted(places) == list(range(RANKS))
    for rank in profile.ranks:
        first, second, along = places[rank.rank]
        plane = [Grid(2, (2, 2), (0, 1), (first, second))] if first >= 0 else []
        assert rank.grids == (*plane, Grid(1, (5,), (0,), (along,)))
    assert sum(len(rank.grids) for rank in profile.ranks) == 2 * RANKS - 1
    write_archive(profile, tmp_path / "profile.otf2")
    kept = load_profile(tmp_path / "profile.otf2")
    assert [rank.grids for rank in kept.ranks] == [rank.grids for rank in profile.ranks]
