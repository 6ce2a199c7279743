# SPDX-License-Identifier: Apache-2.0
"""A profile with intervals, for tests of what shows traffic over time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import Intervals
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank


def write_timed_profile(folder: Path) -> str:
    """Write a profile in which rank 0 sends in the first half of a second, and rank 2 in the second half."""
    hosts = [make_host(name) for name in ("host01", "host21", "host41")]
    run = make_profile(
        [Count(0, 1, 1000), Count(2, 1, 500)], [make_rank(rank, rank) for rank in range(3)], hosts, ("main",), ("SEND",)
    )
    second = 1_000_000_000
    intervals = Intervals(
        rank=np.array([0, 2], np.int32),
        begin_ns=np.array([5 * second, 5 * second + second // 2], np.uint64),
        end_ns=np.array([5 * second + second // 2, 6 * second], np.uint64),
        first_peer=np.array([1, 1], np.uint32),
        last_peer=np.array([1, 1], np.uint32),
        bytes=np.array([1000, 500], np.uint64),
        messages=np.array([1, 1], np.uint64),
    )
    folder.mkdir(exist_ok=True)
    write_archive(replace(run, intervals=intervals), folder / "profile.otf2")
    return str(folder / "profile.otf2")
