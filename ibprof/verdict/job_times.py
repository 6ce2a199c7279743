# SPDX-License-Identifier: Apache-2.0
"""Compute a run's figures for the verdict: time in MPI (also by region), waiting, messages, bytes between hosts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ibprof.native.libraries import sum_exactly
from ibprof.profile.efficiency import (
    TimeInMpi,
    Waiting,
    elapsed_s,
    estimate_waiting,
    find_efficiencies,
    inside_s,
    outside_s,
    time_in_mpi,
)
from ibprof.profile.missing_data import describe_incomplete
from ibprof.profile.profile_data import Direction, Kind, Profile, Rank, Source
from ibprof.profile.profile_rows import name_sites
from ibprof.profile.unaccounted import PARTNER_FAILED, PARTNER_GROUP
from ibprof.verdict.shared_cores import SharedCores, find_shared_cores
from ibprof.verdict.transfer_causes import find_possible_rate, find_transfer_causes, name_carriers
from ibprof.verdict.verdict_data import BusiestLink, RegionShare, TransferCause
from ibprof.waiting.wait_split import measure_waiting

if TYPE_CHECKING:
    from ibprof.waiting.wait_split import HostPair, LateRank, MeasuredWaiting

LATENCY_S = 100e-6
"""Upper limit of a message's latency, in seconds, on all networks that MPI jobs use."""

SLOWEST_LINK = 12.5e6
"""Assumed rate if no link is known, in bytes per second: 100 Mb/s, as of a slow link today."""

SLOWEST_COPY = 0.5e9
"""Slowest rate of copies within a host: a rank's sent plus received bytes per second."""

_MANY_TIMES = 4
"""Without a fabric, transfer can take up to this multiple of the busiest host's bytes / `SLOWEST_LINK`."""

_NEXT_TO_OTHERS = 16
"""With a fabric, transfer can take up to this multiple of the most loaded link's time at line rate.

Other traffic may slow messages: during a checkpoint, messages take 8 to 11 times as long (benchmarks/codes/README.md).
"""

OF_FILES = "FILE_"
"""Prefix of operations on files. These operations wait for storage; traffic to storage is not recorded."""


