# SPDX-License-Identifier: Apache-2.0
"""Ranks that share cores are found by their affinity and their waits for a core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ibprof.profile.profile_data import AdapterChoice, Profile
from ibprof.verdict.shared_cores import SHARED_CORES, find_shared_cores
from ibprof.verdict.verdict_data import VerdictKind
from ibprof.verdict.verdict_rules import NO_PROBLEM, judge_run
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.waits.derived_samples import derive_profile
from ibprof_testing.waits.synthetic_traces import MS, SyntheticRun

SECOND = 10**9


def make_run(
    cores: Sequence[str], lacked: float = 0.5, hosts: Sequence[int] | None = None, boots: Sequence[int] | None = None
) -> Profile:
    """Return a run of 1 s, with the cores of each rank. Ranks wait for a core for the fraction `lacked` of the run."""
    ranks = [
        make_rank(
            number,
            hosts[number] if hosts else 0,
            stop_ns=SECOND,
            boot=boots[number] if boots else 0,
            choices=(AdapterChoice("cores", text), AdapterChoice("online", "0-7"))[: 2 - (text == "0-1")],
            cpu_ns=round((1 - lacked) * SECOND),
            no_core_ns=round(lacked * SECOND),
        )
        for number, text in enumerate(cores)
    ]
    return make_profile([], ranks, [make_host(f"n{number}") for number in range(max(hosts or [0]) + 1)])


@pytest.mark.parametrize(
    ("run", "evidence", "advice"),
    [
        (make_run(["0-1"] * 4), "The 4 ranks of n0 share 2 cores (0, 1); each was ready", "at most 2 ranks"),
        (make_run(["0-1"] * 4), "had no core for 50% of the run", "more hosts"),
        (make_run(["3", "3", "0", "1"]), "The 2 ranks of n0 share core 3;", "bind each rank"),
        (
            make_run(["0-1", "0-1", "1", "0-7"]),
            "The 3 ranks of n0 share 2 cores (0, 1);",
            "The machine has 8 cores: bind each rank to a different core,",
        ),
        (make_run(["0-1"] * 4, hosts=[0, 0, 1, 1], boots=[7] * 4), "ranks of n0 and 1 more share 2", "at most 2"),
        (make_run(["0-3"] * 4, lacked=0.4), "The 4 ranks of n0 had no core for 40% of the run", "cpu.max"),
    ],
)
def test_ranks_without_a_core_are_named(run: Profile, evidence: str, advice: str) -> None:
    found = find_shared_cores(run)
    assert found is not None
    assert evidence in found.cause.evidence
    assert advice in found.cause.advice
    assert found.lacked_s in (0.5, 0.4)


@pytest.mark.parametrize(
    "run",
    [
        make_run(["0-3"] * 4, lacked=0.1),
        make_run(["0-1"] * 4, hosts=[0, 0, 1, 1], lacked=0.1),
        # Ranks that sleep while they wait can share cores.
        make_run(["0-1"] * 4, lacked=0.05),
        make_run(["0", "1", "2", "3"], lacked=0.0),
        make_run([""] * 4, lacked=0.0),
        make_run(["?"] * 4, lacked=0.0),
    ],
)
def test_ranks_with_a_core_each_are_not_named(run: Profile) -> None:
    assert find_shared_cores(run) is None


def test_without_the_kernels_count_the_time_without_a_core_is_the_rest_of_the_cpu_time() -> None:
    run = make_run(["0-1"] * 4)
    uncounted = replace(run, ranks=tuple(replace(rank, no_core_ns=0) for rank in run.ranks))
    found = find_shared_cores(uncounted)
    assert found is not None
    assert found.lacked_s == 0.5
    # For a killed run, the ranks' cores are known, but not the ranks' waiting.
    killed = replace(run, ranks=tuple(replace(rank, stop_ns=None, cpu_ns=0, no_core_ns=0) for rank in run.ranks))
    found = find_shared_cores(killed)
    assert found is not None
    assert (found.cause.evidence, found.lacked_s) == ("The 4 ranks of n0 share 2 cores (0, 1).", None)


def timed_run(transfer_ns: int, late_ns: int = 0, lacked: float = 0.75) -> Profile:
    """Return a run of 60 collectives. The four ranks share a core. In turn, each of them computes longer."""
    made = SyntheticRun(4, seed=8)
    for number in range(60):
        made.compute({number % 4: late_ns})
        made.collective("Allreduce", 8, transfer_ns)
    return share_core(made, lacked)


def share_core(made: SyntheticRun, lacked: float, working: int | None = None) -> Profile:
    """Return the profile of 4 ranks that share a core.

    The ranks lack the core for the fraction `lacked` of the run on average; the rank `working` has it for 90%.
    """
    run = derive_profile(made.traces())
    sent = [Count(rank, (rank + 1) % 4, 60 << 16, messages=60) for rank in range(4)]
    known = make_profile(sent, [make_rank(rank) for rank in range(4)], [make_host("n0")])
    ranks = []
    for rank in run.ranks:
        span = (rank.stop_ns or 0) - rank.start_ns
        without = lacked if working is None else 0.1 if rank.rank == working else (4 * lacked - 0.1) / 3
        cpu, no_core = round((1 - without) * span), round(without * span)
        ranks.append(replace(rank, choices=(AdapterChoice("cores", "0"),), cpu_ns=cpu, no_core_ns=no_core))
    return replace(run, ranks=tuple(ranks), hosts=known.hosts, counters=known.counters)


def test_slow_transfer_of_ranks_that_share_a_core_has_that_cause_and_acquits_the_network() -> None:
    # The transfer takes 900 ms instead of 22 ms. Ranks had a core for a quarter of this time.
    verdict = judge_run(timed_run(20 * MS, lacked=0.95))
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, SHARED_CORES)
    assert NO_PROBLEM in verdict.text
    assert f"Cause: {SHARED_CORES}. The 4 ranks of n0 share core 0" in verdict.text
    assert "Start at most 1 rank on n0, one for each core" in verdict.text
    assert "most transfer is in MPI_Allreduce" in verdict.text
    assert [each.name for each in verdict.transfer_causes] == [SHARED_CORES]


def test_transfer_that_takes_long_with_a_core_too_has_another_cause() -> None:
    verdict = judge_run(timed_run(20 * MS, lacked=0.5))
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, None)
    assert NO_PROBLEM not in verdict.text


def test_what_shares_the_cores_of_ranks_that_poll_a_network_is_said_but_not_the_cause() -> None:
    run = timed_run(40 * MS, lacked=0.95)
    apart = [replace(rank, host=rank.rank, boot=7, choices=()) for rank in run.ranks]
    verdict = judge_run(replace(run, ranks=tuple(apart), hosts=tuple(make_host(f"n{number}") for number in range(4))))
    assert (verdict.kind, verdict.cause) == (VerdictKind.SLOW_TRANSFER, None)
    assert any("had no core for 95% of the run" in each for each in verdict.missing)


def test_ranks_that_are_late_in_turn_since_they_share_a_core() -> None:
    verdict = judge_run(timed_run(20_000, late_ns=5 * MS))
    assert (verdict.kind, verdict.cause) == (VerdictKind.WAITING, SHARED_CORES)
    # Ranks that poll wait for cores even if ranks are late for another reason than shared cores.
    assert judge_run(timed_run(20_000, late_ns=5 * MS, lacked=0.5)).cause == "noise"
    assert NO_PROBLEM in verdict.text


@pytest.mark.parametrize("works_longer", [False, True])
def test_one_late_rank_is_late_for_want_of_a_core_unless_it_works_longer(works_longer: bool) -> None:
    """Rank 2 is late for 60 collectives. Unless rank 2 works longer, all ranks are outside MPI for equal times."""
    made = SyntheticRun(4, seed=8)
    for _ in range(60):
        made.compute({2: 5 * MS})
        made.collective("Allreduce", 8, 20_000)
        if not works_longer:
            made.compute(dict.fromkeys((0, 1, 3), 5 * MS))
            made.collective("Allreduce", 8, 20_000)
    working = 2 if works_longer else None
    verdict = judge_run(share_core(made, lacked=0.75, working=working))
    assert verdict.late[0].rank == 2
    assert (verdict.kind, verdict.cause) == (VerdictKind.WAITING, "late-rank" if works_longer else SHARED_CORES)
    assert ("times as long as the others" in verdict.text) == works_longer
    assert ("give rank 2 less to do" in verdict.text) == works_longer
    enough = judge_run(share_core(made, lacked=0.5, working=working))
    assert enough.cause == "late-rank"
    assert ("find out what makes rank 2 late before MPI_Allreduce" in enough.text) != works_longer
