# SPDX-License-Identifier: Apache-2.0
"""The steady state of a measurement, from which on the rest of its messages need not be simulated.

The mean of the messages so far stands for the mean of all when they differ by little and it does not drift. The 95%
interval of that difference is that of batch means, times the root of the part of all messages that is left: what was
measured is a sample of a known number. Batches that depend on each other widen it, by the factor of a first-order
autoregressive process. Each look is a chance to end too early; so looks are few, at numbers of messages that grow
geometrically.

Source: A. M. Law and J. S. Carson, "A sequential procedure for determining the length of a steady-state simulation",
Operations Research 27(5), 1979; W. G. Cochran, "Sampling Techniques", Wiley, 1977, section 2.6; G. S. Fishman,
"Principles of Discrete Event Simulation", Wiley, 1978, section 5.8.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ibprof_lab.simulation.measure.message_latency import half_interval

LEAST = 25
"""Messages of each client, on average, that are always measured."""

_GROWTH = 1.2
_BATCHES = 20
_PARTS = 10
_MOST_CORRELATED = 0.9


class SteadyState:
    """Recognise the steady state of a series that grows.

    Args:
        part: half of the 95% interval, as a part of the mean; 0: never.
        clients: that make the messages.
        messages: total, of a client.
    """

    def __init__(self, part: float, clients: int, messages: int) -> None:
        self._part = part
        self._due = LEAST * max(clients, 1)
        self._total = messages * max(clients, 1)

    def is_reached(self, values: npt.NDArray[np.floating]) -> bool:
        """Return whether latencies, in order of completion, are in a steady state; looks at few lengths alone."""
        if not self._part or len(values) < self._due:
            return False
        self._due = math.ceil(_GROWTH * len(values))
        mean, left = float(values.mean()), 1 - len(values) / self._total
        if left <= 0:
            return False
        half = find_half(values) * math.sqrt(left)
        # Where fewer are left than were measured, a line that goes on changes the mean of all by less.
        change = abs(find_change(values)) * min(left / (1 - left), 1.0)
        return half <= self._part * mean and change <= 2 * self._part * mean


def find_half(values: npt.NDArray[np.floating]) -> float:
    """Return half of the 95% interval of the mean of a series, by the means of batches that may be correlated."""
    means = _average_parts(values, _BATCHES)
    off = means - means.mean()
    variance = float((off**2).mean())
    lag = float((off[1:] * off[:-1]).mean()) / variance if variance else 0.0
    lag = min(max(lag, 0.0), _MOST_CORRELATED)
    return half_interval(means) * math.sqrt((1 + lag) / (1 - lag))


def find_change(values: npt.NDArray[np.floating]) -> float:
    """Return the change of a series from beginning to end, by a straight line through the means of ten parts."""
    return float(np.polyfit(np.arange(_PARTS), _average_parts(values, _PARTS), 1)[0]) * _PARTS


def _average_parts(values: npt.NDArray[np.floating], parts: int) -> npt.NDArray[np.float64]:
    return np.array([part.mean() for part in np.array_split(values, parts)])
