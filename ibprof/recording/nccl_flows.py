# SPDX-License-Identifier: Apache-2.0
"""List the flows of NCCL's or RCCL's proxies in the recordings of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace

from ibprof.profile.profile_data import UNKNOWN_PEER
from ibprof.recording.host_file import RecordingFile, decode_text
from ibprof.recording.nccl_records import find_members, read_nccl
from ibprof.recording.recording_reader import number_processes
from ibprof.text.quantities import format_seconds

LATER = 2.0
"""A GPU is late only if its delay per operation exceeds this multiple of the median over ranks."""

LATE_S = 1e-3
"""A GPU is late only if its delay per operation exceeds the median by more than this, in seconds."""


@dataclass(frozen=True, slots=True)
class NcclFlow:
    """Bytes and waiting of a proxy on one channel. A sum over flows has no `peer` and no `channel`.

    Attributes:
        rank, host: the recording process and its host.
        communicator: hash of the communicator as 16 hex digits, and the name, if any.
        ranks: number of ranks of the communicator; 0 if unknown.
        function, algorithm, protocol: names that NCCL uses.
        region: the open region at the time of the call.
        channel: NCCL's channel number.
        direction: either `sent` or `received`.
        peer: rank at the other end, in the job; None if unknown.
        devices: numbers of devices that NCCL's InfiniBand transport reported, separated by blanks.
        bytes, steps, operations: bytes, number of network transfers, and number of proxy operations.
        gpu_wait_s, peer_wait_s, network_wait_s: waiting for the GPU, the peer and the network, in seconds.
        arrival_s: time from the begin of operations to the GPU's first data, in seconds.
    """

    rank: int
    host: str
    communicator: str
    ranks: int
    function: str
    algorithm: str
    protocol: str
    region: str
    channel: int | None
    direction: str
    peer: int | None
    devices: str
    bytes: int
    steps: int
    operations: int
    gpu_wait_s: float
    peer_wait_s: float
    network_wait_s: float
    arrival_s: float

    def row(self) -> tuple[object, ...]:
        """Return the values of `COLUMNS`."""
        return tuple(
            "" if value is None else f"{value:.9f}" if isinstance(value, float) else value for value in astuple(self)
        )


COLUMNS = tuple(each.name for each in fields(NcclFlow))


def list_flows(files: Sequence[RecordingFile]) -> list[NcclFlow]:
    """Return the flows of a run, by rank.

    Raises:
        InputError: a file is damaged.
        InconsistentError: files contradict each other.
    """
    _, numbers = number_processes(files)
    records = [read_nccl(file) for file in files]
    members = find_members(records, numbers)
    found = []
    for file, nccl, rank in zip(files, records, numbers, strict=True):
        regions, regions_owner = file.records("IBP_SEGMENT_REGIONS")
        names = {
            (int(owner), index): decode_text(regions["name"][place])
            for owner in set(regions_owner.tolist())
            for index, place in enumerate((regions_owner == owner).nonzero()[0])
        }
        for flow, task, owner, peer in zip(
            nccl.flows, nccl.task, nccl.flows_owner.tolist(), nccl.peers(members).tolist(), strict=True
        ):
            of_task, communicator = nccl.tasks[task], nccl.communicators[nccl.communicator[task]]
            tick_s = nccl.tick_ns[owner] * 1e-9
            hash_, name = f"{int(communicator['hash']):016x}", decode_text(communicator["name"])
            found.append(
                NcclFlow(
                    rank=int(rank[owner]),
                    host=file.host,
                    communicator=f"{hash_} {name}" if name else hash_,
                    ranks=int(communicator["ranks"]),
                    function=decode_text(of_task["function"]),
                    algorithm=decode_text(of_task["algorithm"]),
                    protocol=decode_text(of_task["protocol"]),
                    region=names.get((owner, int(of_task["region"])), ""),
                    channel=int(flow["channel"]),
                    direction="sent" if flow["is_send"] else "received",
                    peer=None if peer == UNKNOWN_PEER else peer,
                    devices=" ".join(str(bit) for bit in range(64) if int(flow["devices"]) >> bit & 1),
                    bytes=int(flow["bytes"]),
                    steps=int(flow["steps"]),
                    operations=int(flow["operations"]),
                    gpu_wait_s=float(flow["gpu_ticks"] * tick_s),
                    peer_wait_s=float(flow["peer_ticks"] * tick_s),
                    network_wait_s=float(flow["network_ticks"] * tick_s),
                    arrival_s=float(flow["arrival_ticks"] * tick_s),
                )
            )
    return sorted(found, key=lambda flow: flow.rank)


def sum_by_sender(flows: Sequence[NcclFlow]) -> list[NcclFlow]:
    """Return the sums of sent flows by rank, communicator, function, algorithm and protocol."""
    sums: dict[tuple[object, ...], list[NcclFlow]] = {}
    for flow in flows:
        key = (flow.communicator, flow.function, flow.algorithm, flow.protocol, flow.rank)
        if flow.direction == "sent":
            sums.setdefault(key, []).append(flow)
    return [_sum(sums[key]) for key in sorted(sums, key=str)]


def _sum(flows: Sequence[NcclFlow]) -> NcclFlow:
    return replace(
        flows[0],
        region="*",
        channel=None,
        peer=None,
        devices=" ".join(sorted({each for flow in flows for each in flow.devices.split()}, key=int)),
        **{name: sum(getattr(flow, name) for flow in flows) for name in COLUMNS[COLUMNS.index("bytes") :]},
    )


def describe_waits(flows: Sequence[NcclFlow]) -> Iterator[str]:
    """Yield a sentence on each late GPU, by communicator and function.

    In a ring, each rank first sends data of its GPU, so the first data show when the GPU is ready. In a tree, ranks
    send received data: trees are left out.
    """
    late: dict[tuple[str, str], dict[int, float]] = {}
    for each in sum_by_sender([flow for flow in flows if flow.algorithm.upper() == "RING"]):
        by_rank = late.setdefault((each.communicator, each.function), {})
        by_rank[each.rank] = by_rank.get(each.rank, 0.0) + each.arrival_s / max(each.operations, 1)
    for (communicator, function), by_rank in late.items():
        ordered = sorted(by_rank.values())
        median = ordered[(len(ordered) - 1) // 2]
        for rank, mean_s in by_rank.items():
            if len(by_rank) > 2 and mean_s > max(LATER * median, median + LATE_S):
                yield (
                    f"{function} on {communicator}: the GPU of rank {rank} provides its first data on "
                    f"average {format_seconds(mean_s)} after the proxy is ready; the median over ranks is "
                    f"{format_seconds(median)}"
                )
