# SPDX-License-Identifier: Apache-2.0
"""Groups of link directions of one kind that are about as busy, so that a few lines and lines of a picture say all."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ALIKE = 0.99
"""Share of a link direction's time from which on another one of its kind is as busy."""


def group_alike(
    amounts: npt.NDArray[np.float64], kind: npt.NDArray[np.integer], groups: int
) -> list[npt.NDArray[np.intp]]:
    """Return the busiest groups, the busiest first.

    Args:
        amounts: float64 [direction], time at line rate or bytes, the largest first.
        kind: int [direction], equal for those that may share a group.
        groups: number of groups at most.

    Returns:
        Indices of each group, ascending; the first one is its busiest direction.
    """
    left = np.ones(len(amounts), np.bool_)
    found: list[npt.NDArray[np.intp]] = []
    while len(found) < groups and left.any():
        first = int(left.argmax())
        members = np.flatnonzero(left & (kind == kind[first]) & (amounts >= ALIKE * amounts[first]))
        left[members] = False
        found.append(members)
    return found
