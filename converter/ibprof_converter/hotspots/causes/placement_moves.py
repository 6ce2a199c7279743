# SPDX-License-Identifier: Apache-2.0
"""Effect of another placement: what hosts send is moved from host to host, or ranks from slot to slot."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.exact_sums import find_distinct
from ibprof_converter.hotspots.causes.job_flows import PairBytes
from ibprof_converter.hotspots.causes.situation import Situation
from ibprof_converter.placement.placement_problem import RAIL_LIMIT, PlacementProblem, SlotOfRank, find_neighbours
from ibprof_converter.placement.slots import RankSlots, assign_slots, slots_on_hosts
from ibprof_converter.placement.starting_placements import (
    fabric_aware_slots,
    packed_slots,
    random_slots,
    starting_placements,
)
from ibprof_converter.placement.swap_search import search
from ibprof_converter.placement.switch_paths import find_switch_paths
from ibprof_converter.traffic.adapter_policies import SPREAD
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.rail_policies import SPLIT
from ibprof_converter.traffic.traffic_data import ALL, NO_LID, RankTraffic

_SECONDS, _RANKS, _MOST_SECONDS = 0.4, 64, 4.0
"""Seconds set the work of a search for up to `_RANKS` ranks; with more ranks they grow in proportion, up to a limit."""

_SEED = 1
_RANDOM_SEEDS = 5

PAIRS_LIMIT = 1_000_000
"""Pairs of hosts beyond which a search takes longer than a report may."""


@dataclass(frozen=True, slots=True)
class PlacementMove:
    """Another placement.

    Attributes:
        after: the situation with it.
        random_seconds: median of the largest times of a few random placements.
    """

    after: Situation
    random_seconds: float


def reorder_ranks(situation: Situation) -> PlacementMove | None:
    """Search for a better placement of ranks on the slots that they have now.

    Returns:
        The best one found; None where ranks are not known, or their slots are too many for a search.
    """
    ranks = situation.ranks
    if ranks is None or len(ranks.bytes) > PAIRS_LIMIT or ranks.slots.lid.shape[1] > RAIL_LIMIT:
        return None
    problem = _pose(ranks.as_demand(), ranks.slots, situation)
    starts = [
        ranks.slot_of_rank,
        *starting_placements(problem.neighbours, ranks.slots, problem.paths, _SEED).values(),
    ]
    seconds = min(_MOST_SECONDS, _SECONDS * max(1.0, ranks.ranks / _RANKS))
    return _search(situation, problem, starts, seconds, situation.reordered)


def move_hosts(situation: Situation, own_hosts_only: bool) -> PlacementMove | None:
    """Search for a better placement of what the hosts send.

    Args:
        situation: as it is.
        own_hosts_only: whether only hosts that send or receive may be used, else all that are on every rail.

    Returns:
        The best one found; None where there is nothing to move or too much.
    """
    source, destination = situation.flow_hosts
    known = (source != NO_HOST) & (destination != NO_HOST) & (source != destination)
    talking = find_distinct(source[known], destination[known])
    if len(talking) < 2 or int(known.sum()) > PAIRS_LIMIT:
        return None
    rank_of = np.full(len(situation.hosts.name), -1, np.int64)
    rank_of[talking] = np.arange(len(talking))
    chosen = talking
    if not own_hosts_only:
        on_all = np.flatnonzero((situation.hosts.lid != NO_LID).all(axis=1))
        chosen = np.union1d(talking, on_all)
    slots = _one_slot_each(situation.hosts, chosen, len(talking))
    demand = _as_demand(rank_of[source[known]], rank_of[destination[known]], situation.flows.bytes[known], len(talking))
    problem = _pose(demand, slots, situation)
    present = slots_on_hosts(slots, talking.astype(np.int32))
    if present is None:
        return None
    starts = [
        present,
        packed_slots(slots, len(talking)),
        *fabric_aware_slots(problem.neighbours, slots, problem.paths).values(),
    ]

    def moved(slot_of_rank: SlotOfRank) -> Situation:
        return situation.changed(flows=_move(situation, rank_of, slots.host[slots.host_of_slot[slot_of_rank]]))

    return _search(situation, problem, starts, _SECONDS, moved)


def _pose(demand: RankTraffic, slots: RankSlots, situation: Situation) -> PlacementProblem:
    rails = slots.rails_among(situation.subnets)
    neighbours = find_neighbours(demand, SPLIT, slots.rails, len(rails))
    return PlacementProblem(neighbours, slots, find_switch_paths(rails, slots.lid))


def _search(
    situation: Situation,
    problem: PlacementProblem,
    starts: list[SlotOfRank],
    seconds: float,
    moved: Callable[[SlotOfRank], Situation],
) -> PlacementMove:
    """Search from some placements; `moved` returns the situation with one."""
    best = search(problem, starts, _SEED, seconds).slot_of_rank
    after = moved(best)
    if situation.is_adaptive:  # the search goes by static routes
        after = min([after, *map(moved, starts)], key=lambda each: each.max_seconds)
    randoms = [moved(random_slots(problem.slots, problem.ranks, seed)) for seed in range(_RANDOM_SEEDS)]
    return PlacementMove(after, statistics.median(each.max_seconds for each in randoms))


def _one_slot_each(hosts: Hosts, chosen: npt.NDArray[np.integer], count: int) -> RankSlots:
    """Return a slot for all that a host sends, which the search takes to be spread over its adapters, if it can."""
    slots = dict.fromkeys(chosen.tolist(), 1)
    if hosts.has_several and hosts.ports.shape[2] <= RAIL_LIMIT:
        try:
            return assign_slots(hosts, slots, count, SPREAD)
        except UsageError:
            pass
    return assign_slots(hosts, slots, count)


def _as_demand(
    source: npt.NDArray[np.int64], destination: npt.NDArray[np.int64], amount: npt.NDArray[np.uint64], ranks: int
) -> RankTraffic:
    nothing = np.zeros(len(source), np.int32)
    return RankTraffic(
        source=source.astype(np.int32),
        destination=destination.astype(np.int32),
        bytes=amount,
        messages=np.ones(len(source), np.uint64),
        region=nothing,
        operation=nothing,
        regions=(ALL,),
        operations=(ALL,),
        ranks=ranks,
        unmapped={},
        origin="pairs of hosts",
    )


def _move(situation: Situation, rank_of: npt.NDArray[np.int64], host: npt.NDArray[np.int32]) -> PairBytes:
    """Send every flow from and to the hosts that its hosts' traffic has moved to, on the same rail where it can.

    What left by the n-th adapter of a host leaves by the n-th of the other, modulo its number of adapters.
    """
    flows, hosts = situation.flows, situation.hosts
    new = []
    lids = (flows.source_lid, flows.destination_lid)
    for old, at, number in zip(lids, situation.flow_hosts, situation.flow_adapters, strict=True):
        target = np.where((at == NO_HOST) | (rank_of[at] < 0), at, host[rank_of[at]])
        there = hosts.port(target, flows.rail, number)
        new.append(np.where((target != at) & (there != NO_LID), there, old))
    return PairBytes.add_up(flows.rail, new[0], new[1], flows.bytes)
