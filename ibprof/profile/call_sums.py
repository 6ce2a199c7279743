# SPDX-License-Identifier: Apache-2.0
"""Calls, the time inside them, and what they sent: sums over the rows of a profile by chosen keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.profile.exact_sums import sum_by_group
from ibprof.profile.profile_data import CallTimes, Counters, Direction, Kind, Profile, Source
from ibprof.profile.row_choice import RowChoice
from ibprof.profile.site_choice import name_sites

KEYS = ("rank", "host", "region", "operation", "site")
"""Keys that sums may be kept by."""


@dataclass(frozen=True, slots=True)
class CallSum:
    """A row of sums.

    Attributes:
        key: its values of the chosen keys, in their order.
        calls: None where times were not recorded, and so calls were not counted.
        time_s: seconds inside the calls, over all ranks and threads; None where times were not recorded.
        error_s: the standard error of `time_s`.
        bytes, messages: of user data that the calls sent, or fetched from a window.
        slowest_s: of the rank that spent most time.
        slowest: that rank; None without times.
        spread: standard deviation over mean of the ranks' times; ranks without such calls have 0 s; None without times.
        ranks: number of ranks that made such calls.
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


def sum_calls(run: Profile, by: Sequence[str], choice: RowChoice | None = None) -> list[CallSum]:
    """Return sums by some of `KEYS`, those with most time first; equal ones in the order of their keys.

    Lines of one name are one site.

    Args:
        run: the profile.
        by: the keys.
        choice: which rows to add up; None for all.

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
    keys = sorted({*timed_keys, *sent_keys})  # values of one key are all numbers, or all texts
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
        )
        for group, key in enumerate(keys)
    ]
    return sorted(made, key=lambda row: (-(row.time_s or 0), -row.bytes))


class _Times:
    """The time of some rows, in total and of the rank with most; `timed` ranks recorded times."""

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
    """Values of keys, by the names of what rows number."""

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
