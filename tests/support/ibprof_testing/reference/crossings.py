# SPDX-License-Identifier: Apache-2.0
"""Compute the smallest number of link crossings that a drawing of a fat-tree can have."""

from __future__ import annotations

from math import comb


def fewest_crossings(leaves: int, pods: int, middles: int, tops: int, cables: tuple[int, int] = (1, 1)) -> int:
    """Return the smallest number of crossings of a drawing of a fat-tree with three levels of switches.

    Each pod has `leaves` leaves. Each leaf is linked to the pod's `middles` middle switches. The i-th middle switches
    of all pods are linked to the same `tops` top switches. Links of hosts are not in any crossing. docs/decisions/0010
    has the proof.

    Args:
        cables: number of parallel links from a leaf to a middle switch, and from a middle switch to a top switch.
    """
    down, up = leaves * cables[0], tops * cables[1]
    in_pods = pods * comb(middles, 2) * comb(leaves, 2) * cables[0] ** 2
    in_groups = middles * comb(pods, 2) * comb(tops, 2) * cables[1] ** 2
    return in_pods + in_groups + comb(pods, 2) * comb(middles, 2) * min(down, up) ** 2
