# SPDX-License-Identifier: Apache-2.0
"""Shares of regions in a run's time in MPI, waiting, and link time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibprof.profile.efficiency import Waiting, find_efficiencies, inside_s
from ibprof.profile.profile_data import Profile

if TYPE_CHECKING:
    from ibprof.waiting.wait_split import MeasuredWaiting


@dataclass(frozen=True, slots=True)
class RegionShare:
    """The share of a region in a run.

    Attributes:
        mpi_s: time inside MPI calls, mean over all ranks, in seconds.
        wait_s: part of `mpi_s` spent waiting for other ranks, in seconds; an estimate without sampled calls.
        line_rate_s: time of the region's most loaded link direction at line rate, in seconds; None if unknown.
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
    """Return the regions with time in MPI, those with most first; empty if no rank was timed.

    The estimated waiting in a region is the larger of two figures, as for the run: the slowest rank's excess of time
    outside MPI over the mean, and the waiting in the region's collectives.

    Args:
        collectives: waiting by site.
        line_rates: seconds of each region's most loaded link direction at line rate; None without a fabric.
        measured: measured waiting, which replaces both figures; None without sampled calls.
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
