# SPDX-License-Identifier: Apache-2.0
"""The recording of a killed job contains all counts from before the kill. The job ends as without ibprof."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.call_report import report_calls
from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.profile_data import Profile
from ibprof.verdict.verdict_rules import judge_run
from ibprof_converter.cli import report
from ibprof_testing import processes
from ibprof_testing.mpi import patterns
from ibprof_testing.mpi.lines import sent_by_lines
from ibprof_testing.mpi.matrices import recorded
from ibprof_testing.mpi.mpis import PROGRAMS, Build, Mpi, environment, library, run_mpi
from ibprof_testing.mpi.patterns import all_the_same
from ibprof_testing.mpi.times import recorded_seconds

RANKS = 3


def check_recording(folder: Path) -> Profile:
    profile = load_profile(folder)
    assert [rank.rank for rank in profile.ranks] == list(range(RANKS))
    assert profile.world_size == RANKS
    assert not any(rank.finalized or rank.stop_ns for rank in profile.ranks)
    assert recorded(profile, operation="SENDRECV") == all_the_same(patterns.ring(RANKS), 1000)
    return profile


@pytest.mark.parametrize("how", ["one", "all", "abort", "exit", "segv"])
def test_counters_outlive_the_processes(mpi: Mpi, build: Build, how: str, tmp_path: Path) -> None:
    command: list[str | Path] = [build(mpi, "killed.c"), how]
    without = run_mpi(mpi, RANKS, command, check=False)
    within = run_mpi(mpi, RANKS, command, recording=tmp_path, check=False)
    assert without.returncode != 0
    assert within.returncode == without.returncode
    assert within.stdout == without.stdout == "sent\n"
    check_recording(tmp_path)


@pytest.mark.parametrize("callers", ["0", "1"])
def test_lines_and_time_outlive_the_processes(mpi: Mpi, build: Build, callers: str, tmp_path: Path) -> None:
    """For calls that returned before SIGKILL, the recording has number, time and source line."""
    program = build(mpi, "killed.c", "-g")
    variables = {"IBPROF_TIME": "1", "IBPROF_CALLERS": callers}
    run_mpi(mpi, RANKS, [program, "all"], recording=tmp_path, check=False, env=variables)
    run = check_recording(tmp_path)
    lines = (PROGRAMS / "killed.c").read_text().splitlines()
    called = {
        (rank, name.upper(), number)
        for number, line in enumerate(lines, 1)
        for name in ("Sendrecv", "Barrier")
        if f"MPI_{name}(" in line
        for rank in range(RANKS)
    }
    assert len(called) == 2 * RANKS
    times = recorded_seconds(run)
    assert times.keys() == called
    assert all(time_s > 0 for time_s in times.values())
    assert run.times.calls.tolist() == [1] * len(called)
    assert {key: count for key, count in sent_by_lines(run).items() if count} == {
        ("killed.c", operation, number): RANKS * 1000 for _, operation, number in called if operation == "SENDRECV"
    }


@pytest.mark.parametrize("calls", [1, 255, 1000, 5000])
def test_short_calls_that_were_not_counted_are_said(
    mpi: Mpi, build: Build, calls: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes are exact. At most 256 calls of each line are missing, as the first sentence of each report states."""
    run_mpi(mpi, RANKS, [build(mpi, "killed.c", "-g"), "all", str(calls)], recording=tmp_path, check=False)
    run = check_recording(tmp_path)
    assert recorded(run, operation="SEND") == {(0, 1): (8 * calls, calls)}
    counted = run.times.calls[run.times.operation == run.operations.index("SEND")]
    assert calls - 256 <= counted.sum() <= calls
    said = "ank 0-2 did not reach MPI_Finalize: up to 256 short calls of each line are missing"
    assert judge_run(run).text.startswith(f"R{said}")
    assert sum(sentence.startswith(f"r{said}") for sentence in describe_gaps(run)) == 1
    assert sum(note.startswith(f"r{said}") for note in report_calls(run, ["site"]).notes) == 1
    assert report.main([str(tmp_path)]) == 0
    assert " ".join(capsys.readouterr().out.split()).startswith(f"R{said}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_time_limit_ends_the_launcher(mpi: Mpi, build: Build, number: signal.Signals, tmp_path: Path) -> None:
    preload = ["-x", f"LD_PRELOAD={library()}", "-x", f"IBPROF_OUTPUT={tmp_path}"]
    line: list[str | Path] = [mpi.program("mpirun"), "-n", str(RANKS), *preload, build(mpi, "killed.c"), "sleep"]
    with processes.start(line, env=environment()) as job:  # ranks may outlive their launcher
        assert job.stdout is not None
        assert job.stdout.readline() == "sent\n"
        time.sleep(0.5)  # wait until the ranks have passed the barrier after the spawn
        job.send_signal(number)
        job.wait(30)
    check_recording(tmp_path)
