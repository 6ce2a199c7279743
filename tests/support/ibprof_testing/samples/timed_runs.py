# SPDX-License-Identifier: Apache-2.0
"""Profiles with a time line, made from messages and times inside MPI that a test states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ibprof.profile.profile_data import CallTimes, Intervals, IntervalTimes, Profile
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

MS = 1_000_000


def make_timed_run(
    sent: Sequence[tuple[int, int, int, int]], inside: Sequence[Sequence[int]], hosts: Sequence[str]
) -> Profile:
    """Return a run of intervals of 10 ms.

    Args:
        sent: (source, destination, bytes, interval) of each message.
        inside: time of each rank inside MPI, in each interval, ms.
    """
    total: dict[tuple[int, int], list[int]] = {}
    for source, peer, size, _ in sent:
        total.setdefault((source, peer), []).append(size)
    counts = [Count(source, peer, sum(sizes), messages=len(sizes)) for (source, peer), sizes in total.items()]
    stop = 10 * len(inside[0]) * MS
    ranks = [
        replace(make_rank(rank, rank), start_ns=0, stop_ns=stop, has_times=True, finalized=True)
        for rank in range(len(hosts))
    ]
    run = make_profile(counts, ranks, [make_host(name) for name in hosts])
    rows = sorted((source, at, peer, size) for source, peer, size, at in sent)
    rank, at, peer, size = np.array(rows, np.int64).T
    line = Intervals(
        rank.astype(np.int32), (10 * MS * at).astype(np.uint64), (10 * MS * (at + 1)).astype(np.uint64),
        peer.astype(np.uint32), peer.astype(np.uint32), size.astype(np.uint64), np.ones(len(rows), np.uint64),
    )  # fmt: skip
    spent = [(rank, at, time) for rank, times in enumerate(inside) for at, time in enumerate(times) if time]
    rank, at, time = np.array(spent, np.int64).T
    times = IntervalTimes(
        rank.astype(np.int32), (10 * MS * at).astype(np.uint64), (10 * MS * (at + 1)).astype(np.uint64),
        (time * MS).astype(np.uint64),
    )  # fmt: skip
    calls = [
        CallTimes(
            rank=np.array([rank], np.int32),
            region=np.zeros(1, np.int32),
            operation=np.zeros(1, np.int32),
            calls=np.ones(1, np.uint64),
            time_ns=np.array([sum(times) * MS], np.uint64), error_ns=np.zeros(1, np.uint64),
        )
        for rank, times in enumerate(inside)
    ]  # fmt: skip
    joined = CallTimes(*(np.concatenate([getattr(each, name) for each in calls]) for name in CallTimes.__slots__[:6]))
    return replace(run, intervals=line, interval_times=times, times=joined)
