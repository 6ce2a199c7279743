# SPDX-License-Identifier: Apache-2.0
"""The figures of a recorded run that its verdict stands on: time in MPI, waiting, messages, bytes between hosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ibprof.native.kernel_library import sum_exactly
from ibprof.profile.call_report import TimeInMpi, time_in_mpi
from ibprof.profile.efficiency import elapsed_s, inside_s, overlaps_s
from ibprof.profile.profile_data import Direction, Kind, Profile, Source
from ibprof.profile.waiting import Waiting, estimate_waiting

LATENCY_S = 100e-6
"""Time of a message beyond which latency does not explain it, on any network that MPI jobs use."""

SLOWEST_LINK = 12.5e6
"""Bytes a second of a link that is slow today, 100 Mb/s: transfer takes no longer than this where no link is known."""

SLOWEST_COPY = 0.5e9
"""Bytes a second from rank to rank on one host, through memory, at least."""

_MANY_TIMES = 4
"""Multiple of the time at line rate beyond which the job's own bytes do not explain the time."""

_NEXT_TO_OTHERS = 16
"""The same where a fabric is known: traffic of other jobs, which is not seen, slows messages as well.

Source: docs/simulation.md, where messages next to a checkpoint take 8 to 11 times as long.
"""

OF_FILES = "FILE_"
"""Beginning of the operations that read and write files: storage takes their time, whose traffic is not seen."""


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Figures of a run.

    Attributes:
        mpi: time inside calls; None where not recorded.
        run_s: mean over ranks of the time they ran; None where some were killed.
        imbalance_s: how much longer the slowest rank is outside of MPI than the mean of ranks: no network can be
            faster, so the others wait that long at least. 0 where not known.
        latest: rank that is outside of MPI longest; None where not known.
        collectives: waiting by site, most first.
        collective_wait_s: their waiting, mean over ranks.
        unexplained_s: time in all calls, mean over ranks, without the waiting in collectives and without files, that is
            longer than the job's bytes and the latency of its messages explain.
        files_s: time in calls of MPI-IO, mean over ranks.
        message_s: time in MPI without waiting for each message of a rank; None without messages.
        message_transfer_s: of that, the longest time that a message's bytes explain.
        message_bytes: mean size.
        messages: sent, mean over ranks.
        bytes_sent: of all ranks.
        between_hosts: part of them that goes to ranks on other hosts, 0 to 1.
        hidden_on_host: all ranks are on one host, and their messages are not seen.
    """

    mpi: TimeInMpi | None
    run_s: float | None
    imbalance_s: float
    latest: int | None
    collectives: tuple[Waiting, ...]
    collective_wait_s: float
    unexplained_s: float
    files_s: float
    message_s: float | None
    message_transfer_s: float
    message_bytes: float
    messages: float
    bytes_sent: int
    between_hosts: float
    hidden_on_host: bool

    @property
    def wait_s(self) -> float:
        """Waiting for other ranks, mean over ranks: the largest of what is known of it."""
        return min(
            max(self.imbalance_s, self.collective_wait_s + self.unexplained_s), self.mpi.busy_s if self.mpi else 0
        )


def measure_job(run: Profile, line_rate_s: float | None = None) -> JobTimes:
    """Return the figures of a run.

    Args:
        run: the profile.
        line_rate_s: seconds of the busiest link direction at line rate; None where no fabric is known.
    """
    timed = [rank for rank in run.ranks if rank.has_times and rank.rank < run.world_size]
    ranks = max(len(timed), 1)
    mpi = time_in_mpi(run)
    ended = [rank for rank in run.ranks if rank.rank < run.world_size and rank.stop_ns]
    spans = np.array([elapsed_s(rank) for rank in ended])
    whole = bool(ended) and len(ended) == sum(rank.rank < run.world_size for rank in run.ranks)
    imbalance, latest = 0.0, None
    if timed and whole and len(timed) == len(ended):
        outside = np.maximum(spans - (inside_s(run, timed).sum(axis=1) - overlaps_s(timed)), 0)
        imbalance = float(outside.max() - outside.mean())
        latest = timed[int(outside.argmax())].rank
    waiting = estimate_waiting(run) if timed else ()
    sent, messages, between, busiest_host = _sum_sent(run)
    each = messages / max(run.ranks_recorded, 1)
    bytes_each = sent / max(run.ranks_recorded, 1)
    if line_rate_s is None:
        # Ranks share their host's link; each one's bytes alone are an upper limit for memory too.
        transfer = max(bytes_each, _MANY_TIMES * busiest_host) / SLOWEST_LINK
    else:
        transfer = _explain_bytes(bytes_each, line_rate_s)
    files = _time_in(run, of_files=True) / ranks if timed else 0.0
    # Time in messages that are not seen is not known to be waiting.
    hosts_hide = _hides_within_hosts(run) and len({rank.host for rank in run.ranks}) < len(run.ranks)
    collective = sum(site.waiting_s for site in waiting) / ranks
    rest = _time_in(run, of_files=False) / ranks - collective if timed else 0.0
    unexplained = 0.0 if hosts_hide else max(rest - transfer - each * LATENCY_S, 0.0)
    at_work = max((mpi.busy_s if mpi else 0.0) - files - max(imbalance, collective + unexplained), 0.0)
    return JobTimes(
        mpi=mpi,
        run_s=float(spans.mean()) if whole else None,
        imbalance_s=imbalance,
        latest=latest,
        collectives=waiting,
        collective_wait_s=collective,
        unexplained_s=unexplained,
        files_s=files,
        message_s=at_work / each if each else None,
        message_transfer_s=transfer / each if each else 0.0,
        message_bytes=sent / messages if messages else 0.0,
        messages=each,
        bytes_sent=sent,
        between_hosts=between / sent if sent else 0.0,
        hidden_on_host=hosts_hide and len({rank.host for rank in run.ranks}) == 1,
    )


def _hides_within_hosts(run: Profile) -> bool:
    """Return whether messages between ranks of one host may be unseen; Open MPI's PML sees all."""
    return any(rank.source != Source.OPENMPI and not rank.sees_host for rank in run.ranks)


