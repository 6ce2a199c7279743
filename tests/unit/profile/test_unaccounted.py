# SPDX-License-Identifier: Apache-2.0
"""The minimum number of bytes that calls must send is calculated correctly. Operations that sent less are reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ibprof.archive.otf2_archive import read_archive, write_archive
from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.profile_data import Profile, Source
from ibprof.profile.unaccounted import Unaccounted, describe_uncompared, find_unaccounted
from ibprof_testing.samples.demands import group_of, with_demands
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

RANKS = 4
WORLD = group_of(RANKS)


def job(
    operation: str,
    asked: list[tuple[int, int, int]],
    sent: int,
    *,
    hosts: tuple[int, ...] = (0, 0, 1, 1),
    sees_host: bool = True,
    to: int = 1,
    unattributed: int = 0,
) -> Profile:
    """Return a job. asked: (rank, partner, bytes) of each call; sent: bytes that rank 0 sent to rank `to`."""
    run = make_profile(
        [Count(0, to, sent), Count(0, to, unattributed, operation=1)],
        [make_rank(rank, host, sees_host=sees_host) for rank, host in enumerate(hosts)],
        [make_host(f"h{number}") for number in range(max(hosts) + 1)],
        operations=(operation, "UNATTRIBUTED"),
    )
    return with_demands(run, asked)


def least(run: Profile) -> int:
    """Return the minimum of bytes that the reported operations must send; 0 if no operation is reported."""
    return sum(each.least_bytes for each in find_unaccounted(run))


ALL_100 = [(rank, WORLD, 100) for rank in range(RANKS)]
TO_ROOT = [(rank, 0, 100) for rank in range(RANKS)]

# (operation, `asked`, minimum of bytes between ranks, minimum between two hosts with two ranks each)
CASES = [
    ("BCAST", TO_ROOT, 300, 100),
    ("IREDUCE", TO_ROOT, 300, 100),
    ("GATHERV", [(0, 0, 0), (1, 0, 10), (2, 0, 20), (3, 0, 30)], 60, 50),
    ("SCATTER_INIT", TO_ROOT, 300, 200),
    ("ALLREDUCE", ALL_100, 400, 200),
    ("EXSCAN", ALL_100, 300, 100),
    ("ALLGATHER", ALL_100, 1200, 400),
    ("IREDUCE_SCATTER", ALL_100, 1200, 400),
    ("ALLTOALL", ALL_100, 1200, 800),
    ("ALLTOALLV", ALL_100, 400, 0),
    ("ISEND", [(0, 1, 5), (0, 3, 7), (2, 2, 9)], 12, 7),
    ("BCAST", [(0, (1 << 64) - 1, 100)], 0, 0),
]


@pytest.mark.parametrize(("operation", "asked", "ranks", "hosts"), CASES)
def test_the_least_between_ranks_and_between_hosts(
    operation: str, asked: list[tuple[int, int, int]], ranks: int, hosts: int
) -> None:
    assert least(job(operation, asked, 0)) == ranks
    assert least(job(operation, asked, 0, sees_host=False)) == hosts
    assert least(job(operation, asked, ranks)) == 0
    assert least(job(operation, asked, max(ranks - 1, 0))) == ranks
    assert least(job(operation, asked, hosts, sees_host=False, to=2)) == 0


def test_vectors_are_compared_where_each_rank_has_its_host() -> None:
    assert least(job("ALLTOALLW", ALL_100, 0, sees_host=False, hosts=(0, 1, 2, 3))) == 400


def test_a_group_of_which_a_member_is_missing_is_left_out() -> None:
    assert least(job("ALLREDUCE", ALL_100[:3], 0)) == 0


def test_bytes_that_belong_to_no_known_call_may_be_any() -> None:
    assert least(job("ALLREDUCE", ALL_100, 300, unattributed=99)) == 400
    assert least(job("ALLREDUCE", ALL_100, 300, unattributed=100)) == 0


def test_bytes_to_itself_are_none() -> None:
    assert least(job("ALLREDUCE", ALL_100, 1000, to=0)) == 400


def test_an_operation_with_a_call_that_failed_is_left_out() -> None:
    assert least(job("ALLREDUCE", [*ALL_100, (0, (1 << 64) - 2, 0)], 0)) == 0


def test_nonblocking_collectives_that_may_be_counted_for_one_another_are_compared_together() -> None:
    note = "some nonblocking collectives may be counted under the operation of an earlier one"
    apart = job("IALLREDUCE", ALL_100, 10)
    other = replace(apart, operations=("IALLREDUCE", "IBCAST"))  # IBCAST gets `whole` bytes
    for whole, noted in ((390, True), (389, True), (390, False)):
        counters = replace(other.counters, bytes=np.array([10, whole], np.uint64))
        ranks = tuple(replace(rank, notes=(note,) if noted else ()) for rank in other.ranks)
        assert least(replace(other, counters=counters, ranks=ranks)) == (0 if noted and whole == 390 else 400)


def test_what_stayed_on_hosts_is_named_as_that() -> None:
    on_host, between = job("BCAST", TO_ROOT, 100, to=2), job("BCAST", TO_ROOT, 99, to=2)
    assert find_unaccounted(on_host) == [Unaccounted("BCAST", "main", 4, 300, 100, True)]
    assert find_unaccounted(between) == [Unaccounted("BCAST", "main", 4, 300, 99, False)]
    assert any("stayed on hosts" in sentence for sentence in describe_gaps(on_host))
    (sentence,) = [each for each in describe_gaps(between) if each.startswith("MPI_Bcast")]
    assert sentence == (
        "MPI_Bcast: 4 calls must send at least 300 B between ranks; 99 B were seen; "
        "MPI sent the rest by a path that ibprof does not see"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"finalized": False}, "a rank did not reach MPI_Finalize"),
        ({"off_ns": 5}, "recording was switched off for some time"),
        ({"lost_bytes": 5}, "the recording could not grow"),
        ({"source": Source.VERBS}, "a rank's recording lacks the arguments of calls, or MPI's bytes"),
        ({"source": Source.NONE}, "a rank's recording lacks the arguments of calls, or MPI's bytes"),
        ({"has_demands": False}, "a rank's recording lacks the arguments of calls, or MPI's bytes"),
    ],
)
def test_incomplete_counters_are_not_compared_and_that_is_said(changes: dict[str, Any], why: str) -> None:
    whole = job("BCAST", TO_ROOT, 0)
    run = replace(whole, ranks=(*whole.ranks[:3], replace(whole.ranks[3], **changes)))
    assert describe_uncompared(run) == why
    assert find_unaccounted(run) == []
    assert f"the bytes that calls asked for were not compared with the recorded bytes: {why}" in describe_gaps(run)


def test_an_archive_keeps_the_ledger(tmp_path: Path) -> None:
    run = job("ALLREDUCE", ALL_100, 5)
    write_archive(run, tmp_path / "a.otf2")
    again = read_archive(tmp_path / "a.otf2")
    assert find_unaccounted(again) == find_unaccounted(run) != []


@pytest.mark.parametrize("operation", ["ALLTOALLV", "IALLTOALLW"])
@pytest.mark.parametrize("sees_host", [True, False])
def test_threads_of_one_process_send_nothing_between_ranks(operation: str, sees_host: bool) -> None:
    # Ranks of MPICH's MPIX_Threadcomm are threads. The calls of the only process send bytes between its threads.
    run = make_profile(
        [], [make_rank(0, 0, sees_host=sees_host)], [make_host("h0")], operations=(operation, "UNATTRIBUTED")
    )
    assert find_unaccounted(with_demands(run, [(0, group_of(1), 24)])) == []
