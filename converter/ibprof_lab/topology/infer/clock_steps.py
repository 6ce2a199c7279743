# SPDX-License-Identifier: Apache-2.0
"""Steps of a coarse clock: all delays are multiples of one step.

A delay between two multiples is measured now as the one, now as the other. Such errors are neither small nor many
different values: most pairs deviate by none, so that a model takes the others for outliers or for switches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ibprof_lab.topology.infer.candidate import Candidate, Floats

_LENGTHS = (0.1, 1.25)
"""Steps that are looked for, in lengths of the least delay. Shorter ones are small errors."""

_ON_STEPS = 0.97
"""Length of the mean of the delays' phases within a step; 1 where all are multiples of it."""

_APART = 0.1
"""Share of the pairs that are measured another step than is explained, from which on the steps are errors."""

_SHORTEST = 0.25
"""Steps of the shortest delay that one is taken for."""

_FINENESS = 0.05
_LOOKED_AT = 2000
_ADDED = 8.0
"""Steps that are added to delays."""

_LINK = 2.0
"""Steps that a link must add to a delay."""


@dataclass(frozen=True, slots=True)
class ClockSteps:
    """Steps of a clock that are errors of the delays.

    Attributes:
        seconds: length of a step.
        share: of the pairs that are measured another step than is explained.
    """

    seconds: float
    share: float

    def spread_out(self, delays: Floats, seed: int) -> Floats:
        """Return delays at random places within their steps, float64 [n, n], as a fine clock could have shown them."""
        place = np.triu(np.random.default_rng(seed).random(delays.shape) - 0.5, 1)
        spread = np.maximum(delays + self.seconds * (place + place.T), _SHORTEST * self.seconds)
        np.fill_diagonal(spread, 0.0)
        return spread

    def lengthen(self, delays: Floats) -> Floats:
        """Return delays with a constant added, next to which the errors of all are about the same share."""
        return np.where(delays > 0, delays + _ADDED * self.seconds, delays)

    def shorten(self, candidate: Candidate, hosts: int) -> Candidate:
        """Return the same graph, for delays without the constant that `lengthen` adds."""
        added = _ADDED * self.seconds
        explained = np.where(np.eye(hosts, dtype=bool), 0.0, candidate.explained - added)
        if candidate.model == "direct":
            return replace(candidate, explained=explained, overhead=candidate.overhead - added)
        ends = (candidate.edge < hosts).sum(axis=1)
        return replace(candidate, explained=explained, latency=np.maximum(candidate.latency - ends * added / 2, 0.0))

    def hides_links_of(self, candidate: Candidate, hosts: int) -> bool:
        """Return whether a link between switches adds less to a delay than two steps."""
        between = candidate.edge.min(axis=1) >= hosts
        # A path to a farther switch goes up by one such link and down by another.
        return bool((2 * candidate.latency[between] < _LINK * self.seconds).any())


def find_clock_steps(candidate: Candidate, delays: Floats) -> ClockSteps | None:
    """Find the steps of the clock, where they are errors next to what a candidate explains.

    Args:
        candidate: the answer.
        delays: float64 [n, n], seconds, symmetric, nan where not measured.
    """
    above = np.triu(delays > 0, 1)
    values = delays[above]
    if not len(values):
        return None
    least = float(np.quantile(values, 0.01))
    shortest, longest = (length * least for length in _LENGTHS)
    frequency = np.arange(1 / longest, 1 / shortest, _FINENESS / float(values.max()))
    some = values[np.linspace(0, len(values) - 1, min(len(values), _LOOKED_AT)).astype(int)]
    phase = np.array([abs(np.exp(2j * np.pi * each * some).mean()) for each in frequency])
    best = int(np.argmax(phase))
    step = float(1 / frequency[best])
    share = float(np.mean(np.abs(values - candidate.explained[above]) > step / 2))
    return ClockSteps(step, share) if phase[best] > _ON_STEPS and share > _APART else None
