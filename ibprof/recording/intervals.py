# SPDX-License-Identifier: Apache-2.0
"""Read traffic over time from a recording: the differences between snapshots of each process's totals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof.native.headers import recording_layout
from ibprof.profile.profile_data import UNKNOWN_PEER, Direction, Kind
from ibprof.profile.row_arrays import Columns
from ibprof.recording.counter_records import find_tick_ns, resolve_peers
from ibprof.recording.host_file import Owners, RecordingFile, Records

Totals = npt.NDArray[np.int64]
"""Bytes and messages: [snapshot, group of peers, 2]."""

Peers = npt.NDArray[np.uint32]
"""The first or the last rank of each group of peers with traffic."""


def read_intervals(
    file: RecordingFile,
    world_rank: npt.NDArray[np.int32],
    counters: Records,
    counters_owner: npt.NDArray[np.intp],
    owners: dict[bytes, int],
) -> list[Columns]:
    """Read the intervals of a file's processes with snapshots.

    In a process's last interval, traffic is the counters minus the last snapshot. So all intervals of a process sum to
    the process's counters, even if the process was killed.

    Args:
        world_rank: rank of each process.
        counters: counters of all processes, with each process's own numbers of peers.
        counters_owner: process of each counter.
        owners: ranks by address, for processes that number peers by address.

    Returns:
        The columns of `Intervals` for each process with snapshots.

    Raises:
        InputError: totals decrease, groups change size, or the address of a group was not recorded.
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
        if (own["group_ranks"] != group_ranks).any():
            raise InputError(file.path, None, f"groups of {group_ranks} ranks in snapshots", "groups of other sizes")
        process = file.processes[index]
        end = _total(counters[counters_owner == index], group_ranks)
        totals = np.concatenate(
            [np.zeros_like(end)[None], np.stack([own["bytes"], own["messages"]], axis=2), end[None]]
        )
        sent = np.diff(totals.astype(np.int64), axis=0)
        if (sent[:-1] < 0).any():
            raise InputError(file.path, None, "totals that grow with time", "decreasing totals")
        times = np.concatenate([[process["start_ns"]], own["time_ns"], [process["stop_ns"]]]).astype(np.uint64)
        # Make times ascending: stop_ns is 0 if the process was killed, or still ran when the recording was copied.
        times = np.maximum.accumulate(times)
        used = np.flatnonzero(sent.any(axis=(0, 2)))
        if group_ranks:
            first, last = _ranks_of_groups(used, group_ranks, int(process["world_size"]))
        else:
            first = last = _owners_of_groups(file, index, used, owners)
        parts.append(_make_rows(int(world_rank[index]), times, sent[:, used].clip(0), first, last))
    return parts


def _last_group() -> int:
    return recording_layout().constants["IBP_SNAPSHOT_GROUPS"] - 1


def _total(counters: Records, group_ranks: int) -> npt.NDArray[np.uint64]:
    """Return bytes and messages of counters by group of peers, as in `ibp_snapshot`: uint64 [group, 2]."""
    total = np.zeros((_last_group() + 1, 2), np.uint64)
    peer, first_address = counters["peer"].astype(np.int64), recording_layout().constants["IBP_PEER_ADDRESS"]
    group = peer // group_ranks if group_ranks else peer - first_address
    grouped = (peer >= first_address) == (not group_ranks)
    group = np.where(grouped, np.minimum(group, _last_group()), _last_group())
    for column, name in enumerate(("bytes", "messages")):
        np.add.at(total[:, column], group, counters[name])
    return total


def _ranks_of_groups(groups: npt.NDArray[np.intp], group_ranks: int, world_size: int) -> tuple[Peers, Peers]:
    """Return the first and the last rank of each group of peers."""
    first = groups * group_ranks
    last = np.minimum(first + group_ranks, world_size) - 1
    no_rank = groups == _last_group()
    first, last = (np.where(no_rank, UNKNOWN_PEER, each) for each in (first, last))
    return first.astype(np.uint32), last.astype(np.uint32)


