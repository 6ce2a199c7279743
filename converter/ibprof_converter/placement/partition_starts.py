# SPDX-License-Identifier: Apache-2.0
"""Placements to start from that divide the ranks along the tree of hosts: by traffic, or by blocks of their grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import load_kernels
from ibprof_converter.placement.placement_problem import Neighbours, SlotOfRank
from ibprof_converter.routing.subnet_routes import check_status

ENTRIES_LIMIT = 1 << 22
"""Entries of `Neighbours` beyond which traffic is not divided: all-to-all has no good division."""

Divide = Callable[[npt.NDArray[np.int64], int, int], npt.NDArray[np.bool_]]
"""Takes ranks, the size of the first part, and the depth; returns which ranks are in the first part."""


def divide_along(slots: npt.NDArray[np.uint32], strength: npt.NDArray[np.float64], divide: Divide) -> SlotOfRank:
    """Return a placement that divides the ranks in two again and again, each time where the slots are farthest apart.

    Args:
        slots: uint32 [rank], slots in an order that keeps near ones together.
        strength: float64 [rank - 1], distance between each slot and the next; 0 on one host.
        divide: divides ranks.

    Source: Pellegrini, Roman, "Scotch: a software package for static mapping by dual recursive bipartitioning of
    process and architecture graphs", HPCN Europe 1996.
    """
    slot_of_rank = np.zeros(len(slots), np.uint32)
    pending = [(np.arange(len(slots)), 0, 0)]
    while pending:
        ranks, begin, depth = pending.pop()
        size = _find_split(strength[begin : begin + len(ranks) - 1])
        if size == 0:
            slot_of_rank[ranks] = slots[begin : begin + len(ranks)]
            continue
        is_first = divide(ranks, size, depth)
        pending += [(ranks[is_first], begin, depth + 1), (ranks[~is_first], begin + size, depth + 1)]
    return slot_of_rank


def _find_split(strength: npt.NDArray[np.float64]) -> int:
    """Return how many slots are before the strongest gap, of alike ones the one nearest to the middle; 0 for none."""
    if not len(strength) or strength.max() <= 0:
        return 0
    strongest = np.flatnonzero(strength == strength.max()) + 1
    return int(strongest[np.argmin(np.abs(2 * strongest - len(strength) - 1))])


class TrafficDivider:
    """Divides ranks so that little traffic passes between the parts."""

    def __init__(self, neighbours: Neighbours, seed: int) -> None:
        self._first = neighbours.first.astype(np.int64)
        self._rank = neighbours.rank.astype(np.int64)
        self._volume = neighbours.volume().astype(np.float64)
        self._seed = seed
        self._kernels = load_kernels()

    def __call__(self, ranks: npt.NDArray[np.int64], size: int, depth: int) -> npt.NDArray[np.bool_]:
        """Divide ranks, as `Divide`."""
        count = self._first[ranks + 1] - self._first[ranks]
        owner = np.repeat(np.arange(len(ranks)), count)
        entry = np.arange(len(owner)) + np.repeat(self._first[ranks] - np.cumsum(count) + count, count)
        number = np.full(len(self._first) - 1, -1, np.int64)
        number[ranks] = np.arange(len(ranks))
        other = number[self._rank[entry]]
        inside = other >= 0
        first = np.concatenate([[0], np.cumsum(np.bincount(owner[inside], minlength=len(ranks)))]).astype(np.uint64)
        arrays = (first, other[inside].astype(np.uint32), self._volume[entry[inside]])
        kernels, part = self._kernels, np.zeros(len(ranks), np.uint8)
        pointers = (kernels.pointer(each) for each in arrays)
        graph = kernels.ffi.new("struct ibp_graph *", (len(ranks), *pointers))
        seed = (self._seed << 32) + (int(ranks[0]) << 6) + depth
        check_status(kernels.lib.ibp_bisect(graph, size, seed, kernels.pointer(part)))
        return np.asarray(part == 0)


class GridDivider:
    """Divides ranks into blocks of a grid: across its longest side."""

    def __init__(self, place: npt.NDArray[np.int64]) -> None:
        self._place = place

    def __call__(self, ranks: npt.NDArray[np.int64], size: int, _depth: int) -> npt.NDArray[np.bool_]:
        """Divide ranks, as `Divide`."""
        place = self._place[ranks]
        sides = np.ptp(place, axis=0)
        axes = sorted(range(place.shape[1]), key=lambda axis: (sides[axis], axis))
        order = np.lexsort([place[:, axis] for axis in axes])
        is_first = np.zeros(len(ranks), np.bool_)
        is_first[order[:size]] = True
        return is_first


def find_grids(neighbours: Neighbours) -> list[npt.NDArray[np.int64]]:
    """Return grids that the ranks may be numbered along, the last axis first, as places: int64 [rank, axis] each.

    In a stencil, ranks that differ by 1, by the length of a row and by the size of a plane exchange most.
    """
    ranks = len(neighbours.first) - 1
    step = np.abs(neighbours.rank.astype(np.int64) - neighbours.owner().astype(np.int64))
    volume = np.bincount(step, weights=neighbours.volume().astype(np.float64), minlength=ranks + 1)
    found: dict[tuple[int, ...], npt.NDArray[np.int64]] = {}
    for share in (0.15, 0.3, 0.6):
        strides = [1]
        for stride in np.flatnonzero(volume >= share * volume.max(initial=0.0)).tolist():
            if stride > strides[-1] and stride % strides[-1] == 0 and stride * 2 <= ranks:
                strides.append(stride)
        if len(strides) > 1 and tuple(strides) not in found:
            found[tuple(strides)] = place_on_grid(np.arange(ranks), strides)
    return list(found.values())


def place_on_grid(ranks: npt.NDArray[np.int64], strides: list[int]) -> npt.NDArray[np.int64]:
    """Return the place of ranks on a grid, from the distance of neighbours along each axis: int64 [rank, axis]."""
    axes = []
    for stride in reversed(strides):
        axes.append(ranks // stride)
        ranks = ranks % stride
    return np.stack(axes[::-1], axis=1)
