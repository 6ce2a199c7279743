# SPDX-License-Identifier: Apache-2.0
"""Write a run as a trace for Perfetto and chrome://tracing, from recorded intervals and sampled calls.

Hosts are processes and ranks are threads. A second thread per rank shows waiting, unsplit time and transfer of the
rank's sampled calls. A region is an asynchronous event of each rank, from the beginning of its first visit to the end
of its last visit. Bytes, time inside MPI and the use of links are counters.

Source: "Trace Event Format", the document of the Chromium project; times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TextIO

import numpy as np
import numpy.typing as npt

from ibprof.profile.profile_data import Profile
from ibprof.profile.profile_rows import name_sites
from ibprof.profile.row_arrays import take_rows
from ibprof.text.quantities import name_call, printable
from ibprof.waiting.wait_split import MeasuredWaiting, split_each

Event = dict[str, object]
Rows = npt.NDArray[np.intp]

Place = tuple[int, int]
"""Process and rank."""

_LINKS = 0
"""Process number of links; the process numbers of hosts begin with 1."""

_SAMPLED = 1 << 24
"""Sampled calls of rank r have the thread number `_SAMPLED` + r."""

_LATEST = (1 << 63) - 1

_US = 1e-3


@dataclass(frozen=True, slots=True)
class LinkUse:
    """Use of a link direction over time.

    Attributes:
        first_ns: the start of the first step, as Unix time.
        begin_ns: float64 [step + 1], start of each step, and end of the last step, in ns since `first_ns`.
        share: float64 [step + 1], used share (0 to 1) of the link's speed in each step; the last element is 0.
    """

    name: str
    first_ns: int
    begin_ns: npt.NDArray[np.float64]
    share: npt.NDArray[np.float64]


def write_trace(file: TextIO, run: Profile, links: Sequence[LinkUse], waiting: MeasuredWaiting | None = None) -> None:
    """Write the trace of a run as one JSON object.

    Args:
        run: a run with recorded intervals, or sampled calls.
        links: use of the shown link directions; may be empty.
        waiting: the run's sampled calls; None without samples.
    """
    entered = run.region_times.first_ns[run.region_times.first_ns > 0]
    begins = (run.intervals.begin_ns, run.interval_times.begin_ns, entered)
    first = min((int(each.min()) for each in begins if len(each)), default=_LATEST)
    if waiting and len(waiting.calls.rank):
        first = min(first, int(waiting.calls.enter_ns.min()) + waiting.unix_offset_ns)
    about = {
        "recorded_by": "ibprof",
        "run": run.name,
        "clocks": "each host's clock; the clocks of two hosts may differ",
        "intervals": "bytes and time inside MPI are known by interval, not by call",
        "sampled calls": "a sample of all calls, on a common clock computed from the samples",
    }
    file.write(f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":[\n')
    lines = map(json.dumps, chain(_name_threads(run, bool(links), waiting), _list_events(run, links, waiting, first)))
    file.writelines(f"{',' if number else ''}{line}\n" for number, line in enumerate(lines))
    file.write("]}\n")


def _list_events(
    run: Profile, links: Sequence[LinkUse], waiting: MeasuredWaiting | None, first: int
) -> Iterator[Event]:
    """Yield the events rank by rank: the events of all ranks may exceed the memory."""
    process = {rank.rank: rank.host + 1 for rank in run.ranks}
    sent_of, times_of, regions_of = (
        _split_by_rank(rows) for rows in (run.intervals.rank, run.interval_times.rank, run.region_times.rank)
    )
    sampled_of = _split_by_rank(waiting.calls.rank) if waiting else None
    sites = name_sites(run) if waiting else ()
    for rank in run.ranks:
        place = process[rank.rank], rank.rank
        if waiting and sampled_of:
            yield from _list_calls(run, waiting, sites, sampled_of(rank.rank), place, first)
        yield from _list_intervals(run, sent_of(rank.rank), place, first)
        yield from _list_times(run, times_of(rank.rank), place, first)
        yield from _list_regions(run, regions_of(rank.rank), place, first)
    for link in links:
        offset = link.first_ns - first
        for begin, share in zip(link.begin_ns.tolist(), link.share.tolist(), strict=True):
            yield _counter(f"use of {printable(link.name)}", _LINKS, (offset + begin) * _US, "share", _shorten(share))


def _split_by_rank(rank: npt.NDArray[np.int32]) -> Callable[[int], Rows]:
    """Return a function that returns the indices of a rank's rows."""
    order = np.argsort(rank, kind="stable")
    ordered = rank[order]

    def rows_of(wanted: int) -> Rows:
        first, after = np.searchsorted(ordered, [wanted, wanted + 1])
        return order[first:after]

    return rows_of


def _name_threads(run: Profile, has_links: bool, waiting: MeasuredWaiting | None) -> Iterator[Event]:
    if has_links:
        yield _name("process_name", _LINKS, 0, "links: load as a share of the speed")
    for number, host in enumerate(run.hosts, 1):
        yield _name("process_name", number, 0, printable(host.name))
    for rank in run.ranks:
        yield _name("thread_name", rank.host + 1, rank.rank, f"rank {rank.rank}")
        if waiting:
            yield _name("thread_name", rank.host + 1, _SAMPLED + rank.rank, f"rank {rank.rank}: sampled calls")


