# SPDX-License-Identifier: Apache-2.0
"""While MPI_Comm_idup creates communicators, messages of other pending calls keep their operation.

The expected messages are from a run with MPI_Comm_dup, where no call is pending. The new communicators have
the members of the old communicator. While MPI_Comm_idup is pending, ibprof must not call MPI_Comm_group, because MPICH
4.3.2 then damages the new communicator.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, run_mpi

RANKS = 5
NAMES = [
    "mpich-4.3.2",
    "system",
    "5.0.11",
    pytest.param(mpis.MPICH_SYSTEM, marks=pytest.mark.full),
    "mpich-5.0.2",
    mpis.INTEL,
]


@pytest.mark.parametrize("name", NAMES)
def test_every_message_keeps_its_operation(name: str, build: Build, tmp_path: Path) -> None:
    mpi = mpis.find_mpich_like(name) if name in mpis.MPICH_LIKE else mpis.find_mpi(name)
    program = build(mpi, "duplicates.c")
    profiles = []
    for how in ("idup", "dup"):
        run_mpi(mpi, RANKS, [program, how], recording=tmp_path / how, env=THROUGH_NETWORK)
        profiles.append(load_complete(tmp_path / how, RANKS))
    pending, plain = profiles
    for operation in ("ALLREDUCE", "ISCAN", "IALLGATHER"):
        assert recorded(plain, operation=operation)
        assert recorded(pending, operation=operation) == recorded(plain, operation=operation)
    assert recorded(pending, operation="COMM_IDUP")
    assert not recorded(pending, operation="UNATTRIBUTED")
