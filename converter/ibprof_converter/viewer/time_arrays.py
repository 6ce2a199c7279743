# SPDX-License-Identifier: Apache-2.0
"""Describe the activity of ranks over time: intervals, time inside MPI calls, and visits to regions, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import UNKNOWN_PEER, Intervals, IntervalTimes, Mark, MarkKind, Profile
from ibprof.profile.row_arrays import RowArrays
from ibprof_converter.viewer.view_file import NONE, Arrays

_ROW_LIMIT = 1 << 20
"""Largest number of rows of intervals. With more rows, adjacent intervals are joined in pairs, again and again."""

_TIMES_LIMIT = 1 << 18
"""Largest number of rows of time inside MPI calls."""

_VISIT_LIMIT = 1 << 18
"""Largest number of visits. Of more visits than this, the shortest, which would be invisible, are left out."""

_FINEST = 2048
"""If any visits are left out, all visits shorter than run time / this number are left out."""

_UNNAMED = -1
"""Index of a region without a name yet: `IBPROF_REGION()` records the name at the region's end."""

_NS = 1e-9


@dataclass(frozen=True, slots=True)
class RegionVisits(RowArrays):
    """Visits of ranks to regions, as arrays of equal length.

    Attributes:
        rank, region: int32, rank and region of each visit.
        begin_ns, end_ns: uint64, Unix times in ns.
    """

    rank: npt.NDArray[np.int32]
    region: npt.NDArray[np.int32]
    begin_ns: npt.NDArray[np.uint64]
    end_ns: npt.NDArray[np.uint64]


