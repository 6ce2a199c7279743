# SPDX-License-Identifier: Apache-2.0
"""Bytes are counted under the call that started their message, whichever call sends the message.

A filter of calls does not change the matrix.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.profile_data import Direction
from ibprof_testing.mpi import patterns
from ibprof_testing.mpi.matrices import Matrix, add_up, load_complete, operations_sent, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi
from ibprof_testing.mpi.patterns import all_the_same

# These values are programs/overlap.c's.
BYTES, BLOCK, IN_FLIGHT = 1 << 20, 32 << 10, 300

ALGORITHMS: dict[str, str | int] = {
    "coll_libnbc_ibcast_algorithm": 2,
    "coll_libnbc_iallgather_algorithm": 1,
    "coll_tuned_use_dynamic_rules": 1,
    "coll_tuned_bcast_algorithm": 1,
    "coll_tuned_bcast_algorithm_segmentsize": 0,
}


def each_one(pairs: patterns.Pairs, sizes: range) -> Matrix:
    return add_up((*pair, size, 1) for pair in pairs for size in sizes)


def expected(what: str, ranks: int) -> dict[str, Matrix]:
    ibcast = all_the_same(patterns.binomial_tree(ranks), BYTES)
    ialltoall = all_the_same(patterns.all_pairs(ranks), BLOCK)
    if what == "barrier":
        return {"IBCAST": ibcast}
    if what == "wait":
        return {"IALLTOALL": ialltoall}
    if what == "three":
        return {
            "IBCAST": ibcast,
            "IALLTOALL": ialltoall,
            "IALLGATHER": all_the_same(patterns.all_pairs(ranks), BLOCK + 1),
            "BCAST": all_the_same(patterns.from_root(ranks), BYTES - 5),
        }
    return {
        "IBCAST": each_one(patterns.binomial_tree(ranks), range(2, IN_FLIGHT + 1, 2)),
        "IALLGATHER": each_one(patterns.all_pairs(ranks), range(1, IN_FLIGHT + 1, 2)),
        "ISEND": all_the_same(patterns.ring(ranks), 3, IN_FLIGHT),
    }


@pytest.mark.parametrize("ranks", [8, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize("what", ["barrier", "wait", "three", "hundreds"])
def test_each_operation_has_its_own_bytes(mpi: Mpi, build: Build, what: str, ranks: int, tmp_path: Path) -> None:
    run_mpi(mpi, ranks, [build(mpi, "overlap.c"), what], recording=tmp_path, mca=ALGORITHMS)
    profile = load_complete(tmp_path, ranks)
    wanted = expected(what, ranks)
    assert {operation: recorded(profile, operation=operation) for operation in wanted} == wanted
    # Receivers count the same bytes as senders, under the same operations or, point to point, under RECV.
    arrived = {
        operation: recorded(profile, operation=operation, directions=[Direction.RECEIVED]) for operation in wanted
    }
    assert arrived | {"ISEND": {}} == wanted | {"ISEND": {}}
    assert operations_sent(profile) <= set(wanted) | {"BARRIER", "COMM_DUP", "COMM_FREE"}
    barrier = recorded(profile, operation="BARRIER")
    assert all(size == 0 for size, _ in barrier.values())


@pytest.mark.parametrize("asked", ["IBCAST", "ialltoall,MPI_Bcast", "IALLGATHER"])
def test_a_filter_gives_the_same_matrix(mpi: Mpi, build: Build, asked: str, tmp_path: Path) -> None:
    run_mpi(mpi, 8, [build(mpi, "overlap.c"), "three"], recording=tmp_path, mca=ALGORITHMS, env={"IBPROF": asked})
    profile = load_complete(tmp_path, 8)
    names = {name.upper().removeprefix("MPI_") for name in asked.split(",")}
    wanted = {operation: matrix for operation, matrix in expected("three", 8).items() if operation in names}
    assert operations_sent(profile) == set(wanted) == names
    assert {operation: recorded(profile, operation=operation) for operation in wanted} == wanted
    assert profile.operations_asked == asked
