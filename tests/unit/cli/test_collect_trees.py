# SPDX-License-Identifier: Apache-2.0
"""`ibprof collect` lists the recordings of a batch system's jobs, collects the chosen ones, and overwrites nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ibprof.cli import collect, info
from ibprof.load import load_profile
from ibprof_testing.samples.recordings import Process, make_recording

Captured = pytest.CaptureFixture[str]


def record(folder: Path, start: int, whole: bool = True, **variables: str) -> None:
    launch = [{"name": name.encode(), "text": value.encode()} for name, value in variables.items()]
    flags = {"flags": 1 if whole else 0}
    processes = [
        Process(rank, fields={**flags, "start_ns": start * 10**9}, launch=[launch], world_size=2) for rank in range(2)
    ]
    name = f"{variables.get('SLURM_JOB_ID', 'alone')}.{start}"
    folder.mkdir(parents=True, exist_ok=True)
    make_recording(folder, processes, run=name, job=name, start_ns=start * 10**9, name=f"host0-{start}.ibprof")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a job of two steps, a killed task of a job array, and a run outside a job."""
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "a" / "profile.ibprof", 10, SLURM_JOB_ID="6", SLURM_STEP_ID="0", SLURM_JOB_USER="ann")
    record(tmp_path / "a" / "profile.ibprof", 20, SLURM_JOB_ID="6", SLURM_STEP_ID="1", SLURM_JOB_USER="ann")
    array = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
    record(tmp_path / "b" / "deep" / "r.ibprof", 30, whole=False, SLURM_JOB_ID="9", SLURM_STEP_ID="0", **array)
    record(tmp_path / "c" / "profile.ibprof", 40)
    return tmp_path


def archives(tree: Path) -> list[str]:
    return sorted(str(path.relative_to(tree)) for path in tree.rglob("*.otf2"))


def test_a_tree_is_listed(tree: Path, capsys: Captured) -> None:
    assert collect.main([".", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["step"] for row in rows] == ["6.0", "6.1", "7_3.0", ""]
    assert [row["whole"] for row in rows] == [True, True, False, True]
    assert [row["state"] for row in rows] == ["finished", "finished", "killed or running", "finished"]
    assert rows[0]["start"] == "1970-01-01T00:00:10Z"
    assert rows[0]["scheduler"]["user"] == "ann"
    assert rows[3]["scheduler"] is None
    assert not archives(tree)


def test_nothing_is_chosen_for_the_user(tree: Path, capsys: Captured) -> None:
    assert collect.main(["."]) == 2
    said = capsys.readouterr()
    assert "7_3.0" in said.out
    assert "--run STEP or --job JOB" in said.err
    assert not archives(tree)


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (["--run", "6.0"], ["a/profile-6.0.otf2"]),
        (["--job", "6"], ["a/profile-6.0.otf2", "a/profile-6.1.otf2"]),
        (["--job", "7_3"], ["b/deep/r-7_3.0.otf2"]),
        (["--job", "7"], ["b/deep/r-7_3.0.otf2"]),
        (["--job", "9"], ["b/deep/r-7_3.0.otf2"]),
        (["--run", "9.0"], ["b/deep/r-7_3.0.otf2"]),
        (["--run", "alone.40"], ["c/profile.otf2"]),
        (
            ["--all"],
            ["a/profile-6.0.otf2", "a/profile-6.1.otf2", "b/deep/r-7_3.0.otf2", "c/profile.otf2"],
        ),
    ],
)
def test_runs_are_chosen_by_name(options: list[str], made: list[str], tree: Path) -> None:
    for _ in range(2):  # the second call replaces the archives of the same runs, and no others
        assert collect.main([".", *options]) == 0
    assert archives(tree) == made


def test_a_name_of_nothing(tree: Path, capsys: Captured) -> None:
    assert collect.main([".", "--job", "8"]) == 2
    assert "there is no run '8'" in capsys.readouterr().err
    assert collect.main([".", "--all", "-o", "one.otf2"]) == 2
    assert collect.main([".", "--json"]) == 2


def test_a_requeued_run_gets_a_number(tree: Path, capsys: Captured) -> None:
    assert collect.main(["a", "--run", "6.0"]) == 0
    record(tree / "a" / "profile.ibprof", 50, SLURM_JOB_ID="6", SLURM_STEP_ID="0", SLURM_RESTART_COUNT="1")
    assert collect.main(["a", "--run", "6.0"]) == 0
    assert "profile-6.0.otf2 exists already, with another run" in capsys.readouterr().err
    first, second = (load_profile(tree / "a" / name) for name in ("profile-6.0.otf2", "profile-6.0-2.otf2"))
    assert (first.scheduler.restarts, second.scheduler.restarts) == ("", "1")


def test_a_damaged_file_hides_no_other(tree: Path, capsys: Captured) -> None:
    (tree / "c" / "profile.ibprof" / "bad.ibprof").write_bytes(b"nothing")
    good = next((tree / "c" / "profile.ibprof").glob("*.ibprof"))
    (tree / "a" / "profile.ibprof" / "cut.ibprof").write_bytes(good.read_bytes()[:500])
    (tree / "only-damaged").mkdir()
    (tree / "only-damaged" / "empty.ibprof").touch()
    assert collect.main([".", "--list"]) == 0
    said = capsys.readouterr()
    assert "7_3.0" in said.out
    assert said.err.count("left out: ") == 3
    assert "only-damaged/empty.ibprof: expected a recording, found an empty file" in said.err


def test_info_names_the_job(tree: Path, capsys: Captured) -> None:
    assert info.main(["a/profile.ibprof", "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out)["scheduler"]["step"] == "1"
    assert info.main(["a/profile.ibprof"]) == 0
    assert "slurm 6.1, user ann" in capsys.readouterr().out


def test_a_name_that_something_else_has(tree: Path) -> None:
    (tree / "a" / "profile-6.0.def").mkdir()  # this folder has the name that the archive needs
    assert collect.main([".", "--run", "6.0"]) == 0
    assert (tree / "a" / "profile-6.0-2.otf2").exists()
    assert list((tree / "a" / "profile-6.0.def").iterdir()) == []
