# SPDX-License-Identifier: Apache-2.0
"""Crossings of links between levels, as a measure of a layout."""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric


def count_crossings(fabric: Fabric, level: npt.NDArray[np.integer], x: npt.NDArray[np.float64]) -> int:
    """Return the number of pairs of links that cross, among those that join the same two levels.

    Links within a level do not count.

    Args:
        fabric: the links.
        level: int [node].
        x: float64 [node], in any unit.
    """
    ends = fabric.link_node
    upper = np.take_along_axis(ends, np.argmax(level[ends], axis=1)[:, None], axis=1)[:, 0]
    lower = ends.sum(axis=1) - upper
    total = 0
    joined = level[lower].astype(np.int64) << 32 | level[upper]
    for pair in np.unique(joined[level[lower] != level[upper]]):
        here = joined == pair
        total += _count_inversions(_rank(x[lower[here]]), _rank(x[upper[here]]))
    return total


def fewest_crossings(leaves: int, pods: int, middles: int, tops: int, cables: tuple[int, int] = (1, 1)) -> int:
    """Return the smallest number of crossings of a drawing of a fat-tree with three levels of switches.

    Each pod has `leaves` leaves, each linked to the pod's `middles` middle switches. The i-th middle switches of all
    pods are linked to the same `tops` top switches. Hosts cross nothing. docs/decisions/0010 has the proof.

    Args:
        leaves: leaf switches per pod.
        pods: number of pods.
        middles: middle switches per pod.
        tops: top switches that a middle switch is linked to.
        cables: parallel links from a leaf to a middle switch, and from there to a top switch.
    """
    down, up = leaves * cables[0], tops * cables[1]
    in_pods = pods * comb(middles, 2) * comb(leaves, 2) * cables[0] ** 2
    in_groups = middles * comb(pods, 2) * comb(tops, 2) * cables[1] ** 2
    return in_pods + in_groups + comb(pods, 2) * comb(middles, 2) * min(down, up) ** 2


def _rank(x: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.unique(x, return_inverse=True)[1].astype(np.int64)


def _count_inversions(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> int:
    """Return the number of pairs ordered differently by `first` and `second`: O(n log n), one bit at a time."""
    value = second[np.lexsort((second, first))]
    total = 0
    for bit in reversed(range(int(value.max(initial=0)).bit_length())):
        # Values are sorted by their higher bits, in stable order. In each run of equal higher bits, a 1 before a 0 is a
        # pair in the wrong order. No other bit counts this pair.
        one = value >> bit & 1
        ones_before = np.cumsum(one) - one
        run = value >> (bit + 1)
        starts = np.flatnonzero(np.concatenate([[True], run[1:] != run[:-1]]))
        before_run = np.repeat(ones_before[starts], np.diff([*starts, len(value)]))
        total += int((ones_before - before_run)[one == 0].sum())
        value = value[np.argsort(value >> bit, kind="stable")]
    return total
