# SPDX-License-Identifier: Apache-2.0
"""Compute lower bounds, for any rank placement, on the largest time of a link direction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.graph_search import find_parts
from ibprof_converter.placement.placement_problem import Neighbours, PlacementProblem
from ibprof_converter.placement.swap_search import TimeBounds
from ibprof_converter.placement.switch_paths import NO_END, NO_LEAF, UNCOUNTED, SwitchPaths

_PATHS = 1 << 18
"""Largest number of paths that are in memory at the same time."""


def find_bounds(problem: PlacementProblem, known: float = np.inf) -> TimeBounds:
    """Return lower bounds, for any placement, on the largest link times.

    Args:
        known: largest time of a link direction with a known placement, in seconds. A smaller `known` makes
            `bottleneck_seconds` a tighter bound.
    """
    between = bound_max_seconds(problem)
    return TimeBounds(max(between, bound_host_seconds(problem), bound_kept_together(problem, known)), between)


def bound_kept_together(problem: PlacementProblem, known: float) -> float:
    """Return a lower bound, for any placement, on the largest time of a host's link direction.

    If the bytes from one rank to another need the time `known` on a host link, each better placement has both ranks on
    one host. Ranks that such pairs join form a group, which is on one host. In the best case, the other ranks on this
    host are those to which the group sends most bytes. All other bytes that the group sends pass the host's links.

    Args:
        known: largest link time of a known placement, in seconds; the returned bound is at most `known`.
    """
    neighbours, slots, paths = problem.neighbours, problem.slots, problem.paths
    own = slice(paths.between_switches, -1)
    if not np.isfinite(known) or not len(paths.seconds_per_byte[own]):
        return 0.0
    fastest = float(paths.seconds_per_byte[own].min())
    owner, other = neighbours.owner().astype(np.int64), neighbours.rank.astype(np.int64)
    sent = neighbours.sent.min(axis=1)  # [neighbour, rail], minimum over all rows (sets of rails)
    joined = (sent * fastest >= known).any(axis=1)
    pairs = np.column_stack([owner[joined], other[joined]])
    _, of_rank = np.unique(find_parts(problem.ranks, pairs), return_inverse=True)
    size, most = np.bincount(of_rank), slots.most_of_a_host
    if size.max(initial=0) > most:
        return known
    host_of_port = np.unique(np.column_stack([slots.host_of_slot, slots.port_of_slot]), axis=0)[:, 0]
    ports = int(np.bincount(host_of_port).max())
    outside = np.flatnonzero(of_rank[owner] != of_rank[other])
    least = 0.0
    for group, room, links in ((of_rank, most - size, ports), (np.arange(problem.ranks), (most - size)[of_rank], 1)):
        cells, cell = np.unique(group[owner[outside]] * problem.ranks + other[outside], return_inverse=True)
        sender = cells // problem.ranks
        for rail in range(sent.shape[1]):
            amount = np.bincount(cell, sent[outside, rail], len(cells))
            order = np.lexsort((-amount, sender))
            place = np.arange(len(order)) - np.searchsorted(sender[order], sender[order])
            apart = order[place >= room[sender[order]]]
            total = np.bincount(sender[apart], amount[apart], len(room))
            least = max(least, float(total.max()) * fastest / links)
    return min(known, least)


def bound_host_seconds(problem: PlacementProblem) -> float:
    """Return a lower bound, for any placement, on the largest time of a host's link direction.

    Let c be the largest number of slots of a host. A rank shares its host with at most c - 1 ranks; in the best case,
    with the neighbours that exchange most bytes. The rank's bytes to all other ranks pass the link of its port. In the
    best case, these bytes are divided evenly over all ports.
    """
    slots, neighbours, paths = problem.slots, problem.neighbours, problem.paths
    most_slots = int(np.bincount(slots.host_of_slot).max(initial=0))
    largest = 0.0
    for rail in range(len(paths.lid)):
        ports = np.concatenate([paths.out_of_port[rail], paths.into_port[rail]])
        ports = ports[ports != UNCOUNTED]
        if not len(ports):
            continue
        for amount in (neighbours.sent, neighbours.received):
            apart = _from_elsewhere(neighbours, amount[:, :, rail].min(axis=1), most_slots)
            least = max(float(apart.max(initial=0)), float(apart.sum()) / len(paths.lid[rail]))
            largest = max(largest, least * float(paths.seconds_per_byte[ports].min()))
    return largest


def bound_max_seconds(problem: PlacementProblem) -> float:
    """Return a lower bound, for any placement, on the largest time of a link direction between switches.

    Ranks on one leaf or on one host exchange no bytes over links between switches. For each slot, count the slots
    on the same leaf or the same host, including the slot itself. Let c be the largest count. Then a rank's bytes to
    at most c - 1 neighbours pass no link between switches. All other bytes pass such links:

    * Bytes to a rank pass the last link direction between switches on a path to the rank's port.
    * If all leaves except one leaf have too few slots, some ranks are on this leaf. The bytes of these ranks pass the
    leaf's uplinks.

    Returns:
        Seconds; 0 if all ranks fit on one leaf.
    """
    return max((_bound_of_rail(problem, rail) for rail in range(len(problem.paths.leaf_of_port))), default=0.0)


def _bound_of_rail(problem: PlacementProblem, rail: int) -> float:
    paths, slots, neighbours = problem.paths, problem.slots, problem.neighbours
    # The rails between two ranks depend on the ranks' ports: use the choice of ports with the fewest bytes on this
    # rail.
    sent, received = (amount[:, :, rail].min(axis=1) for amount in (neighbours.sent, neighbours.received))
    leaf_of_slot = paths.leaf_of_port[rail][slots.port_of_slot]
    slots_of_leaf = np.bincount(leaf_of_slot, minlength=paths.leaves)
    spared_of_leaf = _count_spared(leaf_of_slot, slots.host_of_slot, paths.leaves)
    rate = np.append(1 / paths.seconds_per_byte, 0.0)  # the last element is for `NO_END`
    most_slots = int(spared_of_leaf.max(initial=0))
    largest = 0.0
    if most_slots < problem.ranks and (paths.leaf_of_port[rail] != NO_LEAF).all():
        # For a lower bound, assume that each rank has the port with the highest rate.
        needed = float(_from_elsewhere(neighbours, received, most_slots).max(initial=0))
        largest = needed / _largest_rate_into_port(paths, rail, rate)
    for leaf in np.flatnonzero(slots_of_leaf[1:]) + 1:
        inside = int(slots_of_leaf[leaf])
        least_ranks = problem.ranks - (slots.count - inside)
        if least_ranks <= 0:
            continue
        members = np.flatnonzero(paths.leaf_of_port[rail] == leaf)
        _, into = _border_ends(paths, rail, np.arange(paths.leaves), members)
        out, _ = _border_ends(paths, rail, np.array([leaf]), np.arange(len(paths.lid[rail])))
        for amount, ends in ((received, into), (sent, out)):
            used = np.unique(ends[ends != NO_END])
            if len(used):
                least = np.sort(_from_elsewhere(neighbours, amount, int(spared_of_leaf[leaf])))[:least_ranks].sum()
                largest = max(largest, float(least) / float(rate[used].sum()))
    return largest


def _count_spared(leaf: npt.NDArray[np.uint32], host: npt.NDArray[np.uint32], leaves: int) -> npt.NDArray[np.int64]:
    """Return the largest count of any slot of each leaf: int64 [leaf].

    A slot's count is the number of slots on the same leaf or the same host, including the slot itself.

    Args:
        leaf, host: uint32 [slot], leaf and host of each slot.
        leaves: number of leaves.
    """
    behind, on_host = np.bincount(leaf, minlength=leaves), np.bincount(host)
    cell = host.astype(np.int64) * leaves + leaf
    cells, slots = np.unique(cell, return_counts=True)
    most = np.zeros(leaves, np.int64)
    np.maximum.at(most, cells % leaves, behind[cells % leaves] + on_host[cells // leaves] - slots)
    return most


def _from_elsewhere(neighbours: Neighbours, amount: npt.NDArray[np.int64], slots: int) -> npt.NDArray[np.int64]:
    """Return the bytes of each rank, except those of its `slots` - 1 neighbours with most bytes: int64 [rank].

    Args:
        amount: int64 [neighbour], bytes from (or to) each neighbour.
    """
    owner = neighbours.owner().astype(np.int64)
    order = np.lexsort((-amount, owner))
    position = np.arange(len(order)) - neighbours.first.astype(np.int64)[owner[order]]
    total = np.zeros(len(neighbours.first) - 1, np.int64)
    left = order[position >= slots - 1]
    np.add.at(total, owner[left], amount[left])
    return total


def _largest_rate_into_port(paths: SwitchPaths, rail: int, rate: npt.NDArray[np.float64]) -> float:
    """Return the largest total rate into a port.

    Sum over the distinct link directions that are the last between switches on a path to the port.
    """
    ports = paths.lid.shape[1]
    step = max(_PATHS // paths.leaves, 1)
    largest = 1e-300
    for begin in range(0, ports, step):
        these = np.arange(begin, min(begin + step, ports))
        _, last = _border_ends(paths, rail, np.arange(paths.leaves), these)
        in_order = np.sort(last, axis=0)
        again = np.zeros(in_order.shape, np.bool_)
        again[1:] = in_order[1:] == in_order[:-1]
        largest = max(largest, float(np.where(again, 0.0, rate[in_order]).sum(axis=0).max(initial=0.0)))
    return largest


def _border_ends(
    paths: SwitchPaths, rail: int, leaves: npt.NDArray[np.integer], ports: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first and the last link direction between switches on each path: int64 [leaf, port] each.

    `NO_END` marks a path without links between switches.
    """
    first, last = paths.borders(rail, np.repeat(leaves, len(ports)), np.tile(ports, len(leaves)))
    shape = (len(leaves), len(ports))
    return first.reshape(shape), last.reshape(shape)
