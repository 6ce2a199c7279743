# SPDX-License-Identifier: Apache-2.0
"""The parts of a run's time in MPI, of its waiting and of its links' time that its regions take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibprof.profile.efficiency import find_efficiencies, inside_s
from ibprof.profile.profile_data import Profile
from ibprof.profile.quickest_ranks import Waiting

if TYPE_CHECKING:
    from ibprof.waiting.wait_split import MeasuredWaiting


@dataclass(frozen=True, slots=True)
class RegionShare:
    """Part of a run that a region takes.

    Attributes:
        name: of the region.
        mpi_s: time inside MPI calls, mean over all ranks.
        wait_s: of that, waiting for other ranks; an estimate where no calls were sampled.
        line_rate_s: what the region's most loaded link direction needs at line rate; None where that is not known.
    """

    name: str
    mpi_s: float
    wait_s: float
    line_rate_s: float | None = None


def share_by_region(
    run: Profile,
    collectives: tuple[Waiting, ...],
    line_rates: Mapping[str, float] | None = None,
    measured: MeasuredWaiting | None = None,
) -> tuple[RegionShare, ...]:
    """Return the regions with time in MPI, those with most first; empty where no rank was timed.

    Waiting in a region is the larger of two figures, as for the run: how much longer its slowest rank is outside of MPI
    than the mean, and the waiting in its collectives.

    Args:
        run: the profile.
        collectives: waiting by site.
        line_rates: seconds of each region's most loaded link direction at line rate; None where no fabric is known.
        measured: waiting as measured, in place of both figures; None where no calls were sampled.
    """
    timed = [rank for rank in run.ranks if rank.has_times and rank.rank < run.world_size]
    if not timed:
        return ()
    inside = inside_s(run, timed).sum(axis=0) / len(timed)
    imbalance = {
        each.region: (each.outside_max_s - each.outside_mean_s) * each.ranks / len(timed)
        for each in find_efficiencies(run).regions
    }
    if measured:
        of_regions = (measured.total(measured.shares.region == number) for number in range(len(run.regions)))
        waits = {name: total.wait_s / len(timed) for name, total in zip(run.regions, of_regions, strict=True)}
    else:
        waits = {
            name: max(
                imbalance.get(name, 0.0),
                sum(each.waiting_s for each in collectives if each.region == name) / len(timed),
            )
            for name in run.regions
        }
    shares = [
        RegionShare(
            name=name,
            mpi_s=float(mpi_s),
            wait_s=min(waits[name], float(mpi_s)),
            line_rate_s=line_rates.get(name) if line_rates else None,
        )
        for name, mpi_s in zip(run.regions, inside, strict=True)
        if mpi_s > 0
    ]
    return tuple(sorted(shares, key=lambda each: -each.mpi_s))
