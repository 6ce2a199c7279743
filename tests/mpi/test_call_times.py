# SPDX-License-Identifier: Apache-2.0
"""The recorded seconds inside calls of each line agree with the program's own clock around each call."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from ibprof.archive.otf2_archive import read_archive, write_archive
from ibprof.cli import calls, info
from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.profile_data import Source
from ibprof.recording.recording_reader import read_recording
from ibprof_testing.mpi.mpis import (
    MPICH_LIKE,
    MPICH_SYSTEM,
    NAMES,
    QUICK,
    SYSTEM,
    THROUGH_NETWORK,
    Build,
    Mpi,
    find_mpi,
    find_mpich_like,
    run_mpi,
)
from ibprof_testing.mpi.times import own_seconds, recorded_seconds

ON = {"IBPROF_TIME": "1", "IBPROF_SITES": "1"}
# ibprof times the first 16 calls of a site from entry to return, unlike most later calls.
ROUNDS, LATE_S = 24, 0.005
# Time that rank 0 computes in each round, in units of LATE_S.
COMPUTED = 10
SLICE_S = 0.01


def find_any(name: str) -> Mpi:
    return find_mpich_like(name) if name in MPICH_LIKE else find_mpi(name)


# Open MPI waits in other functions if a program may have threads. `level` is the value of an MPI_THREAD constant.
@pytest.mark.parametrize(
    ("name", "level"),
    [
        pytest.param(name, level, marks=[] if name in QUICK else pytest.mark.full)
        for name in (*NAMES, *MPICH_LIKE)
        for level in ("012" if name in NAMES else "0")
    ],
)
def test_ranks_come_late(name: str, level: str, build: Build, tmp_path: Path) -> None:
    mpi = find_any(name)
    program = build(mpi, "late_ranks.c", "-g", "-O2")
    ran = run_mpi(
        mpi, 2, [program, str(ROUNDS), str(LATE_S), level], recording=tmp_path / "recording", env=ON | THROUGH_NETWORK
    )
    run = read_recording(tmp_path / "recording")
    seconds, own = recorded_seconds(run), own_seconds(ran.stdout)
    assert {key for key in own if key[1] != "TEST"} <= seconds.keys()
    for key, expected in own.items():
        assert seconds[key] <= 1.03 * expected + 0.002, key
        # The recorded time may be shorter by `SLICE_S`, if another process runs before a call, or in a call that ibprof
        # times only in part. In a loop of MPI_Test, reading the clock takes most of the time, so the time of TEST has
        # no lower bound.
        if key[1] != "TEST" and expected >= ROUNDS * LATE_S / 2:
            assert seconds[key] >= 0.97 * expected - SLICE_S, key
    waited = {operation for (rank, operation, _), time_s in own.items() if rank and time_s >= ROUNDS * LATE_S / 2}
    assert waited >= {"BARRIER", "ALLREDUCE", "RECV", "WAIT", "PROBE", "SSEND", "SENDRECV", "WAITALL"}
    computed = run.regions.index("computing")
    assert not np.any(run.times.region == computed)
    rows = run.region_times
    assert int(rows.wall_ns[(rows.rank == 0) & (rows.region == computed)].sum()) >= ROUNDS * COMPUTED * LATE_S * 1e9


@pytest.mark.parametrize(
    ("name", "variables"), [(SYSTEM, {"IBPROF_SOURCE": "ucx"}), (MPICH_SYSTEM, {"IBPROF_SOURCE": "libfabric"})]
)
def test_calls_are_timed_where_no_source_attaches(
    name: str, variables: dict[str, str], build: Build, tmp_path: Path
) -> None:
    mpi = find_any(name)
    program = build(mpi, "late_ranks.c", "-g", "-O2")
    command: list[str | Path] = [program, str(ROUNDS), str(LATE_S)]
    ran = run_mpi(mpi, 2, command, recording=tmp_path, env=ON | variables)
    assert "messages between ranks are not recorded; times inside calls are recorded: this MPI (" in ran.stderr
    run = read_recording(tmp_path)
    assert {rank.source for rank in run.ranks} == {Source.NONE}
    assert all(rank.has_times for rank in run.ranks)
    assert not len(run.counters.bytes)
    assert any("messages between ranks were not seen" in gap for gap in describe_gaps(run))
    seconds, own = recorded_seconds(run), own_seconds(ran.stdout)
    assert {key for key in own if key[1] != "TEST"} <= seconds.keys()
    for key, expected in own.items():
        assert seconds[key] <= 1.03 * expected + 0.002, key
        if key[1] != "TEST" and expected >= ROUNDS * LATE_S / 2:
            assert seconds[key] >= 0.97 * expected - SLICE_S, key
    plain = tmp_path / "plain"
    ran = run_mpi(mpi, 2, [*command[:1], "1", "0.001"], recording=plain, env=variables | {"IBPROF_TIME": "0"})
    assert "nothing is recorded: this MPI (" in ran.stderr


@pytest.mark.parametrize(("name", "small"), [(SYSTEM, 0), (SYSTEM, 60), (MPICH_SYSTEM, 60)])
def test_messages_that_came_early(name: str, small: int, build: Build, tmp_path: Path) -> None:
    """Calls that copy large messages take long, but do not wait."""
    mpi = find_any(name)
    program = build(mpi, "early_messages.c", "-g", "-O1")
    ran = run_mpi(mpi, 2, [program, str(small), "60", "8000000"], recording=tmp_path, env=ON)
    seconds, own = recorded_seconds(read_recording(tmp_path)), own_seconds(ran.stdout)
    assert [operation for _, operation, _ in own] == ["RECV", "IRECV"]
    for key, expected in own.items():
        assert 0.97 * expected - SLICE_S <= seconds[key] <= 1.03 * expected + 0.002, key


@pytest.mark.parametrize("name", [SYSTEM, MPICH_SYSTEM])
def test_rare_copies(name: str, build: Build, tmp_path: Path) -> None:
    """Times of rare large messages among quick calls are recorded. MPI copies these messages outside of its progress
    loop."""
    mpi = find_any(name)
    program = build(mpi, "rare_copies.c", "-g", "-O1")
    ran = run_mpi(mpi, 2, [program], recording=tmp_path, env=ON)
    run = read_recording(tmp_path)
    recorded: defaultdict[tuple[int, str], float] = defaultdict(float)
    for row in range(len(run.times.calls)):
        # Other lines call MPI_Isend too, so the calls are added up by operation.
        recorded[int(run.times.rank[row]), run.operations[run.times.operation[row]]] += run.times.time_ns[row] * 1e-9
    own = sorted((line.split() for line in ran.stdout.splitlines()), key=lambda row: int(row[0]))
    assert [operation for _, operation, _, _ in own[:8]] == [
        *("RECV", "IRECV", "MRECV", "ISEND", "START", "PUT", "GET", "ACCUMULATE")
    ]
    for rank, operation, least, most in own:
        # Another process may run for `SLICE_S` between the program's reading of the clock and the call.
        assert recorded[int(rank), operation] >= 0.97 * float(least) - SLICE_S, (rank, operation)
        if operation != "ISEND":
            assert recorded[int(rank), operation] <= 1.03 * float(most) + SLICE_S, (rank, operation)


@pytest.mark.parametrize("name", [SYSTEM, MPICH_SYSTEM])
def test_a_rare_wait_and_files(name: str, build: Build, tmp_path: Path) -> None:
    """One long wait among 200,000 quick calls is always timed. Messages of MPI-IO are not timed."""
    late_s, mpi = 0.5, find_any(name)
    program = build(mpi, "waits_and_files.c", "-O2")
    command = [str(program), str(late_s), str(tmp_path / "file")]
    ran = run_mpi(mpi, 2, command, recording=tmp_path / "recording", env=ON | THROUGH_NETWORK)
    run = read_recording(tmp_path / "recording")
    recorded: defaultdict[tuple[int, str], float] = defaultdict(float)
    calls: defaultdict[str, int] = defaultdict(int)
    for row in range(len(run.times.calls)):
        operation = run.operations[run.times.operation[row]]
        recorded[int(run.times.rank[row]), operation] += int(run.times.time_ns[row]) * 1e-9
        calls[operation] += int(run.times.calls[row])
    own = [line.split() for line in ran.stdout.splitlines()]
    assert len(own) == 4
    for rank, operation, least, most in own:
        time_s = recorded[int(rank), operation]
        assert time_s <= 1.03 * float(most) + SLICE_S, (rank, operation)
        # The time of quick calls has no lower limit: another process may run between the program's clock and the call.
        if (rank, operation) != ("0", "WAITALL"):
            assert time_s >= 0.97 * float(least) - SLICE_S, (rank, operation)
    assert recorded[1, "WAITALL"] >= 0.8 * late_s
    assert calls == {"IRECV": 400000, "ISEND": 400000, "WAITALL": 400000} | {
        f"FILE_{each}": count for each, count in (("OPEN", 2), ("SET_VIEW", 2), ("WRITE_AT_ALL", 16), ("CLOSE", 2))
    }


def test_a_large_datatype_with_the_handle_of_a_small_one(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """Messages of a large datatype are timed as large messages, although the handle was a small datatype's before."""
    ran = run_mpi(system_mpi, 1, [build(system_mpi, "reused_type.c", "-O2")], recording=tmp_path, env={})
    own_s, is_same = ran.stdout.split()
    assert is_same == "1"
    run = read_recording(tmp_path)
    sends = run.times.operation == run.operations.index("SEND")
    assert run.times.calls[sends].sum() == 3040
    assert run.times.time_ns[sends].sum() * 1e-9 == pytest.approx(float(own_s), rel=0.1)


