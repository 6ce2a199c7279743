# SPDX-License-Identifier: Apache-2.0
"""ibprof's Slurm plug-in, or a task prolog, records jobs of a real Slurm as the site's settings say."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest

from ibprof.load import load_profile
from ibprof.recording.recording_reader import read_recording
from ibprof_testing import processes
from ibprof_testing.lab import slurm
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import Build, environment, library

SOURCE = Path(__file__).resolve().parents[2] / "csrc" / "spank" / "ibprof_spank.c"
NOBODY = 65534
PROLOG = """#!/bin/sh
[ -z "$RECORDED" ] || echo "export LD_PRELOAD={library}"
"""


@dataclass(frozen=True)
class Site:
    """A cluster whose plugstack.conf `configure` writes; Slurm reads it at each launch."""

    cluster: slurm.Cluster
    folder: Path
    program: Path

    @property
    def library(self) -> Path:
        return self.folder / "libibprof.so"

    def configure(self, share: float = 0, path: Path | None = None) -> None:
        words = ["optional", self.folder / "ibprof.so", f"library={path or self.library}", f"share={share}"]
        line = " ".join(map(str, [*words, f"output={self.folder}/spool/%u/%j.%s"]))
        (self.folder / "plugstack.conf").write_text(f"{line}\n")

    def run(
        self, *options: str, user: int = 0, before: tuple[str, ...] = (), **variables: str
    ) -> CompletedProcess[str]:
        for recording in (self.folder / "spool").glob("*/*"):
            recording.rename(self.folder / "old" / f"{len(list((self.folder / 'old').iterdir()))}")
        line = [
            *before,
            "srun",
            f"--uid={user}",
            "--chdir=/tmp",
            "--mpi=pmi2",
            "-n2",
            *options,
            str(self.program),
            "end",
        ]
        return self.cluster.run(line, environment({**mpis.THROUGH_NETWORK, **variables}), self.folder)

    def is_next_sampled(self) -> bool:
        """Return whether the plug-in, set to record half of all jobs, will record the next job."""
        said = self.cluster.run(["scontrol", "show", "config"], environment(), self.folder).stdout
        (number,) = re.findall(r"^NEXT_JOB_ID\s+= (\d+)$", said, re.MULTILINE)
        return int(number) * 2654435761 % 2**32 < 2**31

    def recordings(self) -> list[Path]:
        return list((self.folder / "spool").glob("*/*"))


@pytest.fixture(scope="module")
def site(build: Build) -> Iterator[Site]:
    with TemporaryDirectory() as name:  # other users cannot enter pytest's own folders
        yield from _start(Path(name), build)


def _start(folder: Path, build: Build) -> Iterator[Site]:
    folder.chmod(0o755)
    shutil.copy(library(), folder)
    (folder / "spool").mkdir()
    (folder / "spool").chmod(0o1777)
    for part in ("old", "slurm"):
        (folder / part).mkdir()
    compiled = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(folder / "ibprof.so")]
    done = processes.run([*compiled, str(SOURCE)], env=dict(os.environ), timeout=60)
    assert done.returncode == 0, done.stderr
    (folder / "prolog").write_text(PROLOG.format(library=folder / "libibprof.so"))
    (folder / "prolog").chmod(0o755)
    program = folder / "program"
    program.write_bytes(build(mpis.find_mpich_like(mpis.MPICH_SYSTEM), "copied.c").read_bytes())
    program.chmod(0o755)
    (folder / "plugstack.conf").touch()
    settings = [f"PlugStackConfig={folder}/plugstack.conf", f"TaskProlog={folder}/prolog"]
    with slurm.up(2, folder / "slurm", settings) as up:
        yield Site(up, folder, program)


def check_quiet(done: CompletedProcess[str]) -> None:
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_off_by_default_on_by_the_option(site: Site) -> None:
    site.configure()
    check_quiet(site.run())
    assert site.recordings() == []
    check_quiet(site.run("--ibprof"))
    (recording,) = site.recordings()
    profile = read_recording(recording)
    assert (profile.ranks_recorded, profile.operations_asked) == (2, "")
    assert recording.name == profile.scheduler.label
    check_quiet(site.run("--ibprof=SENDRECV"))
    (recording,) = site.recordings()
    assert read_recording(recording).operations_asked == "SENDRECV"
    check_quiet(site.run(before=("salloc", "--quiet", "--ntasks=2", "--ibprof")))
    (recording,) = site.recordings()
    assert read_recording(recording).operations_asked == ""


def test_profiles_belong_to_the_user(site: Site) -> None:
    site.configure()
    check_quiet(site.run("--ibprof", user=NOBODY, USER="nobody"))
    (recording,) = site.recordings()
    assert recording.parent.name == "nobody"
    assert {each.stat().st_uid for each in (recording.parent, recording, *recording.iterdir())} == {NOBODY}
    assert not stat.S_IMODE(recording.stat().st_mode) & stat.S_IWOTH


@pytest.mark.full
def test_a_share_of_all_jobs(site: Site) -> None:
    site.configure(share=100)
    check_quiet(site.run())
    assert len(site.recordings()) == 1
    check_quiet(site.run("--ibprof=off"))
    assert site.recordings() == []
    site.configure(share=50)
    for _ in range(3):
        sampled = site.is_next_sampled()
        check_quiet(site.run())
        assert len(site.recordings()) == sampled


def test_a_share_has_all_components_of_a_heterogeneous_job_or_none(site: Site) -> None:
    """The components of one job have successive numbers. A choice by number would leave out half of the components."""
    site.configure(share=50)
    for _ in range(2):
        sampled = site.is_next_sampled()
        check_quiet(site.run("--het-group=0,1", before=("salloc", "--quiet", "-n2", ":", "-n2")))
        assert [read_recording(each).ranks_recorded for each in site.recordings()] == [4] * sampled


@pytest.mark.full
def test_users_settings_count_more(site: Site, tmp_path: Path) -> None:
    site.configure(share=100)
    check_quiet(site.run(IBPROF_OUTPUT=f"{tmp_path}/own", LD_PRELOAD=f"libm.so.6:{site.library}"))
    assert site.recordings() == []
    assert read_recording(tmp_path / "own").ranks_recorded == 2


def test_ibprof_run_in_a_sampled_job_keeps_its_own_folder(site: Site, tmp_path: Path) -> None:
    site.configure(share=100)
    line = f"{sys.executable} -m ibprof run -- srun --mpi=pmi2 -n2 {site.program} end"
    done = site.cluster.run(["sbatch", "--wait", "--ntasks=2", f"--wrap={line}"], environment(), tmp_path)
    assert done.returncode == 0, done.stderr
    (profile,) = tmp_path.glob("profile-*.0.otf2")
    assert load_profile(profile).ranks_recorded == 2
    assert site.recordings() == []


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere/libibprof.so",
        *(pytest.param(path, marks=pytest.mark.full) for path in ("/a b/libibprof.so", "relative")),
    ],
)
def test_a_broken_installation_fails_no_job(path: str, site: Site) -> None:
    site.configure(share=100, path=Path(path))
    check_quiet(site.run())
    site.configure(path=Path(path))
    done = site.run("--ibprof")
    assert (done.returncode, done.stdout) == (0, "")
    assert "ibprof: nothing is recorded: " in done.stderr
    assert site.recordings() == []


@pytest.mark.full
def test_a_prolog_of_tasks_in_its_place(site: Site, tmp_path: Path) -> None:
    site.configure()
    check_quiet(site.run(RECORDED="1", IBPROF_OUTPUT=f"{tmp_path}/%j"))
    (recording,) = tmp_path.iterdir()
    assert read_recording(recording).ranks_recorded == 2
