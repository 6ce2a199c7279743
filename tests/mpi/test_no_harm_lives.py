# SPDX-License-Identifier: Apache-2.0
"""Programs that start or end MPI outside main, or that another tool watches, behave as without ibprof."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing.mpi.mpis import MPICH_SYSTEM, SYSTEM, Build, Mpi, find_mpich_like, library
from ibprof_testing.mpi.no_harm import (
    FAMILIES,
    check_complete,
    check_no_harm,
    every_mpi_but_quick,
    find_any,
    ibprof_lines,
    launch,
    preload,
)

RANKS = 2
LIVES = ("forked-first", "controlled", "deep", "raised")


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
@pytest.mark.parametrize("life", LIVES)
def test_lives(life: str, name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    done = check_no_harm(mpi, RANKS, [build(mpi, "lives.c", "-pthread"), life], tmp_path)
    assert done.stdout.startswith(f"{life} ")
    profile = load_profile(tmp_path)
    check_complete(profile, RANKS)
    assert len(profile.regions) > 300


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_mpi_abort_in_a_thread(name: str, build: Build, tmp_path: Path) -> None:
    """From run to run, a launcher reports MPI_Abort or not, and passes on output or not. All cases are accepted."""
    mpi = find_any(name)
    command: list[str | Path] = [build(mpi, "lives.c", "-pthread"), "aborting"]
    without = launch(mpi, RANKS, command, {})
    done = launch(mpi, RANKS, command, preload(library()) | {"IBPROF_OUTPUT": str(tmp_path)})
    assert done.returncode == without.returncode
    assert {done.stdout, without.stdout} <= {"", "aborting 1\n"}
    assert not ibprof_lines(done.stderr)
    profile = load_profile(tmp_path)
    assert [rank.rank for rank in profile.ranks] == list(range(RANKS))
    assert len(profile.regions) > 300


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_mpi_in_the_constructor_of_a_library(name: str, build: Build, tmp_path: Path) -> None:
    """The dynamic linker may initialise ibprof before or after the program's library."""
    mpi = find_any(name)
    early = build(mpi, "lives.c", "-shared", "-fPIC", "-DLIBRARY")
    command: list[str | Path] = [build(mpi, "lives.c", "-pthread"), "early"]
    for order in ([library(), early], [early, library()]):
        folder = tmp_path / order[0].stem
        done = check_no_harm(mpi, RANKS, command, folder, libraries=order, others=[early])
        assert done.stdout == "early 2\n"
        check_complete(load_profile(folder), RANKS)


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_objects_that_outlive_main(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    done = check_no_harm(mpi, 1, [build(mpi, "destructors.cpp")], tmp_path)
    assert done.stdout == "before: 1 0\nafterwards: 1 1\n"
    check_complete(load_profile(tmp_path), 1)


@pytest.mark.parametrize(
    "find", [lambda: find_any(SYSTEM), lambda: find_mpich_like(MPICH_SYSTEM)], ids=["openmpi", "mpich"]
)
@pytest.mark.parametrize("how", ["stop", "error-stop", "finalized", "end"])
def test_ends_of_fortran(how: str, find: Callable[[], Mpi], build: Build, tmp_path: Path) -> None:
    """Only the system's MPIs are tested, since PyPI's have no Fortran compiler."""
    mpi = find()
    done = check_no_harm(mpi, 1, [build(mpi, "stops.f90"), how], tmp_path)
    assert done.stdout.split() == ["sum", "1"]
    assert [rank.rank for rank in load_profile(tmp_path).ranks] == [0]
