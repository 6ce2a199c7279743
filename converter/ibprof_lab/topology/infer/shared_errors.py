# SPDX-License-Identifier: Apache-2.0
"""Errors of delays in three parts: of hosts, of routes between two switches, and of single pairs."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.candidate import Floats


@dataclass(frozen=True, slots=True)
class SharedErrors:
    """Errors of the logarithm of delays, by what shares them.

    Attributes:
        switch: int [host], the switch of each.
        of_host: float64 [host], in all delays of a host.
        of_route: float64 [route], in all delays between hosts of the same two switches; also for hosts of one switch,
            whose delay to one another is fitted for itself, so that its error does not show.
        of_pair: float64 [pair], the rest.
    """

    switch: npt.NDArray[np.integer]
    of_host: Floats
    of_route: Floats
    of_pair: Floats

    def draw(self, source: np.random.Generator) -> Floats:
        """Return errors of all pairs, float64 [host, host], symmetric: each part drawn from those that were found."""
        hosts, switches = len(self.switch), int(self.switch.max()) + 1
        of_host = source.choice(self.of_host, hosts)
        of_route = _mirror(source.choice(self.of_route, (switches, switches)))
        of_pair = _mirror(source.choice(self.of_pair, (hosts, hosts)))
        drawn: Floats = of_host[:, None] + of_host + of_route[np.ix_(self.switch, self.switch)] + of_pair
        return drawn


def split_errors(
    residuals: Floats, known: npt.NDArray[np.bool_], switch: npt.NDArray[np.integer], links: int
) -> SharedErrors:
    """Split residuals into what hosts share, what routes share, and the rest.

    Links between switches are fitted to the delays of routes, and follow their errors: what is left of these is too
    small, and is scaled by the degrees of freedom.

    Args:
        residuals: float64 [host, host], symmetric, 0 where not known.
        known: bool [host, host].
        switch: int [host], of each host, from 0 on.
        links: number of links between switches in the model that leaves the residuals.
    """
    left = residuals - (np.median(residuals[known]) if known.any() else 0.0)
    left = np.where(known, left, 0.0)
    of_host = left.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    left = np.where(known, left - of_host[:, None] - of_host, 0.0)
    switches = int(switch.max()) + 1
    route = np.minimum.outer(switch, switch) * switches + np.maximum.outer(switch, switch)
    pairs = np.triu(known, 1)
    count = np.bincount(route[pairs], minlength=switches * switches)
    mean = np.bincount(route[pairs], left[pairs], switches * switches) / np.maximum(count, 1)
    left = left - mean[route]
    within = np.arange(switches) * (switches + 1)
    between = np.setdiff1d(np.flatnonzero(count), within)
    scale = sqrt(len(between) / max(len(between) - links, 1))
    return SharedErrors(switch, of_host, _or_none(scale * mean[between]), _or_none(left[pairs]))


def _or_none(values: Floats) -> Floats:
    return values if len(values) else np.zeros(1)


def _mirror(square: Floats) -> Floats:
    upper = np.triu(square, 1)
    mirrored: Floats = upper + upper.T + np.diag(np.diag(square))
    return mirrored
