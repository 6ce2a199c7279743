# SPDX-License-Identifier: Apache-2.0
"""However a job ends, Slurm and its accounts (sacct) show the same end as without ibprof."""

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
from ibprof_testing.machine import MissingError
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import Build, environment

RUN = f"{sys.executable} -m ibprof run"
FORMS = {"bare": "", "ibprof": f"{RUN} --"}
SAME = ("JobState", "Reason", "ExitCode", "DerivedExitCode", "Restarts")
CGROUPS = Path("/sys/fs/cgroup/memory")
IN_CGROUPS = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
"""
LIMITED = (
    *("SelectTypeParameters=CR_CPU_Memory", "DefMemPerCPU=100", "TaskPlugin=task/cgroup"),
    *("ProctrackType=proctrack/cgroup", "JobAcctGatherType=jobacct_gather/cgroup"),
)
LAST = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
WAIT_S = 150


def _refuse(error: InputError) -> None:
    raise error


@dataclass(frozen=True)
class Jobs:
    """Jobs of one cluster; each job runs a program by `srun` in a batch script."""

    cluster: slurm.Cluster
    program: Path
    folder: Path

    def command(self, *words: str) -> str:
        done = self.cluster.run(words, environment(mpis.THROUGH_NETWORK), self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, form: str, how: str, *options: str) -> str:
        """Submit a job that has one step of two ranks, and return the job's number."""
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

    def account(self, job: str) -> list[list[str]]:
        """Wait for the end of a job and its steps; return name, state and exit statuses from sacct."""
        columns = "--format=JobID,State,ExitCode,DerivedExitCode"
        until = time.monotonic() + WAIT_S
        while True:
            text = self.command("sacct", "--noheader", "--parsable2", "--duplicates", columns, "--jobs", job)
            rows = [line.split("|") for line in text.splitlines()]
            if len(rows) > 2 and not {"PENDING", "RUNNING"} & {row[1] for row in rows}:
                return [[row[0].removeprefix(job), *row[1:]] for row in rows]
            assert time.monotonic() < until, rows
            time.sleep(0.2)

    def compare(self, numbers: Mapping[str, str]) -> tuple[list[str], list[list[str]]]:
        """Check that both jobs, with and without ibprof, ended alike; return the facts in `SAME`, and the accounts.

        Args:
            numbers: the number of the job with ibprof (`ibprof`) and of the job without ibprof (`bare`).
        """
        ends = {form: (self.end(job), self.account(job)) for form, job in numbers.items()}
        assert ends["ibprof"] == ends["bare"]
        return ends["bare"]

    def await_ranks(self, job: str) -> None:
        """Wait until the first step of a job runs."""
        self.await_state(job, lambda _: f"{job}.0" in self.command("squeue", "--steps", "--noheader", "--format=%i"))
        time.sleep(1)


@pytest.fixture(scope="module")
def program(build: Build) -> Path:
    return build(mpis.find_mpich_like(mpis.MPICH_SYSTEM), "ends.c")


@pytest.fixture(scope="module")
def jobs(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with slurm.up(2, tmp_path_factory.mktemp("slurm"), ["KillWait=2"]) as up:
        yield Jobs(up, program, tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def accounted(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """Yield the jobs of a cluster that keeps accounts and, if this machine has memory cgroups, limits memory."""
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "cgroup.conf").write_text(IN_CGROUPS)
    settings = ["KillWait=2", *(LIMITED if CGROUPS.is_dir() else ())]
    try:
        with slurm.up(2, folder, settings, with_accounts=True) as up:
            yield Jobs(up, program, tmp_path_factory.mktemp("jobs"))
    finally:
        for left in sorted(CGROUPS.parent.glob("*/slurm_node[12]/**/"), reverse=True):
            left.rmdir()


def test_statuses_and_signals(jobs: Jobs) -> None:
    endings = ("status 3", "signal 11")
    numbers = {(form, how): jobs.submit(form, how) for how in endings for form in FORMS}
    ends = {key: jobs.end(job) for key, job in numbers.items()}
    assert {how: ends["ibprof", how] for how in endings} == {how: ends["bare", how] for how in endings}
    assert ends["bare", "status 3"] != ends["bare", "signal 11"]


@pytest.mark.full
def test_statuses_and_signals_in_accounts(accounted: Jobs) -> None:
    endings = ("status 0", "status 3", "signal 9", "signal 11", "signal 15", "abort 5")
    numbers = {how: {form: accounted.submit(form, how) for form in FORMS} for how in endings}
    ends = [accounted.compare(each) for each in numbers.values()]
    assert len({str(account) for _, account in ends}) == len(endings)


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["--full"], ["--signal=USR1", "--full"], ["--signal=INT"]])
def test_cancelled(options: list[str], accounted: Jobs) -> None:
    numbers = {}
    for form in FORMS:
        numbers[form] = accounted.submit(form, "sleep 20")
        accounted.await_ranks(numbers[form])
        accounted.command("scancel", *options, numbers[form])
    end, _ = accounted.compare(numbers)
    assert end[0] != "COMPLETED" or "--signal=INT" in options


