# SPDX-License-Identifier: Apache-2.0
"""Command lines in the documentation record each rank of a real job, and do not change the program."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ibprof_testing import processes
from ibprof_testing.mpi import mpis

# Both hosts are this machine, so shared memory between them must be switched off.
NO_SHARED_MEMORY = ("--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo")

RANKS = 4
ALLTOALL_BYTES = RANKS * (RANKS - 1) * 1000
BCAST_BYTES = (RANKS - 1) * 100

# Starts the daemon of the "other host" on this machine, without an environment, like a remote shell.
REMOTE_SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
mkdir -p "$(dirname "$0")/$host"
exec env -i PATH=/usr/bin:/bin HOME=/tmp TMPDIR="$(dirname "$0")/$host" OMPI_ALLOW_RUN_AS_ROOT=1 \\
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 sh -c "$*"
"""


@pytest.fixture
def program(mpi: mpis.Mpi, build: Callable[..., Path]) -> Path:
    return build(mpi, "commands.c")


def start(command: Sequence[object], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = mpis.environment() | env
    words = [str(word) for word in command]
    return processes.run(words, env=environment, cwd=cwd, timeout=120)


def ibprof(*arguments: object) -> list[object]:
    return [sys.executable, "-m", "ibprof", *arguments]


def total(folder: Path, profile: str = "profile.otf2", *options: str) -> int:
    shown = start(ibprof("matrix", profile, *options), folder)
    assert shown.returncode == 0, shown.stderr
    return sum(int(row["bytes"]) for row in csv.DictReader(shown.stdout.splitlines()))


def assert_whole(folder: Path) -> None:
    assert total(folder, "profile.otf2", "--operation", "ALLTOALL") == ALLTOALL_BYTES
    assert total(folder, "profile.otf2", "--operation", "BCAST") == BCAST_BYTES


def test_run_around_the_launcher(mpi: mpis.Mpi, program: Path, tmp_path: Path) -> None:
    mpirun = mpi.program("mpirun")
    bare = start([mpirun, "-n", RANKS, program], tmp_path)
    done = start(ibprof("run", "--", mpirun, "-n", RANKS, program), tmp_path)
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout) == (0, f"done by {RANKS}\n")
    assert f"{RANKS} of {RANKS} ranks" in done.stderr
    assert_whole(tmp_path)
    assert total(tmp_path, "profile.otf2", "--region", "exchange") == ALLTOALL_BYTES


def test_run_inside_the_launcher(mpi: mpis.Mpi, program: Path, tmp_path: Path) -> None:
    done = start([mpi.program("mpirun"), "-n", RANKS, *ibprof("run", "--", program)], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"done by {RANKS}\n", "")
    # The archive does not exist yet: the profile is made from the recording in the same folder.
    assert_whole(tmp_path)


