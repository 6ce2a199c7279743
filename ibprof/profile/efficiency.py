# SPDX-License-Identifier: Apache-2.0
"""Compute time inside MPI calls, estimated waiting in collectives, and efficiencies of a run and of its regions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Mark, MarkKind, Profile, Rank
from ibprof.profile.profile_rows import name_sites
from ibprof.profile.row_arrays import RowArrays

Seconds = npt.NDArray[np.float64]

KILLED = "efficiencies need the end of each rank, and {} of {} ranks did not reach MPI_Finalize"
NOT_TIMED = "efficiencies need the time inside calls on all ranks: run again with IBPROF_TIME=1"
NOT_RECORDED = "efficiencies cover only the {} recorded ranks of {}"
TOO_LONG = "efficiencies are too low: time inside calls is longer than the run on rank {}"
OF_THREADS = (
    "efficiencies of regions are too low on rank {}: several threads were inside calls at once, and each thread's time "
    "counts"
)
NO_SPANS = "efficiencies by region need all marks, and the recording contains only the first marks of each rank"


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Efficiencies, 0 to 1, of a run or a region; docs/efficiency.md has the formulas.

    Metrics of the centre of excellence POP. Source: M. Wagner, S. Mohr, J. Gimenez, J. Labarta, "A Structured Approach
    to Performance Analysis", Tools for High Performance Computing 2017, Springer 2019.

    Attributes:
        region: name of the region; None for the whole run.
        parallel: mean time of ranks outside MPI / elapsed time; equals `load_balance` times `communication`.
        load_balance: mean / maximum of the ranks' time outside MPI.
        communication: maximum of the ranks' time outside MPI / elapsed time.
        elapsed_s: longest run time of a rank, in seconds.
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
        regions: efficiencies of regions, sorted by elapsed time, descending; empty if unknown, or for a single region.
        notes: reasons for unknown or limited efficiencies, a sentence each.
    """

    run: Efficiency | None
    regions: tuple[Efficiency, ...]
    notes: tuple[str, ...]


def find_efficiencies(run: Profile) -> Efficiencies:
    """Return parallel efficiency, load balance and communication efficiency of a run and of its regions.

    Clocks of different hosts are never compared.
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
    """Return a rank's run time, without the time when recording was off, in seconds; 0 for a killed rank."""
    return max((rank.stop_ns or 0) - rank.start_ns - rank.off_ns, 0) * 1e-9


def inside_s(run: Profile, ranks: Sequence[Rank]) -> Seconds:
    """Return the time of ranks inside MPI calls: float64 [rank, region], seconds."""
    times, row = run.times, {rank.rank: number for number, rank in enumerate(ranks)}
    known = np.isin(times.rank, list(row))
    rows = np.array([row[rank] for rank in times.rank[known].tolist()], np.intp)
    seconds = np.zeros((len(ranks), len(run.regions)))
    np.add.at(seconds, (rows, times.region[known]), times.time_ns[known].astype(np.float64) * 1e-9)
    return seconds


