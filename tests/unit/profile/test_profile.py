# SPDX-License-Identifier: Apache-2.0
"""A profile's rows are in the documented order, for any numbers."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof.profile.profile_data import UNKNOWN_PEER, Counters
from ibprof.profile.profile_rows import COLUMN_TYPES, join_rows, order_rows

ORDER = ("rank", "region", "operation", "site", "direction", "kind", "source", "peer")
NAMES = [column.name for column in fields(Counters)]


def make_counters(rows: list[tuple[int, ...]]) -> Counters:
    table = {name: [row[place] for row in rows] for place, name in enumerate(ORDER)}
    table |= {"bytes": list(range(len(rows))), "messages": [0] * len(rows)}
    return Counters(**{name: np.array(table[name], COLUMN_TYPES[name]) for name in NAMES})


# Columns of small numbers fit into one 64-bit sort key; columns of large numbers do not.
@pytest.mark.parametrize("limit", [3, 2**31 - 1])
def test_rows_are_ordered_and_equal_ones_stay(limit: int) -> None:
    number = st.integers(0, limit)
    peer = st.sampled_from([0, 1, 7, UNKNOWN_PEER - 1, UNKNOWN_PEER])
    few = st.integers(0, 2)

    @given(st.lists(st.tuples(number, number, number, few, few, few, few, peer), max_size=12))
    def check(rows: list[tuple[int, ...]]) -> None:
        counters = make_counters(rows)
        expected = sorted(range(len(rows)), key=lambda row: rows[row])
        assert order_rows(counters).bytes.tolist() == expected
        parts = [{name: getattr(counters, name)[half] for name in NAMES} for half in (slice(0, 5), slice(5, None))]
        assert join_rows(Counters, parts).bytes.tolist() == expected
        assert parts == [{}, {}]

    check()
