# SPDX-License-Identifier: Apache-2.0
"""Bytes that proxies of NCCL or RCCL sent, recorded by the profiler plug-in: as rows of a profile, and by flow.

A flow names its peer by rank in a communicator. The peer's own recording states which process has this rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import recording_layout
from ibprof.profile.profile_data import UNKNOWN_PEER, Direction, Kind, Source
from ibprof.profile.row_arrays import Columns
from ibprof.recording.host_file import RecordingFile, Records, decode_text, locate_records

UNKNOWN_OPERATION = "nccl(unknown)"
"""Operation of proxies for another process's GPU, or for an unseen call."""

LOST = "NCCL: {} operations of proxies found no memory; their bytes are not in the recording"

Members = dict[tuple[int, int], int]
"""Process by (communicator hash, rank); UNKNOWN_PEER if several processes have this rank."""


@dataclass(frozen=True, slots=True)
class NcclRecords:
    """NCCL's records in one file.

    Attributes:
        communicators, tasks, flows: `ibp_nccl_communicator`, `ibp_nccl_task`, `ibp_nccl_flow`.
        communicators_owner: process of each communicator.
        communicator: index of each task's communicator.
        task: index of each flow's task.
        tasks_owner, flows_owner: process of each task and of each flow.
        tick_ns: length of a tick in ns, by process; 0 if unknown.
        is_alone: bool [process], true for a process without recorded MPI.
    """

    communicators: Records
    tasks: Records
    flows: Records
    communicators_owner: npt.NDArray[np.intp]
    communicator: npt.NDArray[np.intp]
    task: npt.NDArray[np.intp]
    tasks_owner: npt.NDArray[np.intp]
    flows_owner: npt.NDArray[np.intp]
    tick_ns: npt.NDArray[np.float64]
    is_alone: npt.NDArray[np.bool_]

    def operations(self) -> list[str]:
        """Return the operation name of each task: the name of NCCL's function, such as `ncclAllReduce`."""
        names = [decode_text(name) for name in self.tasks["function"]]
        return [f"nccl{name}" if name else UNKNOWN_OPERATION for name in names]

    def peers(self, members: Members) -> npt.NDArray[np.uint32]:
        """Return the process at the other end of each flow; UNKNOWN_PEER for an unrecorded process."""
        hashes = self.communicators["hash"][self.communicator[self.task]].tolist()
        keys = zip(hashes, self.flows["peer"].tolist(), strict=True)
        return np.array([members.get(key, UNKNOWN_PEER) for key in keys], np.uint32)

    def overlap_ns(self, process: int) -> int:
        """Return the time that the tasks' sum counts more than once: proxies can work on several tasks at once."""
        whole = int(self.communicators["busy_ticks"][self.communicators_owner == process].sum())
        each = int(self.tasks["busy_ticks"][self.tasks_owner == process].sum())
        return max(round((each - whole) * float(self.tick_ns[process])), 0) if self.is_alone[process] else 0

    def notes(self, process: int) -> Iterator[str]:
        """Yield a sentence on each kind of data that a process could not record."""
        lost = int(self.communicators["operations_lost"][self.communicators_owner == process].sum())
        if lost:
            yield LOST.format(lost)


def read_nccl(file: RecordingFile) -> NcclRecords:
    """Read NCCL's records in a file.

    Raises:
        InputError: a flow lacks its task, or a task its communicator.
    """
    communicators, communicators_owner = file.records("IBP_SEGMENT_NCCL_COMMUNICATORS")
    tasks, tasks_owner = file.records("IBP_SEGMENT_NCCL_TASKS")
    flows, flows_owner = file.records("IBP_SEGMENT_NCCL_FLOWS")
    return NcclRecords(
        communicators,
        tasks,
        flows,
        communicators_owner,
        locate_records(file, "a communicator", tasks["communicator"], tasks_owner, communicators_owner),
        locate_records(file, "a task", flows["task"], flows_owner, tasks_owner),
        tasks_owner,
        flows_owner,
        _find_tick_ns(communicators, communicators_owner, len(file.processes)),
        file.processes["source"] == Source.NCCL,
    )


