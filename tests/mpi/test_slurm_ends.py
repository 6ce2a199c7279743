# SPDX-License-Identifier: Apache-2.0
"""A job ends for Slurm as it would without ibprof, in each way in which jobs end."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof.load import load_profile
from ibprof.recording.run_listing import list_found
from ibprof_testing.lab import slurm
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import Build, environment

RUN = f"{sys.executable} -m ibprof run --"
FORMS = {"bare": "", "ibprof": RUN}
SAME = ("JobState", "Reason", "ExitCode", "DerivedExitCode", "Restarts")
LAST = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
WAIT_S = 150


def _refuse(error: InputError) -> None:
    raise error


@dataclass(frozen=True)
class Jobs:
    """Jobs of one cluster, of which each runs a program by `srun` in a batch script."""

    cluster: slurm.Cluster
    program: Path
    folder: Path

    def command(self, *words: str) -> str:
        done = self.cluster.run(words, environment(mpis.THROUGH_NETWORK), self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, form: str, how: str, *options: str) -> str:
        """Submit a job and return its number."""
        script = self.folder / f"{form}-{how.replace(' ', '-')}.sh"
        script.write_text(f"#!/bin/sh\n{FORMS[form]} srun --mpi=pmi2 -n2 {self.program} {how}\n")
        return self.command("sbatch", "--parsable", "--nodes=1", "--ntasks=2", *options, str(script)).strip()

    def facts(self, job: str) -> Mapping[str, str]:
        return dict(re.findall(r"(\w+)=(\S*)", self.command("scontrol", "--details", "show", "job", job)))

    def await_state(self, job: str, is_reached: Callable[[Mapping[str, str]], bool]) -> Mapping[str, str]:
        until = time.monotonic() + WAIT_S
        while not is_reached(facts := self.facts(job)):
            assert time.monotonic() < until, facts
            time.sleep(0.2)
        return facts

    def end(self, job: str) -> list[str]:
        facts = self.await_state(job, lambda facts: facts["JobState"] in LAST)
        return [facts[name] for name in SAME]

    def await_ranks(self, job: str) -> None:
        """Wait until the step of a job runs."""
        self.await_state(job, lambda _: f"{job}.0" in self.command("squeue", "--steps", "--noheader", "--format=%i"))
        time.sleep(1)


@pytest.fixture(scope="module")
def jobs(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    program = build(mpis.find_mpich_like(mpis.MPICH_SYSTEM), "ends.c")
    with slurm.up(2, tmp_path_factory.mktemp("slurm"), ["KillWait=2"]) as up:
        yield Jobs(up, program, tmp_path_factory.mktemp("jobs"))


@pytest.mark.parametrize(
    "endings",
    [["status 3", "signal 11"], pytest.param(["status 0", "signal 9", "signal 15", "abort 5"], marks=pytest.mark.full)],
)
def test_statuses_and_signals(endings: list[str], jobs: Jobs) -> None:
    numbers = {(form, how): jobs.submit(form, how) for how in endings for form in FORMS}
    ends = {key: jobs.end(job) for key, job in numbers.items()}
    assert {how: ends["ibprof", how] for how in endings} == {how: ends["bare", how] for how in endings}
    assert len({tuple(ends["bare", how]) for how in endings}) == len(endings)


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["--full"], ["--signal=USR1", "--full"], ["--signal=INT"]])
def test_cancelled(options: list[str], jobs: Jobs) -> None:
    ends = {}
    for form in FORMS:
        job = jobs.submit(form, "sleep 20")
        jobs.await_ranks(job)
        jobs.command("scancel", *options, job)
        ends[form] = jobs.end(job)
    assert ends["ibprof"] == ends["bare"]
    assert ends["bare"][0] != "COMPLETED" or "--signal=INT" in options


@pytest.mark.full
def test_time_limit(jobs: Jobs) -> None:
    numbers = {form: jobs.submit(form, "sleep 200", "--time=1") for form in FORMS}
    ends = {form: jobs.end(job) for form, job in numbers.items()}
    assert ends["ibprof"] == ends["bare"]
    assert ends["bare"][0] == "TIMEOUT"


@pytest.mark.full
def test_requeued(jobs: Jobs) -> None:
    """Both runs of the job are recorded: what the killed ranks did, and the whole second run."""
    ends = {}
    for form in FORMS:
        job = jobs.submit(form, "sleep 8", "--requeue")
        jobs.await_ranks(job)
        jobs.command("scontrol", "requeue", job)
        jobs.await_state(job, lambda facts: facts["JobState"] == "PENDING")
        time.sleep(3)  # the first run's processes end
        jobs.command("scontrol", "update", f"JobId={job}", "StartTime=now")
        ends[form] = jobs.end(job)
    assert ends["ibprof"] == ends["bare"]
    assert ends["bare"][0::4] == ["COMPLETED", "1"]
    found = list_found([jobs.folder / "profile.ibprof"], _refuse)
    runs = [(run.scheduler.restarts, run.is_whole) for run in found if run.scheduler.job == job]
    assert runs == [("", False), ("1", True)]
    # The first run's profile is made if there is time before Slurm kills the script.
    made = {path.stem: load_profile(path).scheduler.restarts for path in jobs.folder.glob(f"profile-{job}.*.otf2")}
    assert made in ({f"profile-{job}.0": "1"}, {f"profile-{job}.0": "", f"profile-{job}.0-2": "1"})
