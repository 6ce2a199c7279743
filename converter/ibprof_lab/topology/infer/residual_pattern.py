# SPDX-License-Identifier: Apache-2.0
"""Errors that pairs share: whether residuals have a pattern, and how large a link must be then.

Errors of real machines are alike for pairs that share a host, a route or a place on a chip. A mean over many such pairs
is no more exact than one of them. Tests that count pairs then find a switch in every group of hosts that lie a little
nearer to one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.candidate import FLOOR, Floats

OUTLYING = 3.5
"""Times the residuals' scaled median absolute deviation; beyond it a value is an outlier."""

NORMAL = 1.4826
"""Median absolute deviation -> standard deviation, for normal errors."""

LEAST_STEP = 0.02
"""Least increase of a delay by a link, of its logarithm: clocks, cables and firmware differ by less."""

_STEP_WITH_PATTERN = 5.0
"""Times the deviation of residuals with a pattern (docs/inference.md). With 4, one of 60 synthetic processors with
errors by place has a switch too many; with 8, links of a cluster behind queues are lost."""

_PATTERN = 2.8
"""Times sigma sqrt(n): errors alone reach about 2, and seldom more than this with ten hosts."""

_LIKELY_PATTERN = 2.1
"""The same, where taking errors for a pattern costs little: links that are much larger are kept anyway. One of a
hundred matrices of 6 to 192 hosts with independent errors exceeds it."""

_LOOKED_AT = 192
"""Number of hosts whose residuals are tested for a pattern."""

_ITERATIONS = 40


@dataclass(frozen=True, slots=True)
class ResidualPattern:
    """Strength and size of a pattern in residuals.

    Attributes:
        strength: largest eigenvalue over sigma sqrt(n). It is near 2 for independent errors; a pattern, such as a host
            that is slower to all others, adds up along rows and exceeds that.
        deviation: sigma, the root mean square of the residuals, outliers clipped; of the logarithm of a delay.

    Source: E. P. Wigner, "On the distribution of the roots of certain symmetric matrices", Annals of Mathematics 67,
    1958.
    """

    strength: float
    deviation: float

    @property
    def is_certain(self) -> bool:
        """True if residuals are more than independent errors."""
        return self.strength > _PATTERN

    @property
    def is_likely(self) -> bool:
        """True if residuals are probably more than independent errors."""
        return self.strength > _LIKELY_PATTERN

    @property
    def least_step(self) -> float:
        """Least increase of the logarithm of a delay that shows a link."""
        with_pattern = _STEP_WITH_PATTERN * self.deviation if self.is_likely else 0.0
        return max(LEAST_STEP, with_pattern)


def sample_hosts(hosts: int) -> npt.NDArray[np.integer]:
    """Return the hosts whose residuals are enough to find a pattern: all, or some hundred."""
    return np.linspace(0, hosts - 1, min(hosts, _LOOKED_AT)).astype(int)


def find_pattern(residuals: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> ResidualPattern:
    """Look for a pattern in residuals.

    Args:
        residuals: [n, n], symmetric, logarithm of the delay over the explained one.
        known: bool [n, n], which of them count.
    """
    rows = sample_hosts(len(residuals))
    residuals, known = residuals[np.ix_(rows, rows)], known[np.ix_(rows, rows)]
    if not known.any():
        return ResidualPattern(0.0, 0.0)
    limit = OUTLYING * NORMAL * float(np.median(np.abs(residuals[known])))
    left = np.where(known, np.clip(residuals, -limit, limit), 0.0)
    sigma = float(np.sqrt(np.square(left).sum() / np.count_nonzero(known)))
    if sigma < FLOOR:
        return ResidualPattern(0.0, sigma)
    return ResidualPattern(_largest_eigenvalue(left) / (sigma * sqrt(len(left))), sigma)


def _largest_eigenvalue(symmetric: Floats) -> float:
    """Return the largest absolute eigenvalue, to some percent, by power iteration."""
    vector = np.random.default_rng(0).standard_normal(len(symmetric))
    length = 0.0
    for _ in range(_ITERATIONS):
        vector = symmetric @ (vector / np.linalg.norm(vector))
        length = float(np.linalg.norm(vector))
    return length
