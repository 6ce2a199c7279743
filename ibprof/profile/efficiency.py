# SPDX-License-Identifier: Apache-2.0
"""Efficiencies of a run and of its regions, from the time inside MPI calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Mark, MarkKind, Profile, Rank

Seconds = npt.NDArray[np.float64]

KILLED = "efficiencies need the end of each rank, and {} of {} ranks did not reach MPI_Finalize"
NOT_TIMED = "efficiencies need the time inside calls on all ranks: run again with IBPROF_TIME=1"
NOT_RECORDED = "efficiencies are of the {} recorded ranks, of {}"
TOO_LONG = "time inside calls is longer than the run, so that efficiencies are too low, on rank {}"
OF_THREADS = (
    "efficiencies of regions count the time of each thread inside calls, so that they are too low where several "
    "threads were inside calls at once: on rank {}"
)
NO_SPANS = "efficiencies by region need all marks, and the recording holds only the first ones of each rank"


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Efficiencies, 0 to 1, of a run or a region; docs/efficiency.md has the formulas.

    Source: M. Wagner, S. Mohr, J. Gimenez, J. Labarta, "A Structured Approach to Performance Analysis", Tools for High
    Performance Computing 2017, Springer 2019: the metrics of the centre of excellence POP.

    Attributes:
        region: name of the region; None for the whole run.
        parallel: mean time of ranks outside MPI / elapsed time: `load_balance` times `communication`.
        load_balance: mean / maximum of the ranks' time outside MPI.
        communication: maximum of the ranks' time outside MPI / elapsed time.
        elapsed_s: run time of the rank that took longest, in seconds.
        outside_mean_s, outside_max_s: mean and maximum of the ranks' time outside MPI, in seconds.
    """

    region: str | None
    parallel: float
    load_balance: float
    communication: float
    elapsed_s: float
    outside_mean_s: float
    outside_max_s: float
    ranks: int


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """Efficiencies of a profile.

    Attributes:
        run: efficiencies of the whole run; None if unknown.
        regions: efficiencies of regions, those with most elapsed time first; empty if unknown, or with only one region.
        notes: reasons for unknown or limited efficiencies, a sentence each.
    """

    run: Efficiency | None
    regions: tuple[Efficiency, ...]
    notes: tuple[str, ...]


def find_efficiencies(run: Profile) -> Efficiencies:
    """Return parallel efficiency, load balance and communication efficiency of a run and of its regions.

    Only durations by a rank's own clock are used. Clocks of different hosts are never compared.
    """
    ranks = [rank for rank in run.ranks if rank.rank < run.world_size]
    if not ranks or not all(rank.has_times for rank in ranks):
        return Efficiencies(None, (), (NOT_TIMED,) if ranks else ())
    if killed := [rank for rank in ranks if rank.stop_ns is None]:
        return Efficiencies(None, (), (KILLED.format(len(killed), len(ranks)),))
    elapsed = np.array([elapsed_s(rank) for rank in ranks])
    inside = inside_s(run, ranks)
    total = inside.sum(axis=1) - overlaps_s(ranks)
    notes = [NOT_RECORDED.format(len(ranks), run.world_size)] if len(ranks) < run.world_size else []
    if longer := [rank.rank for rank, one, other in zip(ranks, total, elapsed, strict=True) if one > other]:
        notes.append(TOO_LONG.format(_list(longer)))
    whole = _efficiency(None, elapsed, total)
    spans = measure_spans(run) if len(run.regions) > 1 else {}
    if spans is None:
        return Efficiencies(whole, (), (*notes, NO_SPANS))
    regions = []
    for number, name in enumerate(run.regions) if spans else ():
        seconds = np.array([spans[rank.rank].get(number, 0) * 1e-9 for rank in ranks])
        visited = seconds > 0
        if made := _efficiency(name, seconds[visited], inside[visited, number]):
            regions.append(made)
    if overlapping := [rank.rank for rank in ranks if rank.overlap_ns] if regions else []:
        notes.append(OF_THREADS.format(_list(overlapping)))
    return Efficiencies(whole, tuple(sorted(regions, key=lambda each: -each.elapsed_s)), tuple(notes))


