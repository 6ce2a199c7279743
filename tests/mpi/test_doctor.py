# SPDX-License-Identifier: Apache-2.0
"""`ibprof doctor` predicts what a run records, with several MPIs and with programs that cannot be recorded."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ibprof.cli import doctor
from ibprof.load import load_profile
from ibprof_testing import processes
from ibprof_testing.mpi.mpis import (
    FROM_PYPI,
    INTEL,
    MPICH_FROM_PYPI,
    SYSTEM,
    Build,
    environment,
    find_mpi,
    find_mpich,
    find_mpich_like,
)


def start(folder: Path, *words: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, "-m", "ibprof", *words]
    env = environment(extra)
    return processes.run(command, cwd=folder, env=env, timeout=120)


def examine(folder: Path, *command: str | Path, **extra: str) -> tuple[int, dict[str, list[Any]]]:
    """Run `ibprof doctor` in this process; return the status and the findings: subject -> (is good, text)."""
    out, err = io.StringIO(), io.StringIO()
    words = ["--json", *(["--", *map(str, command)] if command else [])]
    around = patch.dict(os.environ, environment(extra), clear=True)
    with around, pytest.MonkeyPatch.context() as patches, redirect_stdout(out), redirect_stderr(err):
        patches.chdir(folder)
        status = doctor.main(words)
    assert err.getvalue() == ""
    said: dict[str, list[Any]] = {}
    answer = json.loads(out.getvalue())
    for finding in answer["findings"]:
        said.setdefault(finding["about"], []).append((finding["good"], finding["text"]))
    assert answer["would_record"] == (status == 0)
    return status, said


@pytest.mark.parametrize("name", [SYSTEM, "5.0.11", "mpich"])
def test_what_it_says_is_what_happens(name: str, build: Build, tmp_path: Path) -> None:
    mpi = find_mpich() if name == "mpich" else find_mpi(name)
    program = build(mpi, "collectives.c")
    command: list[str | Path] = [mpi.program("mpirun"), "-n", "2", program, "blocking", "Bcast", "1000"]
    status, said = examine(tmp_path, *command)
    assert status == 0, said
    assert list(tmp_path.iterdir()) == []
    done = start(tmp_path, "run", "--", *command)
    assert done.returncode == 0, done.stderr
    profile = load_profile(tmp_path / "profile.otf2")
    assert {rank.source.name.lower() for rank in profile.ranks} == {said["source"][0][1].partition(":")[0]}
    assert said["MPI"][0][1].startswith(" ".join(profile.mpi.split()))
    assert {note for rank in profile.ranks for note in rank.notes} >= {text for _, text in said.get("unseen", [])}
    # ibprof finds the program's MPI even if the command has no launcher.
    assert examine(tmp_path, program)[1]["MPI"] == said["MPI"]


def test_intel_mpi_opens_a_network_between_hosts_alone(build: Build, tmp_path: Path) -> None:
    """The doctor reports that messages within a host are not recorded by default, and how to record these messages."""
    mpi = find_mpich_like(INTEL)
    command: list[str | Path] = [
        mpi.program("mpirun"),
        "-n",
        "2",
        build(mpi, "collectives.c"),
        "blocking",
        "Bcast",
        "1000",
    ]
    status, said = examine(tmp_path, *command, **mpi.variables)
    assert status == 5
    assert said["MPI"][0][1].startswith("Intel(R) MPI Library")
    assert said["source"][0][1].startswith("libfabric: a job on several hosts is recorded")
    start(tmp_path, "run", "--", *command, **mpi.variables | {"IBPROF_TIME": "0"})
    assert not (tmp_path / "profile.otf2").exists()
    helped = mpi.variables | {"I_MPI_FABRICS": "shm:ofi"}
    assert examine(tmp_path, *command, **helped)[0] == 0
    done = start(tmp_path, "run", "--", *command, **helped)
    assert load_profile(tmp_path / "profile.otf2").world_size == 2, done.stderr


def test_a_launcher_of_another_mpi(build: Build, tmp_path: Path) -> None:
    other = build(find_mpich(), "collectives.c")
    status, said = examine(tmp_path, find_mpi(SYSTEM).program("mpirun"), "-n", "2", other)
    assert status == 5
    assert "each process would be a separate job" in said["launcher"][0][1]


def test_python_with_mpi4py(tmp_path: Path) -> None:
    mpi = find_mpi("5.0.11")
    status, said = examine(tmp_path, mpi.program("mpirun"), "-n", "2", mpi.python, "app.py")
    assert (status, said["source"][0][1].partition(":")[0]) == (0, "openmpi")
    status, said = examine(tmp_path, "/usr/bin/python3", "app.py")
    assert status == 5
    assert "has no mpi4py" in said["MPI"][0][1]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        ("cc -static -x c -o app - <code", "linked statically"),
        ("cc -x c -o app - <code; chmod u+s app", "setuid"),
        ("cc -x c -o app - <code", "loads no MPI library"),
        ("cc -x c -o app - <code; printf '\\0\\3' | dd of=app bs=1 seek=18 conv=notrunc", "is for machine 768"),
        ("cp /bin/true app; printf '%8s' | tr ' ' '\\377' | dd of=app bs=1 seek=32 conv=notrunc", "linked statically"),
        ("echo text >app; chmod +x app", "is not a program"),
        ("true", "there is no such program"),
    ],
)
def test_programs_that_cannot_be_recorded(make: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "code").write_text("int main(void) { return 0; }\n")
    subprocess.run(make, shell=True, cwd=tmp_path, check=True, capture_output=True)
    status, said = examine(tmp_path, "./app")
    assert status == 5
    assert reason in next(text for each in said.values() for good, text in each if not good)
    done = start(tmp_path, "run", "--", "./app")
    assert not list(tmp_path.glob("profile.*")), done.stderr


def test_a_folder_that_cannot_be_written(build: Build, tmp_path: Path) -> None:
    program = build(find_mpi(SYSTEM), "collectives.c")
    status, said = examine(tmp_path, program, IBPROF_OUTPUT="/proc/nowhere")
    assert (status, said["folder"][0][0]) == (5, False)


def test_a_limit_that_is_too_small(build: Build, tmp_path: Path) -> None:
    program = build(find_mpi(SYSTEM), "collectives.c")
    line = f"ulimit -f 1; exec {sys.executable} -m ibprof doctor -- {program}"
    done = processes.run(["sh", "-c", line], env=environment(), cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "BAD  limits" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("driver", "variables", "rails"),
    [
        ("mlx5_core", {}, "UCX bypasses verbs by default on odd0 (mlx5): rails are then modelled"),
        ("mlx5_core", {"IBPROF_SOURCE": "exact"}, "messages posted by verbs are recorded"),
        ("mlx5_core", {"UCX_TLS": "rc_verbs,self"}, "messages posted by verbs are recorded"),
        ("mlx5_core", {"UCX_TLS": "rc,self"}, "UCX bypasses verbs by default on odd0 (mlx5)"),
        ("rdma_rxe", {}, "messages posted by verbs are recorded"),
    ],
)
def test_whether_rails_would_be_measured(
    driver: str, variables: dict[str, str], rails: str, build: Build, tmp_path: Path
) -> None:
    device = tmp_path / "sysfs" / "odd0"
    (device / "ports" / "1").mkdir(parents=True)
    (device / "ports" / "1" / "lid").write_text("0x17\n")
    (device / "device").mkdir()
    (tmp_path / driver).mkdir()
    (device / "device" / "driver").symlink_to(tmp_path / driver)
    variables = {"IBPROF_SYSFS": str(tmp_path / "sysfs"), **variables}
    _, said = examine(tmp_path, build(find_mpi(SYSTEM), "collectives.c"), **variables)
    assert said["ports"] == [(True, "odd0/1 LID 0x17")]
    assert said["rails"][0][1].startswith(rails)


def test_a_batch_systems_launcher_alone(tmp_path: Path) -> None:
    """A batch system's launcher belongs to no MPI, so the doctor examines the MPI that the dynamic linker finds."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "srun").chmod(0o755)
    libraries = str(find_mpich().folder.parent / "lib")
    status, said = examine(tmp_path, PATH=str(tmp_path / "bin"), LD_LIBRARY_PATH=libraries)
    assert (status, said["launcher"][0][1]) == (0, str(tmp_path / "bin" / "srun"))
    assert said["MPI"][0][1].startswith("MPICH")
    status, said = examine(tmp_path, PATH=str(tmp_path / "bin"))
    assert (status, said["MPI"][0][0]) == (5, False)


@pytest.mark.parametrize("name", [*FROM_PYPI, *MPICH_FROM_PYPI])
def test_an_environment_of_pypis_mpi_alone(name: str, tmp_path: Path) -> None:
    """The doctor gets no program, only a PATH with the launcher.

    The doctor finds the MPI library in the launcher's environment, even next to a text file of the library's name.
    """
    mpi = find_mpi(name) if name in FROM_PYPI else find_mpich_like(name)
    status, said = examine(tmp_path, PATH=f"{mpi.folder}:/usr/bin:/bin")
    assert (status, said["launcher"][0][0]) == (0, True), said
    assert name.rpartition("-")[2] in said["MPI"][0][1]
