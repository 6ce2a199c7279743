# SPDX-License-Identifier: Apache-2.0
"""Seconds inside calls of each source line, by a profile and by the program itself."""

from __future__ import annotations

from collections import defaultdict

from ibprof.profile.profile_data import Profile

Seconds = dict[tuple[int, str, int], float]


def recorded_seconds(run: Profile) -> Seconds:
    """Return the recorded seconds of each (rank, operation, line)."""
    seconds: defaultdict[tuple[int, str, int], float] = defaultdict(float)
    times = run.times
    for row in range(len(times.calls)):
        site = run.sites[times.site[row] - 1] if times.site[row] else None
        operation = run.operations[times.operation[row]]
        seconds[int(times.rank[row]), operation, site.line if site else 0] += int(times.time_ns[row]) * 1e-9
    return dict(seconds)


def own_seconds(output: str) -> Seconds:
    """Return the seconds of each (rank, operation, line) that the program printed."""
    lines = [line.split() for line in output.splitlines()]
    return {(int(rank), operation, int(line)): float(seconds) for rank, operation, line, seconds in lines}
