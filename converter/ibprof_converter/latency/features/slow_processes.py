# SPDX-License-Identifier: Apache-2.0
"""Processes that are slow to all others, and pairs that changed between two measurements."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_converter.latency.model.delays import Delays

THRESHOLD = 3.5
"""Robust standard deviations beyond which something stands out (Iglewicz and Hoaglin's for the modified z-score)."""

LEAST_CHANGE = 0.1
"""Relative difference below which nothing stands out, however alike the rest is."""

_MAD_TO_SIGMA = 1.4826
_ROUNDS = 3

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OutlyingProcess:
    """A process whose row or column stands out.

    Attributes:
        label: of the process.
        role: `sender` (its row), `receiver` (its column), or `both`.
        ratio: its delays to the others', as a factor; infinite when it has no value at all.
        score: robust standard deviations.
    """

    label: str
    role: str
    ratio: float
    score: float


def find_outlying_processes(delays: Delays) -> list[OutlyingProcess]:
    """Find processes whose delays to, or from, most others stand out, the most different first.

    The logarithm of the matrix, taken over all lengths, is a sum of what the sender adds, what the receiver adds and
    what is left (Tukey's median polish); a sender or receiver that adds much more or less than the rest is named.
    """
    if delays.processes < 3:
        return []
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of nothing but NaN
        matrix = _level(delays)
        rows, columns = _polish(matrix)
        senders, receivers = _stand_out(rows), _stand_out(columns)
    odd = []
    for place, label in enumerate(delays.labels):
        found = [(name, effect[place], score[place]) for name, effect, score in
                 (("sender", rows, senders), ("receiver", columns, receivers)) if score[place] > THRESHOLD]  # fmt: skip
        if found:
            role = "both" if len(found) == 2 else found[0][0]
            effect = max((effect for _, effect, _ in found), key=abs)
            score = max(score for _, _, score in found)
            odd.append(
                OutlyingProcess(label, role, math.exp(effect) if math.isfinite(effect) else math.inf, float(score))
            )
    return sorted(odd, key=lambda each: (-abs(_log(each.ratio)), each.label))


def _log(ratio: float) -> float:
    return math.log(ratio) if 0 < ratio < math.inf else math.inf


def _level(delays: Delays) -> Matrix:
    """Give the logarithm of each pair's delay to the usual one of its length, median over the lengths, [n, n]."""
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
    """Give robust z-scores of effects, 0 for small ones, infinite where a process has no value at all."""
    away = np.abs(effects - np.nanmedian(effects))
    scale = _MAD_TO_SIGMA * np.nanmedian(away)
    score = away / max(scale, 1e-3)
    return np.where(np.isnan(effects), np.inf, np.where(away > math.log1p(LEAST_CHANGE), score, 0))


@dataclass(frozen=True, slots=True, eq=False)
class DelayChange:
    """What differs between two measurements.

    Attributes:
        labels: processes that both have.
        lengths: that both have, bytes.
        overall: median of all pairs' ratios; what it is away from 1 all pairs have in common.
        pairs: ordered pairs that changed more than that, by their places in `labels`, int64 [k, 2]; the most first.
        ratios: of those, later to earlier, median over the lengths, float64 [k].
        appeared, vanished: ordered pairs with a value in one only, int64 [k, 2].
        only_before, only_after: processes that one has.
        odd: processes whose pairs changed, as in one measurement.
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
    odd: tuple[OutlyingProcess, ...]


def compare_delays(before: Delays, after: Delays, least: float = LEAST_CHANGE) -> DelayChange:
    """Find the pairs that changed between two measurements of one cluster.

    A pair changed when its ratio is off the overall one by more than `least`, by more than `THRESHOLD` robust standard
    deviations of all ratios, and by more than the samples of either scatter (quartiles apart, where both have them).

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
        scale = _MAD_TO_SIGMA * float(np.nan_to_num(np.nanmedian(away)))
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
    """Tell where the quartiles of two measurements do not overlap; everywhere, when one has none."""
    quartiles = one.lower_quartile, one.upper_quartile, other.lower_quartile, other.upper_quartile
    if any(each is None for each in quartiles):
        return np.ones(one.median.shape, bool)
    low, high, later_low, later_high = (np.asarray(each) for each in quartiles)
    apart: npt.NDArray[np.bool_] = (low > later_high) | (later_low > high)
    return apart
