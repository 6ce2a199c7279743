# SPDX-License-Identifier: Apache-2.0
"""Find the rank or host that other ranks wait for, and why this rank or host is late."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from ibprof.text.quantities import format_seconds, name_call
from ibprof.verdict.job_times import JobTimes
from ibprof.verdict.verdict_data import LATE_RANK, NOISE, SLOW_HOST, WORTH_HAVING, Evidence

if TYPE_CHECKING:
    from ibprof.waiting.wait_split import LateRank

CAUSED_BY_ONE = 0.5
"""One rank or host can be the cause of waiting if it causes at least this share of all waiting."""

MORE_THAN_EVEN = 1.5
"""A rank or host is the cause of waiting only if its share of waiting / share of ranks is at least this.

Without this rule, one of 2 ranks would always be the cause, even if both are late in turn.
"""

MUCH_LONGER = 1.1
"""The verdict states a late rank's time outside MPI above this multiple of the other ranks' mean time."""

MANY_TIMES = 100
"""The verdict states no exact ratio of times outside MPI above this ratio."""

LITTLE_LATE = 0.1
"""Evidence leaves out a late rank whose `wait_s` is less than this share of the first late rank's `wait_s`."""

_WAITED_FOR = "a file, a device, a process or a thread"

_NAMED = 3
"""Maximum number of late ranks in the evidence."""


