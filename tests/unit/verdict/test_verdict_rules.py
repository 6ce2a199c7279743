# SPDX-License-Identifier: Apache-2.0
"""Verdicts on runs with known times in MPI, and with known times of links, are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof.profile.profile_data import CallTimes, Demands, Profile, Source
from ibprof.profile.profile_rows import order_rows
from ibprof.profile.unaccounted import PARTNER_GROUP
from ibprof.verdict.verdict_data import BusiestLink, VerdictKind
from ibprof.verdict.verdict_rules import (
    CANNOT_TELL,
    NO_END,
    NO_FABRIC,
    NO_PROBLEM,
    NO_RUN,
    NO_TIMES,
    NOT_THERE,
    judge_run,
    judge_traffic,
)
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

S = 1_000_000_000

OPERATIONS = ("ALLREDUCE", "RECV", "FILE_WRITE_ALL")


def make_run(
    seconds: list[tuple[int, float]], sent: list[Count], run_s: float = 10, hosts: tuple[int, ...] = (0, 1)
) -> Profile:
    """Return a run. seconds: (operation, time inside MPI) of each rank."""
    count = len(seconds)
    ranks = [
        replace(make_rank(rank, hosts[rank % len(hosts)]), has_times=True, start_ns=0, stop_ns=round(run_s * S))
        for rank in range(count)
    ]
    run = make_profile(sent, ranks, [make_host(f"h{number}") for number in sorted(set(hosts))], ("main",), OPERATIONS)
    times = CallTimes(
        rank=np.arange(count, dtype=np.int32),
        region=np.zeros(count, np.int32),
        operation=np.array([operation for operation, _ in seconds], np.int32),
        calls=np.full(count, 10, np.uint64),
        time_ns=np.array([round(s * S) for _, s in seconds], np.uint64),
        error_ns=np.zeros(count, np.uint64),
        site=np.zeros(count, np.int32),
    )
    return replace(run, times=order_rows(times))


BULK = [Count(0, 1, 10**9, 100), Count(1, 0, 10**9, 100)]


def link(seconds: float, **more: object) -> BusiestLink:
    return replace(BusiestLink("leaf05 port 34", seconds, is_host_link=False), **more)  # type: ignore[arg-type]


def test_little_time_in_mpi() -> None:
    verdict = judge_run(make_run([(0, 0.3), (0, 0.1)], BULK))
    assert verdict.kind is VerdictKind.NOT_MPI
    assert verdict.text.startswith("MPI takes 2% of the run: 200 ms of 10 s")
    assert (verdict.run_s, verdict.mpi_s) == pytest.approx((10, 0.2))
    assert not any("fabric" in each for each in verdict.missing)


def test_waiting_for_a_rank_that_computes_longer() -> None:
    """Rank 1 is outside MPI for 10 s, rank 0 for 2 s. So rank 0 waits in a collective."""
    verdict = judge_run(make_run([(0, 8), (0, 0.0)], BULK))
    assert verdict.kind is VerdictKind.WAITING
    assert verdict.wait_s == pytest.approx(4)
    assert (verdict.evidence[0].rank, verdict.evidence[0].operation) == (1, "MPI_Allreduce")
    assert "for rank 1" in verdict.text


def test_a_link_that_needs_the_time() -> None:
    run = make_run([(1, 5), (1, 5)], BULK)
    verdict = judge_run(run, link(3.1, cause="routing", advice="balanced tables", gain_s=0.4))
    assert verdict.kind is VerdictKind.SWITCH_LINKS
    assert (verdict.cause, verdict.line_rate_s, verdict.gain_s) == ("routing", 3.1, 0.4)
    assert verdict.evidence[0].link == "leaf05 port 34"
    assert "at least 3.1 s at line rate (62% of MPI time)" in verdict.text
    assert "400 ms of 3.1 s off the most loaded link" in verdict.text
    two = link(3.1, cause="routing", advice="balanced tables", first_gain_s=0.4, gain_s=1.0, loaded_by="2 ranks, 95%")
    text = judge_run(run, two).text
    assert "400 ms of 3.1 s off the most loaded link; all remedies together 1 s" in text
    assert "Loaded by 2 ranks, 95%." in text
    assert judge_run(run, link(3.1, is_host_link=True)).kind is VerdictKind.HOST_LINKS


def test_a_link_that_needs_next_to_nothing() -> None:
    assert (
        "at least 2 ms at line rate (less than 1% of MPI time)."
        in judge_run(make_run([(1, 5), (1, 5)], BULK), link(0.002)).text
    )


def test_a_remedy_that_is_not_worth_it() -> None:
    verdict = judge_run(make_run([(1, 5), (1, 5)], BULK), link(3.1, cause="placement", advice="x", gain_s=0.06))
    assert "not worth it" in verdict.text
    assert "No remedy" in judge_run(make_run([(1, 5), (1, 5)], BULK), link(3.1)).text


@pytest.mark.parametrize(("gain_s", "is_worth_it"), [(0.06, False), (0.2, True)])
def test_a_run_elsewhere_does_not_show_what_a_remedy_is_worth(gain_s: float, is_worth_it: bool) -> None:
    """The demo runs on one host. The demo's report places the ranks on a captured fabric."""
    busiest = link(3.1, cause="placement", advice="place the ranks", gain_s=gain_s)
    run = make_run([(1, 5), (1, 5)], BULK)
    assert judge_run(run, busiest).is_worth_it is is_worth_it
    elsewhere = judge_run(run, replace(busiest, moved=True))
    assert elsewhere.is_worth_it is None
    assert "Place the ranks: takes" in elsewhere.text
    assert "needs at least 3.1 s at line rate." in elsewhere.text
    assert NOT_THERE in elsewhere.missing


