# SPDX-License-Identifier: Apache-2.0
"""Find the runs in a recording's folder. A run has one file for each host.

Killed processes leave files on their nodes' own storage; `copy_from_node` moves these files into the recording.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from ibprof.errors import IbprofError, InputError, UsageError
from ibprof.native.headers import recording_layout
from ibprof.profile.scheduler_job import SchedulerJob, as_file_name, identify_scheduler_job
from ibprof.recording.host_file import RecordingFile, decode_text, open_recording_file
from ibprof.text.host_lists import find_job_hosts, join_hosts

SUFFIX = ".ibprof"
"""Suffix of a recording's files, and by default of the recording's folder."""


START_SPREAD_NS = 600 * 10**9
"""Largest difference of start times between a run's hosts: MPI_Init on the first host waits for the last host."""

_UNRELATED = 1 << 10
"""Distance of processes without a common ancestor: more than any recorded distance."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The files of one run.

    Attributes:
        name: the run's name, as an argument of `--run`.
        start_ns: start of the run's first process.
        files: the run's files, one per host.
        complements: names of runs that may contain this run's missing ranks.
    """

    name: str
    start_ns: int
    files: tuple[RecordingFile, ...]
    complements: tuple[str, ...] = ()

    @property
    def ranks(self) -> int:
        """Number of recorded processes."""
        return sum(len(file.processes) for file in self.files)

    @property
    def recording(self) -> Path:
        """Return the folder of the run's first file."""
        return self.files[0].path.parent

    @property
    def is_unnamed(self) -> bool:
        """Return whether the run has several files, but no launcher's job name that connects the files."""
        return len(self.files) > 1 and not self.files[0].job


def is_recording(path: Path) -> bool:
    """Return whether a path can be a recording: a folder with files `*.ibprof`, or a file with the magic number."""
    if path.is_dir():
        return any(path.glob(f"*{SUFFIX}"))
    if not path.is_file():
        return False
    magic = np.array([recording_layout().constants["IBP_FILE_MAGIC"]], np.uint64).tobytes()
    with path.open("rb") as file:
        return file.read(len(magic)) in (magic, magic[::-1])


def archive_path_of(recording: Path, job: SchedulerJob | None = None) -> Path:
    """Return the default path of a recording's archive (`profile.otf2`; for a batch job `profile-6_3.0.otf2`)."""
    # For a folder X without the suffix, do not use X.otf2, because the archive's events would go into the folder X.
    named = recording.suffix == SUFFIX and not recording.is_file()
    path = recording.with_suffix(".otf2") if named else recording.parent / "profile.otf2"
    return path.with_name(f"{path.stem}-{as_file_name(job.label)}.otf2") if job and job.system else path


def newest_archive(path: Path) -> Path | None:
    """Return the newest archive that belongs to a path (`profile.otf2`, `profile-2.otf2`, ...); None if none exists."""
    found = [*path.parent.glob(f"{glob.escape(path.stem)}-*{path.suffix}"), path]
    return max((each for each in found if each.is_file()), key=lambda each: each.stat().st_mtime, default=None)


def describe_older_archive(archives: Iterable[Path]) -> Iterator[str]:
    """Yield a sentence that each path's newest archive is of an earlier run: the current run has no archive."""
    for newest in filter(None, map(newest_archive, archives)):
        written = datetime.fromtimestamp(newest.stat().st_mtime).astimezone().isoformat(" ", "seconds")
        yield f"{newest.name} is of an earlier run: it was written at {written}"


def recording_files(path: Path) -> list[Path]:
    """Return the files of a recording.

    Raises:
        InputError: the recording has no file.
    """
    paths = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not paths:
        raise InputError(path, None, f"files that end with {SUFFIX}", "none: nothing was recorded here")
    return paths


def list_runs(*paths: Path, on_damage: Callable[[InputError], None] | None = None) -> list[RecordedRun]:
    """Return the runs of recordings, the oldest first. A run may have files in several recordings.

    Args:
        on_damage: receives the error of an invalid file, which is then left out.

    Raises:
        InputError: a recording has no file; or, without `on_damage`, a file is invalid.
    """
    files = []
    for path in paths:
        for one in recording_files(path):
            try:
                files.append(open_recording_file(one))
            except InputError as error:
                if on_damage is None:
                    raise
                on_damage(error)
    return _name_runs(group_files(files))


def choose_run(path: Path, runs: Sequence[RecordedRun], name: str | None) -> RecordedRun:
    """Return the run with the name `name`; if None, the newest run.

    Raises:
        UsageError: no run has this name.
    """
    if name is None:
        return runs[-1]
    for run in runs:
        if run.name == name:
            return run
    listed = "".join(f"\n  {run.name}  (from {_format_time(run.start_ns)})" for run in runs)
    raise UsageError(f"{path} has no run {name!r}; it has{listed}")


