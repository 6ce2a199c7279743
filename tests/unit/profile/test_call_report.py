# SPDX-License-Identifier: Apache-2.0
"""Whatever the keys, the rows add up to the total of all calls. The report names the data that were not recorded."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from ibprof.profile.call_report import KEYS, sum_calls
from ibprof.profile.profile_data import CallTimes, Direction, Profile, Site
from ibprof.profile.profile_rows import UNKNOWN_SITE
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

SITES = (Site("a.c", 3, "main", "app", name="a.c:3"), Site("a.c", 3, "main", "app", name="a.c:3"))


def make_run() -> Profile:
    run = make_profile(
        [Count(0, 1, 10), Count(1, 0, 5), Count(1, 0, 7, operation=1), Count(0, 1, 99, direction=Direction.RECEIVED)],
        ranks=[replace(make_rank(rank, rank), has_times=True) for rank in range(2)],
        hosts=[make_host("a"), make_host("b")],
        operations=("SEND", "BCAST", "WAIT"),
    )
    times = CallTimes(
        rank=np.array([0, 1, 1], np.int32),
        region=np.zeros(3, np.int32),
        operation=np.array([2, 0, 2], np.int32),
        calls=np.array([4, 5, 6], np.uint64),
        time_ns=np.array([4_000_000_000, 1_000_000_000, 2_000_000_000], np.uint64),
        error_ns=np.array([3_000_000_000, 0, 4_000_000_000], np.uint64),
        site=np.array([1, 0, 2], np.int32),
    )
    return replace(run, sites=SITES, times=times)


def test_by_operation_and_site() -> None:
    rows = sum_calls(make_run(), ("operation", "site"))
    assert [(row.key, row.calls, row.time_s, row.bytes, row.messages) for row in rows] == [
        (("WAIT", "a.c:3"), 10, 6.0, 0, 0),
        (("SEND", UNKNOWN_SITE), 5, 1.0, 15, 2),
        (("BCAST", UNKNOWN_SITE), 0, 0.0, 7, 1),
    ]
    assert (rows[0].slowest, rows[0].slowest_s, rows[0].ranks) == (0, 4.0, 2)
    assert rows[0].error_s == 5.0


@pytest.mark.parametrize(
    "by", [by for length in range(1, 4) for by in itertools.permutations(KEYS, length)], ids=",".join
)
def test_any_keys_add_up(by: tuple[str, ...]) -> None:
    rows = sum_calls(make_run(), by)
    assert len({row.key for row in rows}) == len(rows)
    assert sum(row.calls or 0 for row in rows) == 15
    assert sum(row.time_s or 0 for row in rows) == 7.0
    assert sum(row.bytes for row in rows) == 22


def test_without_times() -> None:
    run = make_run()
    run = replace(run, times=CallTimes.empty(), ranks=tuple(replace(rank, has_times=False) for rank in run.ranks))
    rows = sum_calls(run, ("rank",))
    assert [(row.key, row.calls, row.time_s, row.bytes) for row in rows] == [
        (("1",), None, None, 12),
        (("0",), None, None, 10),
    ]
