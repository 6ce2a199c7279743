# SPDX-License-Identifier: Apache-2.0
"""The view's arrays of regions and of times in calls are right for synthetic marks and intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof.profile.profile_data import IntervalTimes, Mark, MarkKind, Profile
from ibprof_converter.viewer import time_arrays
from ibprof_converter.viewer.time_arrays import list_visits
from ibprof_testing.samples.profiles import make_profile, make_rank

MAIN, HALO, SOLVE, IO = range(4)


def make_run(*marks: tuple[MarkKind, int, int]) -> Profile:
    """Make a run with one rank and marks (kind, moment, region)."""
    run = make_profile([], [make_rank(0)], regions=("main", "halo", "solve", "io"))
    return replace(run, marks=tuple(Mark(0, when, kind, region, 0, 0, 0, 0) for kind, when, region in marks))


def visits_of(run: Profile) -> list[tuple[int, int, int]]:
    visits = list_visits(run)
    return list(zip(visits.region.tolist(), visits.begin_ns.tolist(), visits.end_ns.tolist(), strict=True))


def test_the_innermost_region_counts() -> None:
    run = make_run(
        (MarkKind.START, 10, MAIN),
        (MarkKind.BEGIN, 20, HALO),
        (MarkKind.BEGIN, 25, IO),
        (MarkKind.END, 27, IO),
        (MarkKind.END, 30, HALO),
        (MarkKind.STOP, 50, MAIN),
    )
    assert visits_of(run) == [(MAIN, 10, 20), (HALO, 20, 25), (IO, 25, 27), (HALO, 27, 30), (MAIN, 30, 50)]


def test_a_region_that_is_named_when_it_closes_has_the_time_before() -> None:
    run = make_run((MarkKind.START, 0, MAIN), (MarkKind.CLOSE, 5, SOLVE), (MarkKind.CLOSE, 9, IO))
    assert visits_of(run) == [(SOLVE, 0, 5), (IO, 5, 9)]


def test_no_region_is_visited_while_recording_is_off_nor_after_the_last_mark() -> None:
    run = make_run(
        (MarkKind.START, 0, MAIN),
        (MarkKind.BEGIN, 1, HALO),
        (MarkKind.OFF, 4, MAIN),
        (MarkKind.ON, 8, MAIN),
        (MarkKind.END, 9, HALO),
    )
    assert visits_of(run) == [(HALO, 1, 4), (HALO, 8, 9)]  # no mark names the region of the first nanosecond


def test_the_shortest_of_too_many_visits_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_arrays, "_VISIT_LIMIT", 2)
    marks = [(MarkKind.START, 0, MAIN)]
    marks += [(MarkKind.CLOSE, when, SOLVE) for when in (100, 101, 300, 302)]
    assert visits_of(make_run(*marks)) == [(SOLVE, 0, 100), (SOLVE, 101, 300)]


def test_times_inside_calls_that_are_joined_keep_their_sum() -> None:
    times = IntervalTimes(
        rank=np.array([0, 0, 0, 1], np.int32),
        begin_ns=np.array([0, 10, 20, 0], np.uint64),
        end_ns=np.array([10, 20, 30, 10], np.uint64),
        time_ns=np.array([1, 2, 3, 4], np.uint64),
    )
    fitted = time_arrays._fit(times, 3)
    assert fitted.rank.tolist() == [0, 0, 1]
    assert fitted.end_ns.tolist() == [20, 30, 10]
    assert fitted.time_ns.tolist() == [3, 3, 4]
