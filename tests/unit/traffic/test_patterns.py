# SPDX-License-Identifier: Apache-2.0
"""Each pattern has the pairs that its name defines. A seed always gives the same pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ibprof.errors import UsageError
from ibprof_converter.traffic.patterns import build_pattern
from ibprof_converter.traffic.traffic_data import RankTraffic

SEEDED = ("permutation", "bisect", "2dnn", "2dnndiag", "3dnn", "3dnndiag", "random50", "randn50")


def pairs(traffic: RankTraffic) -> list[tuple[int, int]]:
    return list(zip(traffic.source.tolist(), traffic.destination.tolist(), strict=True))


def test_all_to_all_is_every_ordered_pair_once() -> None:
    traffic = build_pattern("pattern:all-to-all", 7)
    assert sorted(pairs(traffic)) == [(a, b) for a in range(7) for b in range(7) if a != b]
    assert traffic.bytes.tolist() == [1] * 42


def test_shift_goes_round_and_takes_bytes() -> None:
    traffic = build_pattern("pattern:shift:3:1000", 5)
    assert pairs(traffic) == [(0, 3), (1, 4), (2, 0), (3, 1), (4, 2)]
    assert set(traffic.bytes.tolist()) == {1000}
    assert pairs(build_pattern("pattern:shift:-1", 3)) == [(0, 2), (1, 0), (2, 1)]


def test_permutation_gives_each_host_at_most_one_partner_each_way() -> None:
    made = pairs(build_pattern("pattern:permutation:5", 50))
    assert len({a for a, _ in made}) == len({b for _, b in made}) == len(made) > 40
    assert {a for a, _ in made} == {b for _, b in made}


def test_a_shift_may_be_of_any_distance() -> None:
    assert pairs(build_pattern(f"pattern:shift:{10**30 + 3}", 10)) == pairs(build_pattern("pattern:shift:3", 10))
    assert pairs(build_pattern("pattern:shift:-1", 10)) == pairs(build_pattern("pattern:shift:9", 10))


@pytest.mark.parametrize("hosts", [8, 9])
def test_bisect_sends_from_one_half_to_the_other(hosts: int) -> None:
    made = pairs(build_pattern("pattern:bisect:1", hosts))
    assert len(made) == 4
    assert len({host for pair in made for host in pair}) == 8


@pytest.mark.parametrize(("name", "most"), [("2dnn", 4), ("2dnndiag", 8), ("3dnn", 6), ("3dnndiag", 26)])
def test_neighbours_send_to_one_another_and_to_no_more_than_the_grid_has(name: str, most: int) -> None:
    made = pairs(build_pattern(f"pattern:{name}:2", 1000))
    assert set(made) == {(b, a) for a, b in made}
    sent = Counter(a for a, _ in made)
    assert len(set(sent.values())) == 1
    assert max(sent.values()) <= most
    if name == "2dnn":
        assert sent[0] == most  # with seed 2, both sides of the grid are longer than 2


def test_random_patterns_stay_within_their_bounds() -> None:
    for seed in range(5):
        assert 1 <= len(pairs(build_pattern(f"pattern:random50:{seed}", 10))) <= 500
        sent = Counter(a for a, _ in pairs(build_pattern(f"pattern:randn50:{seed}", 30)))
        assert len(sent) == 30
        assert len(set(sent.values())) == 1


@pytest.mark.parametrize("name", SEEDED)
@pytest.mark.parametrize("hosts", [2, 3, 17, 64])
def test_nobody_sends_to_itself_or_beyond_the_hosts(name: str, hosts: int) -> None:
    for seed in range(3):
        traffic = build_pattern(f"pattern:{name}:{seed}", hosts)
        assert not np.any(traffic.source == traffic.destination)
        assert all(0 <= host < hosts for pair in pairs(traffic) for host in pair)
        if name != "random50":
            assert len(set(pairs(traffic))) == len(pairs(traffic))


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_always_draws_the_same(name: str) -> None:
    first, again = (pairs(build_pattern(f"pattern:{name}:7", 40)) for _ in range(2))
    assert first == again
    assert any(first != pairs(build_pattern(f"pattern:{name}:{seed}", 40)) for seed in range(8, 16))


def test_a_seed_means_the_same_in_every_version() -> None:
    assert pairs(build_pattern("pattern:bisect:1", 8)) == [(7, 0), (2, 4), (1, 3), (6, 5)]


@pytest.mark.parametrize(
    "text",
    [
        "pattern:",
        "pattern:nonsense",
        "pattern:shift",
        "pattern:shift:x",
        "pattern:shift:1:2:3",
        "pattern:all-to-all:-1",
        "pattern:all-to-all:9223372036854775807",
        "pattern:shift:12",
        "pattern:bisect:-1",
        "pattern:bisect:4294967296",
        "pattern:all-to-all:1e3",
        "pattern:all-to-all:1_000",
        "pattern:shift: 1",
        "pattern:shift:\N{ARABIC-INDIC DIGIT ONE}",
        f"pattern:shift:{'9' * 5000}",
    ],
)
def test_what_cannot_be_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(UsageError, match=r"pattern|seed"):
        build_pattern(text, 12)