def test_run_around_a_script(mpi: mpis.Mpi, program: Path, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n{mpi.program('mpirun')} -n {RANKS} {program}\n")
    script.chmod(0o755)
    path = f"{mpi.folder}:{os.environ['PATH']}"
    assert start(ibprof("run", "--", script), tmp_path, PATH=path).returncode == 0
    assert_whole(tmp_path)


def test_operations_alone(mpi: mpis.Mpi, program: Path, tmp_path: Path) -> None:
    done = start(ibprof("run", "--", mpi.program("mpirun"), "-n", RANKS, program), tmp_path, IBPROF="bcast,MPI_Send")
    assert done.returncode == 0
    assert "only these operations were recorded" in done.stderr
    assert total(tmp_path) == BCAST_BYTES


def remote(mpi: mpis.Mpi, folder: Path) -> list[object]:
    """Return options that put the ranks on two other hosts."""
    shell = folder / "shell.sh"
    shell.write_text(REMOTE_SHELL)
    shell.chmod(0o755)
    agent = ["--prtemca", "plm_ssh_agent"] if mpi.name.startswith("5") else ["--mca", "plm_rsh_agent"]
    return [*agent, shell, *NO_SHARED_MEMORY, "--host", "there1:2,there2:2"]


def test_run_carries_the_library_to_other_hosts(mpi: mpis.Mpi, program: Path, tmp_path: Path) -> None:
    line = [mpi.program("mpirun"), *remote(mpi, tmp_path), "-n", RANKS, program]
    done = start(ibprof("run", "--", *line), tmp_path)
    assert done.returncode == 0, done.stderr
    assert_whole(tmp_path)


def test_env_carries_a_bare_preload_to_other_hosts_and_leaves_x_usable(
    mpi: mpis.Mpi, program: Path, tmp_path: Path
) -> None:
    line = " ".join(str(word) for word in [mpi.program("mpirun"), *remote(mpi, tmp_path), "-x FOO -n", RANKS, program])
    ibprof = f"{sys.executable} -m ibprof"
    script = f'eval "$({ibprof} env)"\nexport FOO=1\nIBPROF=ALLTOALL LD_PRELOAD=libibprof.so {line}\n'
    done = start(["sh", "-euc", script], tmp_path, PATH=f"{mpi.folder}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"done by {RANKS}\n"
    assert total(tmp_path) == ALLTOALL_BYTES


def test_the_status_is_the_commands(mpi: mpis.Mpi, program: Path, tmp_path: Path) -> None:
    mpirun = mpi.program("mpirun")
    bare = start([mpirun, "-n", "1", program, "3"], tmp_path)
    done = start(ibprof("run", "--", mpirun, "-n", "1", program, "3"), tmp_path)
    assert done.returncode == bare.returncode == 3
    assert (tmp_path / "profile.otf2").exists()


def test_a_signal_reaches_the_command_and_its_end_is_reported(tmp_path: Path) -> None:
    script = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.1; done"
    command = [str(word) for word in ibprof("run", "--", "sh", "-c", script)]
    with processes.start(command, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "caught\n"
        assert process.wait(20) == 9
    assert start(ibprof("run", "--", "sh", "-c", "kill -SEGV $$"), tmp_path).returncode == 128 + signal.SIGSEGV


def test_what_cannot_be_started_has_the_status_of_a_shell(tmp_path: Path) -> None:
    for program, status in (("no-such-program", 127), ("/no/such/program", 127), ("/etc/passwd", 126), ("/etc", 126)):
        done = start(ibprof("run", "--", program), tmp_path)
        assert (done.returncode, done.stdout) == (status, "")
        assert program in done.stderr
        assert processes.run(["sh", "-c", program]).returncode == status


def test_a_file_of_the_profiles_name_is_left_alone(mpi: mpis.Mpi, program: Path, tmp_path: Path) -> None:
    (tmp_path / "profile.otf2").write_text("mine")
    done = start(ibprof("run", "--", mpi.program("mpirun"), "-n", "2", program), tmp_path)
    assert (done.returncode, done.stdout) == (0, "done by 2\n")
    assert "profile-2.otf2 is the profile" in done.stderr
    assert (tmp_path / "profile.otf2").read_text() == "mine"


def test_a_job_without_a_launcher(system_mpi: mpis.Mpi, build: Callable[..., Path], tmp_path: Path) -> None:
    done = start(ibprof("run", "--", build(system_mpi, "commands.c")), tmp_path)
    assert (done.returncode, done.stdout) == (0, "done by 1\n")
    assert "1 of 1 ranks" in done.stderr


def test_a_program_that_spawns_is_the_job_that_is_meant(
    system_mpi: mpis.Mpi, build: Callable[..., Path], tmp_path: Path
) -> None:
    program = build(system_mpi, "children.c")
    done = start(ibprof("run", "--", system_mpi.program("mpirun"), "-n", "2", program, "spawn"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 ranks" in done.stderr
    command = re.search(r"another job of [12] rank\(s\): ibprof (collect .*)", done.stderr)
    assert command, done.stderr
    assert start(ibprof(*command[1].split()), tmp_path).returncode == 0
    assert "\ncommand " in start(ibprof("info", "other.otf2"), tmp_path).stdout
