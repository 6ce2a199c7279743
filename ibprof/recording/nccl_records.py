# SPDX-License-Identifier: Apache-2.0
"""Read the bytes that proxies of NCCL or RCCL sent, from the records of the profiler plug-in.

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
"""Operation of proxies' work for a GPU of another process, or for an unseen call."""

_WHOLE_RINGS = ("AllReduce", "AllGather", "ReduceScatter")
"""Functions with rings in which every rank sends and receives.

csrc/nccl/events.c numbers the operations of these functions in one sequence.
"""

LOST = "NCCL: the recording lacks the bytes of {} operations of proxies: no memory was left"

Members = dict[tuple[int, int], int]
"""(communicator hash, rank) -> process, or UNKNOWN_PEER if several processes have this rank."""


Rings = dict[tuple[int, int], dict[int, int]]
"""(communicator hash, channel) -> {sending rank: index among the sending ranks}."""


@dataclass(frozen=True, slots=True)
class NcclRecords:
    """NCCL's records in one file.

    Attributes:
        communicators, tasks, flows: `ibp_nccl_communicator`, `ibp_nccl_task`, `ibp_nccl_flow`.
        communicators_owner: process of each communicator.
        communicator: index of each task's communicator.
        task: index of each flow's task.
        tasks_owner, flows_owner: process of each task; process of each flow.
        samples: ended samples (`ibp_nccl_sample`) of processes without recorded MPI.
        sample_task: index of each sample's task.
        is_ring: bool [task], true for a ring in which all ranks send and receive.
        busy_ticks: float64 [task], duration of the proxies' work; in rings, from the GPU's first data on.
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
    samples: Records
    sample_task: npt.NDArray[np.intp]
    is_ring: npt.NDArray[np.bool_]
    busy_ticks: npt.NDArray[np.float64]
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
        """Return the ns that tasks' times count repeatedly, because proxies work on several tasks at once."""
        whole = int(self.communicators["busy_ticks"][self.communicators_owner == process].sum())
        mine = self.tasks_owner == process
        each = int(self.tasks["busy_ticks"][mine].sum())
        # `busy_ticks` leave out the time before a GPU's first data. Assume that this shortens the overlap by
        # the same factor as the tasks' times.
        left = float(self.busy_ticks[mine].sum()) / max(each, 1)
        return max(round((each - whole) * left * float(self.tick_ns[process])), 0) if self.is_alone[process] else 0

    def notes(self, process: int) -> Iterator[str]:
        """Yield a sentence on each kind of data that a process could not record."""
        lost = int(self.communicators["operations_lost"][self.communicators_owner == process].sum())
        if lost:
            yield LOST.format(lost)


def read_nccl(file: RecordingFile) -> NcclRecords:
    """Read NCCL's records in a file.

    Raises:
        InputError: a flow has no task, or a task has no communicator.
    """
    communicators, communicators_owner = file.records("IBP_SEGMENT_NCCL_COMMUNICATORS")
    tasks, tasks_owner = file.records("IBP_SEGMENT_NCCL_TASKS")
    flows, flows_owner = file.records("IBP_SEGMENT_NCCL_FLOWS")
    samples, samples_owner = file.records("IBP_SEGMENT_NCCL_SAMPLES")
    is_alone = file.processes["source"] == Source.NCCL
    ended = (samples["number"] != 0) & (samples["arrival_ns"] != 0) & (samples["stop_ns"] != 0)
    ended &= is_alone[samples_owner]
    samples, samples_owner = samples[ended], samples_owner[ended]
    task = locate_records(file, "a task", flows["task"], flows_owner, tasks_owner)
    is_ring = _find_rings(tasks)
    return NcclRecords(
        communicators,
        tasks,
        flows,
        communicators_owner,
        locate_records(file, "a communicator", tasks["communicator"], tasks_owner, communicators_owner),
        task,
        tasks_owner,
        flows_owner,
        samples,
        locate_records(file, "a task", samples["task"], samples_owner, tasks_owner),
        is_ring,
        _find_busy_ticks(tasks, flows, task, is_ring),
        _find_tick_ns(communicators, communicators_owner, len(file.processes)),
        is_alone,
    )


