# SPDX-License-Identifier: Apache-2.0
"""From batches to what is kept of a pair: how long batches are, and their statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.latency.model.delays import STATISTICS

_MOST_TURNS = 1 << 20
_GROWTH = 10


@dataclass(frozen=True, slots=True)
class Sampling:
    """How often, and how long at least.

    Attributes:
        repetitions: batches of which the statistics are made.
        batch_s: least time of a batch, seconds; a clock's resolution and what stands around a batch drown in it.
    """

    repetitions: int = 11
    batch_s: float = 1e-3


def sample_batches(sampling: Sampling, run: Callable[[int], float]) -> tuple[npt.NDArray[np.float64], int]:
    """Find the number of turns that fill a batch, then time the batches.

    What is timed to find it is thrown away: the first messages of a pair set up connections and caches.

    Args:
        sampling: how often, how long.
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
    """Give the number of turns to try next: what would fill the batch, but no leap, for the first turns are slow."""
    needed = 1.05 * turns * batch_s / max(elapsed, 1e-9)
    return min(int(min(needed, _GROWTH * turns)) + 1, _MOST_TURNS)


def summarise(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Give the statistics in the order of `STATISTICS`: float64 [6] of samples [r], or [6, k] of [r, k].

    Quartiles are interpolated as numpy does; the deviation is the sample's, NaN for a single sample.
    """
    low, middle, high = np.percentile(samples, (25, 50, 75), axis=0)
    spread = samples.std(axis=0, ddof=1) if len(samples) > 1 else np.full(samples.shape[1:], np.nan)
    summary = np.array([middle, samples.min(axis=0), low, high, samples.mean(axis=0), spread])
    assert len(summary) == len(STATISTICS)
    return summary
