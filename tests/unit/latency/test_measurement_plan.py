# SPDX-License-Identifier: Apache-2.0
"""Parts of the delay measurement that need no MPI: schedules, message lengths, statistics, pairs to measure again."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof.errors import InputError, UsageError
from ibprof_lab.latency.features.outliers import find_outlier_pairs
from ibprof_lab.latency.files.pair_files import read_pairs, write_pairs
from ibprof_lab.latency.measure.measurement_plan import (
    ROUNDS_OF,
    BackgroundNoise,
    MeasurementPlan,
    color_pairs,
    count_rounds,
    halving,
    round_robin,
    shifts,
)
from ibprof_lab.latency.measure.timed_loops import Sampling, sample_batches, summarise
from ibprof_lab.latency.model.typed_quantities import parse_lengths
from ibprof_testing.samples.delays import make_delays


@pytest.mark.parametrize("name", ["rounds", "sequential", "halving"])
@given(processes=st.integers(0, 40))
def test_each_pair_comes_once_and_nobody_twice_in_a_round(name: str, processes: int) -> None:
    rounds = [pairs.tolist() for pairs in ROUNDS_OF[name](processes)]
    for pairs in rounds:
        busy = [process for pair in pairs for process in pair]
        assert len(busy) == len(set(busy))
    found = sorted(tuple(sorted(pair)) for pairs in rounds for pair in pairs)
    assert found == list(combinations(range(processes), 2))
    assert len(rounds) == count_rounds(name, processes)


@given(processes=st.integers(0, 40))
def test_a_shift_has_each_ordered_pair_once_and_each_process_as_sender_and_receiver(processes: int) -> None:
    rounds = [pairs.tolist() for pairs in shifts(processes)]
    for pairs in rounds:
        for side in zip(*pairs, strict=True):
            assert sorted(side) == list(range(processes))
    found = sorted(tuple(pair) for pairs in rounds for pair in pairs)
    assert found == sorted(permutations(range(processes), 2))
    assert len(rounds) == count_rounds("shift", processes)


def test_numbers_of_rounds() -> None:
    """Round robin needs n - 1 rounds for even n, and n rounds for odd n.

    Halving (Bufe, section 2.3.2) needs 11 rounds for n = 10.
    """
    assert [len(list(round_robin(n))) for n in (2, 3, 9, 10, 64)] == [1, 3, 9, 9, 63]
    rounds = [pairs.tolist() for pairs in halving(10)]
    assert len(rounds) == 11
    assert [len(pairs) for pairs in rounds] == [5] * 5 + [4] * 4 + [2, 2]
    # As in Bufe's table, rounds 1 to 5 pair hosts of different halves. Later rounds pair hosts within a half.
    assert all(one < 5 <= other for pairs in rounds[:5] for one, other in pairs)
    assert all((one < 5) == (other < 5) for pairs in rounds[5:] for one, other in pairs)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda pair: pair[0] != pair[1])))
def test_chosen_pairs_are_put_into_few_rounds(pairs: list[tuple[int, int]]) -> None:
    rounds = [each.tolist() for each in color_pairs(pairs)]
    wanted = {tuple(sorted(pair)) for pair in pairs}
    assert sorted(tuple(pair) for each in rounds for pair in each) == sorted(wanted)
    for each in rounds:
        busy = [process for pair in each for process in pair]
        assert len(busy) == len(set(busy))
    degree = max((sum(process in pair for pair in wanted) for process in range(13)), default=0)
    assert len(rounds) <= max(2 * degree - 1, 0)


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("0,64,1K:8K:x2", [0, 64, 1024, 2048, 4096, 8192]),
        ("1M", [1 << 20]),
        ("64,0,64", [0, 64]),
        ("0:300:100", [0, 100, 200, 300]),
        ("0:250:+100", [0, 100, 200]),
        ("1:100:x10", [1, 10, 100]),
        ("4:64", [4, 8, 16, 32, 64]),
        ("1K:1K", [1024]),
        ("1KiB,2kb", [1024, 2048]),
        ("100:300:x1.5", [100, 150, 225]),
    ],
)
def test_lengths_as_written(text: str, lengths: list[int]) -> None:
    assert parse_lengths(text).tolist() == lengths


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1:2:3:4", "8:4", "0:8:x2", "1:8:x1", "1:8:x", "0:9:0", "3G", "0:1G:1"]
)
def test_lengths_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"^expected "):
        parse_lengths(text)


def test_statistics_are_numpys() -> None:
    samples = np.array([5.0, 1, 4, 2, 3])
    assert summarise(samples).tolist() == [3, 1, 2, 4, 3, pytest.approx(np.std(samples, ddof=1))]
    assert np.isnan(summarise(np.array([2.0]))[5])
    assert summarise(np.ones((4, 3))).shape == (6, 3)


def test_batches_grow_until_they_last_and_what_warms_up_is_thrown_away() -> None:
    """A round trip takes 10 us, and more in the first batches. A batch of 1 ms must have at least 100 round trips."""
    asked: list[int] = []

    def run(turns: int) -> float:
        asked.append(turns)
        return 1e-5 * turns + (1e-4 if len(asked) < 3 else 0)

    samples, turns = sample_batches(Sampling(7, 1e-3), run)
    assert turns >= 100
    assert asked[-7:] == [turns] * 7
    assert samples / turns == pytest.approx(np.full(7, 1e-5))


@pytest.mark.parametrize(
    "plan",
    [
        {"schedule": "shift", "mode": "async"},
        {"schedule": "shift", "one_way": True},
        {"mode": "bandwidth", "one_way": True},
        {"noise": BackgroundNoise(2)},
        {"noise": BackgroundNoise(3), "schedule": "sequential"},
        {"noise": BackgroundNoise(4), "schedule": "sequential"},
        {"noise": BackgroundNoise(2), "schedule": "sequential", "mode": "all_to_all"},
    ],
)
def test_what_cannot_be_done_with_five_processes_is_refused(plan: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="expected"):
        MeasurementPlan(np.array([0]), **plan).check(5)  # type: ignore[arg-type]


def test_spoilt_values_are_doubtful_and_sound_ones_are_not() -> None:
    delays = make_delays(lengths=1, noise=0.02, seed=3)
    assert len(find_outlier_pairs(delays, 0, 1000)) <= 0.02 * 32 * 31
    spoilt = [(3, 17), (20, 5), (9, 10)]
    for one, other in spoilt:
        delays.median[0, one, other] *= 1.6
    delays.median[0, 30, 2] = np.nan
    found = [tuple(pair) for pair in find_outlier_pairs(delays, 0, 8).tolist()]
    assert found[0] == (30, 2)
    found_pairs = {frozenset(pair) for pair in found}
    assert {frozenset(pair) for pair in spoilt} <= found_pairs
    assert len(find_outlier_pairs(delays, 0, 2)) == 2


@pytest.mark.parametrize("hosts", [0, 1, 2, 3])
def test_few_processes_can_be_doubted_too(hosts: int) -> None:
    delays = make_delays(hosts=hosts, lengths=1)
    assert len(find_outlier_pairs(delays, 0, 10)) == 0


def test_pairs_in_a_file(tmp_path: Path) -> None:
    labels = ("a#0", "a#1", "b")
    path = tmp_path / "pairs.csv"
    path.write_text("sender,receiver,ratio\na#1,b,2\n\n0,1\na,b\n")
    assert read_pairs(path, labels).tolist() == [[1, 2], [0, 1], [0, 2], [1, 2]]
    write_pairs(path, labels, np.array([[2, 0]]), np.array([1.5]))
    assert read_pairs(path, labels).tolist() == [[2, 0]]
    for text, message in (("a\n", ":1: expected sender,receiver"), ("a,c\n", ":1: expected one of 3")):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_pairs(path, labels)
