# SPDX-License-Identifier: Apache-2.0
"""From where on a series of latencies is stationary, and whether it is at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_PARTS = 10
"""Parts of the measured time, whose means a line is fitted to; long compared with a message, so nearly independent."""

Slice = tuple[float, float, int, float]
"""Begin and end in ns, messages that ended in between, and their mean."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Change of a mean from the beginning of the measured time to its end, by a straight line.

    Attributes:
        change: as part of the mean.
        half: half of its 95% confidence interval; nan where there are too few messages to tell.
    """

    change: float
    half: float

    def exceeds(self, part: float) -> bool:
        """Return whether the change is more than a part of the mean, up or down, with all of its interval."""
        return abs(self.change) - self.half > part


def find_warm_up(values: npt.NDArray[np.float64]) -> int:
    """Return the number of leading values to leave out: MSER, the cut that makes the standard error of the rest least.

    At most half of the values are left out; if the least lies there, the series is not stationary and all of that half
    is left out.

    Source: K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6),
    1997.
    """
    count = len(values)
    if count < 4:
        return count // 2
    tail_sum = np.cumsum(values[::-1])[::-1]
    tail_squares = np.cumsum(values[::-1] ** 2)[::-1]
    left = count - np.arange(count)
    error = (tail_squares - tail_sum**2 / left) / left.astype(float) ** 2
    return int(np.argmin(error[: count // 2 + 1]))


def find_drift(slices: Sequence[Slice]) -> Drift:
    """Lay a line through the means of ten equal parts of time, by least squares.

    Args:
        slices: in order of time; those without messages left out.
    """
    from scipy.stats import linregress, t  # noqa: PLC0415  (slow to import)

    if not slices:
        return Drift(math.nan, math.nan)
    begin, end = slices[0][0], slices[-1][1]
    middle, messages, mean = np.array([((first + last) / 2, count, each) for first, last, count, each in slices]).T
    part = np.minimum((middle - begin) / (end - begin) * _PARTS, _PARTS - 1).astype(int)
    count = np.bincount(part, messages, _PARTS)
    there = np.flatnonzero(count)
    if len(there) < _PARTS // 2:
        return Drift(math.nan, math.nan)
    of_part = np.bincount(part, messages * mean, _PARTS)[there] / count[there]
    line = linregress((there + 0.5) / _PARTS, of_part)
    whole = float(np.average(mean, weights=messages))
    half = float(t.ppf(0.975, len(there) - 2)) * line.stderr
    return Drift(float(line.slope) / whole, float(half) / whole)
