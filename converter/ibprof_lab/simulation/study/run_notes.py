# SPDX-License-Identifier: Apache-2.0
"""Notes on recorded runs that a user should read before their simulation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ibprof.load import load_profile
from ibprof.profile.gaps import describe_gaps
from ibprof_lab.simulation.workload.goal_trace import load_goal
from ibprof_lab.simulation.workload.recorded_messages import load_messages
from ibprof_lab.simulation.workload.workloads import Role, Workload


def list_gaps(workload: Workload) -> list[str]:
    """Return what a recorded run's profile lacks; nothing of other jobs."""
    path = workload.profile if workload.is_recorded else ""
    return [f"{path}: {gap}" for gap in describe_gaps(load_profile(Path(path)))] if path else []


def list_run_notes(workloads: Iterable[Workload]) -> list[str]:
    """Return which recorded runs have more hosts than they had, fewer messages than they sent, or gaps.

    Of traces, those that are simplified.
    """
    notes: list[str] = []
    for each in workloads:
        if each.role is Role.GOAL and load_goal(Path(each.profile)).is_simplified:
            notes.append(
                f"{each.profile}: cpu and nic are ignored: each rank does one thing at a time, and has one adapter"
            )
        if not each.is_recorded:
            continue
        recorded = load_messages(Path(each.profile), with_times=each.follows_time_line)
        if recorded.was_on_one_host:
            notes.append(
                f"{each.profile} was recorded on one host, where nothing crosses a network: each rank is simulated on "
                "a host of its own"
            )
        if recorded.one_of > 1:
            notes.append(f"{each.profile} has too many messages: one of {recorded.one_of} is simulated, in each size")
        notes += list_gaps(each)
    return list(dict.fromkeys(notes))