def test_ranks_behind_a_slow_link_make_others_wait() -> None:
    """The ranks' times outside MPI are equal, so the slow link causes the waiting in the collective."""
    run = make_run([(0, 4.0), (0, 4.0)], BULK)
    assert judge_run(run, link(3.5)).kind is VerdictKind.SWITCH_LINKS


def test_ranks_that_are_late_in_turn() -> None:
    """Each rank waits equally long in a collective. The collective's few bytes do not explain the time."""
    few = [Count(0, 1, 640, 80), Count(1, 0, 640, 80)]
    verdict = judge_run(make_run([(0, 7), (0, 7)], few, hosts=(0,)))
    assert verdict.kind is VerdictKind.WAITING, verdict.text
    assert "(estimate): bytes and the latency of messages explain 8 ms." in verdict.text


def test_time_of_files_is_neither_waiting_nor_on_the_host() -> None:
    few = [Count(0, 1, 640, 80), Count(1, 0, 640, 80)]
    for hosts in ((0,), (0, 1)):
        verdict = judge_run(make_run([(2, 7), (2, 7)], few, hosts=hosts))
        assert verdict.kind is VerdictKind.UNKNOWN, verdict.text
        assert verdict.wait_s == 0
        assert "Calls of MPI-IO are 100% of MPI time: storage takes this time; its traffic is not seen." in verdict.text
    late = judge_run(make_run([(2, 8), (2, 0.1)], few))
    assert (late.kind, late.evidence[-1].rank) == (VerdictKind.WAITING, 1)


@pytest.mark.parametrize("times", [5, 10])
def test_traffic_of_other_jobs_is_not_taken_for_waiting(times: int) -> None:
    """The ranks are equal. Because of other jobs, messages take 5 or 10 times the time that the link needs."""
    run = make_run([(1, 5.0)] * 8, [Count(rank, rank ^ 1, 10**6, 10) for rank in range(8)])
    verdict = judge_run(run, link(5 / times))
    assert verdict.kind is VerdictKind.UNKNOWN, verdict.text


def test_imbalance_beats_a_link_that_needs_less() -> None:
    assert judge_run(make_run([(0, 9), (0, 0.0)], BULK), link(2.0)).kind is VerdictKind.WAITING


def test_many_small_messages() -> None:
    small = [Count(0, 1, 64 * 10**6, 10**6), Count(1, 0, 64 * 10**6, 10**6)]
    verdict = judge_run(make_run([(1, 8), (1, 8)], small))
    assert verdict.kind is VerdictKind.SMALL_MESSAGES
    assert "1,000,000 messages of 64 B" in verdict.text
    assert NO_FABRIC in verdict.missing
    # Fewer messages in the same time mean that the senders are late.
    few = [Count(0, 1, 64, 10), Count(1, 0, 64, 10)]
    assert judge_run(make_run([(1, 8), (1, 8)], few)).kind is VerdictKind.WAITING