def _explain_bytes(bytes_each: float, line_rate_s: float) -> float:
    """Return the longest time that a rank's bytes explain, seconds."""
    return max(_NEXT_TO_OTHERS * line_rate_s, bytes_each / SLOWEST_COPY)


def _time_in(run: Profile, *, of_files: bool) -> float:
    """Return the seconds of all ranks in calls of MPI-IO, or in all others."""
    files = np.array([name.startswith(OF_FILES) for name in run.operations], np.bool_)
    rows = files[run.times.operation] == of_files
    return float(run.times.time_ns[rows].astype(np.float64).sum() * 1e-9)


def _sum_sent(run: Profile) -> tuple[int, int, int, float]:
    """Return bytes and messages of user data, those bytes that go to another host or perhaps do, and a host's most."""
    counters = run.counters
    rows = (counters.direction != Direction.RECEIVED) & (counters.kind == Kind.USER) & (counters.source != Source.VERBS)
    host_of = {rank.rank: rank.host for rank in run.ranks}
    most = max(host_of, default=-1) + 2
    hosts = np.full(most, -1, np.int64)
    for rank, host in host_of.items():
        hosts[rank] = host
    peers = np.minimum(counters.peer[rows].astype(np.int64), most - 1)
    apart = (hosts[peers] < 0) | (hosts[peers] != hosts[counters.rank[rows]])
    amounts = counters.bytes[rows]
    of_hosts = np.bincount(
        hosts[counters.rank[rows]][apart] + 1, weights=amounts[apart].astype(np.float64), minlength=1
    )
    between = sum_exactly(amounts[apart])
    return sum_exactly(amounts), sum_exactly(counters.messages[rows]), between, float(of_hosts.max())
