# SPDX-License-Identifier: Apache-2.0
"""Batches of a pair: their length, and the statistics of their samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_lab.latency.model.delays import STATISTICS

_MOST_TURNS = 1 << 20
_GROWTH = 10


@dataclass(frozen=True, slots=True)
class Sampling:
    """Number and length of batches.

    Attributes:
        repetitions: batches of which the statistics are made.
        batch_s: shortest time of a batch, seconds, long compared with a clock's resolution and the overhead of a batch.
    """

    repetitions: int = 11
    batch_s: float = 1e-3


def sample_batches(sampling: Sampling, run: Callable[[int], float]) -> tuple[npt.NDArray[np.float64], int]:
    """Find the number of turns that fill a batch, then time the batches.

    The search is not counted: the first messages of a pair set up connections and caches.

    Args:
        sampling: number and length of batches.
        run: times a batch of some turns, seconds.

    Returns:
        Seconds of each batch, float64 [repetitions], and the turns of a batch.
    """
    turns = 1
    elapsed = run(turns)
    while elapsed < sampling.batch_s and turns < _MOST_TURNS:
        turns = next_turns(turns, elapsed, sampling.batch_s)
        elapsed = run(turns)
    return np.array([run(turns) for _ in range(sampling.repetitions)]), turns


def next_turns(turns: int, elapsed: float, batch_s: float) -> int:
    """Return the number of turns to try next: an estimate of a batch, limited since the first turns are slow."""
    needed = 1.05 * turns * batch_s / max(elapsed, 1e-9)
    return min(int(min(needed, _GROWTH * turns)) + 1, _MOST_TURNS)


def summarise(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the statistics in the order of `STATISTICS`: float64 [6] of samples [r], or [6, k] of [r, k].

    Quartiles are interpolated as numpy does; the deviation is the sample's, NaN for a single sample.
    """
    low, middle, high = np.percentile(samples, (25, 50, 75), axis=0)
    spread = samples.std(axis=0, ddof=1) if len(samples) > 1 else np.full(samples.shape[1:], np.nan)
    summary = np.array([middle, samples.min(axis=0), low, high, samples.mean(axis=0), spread])
    assert len(summary) == len(STATISTICS)
    return summary
