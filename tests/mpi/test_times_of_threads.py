# SPDX-License-Identifier: Apache-2.0
"""If several threads of a rank wait in calls, the recording contains each thread's time, and the times' overlap."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from ibprof.archive.otf2_archive import read_archive, write_archive
from ibprof.load import load_profile
from ibprof.profile.profile_data import Profile, Side
from ibprof_testing.mpi.mpis import SYSTEM, Build, Mpi, find_mpi, run_mpi

ON = {"IBPROF_TIME": "1", "IBPROF_SITES": "1"}
LATE_S, SLICE_S = 0.3, 0.01
KEYS = ("communicator", "tag", "number")


def seconds_of(run: Profile, rank: int) -> dict[tuple[str, str], float]:
    """Return the seconds of each region and operation of a rank."""
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    rows = run.times
    for row in range(len(rows.rank)):
        if rows.rank[row] == rank:
            key = run.regions[rows.region[row]], run.operations[rows.operation[row]]
            seconds[key] += int(rows.time_ns[row]) * 1e-9
    return dict(seconds)


def test_threads_that_wait_at_once(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """The times of all threads are added, so the sum is longer than the run."""
    program = build(system_mpi, "late_threads.c", "-O2", "-pthread")
    ran = run_mpi(system_mpi, 2, [program, str(LATE_S)], recording=tmp_path, env=ON)
    run = load_profile(tmp_path)
    own = {operation: float(s) for operation, s in map(str.split, ran.stdout.splitlines())}
    assert min(own.values()) >= 0.5 * LATE_S
    seconds: defaultdict[str, float] = defaultdict(float)
    for (_, operation), s in seconds_of(run, 1).items():
        seconds[operation] += s
    for operation, expected in own.items():
        assert seconds[operation] == pytest.approx(expected, rel=0.03, abs=SLICE_S), operation


@pytest.mark.parametrize("name", [SYSTEM, "5.0.11"])
def test_overlap_is_known_by_arithmetic(name: str, build: Build, tmp_path: Path) -> None:
    """In units of `unit_s`: waits of 3, 4 and 2 overlap for 2, so the rank was inside calls for 7."""
    mpi, unit_s = find_mpi(name), 0.2
    program = build(mpi, "overlapping_threads.c", "-O2", "-pthread")
    ran = run_mpi(mpi, 2, [program, str(unit_s)], recording=tmp_path / "recording", env=ON)
    summed, both = map(float, ran.stdout.split())
    # A deviation of `unit_s` is allowed, because other processes may delay senders and threads.
    assert summed == pytest.approx(9 * unit_s, abs=unit_s)
    assert both == pytest.approx(2 * unit_s, abs=unit_s / 2)
    run = load_profile(tmp_path / "recording")
    alone, threaded = run.ranks
    assert alone.overlap_ns == 0
    assert threaded.overlap_ns * 1e-9 == pytest.approx(both, rel=0.03, abs=SLICE_S / 2)
    inside = sum(seconds_of(run, 1).values()) - threaded.overlap_ns * 1e-9
    assert inside <= (threaded.stop_ns or 0) * 1e-9 - threaded.start_ns * 1e-9
    write_archive(run, tmp_path / "profile.otf2")
    assert read_archive(tmp_path / "profile.otf2").ranks == run.ranks
    for command in ("calls", "info"):
        shown = [sys.executable, "-m", "ibprof", command, str(tmp_path / "recording")]
        text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
        assert "; threads overlap for " in text, command
        found = json.loads(subprocess.run([*shown, "--json"], capture_output=True, text=True, check=True).stdout)
        time = found["time_in_mpi"] if command == "info" else found
        assert time["overlap_s"] == pytest.approx(threaded.overlap_ns * 1e-9 / 2)


def test_no_overlap_of_one_thread(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """With MPI_THREAD_MULTIPLE but only one thread, no time overlaps."""
    program = build(system_mpi, "late_ranks.c", "-O2")
    run_mpi(system_mpi, 2, [program, "8", "0.001", "3"], recording=tmp_path, env=ON)
    run = load_profile(tmp_path)
    assert {rank.thread_level for rank in run.ranks} == {3}
    for rank in run.ranks:
        inside_ns = sum(seconds_of(run, rank.rank).values()) * 1e9
        assert rank.overlap_ns <= 1e-6 * inside_ns + 100


@pytest.mark.parametrize("name", [SYSTEM, pytest.param("5.0.11", marks=pytest.mark.full)])
def test_threads_that_repeat_calls(name: str, build: Build, tmp_path: Path) -> None:
    """By default, ibprof counts calls of all threads, and records long waits. Both ends sample the same messages."""
    threads, rounds = 3, 12_000
    mpi = find_mpi(name)
    program = build(mpi, "repeated_threads.c", "-O2", "-pthread")
    ran = run_mpi(mpi, 2, [program, str(rounds), "50000"], recording=tmp_path)
    run = load_profile(tmp_path)
    rows = run.times
    for rank in (0, 1):
        for operation in ("IRECV", "SEND", "WAIT"):
            chosen = (rows.rank == rank) & (rows.operation == run.operations.index(operation))
            assert rows.calls[chosen].sum() == threads * rounds, (rank, operation)
    sent_s, waited_s = map(float, ran.stdout.split())
    seconds: defaultdict[str, float] = defaultdict(float)
    for (_, operation), s in seconds_of(run, 1).items():
        seconds[operation] += s
    assert seconds["WAIT"] == pytest.approx(waited_s, rel=0.05)
    assert seconds["SEND"] <= sent_s
    assert [rank.messages for rank in run.ranks] == [2 * threads * rounds] * 2
    samples = run.message_samples
    of_side = [
        set(zip(*(getattr(samples, field)[chosen].tolist() for field in KEYS), strict=True))
        for chosen in (samples.is_chosen & (samples.side == side) for side in Side)
    ]
    assert len(of_side[0]) > threads
    assert of_side[0] == of_side[1]
