# SPDX-License-Identifier: Apache-2.0
"""Statistics of latencies: intervals of means, warm-up, drift, steady state, means over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BATCHES = 20
"""Number of batches in time; their means give the interval of a mean."""

_TREND_PARTS = 10
"""Parts of the measured time for fitting a line; long compared with a message, so that means are nearly independent."""

LEAST = 25
"""Smallest average number of measured messages per client."""

_GROWTH = 1.2
_MOST_CORRELATED = 0.9

Values = npt.NDArray[np.floating]

Slice = tuple[float, float, int, float]
"""Begin and end in ns, number of messages completed in between, and their mean."""


def half_interval(means: npt.NDArray[np.float64]) -> float:
    """Return half of the 95% interval of the mean of means; nan with fewer than two means."""
    from scipy.stats import t  # noqa: PLC0415  (slow to import)

    if len(means) < 2:
        return math.nan
    return float(t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / math.sqrt(len(means)))


def average_parts(values: Values, parts: int) -> npt.NDArray[np.float64]:
    """Return the means of successive parts of a series, with parts of nearly equal length."""
    return np.array([part.mean() for part in np.array_split(values, parts)])


def average_batches(values: Values, least: int) -> npt.NDArray[np.float64]:
    """Return the means of batches of correlated values; no batch has fewer than `least` values."""
    batches = min(BATCHES, len(values) // 2) if len(values) >= least else 0
    return average_parts(values, batches) if batches else np.zeros(0)


def find_warm_up(values: npt.NDArray[np.float64]) -> int:
    """Return the number of leading values to leave out by MSER: the cut with the smallest standard error of the rest.

    At most half of the values are left out. If the minimum lies at that limit, the series is not stationary and the
    whole half is left out.

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


@dataclass(frozen=True, slots=True)
class Drift:
    """Change of a mean from the beginning of the measured time to its end, by a straight line.

    Attributes:
        change: relative change of the mean.
        half: half of the 95% confidence interval of the change; nan with too few messages.
    """

    change: float
    half: float

    def exceeds(self, part: float) -> bool:
        """Return True if the whole interval of the change is beyond a part of the mean, up or down."""
        return abs(self.change) - self.half > part


def find_drift(slices: Sequence[Slice]) -> Drift:
    """Fit a line to the means of ten equal parts of time, by least squares.

    Args:
        slices: slices in order of time, without empty ones.
    """
    from scipy.stats import linregress, t  # noqa: PLC0415  (slow to import)

    if not slices:
        return Drift(math.nan, math.nan)
    begin, end = slices[0][0], slices[-1][1]
    middle, messages, mean = np.array([((first + last) / 2, count, each) for first, last, count, each in slices]).T
    part = np.minimum((middle - begin) / (end - begin) * _TREND_PARTS, _TREND_PARTS - 1).astype(int)
    count = np.bincount(part, messages, _TREND_PARTS)
    there = np.flatnonzero(count)
    if len(there) < _TREND_PARTS // 2:
        return Drift(math.nan, math.nan)
    of_part = np.bincount(part, messages * mean, _TREND_PARTS)[there] / count[there]
    line = linregress((there + 0.5) / _TREND_PARTS, of_part)
    whole = float(np.average(mean, weights=messages))
    half = float(t.ppf(0.975, len(there) - 2)) * line.stderr
    return Drift(float(line.slope) / whole, float(half) / whole)


class SteadyState:
    """Detection of the steady state of a growing series: the remaining messages need not be simulated.

    The mean of the messages so far represents the mean of all messages if the two differ little and the mean does not
    drift. The 95% interval of the difference is the interval of batch means, times the root of the share of messages
    that remain, since the measured messages are a sample of a known number. Correlated batches widen the interval, by
    the factor of a first-order autoregressive process. Each test may end the run too early by chance. Tests are
    therefore few, at numbers of messages that grow geometrically.

    Args:
        part: required half of the 95% interval, relative to the mean; 0 for no detection.
        clients: number of clients.
        messages: total number of messages of a client.

    Source: A. M. Law and J. S. Carson, "A sequential procedure for determining the length of a steady-state
    simulation", Operations Research 27(5), 1979; W. G. Cochran, "Sampling Techniques", Wiley, 1977, section 2.6; G. S.
    Fishman, "Principles of Discrete Event Simulation", Wiley, 1978, section 5.8.
    """

    def __init__(self, part: float, clients: int, messages: int) -> None:
        self._part = part
        self._due = LEAST * max(clients, 1)
        self._total = messages * max(clients, 1)

    def is_reached(self, values: Values) -> bool:
        """Return True if latencies, in order of completion, are in a steady state; tests only a few lengths."""
        if not self._part or len(values) < self._due:
            return False
        self._due = math.ceil(_GROWTH * len(values))
        mean, left = float(values.mean()), 1 - len(values) / self._total
        if left <= 0:
            return False
        half = find_half(values) * math.sqrt(left)
        # If fewer messages remain than were measured, a linear drift changes the mean of all by less.
        change = abs(find_change(values)) * min(left / (1 - left), 1.0)
        return half <= self._part * mean and change <= 2 * self._part * mean


def find_half(values: Values) -> float:
    """Return half of the 95% interval of a series' mean, by means of batches that may be correlated."""
    means = average_parts(values, BATCHES)
    off = means - means.mean()
    variance = float((off**2).mean())
    lag = float((off[1:] * off[:-1]).mean()) / variance if variance else 0.0
    lag = min(max(lag, 0.0), _MOST_CORRELATED)
    return half_interval(means) * math.sqrt((1 + lag) / (1 - lag))


def find_change(values: Values) -> float:
    """Return the relative change of a series from beginning to end, by a line through the means of ten parts."""
    return float(np.polyfit(np.arange(_TREND_PARTS), average_parts(values, _TREND_PARTS), 1)[0]) * _TREND_PARTS


class Figure(NamedTuple):
    """A mean, and half of its 95% confidence interval in the same unit."""

    mean: float
    half: float

    @property
    def relative_half(self) -> float:
        """Half of the interval relative to the mean; 0 for a mean of 0."""
        return self.half / self.mean if self.mean else 0.0


BySeed = Mapping[int, Figure]
"""Value of one run by seed, with the run's interval."""


def average(figures: BySeed) -> Figure | None:
    """Return the mean over seeds with its interval by Student's t; for one seed its interval, without seeds None."""
    values = list(figures.values())
    if len(values) < 2:
        return values[0] if values else None
    means = np.array([each.mean for each in values])
    return Figure(float(means.mean()), half_interval(means))


def compare(figures: BySeed, others: BySeed) -> BySeed:
    """Return each seed's ratio to its other run, for seeds with both runs."""
    ratios = {}
    for seed, figure in figures.items():
        other = others.get(seed)
        if other and other.mean:
            ratio = figure.mean / other.mean
            ratios[seed] = Figure(ratio, ratio * math.hypot(figure.relative_half, other.relative_half))
    return ratios
