# SPDX-License-Identifier: Apache-2.0
"""Sentences on bytes and calls that a profile lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ibprof.profile.missing_data import describe_killed
from ibprof.profile.profile_data import Site
from ibprof_testing.samples.profiles import make_profile, make_rank


@pytest.mark.parametrize(("level", "each"), [(0, "line"), (3, "line and thread")])
def test_short_calls_of_killed_ranks_are_missing_at_every_level_of_threads(level: int, each: str) -> None:
    killed = make_rank(0, finalized=False, has_times=True, thread_level=level)
    run = replace(make_profile([], [killed]), sites=(Site("solver.c", 41, "solve", "solver"),))
    assert f"up to 256 short calls of each {each} are missing" in describe_killed(run)
