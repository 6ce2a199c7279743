# SPDX-License-Identifier: Apache-2.0
"""If siglongjmp or an exception leaves a call, the call's time ends there. Later calls are still timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.recording.recording_reader import read_recording
from ibprof_testing.mpi.mpis import FROM_PYPI, SYSTEM, Build
from ibprof_testing.mpi.no_harm import FAMILIES, check_complete, check_no_harm, find_any
from ibprof_testing.mpi.times import own_seconds, recorded_seconds

# ibprof times the first 16 calls of a site from entry to return, unlike most later calls.
ROUNDS, LATE_S = 24, 0.02
# Largest missing fraction of a call's time. Time is missing if another process takes the core after the program read
# the clock, or after the last pass of the progress loop.
TOLERANCE = 0.25


# MPICH is not tested: even without ibprof, MPICH ends a program if a signal handler leaves a wait.
@pytest.mark.parametrize(("name", "callers"), [(SYSTEM, "0"), (SYSTEM, "2"), (FROM_PYPI[1], "0")])
def test_time_of_calls_that_are_left(name: str, callers: str, build: Build, tmp_path: Path) -> None:
    program = build(find_any(name), "left_waits.c", "-g", "-O1")
    own = tmp_path / "own"
    command: list[str | Path] = [program, str(ROUNDS), str(LATE_S), own]
    variables = {"IBPROF_TIME": "1", "IBPROF_CALLERS": callers}
    done = check_no_harm(find_any(name), 2, command, tmp_path / "recording", variables=variables)
    assert int(done.stderr.split(" left")[0].split()[-1]) >= ROUNDS
    run = read_recording(tmp_path / "recording")
    check_complete(run, 2)
    recorded, expected = recorded_seconds(run), own_seconds(own.read_text())
    assert [operation for _, operation, _ in expected] == ["RECV", "ALLREDUCE", "RECV", "BARRIER"]
    for key, time_s in expected.items():
        assert time_s >= ROUNDS * LATE_S / 8, key
        assert (1 - TOLERANCE) * time_s <= recorded.get(key, 0.0) <= 1.03 * time_s + 0.002, key


@pytest.mark.parametrize("name", FAMILIES)
def test_time_after_exceptions(name: str, build: Build, tmp_path: Path) -> None:
    program = build(find_any(name), "thrown.cpp", "-g", "-O1")
    own = tmp_path / "own"
    variables = {"IBPROF_TIME": "1", "IBPROF_CALLERS": "2"}
    command: list[str | Path] = [program, str(ROUNDS), str(LATE_S), own]
    done = check_no_harm(find_any(name), 2, command, tmp_path / "recording", variables=variables)
    assert done.stdout == f"{3 * ROUNDS} caught\n"
    recorded, expected = recorded_seconds(read_recording(tmp_path / "recording")), own_seconds(own.read_text())
    assert [operation for _, operation, _ in expected] == ["RECV", "BARRIER"]
    for key, time_s in expected.items():
        assert time_s >= ROUNDS * LATE_S / 2, key
        assert 0.97 * time_s - LATE_S <= recorded[key] <= 1.03 * time_s + 0.002, key
