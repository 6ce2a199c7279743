# SPDX-License-Identifier: Apache-2.0
"""Programs in Fortran and Python are recorded as programs in C: the same calls, the same matrices."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_testing.mpi import patterns
from ibprof_testing.mpi.matrices import Matrix, load_complete, operations_sent, recorded
from ibprof_testing.mpi.mpis import FROM_PYPI, PROGRAMS, Build, Mpi, run_mpi
from ibprof_testing.mpi.patterns import all_the_same

RANKS = 4
BLOCK_BYTES = 100 * 8

ALGORITHMS: dict[str, str | int] = {
    "coll_tuned_use_dynamic_rules": 1,
    "coll_tuned_bcast_algorithm": 1,
    "coll_tuned_alltoall_algorithm": 2,
    "coll_tuned_allreduce_algorithm": 3,
}


def expected() -> dict[str, Matrix]:
    return {
        "BCAST": all_the_same(patterns.from_root(RANKS), BLOCK_BYTES),
        "ALLTOALL": all_the_same(patterns.all_pairs(RANKS), BLOCK_BYTES),
        "ALLREDUCE": all_the_same(patterns.hypercube(RANKS), 8),
        "SEND": all_the_same(patterns.ring(RANKS), BLOCK_BYTES),
    }


def check(mpi: Mpi, command: list[str | Path], folder: Path) -> None:
    run_mpi(mpi, RANKS, command, recording=folder, mca=ALGORITHMS)
    profile = load_complete(folder, RANKS)
    assert {operation: recorded(profile, operation=operation) for operation in expected()} == expected()
    assert operations_sent(profile) == set(expected()) | {"COMM_DUP"}


@pytest.mark.parametrize("source", ["mpif_h.f", "use_mpi.f90", "use_mpi_f08.f90"])
def test_fortran(system_mpi: Mpi, build: Build, source: str, tmp_path: Path) -> None:
    """Only the system's Open MPI is tested, since PyPI's builds have no Fortran."""
    check(system_mpi, [build(system_mpi, source)], tmp_path)


@pytest.mark.parametrize("mpi", FROM_PYPI, indirect=True)
def test_mpi4py(mpi: Mpi, tmp_path: Path) -> None:
    """Python opens libmpi for mpi4py without making libmpi's symbols global. Each Open MPI has its own mpi4py."""
    check(mpi, [mpi.python, PROGRAMS / "exchange.py"], tmp_path)
