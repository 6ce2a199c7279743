# SPDX-License-Identifier: Apache-2.0
"""Summarise a recorded job: command, hosts, duration, time in regions, message sizes, and traffic over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import SIZE_BINS, Direction, Kind, Profile, Source
from ibprof.profile.row_arrays import sum_by_group
from ibprof.profile.scheduler_job import SchedulerJob
from ibprof.verdict.verdict_data import RegionShare
from ibprof.waiting.wait_split import measure_waiting, split_each

_NS = 1e-9

TIME_BINS = 96
"""Number of intervals in the time line."""

_LATEST = 2**64 - 1


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A recorded job.

    Attributes:
        command, mpi, job: command line, MPI library and job, as in the profile.
        ranks, ranks_recorded, hosts: number of ranks, of recorded ranks, and of hosts.
        started_ns: the first rank's start, as Unix time.
        elapsed_s: time from the first rank's start to the last rank's MPI_Finalize, in seconds; None if a recorded rank
            did not reach MPI_Finalize.
        sources: names of layers with recorded bytes.
        operations_asked: operations that the user asked to record; empty for all.
        scheduler: identification of the job in the batch system; None outside a batch system.
    """

    command: str
    mpi: str
    job: str
    ranks: int
    ranks_recorded: int
    hosts: int
    started_ns: int
    elapsed_s: float | None
    sources: tuple[str, ...]
    operations_asked: str
    scheduler: SchedulerJob | None = None