def _owners_of_groups(
    file: RecordingFile, process: int, groups: npt.NDArray[np.intp], owners: dict[bytes, int]
) -> Peers:
    """Return the rank of each group of peers, from the group's address; `UNKNOWN_PEER` if unknown."""
    constants = recording_layout().constants
    peers = (groups + constants["IBP_PEER_ADDRESS"]).astype(np.uint32)
    peers[groups == _last_group()] = UNKNOWN_PEER
    return resolve_peers(file, peers, np.full(len(groups), process, np.intp), owners)


def _make_rows(rank: int, times: npt.NDArray[np.uint64], sent: Totals, first: Peers, last: Peers) -> Columns:
    """Return a row for each interval and group of peers with traffic."""
    peers, first_group, group = np.unique(first, return_index=True, return_inverse=True)
    if len(peers) < len(first):  # sum the groups with the same rank; also sum the groups without a known rank
        sent = np.stack([sent[:, group == number].sum(axis=1) for number in range(len(peers))], axis=1)
    else:
        sent = sent[:, first_group]
    interval, column = np.nonzero(sent.any(axis=2))
    return {
        "rank": np.full(len(interval), rank, np.int32),
        "begin_ns": times[interval],
        "end_ns": times[interval + 1],
        "first_peer": peers[column],
        "last_peer": last[first_group][column],
        "bytes": sent[interval, column, 0].astype(np.uint64),
        "messages": sent[interval, column, 1].astype(np.uint64),
    }


def read_interval_times(
    file: RecordingFile, world_rank: npt.NDArray[np.int32], times: Records, owner: Owners
) -> list[Columns]:
    """Read the time inside calls in each interval, for processes with snapshots and times.

    In a process's last interval, time is the recorded times minus the last snapshot. So all intervals of a process sum
    to the process's recorded times. Parts of calls that never returned (after a kill or a non-local exit) are in no
    interval.

    Args:
        world_rank: rank of each process.
        times: records `ibp_time` of all processes.
        owner: index of each record's process.

    Returns:
        The columns of `IntervalTimes` for each process with snapshots and times.

    Raises:
        InputError: a process has times but no clock.
    """
    snapshots, snapshots_owner = file.records("IBP_SEGMENT_SNAPSHOTS")
    taken = np.flatnonzero(snapshots["time_ns"])
    snapshots, snapshots_owner = snapshots[taken], snapshots_owner[taken]
    parts = []
    for index in np.intersect1d(owner, snapshots_owner).tolist():
        process, own = file.processes[index], snapshots[snapshots_owner == index]
        own = own[np.argsort(own["time_ns"], kind="stable")]
        sums = np.array([_sum(process["times_weight"], times[owner == index])])
        seen = own["ticks"].astype(np.float64) + process["times_weight"] * own["sampled_ticks"].astype(np.float64)
        sums = np.concatenate([[0.0], np.minimum(np.maximum.accumulate(seen), sums[0]), sums])
        moments = np.concatenate([[process["start_ns"]], own["time_ns"], [process["stop_ns"]]]).astype(np.uint64)
        # Make times ascending: stop_ns of a killed process is 0.
        moments = np.maximum.accumulate(moments)
        tick_ns = find_tick_ns(file, np.array([index]))[0]
        time_ns = np.diff(np.rint(sums * tick_ns)).astype(np.uint64)
        used = np.flatnonzero(time_ns)
        parts.append({
            "rank": np.full(len(used), world_rank[index], np.int32),
            "begin_ns": moments[used],
            "end_ns": moments[used + 1],
            "time_ns": time_ns[used],
        })  # fmt: skip
    return parts


def _sum(weight: int, times: Records) -> float:
    return float(times["ticks"].astype(np.float64).sum() + weight * times["sampled_ticks"].astype(np.float64).sum())
