# SPDX-License-Identifier: Apache-2.0
"""Messages are counted under the call that started them, even if the call itself sends nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.profile_data import Direction, Kind, Profile
from ibprof_testing.mpi import patterns
from ibprof_testing.mpi.matrices import load_complete, operations_sent, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi
from ibprof_testing.mpi.patterns import all_the_same

RANKS = 4
ITEM = 4

# These values are programs/silent_starts.c's.
ITEMS, ROUNDS, THOUSANDS = 30_000, 20, 3_000


# Open MPI reduces long vectors by recursive halving, which sends (p - 1) vectors in total. Then a binomial tree sends
# log2(p) / 2 vectors to gather the parts.
REDUCED_VECTORS = RANKS - 1 + 1


def total(profile: Profile, operation: str) -> int:
    return sum(size for size, _ in recorded(profile, operation=operation).values())


@pytest.mark.parametrize(
    ("what", "bytes_of"),
    [
        ("local", {"IREDUCE": REDUCED_VECTORS * ITEMS * ITEM * ROUNDS}),
        ("empty", {"IBCAST": (RANKS - 1) * ITEM, "IREDUCE": 0, "IALLTOALL": RANKS * (RANKS - 1) * 10 * ITEM}),
        ("thousands", {"IBCAST": (RANKS - 1) * ITEM * THOUSANDS}),
        ("persistent", {"REDUCE_INIT": REDUCED_VECTORS * ITEMS * ITEM * ROUNDS}),
    ],
)
def test_bytes_that_leave_later(mpi: Mpi, build: Build, what: str, bytes_of: dict[str, int], tmp_path: Path) -> None:
    run_mpi(mpi, RANKS, [build(mpi, "silent_starts.c"), what], recording=tmp_path)
    profile = load_complete(tmp_path, RANKS)
    assert {operation: total(profile, operation) for operation in bytes_of} == bytes_of
    others = operations_sent(profile) - set(bytes_of)
    assert others <= {"BARRIER", "COMM_DUP", "COMM_FREE", "IALLREDUCE"}
    assert total(profile, "BARRIER") == 0


def test_a_duplication_that_is_overlapped(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    run_mpi(mpi, RANKS, [build(mpi, "silent_starts.c"), "duplicate"], recording=tmp_path)
    profile = load_complete(tmp_path, RANKS)
    assert operations_sent(profile) == {"COMM_IDUP", "BARRIER"}
    assert total(profile, "BARRIER") == 0


def test_partitions_are_counted_when_they_start(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    run_mpi(mpi, 2, [build(mpi, "silent_starts.c"), "partitioned"], recording=tmp_path)
    profile = load_complete(tmp_path, 2)
    pair = all_the_same(patterns.from_root(2), ITEMS * ITEM, ROUNDS) if mpi.name.startswith("5") else {}
    assert recorded(profile, operation="PSEND_INIT") == pair
    # Open MPI's own messages, which set up partitioned requests, must not count as the program's ISEND.
    assert "ISEND" not in operations_sent(profile)
    if pair:
        assert recorded(profile, operation="PSEND_INIT", kinds=[Kind.CONTROL]).keys() == {(0, 1), (1, 0)}
        # The receiver counts control messages too, which contain the addresses of the partitions.
        asked = recorded(profile, operation="PRECV_INIT", kinds=[Kind.CONTROL], directions=[Direction.RECEIVED])
        assert asked.keys() == {(0, 1)}
    assert not recorded(profile, operation="RECV", kinds=Kind, directions=[Direction.RECEIVED])
