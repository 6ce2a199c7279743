# SPDX-License-Identifier: Apache-2.0
"""What each link of a reference topology takes of the delays that pass it, beside what its speed promises.

Source: P. S. Bannikov, A. N. Salnikov (see `bannikov_salnikov`), comparison of topologies, steps f and g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.topology.reference.reference_paths import ReferencePaths

Floats = npt.NDArray[np.float64]

NOT_PASSED, AS_FAST, SLOWER = "white", "red", "blue"
"""The paper's colours: no measured pair's way has the link; its time is at most what the speed promises; it is more."""


@dataclass(frozen=True, slots=True)
class LinkTimes:
    """Times of links.

    Attributes:
        seconds: float64 [link], mean time of a message on the link; nan where none passes.
        line_rate_seconds: float64 [link], length over speed; nan where nobody says the speed.
        paths: int64 [link], ways that have the link, both directions together.
    """

    seconds: Floats
    line_rate_seconds: Floats
    paths: npt.NDArray[np.int64]

    def colours(self) -> tuple[str, ...]:
        """Give the colour of each link; one whose speed nobody says is promised no time."""
        slower = self.seconds > np.nan_to_num(self.line_rate_seconds)
        return tuple(
            NOT_PASSED if not passed else (SLOWER if more else AS_FAST)
            for passed, more in zip(self.paths, slower, strict=True)
        )

    def saturation(self) -> Floats:
        """Give the strength of each colour, 0 to 1: the difference over the greatest one."""
        difference = np.abs(np.nan_to_num(self.seconds - np.nan_to_num(self.line_rate_seconds)))
        most = float(difference.max(initial=0.0))
        return difference / most if most else difference


def average_processes(matrix: npt.NDArray[np.floating], members: Sequence[Sequence[int]]) -> Floats:
    """Give the mean delay between the processes of two hosts, float64 [host, host]. Source: formula (3)."""
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


def spread_delays(ways: ReferencePaths, delays: Floats, gbps: Floats, length: int) -> LinkTimes:
    """Spread each pair's delay over the links of its way, inversely to their speeds, and take the mean by link.

    Source: formula (4). A link of twice the speed takes half the time of the others on the way.

    Args:
        ways: of the pairs.
        delays: float64 [pair], seconds.
        gbps: float64 [link]; links whose speed nobody says count as fast as the middle one of those that have one.
        length: bytes of the messages.
    """
    known = gbps[gbps > 0]
    inverse = 1 / np.where(gbps > 0, gbps, float(np.median(known)) if len(known) else 1.0)
    on_way, pair = inverse[ways.link], ways.pair
    whole = np.bincount(pair, on_way, len(ways.offset) - 1)
    paths = np.bincount(ways.link, minlength=len(gbps))
    total = np.bincount(ways.link, delays[pair] * on_way / whole[pair], len(gbps))
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = np.where(paths > 0, total / paths, np.nan)
        promised = length * 8 / (gbps * 1e9)
    return LinkTimes(seconds, promised, paths)
