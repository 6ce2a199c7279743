# SPDX-License-Identifier: Apache-2.0
"""With IBPROF_INTERVAL, bytes are recorded in the interval of their send. Intervals add up to the counters exactly."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import write_archive
from ibprof.load import load_profile
from ibprof.profile.profile_data import Profile
from ibprof_testing.mpi.matrices import recorded
from ibprof_testing.mpi.mpis import INTEL, MPICH_FROM_PYPI, THROUGH_NETWORK, Build, Mpi, find_mpich_like, run_mpi

RANKS = 3
SILENCE_S = 0.3
"""A time that is shorter than the program's pause between its messages."""


def record(mpi: Mpi, build: Build, how: str, folder: Path, interval: str = "50", time: str = "1") -> Profile:
    command: list[str | Path] = [build(mpi, "bursts.c"), how]
    env = {"IBPROF_INTERVAL": interval, "IBPROF_TIME": time, **THROUGH_NETWORK}
    run_mpi(mpi, RANKS, command, recording=folder, env=env, check=how == "end")
    return load_profile(folder)


def check_exact(profile: Profile) -> None:
    """Check that intervals and counters have equal sums for each rank and peer."""
    over_time: dict[tuple[int, int], tuple[int, int]] = {}
    rows = profile.intervals
    for rank, first, last, size, messages in zip(
        *(getattr(rows, name).tolist() for name in ("rank", "first_peer", "last_peer", "bytes", "messages")),
        strict=True,
    ):
        assert first == last
        before = over_time.get((rank, first), (0, 0))
        over_time[rank, first] = before[0] + size, before[1] + messages
    assert dict(sorted(over_time.items())) == recorded(profile)
    assert (rows.begin_ns <= rows.end_ns).all()


def check_bursts(profile: Profile) -> None:
    check_exact(profile)
    rows = profile.intervals
    for rank in profile.ranks:
        own = rows.rank == rank.rank
        there, back = rows.first_peer == (rank.rank + 1) % RANKS, rows.first_peer == (rank.rank + 2) % RANKS
        assert len(np.unique(rows.begin_ns[own & there])) > 2  # the program sends for 0.2 s
        assert rows.bytes[own & there].sum() == 20_000
        assert rows.bytes[own & back].sum() == 500
        silent_ns = int(rows.begin_ns[own & back].min()) - int(rows.end_ns[own & there].max())
        assert silent_ns > SILENCE_S * 1e9
        assert rows.begin_ns[own].min() >= rank.start_ns
        assert rank.stop_ns is not None
        assert rows.end_ns[own].max() <= rank.stop_ns


def test_bursts(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    check_bursts(record(mpi, build, "end", tmp_path))


@pytest.mark.parametrize("name", [MPICH_FROM_PYPI[0], INTEL])
def test_bursts_to_peers_that_are_known_by_address(name: str, build: Build, tmp_path: Path) -> None:
    check_bursts(record(find_mpich_like(name), build, "end", tmp_path))


def test_a_killed_run_adds_up(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    profile = record(system_mpi, build, "kill", tmp_path)
    assert not any(rank.finalized for rank in profile.ranks)
    check_exact(profile)


@pytest.mark.parametrize("interval", ["", "0", "nonsense"])
def test_none_are_asked_for(interval: str, system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    assert not len(record(system_mpi, build, "end", tmp_path, interval).intervals.rank)


def inside(profile: Profile, rank: int, begin_s: float, end_s: float) -> float:
    """Return the seconds inside calls between two times, if the seconds of each interval are evenly distributed."""
    rows = profile.interval_times
    own = rows.rank == rank
    begin, end, time_ns = (column[own].astype(float) for column in (rows.begin_ns, rows.end_ns, rows.time_ns))
    within = np.minimum(end, end_s * 1e9) - np.maximum(begin, begin_s * 1e9)
    return float((time_ns * np.maximum(within, 0) / np.maximum(end - begin, 1)).sum()) * 1e-9


@pytest.mark.parametrize("how", ["end", "kill"])
def test_time_inside_calls_lies_where_ranks_waited(how: str, system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """The reference is the program's own clock. The 20 ms intervals at both ends of a wait may be inexact."""
    wait_s, border_s = 0.4, 0.04
    command: list[str | Path] = [build(system_mpi, "waits_over_time.c"), str(wait_s), how]
    env = {"IBPROF_INTERVAL": "20", "IBPROF_TIME": "1"}
    ran = run_mpi(system_mpi, 2, command, recording=tmp_path / "profile.ibprof", env=env, check=how == "end")
    profile = load_profile(tmp_path / "profile.ibprof")
    spans = [line.split() for line in ran.stdout.splitlines() if line.count(" ") == 3]
    assert sorted(operation for _, operation, _, _ in spans) == ["BARRIER", *["COMPUTE"] * 4, "RECV"]
    for rank, operation, begin, end in spans:
        within_s = inside(profile, int(rank), float(begin), float(end))
        if operation == "COMPUTE":
            assert within_s <= border_s, (rank, operation)
        else:
            assert within_s == pytest.approx(float(end) - float(begin), abs=border_s), (rank, operation)
    for number in (0, 1):
        sums = [int(rows.time_ns[rows.rank == number].sum()) for rows in (profile.interval_times, profile.times)]
        assert sums[0] == pytest.approx(sums[1], abs=len(profile.times.rank))
    write_archive(profile, tmp_path / "profile.otf2")
    read = load_profile(tmp_path / "profile.otf2").interval_times
    for column in fields(read):
        assert getattr(read, column.name).tolist() == getattr(profile.interval_times, column.name).tolist()


def test_no_times_over_time_without_times(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    assert not len(record(system_mpi, build, "end", tmp_path, time="0").interval_times.rank)


def test_an_archive_keeps_them(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    profile = record(system_mpi, build, "end", tmp_path / "profile.ibprof")
    write_archive(profile, tmp_path / "profile.otf2")
    read = load_profile(tmp_path / "profile.otf2").intervals
    for column in fields(read):
        assert getattr(read, column.name).tolist() == getattr(profile.intervals, column.name).tolist(), column.name


def test_an_interval_that_is_no_number_is_named(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    env = {"IBPROF_INTERVAL": "0.1", **THROUGH_NETWORK}
    done = run_mpi(system_mpi, RANKS, [build(system_mpi, "bursts.c"), "end"], recording=tmp_path, env=env)
    assert [line for line in done.stderr.splitlines() if "IBPROF_INTERVAL" in line] == [
        "ibprof: IBPROF_INTERVAL: expected whole milliseconds, so no snapshots are taken"
    ]
    assert not load_profile(tmp_path).intervals.rank.size
