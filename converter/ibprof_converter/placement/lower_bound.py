# SPDX-License-Identifier: Apache-2.0
"""A time that no placement can go below: what the tables and the room near each host leave to no choice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.placement.placement_problem import Neighbours, Problem
from ibprof_converter.placement.switch_paths import NO_GATE, Paths

_NOTHING = -1


def bound_max_seconds(problem: Problem) -> float:
    """Give a lower bound of the largest time of a link end between switches, over all placements.

    Of the bytes that a rank receives, all but those of its c - 1 greatest neighbours come from behind other gates
    (switches with hosts), c being the seats behind the gate with the most seats. They come

    * down the last link ends of the paths to its host, which are given by the tables;
    * with those of as many other ranks as find no seat behind other gates, into its gate; likewise what they send, out.

    Returns:
        Seconds; 0 where all ranks fit behind one gate.
    """
    return max(
        (_bound_of_rail(problem, rail) for rail in range(len(problem.paths.gate))),
        default=0.0,
    )


def _bound_of_rail(problem: Problem, rail: int) -> float:
    paths, sites, neighbours = problem.paths, problem.sites, problem.neighbours
    # Which rails a pair takes depends on its hosts: this many bytes take this one wherever they are.
    sent, received = (amount[:, :, rail].min(axis=1) for amount in (neighbours.sent, neighbours.received))
    room = np.bincount(paths.gate[rail][sites.of_seat], minlength=paths.gates)
    first, last = _border_ends(paths, rail)
    rate = np.append(1 / paths.seconds_per_byte, 0.0)  # a last one for `_NOTHING`
    into_host = _add_up_distinct(last, rate)
    most_seats = int(room.max(initial=0))
    greatest = 0.0
    if most_seats < problem.ranks and (paths.gate[rail] != NO_GATE).all():
        # The best host there is for each rank: the one with the most ways in.
        needed = float(_from_elsewhere(neighbours, received, most_seats).max(initial=0))
        greatest = needed / float(into_host.max(initial=1e-300))
    for gate in np.flatnonzero(room[1:]) + 1:
        must_sit_here = problem.ranks - (sites.seats - int(room[gate]))
        if must_sit_here <= 0:
            continue
        members = paths.gate[rail] == gate
        for amount, ends in ((received, last[:, members]), (sent, first[gate])):
            used = np.unique(ends[ends != _NOTHING])
            if len(used):
                least = np.sort(_from_elsewhere(neighbours, amount, int(room[gate])))[:must_sit_here].sum()
                greatest = max(greatest, float(least) / float(rate[used].sum()))
    return greatest


def _from_elsewhere(neighbours: Neighbours, amount: npt.NDArray[np.int64], seats: int) -> npt.NDArray[np.int64]:
    """Add up the bytes of each rank without those of its `seats` - 1 greatest neighbours: int64 [rank]."""
    owner = neighbours.owner().astype(np.int64)
    order = np.lexsort((-amount, owner))
    place = np.arange(len(order)) - neighbours.first.astype(np.int64)[owner[order]]
    total = np.zeros(len(neighbours.first) - 1, np.int64)
    left = order[place >= seats - 1]
    np.add.at(total, owner[left], amount[left])
    return total


def _border_ends(paths: Paths, rail: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Give the first and the last link end of each path: int64 [gate, host], `_NOTHING` where a path has none."""
    cells = paths.gates * paths.gate.shape[1]
    bounds = paths.first[rail * cells : (rail + 1) * cells + 1].astype(np.int64)
    ends = np.append(paths.ends.astype(np.int64), paths.no_route)
    has_some = np.diff(bounds) > 0
    first = np.where(has_some, ends[bounds[:-1]], paths.no_route).reshape(paths.gates, -1)
    last = np.where(has_some, ends[bounds[1:] - 1], paths.no_route).reshape(paths.gates, -1)
    for each in (first, last):
        each[each == paths.no_route] = _NOTHING
    return first, last


def _add_up_distinct(ends: npt.NDArray[np.int64], value: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Add up the values of the different ends in each column."""
    in_order = np.sort(ends, axis=0)
    again = np.zeros(in_order.shape, np.bool_)
    again[1:] = in_order[1:] == in_order[:-1]
    total: npt.NDArray[np.float64] = np.where(again, 0.0, value[in_order]).sum(axis=0)
    return total
