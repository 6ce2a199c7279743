# SPDX-License-Identifier: Apache-2.0
"""How tangled a layout is: crossings of links between levels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.model import Fabric


def count_crossings(fabric: Fabric, level: npt.NDArray[np.integer], x: npt.NDArray[np.float64]) -> int:
    """Count the pairs of links that cross, among those that join the same two levels; those within a level count not.

    Args:
        fabric: whose links they are.
        level: int [node].
        x: float64 [node], in any unit.
    """
    ends = fabric.link_node
    upper = np.take_along_axis(ends, np.argmax(level[ends], axis=1)[:, None], axis=1)[:, 0]
    lower = ends.sum(axis=1) - upper
    total = 0
    joined = level[lower].astype(np.int64) << 32 | level[upper]
    for pair in np.unique(joined[level[lower] != level[upper]]):
        here = joined == pair
        total += _count_inversions(_rank(x[lower[here]]), _rank(x[upper[here]]))
    return total


def _rank(x: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.unique(x, return_inverse=True)[1].astype(np.int64)


def _count_inversions(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> int:
    """Count pairs in one order by `first` and in the other by `second`: O(n log n), a bit of `second` at a time."""
    value = second[np.lexsort((second, first))]
    total = 0
    for bit in reversed(range(int(value.max(initial=0)).bit_length())):
        # Values are sorted by their higher bits by now, the order of equals kept: in each such run, a 1 that stands
        # before a 0 is a pair in the wrong order, and no other bit tells that pair apart first.
        one = value >> bit & 1
        ones_before = np.cumsum(one) - one
        run = value >> (bit + 1)
        starts = np.flatnonzero(np.concatenate([[True], run[1:] != run[:-1]]))
        before_run = np.repeat(ones_before[starts], np.diff([*starts, len(value)]))
        total += int((ones_before - before_run)[one == 0].sum())
        value = value[np.argsort(value >> bit, kind="stable")]
    return total
