# SPDX-License-Identifier: Apache-2.0
"""Sum a profile's MPI calls by chosen keys: number, time, bytes, messages and waiting; add the run's efficiencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.profile.efficiency import (
    ASSUMPTION,
    NOT_TIMED,
    Efficiencies,
    TimeInMpi,
    Waiting,
    WaitShares,
    estimate_waiting,
    find_efficiencies,
    time_in_mpi,
)
from ibprof.profile.missing_data import describe_incomplete
from ibprof.profile.profile_data import CallTimes, Counters, Direction, Kind, Profile, Source
from ibprof.profile.profile_rows import NO_SITES, RowChoice, name_sites
from ibprof.profile.row_arrays import sum_by_group

NO_TIMES = "time inside calls was not recorded: run again with IBPROF_TIME=1"

TOP = 3
"""Number of calls that a summary lists."""


KEYS = ("rank", "host", "region", "operation", "site")
"""Names of the possible keys for sums of calls."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """Time, calls, bytes and messages of a profile by chosen keys.

    Attributes:
        rows: sums, sorted by time, descending.
        time: time inside MPI calls; None if times were not recorded.
        efficiencies, waiting: results for the whole run, not only the chosen calls; empty without times.
        notes: sentences on data that was not recorded.
        functions: name of a site -> full name of the function; empty if `site` is no key.
    """

    by: tuple[str, ...]
    rows: tuple[CallSum, ...]
    time: TimeInMpi | None
    efficiencies: Efficiencies
    waiting: tuple[Waiting, ...]
    notes: tuple[str, ...]
    functions: dict[str, str]

    @property
    def assumption(self) -> str:
        """Sentence on the assumption behind the estimate of waiting."""
        return ASSUMPTION

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values; seconds of rows are sums over ranks."""
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
            "functions": self.functions,
        }


def _row_as_json(by: Sequence[str], row: CallSum) -> dict[str, Any]:
    return {
        **dict(zip(by, row.key, strict=True)),
        "calls": row.calls,
        "time_s": row.time_s,
        "time_error_s": row.error_s,
        "bytes": row.bytes,
        "messages": row.messages,
        "wait_s": row.wait_s,
        "transfer_s": row.transfer_s,
        "unsplit_s": row.unsplit_s,
        "split_error_s": row.split_error_s,
        "ranks": row.ranks,
        "slowest_rank": row.slowest,
        "slowest_rank_s": row.slowest_s,
        "spread": row.spread,
    }


def report_calls(
    run: Profile, by: Sequence[str], choice: RowChoice | None = None, shares: WaitShares | None = None
) -> CallReport:
    """Return time, calls, bytes and messages by some of `KEYS`.

    Args:
        choice: choice of calls; None for all.
        shares: waiting and transfer of the profile's times; None without sampled calls.

    Raises:
        UsageError: the profile has no such operation, region or site.
    """
    rows = tuple(sum_calls(run, by, choice, shares))
    efficiencies, timed = find_efficiencies(run), time_in_mpi(run)
    # Leave out the efficiencies' note on a run without times, because `describe_unseen_calls` yields the same note.
    limits = [note for note in efficiencies.notes if note != NOT_TIMED or timed]
    return CallReport(
        by=tuple(by),
        rows=rows,
        time=timed,
        efficiencies=efficiencies,
        waiting=estimate_waiting(run),
        notes=(*describe_unseen_calls(run, "site" in by), *limits),
        functions={site.name: site.function for site in run.sites if site.function} if "site" in by else {},
    )


def describe_unseen_calls(run: Profile, with_sites: bool) -> Iterable[str]:
    """Yield sentences on unknown times, call sites and lines of calls, and on incomplete ranks."""
    if not any(rank.has_times for rank in run.ranks):
        yield NO_TIMES
    elif missing := [rank.rank for rank in run.ranks if not rank.has_times]:
        yield f"time inside calls was not recorded on {len(missing)} of {len(run.ranks)} ranks"
    if with_sites and not run.sites:
        yield NO_SITES
    yield from run.sites_without_lines if with_sites else ()
    if incomplete := describe_incomplete(run):
        yield incomplete


def top_lines(run: Profile) -> list[dict[str, Any]]:
    """Return the `TOP` operations and lines with most time; operations only, if lines are unknown."""
    by = ("operation", "site") if run.sites else ("operation",)
    return [_row_as_json(by, row) for row in sum_calls(run, by)[:TOP] if row.time_s]


@dataclass(frozen=True, slots=True)
class CallSum:
    """A row of sums.

    Attributes:
        key: values of the chosen keys, in their order.
        calls: number of calls; None without times.
        time_s: time inside the calls, over all ranks and threads, in seconds; None without times.
        error_s: standard error of `time_s`, in seconds.
        bytes, messages: user data that the calls sent, or fetched from a window.
        slowest_s: time of the slowest rank, in seconds.
        slowest: rank with most time; None without times.
        spread: standard deviation / mean of the ranks' times; None without times. Ranks without calls count as 0 s.
        ranks: number of ranks that made such calls.
        wait_s, transfer_s, unsplit_s: parts of `time_s`, in seconds; None without sampled calls.
        split_error_s: standard error of `wait_s` and `transfer_s`, in seconds.
    """

    key: tuple[str, ...]
    calls: int | None
    time_s: float | None
    error_s: float | None
    bytes: int
    messages: int
    slowest_s: float | None
    slowest: int | None
    ranks: int
    spread: float | None = None
    wait_s: float | None = None
    transfer_s: float | None = None
    unsplit_s: float | None = None
    split_error_s: float | None = None