_Rows = TypeVar("_Rows", Intervals, IntervalTimes, RegionVisits)


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Activity over time of the ranks of a run, or of the ranks of several jobs.

    Attributes:
        sent: bytes sent in each interval; at least one row.
        inside: time inside MPI calls in each interval; empty if not recorded.
    """

    sent: Intervals
    inside: IntervalTimes
    visits: RegionVisits
    regions: tuple[str, ...]


def describe_times(times: RunTimes) -> Arrays:
    """Return the page's arrays of sent bytes, of time inside MPI calls, and of visits to regions.

    Returns:
        `time_rank`; `time_begin` and `time_end`, in seconds since the first interval; `time_first_peer` and
        `time_last_peer`, -1 for unknown peers; `time_bytes`. If time inside MPI was recorded, also `mpi_rank`,
        `mpi_begin`, `mpi_end` and `mpi_seconds`. If there are visits, also `visit_rank`, `visit_region`, `visit_begin`
        and `visit_end`.
    """
    intervals, inside, visits = _fit(times.sent, _ROW_LIMIT), _fit(times.inside, _TIMES_LIMIT), times.visits
    start = min(int(each.begin_ns.min()) for each in (intervals, inside) if len(each.rank))

    def seconds(moments: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
        return (moments.astype(np.int64) - start).astype(np.float64) * _NS

    def peers(peer: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
        return np.where(peer == UNKNOWN_PEER, NONE, peer.astype(np.int64)).astype(np.int32)

    arrays: Arrays = {
        "time_rank": intervals.rank.astype(np.int32),
        "time_begin": seconds(intervals.begin_ns),
        "time_end": seconds(intervals.end_ns),
        "time_first_peer": peers(intervals.first_peer),
        "time_last_peer": peers(intervals.last_peer),
        "time_bytes": intervals.bytes.astype(np.float64),
    }
    if len(inside.rank):
        arrays |= {
            "mpi_rank": inside.rank.astype(np.int32),
            "mpi_begin": seconds(inside.begin_ns).astype(np.float32),
            "mpi_end": seconds(inside.end_ns).astype(np.float32),
            "mpi_seconds": (inside.time_ns.astype(np.float64) * _NS).astype(np.float32),
        }
    if len(visits.rank):
        arrays |= {
            "visit_rank": visits.rank.astype(np.int32),
            "visit_region": visits.region.astype(np.uint16),
            "visit_begin": seconds(visits.begin_ns).astype(np.float32),
            "visit_end": seconds(visits.end_ns).astype(np.float32),
        }
    return arrays


def _fit(rows: _Rows, limit: int) -> _Rows:
    """Join adjacent intervals in pairs, until there are at most `limit` rows, or no adjacent intervals."""
    while len(rows.rank) > limit:
        joined = _join_pairs(rows)
        if len(joined.rank) == len(rows.rank):
            break
        rows = joined
    return rows


def merge_times(jobs: Sequence[Profile | None], first_rank: Sequence[int]) -> RunTimes | None:
    """Merge the activity of the ranks of several jobs.

    If the runs of all jobs overlap in time, times are unchanged. Otherwise, all jobs get a common start.

    Args:
        jobs: the run of each job; None for a job that was not recorded.
        first_rank: index of each job's rank 0 in the list of all jobs' ranks.

    Returns:
        The merged activity; None if no job has intervals.
    """
    known = [
        (each, first)
        for each, first in zip(jobs, first_rank, strict=False)
        if each is not None and len(each.intervals.rank)
    ]
    if not known:
        return None
    begins = [int(each.intervals.begin_ns.min()) for each, _ in known]
    at_once = max(begins) < min(int(each.intervals.end_ns.max()) for each, _ in known)
    regions = tuple(dict.fromkeys(name for each, _ in known for name in each.regions))
    sent, inside, visits = [], [], []
    for (each, first), begin in zip(known, begins, strict=True):
        by = 0 if at_once else begin - max(begins)
        sent.append(replace(_shift(each.intervals, first, by), **_count_peers_on(each.intervals, first)))
        inside.append(_shift(each.interval_times, first, by))
        numbers = np.array([regions.index(name) for name in each.regions], np.int32)
        own = list_visits(each)
        visits.append(_shift(replace(own, region=numbers[own.region]), first, by))
    return RunTimes(_join(sent), _join(inside), _join(visits), regions)


def _shift(rows: _Rows, first_rank: int, by_ns: int) -> _Rows:
    """Number the ranks of rows over all jobs, and reduce the times by `by_ns`."""
    moments = {
        name: (getattr(rows, name).astype(np.int64) - by_ns).astype(np.uint64) for name in ("begin_ns", "end_ns")
    }
    return replace(rows, rank=(rows.rank + first_rank).astype(np.int32), **moments)


def _join(parts: Sequence[_Rows]) -> _Rows:
    columns = [part.columns() for part in parts]
    return type(parts[0])(**{name: np.concatenate([each[name] for each in columns]) for name in columns[0]})


def _count_peers_on(job: Intervals, first_rank: int) -> Arrays:
    """Return the peer columns of a job's intervals, with ranks numbered over all jobs."""

    def peers(peer: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        return np.where(peer == UNKNOWN_PEER, peer, peer + np.uint32(first_rank)).astype(np.uint32)

    return {"first_peer": peers(job.first_peer), "last_peer": peers(job.last_peer)}


def _join_pairs(rows: _Rows) -> _Rows:
    """Join pairs of successive intervals with the same rank and the same peers."""
    peers = rows.first_peer if isinstance(rows, Intervals) else np.zeros(len(rows.rank), np.uint32)
    order = np.lexsort((rows.begin_ns, peers, rows.rank))
    rank, peer = rows.rank[order], peers[order]
    starts = np.flatnonzero(np.append(True, (rank[1:] != rank[:-1]) | (peer[1:] != peer[:-1])))
    place = np.arange(len(rank)) - np.repeat(starts, np.diff(np.append(starts, len(rank))))
    first = np.flatnonzero(place % 2 == 0)
    sums = {
        name: np.add.reduceat(column[order], first)
        for name, column in rows.columns().items()
        if name in ("bytes", "messages", "time_ns")
    }
    kept = {name: column[order[first]] for name, column in rows.columns().items()}
    return type(rows)(**kept | sums | {"end_ns": np.maximum.reduceat(rows.end_ns[order], first)})


def list_visits(run: Profile) -> RegionVisits:
    """Return the visits to regions, sorted by rank, from recorded begins and ends of regions (`Profile.marks`).

    A process records a limited number of these events: later visits are unknown. While recording is off, ranks visit no
    region.
    """
    by_rank: dict[int, list[Mark]] = {}
    for mark in run.marks:
        by_rank.setdefault(mark.rank, []).append(mark)
    rows = [(rank, *visit) for rank, marks in by_rank.items() for visit in _follow(marks)]
    columns = zip(*rows, strict=True) if rows else [()] * 4
    types = RegionVisits.column_types()
    visits = RegionVisits(**{name: np.array(each, types[name]) for name, each in zip(types, columns, strict=True)})
    return _leave_out_short(visits)


def _follow(marks: Iterable[Mark]) -> Sequence[tuple[int, int, int]]:
    visits: list[tuple[int, int, int]] = []
    entered: list[int] = []
    since: int | None = None
    first_unnamed = 0
    for mark in marks:
        if since is not None and mark.time_ns > since:
            visits.append((entered[-1] if entered else _UNNAMED, since, mark.time_ns))
        if mark.kind == MarkKind.OFF:
            since = None
        elif since is not None or mark.kind in (MarkKind.START, MarkKind.ON):
            since = mark.time_ns
        if mark.kind in (MarkKind.CLOSE, MarkKind.STOP):
            visits[first_unnamed:] = [
                (mark.region if region == _UNNAMED else region, begin, end)
                for region, begin, end in visits[first_unnamed:]
            ]
            first_unnamed = len(visits)
        elif mark.kind == MarkKind.BEGIN:
            entered.append(mark.region)
        elif mark.kind == MarkKind.END and mark.region in entered:
            del entered[len(entered) - 1 - entered[::-1].index(mark.region) :]
    return [visit for visit in visits if visit[0] != _UNNAMED]


def _leave_out_short(visits: RegionVisits) -> RegionVisits:
    rows = len(visits.rank)
    if rows <= _VISIT_LIMIT:
        return visits
    seconds = (visits.end_ns - visits.begin_ns).astype(np.float64)
    whole = float(visits.end_ns.max() - visits.begin_ns.min())
    least = max(whole / _FINEST, float(np.partition(seconds, rows - _VISIT_LIMIT)[rows - _VISIT_LIMIT]))
    kept = np.flatnonzero(seconds >= least)[:_VISIT_LIMIT]
    return RegionVisits(**{name: column[kept] for name, column in visits.columns().items()})
