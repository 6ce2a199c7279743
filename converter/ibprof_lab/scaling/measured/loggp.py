# SPDX-License-Identifier: Apache-2.0
"""LogGP parameters fitted to measured delays: a message of s bytes takes L + 2o + s G.

Source: A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman, "LogGP: Incorporating Long Messages into the LogP
Model", Journal of Parallel and Distributed Computing 44(1), 1997. Round trips cannot separate the latency L from the
overheads 2o.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.scaling.exchange_fit import ConfidenceInterval, fit_relative_line

Floats = npt.NDArray[np.float64]

_RESAMPLES = 200
_TAILS = (2.5, 97.5)
_LEAST_LENGTHS = 2
_LEAST_RANGE = 16
"""Smallest ratio of longest to shortest message length; with a smaller ratio, noise hides the slope."""

_SPLIT_GAIN = 2.0
"""Two protocols are assumed if one fitted line has an error above 2%, and above this multiple of the error of two
fitted lines."""


@dataclass(frozen=True, slots=True)
class DelaySegment:
    """Range of message lengths for which the MPI library uses the same protocol.

    Attributes:
        first, last: shortest and longest measured length, in bytes.
        start: L + 2o, in seconds.
        per_byte: G, s/byte.
    """

    first: int
    last: int
    start: ConfidenceInterval
    per_byte: ConfidenceInterval


@dataclass(frozen=True, slots=True)
class LogGP:
    """Parameters of a network.

    Attributes:
        segments: one segment, or a segment for each of two protocols, sorted by length.
        pairs: number of measured pairs of processes.
        misfit: largest relative deviation, over all lengths, of the mean delay from the fitted line.
    """

    segments: tuple[DelaySegment, ...]
    pairs: int
    misfit: float

    def times(self, length: float) -> tuple[float, float]:
        """Return L + 2o and length x G, both in seconds."""
        segment = next((each for each in self.segments if length <= each.last), self.segments[-1])
        return segment.start.value, segment.per_byte.value * length

    @property
    def longest(self) -> int:
        """Longest measured length, bytes."""
        return self.segments[-1].last


def read_loggp(path: Path, unit: float | None = None, seed: int = 1) -> LogGP:
    """Fit the LogGP parameters to a file of delays: between hosts, or between processes if there is a single host.

    Args:
        path: output of `ibprof-latency measure`, in a mode with one message at a time.
        unit: seconds per unit if the file states no unit.

    Raises:
        InputError: the file holds no delays.
        InconsistentError: the measurement sent many messages at once; its lengths are too few or too close together; or
            no pair has delays for all lengths.
    """
    delays = read_delays(path, statistics=(), unit=unit)
    if str(delays.attributes.get("mode", "")) in ("bandwidth", "all_to_all"):
        raise InconsistentError(
            f"{path}: expected delays of one message at a time, found delays of mode {delays.attributes['mode']}; "
            "measure with --mode one_to_one"
        )
    found = delays.lengths
    if len(found) < _LEAST_LENGTHS or found[-1] < _LEAST_RANGE * max(int(found[0]), 64):
        text = ", ".join(f"{each:,}" for each in found.tolist()[:8]) or "none"
        raise InconsistentError(
            f"{path}: expected delays of short and long messages, found lengths of {text} bytes; "
            "measure with --lengths 0,1K:1M:x4"
        )
    try:
        return fit_loggp(delays, seed)
    except ValueError as error:
        raise InconsistentError(f"{path}: {error}") from error


def fit_loggp(delays: Delays, seed: int = 1) -> LogGP:
    """Fit the LogGP parameters to delays; the 95% intervals are from a bootstrap over the processes.

    Raises:
        ValueError: no pair has delays for all message lengths.
    """
    hosts = np.array(delays.hosts)
    apart = hosts[:, None] != hosts
    if not (apart & delays.measured.all(axis=0)).any():
        apart = ~np.eye(len(hosts), dtype=bool)
    usable = apart & delays.measured.all(axis=0)
    if not usable.any():
        raise ValueError("expected a pair of processes that was measured with all lengths, found none")
    lengths, cube = delays.lengths.astype(float), np.where(usable, delays.median.astype(float), 0.0)

    def mean_with(count: npt.NDArray[np.int64]) -> Floats | None:
        weight = usable * np.outer(count, count)
        total = weight.sum()
        return np.tensordot(cube, weight) / total if total else None

    means = mean_with(np.ones(len(hosts), np.int64))
    assert means is not None
    cuts = _find_cuts(lengths, means)
    best = _fit_segments(lengths, means, cuts)
    generator = np.random.default_rng(seed)
    drawn = [mean_with(np.bincount(row, minlength=len(hosts))) for row in
             generator.integers(0, len(hosts), (_RESAMPLES, len(hosts)))]  # fmt: skip
    again = np.array([_fit_segments(lengths, each, cuts) for each in drawn if each is not None] or [best])
    low, high = np.percentile(again, _TAILS, axis=0)
    segments = tuple(
        DelaySegment(
            int(lengths[begin]),
            int(lengths[end - 1]),
            *(ConfidenceInterval(*map(float, (best[k][i], low[k][i], high[k][i]))) for i in range(2)),
        )
        for k, (begin, end) in enumerate(cuts)
    )
    return LogGP(segments, int(usable.sum()), _misfit(lengths, means, cuts, best))


def _find_cuts(lengths: Floats, means: Floats) -> list[tuple[int, int]]:
    """Return the index range (first, end) of each segment; there are two segments if two lines fit much better."""
    whole = [(0, len(lengths))]
    candidates = [[(0, cut), (cut, len(lengths))] for cut in range(3, len(lengths) - 2)]
    if not candidates:
        return whole

    def error(cuts: list[tuple[int, int]]) -> float:
        return _misfit(lengths, means, cuts, _fit_segments(lengths, means, cuts))

    best = min(candidates, key=error)
    return best if error(whole) > max(_SPLIT_GAIN * error(best), 0.02) else whole


def _fit_segments(lengths: Floats, means: Floats, cuts: list[tuple[int, int]]) -> Floats:
    """Return start and slope of each segment: float64 [segment, 2]."""
    return np.array(
        [
            fit_relative_line(lengths[begin:end], means[begin:end], max(float(lengths[end - 1]), 1.0))
            for begin, end in cuts
        ]
    )


def _misfit(lengths: Floats, means: Floats, cuts: list[tuple[int, int]], lines: Floats) -> float:
    fitted = np.concatenate(
        [start + slope * lengths[begin:end] for (begin, end), (start, slope) in zip(cuts, lines, strict=True)]
    )
    return float(np.abs(fitted / means - 1).max())