def test_without_a_fabric_the_link_of_a_host_may_take_the_time() -> None:
    """Four equal ranks share a host's link: 50 MB from each take 16 s at 100 Mb/s."""
    sent = [Count(rank, rank ^ 1, 50_000_000, 10) for rank in range(8)]
    shared = (0, 1, 0, 1, 0, 1, 0, 1)
    assert judge_run(make_run([(1, 20)] * 8, sent, 20.1, shared)).kind is VerdictKind.UNKNOWN
    assert judge_run(make_run([(1, 200)] * 8, sent, 201, shared)).kind is VerdictKind.WAITING


def test_small_messages_that_take_a_little_longer_than_latency_explains() -> None:
    """A message takes 120 us. This includes 20 us of waiting for a core on a busy host, and the time for copying."""
    small = [Count(0, 1, 32 * 10**5, 10**5), Count(1, 0, 32 * 10**5, 10**5)]
    run = make_run([(1, 12), (1, 12)], small, run_s=12.1)
    for links in (None, link(0.05)):
        verdict = judge_run(run, links)
        assert verdict.kind is VerdictKind.SMALL_MESSAGES, verdict.text


def test_bytes_within_a_host() -> None:
    much = [Count(0, 1, 10**11, 10**5), Count(1, 0, 10**11, 10**5)]
    verdict = judge_run(make_run([(1, 8), (1, 8)], much, hosts=(0,)))
    assert verdict.kind is VerdictKind.ON_HOST
    assert judge_run(make_run([(1, 8), (1, 8)], much)).kind is VerdictKind.UNKNOWN
    # If the fabric is known, bytes within hosts explain time too: the time of a copy through memory.
    few = [Count(0, 1, 4 * 10**9, 10), Count(1, 0, 4 * 10**9, 10)]
    assert judge_run(make_run([(1, 8), (1, 8)], few), link(0.0, on_host_share=1.0)).kind is VerdictKind.ON_HOST


def test_bytes_within_a_host_need_no_times() -> None:
    """No link carries bytes within a host, so the times do not matter."""
    run = make_run([(1, 8), (1, 8)], BULK, hosts=(0,))
    untimed = replace(run, ranks=tuple(replace(rank, has_times=False) for rank in run.ranks), times=CallTimes.empty())
    verdict = judge_run(untimed)
    assert verdict.kind is VerdictKind.ON_HOST
    assert verdict.text == f"{NO_PROBLEM} All 2 GB stay within hosts: no link of a network carries them."
    assert NO_TIMES in verdict.missing


def test_messages_within_a_host_that_are_not_seen() -> None:
    """For one host, the verdict is `ON_HOST`. For two hosts, it is `UNKNOWN`."""
    for hosts, seen, kind in (
        ((0,), False, VerdictKind.ON_HOST),
        ((0,), True, VerdictKind.WAITING),
        ((0, 1), False, VerdictKind.UNKNOWN),
    ):
        run = make_run([(1, 9.9)] * 4, [], hosts=hosts)
        ranks = tuple(replace(rank, source=Source.LIBFABRIC, sees_host=seen) for rank in run.ranks)
        run = replace(run, ranks=ranks)
        verdict = judge_run(run)
        assert verdict.kind is kind, verdict.text
        assert ("not seen" in verdict.text) == (kind is VerdictKind.ON_HOST)


GROUP = PARTNER_GROUP | 4 << 40 | 1


@pytest.mark.parametrize(
    ("asked", "hosts", "kind"),
    [
        ([], (0,), VerdictKind.WAITING),
        ([], (0, 1), VerdictKind.WAITING),
        ([(GROUP, 8 * 40, 40)], (0,), VerdictKind.WAITING),
        ([(0, 8 * 40, 40)], (0,), VerdictKind.WAITING),
        ([(GROUP, 2 * 10**9, 40)], (0,), VerdictKind.ON_HOST),
        ([(0, 10**10, 40)], (0,), VerdictKind.ON_HOST),
        ([(GROUP, 8 * 10**5, 10**5)], (0,), VerdictKind.SMALL_MESSAGES),
    ],
)
def test_what_calls_asked_for_takes_the_place_of_messages_not_seen(
    asked: list[tuple[int, int, int]], hosts: tuple[int, ...], kind: VerdictKind
) -> None:
    """Equal ranks are in MPI for 9.9 s of 10 s. If the calls' bytes do not explain this time, the ranks wait."""
    run = make_run([(0, 9.9)] * 4, [], hosts=hosts)
    ranks = tuple(replace(rank, source=Source.UCX, sees_host=False, has_demands=True) for rank in run.ranks)
    rows = [(rank, *each) for rank in range(4) for each in asked]
    demands = Demands(
        rank=np.array([row[0] for row in rows], np.int32),
        region=np.zeros(len(rows), np.int32),
        operation=np.zeros(len(rows), np.int32),
        partner=np.array([row[1] for row in rows], np.uint64),
        bytes=np.array([row[2] for row in rows], np.uint64),
        calls=np.array([row[3] for row in rows], np.uint64),
        site=np.zeros(len(rows), np.int32),
    )
    verdict = judge_run(replace(run, ranks=ranks, demands=demands))
    assert verdict.kind is kind, verdict.text