class LateRanks:
    """Finds the cause of the measured waiting of a run.

    Args:
        times: figures of the run.
        late: late ranks, sorted by waiting, descending.
        has_sites: true if the text names lines of the program.
        outside: words for the time outside MPI, such as `outside of MPI`.
    """

    def __init__(self, times: JobTimes, late: tuple[LateRank, ...], has_sites: bool, outside: str) -> None:
        self._late = late
        self._ranks = times.ranks
        self._has_sites = has_sites
        self._outside = outside
        # If most waiting is in MPI_Finalize, ranks wait for the rank with most time outside MPI.
        self._latest_at_end = times.latest if times.end_s >= times.wait_s / 2 > 0 else None
        self._end_s = times.end_s

    def find_cause(self) -> str | None:
        """Return the cause of waiting; None if no rank is late.

        The cause is `late-rank` for one rank, `slow-host` for ranks of one host, and `noise` for ranks late in turn.
        """
        latest, is_one = self._find_latest()
        if is_one or self._latest_at_end is not None:
            return LATE_RANK
        if latest is None:
            return None
        return SLOW_HOST if self._find_latest("host")[1] else NOISE

    def may_lack_cores(self) -> bool:
        """Return whether a lack of cores could explain the waiting: no host is slow, no rank works or rests longer."""
        cause, (latest, _) = self.find_cause(), self._find_latest()
        if cause != LATE_RANK or latest is None or self._latest_at_end is not None:
            return cause == NOISE
        return not self._rests_longer(latest.rank, "idle_s") and not self.works_longer(latest.rank)

    def works_longer(self, rank: int) -> bool | None:
        """Return whether a late rank's additional work explains the waiting for this rank; None if unknown.

        Work is CPU time outside MPI, and time in calls of MPI-IO.
        """
        own, mean = self._ranks[rank], partial(self._mean_of_others, rank)
        files_s = own.files_s - mean("files_s")
        if self._explains(rank, own.least_work_s + files_s - mean("most_work_s")):
            return True
        return None if self._explains(rank, own.most_work_s + files_s - mean("least_work_s")) else False

    def name_slow_host(self) -> str:
        """Return the host that is the cause of waiting; empty if no host is the cause."""
        latest, _ = self._find_latest("host")
        return latest.host if latest and self.find_cause() == SLOW_HOST else ""

    def list_evidence(self) -> list[Evidence]:
        """Return late ranks, each with operation, site and region of the waiting; ranks of the cause come first."""
        if self._latest_at_end is not None:
            return [Evidence(self._latest_at_end, "MPI_Finalize")]
        of: Literal["rank", "host"] = "rank" if self._find_latest()[1] else "host"
        latest, is_one = self._find_latest(of)
        late = sorted(self._late, key=lambda each: is_one and getattr(each, of) != getattr(latest, of))[:_NAMED]
        return [
            Evidence(each.rank, name_call(each.operation), each.site if self._has_sites else None, each.region)
            for each in late
            if each.wait_s >= LITTLE_LATE * late[0].wait_s
        ]

    def describe(self) -> str:
        """Return the end of a sentence on waiting (for which rank, and where), and a sentence on that rank."""
        if self._latest_at_end is not None:
            rank = self._latest_at_end
            return f", most of it for rank {rank} in MPI_Finalize{self._describe_reason(rank)}"
        latest, is_one = self._find_latest()
        if latest is None:
            return ""
        waiting = [rank.late_s for rank in self._ranks.values()]
        if not is_one:
            host, is_slow = self._find_latest("host")
            if host and is_slow:
                return f", most of it for ranks of {host.host}"
            return f", for {sum(each > WORTH_HAVING * max(waiting) for each in waiting)} ranks in turn"
        at = f" at {latest.site}" if self._has_sites and latest.site else ""
        place = f"{name_call(latest.operation)}{at}"
        is_most = latest.wait_s >= CAUSED_BY_ONE * sum(waiting)
        who = f"rank {latest.rank}{f' on {latest.host}' if latest.host else ''}{f' in {place}' if is_most else ''}"
        often = f"{latest.share:.0%} of {'these calls' if is_most else f'the calls of {place}'}"
        lateness = f"late in {often}, by {format_seconds(latest.late_s)}{self._describe_reason(latest.rank)}"
        return f", most of it for {who}. Rank {latest.rank} is {lateness}"

    def _describe_reason(self, rank: int) -> str:
        """Return text on the times that explain the waiting for a late rank; empty if no time explains it."""
        own, mean, works = self._ranks[rank], partial(self._mean_of_others, rank), self.works_longer(rank)
        if works and self._explains(rank, own.files_s - mean("files_s")):
            others = f", the others for {format_seconds(mean('files_s'))} on average" if mean("files_s") else ""
            return f"; it is in calls of MPI-IO for {format_seconds(own.files_s)}{others}"
        if not works and self._rests_longer(rank, "lacked_s", "idle_s"):
            texts = {
                "lacked_s": f"had no core for {format_seconds(own.no_core_s)}",
                "idle_s": f"slept, was stopped, or waited for {_WAITED_FOR}, for at least {format_seconds(own.idle_s)}",
            }
            enough = [text for of, text in texts.items() if self._rests_longer(rank, of)]
            return f"; it {' and '.join(enough or texts.values())}"
        known = [
            each.outside_s for number, each in self._ranks.items() if number != rank and each.outside_s is not None
        ]
        outside_s, others_s = own.outside_s or 0.0, fmean(known or [0.0])
        if works is False or not others_s or outside_s <= MUCH_LONGER * others_s:
            return ""
        times = f"{outside_s / others_s:.1f}" if outside_s < MANY_TIMES * others_s else f"over {MANY_TIMES}"
        return f"; it is {self._outside} {times} times as long as the others"

    def _find_latest(self, of: Literal["rank", "host"] = "rank") -> tuple[LateRank | None, bool]:
        """Return the first `LateRank` of the rank or host with most waiting, and whether it is the cause."""
        waiting: dict[int | str, float] = defaultdict(float)
        for number, rank in self._ranks.items():
            waiting[number if of == "rank" else rank.host] += rank.late_s
        latest = max(self._late, key=lambda each: waiting[getattr(each, of)], default=None)
        if latest is None or not waiting[getattr(latest, of)]:
            return None, False
        own = 1 if of == "rank" else sum(rank.host == latest.host for rank in self._ranks.values())
        least = max(CAUSED_BY_ONE, MORE_THAN_EVEN * own / len(self._ranks))
        return latest, waiting[getattr(latest, of)] >= least * sum(waiting.values())

    def _rests_longer(self, rank: int, *of: str) -> bool:
        """Return whether a late rank's times `of` without work explain the waiting for this rank."""
        more_s = sum(getattr(self._ranks[rank], name) for name in of)
        return self._explains(rank, more_s - self._mean_of_others(rank, "most_rest_s"))

    def _explains(self, rank: int, more_s: float) -> bool:
        """Return whether a late rank's additional time explains at least `CAUSED_BY_ONE` of the waiting for this rank.

        Each other rank waits for at most the additional time.
        """
        is_at_end = rank == self._latest_at_end
        waiting_s = self._end_s * len(self._ranks) if is_at_end else self._ranks[rank].late_s
        return more_s * (len(self._ranks) - 1) >= CAUSED_BY_ONE * waiting_s > 0

    def _mean_of_others(self, rank: int, of: str) -> float:
        return fmean([getattr(each, of) for number, each in self._ranks.items() if number != rank] or [0.0])
