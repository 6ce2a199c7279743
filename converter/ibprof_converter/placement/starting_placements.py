# SPDX-License-Identifier: Apache-2.0
"""Placements to start from, and to compare with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.placement.placement_problem import Neighbours, Seats
from ibprof_converter.placement.slots import Sites
from ibprof_converter.placement.switch_paths import Paths
from ibprof_converter.traffic.patterns import shuffle


def packed_order(sites: Sites, ranks: int) -> Seats:
    """Fill host after host, leaf switch after leaf switch, as `--placement packed`."""
    return np.arange(min(ranks, sites.seats), dtype=np.uint32)


def spread_order(sites: Sites, ranks: int) -> Seats:
    """Deal seats out, one leaf switch after the other, as `--placement spread`; hosts fill up evenly."""
    seats = np.arange(sites.seats)
    of_host = seats - np.searchsorted(sites.of_seat, sites.of_seat)
    host_of_leaf = sites.of_seat - np.searchsorted(sites.group, sites.group)[sites.of_seat]
    order = np.lexsort((sites.group[sites.of_seat], host_of_leaf, of_host))
    return order[:ranks].astype(np.uint32)


def random_order(sites: Sites, ranks: int, seed: int) -> Seats:
    """Draw seats, with one seat a host the hosts of `--placement random:SEED`."""
    return shuffle(sites.seats, seed)[:ranks].astype(np.uint32)


def grouped_order(neighbours: Neighbours, room: list[int]) -> npt.NDArray[np.int64]:
    """Put ranks that exchange much next to each other.

    Group after group is grown, each by the rank that exchanges most with those already in it, the first one by the rank
    that exchanges most with all groups before it. Where no rank is left that exchanges anything with a group, the next
    one is begun, as long as there is room for it.

    Args:
        neighbours: the traffic.
        room: size of each group, in turn; together at least as large as there are ranks.

    Returns:
        int64 [rank], the place of each rank, counted through all groups.
    """
    ranks = len(neighbours.first) - 1
    volume = neighbours.volume().astype(np.float64)
    first = neighbours.first.astype(np.int64)
    pull_of_all = np.zeros(ranks)
    free = np.ones(ranks, np.bool_)
    place_of_rank = np.zeros(ranks, np.int64)
    spare = sum(room) - ranks
    begin = 0
    for size in room:
        pull = np.zeros(ranks)
        for place in range(min(size, int(free.sum()))):
            pulled = bool((pull[free] > 0).any())
            if place and not pulled and spare >= size - place:
                spare -= size - place
                break
            rank = int(np.argmax(np.where(free, pull if pulled else pull_of_all, -1.0)))
            free[rank] = False
            place_of_rank[rank] = begin + place
            here = slice(first[rank], first[rank + 1])
            pull[neighbours.rank[here]] += volume[here]
            pull_of_all[neighbours.rank[here]] += volume[here]
        begin += size
    return place_of_rank


def near_groups(sites: Sites, paths: Paths, ranks: int) -> list[int]:
    """Bring groups of hosts into an order in which those that hold the ranks come first and are near to each other.

    From each group, the others are taken in the order of their distance (hops of the routes, then their number). The
    order whose first groups, with room for all ranks, reach least far is taken, and of equal ones that with the fewest.
    """
    room = np.diff(sites.first_seat_of_group.astype(np.int64))
    distance = _distances(sites, paths)
    best: tuple[float, int, list[int]] | None = None
    for start in range(len(room)):
        order = np.lexsort((np.arange(len(room)), distance[start], np.arange(len(room)) != start))
        count = 1 + int(np.searchsorted(np.cumsum(room[order]), ranks))
        chosen = order[:count]
        reach = float((distance[start, chosen] * room[chosen]).sum())
        if best is None or (reach, count) < best[:2]:
            best = (reach, count, order.tolist())
    return best[2] if best else []


def _distances(sites: Sites, paths: Paths) -> npt.NDArray[np.float64]:
    """Give the mean number of link ends, over the rails, between groups of hosts: float64 [group, group]."""
    groups = int(sites.group.max(initial=0)) + 1
    member = np.searchsorted(sites.group, np.arange(groups))  # the first host stands for all
    total = np.zeros((groups, groups))
    for rail in range(len(paths.gate)):
        total += paths.lengths(rail)[paths.gate[rail, member]][:, member]
    return total / len(paths.gate)


def seats_of_groups(sites: Sites, groups: list[int]) -> npt.NDArray[np.uint32]:
    """Give the seats of groups, in the order given."""
    first = sites.first_seat_of_group
    return np.concatenate([np.arange(first[group], first[group + 1], dtype=np.uint32) for group in groups])


def aware_orders(neighbours: Neighbours, sites: Sites, paths: Paths) -> dict[str, Seats]:
    """Make placements that know the fabric: `near`, on leaf switches near to each other in the ranks' own order, and
    `grouped`, on the same with ranks together that exchange much.
    """
    ranks = len(neighbours.first) - 1
    groups = near_groups(sites, paths, ranks)
    seats = seats_of_groups(sites, groups)
    room = np.diff(sites.first_seat_of_group.astype(np.int64))[groups].tolist()
    return {"near": seats[:ranks].copy(), "grouped": seats[grouped_order(neighbours, room)]}
