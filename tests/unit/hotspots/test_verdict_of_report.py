# SPDX-License-Identifier: Apache-2.0
"""A recorded run without bytes and times is judged as a run, not as traffic."""

from __future__ import annotations

from dataclasses import replace

from ibprof.verdict.verdict_rules import NO_RUN, NO_TIMES
from ibprof_converter.hotspots.link_report import judge_job
from ibprof_testing.samples.profiles import make_host, make_profile, make_rank


def test_a_run_without_bytes_and_times_is_no_traffic() -> None:
    run = make_profile([], [make_rank(rank) for rank in range(2)], [make_host("n0")])
    started = replace(run, ranks=tuple(replace(rank, start_ns=1, stop_ns=10**9) for rank in run.ranks))
    assert (NO_TIMES in judge_job(started, None).missing, NO_RUN in judge_job(started, None).missing) == (True, False)
    unknown = replace(run, ranks=tuple(replace(rank, start_ns=0, stop_ns=None) for rank in run.ranks))
    assert NO_RUN in judge_job(unknown, None).missing