def test_interrupted_polls(build: Build, tmp_path: Path) -> None:
    """The time of a call includes interruptions, in any part of the call."""
    mpi = find_mpi(SYSTEM)
    ran = run_mpi(mpi, 2, [build(mpi, "interrupted_polls.c", "-g", "-O2")], recording=tmp_path, env=ON)
    seconds = recorded_seconds(read_recording(tmp_path))
    for key, expected in own_seconds(ran.stdout).items():
        # ibprof records less time than the program: the program's clock includes ibprof's own work and interruptions of
        # that work.
        assert 0.5 * expected <= seconds[key] <= 1.03 * expected, key


def test_the_archive_keeps_times(build: Build, tmp_path: Path) -> None:
    mpi = find_mpi(SYSTEM)
    program = build(mpi, "late_ranks.c", "-g", "-O2")
    run_mpi(mpi, 2, [program, "2", "0.001"], recording=tmp_path / "recording", env=ON | THROUGH_NETWORK)
    run = read_recording(tmp_path / "recording")
    write_archive(run, tmp_path / "profile.otf2")
    again = read_archive(tmp_path / "profile.otf2")
    assert len(run.times.calls)
    for name, column in run.times.columns().items():
        np.testing.assert_array_equal(column, getattr(again.times, name), name)
    assert all(rank.has_times for rank in again.ranks)


