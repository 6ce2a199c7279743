# SPDX-License-Identifier: Apache-2.0
"""Mean time of messages on each link of a reference topology, compared with the time at line rate.

Source: P. S. Bannikov, A. N. Salnikov (see `bannikov_salnikov`), comparison of topologies, steps f and g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.reference.reference_paths import ReferencePaths

Floats = npt.NDArray[np.float64]

NOT_PASSED, AS_FAST, SLOWER = "white", "red", "blue"
"""The paper's colours: no measured path has the link; its time is at most that at line rate; its time is longer."""


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """Times of links.

    Attributes:
        seconds: float64 [link], mean time of a message on the link; nan where none passes.
        line_rate_seconds: float64 [link], length over speed; nan where the speed is unknown.
        paths: int64 [link], number of paths with the link, of both directions.
    """

    seconds: Floats
    line_rate_seconds: Floats
    paths: npt.NDArray[np.int64]

    def colours(self) -> tuple[str, ...]:
        """Return the colour of each link; a link of unknown speed has a time at line rate of 0."""
        slower = self.seconds > np.nan_to_num(self.line_rate_seconds)
        return tuple(
            NOT_PASSED if not passed else (SLOWER if more else AS_FAST)
            for passed, more in zip(self.paths, slower, strict=True)
        )

    def saturation(self) -> Floats:
        """Return the strength of each colour, 0 to 1: the difference over the largest one, float64 [link]."""
        difference = np.abs(np.nan_to_num(self.seconds - np.nan_to_num(self.line_rate_seconds)))
        most = float(difference.max(initial=0.0))
        return difference / most if most else difference


def average_processes(matrix: npt.NDArray[np.floating], members: Sequence[Sequence[int]]) -> Floats:
    """Return the mean delay between the processes of two hosts, float64 [host, host]. Source: formula (3)."""
    order = np.concatenate([np.asarray(each, np.int64) for each in members])
    values: Floats = matrix[np.ix_(order, order)].astype(np.float64)
    if len(order) == len(members):
        return values
    there = np.isfinite(values)
    first = np.cumsum([0, *map(len, members[:-1])])
    sums, count = (
        np.add.reduceat(np.add.reduceat(each, first, axis=0), first, axis=1)
        for each in (np.where(there, values, 0.0), there.astype(np.float64))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = sums / count
    np.fill_diagonal(means, 0.0)
    return means


def spread_delays(paths: ReferencePaths, delays: Floats, gbps: Floats, length: int) -> LinkTimes:
    """Spread each pair's delay over the links of its path, inversely to their speeds, and average by link.

    A link of twice the speed takes half the time of the others on the path.

    Args:
        paths: of the pairs.
        delays: float64 [pair], seconds.
        gbps: float64 [link]; links of unknown speed count as the median of the known ones.
        length: bytes of the messages.

    Source: formula (4).
    """
    known = gbps[gbps > 0]
    inverse = 1 / np.where(gbps > 0, gbps, float(np.median(known)) if len(known) else 1.0)
    on_way, pair = inverse[paths.link], paths.pair
    whole = np.bincount(pair, on_way, len(paths.offset) - 1)
    count = np.bincount(paths.link, minlength=len(gbps))
    total = np.bincount(paths.link, delays[pair] * on_way / whole[pair], len(gbps))
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(count > 0, total / count, np.nan)
        at_line_rate = length * 8 / (gbps * 1e9)
    return LinkTimes(seconds, at_line_rate, count)
