# SPDX-License-Identifier: Apache-2.0
"""Each region has the right share of a run's time and waiting. The verdict names regions with large shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof.profile.efficiency import estimate_waiting
from ibprof.profile.profile_data import CallTimes, Profile
from ibprof.profile.profile_rows import order_rows
from ibprof.verdict.job_times import share_by_region
from ibprof.verdict.verdict_data import BusiestLink, VerdictKind
from ibprof.verdict.verdict_rules import judge_run
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

S = 1_000_000_000
OPERATIONS = ("ALLREDUCE", "RECV")
SENT = [Count(0, 1, 10**9, 100), Count(1, 0, 10**9, 100, region=1)]


def make_run(rows: list[tuple[int, int, int, float]]) -> Profile:
    """Make a run of 10 s on two hosts with times (rank, region, operation, seconds) in MPI."""
    ranks = [replace(make_rank(rank, rank), has_times=True, start_ns=0, stop_ns=10 * S) for rank in range(2)]
    run = make_profile(SENT, ranks, [make_host("a"), make_host("b")], ("main", "solve"), OPERATIONS)
    columns = list(zip(*rows, strict=True))
    times = CallTimes(
        rank=np.array(columns[0], np.int32),
        region=np.array(columns[1], np.int32),
        operation=np.array(columns[2], np.int32),
        calls=np.full(len(rows), 10, np.uint64),
        time_ns=np.array([round(s * S) for s in columns[3]], np.uint64),
        error_ns=np.zeros(len(rows), np.uint64),
        site=np.zeros(len(rows), np.int32),
    )
    return replace(run, times=order_rows(times))


UNEVEN = [(0, 0, 1, 1.0), (1, 0, 1, 1.0), (0, 1, 0, 8.0), (1, 1, 0, 0.0), (0, 1, 1, 0.0)]


def test_time_and_waiting_add_up_by_region() -> None:
    """In `solve`, rank 0 waits in a collective for 8 s, rank 1 does not wait. The mean is 4 s."""
    run = make_run(UNEVEN)
    shares = share_by_region(run, estimate_waiting(run), {"solve": 0.5})
    assert [each.name for each in shares] == ["solve", "main"]
    assert (shares[0].mpi_s, shares[0].wait_s, shares[0].line_rate_s) == pytest.approx((4, 4, 0.5))
    assert (shares[1].mpi_s, shares[1].wait_s) == pytest.approx((1, 0))
    assert shares[1].line_rate_s is None
    verdict = judge_run(run)
    assert verdict.mpi_s == pytest.approx(sum(each.mpi_s for each in verdict.regions))


def test_the_verdict_has_a_sentence_for_regions_that_take_much() -> None:
    link = BusiestLink("leaf05 port 34", 0.6, is_host_link=False, by_region={"solve": 0.5, "main": 0.1})
    verdict = judge_run(make_run(UNEVEN), link)
    assert verdict.sentences[-2:] == (
        "Region solve: 80% of MPI time, 100% of it waiting (estimate); its most loaded link needs at least 500 ms.",
        "Region main: 20% of MPI time; its most loaded link needs at least 100 ms.",
    )
    assert verdict.text.endswith(verdict.sentences[-1])


def test_a_single_region_is_not_named() -> None:
    assert not any("Region" in each for each in judge_run(make_run(UNEVEN[:2])).sentences)


def test_regions_are_evidence_of_small_messages() -> None:
    run = make_run([(0, 0, 1, 1.0), (1, 0, 1, 1.0), (0, 1, 1, 5.0), (1, 1, 1, 5.0)])
    small = [Count(0, 1, 64 * 10**6, 10**6), Count(1, 0, 64 * 10**6, 10**6, region=1)]
    counted = make_profile(small, list(run.ranks), list(run.hosts), run.regions, OPERATIONS)
    verdict = judge_run(replace(run, counters=counted.counters))
    assert verdict.kind is VerdictKind.SMALL_MESSAGES
    assert [each.region for each in verdict.evidence] == ["solve"]