def test_times_are_recorded_by_default(build: Build, tmp_path: Path) -> None:
    mpi = find_mpi(SYSTEM)
    program = build(mpi, "late_ranks.c", "-g", "-O2")
    run_mpi(mpi, 2, [program, "2", "0.001"], recording=tmp_path, env={})
    run = read_recording(tmp_path)
    assert len(run.times.calls)
    assert all(rank.has_times for rank in run.ranks)
    assert len(run.collective_samples.number)


def test_without_times(build: Build, tmp_path: Path) -> None:
    mpi = find_mpi(SYSTEM)
    program = build(mpi, "late_ranks.c", "-g", "-O2")
    run_mpi(mpi, 2, [program, "2", "0.001"], recording=tmp_path, env={"IBPROF_TIME": "0"})
    run = read_recording(tmp_path)
    assert not len(run.times.calls)
    assert not any(rank.has_times for rank in run.ranks)


def test_calls_command(build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def show(command: Callable[[Sequence[str]], int], *options: str) -> str:
        assert command([str(tmp_path / "recording"), *options]) == 0
        shown = capsys.readouterr()
        assert not shown.err
        return shown.out

    mpi = find_mpi(SYSTEM)
    program = build(mpi, "late_ranks.c", "-g", "-O2")
    ran = run_mpi(mpi, 2, [program, "2", "0.01"], recording=tmp_path / "recording", env=ON)
    assert "late_ranks.c:" in show(calls.main)
    listed = show(calls.main, "--by", "rank,site", "--csv", "-")
    rows = list(csv.DictReader(listed.splitlines()))
    assert list(rows[0]) == ["rank", "site", "calls", "time_s", "bytes", "messages", *calls.PARTS]
    seconds = sum(recorded_seconds(read_recording(tmp_path / "recording")).values())
    assert sum(float(row["time_s"]) for row in rows) == pytest.approx(seconds, rel=1e-6)
    found = json.loads(show(calls.main, "--json"))
    assert found["mpi_s"] == pytest.approx(seconds / 2, rel=1e-6)
    run_s = found["run_s"]
    assert found["efficiency"]["parallel"] == pytest.approx(1 - seconds / 2 / run_s, abs=0.05)
    barriers = [each for each in found["waiting"]["sites"] if each["operation"] == "BARRIER"]
    assert [(each["quickest"], each["calls"]) for each in barriers] == [(0, 2)]  # rank 0 comes late
    own = {rank: seconds for (rank, operation, _), seconds in own_seconds(ran.stdout).items() if operation == "BARRIER"}
    assert barriers[0]["waiting_s"] == pytest.approx(own[1] - own[0], abs=SLICE_S)
    line = next(row["site"] for row in found["calls"] if row["operation"] == "SSEND")
    only = json.loads(show(calls.main, "--json", "--site", line))
    assert [(row["operation"], row["bytes"]) for row in only["calls"]] == [("SSEND", 2 << 20)]
    summary = json.loads(show(info.main, "--json"))
    assert summary["time_in_mpi"]["mean_s"] == found["mpi_s"]
    assert [row["site"] for row in summary["time_in_mpi"]["top"]] == [row["site"] for row in found["calls"][:3]]
    assert f"at {found['calls'][0]['site']}" in show(info.main)
    both = show(calls.main, "--by", "rank,site", "--csv", str(tmp_path / "calls.csv"), "--json")
    assert json.loads(both)["by"] == ["rank", "site"]
    assert (tmp_path / "calls.csv").read_text() == listed
    for wrong in (("--by", "rank,rank"), ("--csv", "-", "--json")):
        assert calls.main([str(tmp_path / "recording"), *wrong]) == 2


@pytest.mark.parametrize("name", ["5.0.11", "mpich-5.0.2"])
def test_waiting_for_partitions(name: str, build: Build, tmp_path: Path) -> None:
    """A receiver that calls MPI_Parrived until a partition has arrived waits inside MPI."""
    mpi = find_any(name)
    program = build(mpi, "late_partitions.c")
    ran = run_mpi(mpi, 2, [program, "8", str(2 * LATE_S)], recording=tmp_path, env=ON | THROUGH_NETWORK)
    asked, seconds = ran.stdout.split()
    run = read_recording(tmp_path)
    polls = run.times.operation == run.operations.index("PARRIVED")
    assert int(run.times.calls[polls].sum()) == int(asked)
    # The program's time includes its loop and ibprof's work, which take about as long as MPI_Parrived.
    assert 0.3 * float(seconds) <= int(run.times.time_ns[polls].sum()) * 1e-9 <= float(seconds)
    ready = run.times.operation == run.operations.index("PREADY")
    assert [int(run.times.rank[ready][0]), int(run.times.calls[ready].sum())] == [0, 8]


@pytest.mark.parametrize("name", ["mpich-5.0.2", pytest.param("mpich-4.3.2", marks=pytest.mark.full)])
def test_calls_of_mpi_4_1(name: str, build: Build, tmp_path: Path) -> None:
    """Calls that test several requests' statuses, and calls that flush buffers, wait inside MPI."""
    mpi = find_any(name)
    program = build(mpi, "status_polls.c")
    ran = run_mpi(mpi, 2, [program, "8", str(2 * LATE_S)], recording=tmp_path, env=ON | THROUGH_NETWORK)
    run = read_recording(tmp_path)
    rows = [line.split() for line in ran.stdout.splitlines()]
    assert len(rows) == 5
    for operation, count, seconds in rows:
        found = (run.times.operation == run.operations.index(operation)) & (run.times.rank == 1)
        assert int(run.times.calls[found].sum()) == int(count), operation
        assert 0.5 * float(seconds) <= int(run.times.time_ns[found].sum()) * 1e-9 <= float(seconds), operation
        assert float(seconds) >= 8 * LATE_S, operation
