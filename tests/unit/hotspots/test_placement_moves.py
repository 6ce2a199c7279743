# SPDX-License-Identifier: Apache-2.0
"""If ranks move between hosts with several adapters, the ranks' traffic moves to the corresponding adapters."""

from __future__ import annotations

import numpy as np

from ibprof_converter.hotspots.causes import placement_moves, sender_causes
from ibprof_converter.hotspots.causes.placement_moves import move_hosts
from ibprof_converter.hotspots.causes.situation import PairBytes, Situation
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_testing.samples.many_adapters import ADAPTERS, make_subnet

SUBNET = make_subnet()
HOSTS = find_hosts([SUBNET.fabric])
GPU = [HOSTS.name.index(f"gpu{number}") for number in (1, 2, 3, 4)]


def make_situation(rails: int = 1) -> Situation:
    """On rail 0, adapter n of gpu1 sends 100 + n bytes to adapter n + 1 of gpu2, cyclically."""
    one, other = HOSTS.ports[GPU[0], 0], HOSTS.ports[GPU[1], 0]
    flows = PairBytes.add_up(
        np.zeros(ADAPTERS, np.int32), one, np.roll(other, -1), np.arange(100, 100 + ADAPTERS).astype(np.uint64)
    )
    hosts = HOSTS if rails == 1 else find_hosts([SUBNET.fabric] * rails)
    return Situation([SUBNET] * rails, hosts, flows)


def rows(flows: PairBytes) -> set[tuple[int, ...]]:
    columns = (flows.rail, flows.source_lid, flows.destination_lid, flows.bytes)
    return set(zip(*(column.tolist() for column in columns), strict=True))


def test_hosts_that_move_take_their_adapters_in_order() -> None:
    situation = make_situation()
    rank_of = np.full(len(HOSTS.name), -1, np.int64)
    rank_of[GPU[:2]] = 0, 1
    moved = placement_moves._move(situation, rank_of, np.array([GPU[2], GPU[1]], np.int32))
    three, two = HOSTS.ports[GPU[2], 0].tolist(), HOSTS.ports[GPU[1], 0].tolist()
    assert rows(moved) == {(0, three[n], two[(n + 1) % ADAPTERS], 100 + n) for n in range(ADAPTERS)}


def test_a_host_with_one_adapter_takes_what_eight_sent() -> None:
    situation = make_situation()
    storage = HOSTS.name.index("storage1")
    rank_of = np.full(len(HOSTS.name), -1, np.int64)
    rank_of[GPU[:2]] = 0, 1
    moved = placement_moves._move(situation, rank_of, np.array([storage, GPU[1]], np.int32))
    two, lid = HOSTS.ports[GPU[1], 0].tolist(), int(HOSTS.lid[storage, 0])
    assert rows(moved) == {(0, lid, two[(n + 1) % ADAPTERS], 100 + n) for n in range(ADAPTERS)}


def test_hosts_that_stay_keep_their_adapters() -> None:
    """Eight adapters send one message each. One adapter alone would need eight times as long."""
    situation = make_situation()
    found = move_hosts(situation, own_hosts_only=False)
    assert found is not None
    assert found.after.max_host_seconds <= situation.max_host_seconds * (1 + 1e-12)


def test_bytes_that_are_shared_out_over_subnets_keep_their_adapters() -> None:
    shared = sender_causes._share_over_rails(make_situation(rails=2))
    one, two = HOSTS.ports[GPU[0], 0].tolist(), HOSTS.ports[GPU[1], 0].tolist()
    expected = set()
    for n in range(ADAPTERS):
        half, odd = divmod(100 + n, 2)
        pair = (one[n], two[(n + 1) % ADAPTERS])
        expected |= {(0, *pair, half + odd), (1, *pair, half)}
    assert rows(shared) == expected
