# SPDX-License-Identifier: Apache-2.0
"""Which files of a folder belong to one run.

Files with the launcher's name of their job, or with the name of an `ibprof run`, belong together by it. Launchers that
give no name leave files that only the ranks in them, their ancestors and their times of start connect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ibprof.recording.host_file import RecordingFile

START_SPREAD_NS = 600 * 10**9
"""Largest spread of the start times of one run's hosts; MPI_Init waits for the last of them."""

_UNRELATED = 1 << 10
"""Distance of processes without a common ancestor; more than any that the recorder notes."""


@dataclass(slots=True)
class FileGroup:
    """Files of one run, the oldest first.

    Attributes:
        files: at least one.
        ranks: in them.
        world_sizes: of their processes; more than one when files contradict each other.
    """

    files: list[RecordingFile] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    world_sizes: set[int] = field(default_factory=set)

    def add(self, file: RecordingFile) -> None:
        """Add a file."""
        self.files.append(file)
        self.ranks.update(_ranks(file))
        self.world_sizes.update(_world_sizes(file))

    def takes(self, file: RecordingFile) -> bool:
        """Return whether a file can be of the same run."""
        first = self.files[0]
        # A script may start several jobs within one `ibprof run`.
        if (file.run, file.job) != (first.run, first.job):
            return False
        if file.run and file.job:
            return True
        same_time = bool(file.run) or file.start_ns - first.start_ns <= START_SPREAD_NS
        if not same_time or not self.ranks.isdisjoint(_ranks(file)):
            return False
        # Without any name only ranks of one world, which is not complete yet, belong together.
        return bool(file.run or file.job) or (bool(self.ranks) and self.world_sizes == _world_sizes(file))

    def may_continue(self, other: FileGroup) -> bool:
        """Return whether another group, of a job without a name too, may hold ranks that this one lacks."""
        if self is other or any(file.run or file.job for file in (self.files[0], other.files[0])):
            return False
        (size, *_) = [*self.world_sizes, 0]
        lacking = set(range(size)) - self.ranks
        return self.world_sizes == other.world_sizes and bool(other.ranks) and other.ranks <= lacking

    def distance(self, file: RecordingFile) -> int:
        """Return how far up the nearest common ancestor of a file and one of these is."""
        return min(_distance(_ancestors(file), _ancestors(other)) for other in self.files)


def group_files(files: Iterable[RecordingFile]) -> list[FileGroup]:
    """Return the files of each run, runs and files by their time of start."""
    groups: list[FileGroup] = []
    for file in sorted(files, key=lambda file: file.start_ns):
        fitting = [group for group in groups if group.takes(file)]
        if fitting:
            nearest = min(fitting, key=lambda group: group.distance(file))
        else:
            nearest = FileGroup()
            groups.append(nearest)
        nearest.add(file)
    return groups


def _ranks(file: RecordingFile) -> list[int]:
    """Return the ranks of a file; processes without MPI have none."""
    return [rank for rank, size in file.processes[["world_rank", "world_size"]].tolist() if size]


def _world_sizes(file: RecordingFile) -> set[int]:
    return set(file.processes["world_size"].tolist()) - {0}


def _ancestors(file: RecordingFile) -> list[tuple[str, str]]:
    """Return (host, PID and start time) of each ancestor that an unnamed launch notes, the parent first."""
    if not file.launch.startswith("parent "):
        return []
    return [(file.host, one) for one in re.findall(r"\d+ \d+", file.launch)]


def _distance(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> int:
    return next((number for number, ancestor in enumerate(one) if ancestor in other), _UNRELATED)