def _find_tick_ns(communicators: Records, owner: npt.NDArray[np.intp], processes: int) -> npt.NDArray[np.float64]:
    """Return the length of each process's tick, from the communicator with the longest time between clock readings."""
    tick_ns, longest = np.zeros(processes), np.zeros(processes)
    for record, process in zip(communicators, owner.tolist(), strict=True):
        ticks = int(record["clock_ticks"][1]) - int(record["clock_ticks"][0])
        elapsed_ns = int(record["clock_ns"][1]) - int(record["clock_ns"][0])
        if min(ticks, elapsed_ns) > 0 and elapsed_ns > longest[process]:
            tick_ns[process], longest[process] = elapsed_ns / ticks, elapsed_ns
    return tick_ns


def find_members(records: Sequence[NcclRecords], ranks: Sequence[npt.NDArray[np.int32]]) -> Members:
    """Return the process of each rank of each communicator.

    Args:
        records: records of each file of one run.
        ranks: number of each file's processes, int32 [process].
    """
    members: Members = {}
    for each, number in zip(records, ranks, strict=True):
        owners = number[each.communicators_owner].tolist()
        for hash_, rank, owner in zip(
            each.communicators["hash"].tolist(), each.communicators["rank"].tolist(), owners, strict=True
        ):
            if members.setdefault((hash_, rank), owner) != owner:
                members[hash_, rank] = UNKNOWN_PEER  # two jobs in one run
    members.pop((0, recording_layout().constants["IBP_PEER_UNKNOWN"]), None)
    return members


def sum_flows(
    records: NcclRecords,
    members: Members,
    rank: npt.NDArray[np.int32],
    region: npt.NDArray[np.int32],
    operation: npt.NDArray[np.int32],
) -> Columns:
    """Return rows of `Counters`: bytes and network transfers, summed over communicators, algorithms and channels.

    Args:
        members: processes by communicator and rank, of the whole run.
        rank: number of each process.
        region, operation: number of each task's region and operation in the profile.
    """
    flows = records.flows
    keys = np.stack(
        [
            rank[records.flows_owner].astype(np.int64),
            region[records.task],
            operation[records.task],
            np.where(flows["is_send"] != 0, Direction.SENT, Direction.RECEIVED),
            records.peers(members),
        ]
    )
    used = (flows["bytes"] | flows["steps"]) != 0
    distinct, group = np.unique(keys[:, used], axis=1, return_inverse=True)
    count = distinct.shape[1]
    sums = {name: _sum_groups(flows[name][used], group.ravel(), count) for name in ("bytes", "steps")}
    return {
        "rank": distinct[0].astype(np.int32),
        "region": distinct[1].astype(np.int32),
        "operation": distinct[2].astype(np.int32),
        "site": np.zeros(count, np.int32),
        "direction": distinct[3].astype(np.uint8),
        "peer": distinct[4].astype(np.uint32),
        "kind": np.full(count, Kind.USER, np.uint8),
        "source": np.full(count, Source.NCCL, np.uint8),
        "bytes": sums["bytes"],
        "messages": sums["steps"],
    }


def sum_tasks(
    records: NcclRecords,
    rank: npt.NDArray[np.int32],
    region: npt.NDArray[np.int32],
    operation: npt.NDArray[np.int32],
) -> Columns:
    """Return rows of `CallTimes`: number of calls, and the time in which a proxy worked on a call.

    Args:
        records, rank, region, operation: as in `sum_flows`.
    """
    tasks = records.tasks
    busy_ns = np.rint(tasks["busy_ticks"] * records.tick_ns[records.tasks_owner]).astype(np.uint64)
    keys = np.stack([rank[records.tasks_owner].astype(np.int64), region, operation])
    # In a process with MPI, the proxies' time is no time in calls.
    used = (tasks["calls"] != 0) & records.is_alone[records.tasks_owner]
    distinct, group = np.unique(keys[:, used], axis=1, return_inverse=True)
    count = distinct.shape[1]
    return {
        "rank": distinct[0].astype(np.int32),
        "region": distinct[1].astype(np.int32),
        "operation": distinct[2].astype(np.int32),
        "site": np.zeros(count, np.int32),
        "calls": _sum_groups(tasks["calls"][used], group.ravel(), count),
        "time_ns": _sum_groups(busy_ns[used], group.ravel(), count),
        "error_ns": np.zeros(count, np.uint64),
    }


def _sum_groups(values: npt.NDArray[np.uint64], group: npt.NDArray[np.intp], count: int) -> npt.NDArray[np.uint64]:
    sums = np.zeros(count, np.uint64)
    np.add.at(sums, group, values)
    return sums
