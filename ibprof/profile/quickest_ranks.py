# SPDX-License-Identifier: Apache-2.0
"""Estimate of the time that ranks wait for others inside collective calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibprof.profile.profile_data import Profile
from ibprof.profile.row_choice import name_sites

MUTUAL = frozenset(
    {
        *("BARRIER", "ALLREDUCE", "ALLGATHER", "ALLGATHERV", "ALLTOALL", "ALLTOALLV", "ALLTOALLW"),
        *("REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"),
    }
)
"""Blocking collectives that no rank can leave before all ranks have entered: each result depends on all ranks."""

ASSUMPTION = (
    "estimate: at each site of a collective, the quickest rank is taken to wait for nobody, and transfer "
    "to take as long on all ranks. If other ranks come last in other rounds, waiting is longer than this"
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Time inside one operation at one site and in one region, split by the quickest rank.

    Attributes:
        calls: number of calls of each rank.
        ranks: number of calling ranks.
        time_s: time in the calls over all ranks, in seconds.
        waiting_s: waiting part of `time_s`, in seconds.
        transfer_s: other part of `time_s`, in seconds.
        quickest: rank with the smallest time.
    """

    region: str
    operation: str
    site: str
    calls: int
    ranks: int
    time_s: float
    waiting_s: float
    transfer_s: float
    quickest: int


def estimate_waiting(run: Profile) -> tuple[Waiting, ...]:
    """Split the time of the collectives of `MUTUAL`, those with most waiting first.

    A site counts only if several ranks call it equally often: only then is it known which calls belong together. Rooted
    collectives and messages are left out: their quickest rank can leave before others enter.
    """
    times, sites = run.times, name_sites(run)
    mutual = [number for number, name in enumerate(run.operations) if name in MUTUAL]
    groups: dict[tuple[int, int, str], dict[int, list[int]]] = {}
    for row in np.flatnonzero(np.isin(times.operation, mutual) & (times.calls > 0)).tolist():
        key = int(times.region[row]), int(times.operation[row]), sites[times.site[row]]
        of_rank = groups.setdefault(key, {}).setdefault(int(times.rank[row]), [0, 0])
        of_rank[0] += int(times.calls[row])
        of_rank[1] += int(times.time_ns[row])
    found = []
    for (region, operation, site), ranks in groups.items():
        calls = {count for count, _ in ranks.values()}
        if len(ranks) < 2 or len(calls) > 1:
            continue
        quickest = min(ranks, key=lambda rank: (ranks[rank][1], rank))
        total, transfer = sum(ns for _, ns in ranks.values()), ranks[quickest][1] * len(ranks)
        found.append(
            Waiting(
                region=run.regions[region],
                operation=run.operations[operation],
                site=site,
                calls=calls.pop(),
                ranks=len(ranks),
                time_s=total * 1e-9,
                waiting_s=(total - transfer) * 1e-9,
                transfer_s=transfer * 1e-9,
                quickest=quickest,
            )
        )
    return tuple(sorted(found, key=lambda each: -each.waiting_s))
