# SPDX-License-Identifier: Apache-2.0
"""Merge the files of a recorded run into a Profile.

Each process has its own numbers of regions, and each file its own numbers of operations. This module gives each name
one number in the profile. Names of lower ranks get lower numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError
from ibprof.native.headers import recording_layout
from ibprof.profile.missing_data import CUT_SHORT
from ibprof.profile.profile_data import (
    CallTimes,
    CollectiveSamples,
    Counters,
    Demands,
    Direction,
    Grid,
    Host,
    Interface,
    Intervals,
    IntervalTimes,
    Kind,
    Mark,
    MarkKind,
    MessageSamples,
    MessageSizes,
    Port,
    PortPair,
    Profile,
    Rank,
    RegionTimes,
    Site,
    Source,
    Transfers,
)
from ibprof.profile.profile_rows import COLUMN_TYPES, join_rows
from ibprof.profile.row_arrays import Columns
from ibprof.recording.call_sites import CallSites, resolve_sites
from ibprof.recording.counter_records import (
    find_overlaps,
    find_owners,
    find_times,
    read_counters,
    read_demands,
    read_sizes,
    read_times,
    resolve_peers,
)
from ibprof.recording.folder_runs import RecordedRun, choose_run, list_runs, read_launch, read_scheduler_job
from ibprof.recording.host_file import RecordingFile, Records, decode_text, locate_records
from ibprof.recording.intervals import read_interval_times, read_intervals
from ibprof.recording.nccl_records import (
    UNKNOWN_OPERATION,
    Members,
    NcclRecords,
    Rings,
    find_members,
    find_rings,
    read_nccl,
    read_ring_samples,
    sum_flows,
    sum_tasks,
)
from ibprof.recording.recorded_ports import (
    describe_copy,
    read_boots,
    read_choices,
    read_grids,
    read_interfaces,
    read_ports,
    read_transfers,
    read_transports,
)
from ibprof.recording.recorded_samples import (
    NCCL_SAMPLES,
    SAMPLES,
    SampleChoice,
    choose_samples,
    describe_sampling,
    join_samples,
    read_samples,
)
from ibprof.text.host_lists import find_job_hosts

Indices = npt.NDArray[np.intp]

NO_MPI = "is a process without MPI: only the bytes that it posted to queue pairs were recorded"
STARTED_ALONE = (
    "the {0} processes of this launch are {0} jobs of one rank each: their MPI ({1}) did not recognise the launcher. "
    "The launcher probably belongs to another MPI. Start the program with the mpirun of its own MPI"
)
UNNAMED = (
    "the launcher gave the job no name: {} files count as one run, because of "
    "their processes' ancestors and start times"
)
ELSEWHERE = "the launcher gave the job no name: missing ranks may be in --run {}"

FULL = {
    "IBP_FULL_MOVED": "the recording was removed or moved while the job ran, or the program changed its root",
    "IBP_FULL_USER": "the program changed to a user who may not write to the recording",
}
"""Reasons for incomplete recording, by the names of enum ibp_full."""


def read_recording(path: Path, run: str | None = None) -> Profile:
    """Read one run of a recording.

    Args:
        path: a folder, or a file in it.
        run: name of the run; None for the newest.

    Raises:
        InputError: a file is no recording, or is damaged.
        InconsistentError: files contradict each other.
        UsageError: no run has this name.
    """
    return merge_run(path, choose_run(path, list_runs(path), run))


def merge_run(path: Path, run: RecordedRun) -> Profile:
    """Read the files of a run.

    Args:
        path: path of the recording; names the profile.
        run: one of `list_runs`.

    Raises:
        InputError: a file is damaged.
        InconsistentError: files contradict each other.
    """
    files = list(run.files)
    world_size, numbers = number_processes(files)
    # Read files in the order of ranks, so that rank 0's names come first.
    order = sorted(range(len(files)), key=lambda index: int(min(numbers[index], default=0)))
    names = _SharedNumbers()
    owners = find_owners(files, numbers)
    choice = choose_samples(files)
    nccl = [read_nccl(file) for file in files]
    members = find_members(nccl, numbers)
    rings = find_rings(nccl, members)
    parts = [
        _read_file(files[index], numbers[index], names, owners, choice, nccl[index], members, rings) for index in order
    ]
    every = (pair for index in order for pair in zip(numbers[index], files[index].processes, strict=True))
    _, first = min(every, key=lambda pair: int(pair[0]))
    said = tuple(_describe_grouping(run))
    began_ns = min((int(process["start_ns"]) for file in files for process in file.processes), default=None)
    sites, sites_without_lines = resolve_sites(tuple(names.sites), began_ns)
    return Profile(
        name=path.name or str(path),
        mpi=decode_text(first["mpi"]),
        command=decode_text(first["command"]),
        job=files[0].job,
        world_size=world_size,
        operations_asked=decode_text(first["operations"]),
        hosts=tuple(
            Host(name, tuple(ports.values()), tuple(names.interfaces[name].values()))
            for name, ports in names.hosts.items()
        ),
        ranks=tuple(
            replace(rank, notes=rank.notes + said)
            for rank in sorted((rank for part in parts for rank in part.ranks), key=lambda rank: rank.rank)
        ),
        regions=tuple(names.regions),
        operations=tuple(names.operations),
        counters=join_rows(Counters, [rows for part in parts for rows in (part.counters, part.nccl_counters)]),
        region_times=join_rows(RegionTimes, [part.region_times for part in parts]),
        sizes=join_rows(MessageSizes, [part.sizes for part in parts]),
        marks=tuple(sorted((mark for part in parts for mark in part.marks), key=lambda mark: mark.rank)),
        job_hosts=tuple(find_job_hosts(read_launch(files), decode_text(first["command"]).partition(" ")[0])),
        pairs=tuple(names.pairs),
        transfers=join_rows(Transfers, [part.transfers for part in parts]),
        intervals=join_rows(Intervals, [interval for part in parts for interval in part.intervals]),
        interval_times=join_rows(IntervalTimes, [interval for part in parts for interval in part.interval_times]),
        demands=join_rows(Demands, [part.demands for part in parts]),
        times=join_rows(CallTimes, [rows for part in parts for rows in (part.times, part.nccl_times)]),
        collective_samples=join_samples(
            CollectiveSamples, [rows for part in parts for rows in (part.collective_samples, part.nccl_samples)]
        ),
        message_samples=join_samples(MessageSamples, [part.message_samples for part in parts]),
        scheduler=read_scheduler_job([files[index] for index in order]),
        sites=sites,
        sites_without_lines=sites_without_lines,
    )


def _describe_grouping(run: RecordedRun) -> Iterator[str]:
    """Yield sentences on files whose run is uncertain."""
    if run.is_unnamed:
        yield UNNAMED.format(len(run.files))
    if run.complements:
        yield ELSEWHERE.format(", ".join(run.complements))


@dataclass(frozen=True, slots=True)
class _SharedNumbers:
    """Numbers of regions, operations, pairs and sites in the profile, and hosts' ports, from all files read so far."""

    regions: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, dict[tuple[str, int], Port]] = field(default_factory=dict)
    interfaces: dict[str, dict[str, Interface]] = field(default_factory=dict)
    pairs: dict[PortPair, int] = field(default_factory=dict)
    sites: dict[Site, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _FilePart:
    """The rows of one file, with the profile's numbers of regions, operations, pairs and sites."""

    ranks: list[Rank]
    counters: Columns
    region_times: Columns
    sizes: Columns
    marks: list[Mark]
    transfers: Columns
    intervals: list[Columns]
    interval_times: list[Columns]
    demands: Columns
    times: Columns
    collective_samples: Columns
    message_samples: Columns
    nccl_counters: Columns
    nccl_times: Columns
    nccl_samples: Columns


def number_processes(files: Sequence[RecordingFile]) -> tuple[int, list[npt.NDArray[np.int32]]]:
    """Number the processes of each file: ranks, then processes without MPI in the order of start.

    Returns:
        The size of MPI_COMM_WORLD, or without MPI the number of processes; and a different number for each process.
    """
    without_mpi = [file.processes["world_size"] == 0 for file in files]
    size = _check_world(files)
    starts = [
        (int(file.processes["start_ns"][process]), index, int(process))
        for index, (file, without) in enumerate(zip(files, without_mpi, strict=True))
        for process in np.flatnonzero(without)
    ]
    numbers = [file.processes["world_rank"].astype(np.int32) for file in files]
    for number, (_, index, process) in enumerate(sorted(starts)):
        numbers[index][process] = size + number
    return size or len(starts), numbers


def _count_alone(files: Sequence[RecordingFile]) -> int:
    """Return the number of processes with MPI if all have an MPI_COMM_WORLD of one rank; else 0."""
    sizes = [size for file in files for size in file.processes["world_size"].tolist() if size]
    return len(sizes) if set(sizes) == {1} else 0


def _check_world(files: Sequence[RecordingFile]) -> int:
    """Check the recorded ranks, and return the size of MPI_COMM_WORLD; 0 without MPI."""
    seen: dict[int, RecordingFile] = {}
    sizes = set()
    for file in files:
        for rank, size in file.processes[["world_rank", "world_size"]].tolist():
            if not size:
                continue
            if rank >= size:
                raise InputError(
                    file.path, None, f"ranks 0 to {size - 1}, since MPI_COMM_WORLD has {size} ranks", f"rank {rank}"
                )
            if rank in seen and (number := _count_alone(files)):
                mpi = " ".join(decode_text(file.processes[0]["mpi"]).partition(",")[0].partition("\n")[0].split())
                raise InconsistentError(STARTED_ALONE.format(number, mpi))
            if rank in seen:
                raise InconsistentError(f"rank {rank} was recorded twice in one run: {seen[rank].path}, {file.path}")
            seen[rank] = file
            sizes.add(size)
    if not any(len(file.processes) for file in files):
        raise InputError(files[0].path, None, "a recorded process", "none: all ended before MPI_Init returned")
    if len(sizes) > 1:
        raise InconsistentError(
            f"the processes of one run report different numbers of ranks: {sorted(sizes)} ({files[0].path.parent})"
        )
    return int(max(sizes, default=0))


def _read_file(
    file: RecordingFile,
    world_rank: npt.NDArray[np.int32],
    names: _SharedNumbers,
    owners: dict[bytes, int],
    choice: SampleChoice,
    nccl: NcclRecords,
    members: Members,
    rings: Rings,
) -> _FilePart:
    ports = names.hosts.setdefault(file.host, {})
    host = list(names.hosts).index(file.host)
    for port in read_ports(file):
        ports.setdefault((port.device, port.port), port)
    interfaces = names.interfaces.setdefault(file.host, {})
    for interface in read_interfaces(file):
        interfaces.setdefault(interface.name, interface)
    operation = np.array(
        [names.operations.setdefault(name, len(names.operations)) for name in file.operations], np.int32
    )
    regions = _Regions(file, world_rank, names)
    sites = CallSites(file, world_rank, names.sites)
    counters, owner = read_counters(file)
    # Leave out empty counters: at a mark, the bytes of a counter move to another region.
    used = (counters["bytes"] | counters["messages"]) != 0
    if not used.all():
        counters, owner = counters[used], owner[used]
    _check_rows(file, counters, owner)
    intervals = read_intervals(file, world_rank, counters, owner, owners)
    counters["peer"] = resolve_peers(file, counters["peer"], owner, owners)
    sizes, sizes_owner = read_sizes(file)
    kept = np.flatnonzero(sizes["messages"].any(axis=1))
    sizes, sizes_owner = sizes[kept], sizes_owner[kept]
    _check_rows(file, sizes, sizes_owner)
    demands, demands_owner = read_demands(file)
    kept = np.flatnonzero(demands["calls"])
    demands, demands_owner = demands[kept], demands_owner[kept]
    _check_rows(file, demands, demands_owner)
    times, times_owner = read_times(file)
    _check_rows(file, times, times_owner)
    inside = find_times(file, times, times_owner)
    overlaps = find_overlaps(file, times, times_owner)
    collectives, messages = (
        read_samples(file, kind, world_rank, operation, regions.translate, sites.translate, choice) for kind in SAMPLES
    )
    of_nccl = (
        world_rank,
        regions.translate(nccl.tasks["region"], nccl.tasks_owner),
        np.array([names.operations.setdefault(name, len(names.operations)) for name in nccl.operations()], np.int32),
    )
    unknown = names.operations.setdefault(UNKNOWN_OPERATION, len(names.operations)) if len(nccl.samples) else 0
    cut = (CUT_SHORT,) if file.cut_short or file.has_zero_page() else ()
    part = _FilePart(
        ranks=[
            replace(
                _read_rank(file, index, number, host, grids, nccl, cut),
                choices=choices,
                transports=transports,
                boot=boot,
                overlap_ns=overlap_ns or nccl.overlap_ns(index),
            )
            for index, (process, number, grids, choices, transports, boot, overlap_ns) in enumerate(
                zip(
                    file.processes,
                    world_rank.tolist(),
                    read_grids(file),
                    read_choices(file),
                    read_transports(file),
                    read_boots(file),
                    overlaps,
                    strict=True,
                )
            )
        ],
        counters=dict(
            rank=world_rank[owner],
            region=regions.translate(counters["region"], owner),
            operation=operation[counters["operation"]],
            site=sites.translate(counters, owner),
            **_columns(counters, ("peer", "kind", "direction", "source", "bytes", "messages")),
        ),
        region_times=dict(
            rank=world_rank[regions.owner],
            region=regions.common,
            **_columns(regions.records, ("visits", "wall_ns", "first_ns", "last_ns")),
        ),
        sizes=dict(
            rank=world_rank[sizes_owner],
            region=regions.translate(sizes["region"], sizes_owner),
            operation=operation[sizes["operation"]],
            site=sites.translate(sizes, sizes_owner),
            **_columns(sizes, ("kind", "direction", "messages")),
        ),
        marks=_read_marks(file, regions, world_rank),
        transfers=read_transfers(file, host, world_rank, names.pairs, regions.translate),
        intervals=intervals,
        interval_times=read_interval_times(file, world_rank, times, times_owner),
        demands=dict(
            rank=world_rank[demands_owner],
            region=regions.translate(demands["region"], demands_owner),
            operation=operation[demands["operation"]],
            site=sites.translate(demands, demands_owner),
            **_columns(demands, ("partner", "bytes", "calls")),
        ),
        times=dict(
            rank=world_rank[times_owner],
            region=regions.translate(times["region"], times_owner),
            operation=operation[times["operation"]],
            site=sites.translate(times, times_owner),
            **inside,
        ),
        collective_samples=collectives,
        message_samples=messages,
        nccl_counters=sum_flows(nccl, members, *of_nccl),
        nccl_times=sum_tasks(nccl, *of_nccl),
        nccl_samples=read_ring_samples(nccl, rings, choice.thinning[NCCL_SAMPLES], *of_nccl, unknown),
    )
    file.release()
    return part


class _Regions:
    """The regions of a file's processes, with their numbers in the profile.

    Attributes:
        records: `ibp_region` of all processes, process by process.
        owner: process of each region.
        common: int32, number of each region in the profile.
    """

    def __init__(self, file: RecordingFile, world_rank: npt.NDArray[np.int32], names: _SharedNumbers) -> None:
        self._file = file
        self.records, self.owner = file.records("IBP_SEGMENT_REGIONS")
        in_order_of_rank = np.argsort(world_rank[self.owner], kind="stable")
        # Most ranks have the same names: each name is decoded once.
        found, first, which = np.unique(self.records["name"][in_order_of_rank], return_index=True, return_inverse=True)
        common = np.empty(len(found), np.int32)
        for index in np.argsort(first):
            common[index] = names.regions.setdefault(decode_text(found[index]), len(names.regions))
        self.common = np.empty(len(self.records), np.int32)
        self.common[in_order_of_rank] = common[which]

    def translate(self, region: npt.NDArray[np.uint32], owner: Indices) -> npt.NDArray[np.int32]:
        """Return the profile's numbers of regions, from the processes' own numbers."""
        return self.common[locate_records(self._file, "a region", region, owner, self.owner)]


def _check_rows(file: RecordingFile, rows: Records, owner: Indices) -> None:
    """Raise InputError if an enum value in counters or message sizes is out of range."""
    limits = {"operation": len(file.operations), "kind": len(Kind), "direction": len(Direction), "source": len(Source)}
    # Sizes have no source.
    for name in [name for name in limits if name in (rows.dtype.names or ())]:
        beyond = np.flatnonzero(rows[name] >= limits[name])
        if len(beyond):
            rank = file.processes["world_rank"][owner[beyond[0]]]
            found = f"{rows[name][beyond[0]]} in a counter of rank {rank}"
            raise InputError(file.path, None, f"{name} below {limits[name]}", found)


def _read_rank(
    file: RecordingFile,
    index: int,
    number: int,
    host: int,
    grids: tuple[Grid, ...],
    nccl: NcclRecords,
    cut: tuple[str, ...],
) -> Rank:
    process = file.processes[index]
    if process["source"] >= len(Source):
        raise InputError(file.path, None, f"a source below {len(Source)}", str(process["source"]))
    notes = [line for line in decode_text(process["notes"]).splitlines() if line.strip()]
    if process["regions_refused"]:
        notes.append(
            f"recording full: a region could not be added {process['regions_refused']} times; "
            "traffic of such regions is in the enclosing region"
        )
    notes += nccl.notes(index)
    if not process["world_size"] and process["source"] != Source.NCCL:
        notes.append(NO_MPI)
    if process["transfers_lost_messages"]:
        notes.append(
            f"recording full: {process['transfers_lost_messages']} work requests, "
            f"{process['transfers_lost_bytes']} bytes in total, are missing from the bytes between ports"
        )
    for name, why in FULL.items():
        if file.full == recording_layout().constants[name]:
            notes.append(f"{why}: later peers, regions and marks could not be added")
    notes += cut
    if file.skipped:
        kinds = ", ".join(map(str, file.skipped))
        notes.append(f"ibprof {file.library} recorded more than this version can read (segments of kind {kinds})")
    notes += describe_copy(file, process)
    return Rank(
        rank=number,
        host=host,
        pid=int(process["pid"]),
        start_ns=int(process["start_ns"]),
        stop_ns=int(process["stop_ns"]) or None,
        finalized=_has_flag(process, "IBP_PROCESS_FINALIZED"),
        source=Source(process["source"]),
        thread_level=int(process["thread_level"]),
        lost_bytes=int(process["lost_bytes"]),
        lost_messages=int(process["lost_messages"]),
        off_ns=int(process["off_ns"]),
        marks_seen=int(process["marks_seen"]),
        notes=tuple(notes),
        queue_pairs_unseen=int(process["queue_pairs_unseen"]),
        grids=grids,
        sees_host=_has_flag(process, "IBP_PROCESS_SEES_HOST"),
        has_demands=_has_flag(process, "IBP_PROCESS_DEMANDS"),
        has_times=bool(process["times_weight"]) or bool(nccl.is_alone[index]),
        cpu_ns=int(process["cpu_ns"]),
        no_core_ns=int(process["no_core_ns"]),
        **describe_sampling(process),
    )


def _has_flag(process: np.void, name: str) -> bool:
    return bool(process["flags"] & recording_layout().constants[name])


def _read_marks(file: RecordingFile, regions: _Regions, world_rank: npt.NDArray[np.int32]) -> list[Mark]:
    records, owner = file.records("IBP_SEGMENT_MARKS")
    if len(records) and records["kind"].max() >= len(MarkKind):
        raise InputError(file.path, None, f"kinds of marks below {len(MarkKind)}", str(records["kind"].max()))
    region = regions.translate(records["region"], owner)
    when: list[tuple[int, int]] = records[["time_ns", "kind"]].tolist()
    totals: list[tuple[int, int, int, int]] = records[
        ["sent_bytes", "sent_messages", "received_bytes", "received_messages"]
    ].tolist()
    return [
        Mark(rank, time_ns, MarkKind(kind), common, *total)
        for rank, common, (time_ns, kind), total in zip(
            world_rank[owner].tolist(), region.tolist(), when, totals, strict=True
        )
    ]


def _columns(records: Records, names: Sequence[str]) -> Columns:
    return {name: records[name].astype(COLUMN_TYPES[name]) for name in names}
