# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost or counted twice when threads send at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.profile_data import Kind
from ibprof_testing.mpi import patterns
from ibprof_testing.mpi.matrices import add_up, load_complete, received, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi

# As in programs/threads.c, threads with even numbers use Ssend, and other threads use Send.
THREADS = 4


@pytest.mark.parametrize(
    ("ranks", "messages"), [(3, 600), *(pytest.param(ranks, 2000, marks=pytest.mark.full) for ranks in (2, 3))]
)
def test_threads_that_send_at_once(mpi: Mpi, build: Build, ranks: int, messages: int, tmp_path: Path) -> None:
    algorithm: dict[str, str | int] = {"coll_tuned_use_dynamic_rules": 1, "coll_tuned_bcast_algorithm": 1}
    run_mpi(mpi, ranks, [build(mpi, "threads.c", "-pthread"), str(messages)], recording=tmp_path, mca=algorithm)
    profile = load_complete(tmp_path, ranks)
    for operation, parity in (("SSEND", 0), ("SEND", 1)):
        sizes = [100 + thread for thread in range(parity, THREADS, 2)]
        ring = add_up((*pair, size * messages, messages) for pair in patterns.ring(ranks) for size in sizes)
        assert recorded(profile, operation=operation) == ring
    rounds = messages // 20
    assert recorded(profile, operation="BCAST") == patterns.all_the_same(patterns.from_root(ranks), 50, rounds)
    assert received(profile) == recorded(profile, kinds=Kind)
    assert not any(rank.notes for rank in profile.ranks)


def test_receives_completed_while_they_are_posted(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """Before Open MPI completes a request, Open MPI checks the request twice.

    Open MPI never calls a hook that is set between the two checks.
    """
    messages = 200_000
    program = build(mpi, "racing_receives.c", "-pthread")
    run_mpi(mpi, 1, [program, str(messages)], recording=tmp_path)
    profile = load_complete(tmp_path, 1)
    assert recorded(profile) == {(0, 0): (8 * messages, messages)}
    assert received(profile) == recorded(profile)
    assert not any(rank.notes for rank in profile.ranks)
