# SPDX-License-Identifier: Apache-2.0
"""What a recording says of traffic over time: differences of totals that its processes noted at some moments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.profile import UNKNOWN_PEER, Direction, Kind
from ibprof.profile_rows import Columns
from ibprof.recording_file import RecordingFile, Records
from ibprof.recording_layout import recording_layout

Totals = npt.NDArray[np.int64]
"""Bytes and messages by group of peers: [moment, group, 2]."""


def read_intervals(
    file: RecordingFile, world_rank: npt.NDArray[np.int32], counters: Records, counters_owner: npt.NDArray[np.intp]
) -> list[Columns]:
    """Read the intervals of a file's processes; those that noted nothing have none.

    The last interval of a process is what its counters say beyond the last moment: its intervals add up to them, even
    if it was killed.

    Args:
        file: of a host.
        world_rank: of each process.
        counters: of all of them, with the peers as the processes numbered them.
        counters_owner: process of each.

    Returns:
        The columns of `Intervals`, a part a process.

    Raises:
        InputError: totals decrease, or a group has no ranks.
    """
    snapshots, owner = file.records("IBP_SEGMENT_SNAPSHOTS")
    taken = np.flatnonzero(snapshots["time_ns"])
    snapshots, owner = snapshots[taken], owner[taken]
    if not len(snapshots):
        return []
    chosen = (counters["kind"] == Kind.USER) & np.isin(counters["direction"], (Direction.SENT, Direction.FETCHED))
    counters, counters_owner = counters[chosen], counters_owner[chosen]
    parts = []
    for index in np.unique(owner).tolist():
        own = snapshots[owner == index]
        own = own[np.argsort(own["time_ns"], kind="stable")]
        group_ranks = int(own["group_ranks"][0])
        if not group_ranks or (own["group_ranks"] != group_ranks).any():
            raise InputError(file.path, None, "groups of some ranks, the same at all moments", str(group_ranks))
        process = file.processes[index]
        end = _total(counters[counters_owner == index], group_ranks)
        totals = np.concatenate(
            [np.zeros_like(end)[None], np.stack([own["bytes"], own["messages"]], axis=2), end[None]]
        )
        sent = np.diff(totals.astype(np.int64), axis=0)
        if (sent[:-1] < 0).any():
            raise InputError(file.path, None, "totals that grow with time", "some that do not")
        times = np.concatenate([[process["start_ns"]], own["time_ns"], [process["stop_ns"]]]).astype(np.uint64)
        # Nobody knows when a process that was killed sent the last of it. A copy of two moments can lack what it noted.
        times = np.maximum.accumulate(times)
        parts.append(_make_rows(int(world_rank[index]), int(process["world_size"]), group_ranks, times, sent.clip(0)))
    return parts


def _total(counters: Records, group_ranks: int) -> npt.NDArray[np.uint64]:
    groups = recording_layout().constants["IBP_SNAPSHOT_GROUPS"]
    total = np.zeros((groups, 2), np.uint64)
    group = np.minimum(counters["peer"] // group_ranks, groups - 1)
    for place, name in enumerate(("bytes", "messages")):
        np.add.at(total[:, place], group, counters[name])
    return total


def _make_rows(rank: int, world_size: int, group_ranks: int, times: npt.NDArray[np.uint64], sent: Totals) -> Columns:
    interval, group = np.nonzero(sent.any(axis=2))
    first = group * group_ranks
    last = np.minimum(first + group_ranks, world_size) - 1
    no_rank = group == sent.shape[1] - 1
    return {
        "rank": np.full(len(interval), rank, np.int32),
        "begin_ns": times[interval],
        "end_ns": times[interval + 1],
        "first_peer": np.where(no_rank, UNKNOWN_PEER, first).astype(np.uint32),
        "last_peer": np.where(no_rank, UNKNOWN_PEER, last).astype(np.uint32),
        "bytes": sent[interval, group, 0].astype(np.uint64),
        "messages": sent[interval, group, 1].astype(np.uint64),
    }
