# SPDX-License-Identifier: Apache-2.0
"""Pairs whose delays are outliers, found without a topology.

A pair is compared with its own samples, its other direction, and the delays of similar processes: processes on the same
switch have similar delays to the rest of the cluster.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.model.delays import Delays

THRESHOLD = 3.5
"""Robust standard deviations beyond which a pair is an outlier (Iglewicz and Hoaglin's for the modified z-score)."""

_NEIGHBOURS = 5
_PIVOTS = 64
_LARGEST = 2048
"""Number of processes above which neighbours are not compared: n^2 medians of ten values take minutes there."""

_MAD_TO_SIGMA = 1.4826
_FLOOR = 0.01
"""Relative difference below which a pair is never an outlier."""

FloatMatrix = npt.NDArray[np.float64]


def find_outlier_pairs(delays: Delays, index: int, budget: int) -> npt.NDArray[np.int64]:
    """Find the pairs of one message length to measure again, the worst first.

    Args:
        delays: as measured.
        index: of the message length.
        budget: largest number of pairs.

    Returns:
        Ordered pairs, int64 [k, 2], k <= budget; those with no value come first.
    """
    doubt = rate_outliers(delays, index)
    pairs = np.argwhere(doubt > THRESHOLD)
    worst = np.argsort(-doubt[tuple(pairs.T)], kind="stable")
    return pairs[worst][: max(budget, 0)]


def rate_outliers(delays: Delays, index: int) -> FloatMatrix:
    """Return the largest of the three robust z-scores of each ordered pair, float64 [n, n].

    Infinite where there is no value, 0 on the diagonal.
    """
    median = delays.median[index].astype(np.float64)
    size = len(median)
    there = np.isfinite(median) & (median > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.where(there, np.log(median), np.nan)
    np.fill_diagonal(logarithm, np.nan)
    doubt = np.zeros((size, size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of nothing but NaN
        if delays.lower_quartile is not None and delays.upper_quartile is not None:
            spread = delays.upper_quartile[index].astype(np.float64) - delays.lower_quartile[index]
            doubt = np.fmax(doubt, _score(np.where(there, spread / median, np.nan), centred=True))
        doubt = np.fmax(doubt, _score(np.abs(logarithm - logarithm.T), centred=False))
        if 4 <= size <= _LARGEST:
            doubt = np.fmax(doubt, _score(np.abs(logarithm - _predict(logarithm)), centred=False))
    doubt[~np.isfinite(delays.median[index])] = np.inf
    np.fill_diagonal(doubt, 0)
    return doubt


def _score(values: FloatMatrix, centred: bool) -> FloatMatrix:
    """Return one-sided robust z-scores; without `centred` the values are distances from 0 already."""
    middle = float(np.nanmedian(values)) if centred else 0.0
    if not np.isfinite(middle):
        return np.zeros_like(values)
    scale = _MAD_TO_SIGMA * float(np.nanmedian(np.abs(values - middle)))
    return np.nan_to_num((values - middle) / max(scale, _FLOOR), nan=0.0)


def _predict(logarithm: FloatMatrix) -> FloatMatrix:
    """Predict each pair by the delays of the processes most similar to its sender, and most similar to its receiver."""
    from scipy.spatial import KDTree  # noqa: PLC0415  (slow to import, and needed on one process)

    size = len(logarithm)
    both = np.nanmedian(np.stack((logarithm, logarithm.T)), axis=0)
    columns = np.linspace(0, size - 1, min(size, _PIVOTS)).astype(int)
    seen = both[:, columns]
    # The delay of a process to itself is set to its least delay.
    nearest = np.nanmin(both, axis=1)
    seen[columns, np.arange(len(columns))] = nearest[columns]
    seen = np.where(np.isfinite(seen), seen, np.nanmedian(seen))
    seen = np.nan_to_num(seen)
    count = min(_NEIGHBOURS, size - 2)
    # Sums of absolute differences: a single outlier must not separate two similar processes.
    found = KDTree(seen).query(seen, k=count + 1, p=1)[1]
    neighbours = np.asarray(found, np.int64)
    predicted = np.empty_like(both)
    for process in range(size):
        like_sender = both[neighbours[process][neighbours[process] != process][:count]].T
        like_receiver = both[process][neighbours]
        like_receiver[neighbours == np.arange(size)[:, None]] = np.nan
        predicted[process] = np.nanmedian(np.hstack((like_sender, like_receiver)), axis=1)
    return predicted
