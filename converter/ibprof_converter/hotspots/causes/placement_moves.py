# SPDX-License-Identifier: Apache-2.0
"""Effect of another rank placement: the hosts' traffic is moved from host to host, and compared with chance."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.exact_sums import find_distinct
from ibprof_converter.hotspots.causes.narrowest_cut import narrowest_cut
from ibprof_converter.hotspots.causes.situation import PairBytes, Situation
from ibprof_converter.placement.placement_problem import RAIL_LIMIT, PlacementProblem, SlotOfRank, find_neighbours
from ibprof_converter.placement.slots import RankSlots, assign_slots, slots_on_hosts
from ibprof_converter.placement.starting_placements import fabric_aware_slots, packed_slots, random_slots
from ibprof_converter.placement.swap_search import search
from ibprof_converter.placement.switch_paths import find_switch_paths
from ibprof_converter.traffic.adapter_policies import SPREAD
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.rail_policies import SPLIT
from ibprof_converter.traffic.traffic_data import ALL, NO_LID, RankTraffic

_SECONDS = 0.4
_SEED = 1
_RANDOM_SEEDS = 5

PAIRS_LIMIT = 1_000_000
"""Pairs of hosts beyond which a search takes longer than a report may."""


@dataclass(frozen=True, slots=True)
class PlacementMove:
    """Another placement.

    Attributes:
        after: the situation with it.
        hosts: number of hosts whose traffic is elsewhere now.
        random_seconds: median of the largest times of a few random placements.
        random_cut_seconds: median of the times of the narrowest cut with them.
    """

    after: Situation
    hosts: int
    random_seconds: float
    random_cut_seconds: float


def try_moves(situation: Situation, own_hosts_only: bool) -> PlacementMove | None:
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
    rails = slots.rails_among(situation.subnets)
    demand = _as_demand(rank_of[source[known]], rank_of[destination[known]], situation.flows.bytes[known], len(talking))
    problem = PlacementProblem(
        find_neighbours(demand, SPLIT, slots.rails, len(rails)), slots, find_switch_paths(rails, slots.lid)
    )
    present = slots_on_hosts(slots, talking.astype(np.int32))
    if present is None:
        return None
    starts = [
        present,
        packed_slots(slots, len(talking)),
        *fabric_aware_slots(problem.neighbours, slots, problem.paths).values(),
    ]
    found = search(problem, starts, _SEED, _SECONDS)

    def moved(slot_of_rank: SlotOfRank) -> Situation:
        return situation.changed(flows=_move(situation, rank_of, slots.host[slots.host_of_slot[slot_of_rank]]))

    randoms = [moved(random_slots(slots, len(talking), seed)) for seed in range(_RANDOM_SEEDS)]
    cuts = [narrowest_cut(each) for each in randoms]
    best, after = found.slot_of_rank, moved(found.slot_of_rank)
    if situation.is_adaptive:  # the search goes by static routes
        others = [(each, moved(each)) for each in starts]
        best, after = min([(best, after), *others], key=lambda one: one[1].max_seconds)
    host = slots.host[slots.host_of_slot[best]]
    return PlacementMove(
        after=after,
        hosts=int((host != talking).sum()),
        random_seconds=statistics.median(each.max_seconds for each in randoms),
        random_cut_seconds=statistics.median(cut.seconds if cut else 0.0 for cut in cuts),
    )


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
