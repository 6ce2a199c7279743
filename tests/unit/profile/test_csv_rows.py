# SPDX-License-Identifier: Apache-2.0
"""Rows of CSV are, byte by byte, those that Python's own csv writes."""

from __future__ import annotations

import csv
import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ibprof.text.csv_rows import format_pairs

NAMES = st.lists(st.text(max_size=9) | st.sampled_from(["", '"', "a,b", "a\nb", " a", "0"]), min_size=1, max_size=5)
NUMBERS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 9, 10, 2**64 - 1])


@given(NAMES, st.data())
def test_like_the_csv_module(names: list[str], data: st.DataObject) -> None:
    index = st.integers(0, len(names) - 1)
    rows = data.draw(st.lists(st.tuples(index, index, NUMBERS, NUMBERS), max_size=20))
    expected = io.StringIO()
    csv.writer(expected, lineterminator="\n").writerows((names[a], names[b], size, n) for a, b, size, n in rows)
    source, destination = (np.array([row[end] for row in rows], np.int64) for end in (0, 1))
    size, messages = (np.array([row[column] for row in rows], np.uint64) for column in (2, 3))
    assert "".join(format_pairs(names, source, destination, size, messages)) == expected.getvalue()


def test_many_rows() -> None:
    number = np.arange(100_000)
    text = "".join(
        format_pairs(["x", "yy"], number % 2, number // 2 % 2, number.astype(np.uint64), number.astype(np.uint64))
    )
    assert [line.split(",")[2] for line in text.splitlines()] == [str(one) for one in number]