def outside_s(run: Profile, ranks: Sequence[Rank]) -> Seconds:
    """Return the time of ranks outside MPI calls, in seconds: float64 [rank]."""
    spans = np.array([elapsed_s(rank) for rank in ranks])
    inside: Seconds = inside_s(run, ranks).sum(axis=1)
    return np.maximum(spans - (inside - overlaps_s(ranks)), 0)


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
    """Return the nanoseconds of each rank in each region.

    Time in nested regions counts for the innermost region, as in `CallTimes`. Time with recording off is left out.

    Returns:
        Rank -> {region: ns}; None if marks of a rank are missing, or a rank was killed.
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
    open_ns = 0  # time outside entered regions, for the region that the next CLOSE mark names
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


@dataclass(frozen=True, slots=True)
class WaitShares(RowArrays):
    """Time in calls, as the sum of waiting, transfer and unsplit time; a row for each row of `Profile.times`.

    Attributes:
        rank, region, operation, site: int32.
        time_s: float64, recorded time in calls, in seconds.
        wait_s: float64, time of waiting for other ranks, in seconds.
        transfer_s: float64, time of data transfer, in seconds.
        unsplit_s: float64, time without samples or comparable clocks, in seconds.
        error_s: float64, standard error of `wait_s` and `transfer_s`, in seconds.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    operation: npt.NDArray[np.int32]
    site: npt.NDArray[np.int32]
    time_s: npt.NDArray[np.float64]
    wait_s: npt.NDArray[np.float64]
    transfer_s: npt.NDArray[np.float64]
    unsplit_s: npt.NDArray[np.float64]
    error_s: npt.NDArray[np.float64]

    def sum_parts(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> dict[str, float]:
        """Return the sums of `wait_s`, `transfer_s` and `unsplit_s` over some rows.

        `split_error_s` is the standard error of the sums of `wait_s` and `transfer_s`.
        """
        # Add the errors of ranks at one site, which are correlated: all ranks of a collective sample the same calls.
        # Errors of different sites are independent, so add their squares.
        places = np.stack((self.region, self.operation, self.site))[:, rows]
        _, place = np.unique(places, axis=1, return_inverse=True)
        errors = np.bincount(place.ravel(), weights=self.error_s[rows])
        parts = {name: float(getattr(self, name)[rows].sum()) for name in ("wait_s", "transfer_s", "unsplit_s")}
        return {**parts, "split_error_s": float(np.sqrt((errors**2).sum()))}


MUTUAL = frozenset(
    {
        *("BARRIER", "ALLREDUCE", "ALLGATHER", "ALLGATHERV", "ALLTOALL", "ALLTOALLV", "ALLTOALLW"),
        *("REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"),
    }
)
"""Blocking collectives that no rank can leave before all ranks have entered."""

ASSUMPTION = (
    "estimate: at each call site of a collective, the quickest rank is assumed not to wait, and transfer "
    "is assumed equal on all ranks. If different ranks are last in different calls, the real waiting is longer"
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Time inside one operation at one site and in one region.

    The transfer of each rank is assumed to take the quickest rank's time. The rest of a rank's time is waiting.

    Attributes:
        calls: number of calls of each rank.
        ranks: number of calling ranks.
        time_s: time in the calls, over all ranks, in seconds.
        waiting_s: waiting part of `time_s`, in seconds.
        transfer_s: `time_s` without waiting, in seconds.
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
    """Split the time of the collectives in `MUTUAL` into waiting and transfer; sort by waiting, descending.

    A site is left out if only one rank calls the collective, or if ranks call the collective unequally often.
    Rooted collectives and messages are left out: the quickest rank can leave before others enter.
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


@dataclass(frozen=True, slots=True)
class TimeInMpi:
    """Time inside MPI calls of all timed ranks.

    Attributes:
        run_s: mean run time of ranks, in seconds; None if ranks were killed.
        mean_s: mean time of ranks inside calls, over all threads, in seconds.
        overlap_s: time that `mean_s` counts repeatedly, because several threads of a rank were inside calls.
        slowest: rank with most time inside calls.
        slowest_s: time of the slowest rank inside calls, in seconds.
        spread: standard deviation / mean of the ranks' times.
        ranks: number of timed ranks.
    """

    run_s: float | None
    mean_s: float
    overlap_s: float
    slowest: int
    slowest_s: float
    spread: float
    ranks: int

    @property
    def busy_s(self) -> float:
        """Mean time in which a rank has at least one thread inside calls, in seconds."""
        return self.mean_s - self.overlap_s

    @property
    def share(self) -> float | None:
        """Share of the run in which a rank has a thread inside calls, 0 to 1; None if unknown."""
        return self.busy_s / self.run_s if self.run_s else None


def time_in_mpi(run: Profile) -> TimeInMpi | None:
    """Return the time inside MPI calls; None if times were not recorded."""
    timed = [rank for rank in run.ranks if rank.has_times]
    if not timed:
        return None
    seconds = inside_s(run, timed).sum(axis=1)
    mean, slowest = float(seconds.mean()), int(seconds.argmax())
    spans = [elapsed_s(rank) for rank in timed if rank.stop_ns]
    return TimeInMpi(
        run_s=sum(spans) / len(spans) if len(spans) == len(timed) else None,
        mean_s=mean,
        overlap_s=float(overlaps_s(timed).mean()),
        slowest=timed[slowest].rank,
        slowest_s=float(seconds[slowest]),
        spread=float(seconds.std()) / mean if mean else 0.0,
        ranks=len(timed),
    )
