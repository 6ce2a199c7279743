# SPDX-License-Identifier: Apache-2.0
"""Peaks and steps of delays over the message length.

The profile of a pair is the list of its delays, one per length. A profile with a peak at length k resembles the unit
vector e_k. The differences between adjacent delays of a profile with a step after length k resemble e_k. Pearson's
correlation coefficient measures the resemblance.

Source: Salnikov, Begaev, Maysuradze, "Visualization and clustering of computational cluster delays in 3 dimensional
analytical space", formulas (1) to (4). The formulas in the paper lack a factor 1/n and the square root of one variance;
this module adds both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.model.delays import Delays

PAPERS_THRESHOLD = 0.25
"""Correlation threshold of the paper, estimated from the paper's picture of the cluster K-60."""

FEWEST_LENGTHS = 4
"""Smallest number of message lengths for a search for peaks and steps."""

_LEAST = 0.1
"""Smallest correlation threshold; a correlation below 0.1 explains less than 1% of the variance."""

_MOST = 0.98
_QUIET_SHARE = 0.8
"""Assumed fraction of noise among the correlations. The width of the measured noise is this quantile of |correlation| /
the same quantile for Gaussian noise. The median would often be 0: the median filter makes many differences 0."""

_ROUNDING = 1e-6
"""A relative deviation from the fitted line below this is a rounding error of single precision."""

_NOISE_PROFILES, _FAINT, _HARDLY_EVER = 10_000, 0.01, 0.999

_BLOCK = 1 << 22
"""Largest number of values that are processed in one block."""

Profiles = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class DelayFeatures:
    """Peaks and steps of P pairs over L lengths.

    Attributes:
        pairs: sender and receiver of the pairs with a value at every length, int64 [P, 2].
        profiles: delays of the pairs, seconds, float32 [P, L].
        peak_correlations: coefficients of peaks, float32 [P, L].
        step_correlations: coefficients of steps, float32 [P, L - 1]; entry k is the step from length k to length k + 1.
        peak_threshold, step_threshold: absolute correlation above which a value is a peak, or a step.
        scattered: bool [P, L], True if samples scatter too widely for a peak; None if samples are unknown.
    """

    pairs: npt.NDArray[np.int64]
    profiles: Profiles
    peak_correlations: Profiles
    step_correlations: Profiles
    peak_threshold: float
    step_threshold: float
    scattered: npt.NDArray[np.bool_] | None = None

    @property
    def peaks(self) -> npt.NDArray[np.int8]:
        """Peaks, int8 [P, L]: 1 for a high value, -1 for a low value, 0 for no peak."""
        signs = _signs(self.peak_correlations, self.peak_threshold)
        return signs if self.scattered is None else np.where(self.scattered, 0, signs).astype(np.int8)

    @property
    def steps(self) -> npt.NDArray[np.int8]:
        """Steps, int8 [P, L - 1]: 1 if the delay rises and stays high, -1 if it falls and stays low, 0 for no step."""
        return _signs(self.step_correlations, self.step_threshold)


