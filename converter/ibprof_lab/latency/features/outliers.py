# SPDX-License-Identifier: Apache-2.0
"""Outliers of delays: processes, pairs, and pairs that changed between two measurements."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_lab.lab_choices import LEAST_CHANGE
from ibprof_lab.latency.model.delays import Delays

THRESHOLD = 3.5
"""A value with a robust z-score above this is an outlier (Iglewicz and Hoaglin's limit of the modified z-score)."""

MAD_TO_SIGMA = 1.4826
_ROUNDS = 3

Matrix = npt.NDArray[np.float64]

_NEIGHBOURS = 5
_PIVOTS = 64
_LARGEST = 2048
"""Delays are predicted from similar processes for at most this many processes; for more, this takes minutes."""

_FLOOR = 0.01
"""Smallest assumed robust standard deviation of pairs' deviations, as a fraction of the delay. An outlying pair
therefore deviates by more than 3.5% (`THRESHOLD` times 1%)."""


@dataclass(frozen=True, slots=True)
class OutlyingProcess:
    """A process with outlying delays as sender (matrix row), as receiver (column), or as both.

    Attributes:
        role: `sender` (row), `receiver` (column), or `both`.
        ratio: the process's delays in its role / typical delays; for `both`, in the role that deviates more; infinite
            if no delay was measured.
        score: deviation of the process from the median process, in robust standard deviations.
    """

    label: str
    role: str
    ratio: float
    score: float


def find_outlying_processes(delays: Delays) -> list[OutlyingProcess]:
    """Find processes with outlying delays to or from most other processes, sorted by absolute deviation, descending.

    For each pair, the median over lengths of log(delay / median delay of the length) is modelled as sender effect +
    receiver effect + residual (Tukey's median polish). A process is outlying if its sender effect or its receiver
    effect is an outlier.
    """
    if delays.processes < 3:
        return []
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows or columns with only NaN cause warnings
        matrix = _level(delays)
        rows, columns = _polish(matrix)
        senders, receivers = _stand_out(rows), _stand_out(columns)
    outlying = []
    for place, label in enumerate(delays.labels):
        found = [(name, effect[place], score[place]) for name, effect, score in
                 (("sender", rows, senders), ("receiver", columns, receivers)) if score[place] > THRESHOLD]  # fmt: skip
        if found:
            role = "both" if len(found) == 2 else found[0][0]
            effect = max((effect for _, effect, _ in found), key=abs)
            score = max(score for _, _, score in found)
            outlying.append(
                OutlyingProcess(label, role, math.exp(effect) if math.isfinite(effect) else math.inf, float(score))
            )
    away = {each: abs(math.log(each.ratio)) if 0 < each.ratio < math.inf else math.inf for each in outlying}
    return sorted(outlying, key=lambda each: (-away[each], each.label))


def _level(delays: Delays) -> Matrix:
    """Return the median over lengths of log(delay / median delay of the length) per pair, float64 [n, n]."""
    levels = []
    for matrix, there in zip(delays.median, delays.measured, strict=True):
        logarithm = np.where(there & (matrix > 0), np.log(matrix.astype(np.float64)), np.nan)
        levels.append(logarithm - np.nanmedian(logarithm))
    return levels[0] if len(levels) == 1 else np.asarray(np.nanmedian(levels, axis=0))


def _polish(matrix: Matrix) -> tuple[Matrix, Matrix]:
    left = matrix.copy()
    rows, columns = np.zeros(len(matrix)), np.zeros(len(matrix))
    for _ in range(_ROUNDS):
        by_row = np.nanmedian(left, axis=1)
        left -= by_row[:, None]
        rows += by_row
        by_column = np.nanmedian(left, axis=0)
        left -= by_column
        columns += by_column
    return rows, columns


def _stand_out(effects: Matrix) -> Matrix:
    """Return robust z-scores: 0 for an effect within `LEAST_CHANGE` of the median, infinite for a missing effect."""
    away = np.abs(effects - np.nanmedian(effects))
    scale = MAD_TO_SIGMA * np.nanmedian(away)
    score = away / max(scale, 1e-3)
    return np.where(np.isnan(effects), np.inf, np.where(away > math.log1p(LEAST_CHANGE), score, 0))


def find_outlier_pairs(delays: Delays, index: int, budget: int) -> npt.NDArray[np.int64]:
    """Return the outlier pairs at one message length, at most `budget`, the most outlying first: int64 [k, 2].

    `rate_outliers` rates the pairs. Pairs without a delay come first.
    """
    doubt = rate_outliers(delays, index)
    pairs = np.argwhere(doubt > THRESHOLD)
    worst = np.argsort(-doubt[tuple(pairs.T)], kind="stable")
    return pairs[worst][: max(budget, 0)]


def rate_outliers(delays: Delays, index: int) -> Matrix:
    """Return the largest of three robust z-scores per ordered pair, float64 [n, n].

    The scores rate the distance between the samples' quartiles, the difference between the two directions, and the
    difference from a prediction by similar processes. The first score needs quartiles; the third score needs 4 to
    `_LARGEST` processes. A pair without a delay has the score infinity; the diagonal is 0.
    """
    median = delays.median[index].astype(np.float64)
    size = len(median)
    there = np.isfinite(median) & (median > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.where(there, np.log(median), np.nan)
    np.fill_diagonal(logarithm, np.nan)
    doubt = np.zeros((size, size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows or columns with only NaN cause warnings
        if delays.lower_quartile is not None and delays.upper_quartile is not None:
            spread = delays.upper_quartile[index].astype(np.float64) - delays.lower_quartile[index]
            doubt = np.fmax(doubt, _score(np.where(there, spread / median, np.nan), centred=True))
        doubt = np.fmax(doubt, _score(np.abs(logarithm - logarithm.T), centred=False))
        if 4 <= size <= _LARGEST:
            doubt = np.fmax(doubt, _score(np.abs(logarithm - _predict(logarithm)), centred=False))
    doubt[~np.isfinite(delays.median[index])] = np.inf
    np.fill_diagonal(doubt, 0)
    return doubt


def _score(values: Matrix, centred: bool) -> Matrix:
    """Return robust z-scores of values: their distances from the median if `centred`, else from 0."""
    middle = float(np.nanmedian(values)) if centred else 0.0
    if not np.isfinite(middle):
        return np.zeros_like(values)
    scale = MAD_TO_SIGMA * float(np.nanmedian(np.abs(values - middle)))
    return np.nan_to_num((values - middle) / max(scale, _FLOOR), nan=0.0)


def _predict(logarithm: Matrix) -> Matrix:
    """Predict log(delay) of each pair, [n, n], from processes similar to its sender or its receiver."""
    from scipy.spatial import KDTree  # noqa: PLC0415  (slow to import, and needed on one process)

    size = len(logarithm)
    both = np.nanmedian(np.stack((logarithm, logarithm.T)), axis=0)
    columns = np.linspace(0, size - 1, min(size, _PIVOTS)).astype(int)
    seen = both[:, columns]
    # The delay of a process to itself is set to the smallest delay of the process.
    nearest = np.nanmin(both, axis=1)
    seen[columns, np.arange(len(columns))] = nearest[columns]
    seen = np.where(np.isfinite(seen), seen, np.nanmedian(seen))
    seen = np.nan_to_num(seen)
    count = min(_NEIGHBOURS, size - 2)
    # The distance is the sum of absolute differences (p=1): squares would give one outlier too much weight.
    found = KDTree(seen).query(seen, k=count + 1, p=1)[1]
    neighbours = np.asarray(found, np.int64)
    predicted = np.empty_like(both)
    for process in range(size):
        like_sender = both[neighbours[process][neighbours[process] != process][:count]].T
        like_receiver = both[process][neighbours]
        like_receiver[neighbours == np.arange(size)[:, None]] = np.nan
        predicted[process] = np.nanmedian(np.hstack((like_sender, like_receiver)), axis=1)
    return predicted


@dataclass(frozen=True, slots=True, eq=False)
class DelayChange:
    """Changes between two measurements.

    Attributes:
        labels: processes in both measurements.
        lengths: message lengths in both, bytes.
        overall: median over all pairs of later / earlier delay.
        pairs: ordered pairs whose ratio differs from the overall ratio, as indices of `labels`, int64 [k, 2]; the
            largest change first.
        ratios: later / earlier delay of each of `pairs`, median over the lengths, float64 [k].
        appeared, vanished: ordered pairs with a delay only in the later, or only in the earlier measurement, int64 [k,
            2].
        only_before, only_after: processes in only one measurement.
        outlying: processes whose delays changed to or from most other processes.
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

    A pair has changed if the ratio of its later to its earlier delay deviates from the overall ratio by more than
    `least`, and by more than `THRESHOLD` robust standard deviations. If both measurements have quartiles, the quartile
    ranges of a changed pair must be disjoint for at least half of the lengths.

    Args:
        before, after: measurements; processes are matched by label, lengths by bytes.
        least: smallest relative deviation of a changed pair's ratio from the overall ratio.

    Raises:
        InconsistentError: the measurements have no process, or no length, in common.
    """
    labels = tuple(label for label in before.labels if label in set(after.labels))
    lengths = np.intersect1d(before.lengths, after.lengths)
    if not labels or not len(lengths):
        what = "process" if not labels else "message length"
        raise InconsistentError(f"expected two measurements of the same cluster, found no {what} in common")
    aligned = []
    for each in (before, after):
        row = {label: place for place, label in enumerate(each.labels)}
        aligned.append(each.select([row[label] for label in labels], np.searchsorted(each.lengths, lengths)))
    one, other = aligned
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows or columns with only NaN cause warnings
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


def _is_apart(one: Delays, other: Delays) -> npt.NDArray[np.bool_]:
    """Return True for delays whose quartile ranges in the two measurements do not overlap, bool [L, n, n].

    If a measurement has no quartiles, return True for all delays.
    """
    quartiles = one.lower_quartile, one.upper_quartile, other.lower_quartile, other.upper_quartile
    if any(each is None for each in quartiles):
        return np.ones(one.median.shape, bool)
    low, high, later_low, later_high = (np.asarray(each) for each in quartiles)
    apart: npt.NDArray[np.bool_] = (low > later_high) | (later_low > high)
    return apart
