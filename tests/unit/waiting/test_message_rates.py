# SPDX-License-Identifier: Apache-2.0
"""Messages with known transfer times have the right rate and latency for each pair of hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof.profile.profile_data import Transport
from ibprof.verdict.verdict_rules import judge_run
from ibprof.waiting.wait_split import HostPair, measure_waiting
from ibprof_testing.samples.profiles import Count, make_profile, make_rank
from ibprof_testing.waits.derived_samples import derive_profile
from ibprof_testing.waits.synthetic_traces import MS, SyntheticRun


def measure(run: SyntheticRun, hosts: list[int], boot: int = 1) -> tuple[HostPair, ...]:
    profile = derive_profile(run.traces(), hosts=hosts)
    profile = replace(profile, ranks=tuple(replace(rank, boot=boot) for rank in profile.ranks))
    found = measure_waiting(profile)
    assert found is not None
    return found.pairs


def test_large_messages_have_the_rate_of_their_calls() -> None:
    run = SyntheticRun(4, seed=1)
    for _ in range(50):
        run.exchange(1_000_000, 4 * MS)
    # Each call receives 1 MB from each neighbour, 2 to 4 ms after the start of the last rank.
    pairs = measure(run, [0, 1, 2, 3])
    assert {(pair.source, pair.destination) for pair in pairs} == {
        (f"n{a:02}", f"n{b:02}") for a in range(4) for b in range(4) if abs(a - b) in (1, 3)
    }
    for pair in pairs:
        assert (pair.large_messages, pair.small_messages, pair.latency_s) == (50, 0, None)
        assert pair.rate_gbps == pytest.approx(8e-3 / 3e-3, rel=0.1)
    # In a ring of two hosts, one call receives from both sides.
    (pair,) = (each for each in measure(run, [0, 1, 0, 1]) if each.source == "n00")
    assert pair.large_messages == 4 * 50
    assert pair.rate_gbps == pytest.approx(16e-3 / 3e-3, rel=0.1)


def test_small_messages_that_are_waited_for_have_a_latency() -> None:
    run = SyntheticRun(3, seed=2)
    for _ in range(80):
        run.compute({0: 2 * MS})
        run.pass_on(64, 20_000)
    pairs = measure(run, [0, 0, 1])
    assert [(pair.source, pair.destination, pair.small_messages) for pair in pairs] == [
        ("n00", "n00", 80),
        ("n00", "n01", 80),
    ]
    for pair in pairs:
        assert pair.latency_s == pytest.approx(15e-6, rel=0.15)
        assert pair.rate_gbps is None


def test_clocks_that_are_less_certain_than_a_message_say_nothing_of_it() -> None:
    run = SyntheticRun(2, seed=3)
    for _ in range(60):
        run.exchange(1_000_000, 4 * MS)
    profile = derive_profile(run.traces(), hosts=[0, 1], clock=lambda rank, times: np.asarray(times) + rank * 10**9)
    found = measure_waiting(profile)
    assert found is not None
    assert found.pairs == ()


def test_the_verdict_names_what_carries_the_messages() -> None:
    run = SyntheticRun(2, seed=1)
    for _ in range(50):
        run.exchange(1_000_000, 4 * MS)
    sent = make_profile([Count(0, 1, 10**8), Count(1, 0, 10**8)], [make_rank(0), make_rank(1)]).counters
    profile = replace(derive_profile(run.traces()), counters=sent)
    (pair,) = judge_run(profile).as_json()["host_pairs"]
    assert (pair["source"], pair["via"]) == ("n00", "memory")
    tcp = (Transport("tcp", "lo", 4, sent_bytes=10**9, received_bytes=10**9),)
    over_tcp = replace(profile, ranks=tuple(replace(rank, transports=tcp) for rank in profile.ranks))
    (pair,) = judge_run(over_tcp).as_json()["host_pairs"]
    assert pair["via"] == "TCP over lo"
