# SPDX-License-Identifier: Apache-2.0
"""In synthetic runs, ibprof finds the known waits: exactly with exact clocks, otherwise within the stated error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof.profile.profile_data import MessageSamples, Side
from ibprof.profile.row_arrays import take_rows
from ibprof.waiting.sample_matching import find_shape
from ibprof.waiting.wait_split import MeasuredWaiting, is_local, measure_waiting
from ibprof.waiting.wait_states import WaitState
from ibprof_testing.waits.derived_samples import Clock, derive_profile
from ibprof_testing.waits.synthetic_traces import MS, SyntheticRun
from ibprof_testing.waits.traces import SENT, Trace, find_waits, split_by_operation


def random_clock(seed: int, ranks: int) -> Clock:
    """Return clocks with offsets of up to 10 s and drifts of up to 100 ppm."""
    generator = np.random.default_rng(seed)
    offsets = generator.integers(-(10**10), 10**10, ranks)
    drifts = generator.uniform(-1e-4, 1e-4, ranks)

    def show(rank: int, times: np.ndarray) -> np.ndarray:
        moved = np.asarray(times, np.int64)
        shown: np.ndarray = moved + offsets[rank] + np.rint(moved * drifts[rank]).astype(np.int64)
        return shown

    return show


def late_in_turn(ranks: int = 4, rounds: int = 300) -> SyntheticRun:
    """Return a run of Allreduces of 20 us. In turn, one rank is up to 3 ms late for each Allreduce."""
    run = SyntheticRun(ranks, seed=3)
    for number in range(rounds):
        run.compute({number % ranks: int(run.generator.uniform(0.5, 3) * MS)})
        run.collective("Allreduce", 8, 20_000)
    return run


def halo_with_a_slow_rank(ranks: int = 5, rounds: int = 200) -> SyntheticRun:
    """Return a run where rank 2 is slow, except in each eighth round. Only these rounds let ibprof compare clocks."""
    run = SyntheticRun(ranks, seed=4)
    for number in range(rounds):
        run.compute({2: 2 * MS if number % 8 else 0})
        run.exchange(1024, 30_000)
    return run


def pipeline(ranks: int = 6, rounds: int = 150) -> SyntheticRun:
    run = SyntheticRun(ranks, seed=5)
    for _ in range(rounds):
        run.compute({0: 2 * MS})
        run.pass_on(64, 10_000)
    return run


RUNS = {"late in turn": late_in_turn, "halo": halo_with_a_slow_rank, "pipeline": pipeline}


def measure(traces: list[Trace], **options: object) -> MeasuredWaiting:
    found = measure_waiting(derive_profile(traces, **options))  # type: ignore[arg-type]
    assert found is not None
    return found


def true_wait(traces: list[Trace]) -> float:
    return sum(wait for _, wait in split_by_operation(traces).values())


@pytest.mark.parametrize("name", RUNS)
def test_all_calls_on_one_clock_have_exactly_their_waits(name: str) -> None:
    traces = RUNS[name]().traces()
    found = measure(traces)
    total = found.total()
    assert found.clocks == 1
    assert total.wait_s == pytest.approx(true_wait(traces), rel=1e-9)
    assert total.unsplit_s == 0
    assert total.time_s == pytest.approx(total.wait_s + total.transfer_s)
    of_rank = [sum(int(wait) for wait in waits) * 1e-9 for waits in find_waits(traces)]
    assert found.by_rank(len(traces))[:, 0] == pytest.approx(of_rank, rel=1e-9)


def test_ranks_whose_messages_mostly_take_milliseconds_share_one_clock() -> None:
    """If ranks share a core, a synchronous send ends long after the start of the receive."""
    run = SyntheticRun(4, seed=6)
    for _ in range(100):
        run.compute({3: 5 * MS})
        run.pass_on(64, 3 * MS, "Ssend")
    traces = run.traces()
    found = measure(traces)
    assert (found.clocks, found.total().unsplit_s) == (1, 0)
    assert found.total().wait_s == pytest.approx(true_wait(traces), rel=1e-9)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))])
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("hosts", [None, "each"])
def test_shifted_and_skewed_clocks_give_the_same_split_within_its_error(
    name: str, seed: int, hosts: str | None
) -> None:
    traces = RUNS[name]().traces()
    of_rank = range(len(traces)) if hosts else None
    total = measure(traces, clock=random_clock(seed, len(traces)), hosts=of_rank).total()
    assert abs(total.wait_s - true_wait(traces)) <= total.error_s + total.unsplit_s
    assert total.error_s + total.unsplit_s < 0.1 * total.time_s
    assert total.time_s == pytest.approx(total.wait_s + total.transfer_s + total.unsplit_s)


def test_the_error_of_samples_covers_the_truth() -> None:
    inside = 0
    for level in (1, 2, 3):
        for salt in range(10):
            traces = late_in_turn(rounds=240 + salt).traces()
            total = measure(traces, level=level).total()
            inside += abs(total.wait_s - true_wait(traces)) <= 2 * total.error_s
    assert inside >= 28  # of 30 intervals of two standard errors, at least 28 contain the true waiting


def test_the_error_covers_the_truth_where_calls_have_some_of_their_messages() -> None:
    """The messages of a round have different tags, and the tag decides whether a message is sampled."""
    for level in (1, 2, 3):
        for salt in range(3):
            traces = halo_with_a_slow_rank(rounds=200 + salt).traces()
            for rank, trace in enumerate(traces):
                rows = trace.messages
                source = np.where(rows["side"] == SENT, rank, rows["peer"])
                target = np.where(rows["side"] == SENT, rows["peer"], rank)
                rows["tag"] = 16 * (np.arange(len(rows)) // 4 * 25 + source * 5 + target)
            found = measure(traces, level=level)
            assert (found.calls.weight < 1 << level).any()
            total = found.total()
            assert total.error_s > 0
            assert total.wait_s - 2 * total.error_s < true_wait(traces)
            assert true_wait(traces) < total.wait_s + total.unsplit_s + 2 * total.error_s


def with_a_long_delay(seed: int, late: int = 1234, rounds: int = 4000) -> SyntheticRun:
    """Return a run of short collectives. Rank 2 is 400 ms late in the collective `late`."""
    run = SyntheticRun(4, seed=seed)
    for number in range(rounds):
        run.compute({2: 400 * MS} if number == late else {number % 4: 20_000})
        run.collective("Allreduce", 8, 10_000)
    return run


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 5))])
def test_a_rare_long_call_is_split_though_the_hash_does_not_choose_it(seed: int) -> None:
    traces = with_a_long_delay(seed).traces()
    truth, whole = true_wait(traces), measure(traces).total().time_s
    without = measure(traces, level=5).total()
    total = measure(traces, level=5, longest=128).total()
    assert abs(total.wait_s - truth) < 0.01 * whole
    assert total.unsplit_s < 0.01 * whole
    assert abs(total.wait_s - truth) <= 2 * total.error_s + total.unsplit_s
    # Without samples of the longest collectives, most of the delay is not split.
    assert 0.3 * whole < without.unsplit_s
    assert abs(without.wait_s - truth) <= 2 * without.error_s + without.unsplit_s


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 5))])
def test_rare_late_messages_are_split_though_the_hash_does_not_choose_them(seed: int) -> None:
    run = SyntheticRun(4, seed=seed)
    for number in range(2000):
        run.compute({1: 20 * MS} if number % 500 == 123 else {number % 4: 20_000})
        run.exchange(8, 10_000)
    traces = run.traces()
    truth, whole = true_wait(traces), measure(traces).total().time_s
    without, total = measure(traces, level=6).total(), measure(traces, level=6, longest=64).total()
    assert abs(total.wait_s - truth) < 0.02 * whole
    assert total.unsplit_s < 0.02 * whole
    # Without samples of the longest messages, most delays are not split.
    assert without.unsplit_s > 0.3 * whole


def test_messages_that_are_long_at_one_end_alone_are_no_sample() -> None:
    profile = derive_profile(halo_with_a_slow_rank().traces(), level=5, longest=64)
    rows = profile.message_samples
    torn = replace(rows, is_long=rows.is_long & (rows.side == SENT))
    found = measure_waiting(replace(profile, message_samples=torn))
    assert found is not None
    assert not found.calls.is_long.any()


def test_a_sampled_rare_call_does_not_stand_for_others() -> None:
    """One of four successive calls is sampled. In each of four runs, a different one of these calls is long."""
    for late in range(232, 236):
        traces = with_a_long_delay(0, late, rounds=1000).traces()
        total = measure(traces, level=2).total()
        assert abs(total.wait_s - true_wait(traces)) <= 2 * total.error_s + total.unsplit_s
        assert total.error_s < 0.1 * total.time_s


def test_a_call_that_is_long_for_some_members_alone_is_not_taken_for_a_sample() -> None:
    profile = derive_profile(with_a_long_delay(1).traces(), level=5, longest=128)
    rows = profile.collective_samples
    stay = rows.exit_ns - rows.enter_ns
    short = rows.is_long & ~((rows.rank == 2) & (rows.number == rows.number[stay.argmax()]))
    found = measure_waiting(replace(profile, collective_samples=replace(rows, is_long=short)))
    assert found is not None
    # The hash did not select the delayed call, so the sample represents no other call.
    assert stay.max() not in found.calls.stay_ns
    assert not found.calls.is_long.any()


def test_an_instance_without_all_members_says_nothing_and_is_not_guessed() -> None:
    profile = derive_profile(late_in_turn().traces())
    rows = profile.collective_samples
    torn = take_rows(rows, (rows.rank != 3) | (rows.number % 2 == 0))
    found = measure_waiting(replace(profile, collective_samples=torn))
    assert found is not None
    assert found.instances == 150
    # Collectives that include a rank without a recording cannot be split.
    alone = take_rows(rows, rows.rank != 3)
    missing = replace(profile, collective_samples=alone, ranks=profile.ranks[:3])
    lonely = measure_waiting(missing)
    assert lonely is not None
    of_others = lonely.shares.rank != 3
    assert lonely.total(of_others).wait_s == 0
    assert lonely.total(of_others).unsplit_s == pytest.approx(lonely.total(of_others).time_s)


def test_members_that_disagree_are_left_out() -> None:
    profile = derive_profile(late_in_turn().traces())
    rows = profile.collective_samples
    size = rows.size.copy()
    size[(rows.rank == 1) & (rows.number < 100)] = 3
    found = measure_waiting(replace(profile, collective_samples=replace(rows, size=size)))
    assert found is not None
    assert (found.contradictory, found.instances) == (100, 200)


def test_messages_whose_ends_disagree_are_left_out() -> None:
    profile = derive_profile(pipeline().traces())
    rows = profile.message_samples
    size = rows.bytes.copy()
    size[(rows.rank == 1) & (rows.side == Side.RECEIVER) & (rows.number < 50)] = 65
    found = measure_waiting(replace(profile, message_samples=replace(rows, bytes=size)))
    assert found is not None
    assert (found.contradictory, found.messages) == (50, 5 * 150 - 50)


def test_a_call_that_waits_for_a_notifier_needs_no_message() -> None:
    traces = pipeline().traces()
    profile = derive_profile(traces)
    rows = profile.message_samples
    side = np.where(rows.side == Side.SENDER, Side.NOTIFIER, Side.WAITER).astype(np.uint8)
    found = measure_waiting(replace(profile, message_samples=replace(rows, side=side)))
    assert found is not None
    assert found.messages == 0
    assert found.total().wait_s == pytest.approx(true_wait(traces), rel=1e-9)
    # The time of a waiting receiver is not split if the sender did not sample the message.
    alone = take_rows(replace(rows, side=side), (side == Side.WAITER) | (rows.number % 2 == 0))
    missing = measure_waiting(replace(profile, message_samples=alone, ranks=profile.ranks[1:]))
    assert missing is not None
    assert missing.total().unsplit_s > 0.3 * missing.total().time_s


def test_neighbours_wait_for_the_last_of_their_sources_alone() -> None:
    run = late_in_turn()
    profile = derive_profile(run.traces())
    rows = profile.collective_samples
    names = tuple("NEIGHBOR_ALLGATHER" if name == "ALLREDUCE" else name for name in profile.operations)
    # Each rank receives from the rank before it. The last source is the rank itself.
    ends = [(rank, peer) for rank in range(4) for peer in (rank - 1, rank) if peer >= 0]
    columns = {name: np.zeros(len(ends), column) for name, column in MessageSamples.column_types().items()}
    columns["communicator"][:] = rows.communicator[0]
    columns["rank"][:], columns["peer"][:] = zip(*ends, strict=True)
    columns["side"][:] = Side.SOURCE
    sources = MessageSamples(**columns)
    chain = replace(profile, operations=names, message_samples=sources)
    found = measure_waiting(chain)
    assert found is not None
    instances = zip(rows.rank.tolist(), rows.number.tolist(), strict=True)
    start = dict(zip(instances, rows.start_ns.tolist(), strict=True))
    late = [start[rank - 1, number] - at for (rank, number), at in start.items() if rank]
    assert found.total().wait_s == pytest.approx(sum(each for each in late if each > 0) * 1e-9, rel=1e-6)
    assert found.total().unsplit_s == 0
    # If a source is unknown, the time is not split.
    torn = measure_waiting(replace(chain, message_samples=take_rows(sources, sources.rank != sources.peer)))
    assert torn is not None
    assert torn.total().wait_s == 0
    assert torn.total().unsplit_s == pytest.approx(torn.total().time_s)


@pytest.mark.parametrize(("name", "waiting"), [("Bcast", {0, 2, 3}), ("Reduce", {1})])
def test_a_rooted_collective_waits_for_those_it_needs(name: str, waiting: set[int]) -> None:
    """In every second round, the root of a Bcast or a sender of a Reduce is late. Other ranks wait for this rank."""
    run = SyntheticRun(4, seed=6)
    for number in range(100):
        is_root = number % 2 == 0
        run.compute({1 if is_root == (name == "Bcast") else 2: 3 * MS})
        run.collective(name, 8, 8 * MS, root=1)  # the transfer takes longer than the delay of any rank
        run.collective("Barrier", 0, 20_000)
    found = measure(run.traces())
    calls = found.calls
    is_rooted = calls.operation != calls.operation[calls.state == WaitState.BARRIER][0]
    long = is_rooted & (calls.wait_ns > MS)
    assert set(calls.rank[long].tolist()) == waiting
    assert long.sum() == 50 * len(waiting)


def test_a_delay_is_traced_back_to_the_rank_that_came_late() -> None:
    found = measure(pipeline().traces())
    assert {late.rank for late in found.late if late.wait_s > 0.01 * found.total().wait_s} == {0}
    first = found.late[0]
    # Four of the five waiting ranks wait for another waiting rank.
    assert first.passed_on_s == pytest.approx(0.8 * first.wait_s, rel=0.05)
    assert first.late_s == pytest.approx(2e-3, rel=0.05)
    assert first.outside_s == pytest.approx(0.3, rel=0.05)
    assert first.others_outside_s is not None
    assert first.others_outside_s < 0.05


def test_the_late_rank_of_a_halo_is_named_with_its_share() -> None:
    first = measure(halo_with_a_slow_rank().traces()).late[0]
    assert (first.rank, first.operation) == (2, "WAITALL")


def test_local_calls_wait_for_nobody() -> None:
    assert [name for name in ("ISEND", "IRECV", "IALLREDUCE", "START", "SEND_INIT", "PUT") if not is_local(name)] == []
    assert [name for name in ("SEND", "RECV", "WAIT", "TEST", "IPROBE", "ALLREDUCE") if is_local(name)] == []


def test_collectives_have_their_shapes() -> None:
    names = ("IALLREDUCE", "BCAST", "GATHERV_INIT", "SCAN", "NEIGHBOR_ALLTOALL", "COMM_SPLIT", "IBARRIER")
    assert [find_shape(name).name for name in names] == [
        *("ALL", "FROM_ROOT", "TO_ROOT", "PREFIX", "NEIGHBOURS", "ALL", "ALL")
    ]
