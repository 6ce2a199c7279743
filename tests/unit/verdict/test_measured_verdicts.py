# SPDX-License-Identifier: Apache-2.0
"""Verdicts on runs with sampled calls use waiting and transfer, and ignore time without an explanation by the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ibprof.profile.profile_data import Profile, Rank, Site
from ibprof.verdict.verdict_data import VerdictKind
from ibprof.verdict.verdict_rules import NO_PROBLEM, judge_run
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.waits.derived_samples import derive_profile
from ibprof_testing.waits.synthetic_traces import MS, SyntheticRun


def run_rounds(late: dict[int, int], transfer_ns: int, rounds: int = 60) -> SyntheticRun:
    """Return a run of 4 ranks. late: rank -> additional computing before each collective, in ns."""
    run = SyntheticRun(4, seed=8)
    for number in range(rounds):
        run.compute({(rank + number * (rank < 0)) % 4: time for rank, time in late.items()})
        run.collective("Allreduce", 8, transfer_ns)
    return run


def test_a_late_rank_is_waiting_and_is_named() -> None:
    verdict = judge_run(derive_profile(run_rounds({2: 5 * MS}, 20_000).traces()))
    assert (verdict.kind, verdict.cause) == (VerdictKind.WAITING, "late-rank")
    assert verdict.late[0].rank == verdict.evidence[0].rank == 2
    assert "for rank 2" in verdict.text
    assert "estimate" not in verdict.text
    assert verdict.sentences[-2] == NO_PROBLEM
    advice = "give rank 2 less to do before MPI_Allreduce in region main, or the other ranks more"
    assert verdict.advice == (advice,)
    assert verdict.sentences[-1] == f"What to do: {advice}."


def test_ranks_that_are_late_in_turn_are_noise() -> None:
    verdict = judge_run(derive_profile(run_rounds({-1: 5 * MS}, 20_000).traces()))
    assert (verdict.kind, verdict.cause) == (VerdictKind.WAITING, "noise")


@pytest.mark.parametrize(("ranks", "hosts"), [(2, 1), (8, 2)])
def test_two_ranks_or_hosts_in_turn_are_noise_though_one_causes_half_of_the_waiting(ranks: int, hosts: int) -> None:
    made = SyntheticRun(ranks, seed=8)
    for number in range(60):
        made.compute({(number * 3 if number % 12 else 0) % ranks: 5 * MS})
        made.collective("Allreduce", 8, 20_000)
    verdict = judge_run(derive_profile(made.traces(), hosts=[rank * hosts // ranks for rank in range(ranks)]))
    assert (verdict.kind, verdict.cause) == (VerdictKind.WAITING, "noise")
    assert f"for {ranks} ranks in turn" in verdict.text
    assert (verdict.advice, "What to do" in verdict.text) == ((), False)


def test_all_ranks_of_a_run_count_not_only_the_listed_ones() -> None:
    """One of 64 ranks causes a quarter of the waiting, more than the other 15 listed ranks together."""
    made = SyntheticRun(64, seed=8)
    for number in range(84):
        made.compute({5 if number % 4 == 0 else number * 3 // 4: 5 * MS})
        made.collective("Allreduce", 8, 20_000)
    verdict = judge_run(derive_profile(made.traces()))
    assert (verdict.late[0].rank, len(verdict.late), verdict.cause) == (5, 16, "noise")
    assert "most of it" not in verdict.text
    assert "for 63 ranks in turn" in verdict.text


def test_late_ranks_of_one_host_are_a_slow_host_though_no_rank_of_another_host_is_late() -> None:
    made = SyntheticRun(8, seed=8)
    for number in range(60):
        made.compute({4 + number % 4: 5 * MS})
        made.collective("Allreduce", 8, 20_000)
    verdict = judge_run(derive_profile(made.traces(), hosts=[0] * 4 + [1] * 4))
    assert {each.host for each in verdict.late} == {"n01"}
    assert verdict.cause == "slow-host"
    assert "most of it for ranks of n01. " in verdict.text
    assert verdict.advice == ("find out what makes the ranks of n01 late before MPI_Allreduce in region main",)
    assert f"What to do: {verdict.advice[0]}." in verdict.text


def use_cores(run: Profile, no_core: Mapping[int, int], idle: Mapping[int, int]) -> Profile:
    """Return a run whose ranks use their cores, except for times without a core (at least 10 ms) and idle times."""

    def use(rank: Rank) -> Rank:
        without = max(no_core.get(rank.rank, 0), 10 * MS)
        used = (rank.stop_ns or 0) - rank.start_ns - without - idle.get(rank.rank, 0)
        return replace(rank, no_core_ns=without, cpu_ns=used)

    return replace(run, ranks=tuple(map(use, run.ranks)))


@pytest.mark.parametrize("reason", ["core", "sleep", "work"])
def test_a_late_rank_that_lacked_a_core_or_slept_is_not_told_to_work_less(reason: str) -> None:
    run = derive_profile(run_rounds({2: 5 * MS}, 20_000).traces())
    lost = 250 * MS * (reason != "work")
    verdict = judge_run(use_cores(run, no_core={2: lost * (reason == "core")}, idle={2: lost * (reason == "sleep")}))
    assert verdict.cause == "late-rank"
    said = {
        "core": "; it had no core for 250 ms. ",
        "sleep": "a file, a device, a process or a thread, for at least 249 ms. ",
        "work": "it is outside of MPI over 100 times as long as the others. ",
    }
    assert [each for each, text in said.items() if text in verdict.text] == [reason]
    assert ("find out what makes rank 2 late" in verdict.text) == (reason != "work")
    assert ("give rank 2 less to do" in verdict.text) == (reason == "work")


def test_times_that_are_unknown_are_not_stated_and_do_not_count_as_work() -> None:
    run = derive_profile(run_rounds({2: 5 * MS}, 20_000).traces())
    rested = use_cores(run, no_core={}, idle={2: 250 * MS}).ranks
    for cpu, no_core, off in ((1, 0, 0), (1, 900 * MS, 1), (0, 0, 0)):
        ranks = (replace(rank, cpu_ns=cpu * rank.cpu_ns, no_core_ns=no_core, off_ns=off) for rank in rested)
        verdict = judge_run(replace(run, ranks=tuple(ranks)))
        assert verdict.cause == "late-rank"
        assert verdict.advice == ("find out what makes rank 2 late before MPI_Allreduce in region main",)
        assert not any(text in verdict.text for text in ("slept", "had no core", "less to do"))


def test_ranks_that_rest_equally_do_not_hide_that_one_works_longer() -> None:
    """All ranks sleep 1 s. Rank 2 computes 1 s more, while the others poll in MPI."""
    made = SyntheticRun(4, seed=8)
    for _ in range(50):
        made.compute(dict.fromkeys(range(4), 20 * MS) | {2: 40 * MS})
        made.collective("Allreduce", 8, 20_000)
    run = derive_profile(made.traces())
    verdict = judge_run(use_cores(run, no_core={}, idle=dict.fromkeys(range(4), 1000 * MS)))
    assert verdict.advice == ("find out what makes rank 2 late before MPI_Allreduce in region main",)
    assert "slept" not in verdict.text


def test_a_rank_that_rests_before_the_end_is_not_told_to_work_less() -> None:
    made = SyntheticRun(4, seed=8)
    for _ in range(60):
        made.collective("Allreduce", 8, 20_000)
    made.compute({2: 500 * MS})
    made.single(2, "Win_lock", 1000)
    run = derive_profile(made.traces())
    for idle, advice in ((450, "find out what makes rank 2 late"), (0, "give rank 2 less to do")):
        verdict = judge_run(use_cores(run, no_core={}, idle={2: idle * MS}))
        assert verdict.evidence[0].operation == "MPI_Finalize"
        assert (verdict.advice[0].startswith(f"{advice} before MPI_Finalize"), "slept" in verdict.text) == (
            True,
            idle > 0,
        )


def test_a_rank_that_works_longer_though_it_lacked_a_core_too_is_told_to_work_less() -> None:
    """Rank 2 works 420 ms longer than others, which wait 300 ms for it. In 200 of the 420 ms, rank 2 has no core."""
    made = SyntheticRun(4, seed=8)
    for _ in range(60):
        for rank in (0, 1, 3):
            made.single(rank, "Win_lock", 2 * MS)
        made.compute({2: 7 * MS})
        made.collective("Allreduce", 8, 20_000)
    run = derive_profile(made.traces())
    verdict = judge_run(use_cores(run, no_core={2: 200 * MS}, idle={}))
    assert (verdict.kind, verdict.cause) == (VerdictKind.WAITING, "late-rank")
    assert "give rank 2 less to do" in verdict.text
    assert "times as long as the others" in verdict.text
    assert "had no core" not in verdict.text


def test_files_that_a_late_rank_reads_are_its_work() -> None:
    made = SyntheticRun(4, seed=8)
    for _ in range(60):
        made.single(2, "File_read", 5 * MS)
        made.collective("Allreduce", 8, 20_000)
    verdict = judge_run(derive_profile(made.traces()))
    assert (verdict.kind, verdict.cause) == (VerdictKind.WAITING, "late-rank")
    assert "; it is in calls of MPI-IO for 300 ms. " in verdict.text
    assert "give rank 2 less to do before MPI_Allreduce" in verdict.text


def test_a_rank_that_works_little_longer_has_no_ratio() -> None:
    """Rank 2 works 5% longer. This extra time explains more than half of the waiting for rank 2."""
    made = SyntheticRun(16, seed=8)
    for _ in range(60):
        made.compute(dict.fromkeys(range(16), 82 * MS) | {2: 90 * MS})
        made.collective("Allreduce", 8, 20_000)
        made.compute({rank: 7 * MS // 2 for rank in range(16) if rank != 2})
        made.collective("Allreduce", 8, 3 * MS)
    verdict = judge_run(derive_profile(made.traces()))
    assert (verdict.kind, verdict.cause) == (VerdictKind.WAITING, "late-rank")
    assert "give rank 2 less to do" in verdict.text
    assert "times as long" not in verdict.text


def test_evidence_leaves_out_ranks_that_hardly_anyone_waits_for() -> None:
    made = SyntheticRun(4, seed=8)
    for number in range(60):
        made.compute({2: 5 * MS} if number % 20 else {1: 5 * MS})
        made.collective("Allreduce", 8, 20_000)
    verdict = judge_run(derive_profile(made.traces()))
    assert [each.rank for each in verdict.late] == [2, 1]
    assert [each.rank for each in verdict.evidence] == [2]


def test_evidence_begins_with_the_rank_that_the_text_names() -> None:
    """In one call, rank 7 causes more waiting than rank 2 in each of four calls."""
    made = SyntheticRun(8, seed=8)
    for _ in range(60):
        made.compute({7: 6 * MS})
        made.collective("Reduce_scatter", 8, 20_000)
        for name in ("Allreduce", "Alltoall", "Allgather", "Barrier"):
            made.compute({2: 3 * MS})
            made.collective(name, 8, 20_000)
    verdict = judge_run(derive_profile(made.traces()))
    assert verdict.late[0].rank == 7
    assert "most of it for rank 2" in verdict.text
    assert {each.rank for each in verdict.evidence} == {2}


def test_transfer_that_nothing_explains_is_slow_and_not_waiting() -> None:
    run = derive_profile(run_rounds({}, 20 * MS).traces())
    # A rank sends 60 messages of 64 KiB within its host: 16 ms for copying, 6 ms for latency.
    sent = [Count(rank, (rank + 1) % 4, 60 << 16, messages=60) for rank in range(4)]
    counters = make_profile(sent, [make_rank(rank, 0) for rank in range(4)], [make_host("n0")]).counters
    verdict = judge_run(replace(run, counters=counters))
    assert verdict.kind is VerdictKind.SLOW_TRANSFER
    assert verdict.transfer_s is not None
    assert verdict.transfer_s > 0.8 * (verdict.mpi_s or 0)
    assert NO_PROBLEM not in verdict.text
    assert [place.operation for place in verdict.evidence] == ["MPI_Allreduce"]
    # If the bytes are unknown, the expected transfer time is unknown too.
    assert judge_run(run).kind is VerdictKind.UNKNOWN


def test_the_parts_sum_to_the_time_in_mpi() -> None:
    verdict = judge_run(derive_profile(run_rounds({1: 3 * MS}, 2 * MS).traces(), level=1))
    found = verdict.as_json()
    assert found["wait_s"] + found["transfer_s"] + found["unsplit_s"] == pytest.approx(found["mpi_s"], rel=0.01)
    assert found["wait_error_s"] > 0


def test_times_of_threads_that_overlap_share_the_time_in_mpi() -> None:
    """Half of the time in MPI is overlap of threads. So the time in MPI and its parts are halved."""
    run = derive_profile(run_rounds({1: 3 * MS}, 2 * MS).traces(), level=1)
    alone = judge_run(run)
    half = tuple(replace(rank, overlap_ns=int((alone.mpi_s or 0) * 5e8)) for rank in run.ranks)
    found, whole = judge_run(replace(run, ranks=half)).as_json(), alone.as_json()
    assert found["wait_s"] + found["transfer_s"] + found["unsplit_s"] == pytest.approx(found["mpi_s"], rel=0.01)
    assert found["mpi_s"] == pytest.approx(whole["mpi_s"] / 2, rel=0.01)
    assert found["transfer_s"] == pytest.approx(whole["transfer_s"] / 2, rel=0.01)


@pytest.mark.parametrize("is_on_host", [False, True])
def test_rare_waiting_that_no_sample_has_is_not_called_latency(is_on_host: bool) -> None:
    rounds = SyntheticRun(4, seed=3)
    for number in range(600):
        rounds.compute({1: 50 * MS} if number % 200 == 77 else {})
        rounds.exchange(8, 5000)
    derived = derive_profile(rounds.traces(), level=6)
    sent = [Count(rank, (rank + 1) % 4, 9600, messages=1200) for rank in range(4)]
    hosts = [0] * 4 if is_on_host else list(range(4))
    names = tuple(make_host(f"n{number}") for number in sorted(set(hosts)))
    counters = make_profile(sent, [make_rank(rank, hosts[rank]) for rank in range(4)], names).counters
    ranks = tuple(replace(rank, host=host) for rank, host in zip(derived.ranks, hosts, strict=True))
    run = replace(derived, counters=counters, ranks=ranks, hosts=names)
    verdict = judge_run(run)
    assert (verdict.unsplit_s or 0) > 0.5 * (verdict.mpi_s or 0)
    assert verdict.kind is (VerdictKind.ON_HOST if is_on_host else VerdictKind.UNKNOWN)
    reason = "long calls are rare, and no sample" if is_on_host else "the waiting is unknown, because clocks of hosts"
    assert f"of MPI time is not split, most of it in MPI_Waitall: {reason}" in verdict.text
    assert (NO_PROBLEM in verdict.text) == is_on_host
    # Each rank calls from a different line.
    lines = tuple(Site("a.c", line, "main", "main") for line in range(1, 5))
    apart = replace(run, times=replace(run.times, site=run.times.rank + 1), sites=lines)
    assert "is not split, 33% of it in MPI_Waitall: no sample of these calls" in judge_run(apart).text
