# SPDX-License-Identifier: Apache-2.0
"""Efficiencies and waiting time equal calculations by hand. The report states the limits of these values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ibprof.profile.call_report import report_calls
from ibprof.profile.efficiency import (
    NO_SPANS,
    NOT_TIMED,
    estimate_waiting,
    find_efficiencies,
    measure_spans,
    time_in_mpi,
)
from ibprof.profile.profile_data import CallTimes, Mark, MarkKind, Profile, Site
from ibprof.profile.profile_rows import order_rows
from ibprof_testing.samples.profiles import make_profile, make_rank

S = 1_000_000_000

Row = tuple[int, int, int, int, float, int]
"""(rank, region, operation, calls, seconds, call site)"""


def make_times(rows: Sequence[Row]) -> CallTimes:
    rank, region, operation, calls, seconds, site = (np.array(column) for column in zip(*rows, strict=True))
    return order_rows(
        CallTimes(
            rank=rank.astype(np.int32),
            region=region.astype(np.int32),
            operation=operation.astype(np.int32),
            calls=calls.astype(np.uint64),
            time_ns=np.rint(seconds * S).astype(np.uint64),
            error_ns=np.zeros(len(rank), np.uint64),
            site=site.astype(np.int32),
        )
    )


def make_mark(rank: int, second: float, kind: MarkKind, region: int = 0) -> Mark:
    return Mark(rank, round(second * S), kind, region, 0, 0, 0, 0)


def make_run(rows: Sequence[Row], ends: Sequence[float] = (10, 10), marks: Sequence[Mark] = ()) -> Profile:
    made = [sum(mark.rank == rank for mark in marks) for rank in range(len(ends))]
    ranks = [
        replace(make_rank(rank), has_times=True, start_ns=0, stop_ns=round(end * S), marks_seen=made[rank])
        for rank, end in enumerate(ends)
    ]
    run = make_profile([], ranks, regions=("main", "solve", "inner"), operations=("BARRIER", "SEND", "ALLREDUCE"))
    sites = (Site("/a/x.c", 3, "f", "app", name="x.c:3"), Site("/a/x.c", 9, "g", "app", name="x.c:9"))
    return replace(run, times=make_times(rows), sites=sites, marks=tuple(marks))


def test_of_the_run() -> None:
    # The ranks are outside MPI for 8 s and 4 s of 10 s.
    found = find_efficiencies(make_run([(0, 0, 0, 1, 2.0, 0), (1, 0, 0, 1, 5.0, 0), (1, 0, 1, 1, 1.0, 0)])).run
    assert found
    assert (found.load_balance, found.communication, found.parallel) == pytest.approx((6 / 8, 0.8, 0.6))
    assert found.parallel == pytest.approx(found.load_balance * found.communication)


def test_by_region_without_the_regions_inside_it() -> None:
    marks = [
        mark
        for rank in range(2)
        for mark in (
            make_mark(rank, 0, MarkKind.START),
            make_mark(rank, 1, MarkKind.BEGIN, 1),
            make_mark(rank, 3, MarkKind.BEGIN, 2),
            make_mark(rank, 7, MarkKind.END, 2),
            make_mark(rank, 9, MarkKind.END, 1),
            make_mark(rank, 10, MarkKind.STOP),
        )
    ]
    run = make_run([(0, 2, 0, 1, 1.0, 0), (1, 2, 0, 1, 3.0, 0), (0, 1, 0, 1, 4.0, 0)], marks=marks)
    assert measure_spans(run) == {rank: {0: 2 * S, 1: 4 * S, 2: 4 * S} for rank in range(2)}
    found = {each.region: each for each in find_efficiencies(run).regions}
    assert found["inner"].parallel == pytest.approx((3 + 1) / 2 / 4)
    assert found["inner"].load_balance == pytest.approx(2 / 3)
    assert found["solve"].parallel == pytest.approx((0 + 4) / 2 / 4)
    assert found["main"].parallel == 1.0


def test_a_mark_names_what_it_closes_and_time_off_is_in_no_region() -> None:
    marks = [
        make_mark(0, 0, MarkKind.START),
        make_mark(0, 1, MarkKind.OFF),
        make_mark(0, 4, MarkKind.ON),
        make_mark(0, 6, MarkKind.CLOSE, 1),
        make_mark(0, 10, MarkKind.STOP),
    ]
    assert measure_spans(make_run([(0, 0, 0, 1, 1.0, 0)], [10], marks)) == {0: {1: 3 * S, 0: 4 * S}}


def test_limits_are_stated() -> None:
    rows: list[Row] = [(0, 0, 0, 1, 2.0, 0), (1, 0, 0, 1, 5.0, 0)]
    run = make_run(rows)
    assert find_efficiencies(run).notes == (NO_SPANS,)
    untimed = replace(run, ranks=(run.ranks[0], replace(run.ranks[1], has_times=False)))
    assert find_efficiencies(untimed).notes == (NOT_TIMED,)
    killed = find_efficiencies(replace(run, ranks=(run.ranks[0], replace(run.ranks[1], stop_ns=None))))
    assert killed.run is None
    assert "1 of 2 ranks did not reach MPI_Finalize" in killed.notes[0]
    threads = find_efficiencies(make_run([(0, 0, 0, 1, 12.0, 0), (1, 0, 0, 1, 5.0, 0)]))
    assert "longer than the run" in threads.notes[0]
    assert threads.run
    assert threads.run.outside_max_s == 5.0


def test_waiting_by_the_quickest_rank() -> None:
    rows: list[Row] = [
        *((rank, 0, 0, 4, 1.0 + rank, 1) for rank in range(3)),  # a barrier: ranks spend 1, 2 and 3 s in it
        *((rank, 0, 1, 4, 9.0, 1) for rank in range(3)),  # for messages, no rank counts as the quickest
        *((rank, 0, 2, 4 + rank, 2.0, 2) for rank in range(3)),  # ranks call it a different number of times
    ]
    (found,) = estimate_waiting(make_run(rows, [100] * 3))
    assert (found.operation, found.site, found.calls, found.ranks, found.quickest) == ("BARRIER", "x.c:3", 4, 3, 0)
    assert (found.waiting_s, found.transfer_s, found.time_s) == pytest.approx((3.0, 3.0, 6.0))


def test_time_in_mpi() -> None:
    run = make_run([(0, 0, 0, 1, 1.0, 0), (1, 0, 0, 1, 3.0, 1)])
    time = time_in_mpi(run)
    assert time
    assert (time.mean_s, time.slowest, time.slowest_s, time.spread, time.run_s) == (2.0, 1, 3.0, 0.5, 10.0)
    assert time.share == 0.2
    report = report_calls(run, ("operation", "site"))
    assert [(row.key, row.spread) for row in report.rows] == [
        (("BARRIER", "x.c:3"), 1.0),
        (("BARRIER", "(unknown)"), 1.0),
    ]
    assert report.as_json()["mpi_s"] == 2.0


def test_overlapping_threads_count_once() -> None:
    """Threads of rank 0 wait for 8 s and for 7 s; these waits overlap for 6 s. Of 10 s, 1 s is outside MPI."""
    run = make_run([(0, 0, 0, 1, 15.0, 0), (1, 0, 0, 1, 5.0, 0)])
    run = replace(run, ranks=(replace(run.ranks[0], overlap_ns=6 * S), run.ranks[1]))
    found = find_efficiencies(run)
    assert found.run
    assert (found.run.parallel, found.run.communication) == pytest.approx((0.3, 0.5))
    assert found.notes == (NO_SPANS,)
    time = time_in_mpi(run)
    assert time
    assert (time.mean_s, time.overlap_s, time.busy_s, time.share) == pytest.approx((10, 3, 7, 0.7))
    report = report_calls(run, ("operation",))
    assert report.as_json()["overlap_s"] == 3


def test_json_has_the_whole_name_of_a_function() -> None:
    run = make_run([(0, 0, 0, 1, 1.0, 1), (1, 0, 0, 1, 3.0, 1)])
    run = replace(run, sites=(replace(run.sites[0], function="solve(int, double*)"), run.sites[1]))
    functions = report_calls(run, ("operation", "site")).as_json()["functions"]
    assert functions == {"x.c:3": "solve(int, double*)", "x.c:9": "g"}
    assert report_calls(run, ("operation",)).as_json()["functions"] == {}
