# SPDX-License-Identifier: Apache-2.0
"""List the runs of all recordings below some folders, and choose runs by the batch system's names."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ibprof.errors import InputError, UsageError
from ibprof.native.headers import recording_layout
from ibprof.profile.missing_data import StageAccount, accounts_as_json
from ibprof.profile.scheduler_job import SchedulerJob
from ibprof.recording.folder_runs import RecordedRun, list_runs, read_scheduler_job


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run, described from the headers and process records of its files.

    Attributes:
        run: the run's files.
        recording: folder or file of the recording; if the run has several recordings, of the first.
        world_size: number of ranks of MPI_COMM_WORLD; without MPI, of processes.
        finished: number of processes that reached MPI_Finalize.
        is_whole: true if all ranks are recorded and finished, and all files are complete.
    """

    run: RecordedRun
    recording: Path
    scheduler: SchedulerJob
    world_size: int
    finished: int
    is_whole: bool

    def as_json(self) -> dict[str, Any]:
        """Return the run as plain values for JSON."""
        return {
            "run": self.run.name,
            "step": self.scheduler.label,
            "start": datetime.fromtimestamp(self.run.start_ns // 10**9, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "start_ns": self.run.start_ns,
            "ranks_recorded": self.run.ranks,
            "world_size": self.world_size,
            "state": "finished" if self.finished == self.run.ranks else "killed or running",
            "whole": self.is_whole,
            "coverage": accounts_as_json([self._account()]),
            "recording": str(self.recording),
            "scheduler": asdict(self.scheduler) if self.scheduler.system else None,
        }

    def _account(self) -> StageAccount:
        recorded = min(self.run.ranks, self.world_size)
        missing = self.world_size - recorded
        return StageAccount("record", "ranks", self.world_size, recorded, {"not recorded": missing} if missing else {})

    def matches(self, name: str) -> bool:
        """Return whether a name is the run's name, the launcher's name of the job, or the batch system's step."""
        first, job = self.run.files[0], self.scheduler
        raw = f"{job.job}.{job.step}" if job.step else job.job
        return name in {self.run.name, first.run, first.job, job.label, raw} - {""}

    def is_of_job(self, name: str) -> bool:
        """Return whether a name denotes the run's batch job: the job, the array's task, or the whole array."""
        job = self.scheduler
        # A recording of ibprof 0.1.0 has only the launcher's name of the job: under Slurm, the step's name.
        launcher = self.run.files[0].job.partition(".")[0]
        names = {job.job, job.job_label, job.array_job} if job.system else {launcher}
        return name in names - {""}


def find_recordings(paths: Sequence[Path]) -> list[Path]:
    """Return the recordings at or below some paths, each once.

    Raises:
        InputError: a path has no recording at or below it.
        OSError: a path is a folder that cannot be read.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        below = [path]
        if path.is_dir():
            os.scandir(path).close()  # raises OSError if the folder cannot be read: glob and os.walk would find nothing
        if path.is_dir() and not any(each.is_file() for each in path.glob("*.ibprof")):
            # Use os.walk, which skips folders that cannot be read, such as those of other users.
            below = [Path(folder) for folder, _, _ in sorted(os.walk(path)) if _has_files(Path(folder))]
        if not below:
            raise InputError(path, None, "a recording in it or below it", "none: nothing was recorded here")
        for each in below:
            found.setdefault(each.resolve(), each)
    return list(found.values())


def _has_files(folder: Path) -> bool:
    return any(each.is_file() for each in folder.glob("*.ibprof"))


def list_found(recordings: Sequence[Path], warn: Callable[[InputError], None]) -> list[ListedRun]:
    """Return the runs of recordings, the oldest first.

    Args:
        warn: receives the error of each invalid or damaged file, if there are several recordings.

    Raises:
        InputError: the only recording has no file, or an invalid file.
    """
    done = recording_layout().constants["IBP_PROCESS_FINALIZED"]
    listed = []
    for run in list_runs(*recordings, on_damage=warn if len(recordings) > 1 else None):
        sizes = [size for file in run.files for size in file.processes["world_size"].tolist()]
        finished = sum(int((file.processes["flags"] & done != 0).sum()) for file in run.files)
        size = max(sizes, default=0) or len(sizes)
        sound = not any(file.cut_short or file.full for file in run.files)
        place = next((each for each in recordings if each == run.files[0].path), run.recording)
        whole = sound and finished == run.ranks and sum(map(bool, sizes)) in (size, 0)
        listed.append(ListedRun(run, place, read_scheduler_job(run.files), size, finished, whole))
    return listed


def choose_runs(found: Sequence[ListedRun], name: str | None, job: str | None) -> list[ListedRun]:
    """Return the newest run with the name `name`, or all runs of the batch job `job`; if both are None, all runs.

    Raises:
        UsageError: no run has this name, or no run belongs to this job.
    """
    if name is not None:
        chosen = [run for run in found if run.matches(name)][-1:]
    elif job is not None:
        chosen = [run for run in found if run.is_of_job(job)]
    else:
        return list(found)
    if not chosen:
        listed = "".join(f"\n  {run.run.name}  {run.scheduler.label} (from {run.as_json()['start']})" for run in found)
        raise UsageError(f"there is no run {name or job!r}; there are{listed}")
    return chosen
