# SPDX-License-Identifier: Apache-2.0
"""Rail policies keep the number of bytes, and divide the bytes over rails as documented."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof.errors import UsageError
from ibprof_converter.choices import RAIL_POLICIES
from ibprof_converter.traffic.adapter_policies import share_out

BYTES = st.integers(0, (1 << 63) - 1)


def shares_of(policy: str, flows: list[tuple[int, int, int, int]], usable: list[list[bool]]) -> list[list[int]]:
    """Divide flows (source, destination, bytes, messages) over rails. Return bytes [flow][rail]."""
    sources, destinations, *amounts = zip(*flows, strict=True)
    source, destination = np.array(sources, np.int32), np.array(destinations, np.int32)
    counts, messages = (np.array(amount, np.uint64) for amount in amounts)
    shares = share_out(policy, np.array(usable), source, destination, counts, messages)
    table = [[0] * len(usable[0]) for _ in flows]
    rows = np.arange(len(flows))[shares.flow]
    for flow, rail, amount in zip(rows.tolist(), shares.rail.tolist(), shares.bytes.tolist(), strict=True):
        assert amount > 0
        table[flow][rail] += amount
    return table


BOTH = [True, True]


def test_split_gives_the_odd_byte_to_the_first() -> None:
    assert shares_of("split", [(0, 1, 7, 1), (0, 1, 8, 1), (1, 0, 1, 1)], [BOTH] * 3) == [[4, 3], [4, 4], [1, 0]]


def test_round_robin_gives_the_odd_message_to_the_first() -> None:
    assert shares_of("round-robin", [(0, 1, 500, 5)], [BOTH]) == [[300, 200]]
    assert shares_of("round-robin", [(0, 1, 500, 1)], [BOTH]) == [[500, 0]]


def test_round_robin_goes_on_where_the_pair_left_off() -> None:
    """A pair's messages alternate between the rails, also if other flows are in between."""
    flows = [(0, 1, 100, 1), (0, 2, 100, 1), (0, 1, 100, 1), (0, 1, 100, 1)]
    assert shares_of("round-robin", flows, [BOTH] * 4) == [[100, 0], [100, 0], [0, 100], [100, 0]]


def test_round_robin_makes_the_first_messages_the_longer_ones() -> None:
    # Four messages of 11 bytes have 3, 3, 3 and 2 bytes.
    assert shares_of("round-robin", [(0, 1, 11, 4)], [BOTH]) == [[6, 5]]


def test_first_and_second_fall_back_where_an_end_is_not_on_the_rail() -> None:
    usable = [BOTH, [True, False], [False, True]]
    flows = [(0, 1, 5, 1), (0, 2, 5, 1), (1, 2, 5, 1)]
    assert shares_of("first", flows, usable) == [[5, 0], [5, 0], [0, 5]]
    assert shares_of("second", flows, usable) == [[0, 5], [5, 0], [0, 5]]


def test_second_needs_a_second_rail() -> None:
    with pytest.raises(UsageError, match="only one fabric"):
        shares_of("second", [(0, 1, 5, 1)], [[True]])


@st.composite
def flows_over_rails(draw: st.DrawFn) -> tuple[list[tuple[int, int, int, int]], list[list[bool]]]:
    rails = draw(st.integers(2, 4))
    flow = st.tuples(st.integers(0, 3), st.integers(0, 3), BYTES, st.integers(0, 1 << 40))
    usable = st.lists(st.booleans(), min_size=rails, max_size=rails).filter(any)
    rows = draw(st.lists(st.tuples(flow, usable), min_size=1, max_size=20))
    return [row[0] for row in rows], [row[1] for row in rows]


@given(st.sampled_from(RAIL_POLICIES), flows_over_rails())
def test_every_byte_takes_one_rail_that_both_ends_are_on(
    policy: str, drawn: tuple[list[tuple[int, int, int, int]], list[list[bool]]]
) -> None:
    flows, usable = drawn
    table = shares_of(policy, flows, usable)
    assert [sum(row) for row in table] == [flow[2] for flow in flows]
    assert not any(
        amount for row, on in zip(table, usable, strict=True) for amount, may in zip(row, on, strict=True) if not may
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 300), st.integers(1, 9)), min_size=1, max_size=9
    )
)
def test_round_robin_is_what_sending_message_by_message_gives(flows: list[tuple[int, int, int, int]]) -> None:
    expected = []
    turn: dict[tuple[int, int], int] = {}
    for source, destination, amount, messages in flows:
        row = [0, 0]
        for message in range(messages):
            rail = turn.get((source, destination), 0)
            row[rail] += amount // messages + (message < amount % messages)
            turn[source, destination] = 1 - rail
        expected.append(row)
    assert shares_of("round-robin", flows, [BOTH] * len(flows)) == expected
