# SPDX-License-Identifier: Apache-2.0
"""Time inside calls over time in a recording: differences of sums that its processes recorded at some moments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ibprof.profile.row_arrays import Columns
from ibprof.recording.call_times import find_tick_ns
from ibprof.recording.host_file import Owners, RecordingFile, Records


def read_interval_times(
    file: RecordingFile, world_rank: npt.NDArray[np.int32], times: Records, owner: Owners
) -> list[Columns]:
    """Read the time inside calls of each interval; processes without snapshots or times have none.

    The last interval of a process is the difference between its times and its last snapshot. So its intervals sum to
    its times. A snapshot may have a part of a call that never returned, since it was left or the process was killed.
    That part is in no interval.

    Args:
        file: of a host.
        world_rank: of each process.
        times: `ibp_time` of all processes.
        owner: the index of each one's process.

    Returns:
        The columns of `IntervalTimes`, a part per process.

    Raises:
        InputError: a process has times, and no clock.
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
        # When a killed process was last inside a call is unknown.
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
