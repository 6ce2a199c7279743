# SPDX-License-Identifier: Apache-2.0
"""The exchange #x of a recorded run: bytes between processes or hosts, by region and operation, and wall times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ibprof.profile.profile_data import Direction, Kind, Profile, Source

WHOLE = "*"
"""Stands for all regions together."""

HOSTS = "hosts"
RANKS = "ranks"


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """The exchange of one run.

    Attributes:
        name: of the profile.
        size: n, the problem's.
        processes: p, ranks in MPI_COMM_WORLD.
        exchanged: bytes by (region, operation), without regions that have none.
        seconds: wall time by region, of the rank with the longest; `WHOLE` for the run.
        notes: what was not recorded, a sentence each.
    """

    name: str
    size: float
    processes: int
    exchanged: dict[tuple[str, str], int]
    seconds: dict[str, float]
    notes: tuple[str, ...]

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of all visited regions, in order of time, longest first."""
        return tuple(sorted((each for each in self.seconds if each != WHOLE), key=lambda each: -self.seconds[each]))

    def bytes_in(self, region: str) -> int:
        """Return the bytes exchanged in one region; `WHOLE` for all."""
        return sum(amount for (where, _), amount in self.exchanged.items() if region in (where, WHOLE))


def choose_ends(profiles: Sequence[Profile]) -> str:
    """Return what bytes are counted between: hosts where any profile has several, else ranks."""
    return HOSTS if any(len(profile.hosts) > 1 for profile in profiles) else RANKS


def sum_exchange(profile: Profile, size: float, between: str) -> RecordedExchange:
    """Return the exchange of a run.

    Args:
        profile: of the run.
        size: n, of the solved problem.
        between: `HOSTS` excludes what stays on a host, `RANKS` only what a rank sends to itself.
    """
    counters = profile.counters
    place = np.full(profile.world_size + 1, -1, np.int64)
    for rank in profile.ranks:
        place[rank.rank] = rank.host if between == HOSTS else rank.rank
    notes = []
    if between == RANKS:
        place[:-1] = np.arange(profile.world_size)
    mine = place[counters.rank]
    theirs = place[np.minimum(counters.peer, profile.world_size).astype(np.int64)]
    rows = (counters.kind == Kind.USER) & (counters.direction != Direction.RECEIVED) & (counters.source != Source.VERBS)
    rows &= (mine != theirs) | (theirs < 0)
    exchanged: dict[tuple[str, str], int] = {}
    for region, operation, amount in zip(
        counters.region[rows].tolist(), counters.operation[rows].tolist(), counters.bytes[rows].tolist(), strict=True
    ):
        key = profile.regions[region], profile.operations[operation]
        exchanged[key] = exchanged.get(key, 0) + amount
    if missing := profile.world_size - len(profile.ranks):
        notes.append(f"{missing} of {profile.world_size} ranks were not recorded: their bytes are missing")
    if lost := sum(rank.lost_bytes for rank in profile.ranks):
        notes.append(f"{lost} bytes were counted without their peers and are left out")
    if profile.operations_asked:
        notes.append(f"only {profile.operations_asked} were recorded")
    return RecordedExchange(
        name=profile.name,
        size=size,
        processes=profile.world_size,
        exchanged=exchanged,
        seconds=_seconds(profile),
        notes=tuple(notes),
    )


def _seconds(profile: Profile) -> dict[str, float]:
    times = profile.region_times
    longest: dict[str, float] = {}
    for region, wall_ns in zip(times.region.tolist(), times.wall_ns.tolist(), strict=True):
        name = profile.regions[region]
        longest[name] = max(longest.get(name, 0.0), wall_ns / 1e9)
    spans = [rank.stop_ns - rank.start_ns - rank.off_ns for rank in profile.ranks if rank.stop_ns is not None]
    if spans:
        longest[WHOLE] = max(spans) / 1e9
    return longest
