# SPDX-License-Identifier: Apache-2.0
"""Find the rank or host that other ranks wait for, and why this rank or host is late."""

from __future__ import annotations

from collections import defaultdict
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

_NAMED = 3
"""Maximum number of late ranks in the evidence."""

_Time = Literal["files_s", "no_core_s", "idle_s"]

_REASONS: tuple[tuple[_Time, bool, str], ...] = (
    ("files_s", True, "is in calls of MPI-IO for"),
    ("no_core_s", False, "had no core for"),
    ("idle_s", False, "slept, or waited for a file or a device, for"),
)
"""Field of `RankTimes` that can explain a late rank; true if the rank works in this time; words for the time."""


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
        """Return whether a lack of cores could explain the waiting: ranks are late in turn, or a rank is delayed."""
        cause, (latest, _) = self.find_cause(), self._find_latest()
        return cause == NOISE or (cause == LATE_RANK and latest is not None and self.is_delayed(latest.rank))

    def is_delayed(self, rank: int) -> bool:
        """Return whether a rank of the evidence is late, but not because it works longer than others."""
        late = next((each for each in self._late if each.rank == rank), None)
        return late is not None and self._latest_at_end is None and not self._works_longer(late)

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
        """Return the end of a sentence on waiting: where, how often and how long ranks wait, and for which rank."""
        if self._latest_at_end is not None:
            return f", most of it in MPI_Finalize, for rank {self._latest_at_end}"
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
        host_name = f" on {latest.host}" if latest.host else ""
        who = f"{f'in {place}, ' if is_most else ''}for rank {latest.rank}{host_name}"
        often = f"{latest.share:.0%} of {'these calls' if is_most else f'the calls of {place}'}"
        why = self._describe_reason(latest)
        return f", most of it {who}, which is late in {often}, by {format_seconds(latest.late_s)}{why}"

    def _describe_reason(self, late: LateRank) -> str:
        """Return text on the time that makes a rank late; empty if no known time explains the waiting."""
        works_longer = self._works_longer(late)
        for of, is_work, words in _REASONS:
            own, others = self._compare(late.rank, of)
            if is_work == works_longer and self._explains(late, own - others):
                mean = f", the others for {format_seconds(others)} on average" if others else ""
                return f"; it {words} {format_seconds(own)}{mean}"
        own, others = late.outside_s or 0.0, late.others_outside_s or 0.0
        if works_longer and others and own > MUCH_LONGER * others:
            times = f"{own / others:.1f}" if own < MANY_TIMES * others else f"over {MANY_TIMES}"
            return f"; it is {self._outside} {times} times as long as the others"
        return ""

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

    def _works_longer(self, late: LateRank) -> bool:
        """Return whether a late rank's additional time outside MPI explains the waiting; true if unknown.

        Time in calls of MPI-IO also counts as work; time without a core and idle time do not.
        """
        if late.outside_s is None or late.others_outside_s is None:
            return True
        more = late.outside_s - late.others_outside_s
        for of, is_work, _ in _REASONS:
            own, others = self._compare(late.rank, of)
            more += own - others if is_work else min(others - own, 0.0)
        return self._explains(late, more)

    def _explains(self, late: LateRank, more_s: float) -> bool:
        """Return whether a late rank's additional time explains at least `CAUSED_BY_ONE` of the waiting for this rank.

        Each other rank waits for at most the additional time.
        """
        return more_s * (len(self._ranks) - 1) >= CAUSED_BY_ONE * self._ranks[late.rank].late_s

    def _compare(self, rank: int, of: _Time) -> tuple[float, float]:
        """Return a time of a rank, and the mean of this time over all other ranks, in seconds."""
        others = [getattr(each, of) for number, each in self._ranks.items() if number != rank]
        return getattr(self._ranks[rank], of), sum(others) / max(len(others), 1)