def test_bytes_between_hosts_do_not_pass_memory_alone() -> None:
    """A link of 100 Gb/s explains 1.28 s of 3.5 s, so ranks wait. A path through memory would take 2 s."""
    run = make_run([(1, 3.5), (1, 3.5)], BULK)
    assert judge_run(run, link(0.08)).kind is VerdictKind.WAITING
    assert judge_run(run, link(0.12)).kind is VerdictKind.UNKNOWN


def test_ranks_wait_at_the_end_for_one_that_ends_late() -> None:
    """Three ranks are in MPI_Finalize after 1 s, the fourth after 10 s: the mean time in MPI_Finalize is 6.75 s."""
    run = make_run([(0, 0.1)] * 4, [Count(0, 1, 32, 4)])
    ends = [10, 1, 1, 1]
    late = tuple(replace(rank, stop_ns=end * S) for rank, end in zip(run.ranks, ends, strict=True))
    verdict = judge_run(replace(run, ranks=late))
    assert verdict.kind is VerdictKind.WAITING, verdict.text
    assert (verdict.run_s, verdict.mpi_s, verdict.wait_s) == pytest.approx((10, 6.85, 6.85), rel=1e-4)
    assert "most of it for rank 0. Rank 0 spends most time outside of MPI" in verdict.text
    assert "MPI_Finalize" in verdict.text
    assert verdict.evidence[-1].rank == 0


def test_where_ranks_wait_for_one_that_is_late() -> None:
    """Rank 2 is outside MPI for 9.5 s, other ranks for 2 s. So other ranks wait for messages of rank 2."""
    run = make_run([(1, 8), (1, 8), (1, 0.5), (1, 8)], BULK)
    verdict = judge_run(run, link(0.1))
    assert verdict.kind is VerdictKind.WAITING, verdict.text
    assert "most of it for rank 2 in MPI_Recv. Rank 2 spends most time outside of MPI" in verdict.text
    evidence = verdict.evidence[-1]
    assert (evidence.rank, evidence.operation, evidence.region) == (2, "MPI_Recv", "main")


def test_ranks_that_wait_in_three_places_alike() -> None:
    """Ranks wait for rank 3 in collectives, messages and writes. No kind of call causes most of the waiting."""
    run = make_run([(0, 8), (1, 8), (2, 8), (1, 0.5)], BULK)
    text = judge_run(run, link(0.1)).text
    assert "most of it for rank 3. Rank 3 spends most time outside of MPI" in text


def test_what_is_missing_is_said() -> None:
    run = make_run([(1, 5), (1, 5)], BULK)
    untimed = replace(run, ranks=tuple(replace(rank, has_times=False) for rank in run.ranks))
    verdict = judge_run(untimed)
    assert (verdict.kind, verdict.mpi_s, verdict.wait_s) == (VerdictKind.UNKNOWN, None, None)
    assert NO_TIMES in verdict.missing
    assert CANNOT_TELL in verdict.text
    assert judge_run(untimed, link(4.0)).kind is VerdictKind.SWITCH_LINKS
    assert judge_run(untimed, link(1.0)).kind is VerdictKind.UNKNOWN
    killed = replace(run, ranks=tuple(replace(rank, stop_ns=None) for rank in run.ranks))
    assert NO_END in judge_run(killed).missing
    assert judge_run(killed).run_s is None
    assert judge_traffic(None).missing == (NO_RUN, NO_FABRIC)
    assert judge_traffic(link(1.0)).line_rate_s == 1.0


def test_json_has_all_keys() -> None:
    assert set(judge_traffic(None).as_json()) == {
        *("kind", "cause", "text", "run_s", "mpi_s", "wait_s", "line_rate_s", "gain_s", "evidence", "missing"),
        *("transfer_s", "unsplit_s", "wait_error_s", "transfer_error_s", "unsplit_error_s", "late", "unrouted_share"),
        *("transfer_causes", "transfer_sites", "host_pairs"),
    }
