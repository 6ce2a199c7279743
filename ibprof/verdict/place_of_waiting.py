# SPDX-License-Identifier: Apache-2.0
"""Where the other ranks wait for the one that is outside of MPI longest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibprof.profile.profile_data import Profile, Rank
from ibprof.profile.site_choice import name_sites

MOST = 0.5
"""Part of the waiting that a place needs to be named."""


@dataclass(frozen=True, slots=True)
class Place:
    """One operation at one site in one region, by name."""

    region: str
    operation: str
    site: str


def find_place_of_waiting(run: Profile, ranks: list[Rank], latest: int, waiting_s: float) -> Place | None:
    """Return where ranks are longer inside MPI than the latest one; None where no place has most of it.

    Args:
        run: the profile.
        ranks: those with times.
        latest: number of the rank that is outside of MPI longest.
        waiting_s: mean over ranks, for whatever reason.
    """
    times = run.times
    rows = np.isin(times.rank, [rank.rank for rank in ranks])
    keys = np.stack((times.region, times.operation, times.site))[:, rows]
    if not keys.size:
        return None
    places, place_of = np.unique(keys, axis=1, return_inverse=True)
    seconds = times.time_ns[rows].astype(np.float64) * 1e-9
    # The latest rank would be as long as the others in each place, did it not come last.
    share = np.where(times.rank[rows] == latest, -(len(ranks) - 1), 1)
    longer = np.bincount(place_of.ravel(), weights=seconds * share, minlength=places.shape[1])
    most = int(longer.argmax())
    if longer[most] <= MOST * waiting_s * len(ranks):
        return None
    region, operation, site = places[:, most].tolist()
    return Place(run.regions[region], run.operations[operation], name_sites(run)[site])