def elapsed_s(rank: Rank) -> float:
    """Return the run time of a rank with recording on, in seconds; 0 for a killed rank."""
    return max((rank.stop_ns or 0) - rank.start_ns - rank.off_ns, 0) * 1e-9


def inside_s(run: Profile, ranks: Sequence[Rank]) -> Seconds:
    """Return the time of ranks inside MPI calls: float64 [rank, region], seconds."""
    times, row = run.times, {rank.rank: number for number, rank in enumerate(ranks)}
    known = np.isin(times.rank, list(row))
    rows = np.array([row[rank] for rank in times.rank[known].tolist()], np.intp)
    seconds = np.zeros((len(ranks), len(run.regions)))
    np.add.at(seconds, (rows, times.region[known]), times.time_ns[known].astype(np.float64) * 1e-9)
    return seconds


def overlaps_s(ranks: Sequence[Rank]) -> Seconds:
    """Return the seconds that `inside_s` counts more than once, because several threads were inside calls: [rank]."""
    return np.array([rank.overlap_ns for rank in ranks], np.float64) * 1e-9


def _list(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:4])) + (", ..." if len(ranks) > 4 else "")


def _efficiency(region: str | None, elapsed: Seconds, inside: Seconds) -> Efficiency | None:
    longest = float(elapsed.max(initial=0))
    if not longest:
        return None
    outside = np.maximum(elapsed - inside, 0)
    mean, most = float(outside.mean()), float(outside.max())
    return Efficiency(
        region=region,
        parallel=mean / longest,
        load_balance=mean / most if most else 1.0,
        communication=most / longest,
        elapsed_s=longest,
        outside_mean_s=mean,
        outside_max_s=most,
        ranks=len(elapsed),
    )


def measure_spans(run: Profile) -> dict[int, dict[int, int]] | None:
    """Return the nanoseconds of each rank in each region. As in `CallTimes`, the innermost region counts.

    Time with recording switched off is in no region.

    Returns:
        Region -> ns, by rank; None if marks of a rank are missing, or a rank was killed.
    """
    by_rank: dict[int, list[Mark]] = {rank.rank: [] for rank in run.ranks}
    for mark in run.marks:
        by_rank.setdefault(mark.rank, []).append(mark)
    complete = all(rank.stop_ns is not None and rank.marks_seen <= len(by_rank[rank.rank]) for rank in run.ranks)
    if not complete or not all(marks and marks[-1].kind == MarkKind.STOP for marks in by_rank.values()):
        return None
    return {rank: _sum_spans(marks) for rank, marks in by_rank.items()}


def _sum_spans(marks: Iterable[Mark]) -> dict[int, int]:
    spans: defaultdict[int, int] = defaultdict(int)
    entered: list[int] = []
    open_ns = 0  # time in the region that a mark will close and name
    since: int | None = None
    for mark in marks:
        if since is not None and entered:
            spans[entered[-1]] += max(mark.time_ns - since, 0)
        elif since is not None:
            open_ns += max(mark.time_ns - since, 0)
        if mark.kind == MarkKind.OFF:
            since = None
        elif since is not None or mark.kind in (MarkKind.START, MarkKind.ON):
            since = mark.time_ns
        if mark.kind in (MarkKind.CLOSE, MarkKind.STOP):
            spans[mark.region] += open_ns
            open_ns = 0
        elif mark.kind == MarkKind.BEGIN:
            entered.append(mark.region)
        elif mark.kind == MarkKind.END and mark.region in entered:
            del entered[len(entered) - 1 - entered[::-1].index(mark.region) :]
    return dict(spans)
