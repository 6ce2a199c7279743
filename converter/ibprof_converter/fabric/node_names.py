# SPDX-License-Identifier: Apache-2.0
"""Information in NodeDescriptions, and the display of lists of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_SHOWN = 3
_DIGITS = re.compile(r"([0-9]+)")


def host_name(description: str) -> str:
    """Return the host of an adapter: the first word, as in `host17 HCA-1` or `host17 mlx5_0`; empty if none."""
    words = description.split(maxsplit=1)
    return words[0] if words else ""


def is_aggregation_node(description: str) -> bool:
    """Return whether a CA is the part of a switch that reduces data for collectives (SHARP), so no host."""
    return "aggregation node" in description.lower()


def natural_key(name: str) -> str:
    """Return a sort key that puts host9 before host10."""
    parts = _DIGITS.split(name)
    for place in range(1, len(parts), 2):
        number = parts[place].lstrip("0")
        # Of two numbers the longer is larger. A number sorts before any other character.
        parts[place] = f"\0{chr(len(number))}{number}"
    return "".join(parts) + "\0\0"


@lru_cache(maxsize=2)
def rank_names(names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """Return the rank of each name in natural order, equal ones by their place: int64 [name], read-only."""
    keys = [natural_key(name) for name in names]
    rank = np.empty(len(keys), np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    rank.flags.writeable = False
    return rank


def show_some(items: Sequence[str]) -> str:
    """Return the first few of many items, as a list in words."""
    return ", ".join(items[:_SHOWN]) + (", ..." if len(items) > _SHOWN else "")
