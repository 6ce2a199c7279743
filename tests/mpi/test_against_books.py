# SPDX-License-Identifier: Apache-2.0
"""Each operation is recorded with the traffic that the program itself noted when it made the calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.profile_data import Kind, Profile
from ibprof_testing.mpi.matrices import Matrix, load_complete, read_tally, received, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi


def record_with_books(
    mpi: Mpi, ranks: int, command: list[str | Path], folder: Path, mca: dict[str, str | int] | None = None
) -> tuple[Profile, dict[str, Matrix]]:
    books = folder / "books"
    books.mkdir()
    run_mpi(mpi, ranks, command, recording=folder / "recording", env={"TALLY": str(books)}, mca=mca)
    return load_complete(folder / "recording", ranks), read_tally(books)


def recorded_as_in(books: dict[str, Matrix], profile: Profile) -> dict[str, Matrix]:
    return {operation: recorded(profile, operation=operation) for operation in books}


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 20))])
@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_point_to_point(mpi: Mpi, build: Build, ranks: int, seed: int, tmp_path: Path) -> None:
    profile, books = record_with_books(mpi, ranks, [build(mpi, "point_to_point.c"), str(seed)], tmp_path)
    assert len(books) == 9
    assert recorded_as_in(books, profile) == books
    assert received(profile) == recorded(profile, kinds=Kind)


@pytest.mark.parametrize("ranks", [2, 5])
def test_persistent_point_to_point(mpi: Mpi, build: Build, ranks: int, tmp_path: Path) -> None:
    """Open MPI's monitoring does not see these, so there are the books alone, and the other end."""
    profile, books = record_with_books(mpi, ranks, [build(mpi, "persistent.c")], tmp_path)
    assert set(books) == {"SEND_INIT", "SSEND_INIT", "BSEND_INIT", "RSEND_INIT"}
    assert recorded_as_in(books, profile) == books
    assert received(profile) == recorded(profile, kinds=Kind)


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("component", ["", "rdma", "pt2pt"])
@pytest.mark.parametrize("window", ["create", "allocate", "shared", "dynamic"])
def test_one_sided(mpi: Mpi, build: Build, window: str, component: str, ranks: int, tmp_path: Path) -> None:
    if component == "pt2pt" and mpi.name.startswith("5"):
        component = "rdma"  # 5.0 has no other
    mca: dict[str, str | int] = {"osc": f"{component},sm" if window == "shared" else component} if component else {}
    profile, books = record_with_books(mpi, ranks, [build(mpi, "onesided.c"), window], tmp_path, mca)
    assert len(books) == 10
    assert recorded_as_in(books, profile) == books
    under_none = recorded(profile, operation="UNATTRIBUTED")
    assert under_none == {}