def sum_calls(
    run: Profile, by: Sequence[str], choice: RowChoice | None = None, shares: WaitShares | None = None
) -> list[CallSum]:
    """Return calls, time, bytes and messages, summed by some of `KEYS`, sorted by time and bytes, descending.

    Sites with the same name are summed.

    Args:
        choice: choice of rows; None for all.
        shares: waiting and transfer, a row for each row of `run.times`; None without sampled calls.

    Raises:
        UsageError: the profile has no such operation, region or site.
    """
    counters, wanted = run.counters, choice or RowChoice()
    sent = np.flatnonzero(
        (counters.direction != Direction.RECEIVED)
        & (counters.kind == Kind.USER)
        & (counters.source != Source.VERBS)
        & wanted.choose(run, counters)
    )
    rows = np.flatnonzero(wanted.choose(run, run.times))
    names = _KeyNames(run)
    timed_keys = names.of_rows(run.times, rows, by)
    sent_keys = names.of_rows(counters, sent, by)
    keys = sorted({*timed_keys, *sent_keys})  # sortable, since each position of a key has either numbers or texts
    group_of = {key: number for number, key in enumerate(keys)}
    timed = np.array([group_of[key] for key in timed_keys], np.intp)
    sender = np.array([group_of[key] for key in sent_keys], np.intp)
    has_times = any(rank.has_times for rank in run.ranks)
    sums = [sum_by_group(sender, len(keys), column[sent]) for column in (counters.bytes, counters.messages)]
    calls = sum_by_group(timed, len(keys), run.times.calls[rows])
    of_key = np.split(rows[np.argsort(timed, kind="stable")], np.cumsum(np.bincount(timed, minlength=len(keys)))[:-1])
    ranks_timed = sum(rank.has_times for rank in run.ranks)
    times = [_Times(run.times, each, ranks_timed) for each in (of_key if keys else ())]
    senders = [np.unique(counters.rank[sent][sender == group]) for group in range(len(keys))]
    made = [
        CallSum(
            key=tuple(map(str, key)),
            calls=calls[group] if has_times else None,
            time_s=times[group].total_s if has_times else None,
            error_s=times[group].error_s if has_times else None,
            bytes=sums[0][group],
            messages=sums[1][group],
            slowest_s=times[group].slowest_s if has_times else None,
            slowest=times[group].slowest if has_times else None,
            spread=times[group].spread if has_times else None,
            ranks=times[group].ranks if has_times else len(senders[group]),
            **(shares.sum_parts(of_key[group]) if shares else {}),
        )
        for group, key in enumerate(keys)
    ]
    return sorted(made, key=lambda row: (-(row.time_s or 0), -row.bytes))


class _Times:
    """Total time, slowest rank and spread of some rows of `times`; `timed` is the number of ranks with times."""

    def __init__(self, times: CallTimes, rows: npt.NDArray[np.intp], timed: int) -> None:
        seconds = times.time_ns[rows].astype(np.float64) * 1e-9
        ranks, place = np.unique(times.rank[rows], return_inverse=True)
        by_rank = np.bincount(place.ravel(), weights=seconds, minlength=len(ranks))
        self.total_s = float(seconds.sum())
        self.error_s = float(np.sqrt(((times.error_ns[rows].astype(np.float64) * 1e-9) ** 2).sum()))
        self.ranks = len(ranks)
        self.slowest = int(ranks[by_rank.argmax()]) if len(ranks) else None
        self.slowest_s = float(by_rank.max(initial=0))
        mean = self.total_s / max(timed, 1)
        deviation = float(np.sqrt(max(float((by_rank**2).sum()) / max(timed, 1) - mean**2, 0)))
        self.spread = deviation / mean if mean else 0.0


class _KeyNames:
    """Makes the keys of rows. Names of regions, operations and sites replace their numbers."""

    def __init__(self, run: Profile) -> None:
        self._run = run
        self._sites = name_sites(run)
        self._host_of = {rank.rank: run.hosts[rank.host].name for rank in run.ranks}

    def of_rows(
        self, rows: CallTimes | Counters, chosen: npt.NDArray[np.intp], by: Sequence[str]
    ) -> list[tuple[str | int, ...]]:
        """Return the key of each chosen row."""
        columns = [self._column(rows, name, chosen) for name in by]
        return list(zip(*columns, strict=True)) if columns else [()] * len(chosen)

    def _column(self, rows: CallTimes | Counters, name: str, chosen: npt.NDArray[np.intp]) -> Iterator[str | int]:
        if name == "host":
            return (self._host_of[rank] for rank in rows.rank[chosen].tolist())
        numbers = getattr(rows, name)[chosen].tolist()
        if name == "rank":
            return iter(numbers)
        if name == "site":
            return (self._sites[number] for number in numbers)
        names = getattr(self._run, f"{name}s")
        return (names[number] for number in numbers)
