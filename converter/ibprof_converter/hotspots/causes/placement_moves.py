# SPDX-License-Identifier: Apache-2.0
"""Try other placements as remedies: move ranks to other slots, or all traffic of a host to another host."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof.profile.row_arrays import find_distinct
from ibprof.text.quantities import format_seconds
from ibprof_converter.hotspots.causes.load_cause import GAIN, HOSTS, PLACEMENT, RANK_ORDER, Change, name_end
from ibprof_converter.hotspots.causes.situation import PairBytes, Situation
from ibprof_converter.placement.slots import RAIL_LIMIT, RankSlots, assign_slots, slots_on_hosts
from ibprof_converter.traffic.adapter_policies import SPLIT, SPREAD
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.traffic_data import NO_LID, RankTraffic

if TYPE_CHECKING:
    from ibprof_converter.placement.placement_problem import PlacementProblem, SlotOfRank

_SECONDS_PER_RANK, _LEAST_SECONDS = 0.4 / 64, 0.1
"""The time limit of a search, in seconds, is proportional to the number of placed ranks or hosts."""

_MOST_SECONDS_OF_RANKS, _MOST_SECONDS_OF_HOSTS = 4.0, 0.4

_PATIENCE_S = 2.0
"""A search may exceed its time limit by this number of seconds, so that a busy machine finds the same result."""

_SEED = 1
_RANDOM_SEEDS = 5

PAIRS_LIMIT = 1_000_000
"""Largest number of sender-receiver pairs; a search with more pairs takes too long for a report."""


@dataclass(frozen=True, slots=True)
class PlacementMove:
    """A placement that a search found.

    Attributes:
        after: the situation with this placement.
        random_seconds: median, over a few random placements, of the largest link time.
    """

    after: Situation
    random_seconds: float


def try_placements(situation: Situation) -> Iterator[Change]:
    """Try another order of the ranks on the job's present hosts, then a placement on any hosts."""
    ranks = situation.ranks
    slots = ranks.slots.most_of_a_host if ranks else 1
    why_not = ""
    if slots == 1 and not _is_network_busier(situation):
        why_not = "hosts' own links are about as busy as the links between switches"
    elif (pairs := len(ranks.bytes if ranks and slots > 1 else situation.flows.bytes)) > PAIRS_LIMIT:
        why_not = f"{pairs:,} pairs of sender and receiver; the limit is {PAIRS_LIMIT:,}"
    if why_not:
        yield Change(PLACEMENT, RANK_ORDER, "another rank placement", None, why_not=f"not tried: {why_not}")
        return
    order = reorder_ranks(situation) if slots > 1 else move_hosts(situation, own_hosts_only=True)
    yield _as_change(situation, order, RANK_ORDER, "in another order on the same hosts", " --hosts own")
    groupings = [situation, order.after] if slots > 1 and order else [situation]
    tried = [move_hosts(each, own_hosts_only=False) for each in groupings if _is_network_busier(each)]
    if tried:
        best = min((each for each in tried if each), key=lambda each: each.after.max_seconds, default=None)
        options, free = f" --slots {slots}" if slots > 1 else "", "; --hosts FILE names the hosts that are free"
        yield _as_change(situation, best, HOSTS, "on any hosts of this fabric (free or not)", options, free)


def _is_network_busier(situation: Situation) -> bool:
    """Return true if the largest time of a host link is at most 80% of the largest time of a link between switches."""
    return situation.max_host_seconds <= GAIN * situation.max_switch_seconds


def _as_change(
    situation: Situation, move: PlacementMove | None, kind: str, where: str, options: str, more: str = ""
) -> Change:
    what = f"ranks {where}"
    if move is None:
        return Change(PLACEMENT, kind, what, None, why_not="nothing can be moved")
    own, own_after = situation.max_host_seconds, move.after.max_host_seconds
    is_same = math.isclose(own, own_after, rel_tol=1e-3)
    then = "" if is_same else f" now, and {format_seconds(own_after)} with this placement"
    return Change(
        cause=PLACEMENT,
        kind=kind,
        what=what,
        after=move.after,
        at=(name_end(situation, situation.most_loaded()),),
        evidence=(
            f"with another placement {where.removeprefix('in another order ')}, the most loaded link needs "
            f"{format_seconds(move.after.max_seconds)}; with random placements, it needs "
            f"{format_seconds(move.random_seconds)} (median)",
            f"hosts' own links need {format_seconds(own)}{then}",
        ),
        advice=f"run ibprof-place{options}, and use its rank file{more}",
        change=f"ibprof-place LST... TRAFFIC{options}",
    )


