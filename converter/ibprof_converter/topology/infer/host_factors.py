# SPDX-License-Identifier: Apache-2.0
"""Hosts whose delays to all others are longer, or shorter, by one factor: cores of another clock, busy hosts.

Levels separate such a host from its switch, and neighbours of a slow host look like a group of their own. The factor is
found without a topology: where hosts have about as many near and far peers, only a factor is between their sorted
delays.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from ibprof_converter.topology.infer.candidate import FLOOR, Candidate, Floats
from ibprof_converter.topology.infer.residual_pattern import LEAST_STEP, NORMAL, OUTLYING

_FEWEST_HOSTS = 6
LARGEST_FACTORS = 512
_MOST = 0.25
"""Share of hosts beyond which a factor is no exception, but a class of hosts."""

_STEADY = 0.5
"""Deviation of the ratios of sorted delays, of the logarithm of the factor, up to which they are one factor."""


@dataclass(frozen=True, slots=True)
class HostFactors:
    """Factors of hosts.

    Attributes:
        longer: float64 [host], logarithm of each host's factor; 0 for most.
    """

    longer: Floats

    @property
    def hosts(self) -> npt.NDArray[np.integer]:
        """The hosts that have a factor, int [host]."""
        return np.flatnonzero(self.longer)

    def cost(self, known: npt.NDArray[np.bool_]) -> float:
        """Return what the choice of these hosts and their factors cost, as scores of candidates count."""
        pairs = int(np.count_nonzero(np.triu(known, 1)))
        return len(self.hosts) * (log(max(pairs, 2)) + 2 * log(len(self.longer)))

    def even_out(self, delays: Floats) -> Floats:
        """Return the delays as they would be if no host had a factor, float64 [n, n]."""
        evened: Floats = delays * np.exp(-(self.longer[:, None] + self.longer))
        return evened

    def refine(self, candidate: Candidate, delays: Floats, known: npt.NDArray[np.bool_]) -> HostFactors:
        """Return factors that leave no median error of these hosts in what a candidate explains.

        Args:
            candidate: of the delays without the factors.
            delays: float64 [n, n], as measured.
            known: bool [n, n], which of them count.
        """
        left = np.where(known, candidate.residuals(self.even_out(delays)), np.nan)
        longer = self.longer.copy()
        longer[self.hosts] += np.nanmedian(left[self.hosts], axis=1)
        return HostFactors(longer)


def find_host_factors(delays: Floats) -> HostFactors | None:
    """Find hosts whose sorted delays differ from those of most hosts by a factor.

    Args:
        delays: float64 [n, n], seconds, symmetric, above 0 except on the diagonal.

    Returns:
        None where there is no such host.
    """
    hosts = len(delays)
    if not _FEWEST_HOSTS <= hosts <= LARGEST_FACTORS:
        return None
    logs = np.log(delays[~np.eye(hosts, dtype=bool)].reshape(hosts, hosts - 1))
    logs.sort(axis=1)
    ratio = logs - np.median(logs, axis=0)
    longer = np.median(ratio, axis=1)
    spread = NORMAL * np.median(np.abs(ratio - longer[:, None]), axis=1)
    usual = NORMAL * float(np.median(np.abs(longer - np.median(longer))))
    is_odd = (np.abs(longer) > max(LEAST_STEP, OUTLYING * max(usual, FLOOR))) & (spread < _STEADY * np.abs(longer))
    if not 0 < np.count_nonzero(is_odd) <= _MOST * hosts:
        return None
    return HostFactors(np.where(is_odd, longer, 0.0))