@dataclass(frozen=True, slots=True)
class RegionTime:
    """Time in a region.

    Attributes:
        visits: number of visits by all ranks.
        longest_s, mean_s: longest and mean wall time of a rank in the region, in seconds, over ranks that visited the
            region.
        mpi_s, wait_s, line_rate_s: as in `RegionShare`, in seconds; None if unknown.
    """

    name: str
    visits: int
    longest_s: float
    mean_s: float
    mpi_s: float | None = None
    wait_s: float | None = None
    line_rate_s: float | None = None


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Messages of one size class.

    Attributes:
        name: text such as `1 KiB to 2 KiB`.
        from_bytes, to_bytes: smallest and largest message size of the class.
        least_bytes, most_bytes: bounds of the messages' total bytes: exact sizes are not recorded.
        share: fraction of all messages.
    """

    name: str
    from_bytes: int
    to_bytes: int
    messages: int
    least_bytes: int
    most_bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class TimeBin:
    """Bytes sent in a time interval.

    Attributes:
        begin_s, end_s: seconds since the first recorded interval began.
        bytes: bytes sent by all ranks.
        mpi_s: time inside MPI calls, summed over ranks; None if not recorded.
        wait_s: waiting time within `mpi_s`, estimated from sampled calls; None without sampled calls or `mpi_s`.
    """

    begin_s: float
    end_s: float
    bytes: int
    mpi_s: float | None = None
    wait_s: float | None = None


def describe_job(run: Profile) -> RecordedJob:
    """Return the data of a recorded job."""
    starts = [rank.start_ns for rank in run.ranks]
    stops = [rank.stop_ns for rank in run.ranks]
    started = min(starts, default=0)
    reached = [stop for stop in stops if stop is not None]
    sources = {rank.source.name.lower() for rank in run.ranks if rank.source != Source.NONE}
    return RecordedJob(
        command=run.command,
        mpi=" ".join(run.mpi.split()),
        job=run.job,
        ranks=run.world_size,
        ranks_recorded=sum(rank.rank < run.world_size for rank in run.ranks),
        hosts=len(run.hosts),
        started_ns=started,
        elapsed_s=(max(reached) - started) * _NS if stops and len(reached) == len(stops) else None,
        sources=tuple(sorted(sources | ({Source.VERBS.name.lower()} if len(run.transfers.bytes) else set()))),
        operations_asked=run.operations_asked,
        scheduler=run.scheduler if run.scheduler.system else None,
    )


def measure_regions(run: Profile, shares: Sequence[RegionShare] = ()) -> tuple[RegionTime, ...]:
    """Return the visits and times of each visited region, sorted by `longest_s`, descending.

    Args:
        shares: times inside MPI per region; empty if they were not recorded.
    """
    share_of = {share.name: share for share in shares}
    times, count = run.region_times, len(run.regions)
    visits = sum_by_group(times.region, count, times.visits)
    total = sum_by_group(times.region, count, times.wall_ns)
    ranks = np.bincount(times.region, minlength=count).tolist()
    longest = np.zeros(count, np.uint64)
    np.maximum.at(longest, times.region, times.wall_ns)
    measured = []
    for number, name in enumerate(run.regions):
        if ranks[number]:
            region = RegionTime(name, visits[number], int(longest[number]) * _NS, total[number] * _NS / ranks[number])
            if share := share_of.get(name):
                region = replace(region, mpi_s=share.mpi_s, wait_s=share.wait_s, line_rate_s=share.line_rate_s)
            measured.append(region)
    return tuple(sorted(measured, key=lambda each: -each.longest_s))


def count_sizes(run: Profile) -> tuple[SizeClass, ...]:
    """Count sent and fetched messages of user data by size class; classes without messages are left out."""
    sizes = run.sizes
    chosen = (sizes.kind == Kind.USER) & (sizes.direction != Direction.RECEIVED)
    messages = sizes.messages[chosen].sum(axis=0, dtype=np.uint64).tolist() if chosen.any() else [0] * SIZE_BINS
    total = sum(messages)
    limits = [(1 << number >> 1, (1 << number) - 1) for number in range(SIZE_BINS)]
    return tuple(
        SizeClass(_name_class(first, last), first, last, count, count * first, count * last, count / total)
        for (first, last), count in zip(limits, messages, strict=True)
        if count
    )


def _name_class(first: int, last: int) -> str:
    if first == last:
        return "empty" if not last else "1 B"
    return f"{_binary(first)} to {_binary(last + 1)}"


def _binary(amount: int) -> str:
    for power, unit in ((60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if amount >> power:
            return f"{amount >> power} {unit}"
    return f"{amount} B"


def follow_time(run: Profile) -> tuple[TimeBin, ...]:
    """Return the sent bytes and the time inside MPI calls of each time bin; empty if no intervals were recorded.

    Within a recorded interval, bytes and time are assumed to be spread evenly. The bins sum to all sent bytes.
    """
    intervals, times = run.intervals, run.interval_times
    if not len(intervals.bytes):
        return ()
    from ibprof_converter.analysis.traffic_over_time import sum_until  # noqa: PLC0415  (few runs recorded intervals)

    first = min(int(intervals.begin_ns.min()), int(times.begin_ns.min(initial=_LATEST)))
    last = max(int(intervals.end_ns.max()), int(times.end_ns.max(initial=0)))
    edges = np.linspace(0, max(last - first, 1), TIME_BINS + 1)
    sent = sum_until(intervals, intervals.bytes, first, edges)
    sent[-1] = total = sum(intervals.bytes.tolist())
    whole = [min(round(amount), total) for amount in sent.tolist()]
    whole[-1] = total
    inside_s = np.diff(sum_until(times, times.time_ns, first, edges)) * _NS
    inside = inside_s.tolist() if len(times.rank) else [None] * TIME_BINS
    parts = _follow_waiting(run, first + edges)
    waits = [None if mpi_s is None or part is None else mpi_s * part for mpi_s, part in zip(inside, parts, strict=True)]
    return tuple(
        TimeBin(float(begin) * _NS, float(end) * _NS, after - before, mpi_s, wait_s)
        for begin, end, before, after, mpi_s, wait_s in zip(
            edges[:-1], edges[1:], whole[:-1], whole[1:], inside, waits, strict=True
        )
    )


def _follow_waiting(run: Profile, edges_ns: npt.NDArray[np.float64]) -> list[float | None]:
    """Return the fraction of waiting in the sampled calls that begin in each interval; None without sampled calls."""
    spans = len(edges_ns) - 1
    measured = measure_waiting(run)
    if not measured:
        return [None] * spans
    calls = measured.calls
    at = np.searchsorted(edges_ns, calls.enter_ns + measured.unix_offset_ns, side="right") - 1
    inside = (at >= 0) & (at < spans)
    wait, stay = (
        np.bincount(at[inside], weights=(calls.weight * part)[inside], minlength=spans)
        for part in (split_each(calls)[0], calls.stay_ns)
    )
    return [float(part / whole) if whole else None for part, whole in zip(wait, stay, strict=True)]