_FOR_EACH_OTHER = frozenset({"ALLTOALL", "ALLGATHER", "ALLGATHERV", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK"})
"""Collectives in which each rank exchanges its bytes in `Profile.demands` with every other rank."""

_ROUND_TRIP = frozenset({"ALLREDUCE", "SCAN", "EXSCAN"})
"""Collectives in which each rank both sends and receives its bytes in `Profile.demands`."""

_WITHOUT_LEDGER = "NEIGHBOR_"
"""A collective with this text in its name has no bytes in `Profile.demands`."""

MOST = 0.5
"""The verdict names an operation, site and region of waiting if their share of all waiting is above this."""


_SLOW = 4
"""Transfer is slow if it takes more than this multiple of the expected time."""

_SLOW_WITH_CAUSE = 2
"""Replaces `_SLOW` if hosts show a cause of slow transfer: a link at half of its rate only doubles the time."""


@dataclass(frozen=True, slots=True)
class TransferTimes:
    """Measured parts of the time in MPI calls, means over ranks, in seconds.

    Attributes:
        wait_s: waiting for other ranks, without waiting in MPI_Finalize.
        transfer_s: split time minus `wait_s`.
        unsplit_s: time without samples or comparable clocks, and time in calls of MPI-IO.
        error_s: standard error of `wait_s` and `transfer_s`.
        expected_s: time of the job's bytes at line rate plus latency of messages; None if unknown.
        late: ranks that other ranks waited for.
        causes: possible causes of slow transfer, the surest first.
    """

    wait_s: float
    transfer_s: float
    unsplit_s: float
    error_s: float
    expected_s: float | None
    late: tuple[LateRank, ...]
    causes: tuple[TransferCause, ...] = ()

    @property
    def is_slow(self) -> bool:
        """Return whether transfer takes much longer than the expected time."""
        most = _SLOW_WITH_CAUSE if self.causes else _SLOW
        return self.expected_s is not None and self.transfer_s - self.error_s > most * self.expected_s > 0


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Times of one rank, in seconds.

    Only the whole run's CPU time is measured, so the CPU time outside MPI is known by its bounds.

    Attributes:
        host: name of its host.
        late_s: waiting of all other ranks for this rank.
        files_s: time in calls of MPI-IO.
        outside_s: time outside MPI; None if unknown.
        least_work_s, most_work_s: bounds of the CPU time outside MPI; 0 and infinite if unknown.
        most_rest_s: upper bound of the time outside MPI without work; infinite if unknown.
        lacked_s: lower bound of the time outside MPI in which the rank was ready but had no core.
        idle_s: lower bound of the time outside MPI in which the rank needed no core: it slept, or waited for a file, a
            device, a process or a thread.
        no_core_s: time in which the rank was ready but had no core; 0 if unknown.
    """

    host: str
    late_s: float
    files_s: float
    outside_s: float | None = None
    least_work_s: float = 0.0
    most_work_s: float = math.inf
    most_rest_s: float = math.inf
    lacked_s: float = 0.0
    idle_s: float = 0.0
    no_core_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Figures of a run.

    Attributes:
        mpi: time inside calls; None if not recorded.
        run_s: time until the last rank ended, in seconds; None if ranks were killed.
        imbalance_s: largest minus mean time of ranks outside MPI, in seconds; 0 if unknown. On any network, ranks wait
            at least this long on average.
        latest: rank with most time outside MPI; None if unknown.
        latest_at: operation, site and region with more than `MOST` of the waiting for `latest`; otherwise None.
        collectives: waiting in collectives by site, sorted by waiting, descending.
        collective_wait_s: waiting in `collectives`, mean over ranks, in seconds.
        end_s: waiting in MPI_Finalize: largest minus mean run time of ranks, in seconds.
        unexplained_s: time in calls that bytes, latency, waiting in collectives and MPI-IO do not explain; mean over
            ranks, in seconds.
        files_s: time in calls of MPI-IO, mean over ranks, in seconds.
        message_s: time in MPI without waiting, per message of a rank, in seconds; None without messages.
        message_transfer_s: longest possible transfer time of a message, by its bytes, in seconds.
        message_bytes: mean size of a message.
        messages: number of sent messages, mean over ranks.
        bytes_sent: sent bytes of all ranks.
        between_hosts: share of `bytes_sent` to ranks on other hosts, 0 to 1.
        hidden_on_host: true if all ranks are on one host, and some messages are not recorded.
        is_of_nccl: true if the times are of NCCL's proxies: GPUs may compute during these times.
        parts: measured waiting and transfer; None without sampled calls, where estimates are used.
        measured: the complete measurement of waiting and transfer.
        transfer_causes: possible causes of slow transfer that hosts show, the surest first.
        incomplete: description of incomplete ranks, as `describe_incomplete` returns it.
        host_pairs: rate and latency of messages by pair of hosts.
        shared_cores: ranks that lack cores, if the lack of cores explains slow transfer; otherwise None.
        ranks: times of each rank by number; empty without sampled calls.
    """

    mpi: TimeInMpi | None
    run_s: float | None
    imbalance_s: float
    latest: int | None
    latest_at: Place | None
    collectives: tuple[Waiting, ...]
    collective_wait_s: float
    end_s: float
    unexplained_s: float
    files_s: float
    message_s: float | None
    message_transfer_s: float
    message_bytes: float
    messages: float
    bytes_sent: int
    between_hosts: float
    hidden_on_host: bool
    is_of_nccl: bool = False
    parts: TransferTimes | None = None
    measured: MeasuredWaiting | None = None
    transfer_causes: tuple[TransferCause, ...] = ()
    incomplete: str = ""
    shared_cores: SharedCores | None = None
    host_pairs: tuple[HostPair, ...] = ()
    ranks: Mapping[int, RankTimes] = field(default_factory=dict)

    @property
    def mpi_s(self) -> float | None:
        """Time inside MPI calls, with MPI_Finalize, mean over ranks, in seconds; None if not recorded."""
        return self.mpi.busy_s + self.end_s if self.mpi else None

    @property
    def wait_s(self) -> float:
        """Waiting for other ranks, mean over ranks, in seconds: measured, or else the largest estimate."""
        if self.parts:
            return min(self.parts.wait_s + self.end_s, self.mpi_s or 0.0)
        known = self.collective_wait_s + self.unexplained_s + self.end_s
        return min(max(self.imbalance_s, known), self.mpi_s or 0.0)


def measure_job(run: Profile, links: BusiestLink | None = None) -> JobTimes:
    """Return the figures of a run that determine its verdict.

    Args:
        links: the most loaded link of the run's fabric; None if unknown.
    """
    timed = [rank for rank in run.ranks if rank.has_times and rank.rank < run.world_size]
    ranks = max(len(timed), 1)
    mpi = time_in_mpi(run)
    ended = [rank for rank in run.ranks if rank.rank < run.world_size and rank.stop_ns]
    spans = np.array([elapsed_s(rank) for rank in ended])
    whole = bool(ended) and len(ended) == sum(rank.rank < run.world_size for rank in run.ranks)
    imbalance, latest = 0.0, None
    if timed and whole and len(timed) == len(ended):
        outside = outside_s(run, timed)
        imbalance = float(outside.max() - outside.mean())
        latest = timed[int(outside.argmax())].rank
    waiting = estimate_waiting(run) if timed else ()
    sent = _sum_sent(run, links.on_host_share if links else None)
    each = sent.messages / max(run.ranks_recorded, 1)
    within_each = (sent.bytes - sent.between) / max(run.ranks_recorded, 1)
    transfer = 2 * within_each / SLOWEST_COPY
    if links is None:
        transfer += _MANY_TIMES * sent.busiest_host / SLOWEST_LINK
    else:
        transfer += _NEXT_TO_OTHERS * links.line_rate_s
    files = _time_in(run, of_files=True) / ranks if timed else 0.0
    collective = sum(site.waiting_s for site in waiting) / ranks
    rest = _time_in(run, of_files=False) / ranks - collective if timed else 0.0
    # Messages of unknown size may take any time, so no time counts as unexplained.
    unexplained = 0.0 if sent.is_unknown_within else max(rest - transfer - each * LATENCY_S, 0.0)
    ends = spans + np.array([rank.off_ns for rank in ended]) * 1e-9
    end = float(ends.max() - ends.mean()) if whole and timed and not run.is_of_nccl else 0.0
    at_work = max((mpi.busy_s if mpi else 0.0) - files - max(imbalance - end, collective + unexplained), 0.0)
    measured = measure_waiting(run)
    if measured and not measured.messages and measured.total().unsplit_s > measured.total().time_s / 2:
        # Use the estimates: without samples of messages, most time in calls is not split.
        measured = None
    parts, causes = None, find_transfer_causes(run, 0.0, 1.0) if timed else ()
    shared = find_shared_cores(run) if timed else None
    if measured:
        line_rate = links.line_rate_s if links else _find_line_rate_s(run, sent.busiest_host)
        expected = 2 * within_each / SLOWEST_COPY + line_rate + each * LATENCY_S
        total = measured.total()
        causes = find_transfer_causes(run, total.transfer_s / ranks, total.time_s / ranks)
        # The sums count the time of each thread. Scale the sums to a rank's mean time, which counts simultaneous
        # calls once.
        per_rank = (mpi.busy_s / mpi.mean_s if mpi and mpi.mean_s else 1.0) / ranks
        parts = TransferTimes(
            wait_s=total.wait_s * per_rank,
            transfer_s=total.transfer_s * per_rank,
            unsplit_s=total.unsplit_s * per_rank,
            error_s=total.error_s * per_rank,
            expected_s=None if sent.is_unknown_within else expected,
            late=measured.late,
            causes=causes,
        )
        at_work = parts.transfer_s
        if shared and not shared.explains(parts.transfer_s, _SLOW * expected):
            shared = None
    waits = max(imbalance, collective + unexplained + end)
    return JobTimes(
        mpi=mpi,
        run_s=float(spans.max()) if whole else None,
        imbalance_s=imbalance,
        latest=latest,
        latest_at=None if latest is None else find_place_of_waiting(run, timed, latest, waits),
        collectives=waiting,
        collective_wait_s=collective,
        end_s=end,
        unexplained_s=unexplained,
        files_s=files,
        message_s=at_work / each if each else None,
        message_transfer_s=transfer / each if each else 0.0,
        message_bytes=sent.bytes / sent.messages if sent.messages else 0.0,
        messages=each,
        bytes_sent=sent.bytes,
        between_hosts=sent.between / sent.bytes if sent.bytes else 0.0,
        hidden_on_host=sent.hides_some and len({rank.host for rank in run.ranks}) == 1,
        is_of_nccl=run.is_of_nccl,
        parts=parts,
        measured=measured,
        transfer_causes=causes,
        incomplete=describe_incomplete(run),
        shared_cores=shared,
        host_pairs=name_carriers(run, measured.pairs) if measured else (),
        ranks=_list_ranks(run, measured) if measured else {},
    )


def _list_ranks(run: Profile, measured: MeasuredWaiting) -> dict[int, RankTimes]:
    """Return the times of each rank by number."""
    most = max(rank.rank for rank in run.ranks) + 1
    late, files = np.zeros(most), _are_of_files(run)
    late[: len(measured.late_s)] = measured.late_s[:most]
    files_s = np.bincount(run.times.rank[files], weights=run.times.time_ns[files], minlength=most) * 1e-9
    mpi_s = np.bincount(run.times.rank[~files], weights=run.times.time_ns[~files], minlength=most) * 1e-9
    timed = [rank for rank in run.ranks if rank.has_times and rank.stop_ns]
    outside = dict(zip((rank.rank for rank in timed), outside_s(run, timed).tolist(), strict=True))
    counts_cores = any(rank.no_core_ns for rank in run.ranks)
    ranks = {}
    for rank in run.ranks:
        number = rank.rank
        times = RankTimes(run.hosts[rank.host].name, float(late[number]), float(files_s[number]), outside.get(number))
        ranks[number] = _bound_work(times, rank, float(mpi_s[number]), counts_cores)
    return ranks


def _bound_work(times: RankTimes, rank: Rank, mpi_s: float, counts_cores: bool) -> RankTimes:
    """Return the times of a rank with the bounds of its work and rest. Ranks that wait in MPI may use cores or not."""
    outside_s = times.outside_s
    if outside_s is None or not rank.cpu_ns or rank.off_ns:  # with recording off, ranks use cores too
        return times
    cpu_s, no_core_s = rank.cpu_ns * 1e-9, rank.no_core_ns * 1e-9
    least, most = min(max(cpu_s - mpi_s, 0.0), outside_s), min(outside_s, cpu_s)
    return replace(
        times,
        least_work_s=least,
        most_work_s=most,
        most_rest_s=outside_s - least,
        lacked_s=max(no_core_s - mpi_s, 0.0),
        idle_s=max(outside_s - most - no_core_s, 0.0) if counts_cores else 0.0,
        no_core_s=no_core_s,
    )


def _find_line_rate_s(run: Profile, busiest_host: float) -> float:
    """Return the seconds to send `busiest_host` bytes at `find_possible_rate`; if unknown, at `SLOWEST_LINK`."""
    rate = find_possible_rate(run)
    return busiest_host / (rate * 1e9 / 8 if rate else SLOWEST_LINK)


def _hides_within_hosts(run: Profile) -> bool:
    """Return whether any rank's source may miss messages within hosts; Open MPI's PML misses none."""
    return any(rank.source != Source.OPENMPI and not rank.sees_host for rank in run.ranks)


def _time_in(run: Profile, *, of_files: bool) -> float:
    """Return the time in calls of MPI-IO (`of_files`), or in all other calls, in seconds, summed over ranks."""
    rows = _are_of_files(run) == of_files
    return float(run.times.time_ns[rows].astype(np.float64).sum() * 1e-9)


def _are_of_files(run: Profile) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of the profile's times: true for calls of MPI-IO."""
    return np.array([name.startswith(OF_FILES) for name in run.operations], np.bool_)[run.times.operation]


@dataclass(frozen=True, slots=True)
class _Sent:
    """User data that all ranks sent.

    Bytes between hosts are recorded bytes. Bytes within hosts are the larger of recorded bytes and bytes that calls
    asked for.

    Attributes:
        bytes, messages: all sent bytes and messages.
        between: bytes to other hosts, and to peers whose host is unknown.
        busiest_host: largest number of bytes that one host sends to other hosts.
        hides_some: true if some messages within hosts were not recorded.
        is_unknown_within: true if bytes within hosts are neither all recorded nor known from calls.
    """

    bytes: int
    messages: int
    between: int
    busiest_host: float
    hides_some: bool
    is_unknown_within: bool


def _sum_sent(run: Profile, on_host_share: float | None) -> _Sent:
    """Return bytes and messages within and between hosts; `on_host_share` replaces the recorded share within hosts."""
    counters = run.counters
    rows = (counters.direction != Direction.RECEIVED) & (counters.kind == Kind.USER) & (counters.source != Source.VERBS)
    host_of = {rank.rank: rank.host for rank in run.ranks}
    most = max(host_of, default=-1) + 2
    hosts = np.full(most, -1, np.int64)
    for rank, host in host_of.items():
        hosts[rank] = host
    peers = np.minimum(counters.peer[rows].astype(np.int64), most - 1)
    apart = (hosts[peers] < 0) | (hosts[peers] != hosts[counters.rank[rows]])
    amounts, messages = counters.bytes[rows], counters.messages[rows]
    of_hosts = np.bincount(
        hosts[counters.rank[rows]][apart] + 1, weights=amounts[apart].astype(np.float64), minlength=1
    )
    between, messages_between = sum_exactly(amounts[apart]), sum_exactly(messages[apart])
    within, messages_within = sum_exactly(amounts[~apart]), sum_exactly(messages[~apart])
    hides = _hides_within_hosts(run) and len(set(host_of.values())) < len(host_of)
    asked = sum_asked_within_hosts(run) if hides else None
    unseen = max(asked.bytes - within, 0) if asked else 0
    if asked:
        hides = within < asked.bytes or messages_within < asked.messages
        messages_within = max(messages_within, asked.messages)
    if on_host_share is not None:
        # Use the given share: in another placement, other pairs of ranks share a host.
        within, between = round((within + between) * on_host_share), round((within + between) * (1 - on_host_share))
    within += unseen
    return _Sent(
        bytes=within + between,
        messages=messages_within + messages_between,
        between=between,
        busiest_host=float(of_hosts.max()),
        hides_some=hides,
        is_unknown_within=hides and asked is None,
    )


@dataclass(frozen=True, slots=True)
class AskedWithinHosts:
    """Bytes and messages that calls ask to move within hosts, summed over all ranks.

    Point-to-point calls are exact. The data of collectives are estimates for common algorithms.
    """

    bytes: int
    messages: int


def sum_asked_within_hosts(run: Profile) -> AskedWithinHosts | None:
    """Return the data that calls ask to move within hosts; None if the data of some calls are unknown."""
    ranks = [rank for rank in run.ranks if rank.rank < run.world_size]
    if not ranks or not all(rank.has_demands for rank in ranks):
        return None
    used = np.unique(np.concatenate([run.times.operation, run.counters.operation]))
    if any(_WITHOUT_LEDGER in run.operations[operation] for operation in used.tolist()):
        return None
    host_of = np.full(run.world_size, -1, np.int64)
    for rank in ranks:
        host_of[rank.rank] = rank.host
    peers, groups = _sum_to_peers(run, host_of), _sum_in_groups(run, host_of)
    return AskedWithinHosts(peers.bytes + groups.bytes, peers.messages + groups.messages + _barriers(run, host_of))


def _sum_to_peers(run: Profile, host_of: np.ndarray) -> AskedWithinHosts:
    """Sum the bytes and messages of calls with a peer or a root on the calling rank's host."""
    demands = run.demands
    rows = np.flatnonzero(demands.partner < np.uint64(run.world_size))
    mine, theirs = demands.rank[rows], demands.partner[rows].astype(np.intp)
    rows = rows[(host_of[mine] == host_of[theirs]) & (mine != theirs)]
    return AskedWithinHosts(int(demands.bytes[rows].sum()), int(demands.calls[rows].sum()))


def _sum_in_groups(run: Profile, host_of: np.ndarray) -> AskedWithinHosts:
    demands = run.demands
    total = messages = 0
    is_group = (demands.partner >= np.uint64(PARTNER_GROUP)) & (demands.partner < np.uint64(PARTNER_FAILED))
    for group in np.unique(demands.partner[is_group]):
        rows = np.flatnonzero(demands.partner == group)
        members = np.unique(demands.rank[rows])
        for row in rows.tolist():
            others = int((host_of[members] == host_of[demands.rank[row]]).sum()) - 1
            if others < 1:
                continue
            name = run.operations[demands.operation[row]].removesuffix("_INIT")
            names = {name, name.removeprefix("I")}
            asked, calls = int(demands.bytes[row]), int(demands.calls[row])
            if names & _FOR_EACH_OTHER:
                asked *= others
            elif names & _ROUND_TRIP:
                asked *= 2
            else:
                # `Profile.demands` sums a vector collective's bytes over all members. Assume that each other member has
                # an equal share, and add the shares of the members on the rank's host.
                asked = asked * others // (len(members) - 1)
            total += asked
            messages += calls * (others if names & {"ALLTOALL", "ALLTOALLV", "ALLTOALLW"} else _rounds(others + 1))
    return AskedWithinHosts(total, messages)


def _barriers(run: Profile, host_of: np.ndarray) -> int:
    """Return an estimate of the number of barriers' messages within hosts. `Profile.demands` has no barriers."""
    times, on_host = run.times, np.bincount(host_of[host_of >= 0])
    chosen = np.array([name in ("BARRIER", "IBARRIER") for name in run.operations], bool)
    if not len(chosen):
        return 0
    rows = np.flatnonzero(chosen[times.operation] & (times.rank < run.world_size))
    return sum(int(times.calls[row]) * _rounds(int(on_host[host_of[times.rank[row]]])) for row in rows)


def _rounds(ranks: int) -> int:
    """Return the number of rounds of messages after which each of `ranks` ranks can reach all others."""
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


@dataclass(frozen=True, slots=True)
class Place:
    """One operation at one site in one region, by name."""

    region: str
    operation: str
    site: str


def find_place_of_waiting(run: Profile, ranks: list[Rank], latest: int, waiting_s: float) -> Place | None:
    """Return the operation, site and region with most waiting for the latest rank.

    Return None if no times were recorded, or if this waiting is at most the share `MOST` of all waiting.

    Args:
        latest: the rank with most time outside MPI.
        waiting_s: total waiting, mean over ranks, in seconds.
    """
    times = run.times
    rows = np.isin(times.rank, [rank.rank for rank in ranks])
    keys = np.stack((times.region, times.operation, times.site))[:, rows]
    if not keys.size:
        return None
    places, place_of = np.unique(keys, axis=1, return_inverse=True)
    seconds = times.time_ns[rows].astype(np.float64) * 1e-9
    # The latest rank does not wait. So each other rank's waiting is its time in calls minus the latest rank's time.
    share = np.where(times.rank[rows] == latest, -(len(ranks) - 1), 1)
    longer = np.bincount(place_of.ravel(), weights=seconds * share, minlength=places.shape[1])
    most = int(longer.argmax())
    if longer[most] <= MOST * waiting_s * len(ranks):
        return None
    region, operation, site = places[:, most].tolist()
    return Place(run.regions[region], run.operations[operation], name_sites(run)[site])


def share_by_region(
    run: Profile,
    collectives: tuple[Waiting, ...],
    line_rates: Mapping[str, float] | None = None,
    measured: MeasuredWaiting | None = None,
) -> tuple[RegionShare, ...]:
    """Return the regions with time in MPI, sorted by this time, descending; empty if no rank was timed.

    The estimate of waiting is the larger of two times: the waiting in the region's collectives, and the largest minus
    the mean time of ranks outside MPI.

    Args:
        collectives: waiting in collectives, by site.
        line_rates: seconds of each region's most loaded link direction at line rate; None without a fabric.
        measured: measured waiting, which replaces the estimate; None without sampled calls.
    """
    timed = [rank for rank in run.ranks if rank.has_times and rank.rank < run.world_size]
    if not timed:
        return ()
    inside = inside_s(run, timed).sum(axis=0) / len(timed)
    imbalance = {
        each.region: (each.outside_max_s - each.outside_mean_s) * each.ranks / len(timed)
        for each in find_efficiencies(run).regions
    }
    if measured:
        of_regions = (measured.total(measured.shares.region == number) for number in range(len(run.regions)))
        waits = {name: total.wait_s / len(timed) for name, total in zip(run.regions, of_regions, strict=True)}
    else:
        waits = {
            name: max(
                imbalance.get(name, 0.0),
                sum(each.waiting_s for each in collectives if each.region == name) / len(timed),
            )
            for name in run.regions
        }
    shares = [
        RegionShare(
            name=name,
            mpi_s=float(mpi_s),
            wait_s=min(waits[name], float(mpi_s)),
            line_rate_s=line_rates.get(name) if line_rates else None,
        )
        for name, mpi_s in zip(run.regions, inside, strict=True)
        if mpi_s > 0
    ]
    return tuple(sorted(shares, key=lambda each: -each.mpi_s))
