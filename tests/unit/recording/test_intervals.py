# SPDX-License-Identifier: Apache-2.0
"""Snapshots become intervals with known peers, whether processes record peers as ranks or as addresses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ibprof.errors import InputError
from ibprof.profile.profile_data import UNKNOWN_PEER, Profile
from ibprof.profile.profile_rows import RowChoice
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.samples.recordings import Process, counter, make_recording

GROUPS = 32
ADDRESS = 0x80000000
START = 1000  # start time of make_recording's process; the process stops at 1050


def address(number: int, own: int = 0) -> dict[str, Any]:
    return {"own": own, "bytes": 1, "address": [number]}


def snapshot(time_ns: int, group_ranks: int, *of_groups: tuple[int, int, int]) -> dict[str, Any]:
    """Return a snapshot: the totals (group, bytes, messages) at a moment."""
    amounts, messages = [0] * GROUPS, [0] * GROUPS
    for group, amount, count in of_groups:
        amounts[group], messages[group] = amount, count
    return {"time_ns": time_ns, "group_ranks": group_ranks, "bytes": amounts, "messages": messages}


def intervals(run: Profile, rank: int) -> list[tuple[int, ...]]:
    rows = run.intervals
    columns = (rows.begin_ns, rows.end_ns, rows.first_peer, rows.last_peer, rows.bytes, rows.messages)
    own = rows.rank == rank
    return list(zip(*(column[own].tolist() for column in columns), strict=True))


def read_by_address(folder: Path, counters: Sequence[dict[str, int]], *snapshots: dict[str, Any]) -> Profile:
    """Rank 0 has address 10. Peers of rank 0 are 11 and 21 (rank 1), 12 (rank 2) and 13 (no rank)."""
    others = [Process(rank, 3, addresses=[[address(10 + rank, own=1)]]) for rank in (1, 2)]
    others[0].addresses = [[address(11, own=1), address(21, own=1)]]
    known = [address(10, own=1), address(11), address(12), address(13), address(21)]
    first = Process(0, 3, addresses=[known], counters=[counters], snapshots=[list(snapshots)])
    return read_recording(make_recording(folder, [first, *others]))


def test_each_peer_that_is_known_by_address_is_a_group(tmp_path: Path) -> None:
    counters = [counter(ADDRESS + number, 100 * number, messages=number) for number in (1, 2, 3, 4)]
    half = snapshot(START + 10, 0, (1, 60, 1), (4, 5, 1))
    run = read_by_address(tmp_path, counters, half)
    assert intervals(run, 0) == [
        (START, START + 10, 1, 1, 65, 2),
        (START + 10, START + 50, 1, 1, 435, 3),
        (START + 10, START + 50, 2, 2, 200, 2),
        (START + 10, START + 50, UNKNOWN_PEER, UNKNOWN_PEER, 300, 3),
    ]


def test_what_is_also_counted_by_rank_is_of_the_last_group(tmp_path: Path) -> None:
    run = read_by_address(tmp_path, [counter(2, 70), counter(ADDRESS + 2, 7)], snapshot(START + 10, 0, (31, 30, 1)))
    assert intervals(run, 0) == [
        (START, START + 10, UNKNOWN_PEER, UNKNOWN_PEER, 30, 1),
        (START + 10, START + 50, 2, 2, 7, 1),
        (START + 10, START + 50, UNKNOWN_PEER, UNKNOWN_PEER, 40, 0),
    ]


def test_groups_of_ranks(tmp_path: Path) -> None:
    counters = [counter(0, 1), counter(3, 10), counter(4, 100), counter(0xFFFFFFFF, 1000)]
    process = Process(1, 5, counters=[counters], snapshots=[[snapshot(START + 10, 4, (0, 11, 2))]])
    assert intervals(read_recording(make_recording(tmp_path, [process])), 1) == [
        (START, START + 10, 0, 3, 11, 2),
        (START + 10, START + 50, 4, 4, 100, 1),
        (START + 10, START + 50, UNKNOWN_PEER, UNKNOWN_PEER, 1000, 1),
    ]


def test_time_inside_calls(tmp_path: Path) -> None:
    """Two clock ticks are a nanosecond; a random quarter of the calls is timed.

    The third snapshot has 6 ticks of a call that never returned. So the final sums are smaller.
    """
    sums = [(START + 10, 20, 0), (START + 20, 22, 1), (START + 30, 36, 1)]
    taken = [snapshot(time, 4) | {"ticks": ticks, "sampled_ticks": sampled} for time, ticks, sampled in sums]
    clock = {"times_weight": 4, "clock_ticks": [100, 300], "clock_ns": [1000, 1100]}
    time = {
        "operation": 2,
        "calls": 3,
        "timed": 1,
        "ticks": 30,
        "sampled": 1,
        "sampled_ticks": 1,
        "sampled_squares": 1.0,
    }
    timed = Process(1, 5, counters=[[counter(0, 1)]], snapshots=[taken], times=[[time]], fields=clock)
    without = Process(2, 5, counters=[[counter(0, 1)]], snapshots=[[snapshot(START + 10, 4)]])
    run = read_recording(make_recording(tmp_path, [timed, without]))
    rows = run.interval_times
    columns = (rows.rank, rows.begin_ns, rows.end_ns, rows.time_ns)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (1, START, START + 10, 10),
        (1, START + 10, START + 20, 3),
        (1, START + 20, START + 30, 4),
    ]
    assert rows.time_ns.sum() == run.times.time_ns.sum() == 17
    assert RowChoice(operation="SEND").restrict(run).interval_times.rank.tolist() == []


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        ([snapshot(START + 10, 4), snapshot(START + 20, 5)], "groups of 4 ranks"),
        ([snapshot(START + 10, 4, (0, 9, 1)), snapshot(START + 20, 4, (0, 8, 1))], "totals that grow"),
        ([snapshot(START + 10, 0, (9, 1, 1))], "an address below 0|totals that grow"),
    ],
)
def test_what_is_damaged_is_refused(snapshots: list[dict[str, Any]], expected: str, tmp_path: Path) -> None:
    process = Process(1, 5, counters=[[counter(0, 1)]], snapshots=[snapshots])
    with pytest.raises(InputError, match=expected):
        read_recording(make_recording(tmp_path, [process]))
