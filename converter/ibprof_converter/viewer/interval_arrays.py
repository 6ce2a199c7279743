# SPDX-License-Identifier: Apache-2.0
"""Bytes sent over time: the arrays with which the page shows the traffic of a time range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import UNKNOWN_PEER, Intervals
from ibprof_converter.viewer.packing import Arrays

_ROW_LIMIT = 1 << 20
"""The largest number of rows. With more, adjacent intervals are joined two by two until they fit."""

_NS = 1e-9


def describe_intervals(intervals: Intervals) -> Arrays:
    """Return arrays of the intervals by rank and group of peers, one row for each interval with traffic.

    Args:
        intervals: the intervals of a run.

    Returns:
        `time_rank`; `time_begin` and `time_end` in seconds since the first; `time_first_peer` and `time_last_peer`, -1
        for peers that are not ranks; `time_bytes`.
    """
    while len(intervals.rank) > _ROW_LIMIT:
        joined = _join_pairs(intervals)
        if len(joined.rank) == len(intervals.rank):
            break
        intervals = joined
    start = int(intervals.begin_ns.min())

    def seconds(times: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
        return (times - np.uint64(start)).astype(np.float64) * _NS

    def peers(peer: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
        return np.where(peer == UNKNOWN_PEER, -1, peer.astype(np.int64)).astype(np.int32)

    return {
        "time_rank": intervals.rank.astype(np.int32),
        "time_begin": seconds(intervals.begin_ns),
        "time_end": seconds(intervals.end_ns),
        "time_first_peer": peers(intervals.first_peer),
        "time_last_peer": peers(intervals.last_peer),
        "time_bytes": intervals.bytes.astype(np.float64),
    }


def merge_intervals(jobs: Sequence[Intervals | None], first_rank: Sequence[int]) -> Intervals | None:
    """Merge the intervals of several jobs.

    Jobs that all ran at the same time keep their times. Jobs recorded separately are shifted to a common start.

    Args:
        jobs: the intervals of each job; None if none were recorded.
        first_rank: the number of each job's rank 0 among the ranks of all jobs.
    """
    known = [
        (each, first) for each, first in zip(jobs, first_rank, strict=False) if each is not None and len(each.rank)
    ]
    if len(known) < 2:
        return replace(known[0][0], **_count_on(*known[0])) if known else None
    at_once = max(each.begin_ns.min() for each, _ in known) < min(each.end_ns.max() for each, _ in known)
    moved = []
    for each, first in known:
        start = np.uint64(0) if at_once else each.begin_ns.min()
        times = {"begin_ns": each.begin_ns - start, "end_ns": each.end_ns - start}
        moved.append(replace(each, **times, **_count_on(each, first)))
    parts = [each.columns() for each in moved]
    return Intervals(**{name: np.concatenate([part[name] for part in parts]) for name in Intervals.column_types()})


def _count_on(job: Intervals, first_rank: int) -> Arrays:
    """Return the ranks of a job's intervals in the numbering of all jobs."""

    def peers(peer: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        return np.where(peer == UNKNOWN_PEER, peer, peer + np.uint32(first_rank)).astype(np.uint32)

    return {
        "rank": (job.rank + first_rank).astype(np.int32),
        "first_peer": peers(job.first_peer),
        "last_peer": peers(job.last_peer),
    }


def _join_pairs(intervals: Intervals) -> Intervals:
    """Join every two consecutive intervals of a rank and group of peers."""
    order = np.lexsort((intervals.begin_ns, intervals.first_peer, intervals.rank))
    rank, peer = intervals.rank[order], intervals.first_peer[order]
    starts = np.flatnonzero(np.append(True, (rank[1:] != rank[:-1]) | (peer[1:] != peer[:-1])))
    place = np.arange(len(rank)) - np.repeat(starts, np.diff(np.append(starts, len(rank))))
    first = np.flatnonzero(place % 2 == 0)
    kept = order[first]
    return Intervals(
        rank=intervals.rank[kept],
        begin_ns=intervals.begin_ns[kept],
        end_ns=np.maximum.reduceat(intervals.end_ns[order], first),
        first_peer=intervals.first_peer[kept],
        last_peer=intervals.last_peer[kept],
        bytes=np.add.reduceat(intervals.bytes[order], first),
        messages=np.add.reduceat(intervals.messages[order], first),
    )
