# SPDX-License-Identifier: Apache-2.0
"""Recordings without a job's name are combined into one run if they belong to one launch."""

from __future__ import annotations

from pathlib import Path

from ibprof.profile.missing_data import describe_gaps
from ibprof.recording.folder_runs import list_runs
from ibprof.recording.recording_reader import merge_run, read_recording
from ibprof_testing.samples.recordings import Process, make_recording

SECOND = 10**9


def add(folder: Path, ranks: range, size: int, seconds: float, launch: str, host: str = "host0") -> None:
    make_recording(
        folder,
        [Process(rank, size) for rank in ranks],
        host=host,
        job="",
        start_ns=int((1000 + seconds) * SECOND),
        header_fields={"launch": launch.encode()},
    )


def found(folder: Path) -> list[list[int]]:
    """Return the ranks of each run."""
    return [[rank.rank for rank in merge_run(folder, run).ranks] for run in list_runs(folder)]


def test_hosts_of_one_launch(tmp_path: Path) -> None:
    add(tmp_path, range(2), 4, 0, "parent 10 77", "host0")
    add(tmp_path, range(2, 4), 4, 0.5, "parent 99 12", "host1")
    assert found(tmp_path) == [[0, 1, 2, 3]]
    said = "\n".join(describe_gaps(read_recording(tmp_path)))
    assert "2 files count as one run" in said
    assert "not recorded" not in said


def test_files_of_an_older_version(tmp_path: Path) -> None:
    """The older version did not record the ancestors of processes."""
    for rank in range(3):
        add(tmp_path, range(rank, rank + 1), 3, rank / 10, f"process {100 + rank} {rank}")
    assert found(tmp_path) == [[0, 1, 2]]


def test_launches_one_after_the_other(tmp_path: Path) -> None:
    for launch in range(2):
        for rank in range(2):
            add(tmp_path, range(rank, rank + 1), 2, launch + rank / 10, f"parent {100 * launch + rank} 5 1 1")
    assert found(tmp_path) == [[0, 1], [0, 1]]


def test_launches_at_once(tmp_path: Path) -> None:
    """The last rank belongs to the launch that shares its nearest ancestor process."""
    add(tmp_path, range(1), 2, 0.0, "parent 11 5 10 4 1 1")
    add(tmp_path, range(1), 2, 0.1, "parent 21 5 20 4 1 1")
    add(tmp_path, range(1, 2), 2, 0.2, "parent 22 6 20 4 1 1")
    add(tmp_path, range(1, 2), 2, 0.3, "parent 12 6 10 4 1 1")
    runs = [{file.launch.split()[3] for file in run.files} for run in list_runs(tmp_path)]
    assert runs == [{"10"}, {"20"}]


def test_the_same_numbers_on_another_host_are_no_ancestor(tmp_path: Path) -> None:
    add(tmp_path, range(1), 2, 0.0, "parent 11 5", "host0")
    add(tmp_path, range(1), 2, 0.1, "parent 12 5", "host1")
    add(tmp_path, range(1, 2), 2, 0.2, "parent 12 5", "host0")
    assert [[file.host for file in run.files] for run in list_runs(tmp_path)] == [["host0", "host0"], ["host1"]]


def test_single_processes_stay_apart(tmp_path: Path) -> None:
    for number in range(3):
        add(tmp_path, range(1), 1, number, f"process {number} {number}")
    assert found(tmp_path) == [[0], [0], [0]]
    assert not list_runs(tmp_path)[0].complements


def test_worlds_of_different_sizes_stay_apart(tmp_path: Path) -> None:
    add(tmp_path, range(2), 4, 0, "parent 10 77")
    add(tmp_path, range(2, 3), 3, 0.1, "parent 10 77", "host1")
    assert found(tmp_path) == [[0, 1], [2]]


def test_ranks_that_started_much_later(tmp_path: Path) -> None:
    """Later ranks are a separate run, whose profile names the run to which these ranks may belong."""
    add(tmp_path, range(2), 4, 0, "parent 10 77")
    add(tmp_path, range(2, 4), 4, 3600, "parent 99 12", "host1")
    first, second = list_runs(tmp_path)
    assert first.complements == (second.name,)
    (said,) = [gap for gap in describe_gaps(merge_run(tmp_path, second)) if "may be in --run" in gap]
    assert said.endswith(f"--run {first.name}")
