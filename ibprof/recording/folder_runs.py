# SPDX-License-Identifier: Apache-2.0
"""The runs in the folder of a recording, each with a file per host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from ibprof.errors import InputError, UsageError
from ibprof.native.recording_layout import recording_layout
from ibprof.recording.host_file import RecordingFile, open_recording_file

SUFFIX = ".ibprof"
"""Suffix of the files in the folder, and by default of the folder itself."""

START_SPREAD_NS = 600 * 10**9
"""Largest spread of the start times of one run's hosts; MPI_Init waits for the last of them."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The files of one run.

    Attributes:
        name: the argument of `--run`.
        start_ns: start of its first process.
        files: one per host.
    """

    name: str
    start_ns: int
    files: tuple[RecordingFile, ...]

    @property
    def ranks(self) -> int:
        """Number of recorded processes."""
        return sum(len(file.processes) for file in self.files)


def is_recording(path: Path) -> bool:
    """Return whether a path can be a recording: a folder with files of one, or a file that begins like one."""
    if path.is_dir():
        return any(path.glob(f"*{SUFFIX}"))
    if not path.is_file():
        return False
    magic = np.array([recording_layout().constants["IBP_FILE_MAGIC"]], np.uint64).tobytes()
    with path.open("rb") as file:
        return file.read(len(magic)) in (magic, magic[::-1])


def archive_path_of(recording: Path) -> Path:
    """Return the default path of the archive of a recording."""
    if recording.suffix == SUFFIX and not recording.is_file():
        return recording.with_suffix(".otf2")
    # A name without suffix is taken: an archive has a folder of its own name.
    return recording.parent / "profile.otf2"


def recording_files(path: Path) -> list[Path]:
    """Return the files of a recording.

    Raises:
        InputError: there is none.
    """
    paths = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not paths:
        raise InputError(path, None, f"files that end with {SUFFIX}", "none: nothing was recorded here")
    return paths


def list_runs(path: Path) -> list[RecordedRun]:
    """Return the runs of a recording, the oldest first.

    Raises:
        InputError: there is no file, or one of them is no recording.
    """
    files = sorted((open_recording_file(one) for one in recording_files(path)), key=lambda file: file.start_ns)
    groups: list[_Group] = []
    for file in files:
        home = next((group for group in groups if group.takes(file)), None)
        if home is None:
            home = _Group()
            groups.append(home)
        home.files.append(file)
        home.ranks.update(_ranks(file))
    return _name_runs([group.files for group in groups])


@dataclass(slots=True)
class _Group:
    """Files of one run, the oldest first, and the ranks in them."""

    files: list[RecordingFile] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)

    def takes(self, file: RecordingFile) -> bool:
        """Return whether a file is of the same run."""
        first = self.files[0]
        # A script may start several jobs within one `ibprof run`.
        if (file.run, file.job) != (first.run, first.job):
            return False
        if file.run and file.job:
            return True
        same_time = bool(file.run) or file.start_ns - first.start_ns <= START_SPREAD_NS
        named = bool(file.run or file.job)
        return named and same_time and self.ranks.isdisjoint(_ranks(file))


def choose_run(path: Path, runs: Sequence[RecordedRun], name: str | None) -> RecordedRun:
    """Return the newest run, or the named one.

    Raises:
        UsageError: there is no run of that name.
    """
    if name is None:
        return runs[-1]
    for run in runs:
        if run.name == name:
            return run
    listed = "".join(f"\n  {run.name}  (from {_format_time(run.start_ns)})" for run in runs)
    raise UsageError(f"{path} has no run {name!r}; it has{listed}")


def _ranks(file: RecordingFile) -> list[int]:
    """Return the ranks of a file; processes without MPI have none."""
    return [rank for rank, size in file.processes[["world_rank", "world_size"]].tolist() if size]


def _name_runs(groups: Iterable[Sequence[RecordingFile]]) -> list[RecordedRun]:
    named = [(group[0].run or group[0].job or group[0].path.stem, group) for group in groups]
    names = [name for name, _ in named]
    return [
        RecordedRun(
            name if names.count(name) == 1 else f"{name}@{_format_time(group[0].start_ns)}",
            group[0].start_ns,
            tuple(group),
        )
        for name, group in named
    ]


def _format_time(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
