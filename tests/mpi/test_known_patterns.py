# SPDX-License-Identifier: Apache-2.0
"""If settings select Open MPI's algorithms, the definition of each algorithm determines the operation's matrix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof.profile.profile_data import Direction, Kind
from ibprof_testing.mpi import patterns
from ibprof_testing.mpi.matrices import Matrix, load_complete, operations_sent, received, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, find_mpi, run_mpi
from ibprof_testing.mpi.patterns import Pairs, all_the_same

BYTES = 96_000
RANKS = [5, *(pytest.param(ranks, marks=pytest.mark.full) for ranks in (2, 8))]

# Call, number of its algorithm in Open MPI's `coll/tuned`, and pattern. The algorithm sends one message for each pair.
FORCED: list[tuple[str, int, Callable[[int], Pairs]]] = [
    ("Bcast", 1, patterns.from_root),
    ("Bcast", 3, patterns.chain),
    ("Bcast", 6, patterns.binomial_tree),
    ("Alltoall", 1, patterns.all_pairs),
    ("Alltoall", 2, patterns.all_pairs),
    ("Gather", 1, patterns.to_root),
    ("Scatter", 1, patterns.from_root),
    ("Reduce", 1, patterns.to_root),
]


def record_alone(
    mpi: Mpi, ranks: int, command: list[str | Path], folder: Path, operation: str, mca: dict[str, str | int]
) -> Matrix:
    """Record a program that makes one kind of call; return the sent messages."""
    run_mpi(mpi, ranks, command, recording=folder, mca=mca)
    profile = load_complete(folder, ranks)
    assert operations_sent(profile) == {operation}
    sent = recorded(profile, operation=operation)
    assert recorded(profile, kinds=Kind) == sent == received(profile)
    return sent


def tuned(call: str, algorithm: int) -> dict[str, str | int]:
    parameter = f"coll_tuned_{call.lower()}_algorithm"
    return {"coll_tuned_use_dynamic_rules": 1, parameter: algorithm, f"{parameter}_segmentsize": 0}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(("call", "algorithm", "pairs"), FORCED, ids=[f"{call}-{number}" for call, number, _ in FORCED])
def test_blocking(
    mpi: Mpi, build: Build, call: str, algorithm: int, pairs: Callable[[int], Pairs], ranks: int, tmp_path: Path
) -> None:
    command: list[str | Path] = [build(mpi, "collectives.c"), "blocking", call, str(BYTES)]
    sent = record_alone(mpi, ranks, command, tmp_path, call.upper(), tuned(call, algorithm))
    assert sent == all_the_same(pairs(ranks), BYTES)


@pytest.mark.parametrize("ranks", [4, pytest.param(8, marks=pytest.mark.full)])
def test_recursive_doubling(mpi: Mpi, build: Build, ranks: int, tmp_path: Path) -> None:
    command: list[str | Path] = [build(mpi, "collectives.c"), "blocking", "Allreduce", str(BYTES)]
    sent = record_alone(mpi, ranks, command, tmp_path, "ALLREDUCE", tuned("Allreduce", 3))
    assert sent == all_the_same(patterns.hypercube(ranks), BYTES)


@pytest.mark.parametrize("ranks", RANKS)
def test_ring(mpi: Mpi, build: Build, ranks: int, tmp_path: Path) -> None:
    """In an all-gather on a ring, a block crosses all links of the ring except one."""
    command: list[str | Path] = [build(mpi, "collectives.c"), "blocking", "Allgather", str(BYTES)]
    sent = record_alone(mpi, ranks, command, tmp_path, "ALLGATHER", tuned("Allgather", 4))
    assert sent == all_the_same(patterns.ring(ranks), BYTES, ranks - 1)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    ("algorithm", "pairs"), [(1, patterns.from_root), (2, patterns.binomial_tree)], ids=["linear", "binomial"]
)
@pytest.mark.parametrize(
    ("style", "operation", "times"), [("nonblocking", "IBCAST", 1), ("persistent", "BCAST_INIT", 2)]
)
def test_nonblocking_and_persistent(
    mpi: Mpi,
    build: Build,
    style: str,
    operation: str,
    times: int,
    algorithm: int,
    pairs: Callable[[int], Pairs],
    ranks: int,
    tmp_path: Path,
) -> None:
    command: list[str | Path] = [build(mpi, "collectives.c"), style, "Bcast", str(BYTES)]
    sent = record_alone(mpi, ranks, command, tmp_path, operation, {"coll_libnbc_ibcast_algorithm": algorithm})
    assert sent == all_the_same(pairs(ranks), BYTES, times)


def test_partitions_and_what_sets_them_up(build: Build, tmp_path: Path) -> None:
    """For partitioned messages, Open MPI 5 duplicates MPI_COMM_WORLD. Any call that makes progress can duplicate it."""
    mpi = find_mpi("5.0.11")
    run_mpi(mpi, 4, [build(mpi, "partitioned.c"), str(BYTES)], recording=tmp_path)
    profile = load_complete(tmp_path, 4)
    assert operations_sent(profile) == {"PSEND_INIT"}
    assert recorded(profile) == all_the_same(patterns.ring(4), BYTES, 2)
    control = profile.counters.kind == Kind.CONTROL
    is_received = profile.counters.direction == Direction.RECEIVED
    of_control = [int(profile.counters.bytes[control & chosen].sum()) for chosen in (~is_received, is_received)]
    assert of_control[0] == of_control[1] > 0
