# SPDX-License-Identifier: Apache-2.0
"""Means over seeds of the same simulation, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ibprof_lab.simulation.measure.message_latency import half_interval


class Figure(NamedTuple):
    """A mean, and half of its 95% confidence interval in the same unit."""

    mean: float
    half: float


BySeed = Mapping[int, Figure]
"""One run's figure by its seed, with the run's own interval."""


def average(figures: BySeed) -> Figure | None:
    """Return the mean over seeds, with their interval by Student's t; one seed's own interval, None of none."""
    values = list(figures.values())
    if len(values) < 2:
        return values[0] if values else None
    means = np.array([each.mean for each in values])
    return Figure(float(means.mean()), half_interval(means))


def compare(figures: BySeed, others: BySeed) -> BySeed:
    """Return each seed's ratio to its own other run, of the seeds that have both."""
    return {
        seed: Figure(
            figures[seed].mean / others[seed].mean,
            figures[seed].mean / others[seed].mean * math.hypot(_unsure(figures[seed]), _unsure(others[seed])),
        )
        for seed in figures
        if seed in others and others[seed].mean
    }


def _unsure(figure: Figure) -> float:
    return figure.half / figure.mean if figure.mean else 0.0
