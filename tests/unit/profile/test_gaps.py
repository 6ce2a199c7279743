# SPDX-License-Identifier: Apache-2.0
"""Notes name the bytes and calls that a profile lacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ibprof.profile.missing_data import describe_gaps, describe_incomplete
from ibprof.profile.profile_data import Direction, Site, Source
from ibprof_testing.samples.profiles import Count, make_profile, make_rank


@pytest.mark.parametrize(("level", "each"), [(0, "line"), (3, "line and thread")])
def test_short_calls_of_killed_ranks_are_missing_at_every_level_of_threads(level: int, each: str) -> None:
    killed = make_rank(0, finalized=False, has_times=True, thread_level=level)
    run = replace(make_profile([], [killed]), sites=(Site("solver.c", 41, "solve", "solver"),))
    assert f"up to 256 short calls of each {each} are missing" in describe_incomplete(run)


@pytest.mark.parametrize(
    ("operation", "received", "said"),
    [
        ("SEND", 100, ()),
        ("SEND", 60, ("40 B of sent messages were counted by no receiver: no call completed their receive",)),
        (
            "PSEND_INIT",
            0,
            (
                "100 B of one-sided and partitioned calls were counted only from the calls' arguments: "
                "no receiver's count confirms them",
            ),
        ),
    ],
)
def test_bytes_that_receivers_did_not_count(operation: str, received: int, said: tuple[str, ...]) -> None:
    counts = [Count(0, 1, 100), *([Count(1, 0, received, direction=Direction.RECEIVED)] if received else [])]
    ranks = [make_rank(rank, has_demands=True) for rank in range(2)]
    assert tuple(describe_gaps(make_profile(counts, ranks, operations=(operation,)))) == said
    # NCCL itself receives its bytes. So no note reports that MPI calls did not receive these bytes.
    counts.append(Count(0, 1, 1000, source=Source.NCCL))
    assert tuple(describe_gaps(make_profile(counts, ranks, operations=(operation,)))) == said