def _find_rings(tasks: Records) -> npt.NDArray[np.bool_]:
    """Return a mask of the tasks whose ranks all send and receive in a ring."""
    texts = [(decode_text(task["algorithm"]).upper(), decode_text(task["function"])) for task in tasks]
    return np.array([algorithm == "RING" and name in _WHOLE_RINGS for algorithm, name in texts], np.bool_)


def _find_busy_ticks(
    tasks: Records, flows: Records, task: npt.NDArray[np.intp], is_ring: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return the ticks of proxies' work on each task; in rings, from the GPU's first data on.

    All channels of a task wait for the GPU at the same time: subtract only the longest wait from the task's ticks.
    """
    before = np.zeros(len(tasks), np.uint64)
    np.maximum.at(before, task, np.where((flows["is_send"] != 0) & is_ring[task], flows["arrival_ticks"], 0))
    return np.maximum(tasks["busy_ticks"].astype(np.float64) - before, 0)


def _find_tick_ns(communicators: Records, owner: npt.NDArray[np.intp], processes: int) -> npt.NDArray[np.float64]:
    """Return the tick length of each process, from the communicator with the longest time between clock readings."""
    tick_ns, longest = np.zeros(processes), np.zeros(processes)
    for record, process in zip(communicators, owner.tolist(), strict=True):
        ticks = int(record["clock_ticks"][1]) - int(record["clock_ticks"][0])
        elapsed_ns = int(record["clock_ns"][1]) - int(record["clock_ns"][0])
        if min(ticks, elapsed_ns) > 0 and elapsed_ns > longest[process]:
            tick_ns[process], longest[process] = elapsed_ns / ticks, elapsed_ns
    return tick_ns


def find_members(records: Sequence[NcclRecords], ranks: Sequence[npt.NDArray[np.int32]]) -> Members:
    """Return the process for each rank in each communicator.

    Args:
        records: records of each file of one run.
        ranks: for each file, the numbers of processes in the profile, int32 [process].
    """
    members: Members = {}
    for each, number in zip(records, ranks, strict=True):
        owners = number[each.communicators_owner].tolist()
        for hash_, rank, owner in zip(
            each.communicators["hash"].tolist(), each.communicators["rank"].tolist(), owners, strict=True
        ):
            if members.setdefault((hash_, rank), owner) != owner:
                members[hash_, rank] = UNKNOWN_PEER  # two jobs of one run have this communicator and rank
    members.pop((0, recording_layout().constants["IBP_PEER_UNKNOWN"]), None)
    return members


def find_rings(records: Sequence[NcclRecords], members: Members) -> Rings:
    """Number the ranks that send on each channel of each ring.

    A ring is left out if a receiving rank was not recorded. A ring is also left out if a rank receives nothing and
    sends to a sending rank: such a rank can end before its data arrive.
    """
    senders: dict[tuple[int, int], dict[int, int]] = {}
    receivers: dict[tuple[int, int], set[int]] = {}
    for each in records:
        communicators = each.communicators[each.communicator[each.task]]
        for hash_, rank, flow in zip(
            communicators["hash"][of_ring := each.is_ring[each.task]].tolist(),
            communicators["rank"][of_ring].tolist(),
            each.flows[of_ring],
            strict=True,
        ):
            key = hash_, int(flow["channel"])
            if flow["is_send"]:
                senders.setdefault(key, {})[rank] = int(flow["peer"])
            else:
                receivers.setdefault(key, set()).add(rank)
    return {
        key: {rank: number for number, rank in enumerate(sorted(peers))}
        for key, peers in senders.items()
        if all(members.get((key[0], peer), UNKNOWN_PEER) != UNKNOWN_PEER for peer in peers.values())
        and all(rank in receivers.get(key, ()) or peer not in peers for rank, peer in peers.items())
    }


def read_ring_samples(
    records: NcclRecords,
    rings: Rings,
    thinning: int,
    rank: npt.NDArray[np.int32],
    region: npt.NDArray[np.int32],
    operation: npt.NDArray[np.int32],
    unknown: int,
) -> Columns:
    """Return rows of `CollectiveSamples`. In a ring, a collective starts with the GPU's first data to send.

    In other algorithms, ranks pass on received data, so the times when GPUs were ready are unknown. Samples of other
    algorithms get the operation `unknown`, so that their time is not split into waiting and transfer.

    Args:
        rings: result of `find_rings`.
        thinning: 1 of 2^thinning samples is read.
        rank, region, operation: as in `sum_flows`.
        unknown: number of `UNKNOWN_OPERATION` in the profile.
    """
    samples, task = records.samples, records.sample_task
    communicators = records.communicators[records.communicator[task]]
    owner = records.tasks_owner[task]
    channel = samples["channel"].astype(np.uint64)
    hash_ = _mix(communicators["hash"] ^ channel << np.uint64(32) ^ samples["number"])
    level = samples["level"] + np.uint64(thinning)
    kept = np.flatnonzero((hash_ & ((np.uint64(1) << level) - np.uint64(1))) == 0)
    places = []
    for index in kept.tolist():
        ring = (
            rings.get((int(communicators["hash"][index]), int(channel[index])))
            if records.is_ring[task[index]]
            else None
        )
        places.append((len(ring), ring.get(int(communicators["rank"][index]), 0)) if ring else (0, 0))
    size, member = np.array(places, np.uint32).reshape(-1, 2).T
    samples, task, owner, is_split = samples[kept], task[kept], owner[kept], size > 0
    name = _mix(_mix(communicators["hash"][kept]) ^ channel[kept])
    alone = _mix(rank[owner].astype(np.uint64) << np.uint64(32) | kept.astype(np.uint64))
    start = samples["arrival_ns"].astype(np.int64)
    return {
        "rank": rank[owner],
        "communicator": np.where(is_split, name, alone),
        "number": samples["number"],
        "region": region[task],
        "operation": np.where(is_split, operation[task], unknown),
        "site": np.zeros(len(kept), np.int32),
        "end_operation": operation[task],
        "end_site": np.zeros(len(kept), np.int32),
        "level": level[kept],
        "bytes": records.tasks["bytes"][task] // np.maximum(records.tasks["calls"][task], 1),
        "enter_ns": start,
        "exit_ns": np.maximum(samples["stop_ns"].astype(np.int64), start),
        "size": np.maximum(size, 1),
        "member": member,
        "root": np.full(len(kept), -1, np.int64),
        "start_ns": start,
        "is_long": np.zeros(len(kept), np.bool_),
        "is_chosen": np.ones(len(kept), np.bool_),
    }


def _mix(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the hash of each number, as csrc/nccl/events.c computes it."""
    hash_ = numbers * np.uint64(0x9E3779B97F4A7C15)
    for factor, shift in ((0xBF58476D1CE4E5B9, 30), (0x94D049BB133111EB, 27)):
        hash_ = (hash_ ^ hash_ >> np.uint64(shift)) * np.uint64(factor)
    mixed: npt.NDArray[np.uint64] = hash_ ^ hash_ >> np.uint64(31)
    return mixed


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
        region, operation: indices of each task's region and operation in the profile.
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
    """Return rows of `CallTimes`: the number of NCCL's calls, and the time of proxies' work on these calls.

    Args:
        records, rank, region, operation: as in `sum_flows`.
    """
    tasks = records.tasks
    busy_ns = np.rint(records.busy_ticks * records.tick_ns[records.tasks_owner]).astype(np.uint64)
    keys = np.stack([rank[records.tasks_owner].astype(np.int64), region, operation])
    # Leave out processes that use MPI: their numbers of calls are of MPI calls, not of NCCL calls.
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
