# SPDX-License-Identifier: Apache-2.0
"""Sums over time of what was recorded by interval, taken to be spread evenly over each interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Intervals, IntervalTimes

_CELLS_AT_ONCE = 1 << 22


def sum_until(
    intervals: Intervals | IntervalTimes,
    amounts: npt.NDArray[np.uint64] | npt.NDArray[np.float64],
    first: int,
    edges: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return the sum of the intervals' amounts until each moment, 0 at the first.

    Args:
        intervals: of a run.
        amounts: [row], or [row, kind] for several kinds.
        first: Unix time from which on moments count, ns.
        edges: float64 [moment], ns.

    Returns:
        float64 [moment], or [moment, kind].
    """
    sums = np.zeros((len(edges), *amounts.shape[1:]))
    rows_at_once = max(1, _CELLS_AT_ONCE // len(edges))
    for begin in range(0, len(amounts), rows_at_once):
        rows = slice(begin, begin + rows_at_once)
        starts = (intervals.begin_ns[rows] - np.uint64(first)).astype(np.float64)
        lengths = (intervals.end_ns[rows] - intervals.begin_ns[rows]).astype(np.float64)
        part = (edges[1:, None] - starts) / np.maximum(lengths, 1.0)
        sums[1:] += np.clip(part, 0.0, 1.0) @ amounts[rows].astype(np.float64)
    return sums
