# SPDX-License-Identifier: Apache-2.0
"""Ranks that other ranks wait for: frequency and time of waiting, and the late rank's time outside MPI.

A rank that is late because it waited itself only passes its delay on. Such waiting is traced back through the sampled
calls to the rank that came late without waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.efficiency import elapsed_s, inside_s, overlaps_s
from ibprof.profile.profile_data import Profile
from ibprof.profile.row_choice import name_sites
from ibprof.waiting.wait_states import SplitCalls

MOST_LATE = 16
"""Number of listed late ranks."""

_MOST_STEPS = 4096
"""Maximum number of ranks that a delay is traced through."""

_MOST_ROWS = 4_000_000
"""Maximum number of traced parts of waiting over all steps: uncertain clocks make cycles of ranks."""


@dataclass(frozen=True, slots=True)
class LateRank:
    """A rank that other ranks wait for in one place.

    Attributes:
        rank: the late rank.
        host: host name of the late rank.
        operation, site, region: place where other ranks wait.
        share: share of the waiting ranks' calls in this place that end with the late rank, 0 to 1.
        late_s: mean waiting for the late rank in these calls, in seconds.
        wait_s: total waiting for the late rank, over all ranks, in seconds.
        passed_on_s: part of `wait_s` that reached ranks through other waiting ranks, in seconds.
        outside_s: the late rank's time outside MPI in the whole run, in seconds; None if unknown.
        others_outside_s: mean time outside MPI of all other ranks, in seconds; None if unknown.
    """

    rank: int
    host: str
    operation: str
    site: str
    region: str
    share: float
    late_s: float
    wait_s: float
    passed_on_s: float
    outside_s: float | None = None
    others_outside_s: float | None = None


def find_late_ranks(run: Profile, calls: SplitCalls, wait_s: npt.NDArray[np.float64]) -> tuple[LateRank, ...]:
    """Return the late ranks of each place, those with most waiting first.

    Args:
        calls: the profile's sampled calls, with their waiting.
        wait_s: waiting of each row of the profile's times; the samples of a place are scaled to it.
    """
    chosen = np.flatnonzero((calls.wait_ns > 0) & (calls.late >= 0) & (calls.most_ns - calls.least_ns <= calls.wait_ns))
    if not len(chosen):
        return ()
    columns = (calls.region, calls.operation, calls.site)
    place_key = np.stack([column[chosen] for column in columns])
    places, place = np.unique(place_key, axis=1, return_inverse=True)
    place = place.ravel()
    weight = calls.weight[chosen]
    guilty, amount, item = trace_back(calls, chosen)
    sampled = np.bincount(place, weights=weight * calls.wait_ns[chosen], minlength=places.shape[1])
    measured = np.zeros(places.shape[1])
    times = np.stack((run.times.region, run.times.operation, run.times.site))
    for number in range(places.shape[1]):
        measured[number] = wait_s[(times == places[:, number : number + 1]).all(axis=0)].sum()
    scale = np.where(sampled > 0, measured / np.maximum(sampled, 1), 0.0)
    ranks = int(max(guilty.max(), calls.rank.max())) + 1
    key = place[item] * ranks + guilty
    pairs, pair = np.unique(key, return_inverse=True)
    pair = pair.ravel()
    seconds = np.bincount(pair, weights=amount * weight[item] * scale[place[item]])
    direct = guilty == calls.late[chosen][item]
    passed = np.bincount(pair, weights=amount * weight[item] * scale[place[item]] * ~direct)
    # A call counts for the rank that caused most of its waiting.
    major = np.lexsort((amount, item))
    major = major[np.flatnonzero(np.diff(item[major], append=-1))]
    count = np.bincount(pair[major], weights=weight[item[major]], minlength=len(pairs))
    own = np.bincount(pair[major], weights=weight[item[major]] * amount[major], minlength=len(pairs))
    of_place = np.bincount(place, weights=weight, minlength=places.shape[1])
    hosts = {rank.rank: run.hosts[rank.host].name for rank in run.ranks}
    sites = name_sites(run)
    work = _find_work(run)
    nothing: tuple[float | None, float | None] = (None, None)
    found = []
    for number in np.argsort(-seconds)[:MOST_LATE].tolist():
        at, rank = divmod(int(pairs[number]), ranks)
        region, operation, site = places[:, at].tolist()
        found.append(
            LateRank(
                rank=rank,
                host=hosts.get(rank, ""),
                operation=run.operations[operation],
                site=sites[site],
                region=run.regions[region],
                share=float(count[number] / of_place[at]),
                late_s=float(own[number] / count[number]) * 1e-9 if count[number] else 0.0,
                wait_s=float(seconds[number]),
                passed_on_s=float(passed[number]),
                outside_s=work.get(rank, nothing)[0],
                others_outside_s=work.get(rank, nothing)[1],
            )
        )
    return tuple(found)


def trace_back(
    calls: SplitCalls, chosen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the ranks that caused the waiting of chosen calls.

    While a rank waited in a sampled call, it cannot have been late itself: other ranks' waiting in that time counts for
    the rank that it waited for, and so on.

    Returns:
        Rank, nanoseconds and index into `chosen` of each cause; a call's nanoseconds sum to its waiting.
    """
    # Waiting of each rank, in the order of time: calls are ordered by rank, then enter time.
    waits = np.flatnonzero((calls.wait_ns > 0) & (calls.late >= 0))
    begin, end = calls.enter_ns[waits], calls.enter_ns[waits] + calls.wait_ns[waits]
    rank = calls.rank[waits].astype(np.int64)
    ranks = int(max(rank.max(initial=0), calls.late.max(initial=0))) + 1
    first_of = np.searchsorted(rank, np.arange(ranks))
    after_of = np.searchsorted(rank, np.arange(ranks), side="right")
    found: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int64]]] = []
    item = np.arange(len(chosen))
    who = calls.late[chosen].astype(np.int64)
    since, until = calls.enter_ns[chosen], calls.enter_ns[chosen] + calls.wait_ns[chosen]
    span = int(max(end.max(initial=0) - begin.min(initial=0), 1)) + 2
    low = int(begin.min(initial=0))
    keys = rank * span + (begin - low) if len(rank) else rank
    traced = 0
    for _ in range(_MOST_STEPS):
        traced += len(item)
        if not len(item) or traced > _MOST_ROWS:
            break
        # Find the rank's last waiting that begins before the end of the interval.
        last = np.searchsorted(keys, who * span + np.clip(until - low, 0, span - 1)) - 1
        there = (last >= first_of[who]) & (last < after_of[who])
        at = np.where(there, last, 0)
        starts = np.where(there, np.maximum(begin[at], since), until) if len(begin) else until
        ends = np.where(there, np.clip(end[at], starts, until), until) if len(begin) else until
        none = ~there | (ends <= starts)
        # After this waiting, or without one, the rank itself was late.
        lateness = np.where(none, until - since, until - ends)
        found.append((who, lateness.astype(np.float64), item))
        passes = ~none
        inner = passes & (ends > starts)
        earlier = passes & (starts > since)
        next_who = np.concatenate([calls.late[waits[at[inner]]].astype(np.int64), who[earlier]])
        next_since = np.concatenate([starts[inner], since[earlier]])
        next_until = np.concatenate([ends[inner], starts[earlier]])
        item = np.concatenate([item[inner], item[earlier]])
        who, since, until = next_who, next_since, next_until
    if len(item):  # a cycle of ranks that wait for each other, because of clock errors
        found.append((who, (until - since).astype(np.float64), item))
    guilty, amount, of_item = (np.concatenate([part[each] for part in found]) for each in range(3))
    some = amount > 0
    return guilty[some], amount[some], of_item[some]


def _find_work(run: Profile) -> dict[int, tuple[float, float]]:
    """Return the time of each rank outside MPI, and the mean of the other ranks; empty without times."""
    timed = [rank for rank in run.ranks if rank.has_times and rank.stop_ns and rank.rank < run.world_size]
    if len(timed) < 2:
        return {}
    spans = np.array([elapsed_s(rank) for rank in timed])
    outside = np.maximum(spans - (inside_s(run, timed).sum(axis=1) - overlaps_s(timed)), 0)
    others = (outside.sum() - outside) / (len(timed) - 1)
    return {
        rank.rank: pair for rank, pair in zip(timed, zip(outside.tolist(), others.tolist(), strict=True), strict=True)
    }