def find_features(
    delays: Delays, peak_threshold: float | None = None, step_threshold: float | None = None
) -> DelayFeatures:
    """Find peaks and steps of the pairs that were measured at every length.

    A straight line of delay over length is fitted and subtracted first, because the transfer time grows with the
    length. A median filter of width 3 removes peaks before the search for steps. The quartile range of a peak, if
    known, must not overlap the ranges at the neighbouring lengths. This condition keeps measurement errors from being
    reported as peaks.

    Args:
        delays: delays of at least `FEWEST_LENGTHS` lengths.
        peak_threshold, step_threshold: 0 to 1; None to choose the threshold from the data.

    Raises:
        ValueError: there are fewer than `FEWEST_LENGTHS` lengths.
    """
    if len(delays.lengths) < FEWEST_LENGTHS:
        raise ValueError(f"peaks and steps need {FEWEST_LENGTHS} message lengths")
    pairs = np.argwhere(delays.measured.all(axis=0))

    def rows_of(cube: npt.NDArray[np.float32]) -> Profiles:
        return np.ascontiguousarray(cube[:, pairs[:, 0], pairs[:, 1]].T)

    profiles = rows_of(delays.median)
    peaks = np.empty_like(profiles)
    steps = np.empty((len(profiles), len(delays.lengths) - 1), np.float32)
    quartiles = [rows_of(each) for each in (delays.lower_quartile, delays.upper_quartile) if each is not None]
    scattered = np.empty(profiles.shape, bool) if len(quartiles) == 2 else None
    rows = max(_BLOCK // len(delays.lengths), 1)
    for start in range(0, len(profiles), rows):
        some = slice(start, start + rows)
        block = profiles[some].astype(np.float64)
        peaks[some], steps[some] = _correlate(block, delays.lengths)
        if scattered is not None:
            lower, upper = (each[some] for each in quartiles)
            scattered[some] = _find_scattered(block, lower, upper, delays.lengths)
    noise = 1 + _FAINT * np.random.default_rng(0).standard_normal((_NOISE_PROFILES, len(delays.lengths)))
    of_noise = _correlate(noise, delays.lengths)
    return DelayFeatures(
        pairs,
        profiles,
        peaks,
        steps,
        choose_threshold(peaks, of_noise[0]) if peak_threshold is None else peak_threshold,
        choose_threshold(steps, of_noise[1]) if step_threshold is None else step_threshold,
        scattered,
    )


def _find_scattered(
    profiles: npt.NDArray[np.float64], lower: Profiles, upper: Profiles, lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return True for each value whose samples scatter too widely for a peak, bool [P, L].

    After `detrend`, the quartile range of a peak is above the ranges at both neighbouring lengths, or below both.
    """
    level = detrend(profiles, lengths)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = ((1 + level) * each / profiles - 1 for each in (lower, upper))
    above, below = np.ones(profiles.shape, bool), np.ones(profiles.shape, bool)
    above[:, 1:] &= low[:, 1:] > high[:, :-1]
    above[:, :-1] &= low[:, :-1] > high[:, 1:]
    below[:, 1:] &= high[:, 1:] < low[:, :-1]
    below[:, :-1] &= high[:, :-1] < low[:, 1:]
    return ~(above | below) & np.isfinite(low) & np.isfinite(high)


def _correlate(
    profiles: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    smooth = detrend(filter_median(profiles), lengths)
    return correlate_with_units(detrend(profiles, lengths)), correlate_with_units(np.diff(smooth, axis=1))


def correlate_with_units(profiles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Pearson's correlation coefficient of each profile with each of the n unit vectors, float64 [P, n].

    corr_k = (x_k - mean) / (sqrt(n - 1) sigma), sigma^2 the mean of (x - mean)^2; 0 where a profile is constant.
    """
    centred = profiles - profiles.mean(axis=1, keepdims=True)
    sigma = np.sqrt(np.mean(centred**2, axis=1, keepdims=True))
    # The profile is constant if its values differ by rounding only.
    alike = sigma <= 1e-12 * np.abs(profiles).max(axis=1, keepdims=True, initial=0)
    scale = math.sqrt(max(profiles.shape[1] - 1, 1)) * np.where(alike, 1, sigma)
    return np.where(alike, 0, centred / scale)


def detrend(profiles: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return each profile's relative deviation from its fitted line of delay over length, float64 [P, L].

    The line minimises the sum of squared relative deviations, because measurement errors grow with the delay. Absolute
    deviations of the longest messages would hide all other peaks and steps.
    """
    weight = 1 / np.square(np.maximum(profiles, 1e-12))
    total = weight.sum(axis=1, keepdims=True)
    x = lengths - (weight @ lengths)[:, None] / total
    mean = (weight * profiles).sum(axis=1, keepdims=True) / total
    slope = (weight * x * profiles).sum(axis=1, keepdims=True) / (weight * x * x).sum(axis=1, keepdims=True)
    line = mean + slope * x
    with np.errstate(divide="ignore", invalid="ignore"):
        level: npt.NDArray[np.float64] = np.where(profiles > 0, profiles / np.maximum(line, 0.1 * profiles) - 1, 0.0)
    level[np.abs(level) < _ROUNDING] = 0.0
    return level


def filter_median(profiles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Replace each value by the median of the value and its two neighbours.

    For the first and the last value, the missing neighbour is extrapolated from the next two values (Tukey's end rule).
    """
    smooth = profiles.copy()
    smooth[:, 1:-1] = _middle(profiles[:, :-2], profiles[:, 1:-1], profiles[:, 2:])
    for end, one, two in ((0, 1, 2), (-1, -2, -3)):
        smooth[:, end] = _middle(profiles[:, end], smooth[:, one], 3 * smooth[:, one] - 2 * smooth[:, two])
    return smooth


def _middle(
    one: npt.NDArray[np.float64], two: npt.NDArray[np.float64], three: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    middle: npt.NDArray[np.float64] = np.maximum(np.minimum(one, two), np.minimum(np.maximum(one, two), three))
    return middle


def choose_threshold(correlations: Profiles, of_noise: npt.NDArray[np.floating]) -> float:
    """Return a correlation threshold that noise exceeds in one of 1000 profiles.

    The threshold is the 0.999 quantile of the largest |correlation| in each profile of `of_noise`, times the width of
    the measured noise (see `_QUIET_SHARE`), but at least `_LEAST` and at most `_MOST`. `of_noise`, [profile, n], has
    the correlations of Gaussian noise after the same median filter. Without correlations, the threshold is
    `PAPERS_THRESHOLD`.
    """
    if not correlations.size:
        return PAPERS_THRESHOLD
    sample = correlations.ravel()[:: max(correlations.size // _BLOCK, 1)]
    breadth = float(np.quantile(np.abs(sample), _QUIET_SHARE)) / float(np.quantile(np.abs(of_noise), _QUIET_SHARE))
    beyond = float(np.quantile(np.abs(of_noise).max(axis=1), _HARDLY_EVER))
    return float(np.clip(breadth * beyond, _LEAST, _MOST))


def _signs(correlations: Profiles, threshold: float) -> npt.NDArray[np.int8]:
    return np.where(np.abs(correlations) > threshold, np.sign(correlations), 0).astype(np.int8)