def _name(what: str, process: int, thread: int, name: str) -> Event:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _list_calls(
    run: Profile, waiting: MeasuredWaiting, sites: Sequence[str], rows: Rows, place: Place, first: int
) -> Iterator[Event]:
    """Yield waiting, unsplit time and transfer of a rank's sampled calls; leave out calls within another call."""
    calls = waiting.calls
    waits, unsplit, errors = split_each(take_rows(calls, rows))
    end = first
    for row, wait, unknown, error in zip(rows.tolist(), waits.tolist(), unsplit.tolist(), errors.tolist(), strict=True):
        begin, stay = int(calls.enter_ns[row]) + waiting.unix_offset_ns, int(calls.stay_ns[row])
        if begin < end or stay <= 0:
            continue
        end = begin + stay
        late = f"waiting for rank {calls.late[row]}" if calls.late[row] >= 0 else "waiting"
        call = name_call(run.operations[calls.operation[row]])
        args: Event = {"site": sites[calls.site[row]], "stands_for_calls": _shorten(float(calls.weight[row]))}
        for name, part in ((late, wait), ("not split", unknown), ("transfer", stay - wait - unknown)):
            if part <= 0:
                continue
            more: Event = {"late_rank": int(calls.late[row]), "error_us": _shorten(error * _US)} if name == late else {}
            yield {
                "name": f"{call}: {name}",
                "cat": "sampled call",
                "ph": "X",
                "pid": place[0],
                "tid": _SAMPLED + place[1],
                "ts": (begin - first) * _US,
                "dur": part * _US,
                "args": args | more,
            }
            begin += int(part)


def _list_intervals(run: Profile, rows: Rows, place: Place, first: int) -> Iterator[Event]:
    """Yield a rank's bytes and messages in each interval, summed over all peers."""
    line = run.intervals
    spans, row = np.unique(_spans(line.begin_ns[rows], line.end_ns[rows]), axis=0, return_inverse=True)
    sums = np.zeros((len(spans), 2), np.uint64)
    np.add.at(sums, row.reshape(-1), np.column_stack([line.bytes[rows], line.messages[rows]]))
    for (begin, end), (amount, messages) in zip(spans.tolist(), sums.tolist(), strict=True):
        yield {
            "name": "sent in the interval",
            "cat": "interval",
            "ph": "X",
            "pid": place[0],
            "tid": place[1],
            "ts": (begin - first) * _US,
            "dur": max(end - begin, 0) * _US,
            "args": {"bytes": amount, "messages": messages},
        }
    yield from _steps("bytes/s", place, spans, sums[:, 0].astype(np.float64) * 1e9, first)


def _list_times(run: Profile, rows: Rows, place: Place, first: int) -> Iterator[Event]:
    line = run.interval_times
    spans = _spans(line.begin_ns[rows], line.end_ns[rows])
    order = np.lexsort(spans.T[::-1])
    yield from _steps("share of time in MPI", place, spans[order], line.time_ns[rows][order].astype(np.float64), first)


def _spans(begin_ns: npt.NDArray[np.uint64], end_ns: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return np.column_stack([begin_ns.astype(np.int64), end_ns.astype(np.int64)])


def _steps(
    what: str, place: Place, spans: npt.NDArray[np.int64], amounts: npt.NDArray[np.float64], first: int
) -> Iterator[Event]:
    """Yield a rank's counter: amount / duration of each interval, and 0 where a gap begins."""
    process, rank = place
    name = f"rank {rank}: {what}"
    for number, ((begin, end), amount) in enumerate(zip(spans.tolist(), amounts.tolist(), strict=True)):
        yield _counter(name, process, (begin - first) * _US, "value", _shorten(amount / max(end - begin, 1)))
        follows = number + 1 < len(spans) and spans[number + 1, 0] <= end
        if not follows:
            yield _counter(name, process, (max(end, begin) - first) * _US, "value", 0)


def _shorten(value: float) -> float:
    """Round to six digits: this makes files smaller by a third."""
    return float(f"{value:.6g}")


def _counter(name: str, process: int, time: float, series: str, value: float) -> Event:
    return {"name": name, "ph": "C", "pid": process, "tid": 0, "ts": time, "args": {series: value}}


def _list_regions(run: Profile, rows: Rows, place: Place, first: int) -> Iterator[Event]:
    times = run.region_times
    process, rank = place
    for row in rows.tolist():
        region = int(times.region[row])
        begin, end = int(times.first_ns[row]), int(times.last_ns[row])
        if not begin or end < begin or not run.regions[region]:
            continue
        shared: Event = {
            "name": printable(run.regions[region]),
            "cat": "region",
            "id": f"{rank}.{region}",
            "pid": process,
            "tid": rank,
        }
        args = {"visits": int(times.visits[row]), "inside_s": int(times.wall_ns[row]) * 1e-9}
        yield {**shared, "ph": "b", "ts": (begin - first) * _US, "args": args}
        yield {**shared, "ph": "e", "ts": (end - first) * _US}
