# SPDX-License-Identifier: Apache-2.0
"""Processes whose delays to, or from, most others are outliers."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.model.delays import Delays

THRESHOLD = 3.5
"""Robust standard deviations beyond which a value is an outlier (Iglewicz and Hoaglin's for the modified z-score)."""

LEAST_CHANGE = 0.1
"""Relative difference below which nothing is an outlier, however similar the rest is."""

MAD_TO_SIGMA = 1.4826
_ROUNDS = 3

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class OutlyingProcess:
    """A process whose row or column is an outlier.

    Attributes:
        label: of the process.
        role: `sender` (its row), `receiver` (its column), or `both`.
        ratio: its delays to the others', as a factor; infinite when it has no value.
        score: robust standard deviations.
    """

    label: str
    role: str
    ratio: float
    score: float


def find_outlying_processes(delays: Delays) -> list[OutlyingProcess]:
    """Find processes whose delays to, or from, most others are outliers, the most different first.

    The logarithm of the matrix, taken over all lengths, is a sum of an effect of the sender, an effect of the receiver
    and a residual (Tukey's median polish). A sender or receiver with an outlying effect is returned.
    """
    if delays.processes < 3:
        return []
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of nothing but NaN
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
    return sorted(outlying, key=lambda each: (-abs(_log(each.ratio)), each.label))


def _log(ratio: float) -> float:
    return math.log(ratio) if 0 < ratio < math.inf else math.inf


def _level(delays: Delays) -> Matrix:
    """Return the logarithm of each pair's delay over the median of its length, float64 [n, n]; median of lengths."""
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
    """Return robust z-scores of effects, 0 for small ones, infinite where a process has no value."""
    away = np.abs(effects - np.nanmedian(effects))
    scale = MAD_TO_SIGMA * np.nanmedian(away)
    score = away / max(scale, 1e-3)
    return np.where(np.isnan(effects), np.inf, np.where(away > math.log1p(LEAST_CHANGE), score, 0))