def _name_runs(groups: Sequence[FileGroup]) -> list[RecordedRun]:
    firsts = [group.files[0] for group in groups]
    names = [first.run or first.job or first.path.stem for first in firsts]
    unique = [
        name if names.count(name) == 1 else f"{name}@{_format_time(first.start_ns)}"
        for name, first in zip(names, firsts, strict=True)
    ]
    return [
        RecordedRun(
            name,
            group.files[0].start_ns,
            tuple(group.files),
            tuple(other for other, each in zip(unique, groups, strict=True) if group.may_continue(each)),
        )
        for name, group in zip(unique, groups, strict=True)
    ]


def _format_time(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_launch(files: Sequence[RecordingFile]) -> dict[str, str]:
    """Return name -> text, for the texts about the job's start. A text is from the first file that has its name."""
    texts: dict[str, str] = {}
    for file in files:
        parts: dict[str, bytes] = {}
        records, owner = file.records("IBP_SEGMENT_LAUNCH")
        for record in records[owner == owner[:1]]:  # of the first process; records with equal names are parts of a text
            name = decode_text(record["name"])
            parts[name] = parts.get(name, b"") + record["text"].tobytes().rstrip(b"\0")
        texts = {name: decode_text(text) for name, text in parts.items()} | texts
    return texts


def read_scheduler_job(files: Sequence[RecordingFile]) -> SchedulerJob:
    """Return the batch system's job of a run, from the first file that names a job.

    Rank 0's file should come first: other hosts' files may name a launcher's step or, after ssh, no job.
    """
    for file in files:
        texts = read_launch([file])
        job = identify_scheduler_job(texts)
        if job.system:
            return job if job.nodes else replace(job, nodes=join_hosts(find_job_hosts(texts, "")))
    return SchedulerJob()


@dataclass(slots=True)
class FileGroup:
    """Files of one run, the oldest first.

    Attributes:
        files: files of the run, at least one.
        ranks: ranks in the files.
        world_sizes: world sizes of the processes; several if files contradict each other.
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
        """Return whether a file can belong to the run."""
        first = self.files[0]
        # Compare the job's name too: one `ibprof run` of a script may start several jobs.
        if (file.run, file.job) != (first.run, first.job):
            return False
        if file.run and file.job:
            return True
        same_time = bool(file.run) or file.start_ns - first.start_ns <= START_SPREAD_NS
        if not same_time or not self.ranks.isdisjoint(_ranks(file)):
            return False
        # If run and job have no names, files belong together only if they have ranks and equal world sizes.
        return bool(file.run or file.job) or (bool(self.ranks) and self.world_sizes == _world_sizes(file))

    def may_continue(self, other: FileGroup) -> bool:
        """Return whether another group without a job name may contain missing ranks of this group."""
        if self is other or any(file.run or file.job for file in (self.files[0], other.files[0])):
            return False
        (size, *_) = [*self.world_sizes, 0]
        lacking = set(range(size)) - self.ranks
        return self.world_sizes == other.world_sizes and bool(other.ranks) and other.ranks <= lacking

    def distance(self, file: RecordingFile) -> int:
        """Return the number of generations from the file's parent up to the nearest common ancestor with the group."""
        return min(_distance(_ancestors(file), _ancestors(other)) for other in self.files)


def group_files(files: Iterable[RecordingFile]) -> list[FileGroup]:
    """Return the files of each run; runs and files are in the order of start times."""
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
    """Return (host, PID and start time) of ancestor processes, the parent first; none if the launcher named the job."""
    if not file.launch.startswith("parent "):
        return []
    return [(file.host, one) for one in re.findall(r"\d+ \d+", file.launch)]


def _distance(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> int:
    return next((number for number, ancestor in enumerate(one) if ancestor in other), _UNRELATED)


def copy_from_node(recording: Path) -> tuple[list[Path], list[Path]]:
    """Move original files from this node's storage into the recording, where the originals replace copies.

    Returns:
        The replaced files of the recording, and the node's files that stay because processes still write them.

    Raises:
        InputError: there is no recording.
        IbprofError: a file cannot be written.
    """
    files: list[Path] = []
    in_use: list[Path] = []
    for path in recording_files(recording):
        file = open_recording_file(path)
        if not file.on_node:
            continue
        original = Path(file.storage)
        if _is_mapped(original):
            in_use.append(original)
            continue
        try:
            _replace(path, _without_storage(original.read_bytes()))
            original.unlink()
        except OSError as error:
            raise IbprofError(f"{path}: {(error.strerror or str(error)).lower()}") from error
        files.append(path)
    return files, in_use


def _is_mapped(original: Path) -> bool:
    """Return whether a process on this node maps `original` for writing."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines = (process / "maps").read_text(errors="surrogateescape").splitlines()
        except OSError:  # not a writer: the process ended, or its user cannot write to this folder
            continue
        if any(line.endswith(f" {original}") and "w" in line.split()[1] for line in lines):
            return True
    return False


def _without_storage(content: bytes) -> bytes:
    """Return the content of a file without the path of the original on a node."""
    record = recording_layout().types["file_header"]
    storage, begin = record.fields["storage"][:2]  # type: ignore[index]
    return content[:begin] + bytes(storage.itemsize) + content[begin + storage.itemsize :]


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
