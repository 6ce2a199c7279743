# SPDX-License-Identifier: Apache-2.0
"""Pairs whose delay changed between two measurements of one cluster."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_lab.latency.features.outlying_processes import (
    LEAST_CHANGE,
    MAD_TO_SIGMA,
    THRESHOLD,
    Matrix,
    OutlyingProcess,
    find_outlying_processes,
)
from ibprof_lab.latency.model.delays import Delays


@dataclass(frozen=True, slots=True, eq=False)
class DelayChange:
    """Changes between two measurements.

    Attributes:
        labels: processes that both have.
        lengths: that both have, bytes.
        overall: median of all pairs' ratios.
        pairs: ordered pairs whose ratio differs from the overall one, as indices of `labels`, int64 [k, 2]; the largest
            change first.
        ratios: of those, later to earlier, median over the lengths, float64 [k].
        appeared, vanished: ordered pairs with a value in only one, int64 [k, 2].
        only_before, only_after: processes that only one has.
        outlying: processes most of whose pairs changed, as in one measurement.
    """

    labels: tuple[str, ...]
    lengths: npt.NDArray[np.int64]
    overall: float
    pairs: npt.NDArray[np.int64]
    ratios: Matrix
    appeared: npt.NDArray[np.int64]
    vanished: npt.NDArray[np.int64]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    outlying: tuple[OutlyingProcess, ...]

    @property
    def count(self) -> int:
        """Number of pairs that changed, vanished or appeared."""
        return len(self.pairs) + len(self.vanished) + len(self.appeared)


def compare_delays(before: Delays, after: Delays, least: float = LEAST_CHANGE) -> DelayChange:
    """Find the pairs that changed between two measurements of one cluster.

    The ratio of a changed pair differs from the overall one by more than `least`, by more than `THRESHOLD` robust
    standard deviations of all ratios, and by more than the samples scatter. Samples scatter less where the quartiles of
    both measurements do not overlap, as far as both have them.

    Args:
        before, after: their processes are matched by label, their lengths by bytes.
        least: relative difference below which nothing changed.

    Raises:
        InconsistentError: they have no process, or no length, in common.
    """
    labels = tuple(label for label in before.labels if label in set(after.labels))
    lengths = np.intersect1d(before.lengths, after.lengths)
    if not labels or not len(lengths):
        what = "process" if not labels else "message length"
        raise InconsistentError(f"expected two measurements of the same cluster, found no {what} in common")
    one, other = (_align(each, labels, lengths) for each in (before, after))
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of nothing but NaN
        ratio = np.log(other.median.astype(np.float64) / one.median)
        ratio[~(one.measured & other.measured & np.isfinite(ratio))] = np.nan
        apart = _is_apart(one, other)
        level = np.nanmedian(ratio, axis=0)
        overall = float(np.nan_to_num(np.nanmedian(level)))
        away = np.abs(level - overall)
        scale = MAD_TO_SIGMA * float(np.nan_to_num(np.nanmedian(away)))
        share = np.nanmean(np.where(np.isfinite(ratio), apart, np.nan), axis=0)
    changed = (away > math.log1p(least)) & (away > THRESHOLD * scale) & (share >= 0.5)
    pairs = np.argwhere(changed)
    pairs = pairs[np.argsort(-away[tuple(pairs.T)], kind="stable")]
    there, now = one.measured.any(axis=0), other.measured.any(axis=0)
    ratios = Delays(labels, lengths[:1], np.nan_to_num(np.exp(level - overall), nan=np.nan)[None].astype(np.float32))
    return DelayChange(
        labels,
        lengths,
        math.exp(overall),
        pairs,
        np.exp(level[tuple(pairs.T)]),
        np.argwhere(now & ~there),
        np.argwhere(there & ~now),
        tuple(label for label in before.labels if label not in set(after.labels)),
        tuple(label for label in after.labels if label not in set(before.labels)),
        tuple(find_outlying_processes(ratios)),
    )


def _align(delays: Delays, labels: tuple[str, ...], lengths: npt.NDArray[np.int64]) -> Delays:
    places = {label: place for place, label in enumerate(delays.labels)}
    return delays.select([places[label] for label in labels], np.searchsorted(delays.lengths, lengths))


def _is_apart(one: Delays, other: Delays) -> npt.NDArray[np.bool_]:
    """Return where the quartiles of two measurements do not overlap, bool [L, n, n]; everywhere, when one has none."""
    quartiles = one.lower_quartile, one.upper_quartile, other.lower_quartile, other.upper_quartile
    if any(each is None for each in quartiles):
        return np.ones(one.median.shape, bool)
    low, high, later_low, later_high = (np.asarray(each) for each in quartiles)
    apart: npt.NDArray[np.bool_] = (low > later_high) | (later_low > high)
    return apart
