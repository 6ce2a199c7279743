# SPDX-License-Identifier: Apache-2.0
"""With each launcher, one job is one run, with a file on each host. Two launches are two runs.

Launchers that cannot be installed here are simulated. `mpiexec.gforker` of MPICH starts real ranks under the name of
the launcher's daemon, with the launcher's variables. csrc/preload/recording/job_name.c has the sources.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.missing_data import describe_gaps
from ibprof.recording.folder_runs import list_runs
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, environment, library
from ibprof_testing.mpi.patterns import ring

RANKS = 3
SENT = 1500  # bytes that a rank of programs/copied.c sends to the next rank, with the argument `end`

STEP = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}
"""Variables that a shell in a Slurm step passes on to its children."""

SIMULATED: dict[str, dict[str, str]] = {
    "palsd": {"PALS_APID": "5f0e2c1a-7d1b", "PALS_RANKID": "$PMI_RANK"},
    "flux-shell": {"FLUX_JOB_ID": "f2Gy9TQEoXM", "FLUX_TASK_RANK": "$PMI_RANK"},
    "mpispawn": {"MPDMAN_KVS_TEMPLATE": "kvs_17_node1_4242", "MPIRUN_RANK": "$PMI_RANK"},
    "slurmstepd": {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "3", "SLURM_PROCID": "$PMI_RANK"},
    "jsmd": {"JSM_NAMESPACE_RANK": "$PMI_RANK", "PMIX_NAMESPACE": "2", "LSB_JOBID": "815"},
}
NAMES = {
    "palsd": "5f0e2c1a-7d1b",
    "flux-shell": "f2Gy9TQEoXM",
    "mpispawn": "kvs_17_node1_4242",
    "slurmstepd": "4711.3",
    "jsmd": "2/815",
}


@pytest.fixture
def mpich() -> Mpi:
    """Return an MPICH that has another process manager than Hydra."""
    return mpis.find_mpich_like(mpis.MPICH_FROM_PYPI[0])


def start(
    mpi: Mpi,
    launcher: Path,
    program: Path,
    output: Path,
    *,
    around: Mapping[str, str] | None = None,
    of_ranks: Mapping[str, str] | None = None,
) -> None:
    """Run a program on RANKS ranks, each through a shell that sets variables and preloads ibprof."""
    variables = (
        mpis.THROUGH_NETWORK | {"LD_PRELOAD": str(library()), "IBPROF_OUTPUT": str(output)} | dict(of_ranks or {})
    )
    settings = " ".join(f'{name}="{value}"' for name, value in variables.items())
    line: list[str | Path] = [launcher, "-n", str(RANKS), "sh", "-c", f'{settings} "$0" end; exit $?', program]
    done = processes.run(
        line,
        env=environment(mpi.variables) | dict(around or {}),
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def named(mpi: Mpi, name: str, folder: Path) -> Path:
    """Return the process manager, copied under another name."""
    return Path(shutil.copy(mpi.program("mpiexec.gforker"), folder / name))


def check_one_job(output: Path, files: int = 1) -> None:
    profile = load_complete(output, RANKS)
    assert {pair: size for pair, (size, _) in recorded(profile, operation="SENDRECV").items()} == dict.fromkeys(
        ring(RANKS), SENT
    )
    assert len(list(output.iterdir())) == files


@pytest.mark.parametrize("name", mpis.MPICH_FROM_PYPI)
def test_gforker(name: str, build: Build, tmp_path: Path) -> None:
    """Ranks that gforker starts have only a parent process in common. Two launches are two runs."""
    mpi = mpis.find_mpich_like(name)
    for launches in (1, 2):
        start(mpi, mpi.program("mpiexec.gforker"), build(mpi, "copied.c"), tmp_path / "rec")
        check_one_job(tmp_path / "rec", files=launches)
        assert [run.ranks for run in list_runs(tmp_path / "rec")] == [RANKS] * launches
    assert load_profile(tmp_path / "rec").job.startswith("mpiexec.gforker ")


def test_prterun(build: Build, tmp_path: Path) -> None:
    """prterun is PRRTE's own launcher. Two launches are two runs, also within one `ibprof run`."""
    mpi = mpis.find_mpi(mpis.FROM_PYPI[-1])
    line = f"{mpi.program('prterun')} -n {RANKS} {build(mpi, 'copied.c')} end"
    done = processes.run(
        [sys.executable, "-m", "ibprof", "run", "--", "sh", "-c", f"{line} && {line}"], cwd=tmp_path, env=environment()
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"{RANKS} of {RANKS} ranks" in done.stderr
    assert f"another job of {RANKS} rank(s)" in done.stderr
    check_one_job(tmp_path / "profile.ibprof", files=2)


def test_processes_that_open_mpi_5_spawns(build: Build, tmp_path: Path) -> None:
    """`ibprof run` sets options of the launcher for its ranks, and environment variables for spawned processes."""
    mpi = mpis.find_mpi(mpis.FROM_PYPI[-1])
    line: list[str | Path] = [mpi.program("mpirun"), "-n", "2", build(mpi, "children.c"), "spawn"]
    variables = {"LD_PRELOAD": str(library()), "IBPROF_OUTPUT": str(tmp_path / "rec")}
    processes.run(line, check=True, env=environment(variables))
    assert [run.ranks for run in list_runs(tmp_path / "rec")] == [2, 1]
    bare = processes.run(line, check=True, env=environment())
    done = processes.run([sys.executable, "-m", "ibprof", "run", "--", *line], cwd=tmp_path, env=environment())
    assert (done.returncode, done.stdout) == (0, bare.stdout)
    assert "2 of 2 ranks" in done.stderr
    assert "another job of 1 rank(s): ibprof collect" in done.stderr
    assert [run.ranks for run in list_runs(tmp_path / "profile.ibprof")] == [2, 1]


MPIRUN_RSH = """\
#!/bin/sh
# As MVAPICH2's manual says: the N words after -np N are hosts; words that set variables follow. Ranks have no others.
[ "$1" = -np ] || exit 2
ranks=$2; shift 2
number=0; while [ $number -lt "$ranks" ]; do shift; number=$((number + 1)); done
settings=; while case "$1" in *=*) true;; *) false;; esac; do settings="$settings $1"; shift; done
exec env -i PATH="$PATH" HOME="$HOME" "{launcher}" -n "$ranks" env $settings "$@"
"""


def test_mpirun_rsh(mpich: Mpi, build: Build, tmp_path: Path) -> None:
    """A mock of mpirun_rsh, which cannot be installed here, starts real ranks as the manual says."""
    launcher = tmp_path / "mpirun_rsh"
    launcher.write_text(MPIRUN_RSH.format(launcher=mpich.program("mpiexec.gforker")))
    launcher.chmod(0o755)
    hosts = ["node1", "node2", "node1"]
    line: list[str | Path] = [
        launcher,
        "-np",
        str(RANKS),
        *hosts,
        "MPIR_CVAR_NOLOCAL=1",
        build(mpich, "copied.c"),
        "end",
    ]
    done = processes.run(
        [sys.executable, "-m", "ibprof", "run", "--", *line], cwd=tmp_path, env=environment(mpich.variables)
    )
    assert done.returncode == 0, done.stderr
    check_one_job(tmp_path / "profile.ibprof")
    run = load_complete(tmp_path / "profile.ibprof", RANKS)
    assert run.job_hosts == ("node1", "node2")


@pytest.mark.parametrize(
    ("launcher", "of_program"),
    [(mpis.MPICH_SYSTEM, mpis.SYSTEM), (mpis.SYSTEM, mpis.MPICH_SYSTEM)],
    ids=["openmpi-under-hydra", "mpich-under-openmpi"],
)
def test_a_launcher_of_another_mpi(launcher: str, of_program: str, build: Build, tmp_path: Path) -> None:
    """If the launcher belongs to another MPI than the program, a message says that each process is a separate job."""
    found = {
        name: find(name) for name, find in ((mpis.SYSTEM, mpis.find_mpi), (mpis.MPICH_SYSTEM, mpis.find_mpich_like))
    }
    start_with = found[launcher].program("mpirun")
    line: list[str | Path] = [start_with, "-n", "2", build(found[of_program], "regions.c")]
    done = processes.run([sys.executable, "-m", "ibprof", "run", "--", *line], cwd=tmp_path, env=environment())
    assert done.returncode == 0, done.stderr
    name = "Open MPI v4" if of_program == mpis.SYSTEM else "MPICH Version: 4"
    assert "the 2 processes of this launch are 2 jobs of one rank each: their MPI (" + name in done.stderr
    assert "Start the program with the mpirun of its own MPI" in done.stderr


@pytest.mark.parametrize("daemon", SIMULATED)
def test_launchers_that_name_their_jobs(daemon: str, mpich: Mpi, build: Build, tmp_path: Path) -> None:
    start(
        mpich,
        named(mpich, daemon, tmp_path),
        build(mpich, "copied.c"),
        tmp_path / "rec",
        of_ranks=SIMULATED[daemon],
    )
    check_one_job(tmp_path / "rec")
    assert load_profile(tmp_path / "rec").job == NAMES[daemon]


def test_an_unknown_launcher(mpich: Mpi, build: Build, tmp_path: Path) -> None:
    """ibprof does not know the launcher, and each rank has a separate shell as parent, so each rank has a file.

    The files of all ranks are combined in one run, and a message says so.
    """
    for _ in range(2):
        start(mpich, named(mpich, "launch-it", tmp_path), build(mpich, "copied.c"), tmp_path / "rec")
    assert [run.ranks for run in list_runs(tmp_path / "rec")] == [RANKS] * 2
    check_one_job(tmp_path / "rec", files=2 * RANKS)
    (said,) = [gap for gap in describe_gaps(load_profile(tmp_path / "rec")) if "gave the job no name" in gap]
    assert f"{RANKS} files" in said


@pytest.mark.parametrize("launcher", ["mpiexec.hydra", "mpiexec.gforker"])
def test_two_launches_in_one_slurm_step(launcher: str, mpich: Mpi, build: Build, tmp_path: Path) -> None:
    """All programs that a shell of `srun --pty bash` starts inherit the shell's Slurm step."""
    for launches in (1, 2):
        start(mpich, mpich.program(launcher), build(mpich, "copied.c"), tmp_path / "rec", around=STEP)
        check_one_job(tmp_path / "rec", files=launches)
        assert [run.ranks for run in list_runs(tmp_path / "rec")] == [RANKS] * launches


def test_hydra_where_another_launcher_left_its_variables(mpich: Mpi, build: Build, tmp_path: Path) -> None:
    """Hydra starts in a shell of `srun --mpi=pmix`, which sets PMIX and Slurm variables."""
    around = {"PMIX_NAMESPACE": "slurm.pmix.4711.0", "PMIX_RANK": "0", **STEP}
    for launches in (1, 2):
        start(mpich, mpich.program("mpiexec.hydra"), build(mpich, "copied.c"), tmp_path / "rec", around=around)
        check_one_job(tmp_path / "rec", files=launches)


def test_open_mpi_within_hydra(system_mpi: Mpi, mpich: Mpi, build: Build, tmp_path: Path) -> None:
    """A rank of one launcher starts the other launcher. The job has the inner launcher's name."""
    program = build(system_mpi, "copied.c")
    line: Sequence[str | Path] = [
        mpich.program("mpiexec.hydra"),
        "-n",
        "1",
        system_mpi.program("mpirun"),
        "-n",
        str(RANKS),
    ]
    variables = {"LD_PRELOAD": library(), "IBPROF_OUTPUT": tmp_path / "rec"}
    settings = ["env", *(f"{name}={value}" for name, value in variables.items())]
    for launches in (1, 2):
        processes.run([*line, *settings, program, "end"], check=True, env=environment())
        check_one_job(tmp_path / "rec", files=launches)
