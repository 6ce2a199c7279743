# SPDX-License-Identifier: Apache-2.0
"""Make rank placements from which a search starts, or with which its result is compared.

Simple placements assign the slots in an order that does not depend on the traffic. Other placements divide the hosts
again and again, each time at the largest distance. Each time, the ranks are divided too: into parts with little traffic
between these, or into blocks of the program's grid.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import load_kernels
from ibprof_converter.placement.placement_problem import Neighbours, SlotOfRank
from ibprof_converter.placement.slots import RankSlots
from ibprof_converter.placement.switch_paths import SwitchPaths
from ibprof_converter.routing.subnet_routes import check_status, count_threads
from ibprof_converter.traffic.patterns import shuffle

ENTRIES_LIMIT = 1 << 22
"""If `Neighbours` has more entries than this, ranks are not divided by traffic: an all-to-all has no good division."""


Divide = Callable[[npt.NDArray[np.int64], int, int], npt.NDArray[np.bool_]]
"""Function that divides ranks into two parts.

Arguments: the ranks (int64 [rank]), the number of ranks in the first part, and the depth of the recursion. Result: bool
[rank], true if the rank is in the first part.
"""

BISECTIONS = 16
"""Largest number of placements by `divide_by_traffic`, each with another seed.

Link times of these placements differ by up to 25%.
"""

_ENTRIES = 1 << 20
"""Largest number of entries of `Neighbours` that all divisions read in total."""


def packed_slots(slots: RankSlots, ranks: int) -> SlotOfRank:
    """Return the first `ranks` slots, host after host, as with `--placement packed`."""
    return np.arange(min(ranks, slots.count), dtype=np.uint32)


def spread_slots(slots: RankSlots, ranks: int) -> SlotOfRank:
    """Return one slot (with `is_whole`, one host's slots) of each leaf switch in turn, as with `--placement spread`."""
    slot = np.arange(slots.count)
    of_host = slot - np.searchsorted(slots.host_of_slot, slots.host_of_slot)
    host_of_leaf = slots.host_of_slot - np.searchsorted(slots.group, slots.group)[slots.host_of_slot]
    keys = (slots.group[slots.host_of_slot], host_of_leaf, of_host)
    order = np.lexsort((of_host, *keys[:2]) if slots.is_whole else keys)
    return slots.number(order[:ranks].astype(np.uint32))


def random_slots(slots: RankSlots, ranks: int, seed: int) -> SlotOfRank:
    """Return random slots, or slots of random whole hosts; with one slot per host, as `--placement random:SEED`."""
    if slots.together > 1:
        return slots.place_groups(random_slots(slots.groups, ranks // slots.together, seed))
    if slots.is_whole:
        order = shuffle(len(slots.host), seed)[:, np.newaxis] * slots.most_of_a_host + np.arange(slots.most_of_a_host)
        return order.ravel()[:ranks].astype(np.uint32)
    return slots.number(shuffle(slots.count, seed)[:ranks].astype(np.uint32))


def grouped_order(neighbours: Neighbours, sizes: list[int]) -> npt.NDArray[np.int64]:
    """Return an order of ranks in which ranks with much mutual traffic are in one group of positions.

    Groups are filled one after the other. First in a group is the rank that exchanges most bytes with all earlier
    groups; next is always the rank that exchanges most bytes with the group. If no remaining rank exchanges bytes with
    the group, and later groups have space for all remaining ranks, the group ends.

    Args:
        neighbours: the traffic.
        sizes: size of each group; their sum is at least the number of ranks.

    Returns:
        int64 [rank], position of each rank; positions are numbered consecutively over all groups.
    """
    ranks = len(neighbours.first) - 1
    volume = neighbours.volume().astype(np.float64)
    first = neighbours.first.astype(np.int64)
    pull_of_all = np.zeros(ranks)
    is_free = np.ones(ranks, np.bool_)
    position_of_rank = np.zeros(ranks, np.int64)
    spare = sum(sizes) - ranks
    begin = 0
    for size in sizes:
        # Bytes that each rank exchanges with the group; -inf excludes placed ranks.
        pull = np.where(is_free, 0.0, -np.inf)
        for position in range(min(size, int(is_free.sum()))):
            rank = int(np.argmax(pull))
            if pull[rank] <= 0:
                if position and spare >= size - position:
                    spare -= size - position
                    break
                rank = int(np.argmax(pull_of_all))
            is_free[rank] = False
            pull[rank] = pull_of_all[rank] = -np.inf
            position_of_rank[rank] = begin + position
            here = slice(first[rank], first[rank + 1])
            pull[neighbours.rank[here]] += volume[here]
            pull_of_all[neighbours.rank[here]] += volume[here]
        begin += size
    return position_of_rank


def near_groups(slots: RankSlots, paths: SwitchPaths, ranks: int) -> list[int]:
    """Return the leaf switches (groups): first close groups that together have slots for all ranks, then all others.

    Each group begins one candidate order; all other groups follow by distance (hops of routes). From each order, use
    the first groups that together have slots for all ranks. For each order, sum the distances of these groups' slots
    from the first group. Choose the order with the smallest sum; of equal sums, the order that uses the fewest groups.
    """
    size = np.diff(slots.first_slot_of_group.astype(np.int64))
    distance = _distances(slots, paths)
    best: tuple[float, int, list[int]] | None = None
    for start in range(len(size)):
        order = np.lexsort((np.arange(len(size)), distance[start], np.arange(len(size)) != start))
        count = 1 + int(np.searchsorted(np.cumsum(size[order]), ranks))
        chosen = order[:count]
        reach = float((distance[start, chosen] * size[chosen]).sum())
        if best is None or (reach, count) < best[:2]:
            best = (reach, count, order.tolist())
    return best[2] if best else []


def _distances(slots: RankSlots, paths: SwitchPaths) -> npt.NDArray[np.float64]:
    """Return the mean number of hops between switches from group to group, over the rails: float64 [group, group]."""
    groups = int(slots.group.max(initial=0)) + 1
    first = np.searchsorted(slots.group, np.arange(groups))  # the first host of each group
    member = slots.port_of_slot[slots.first_slot_of_host[first]]
    total = np.zeros((groups, groups))
    for rail in range(len(paths.leaf_of_port)):
        leaf = paths.leaf_of_port[rail, member]
        total += paths.lengths(rail, np.repeat(leaf, groups), np.tile(member, groups)).reshape(groups, groups)
    return total / len(paths.leaf_of_port)


def slots_of_groups(slots: RankSlots, groups: list[int]) -> npt.NDArray[np.uint32]:
    """Return the slots of all groups, in the order of `groups`: uint32 [slot]."""
    first = slots.first_slot_of_group
    return np.concatenate([np.arange(first[group], first[group + 1], dtype=np.uint32) for group in groups])


def fabric_aware_slots(neighbours: Neighbours, slots: RankSlots, paths: SwitchPaths) -> dict[str, SlotOfRank]:
    """Return two placements by the topology, `near` and `grouped`.

    `near` assigns ranks, in rank order, to leaf switches that are close to each other. `grouped` fills these leaf
    switches too, but places ranks with much mutual traffic on one leaf switch.
    """
    ranks = len(neighbours.first) - 1
    groups = near_groups(slots, paths, ranks)
    slot_of_rank = slots_of_groups(slots, groups)
    sizes = np.diff(slots.first_slot_of_group.astype(np.int64))[groups].tolist()
    grouped = slot_of_rank[grouped_order(neighbours, sizes)]
    return {"near": slots.number(slot_of_rank[:ranks]), "grouped": slots.number(grouped)}


def starting_placements(
    neighbours: Neighbours,
    slots: RankSlots,
    paths: SwitchPaths,
    seed: int,
    grid: npt.NDArray[np.int64] | None = None,
) -> dict[str, SlotOfRank]:
    """Return the starting placements of a search, by name.

    Args:
        neighbours: the traffic.
        slots: slots from which placements choose.
        grid: int64 [rank, axis], position of each rank in the program's grid; None if unknown.
    """
    if slots.together > 1:
        of_groups = starting_placements(neighbours.of_groups(slots.together), slots.groups, paths, seed)
        return {name: slots.place_groups(each) for name, each in of_groups.items()}
    ranks = len(neighbours.first) - 1
    starts = {"packed": packed_slots(slots, ranks), "spread": spread_slots(slots, ranks)}
    starts |= fabric_aware_slots(neighbours, slots, paths)
    grids = [*([] if grid is None else [grid]), *find_grids(neighbours)]
    count = 0
    if len(neighbours.rank) <= ENTRIES_LIMIT:
        count = min(BISECTIONS, 1 + _ENTRIES // max(len(neighbours.rank), 1))
    distance = _distances(slots, paths)
    for shape, chosen in _chosen_slots(slots, near_groups(slots, paths, ranks), ranks).items():
        host = slots.host_of_slot[chosen]
        group = slots.group[host]
        apart = np.where(host[1:] == host[:-1], 0.0, 1.0 + distance[group[:-1], group[1:]])
        for number, each in enumerate(grids):
            starts[f"blocks{number}, {shape}"] = slots.number(divide_along(chosen, apart, GridDivider(each)))
        divide = partial(divide_by_traffic, neighbours, chosen, apart)
        with ThreadPoolExecutor(max(1, min(count_threads(), count))) as pool:
            for number, divided in enumerate(pool.map(divide, range(seed, seed + count))):
                starts[f"bisection{number}, {shape}"] = slots.number(divided)
    if slots.is_whole:
        fewest = -(-ranks // slots.most_of_a_host)
        starts = {name: each for name, each in starts.items() if len(np.unique(slots.host_of_slot[each])) == fewest}
    return starts


def _chosen_slots(slots: RankSlots, groups: list[int], ranks: int) -> dict[str, npt.NDArray[np.uint32]]:
    """Return placements by name: `few hosts` fills host after host; `all hosts` spreads ranks evenly.

    Without free slots, and if ranks must occupy few hosts (`is_whole`), `all hosts` is left out.
    """
    in_order = slots_of_groups(slots, groups)
    chosen = {"few hosts": in_order[:ranks]}
    if slots.count > ranks and not slots.is_whole:
        of_host = in_order - slots.first_slot_of_host[slots.host_of_slot[in_order]]
        evenly = np.sort(np.lexsort((np.arange(len(in_order)), of_host))[:ranks])
        chosen["all hosts"] = in_order[evenly]
    return chosen


def divide_along(slots: npt.NDArray[np.uint32], strength: npt.NDArray[np.float64], divide: Divide) -> SlotOfRank:
    """Return a placement: divide slots and ranks into two parts, then each part, and so on.

    The slots are divided at the largest distance between adjacent slots. `divide` selects the ranks of the first part.

    Args:
        slots: uint32 [rank], sorted so that near slots are adjacent.
        strength: float64 [rank - 1], distance between each slot and the next slot; 0 on one host.
        divide: function that divides ranks.

    Source: Pellegrini, Roman, "Scotch: a software package for static mapping by dual recursive bipartitioning of
    process and architecture graphs", HPCN Europe 1996.
    """
    slot_of_rank = np.zeros(len(slots), np.uint32)
    pending = [(np.arange(len(slots)), 0, 0)]
    while pending:
        ranks, begin, depth = pending.pop()
        gaps = strength[begin : begin + len(ranks) - 1]
        if gaps.max(initial=0.0) <= 0:
            slot_of_rank[ranks] = slots[begin : begin + len(ranks)]
            continue
        # Divide at the largest distance. Of equal distances, choose the distance nearest to the middle.
        strongest = np.flatnonzero(gaps == gaps.max()) + 1
        size = int(strongest[np.argmin(np.abs(2 * strongest - len(ranks)))])
        is_first = divide(ranks, size, depth)
        pending += [(ranks[is_first], begin, depth + 1), (ranks[~is_first], begin + size, depth + 1)]
    return slot_of_rank


def divide_by_traffic(
    neighbours: Neighbours, slots: npt.NDArray[np.uint32], strength: npt.NDArray[np.float64], seed: int
) -> SlotOfRank:
    """Return a placement as `divide_along` does, with little traffic between the two parts of each division."""
    volume = neighbours.volume().astype(np.float64)
    arrays: tuple[npt.NDArray[Any], ...] = (neighbours.first, neighbours.rank, volume)
    kernels, place = load_kernels(), np.zeros(len(slots), np.uint32)
    graph = kernels.ffi.new("struct ibp_graph *", (len(slots), *map(kernels.pointer, arrays)))
    check_status(kernels.lib.ibp_divide(graph, kernels.pointer(strength), seed, kernels.pointer(place)))
    return slots[place]


class GridDivider:
    """A `Divide` function that cuts a block of the program's grid across the block's longest side."""

    def __init__(self, place: npt.NDArray[np.int64]) -> None:
        self._place = place

    def __call__(self, ranks: npt.NDArray[np.int64], size: int, _depth: int) -> npt.NDArray[np.bool_]:
        """Return the ranks in the first part, as described for `Divide`."""
        place = self._place[ranks]
        sides = np.ptp(place, axis=0)
        axes = sorted(range(place.shape[1]), key=lambda axis: (sides[axis], axis))
        order = np.lexsort([place[:, axis] for axis in axes])
        is_first = np.zeros(len(ranks), np.bool_)
        is_first[order[:size]] = True
        return is_first


def find_grids(neighbours: Neighbours) -> list[npt.NDArray[np.int64]]:
    """Return possible grids of the program; each grid is an array of the ranks' positions: int64 [rank, axis].

    Pairs of ranks that exchange most bytes are assumed to be neighbours in the grid. The rank numbers of two neighbours
    differ by 1, by the length of axis 0, or by the product of the lengths of axes 0 and 1. Successive ranks are
    adjacent along axis 0.
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
            axes, rest = [], np.arange(ranks)
            for stride in reversed(strides):
                place, rest = np.divmod(rest, stride)
                axes.append(place)
            found[tuple(strides)] = np.stack(axes[::-1], axis=1)
    return list(found.values())
