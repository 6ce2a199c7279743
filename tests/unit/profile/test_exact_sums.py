# SPDX-License-Identifier: Apache-2.0
"""Sums of counters equal the sums of Python's integers, whatever their size."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ibprof.profile.row_arrays import find_distinct, number_keys, sum_by_group, sum_by_key

ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2**64 - 1), st.integers(0, 2**40)), max_size=40)


@given(ROWS)
def test_sums(rows: list[tuple[int, int, int]]) -> None:
    key = np.array([row[0] for row in rows], np.int64)
    first, second = (np.array([row[column] for row in rows], np.uint64) for column in (1, 2))
    expected: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for number, one, other in rows:
        expected[0][number] += one
        expected[1][number] += other
    keys, *sums = (column.tolist() for column in sum_by_key(key, first, second))
    assert keys == sorted({row[0] for row in rows})
    assert sums == [[total[number] for number in keys] for total in expected]
    assert sum_by_group(key, 10, first) == [expected[0][number] for number in range(10)]


@given(st.lists(st.integers(0, 30), max_size=40), st.sampled_from([1, 1 << 40]), st.booleans())
def test_keys_are_numbered_as_numpy_numbers_them(rows: list[int], scale: int, in_order: bool) -> None:
    key = np.array(sorted(rows) if in_order else rows, np.int64) * scale
    keys, number = number_keys(key)
    expected = np.unique(key, return_inverse=True)
    assert keys.tolist() == expected[0].tolist()
    assert number.tolist() == expected[1].tolist()
    small = np.array(rows, np.int32)
    assert find_distinct(small, small[:3]).tolist() == sorted(set(rows))
