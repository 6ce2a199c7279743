# SPDX-License-Identifier: Apache-2.0
"""`ibprof watch` shows a growing recording of several hosts, and ends when the job ends."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof_converter.cli import watch
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.recordings import Process, counter, make_recording

Captured = pytest.CaptureFixture[str]
RUNNING = {"flags": 0, "stop_ns": 0}


def write(folder: Path, amount: int, *, running: bool) -> None:
    """Write the recording of two hosts with a rank each. If `running`, the second rank still sends."""
    own = {"pid": os.getpid()} | (RUNNING if running else {})
    make_recording(folder, [Process(0, 2, counters=[[counter(1, 10)]])], host="a", name="a.ibprof")
    process = Process(1, 2, fields=own, counters=[[counter(0, amount, operation=1)]])
    make_recording(folder, [process], host=socket.gethostname(), name="b.ibprof")


def look(capsys: Captured, *arguments: str) -> dict[str, object]:
    assert watch.main([*arguments, "--once", "--json"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_one_look_at_a_running_and_at_a_finished_job(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "profile.ibprof"
    write(folder, 30, running=True)
    seen = look(capsys, str(folder))
    assert (seen["ended"], seen["bytes"], seen["ranks_finalized"], seen["world_size"]) == (False, 40, 1, 2)
    write(folder, 70, running=False)
    seen = look(capsys, str(folder))
    assert (seen["ended"], seen["bytes"], seen["ranks_finalized"]) == (True, 80, 2)
    assert [(row["operation"], row["bytes"]) for row in seen["calls"]] == [("ALLTOALL", 70), ("BCAST", 10)]  # type: ignore[attr-defined]


def test_links_of_a_fabric(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "profile.ibprof"
    write(folder, 70, running=False)
    fabric = str(FABRICS / "testbed44" / "ibdiagnet.lst")
    seen = look(capsys, str(folder), "--fabric", fabric, "--placement", "spread")
    links = seen["links"]
    assert isinstance(links, list)
    assert links[0]["bytes"] == 70
    assert watch.main([str(folder), "--fabric", fabric, "--placement", "spread", "--once"]) == 0
    shown = capsys.readouterr().out
    assert "ended" in shown
    assert "most loaded links so far" in shown


@dataclass
class Sleeper:
    """Replaces sleep() between two readings: instead of waiting, it extends the recording."""

    folder: Path
    slept: int = 0

    def __call__(self, _seconds: float) -> None:
        self.slept += 1
        write(self.folder, 100 * self.slept, running=self.slept < 3)


def test_it_waits_for_the_recording_and_ends_with_the_job(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = Sleeper(tmp_path / "profile.ibprof")
    monkeypatch.setattr(watch, "sleep", sleeper)
    assert watch.main([str(sleeper.folder), "--json"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith(f"ibprof watch: waiting: {sleeper.folder}")
    assert len(said.err.splitlines()) == 1
    seen = [json.loads(line) for line in said.out.splitlines()]
    assert [(each["bytes"], each["ended"]) for each in seen] == [(110, False), (210, False), (310, True)]


def test_a_look_is_a_line_without_a_terminal(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = Sleeper(tmp_path / "profile.ibprof")
    monkeypatch.setattr(watch, "sleep", sleeper)
    assert watch.main([str(sleeper.folder)]) == 0
    states = [line.split(", ", 1)[0].rsplit(" ", 1)[1] for line in capsys.readouterr().out.splitlines()[:3]]
    assert states == ["running", "running", "ended"]


def test_a_killed_rank_does_not_keep_it(tmp_path: Path, capsys: Captured) -> None:
    gone = Process(0, 1, fields=RUNNING | {"pid": 2**22 + 1}, counters=[[counter(0, 10)]])
    make_recording(tmp_path / "profile.ibprof", [gone], host=socket.gethostname())
    assert look(capsys, str(tmp_path / "profile.ibprof"))["ended"] is True


def test_ranks_that_end_during_a_look_are_not_counted_as_killed(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "profile.ibprof"
    write(folder, 30, running=True)

    def end_first(_pid: int, _signal: int) -> None:
        """Replace os.kill(): the process records its last bytes and exits, just before the command checks it."""
        write(folder, 70, running=False)
        raise ProcessLookupError

    monkeypatch.setattr("os.kill", end_first)
    seen = look(capsys, str(folder))
    assert (seen["ended"], seen["ranks_finalized"], seen["bytes"]) == (True, 2, 80)
    write(folder, 30, running=True)
    assert watch.main([str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "killed" not in shown
    assert "2 past MPI_Finalize" in shown


def test_without_a_recording_one_look_is_an_error(tmp_path: Path) -> None:
    assert watch.main([str(tmp_path / "none.ibprof"), "--once"]) == InputError.status