def reorder_ranks(situation: Situation) -> PlacementMove | None:
    """Search for a better placement of ranks on their present slots.

    Returns:
        The best placement found; None if ranks are unknown, or if there are too many flows or rails for a search.
    """
    ranks = situation.ranks
    if ranks is None or len(ranks.bytes) > PAIRS_LIMIT or ranks.slots.lid.shape[1] > RAIL_LIMIT:
        return None
    from ibprof_converter.placement.starting_placements import starting_placements  # noqa: PLC0415  (imported only for a search)

    problem = _pose(ranks.as_demand(), ranks.slots, situation)
    starts = [
        ranks.slot_of_rank,
        *starting_placements(problem.neighbours, ranks.slots, problem.paths, _SEED).values(),
    ]
    return _search(situation, problem, starts, _MOST_SECONDS_OF_RANKS, situation.reordered)


def move_hosts(situation: Situation, own_hosts_only: bool) -> PlacementMove | None:
    """Search for a better placement by moving all traffic of a host to another host.

    Args:
        own_hosts_only: true to use only hosts that send or receive; false to also use all hosts with a port on every
            rail.

    Returns:
        The best placement found; None if there are fewer than two hosts or too many pairs.
    """
    from ibprof_converter.placement.starting_placements import fabric_aware_slots, packed_slots  # noqa: PLC0415  (imported only for a search)

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
    rank = rank_of.astype(np.int32)
    ends = rank[source[known]], rank[destination[known]]
    demand = RankTraffic.without_regions(*ends, situation.flows.bytes[known], len(talking), "flows of the model")
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

    return _search(situation, problem, starts, _MOST_SECONDS_OF_HOSTS, moved)


def _pose(demand: RankTraffic, slots: RankSlots, situation: Situation) -> PlacementProblem:
    from ibprof_converter.placement.placement_problem import PlacementProblem, find_neighbours  # noqa: PLC0415  (imported only for a search)
    from ibprof_converter.placement.switch_paths import find_switch_paths  # noqa: PLC0415  (imported only for a search)

    rails = slots.rails_among(situation.subnets)
    neighbours = find_neighbours(demand, SPLIT, slots.rails, len(rails))
    return PlacementProblem(neighbours, slots, find_switch_paths(rails, slots.lid))


def _search(
    situation: Situation,
    problem: PlacementProblem,
    starts: list[SlotOfRank],
    most_seconds: float,
    moved: Callable[[SlotOfRank], Situation],
) -> PlacementMove:
    """Search from `starts`, and return the best placement; `moved` returns the situation after a given placement."""
    from ibprof_converter.placement.starting_placements import random_slots  # noqa: PLC0415  (imported only for a search)
    from ibprof_converter.placement.swap_search import search  # noqa: PLC0415  (imported only for a search)

    seconds = min(max(_LEAST_SECONDS, _SECONDS_PER_RANK * problem.ranks), most_seconds)
    best = search(problem, starts, _SEED, seconds, patience=_PATIENCE_S).slot_of_rank
    after = moved(best)
    if situation.is_adaptive:  # the search used static routes: with adaptive routing, a start may be better
        after = min([after, *map(moved, starts)], key=lambda each: each.max_seconds)
    randoms = [moved(random_slots(problem.slots, problem.ranks, seed)) for seed in range(_RANDOM_SEEDS)]
    return PlacementMove(after, float(np.median([each.max_seconds for each in randoms])))


def _one_slot_each(hosts: Hosts, chosen: npt.NDArray[np.integer], count: int) -> RankSlots:
    """Return a slot for each host; the slot uses all adapters of the host if the search supports several adapters."""
    slots = dict.fromkeys(chosen.tolist(), 1)
    if hosts.has_several and hosts.ports.shape[2] <= RAIL_LIMIT:
        try:
            return assign_slots(hosts, slots, count, SPREAD)
        except UsageError:
            pass
    return assign_slots(hosts, slots, count)


def _move(situation: Situation, rank_of: npt.NDArray[np.int64], host: npt.NDArray[np.int32]) -> PairBytes:
    """Return the flows after each host's traffic moved to another host, and stayed on its rail if possible.

    Bytes of the old host's adapter n use adapter (n mod m) of the new host, which has m adapters.
    """
    flows, hosts = situation.flows, situation.hosts
    new = []
    lids = (flows.source_lid, flows.destination_lid)
    for old, at, number in zip(lids, situation.flow_hosts, situation.flow_adapters, strict=True):
        target = np.where((at == NO_HOST) | (rank_of[at] < 0), at, host[rank_of[at]])
        there = hosts.port(target, flows.rail, number)
        new.append(np.where((target != at) & (there != NO_LID), there, old))
    return PairBytes.add_up(flows.rail, new[0], new[1], flows.bytes)
