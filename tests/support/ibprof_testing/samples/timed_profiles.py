# SPDX-License-Identifier: Apache-2.0
"""Profiles with intervals, for tests of outputs that show traffic over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import Intervals, IntervalTimes, Mark, MarkKind
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank


def write_timed_profile(folder: Path) -> str:
    """Write a profile of one second. Rank 0 sends in the first half, rank 2 in the second half."""
    hosts = [make_host(name) for name in ("host01", "host21", "host41")]
    run = make_profile(
        [Count(0, 1, 1000), Count(2, 1, 500)], [make_rank(rank, rank) for rank in range(3)], hosts, ("main",), ("SEND",)
    )
    second = 1_000_000_000
    intervals = Intervals(
        rank=np.array([0, 2], np.int32),
        begin_ns=np.array([5 * second, 5 * second + second // 2], np.uint64),
        end_ns=np.array([5 * second + second // 2, 6 * second], np.uint64),
        first_peer=np.array([1, 1], np.uint32),
        last_peer=np.array([1, 1], np.uint32),
        bytes=np.array([1000, 500], np.uint64),
        messages=np.array([1, 1], np.uint64),
    )
    folder.mkdir(exist_ok=True)
    write_archive(replace(run, intervals=intervals), folder / "profile.otf2")
    return str(folder / "profile.otf2")


def write_regions_profile(folder: Path, ranks: int, steps: int = 10) -> str:
    """Write a profile with one rank on each host. Marks divide each step of 100 ms into `solve` and then `halo`.

    `halo` is the last 40 ms of a step. In `halo`, each rank sends 1000 bytes to the next rank, and is inside MPI for 20
    ms. The last rank is inside MPI for all 40 ms.
    """
    ms = 1_000_000
    marks, rows, inside = [], [], []
    for rank in range(ranks):
        marks.append(Mark(rank, 0, MarkKind.START, 0, 0, 0, 0, 0))
        for step in range(steps):
            begin, halo, end = 100 * step * ms, (100 * step + 60) * ms, 100 * (step + 1) * ms
            marks += [
                Mark(rank, when, kind, region, 0, 0, 0, 0)
                for when, kind, region in (
                    (begin, MarkKind.BEGIN, 1),
                    (halo, MarkKind.END, 1),
                    (halo, MarkKind.BEGIN, 2),
                    (end, MarkKind.END, 2),
                )
            ]
            rows.append((rank, halo, end, (rank + 1) % ranks))
            inside.append((rank, halo, end, (20 if rank < ranks - 1 else 40) * ms))
        marks.append(Mark(rank, 100 * steps * ms, MarkKind.STOP, 0, 0, 0, 0, 0))
    rank, begin_ns, end_ns, peer = np.array(rows).T
    intervals = Intervals(
        rank=rank.astype(np.int32),
        begin_ns=begin_ns.astype(np.uint64),
        end_ns=end_ns.astype(np.uint64),
        first_peer=peer.astype(np.uint32),
        last_peer=peer.astype(np.uint32),
        bytes=np.full(len(rank), 1000, np.uint64),
        messages=np.ones(len(rank), np.uint64),
    )
    times = IntervalTimes(
        rank=rank.astype(np.int32),
        begin_ns=begin_ns.astype(np.uint64),
        end_ns=end_ns.astype(np.uint64),
        time_ns=np.array([row[3] for row in inside], np.uint64),
    )
    run = make_profile(
        [Count(each, (each + 1) % ranks, 1000 * steps, region=2) for each in range(ranks)],
        [make_rank(each, each, marks_seen=4 * steps + 2) for each in range(ranks)],
        [make_host(f"h{each:03d}") for each in range(ranks)],
        ("main", "solve", "halo"),
        ("SENDRECV",),
    )
    folder.mkdir(exist_ok=True)
    write_archive(replace(run, intervals=intervals, interval_times=times, marks=tuple(marks)), folder / "regions.otf2")
    return str(folder / "regions.otf2")
