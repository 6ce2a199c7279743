# SPDX-License-Identifier: Apache-2.0
"""Recognise regular fat-trees, and number their leaf switches so that neighbours have successive numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.routing.indexed_network import NONE

_FAR = 1 << 14


@dataclass(frozen=True, slots=True)
class RegularTree:
    """A tree whose switches of one level have equally many uplinks.

    Attributes:
        level: int [switch], 0 for leaf switches.
        uplinks: number of uplinks of a switch of each level but the last.
        leaves: int [leaf], switches of level 0; those of one subtree follow each other.
    """

    level: npt.NDArray[np.int64]
    uplinks: tuple[int, ...]
    leaves: npt.NDArray[np.int64]


def find_regular_tree(leads_to: npt.NDArray[np.int32], is_leaf: npt.NDArray[np.bool_]) -> RegularTree | None:
    """Return the levels of a regular tree; None for any other fabric.

    Args:
        leads_to: int32 [switch, port], the switch at the other end, `NONE` where there is none.
        is_leaf: bool [switch], those with hosts.
    """
    level = _count_levels(leads_to, is_leaf)
    at, port = np.nonzero(leads_to != NONE)
    to = leads_to[at, port]
    top = int(level.max(initial=0))
    if top == 0 or top >= _FAR or (np.abs(level[at] - level[to]) != 1).any():
        return None
    count = np.bincount(at[level[to] > level[at]], minlength=len(level))
    uplinks = []
    for each in range(top):
        of_level = np.unique(count[level == each])
        if len(of_level) != 1 or of_level[0] == 0:
            return None
        uplinks.append(int(of_level[0]))
    if count[level == top].any():
        return None
    leaves = np.flatnonzero(is_leaf)
    subtrees = [_find_subtrees(level, at, to, each)[leaves] for each in range(1, top)]
    return RegularTree(level, tuple(uplinks), leaves[np.lexsort(np.array([leaves, *subtrees]))])


def _count_levels(leads_to: npt.NDArray[np.int32], is_leaf: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the number of links from each switch to the nearest leaf: int64 [switch]."""
    level = np.where(is_leaf, 0, _FAR)
    at, port = np.nonzero(leads_to != NONE)
    to = leads_to[at, port]
    for steps in range(1, len(level)):
        near = at[(level[to] == steps - 1) & (level[at] == _FAR)]
        if not len(near):
            break
        level[near] = steps
    return level


def _find_subtrees(
    level: npt.NDArray[np.int64], at: npt.NDArray[np.intp], to: npt.NDArray[np.int32], highest: int
) -> npt.NDArray[np.int32]:
    """Return the number of the subtree that each switch is in, of the switches up to a level: int32 [switch]."""
    from scipy.sparse import coo_array  # noqa: PLC0415  (slow to import)
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    inside = (level[at] <= highest) & (level[to] <= highest)
    edges = (np.ones(int(inside.sum()), np.uint8), (at[inside], to[inside]))
    _, subtree = connected_components(coo_array(edges, shape=(len(level), len(level))), directed=False)
    return np.asarray(subtree, np.int32)
