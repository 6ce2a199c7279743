# SPDX-License-Identifier: Apache-2.0
"""An archive NAME.otf2 needs a folder NAME, but a program may have this name. An older archive is not used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ibprof.cli import collect, run
from ibprof.load import load_profile
from ibprof_testing.samples.recordings import Process, make_recording

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which contains a program called app."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app").write_text("a program")
    return tmp_path


def record(folder: Path) -> None:
    make_recording(folder, [Process(rank) for rank in range(4)])


def test_a_program_of_that_name(folder: Path, capsys: Captured) -> None:
    record(folder / "rec.ibprof")
    assert collect.main(["rec.ibprof", "-o", "app.otf2"]) == 3
    said = capsys.readouterr().err
    assert "app: expected no file app, since OTF2 keeps the events of app.otf2 in a folder of this name" in said
    assert "choose another name with -o" in said
    assert (folder / "app").read_text() == "a program"


def test_collect_chooses_a_name_that_is_free(folder: Path, capsys: Captured) -> None:
    record(folder / "app.ibprof")
    for _ in range(2):  # the second run of the command replaces the archive of the first
        assert collect.main(["app.ibprof"]) == 0
        assert capsys.readouterr().err.startswith("app-2.otf2: 4 of 4 ranks")
    assert load_profile(folder / "app-2.otf2").world_size == 4
    assert sorted(path.name for path in folder.glob("*.otf2")) == ["app-2.otf2"]


def test_an_archive_of_the_default_name_is_replaced(folder: Path) -> None:
    record(folder / "rec.ibprof")
    for _ in range(2):
        assert collect.main(["rec.ibprof"]) == 0
    assert [path.name for path in folder.glob("*.otf2")] == ["rec.otf2"]


def write_older(folder: Path) -> None:
    record(folder / "profile.ibprof")
    assert collect.main(["profile.ibprof"]) == 0
    os.utime(folder / "profile.otf2", (1_500_040_000, 1_500_040_000))
    for file in (folder / "profile.ibprof").iterdir():
        file.unlink()


def test_collect_where_nothing_was_recorded(folder: Path, capsys: Captured) -> None:
    write_older(folder)
    capsys.readouterr()
    assert collect.main(["profile.ibprof"]) == 3
    assert "profile.otf2 is of an earlier run: it was written at 2017-07-14 " in capsys.readouterr().err


@pytest.mark.parametrize("status", [0, 7])
def test_a_run_that_records_nothing(status: int, folder: Path, capsys: Captured) -> None:
    """If no process left a recording, `ibprof run` still ends with the command's status."""
    write_older(folder)
    capsys.readouterr()
    assert run.main(["--", sys.executable, "-c", f"raise SystemExit({status})"]) == status
    said = capsys.readouterr().err
    assert "no process left a recording" in said
    assert "profile.otf2 is of an earlier run: it was written at 2017-07-14 " in said
    assert ("the command ended with status 7" in said) == (status == 7)


def test_a_run_that_records_nothing_after_one_whose_profile_has_another_name(folder: Path, capsys: Captured) -> None:
    """A file called profile was in the folder of the earlier run, so that run's profile is profile-2.otf2."""
    write_older(folder)
    for file in (folder / "profile").iterdir():
        file.unlink()
    (folder / "profile").rmdir()
    (folder / "profile").write_text("a program")
    (folder / "profile.otf2").rename(folder / "profile-2.otf2")
    capsys.readouterr()
    assert run.main(["--", "true"]) == 0
    assert "profile-2.otf2 is of an earlier run: it was written at 2017-07-14 " in capsys.readouterr().err


def test_a_run_where_there_is_no_older_profile(folder: Path, capsys: Captured) -> None:
    assert run.main(["--", "true"]) == 0
    assert "earlier" not in capsys.readouterr().err
