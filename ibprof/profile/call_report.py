# SPDX-License-Identifier: Apache-2.0
"""How long ranks were inside MPI calls, and where: sums, efficiencies and waiting of a profile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ibprof.profile.call_sums import CallSum, sum_calls
from ibprof.profile.efficiency import NOT_TIMED, Efficiencies, elapsed_s, find_efficiencies, inside_s, overlaps_s
from ibprof.profile.profile_data import Profile
from ibprof.profile.row_choice import RowChoice
from ibprof.profile.site_choice import NO_SITES
from ibprof.profile.waiting import ASSUMPTION, Waiting, estimate_waiting

NO_TIMES = "time inside calls was not recorded: run again with IBPROF_TIME=1"

TOP = 3
"""Number of rows that a summary names."""


@dataclass(frozen=True, slots=True)
class TimeInMpi:
    """Time inside MPI calls of all ranks that were timed.

    Attributes:
        run_s: mean over ranks of the time they ran; None where some were killed.
        mean_s: mean over ranks of the time inside calls, over all threads.
        overlap_s: what that counts more than once, since several threads of a rank were inside calls at once.
        slowest: rank with most time inside calls.
        slowest_s: its time.
        spread: standard deviation over mean of the ranks' times.
        ranks: number of ranks that were timed.
    """

    run_s: float | None
    mean_s: float
    overlap_s: float
    slowest: int
    slowest_s: float
    spread: float
    ranks: int

    @property
    def busy_s(self) -> float:
        """The mean over ranks of the time during which at least one thread was inside calls."""
        return self.mean_s - self.overlap_s

    @property
    def share(self) -> float | None:
        """The part of the run with a thread inside calls, 0 to 1; None where the run's time is not known."""
        return self.busy_s / self.run_s if self.run_s else None


@dataclass(frozen=True, slots=True)
class CallReport:
    """Time, calls, bytes and messages of a profile by chosen keys.

    Attributes:
        by: the keys.
        rows: those with most time first.
        time: None where times were not recorded.
        efficiencies, waiting: of the whole run, whichever calls were chosen; empty where times were not recorded.
        notes: what was not recorded, a sentence each.
    """

    by: tuple[str, ...]
    rows: tuple[CallSum, ...]
    time: TimeInMpi | None
    efficiencies: Efficiencies
    waiting: tuple[Waiting, ...]
    notes: tuple[str, ...]

    @property
    def assumption(self) -> str:
        """The assumption behind the estimate of waiting, in words."""
        return ASSUMPTION

    def as_json(self) -> dict[str, Any]:
        """Return all of it as JSON values; seconds of rows are sums over ranks."""
        run, time = self.efficiencies.run, self.time
        return {
            "by": list(self.by),
            "ranks": time.ranks if time else 0,
            "run_s": time.run_s if time else None,
            "mpi_s": time.mean_s if time else None,
            "overlap_s": time.overlap_s if time else None,
            "slowest_rank": time.slowest if time else None,
            "slowest_rank_s": time.slowest_s if time else None,
            "calls": [_row_as_json(self.by, row) for row in self.rows],
            "efficiency": asdict(run) if run else None,
            "efficiency_by_region": [asdict(each) for each in self.efficiencies.regions],
            "waiting": {"assumption": ASSUMPTION, "sites": [asdict(each) for each in self.waiting]},
            "notes": list(self.notes),
        }


def _row_as_json(by: Sequence[str], row: CallSum) -> dict[str, Any]:
    return {
        **dict(zip(by, row.key, strict=True)),
        "calls": row.calls,
        "time_s": row.time_s,
        "time_error_s": row.error_s,
        "bytes": row.bytes,
        "messages": row.messages,
        "ranks": row.ranks,
        "slowest_rank": row.slowest,
        "slowest_rank_s": row.slowest_s,
        "spread": row.spread,
    }


def report_calls(run: Profile, by: Sequence[str], choice: RowChoice | None = None) -> CallReport:
    """Return time, calls, bytes and messages by some of `call_sums.KEYS`.

    Raises:
        UsageError: the profile has no such operation, region or site.
    """
    rows = tuple(sum_calls(run, by, choice))
    efficiencies, timed = find_efficiencies(run), time_in_mpi(run)
    # That nothing was timed has a note already.
    limits = [note for note in efficiencies.notes if note != NOT_TIMED or timed]
    return CallReport(
        by=tuple(by),
        rows=rows,
        time=timed,
        efficiencies=efficiencies,
        waiting=estimate_waiting(run),
        notes=(*describe_unseen_calls(run, "site" in by), *limits),
    )


def time_in_mpi(run: Profile) -> TimeInMpi | None:
    """Return the time inside MPI calls; None where it was not recorded."""
    timed = [rank for rank in run.ranks if rank.has_times]
    if not timed:
        return None
    seconds = inside_s(run, timed).sum(axis=1)
    mean, slowest = float(seconds.mean()), int(seconds.argmax())
    spans = [elapsed_s(rank) for rank in timed if rank.stop_ns]
    return TimeInMpi(
        run_s=sum(spans) / len(spans) if len(spans) == len(timed) else None,
        mean_s=mean,
        overlap_s=float(overlaps_s(timed).mean()),
        slowest=timed[slowest].rank,
        slowest_s=float(seconds[slowest]),
        spread=float(seconds.std()) / mean if mean else 0.0,
        ranks=len(timed),
    )


def describe_unseen_calls(run: Profile, with_sites: bool) -> Iterable[str]:
    """Yield what is not known about calls: ranks without times, calls without sites, sites without lines."""
    if not any(rank.has_times for rank in run.ranks):
        yield NO_TIMES
    elif missing := [rank.rank for rank in run.ranks if not rank.has_times]:
        yield f"time inside calls was not recorded on {len(missing)} of {len(run.ranks)} ranks"
    if with_sites and not run.sites:
        yield NO_SITES
    yield from run.sites_without_lines if with_sites else ()


def top_lines(run: Profile) -> list[dict[str, Any]]:
    """Return the `TOP` calls that take most time: by operation and line, or by operation where lines are not known."""
    by = ("operation", "site") if run.sites else ("operation",)
    return [_row_as_json(by, row) for row in sum_calls(run, by)[:TOP] if row.time_s]