@pytest.mark.full
def test_time_limit(accounted: Jobs) -> None:
    end, _ = accounted.compare({form: accounted.submit(form, "sleep 200", "--time=1") for form in FORMS})
    assert end[0] == "TIMEOUT"


@pytest.mark.full
def test_out_of_memory(accounted: Jobs) -> None:
    """The recording has the traffic of the killed ranks."""
    if not CGROUPS.is_dir():
        raise MissingError(f"no {CGROUPS}: Slurm 22.05 without systemd limits memory by cgroups of version 1 alone")
    numbers = {form: accounted.submit(form, "memory 1000") for form in FORMS}
    _, account = accounted.compare(numbers)
    assert account[-1][:2] == [".0", "OUT_OF_MEMORY"]
    found = list_found([accounted.folder / "profile.ibprof"], _refuse)
    assert [run.is_whole for run in found if run.scheduler.job == numbers["ibprof"]] == [False]


@pytest.mark.full
def test_requeued(accounted: Jobs) -> None:
    """Both runs of the job are recorded: the first up to the kill, and the whole second run."""
    numbers = {}
    for form in FORMS:
        numbers[form] = job = accounted.submit(form, "sleep 8", "--requeue")
        accounted.await_ranks(job)
        accounted.command("scontrol", "requeue", job)
        accounted.await_state(job, lambda facts: facts["JobState"] == "PENDING")
        time.sleep(3)  # wait until the first run's processes end
        accounted.command("scontrol", "update", f"JobId={job}", "StartTime=now")
    end, account = accounted.compare(numbers)
    assert end[0::4] == ["COMPLETED", "1"]
    assert {row[1] for row in account} >= {"REQUEUED", "COMPLETED"}
    job = numbers["ibprof"]
    found = list_found([accounted.folder / "profile.ibprof"], _refuse)
    runs = [(run.scheduler.restarts, run.is_whole) for run in found if run.scheduler.job == job]
    assert runs == [("", False), ("1", True)]
    # The first run has a profile only if Slurm kills the script late enough.
    made = {path.stem: load_profile(path).scheduler.restarts for path in accounted.folder.glob(f"profile-{job}.*.otf2")}
    assert made in ({f"profile-{job}.0": "1"}, {f"profile-{job}.0": "", f"profile-{job}.0-2": "1"})


@pytest.mark.full
def test_components_of_a_heterogeneous_job(accounted: Jobs) -> None:
    """A step has one profile, on one component of the job or on both, named by the step's number in sacct."""
    groups = ("0,1", "0", "1")
    part = "#SBATCH --nodes=1 --ntasks=2\n"
    steps = [
        f"{RUN}{option} -- srun --mpi=pmi2 --het-group={group} {accounted.program} status 0\n"
        for group in groups
        for option in ("", " -o r-%j.%s")
    ]
    script = accounted.folder / "parts.sh"
    script.write_text(f"#!/bin/sh\n{part}#SBATCH hetjob\n{part}{''.join(steps)}")
    job = accounted.command("sbatch", "--wait", "--parsable", script.name).strip()
    account = accounted.account(job)
    known = {f"{job}.{row[0].partition('.')[2]}" for row in account if row[0].partition(".")[2].isdigit()}
    found = {path.stem.removeprefix("profile-"): path for path in accounted.folder.rglob(f"profile-{job}.*.otf2")}
    assert set(found) == known == {f"{job}.{number}" for number in range(len(steps))}
    assert [path.parent.name.startswith("r-") for _, path in sorted(found.items())] == [False, True] * len(groups)
    one, other = accounted.cluster.nodes
    for number, nodes in enumerate(({one, other}, {one}, {other})):
        run = load_profile(found[f"{job}.{2 * number}"])
        assert ({host.name for host in run.hosts}, run.scheduler.job) == (nodes, job)
