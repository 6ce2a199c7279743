# SPDX-License-Identifier: Apache-2.0
"""The simulation's collectives send the same messages as an MPI that is set to the same algorithms."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_lab.simulation.workload.workloads import SCHEDULES, Role
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import MPICH_SYSTEM, THROUGH_NETWORK, Build, find_mpi, find_mpich_like, run_mpi

BYTES = 3000

# A role, the call, and the number of the role's algorithm in Open MPI's `coll/tuned`.
OF_OPEN_MPI = [(Role.ALL_TO_ALL, "Alltoall", 2), (Role.ALL_GATHER, "Allgather", 4), (Role.ALL_REDUCE, "Allreduce", 3)]


def list_messages(role: Role, ranks: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the bytes and messages of each pair of ranks, from the simulation's schedule of a collective."""
    sent: dict[tuple[int, int], tuple[int, int]] = {}
    for rank in range(ranks):
        for step in SCHEDULES[role](rank, ranks, BYTES).steps:
            size, messages = sent.get((rank, int(step["client"])), (0, 0))
            sent[rank, int(step["client"])] = size + int(step["bytes"]), messages + 1
    return sent


@pytest.mark.parametrize("ranks", [3, 7])
@pytest.mark.parametrize(("role", "call", "algorithm"), OF_OPEN_MPI, ids=[call for _, call, _ in OF_OPEN_MPI])
def test_open_mpi(build: Build, role: Role, call: str, algorithm: int, ranks: int, tmp_path: Path) -> None:
    mpi = find_mpi("system")
    mca = {"coll_tuned_use_dynamic_rules": 1, f"coll_tuned_{call.lower()}_algorithm": algorithm}
    run_mpi(mpi, ranks, [build(mpi, "collectives.c"), "blocking", call, str(BYTES)], recording=tmp_path, mca=mca)
    assert recorded(load_complete(tmp_path, ranks), operation=call.upper()) == list_messages(role, ranks)


@pytest.mark.parametrize("ranks", [3, 7])
def test_broadcast_of_mpich(build: Build, ranks: int, tmp_path: Path) -> None:
    """Open MPI is not used, because its binomial tree orders ranks in another way than the simulation's."""
    mpi = find_mpich_like(MPICH_SYSTEM)
    env = THROUGH_NETWORK | {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"}
    command: list[str | Path] = [build(mpi, "collectives.c"), "blocking", "Bcast", str(BYTES)]
    run_mpi(mpi, ranks, command, recording=tmp_path, env=env)
    assert recorded(load_complete(tmp_path, ranks), operation="BCAST") == list_messages(Role.BROADCAST, ranks)
