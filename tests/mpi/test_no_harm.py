# SPDX-License-Identifier: Apache-2.0
"""A preloaded program behaves as without ibprof, whatever program it is and whatever it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ibprof_testing import processes
from ibprof_testing.mpi import patterns
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import NAMES, SYSTEM, Build, Mpi, environment, find_mpich, library, run_mpi
from ibprof_testing.mpi.no_harm import FAMILIES, every_mpi_but_quick, find_any
from ibprof_testing.mpi.patterns import all_the_same


@pytest.mark.parametrize("now", [{}, {"LD_BIND_NOW": "1"}], ids=["lazy", "bind-now"])
@pytest.mark.parametrize(
    "command",
    [
        ["echo", "hello"],
        ["sh", "-c", "echo out; echo err >&2; exit 7"],
        [sys.executable, "-c", "import json, threading; print(json.dumps(1))"],
        ["sh", "-c", "kill -9 $$"],
        ["cat", "/missing"],
    ],
    ids=["echo", "sh", "python", "killed", "cat"],
)
def test_programs_without_mpi(command: list[str], now: dict[str, str], tmp_path: Path) -> None:
    def run(extra: dict[str, str]) -> tuple[int, str, str]:
        env = environment(now | extra)
        done = processes.run(command, env=env, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    assert run({"LD_PRELOAD": str(library()), "IBPROF": "NONSENSE", "IBPROF_VERBOSE": "5"}) == run({})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("now", [{}, {"LD_BIND_NOW": "1"}], ids=["lazy", "bind-now"])
@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_launcher_and_its_ranks(name: str, build: Build, now: dict[str, str], tmp_path: Path) -> None:
    """LD_PRELOAD in the launcher's environment preloads ibprof into the launcher too."""
    mpi = find_any(name)
    line = [str(mpi.program("mpirun")), "-n", "2", str(build(mpi, "regions.c")), "nested"]
    env = environment(now | {"LD_PRELOAD": str(library())})
    done = processes.run(line, env=env, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    load_complete(tmp_path / "profile.ibprof", 2)


@pytest.mark.parametrize("mpi", NAMES, indirect=True)
def test_a_program_without_a_launcher(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    # Open MPI 4 starts a daemon for a single process. PyPI's build needs the path of its folder.
    unpacked = {} if mpi.name == SYSTEM else {"OPAL_PREFIX": str(mpi.folder.parent)}
    env = environment({"LD_PRELOAD": str(library())} | unpacked)
    line: list[str | Path] = [build(mpi, "regions.c"), "nested"]
    done = processes.run(line, env=env, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    profile = load_complete(tmp_path / "profile.ibprof", 1)
    assert recorded(profile, operation="SENDRECV") == {(0, 0): (11316, 9)}


@pytest.mark.parametrize("how", ["fork", "shell", "spawn"])
def test_children(mpi: Mpi, build: Build, how: str, tmp_path: Path) -> None:
    command: list[str | Path] = [build(mpi, "children.c"), how]
    without = run_mpi(mpi, 2, command)
    within = run_mpi(mpi, 2, command, recording=tmp_path)
    assert (within.stdout, within.stderr) == (without.stdout, without.stderr)
    profile = load_complete(tmp_path, 2) if how != "spawn" else None
    if profile:
        assert recorded(profile, operation="SENDRECV") == all_the_same(patterns.ring(2), 1000)


def test_another_tool(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """A tool of MPI's profiling interface counts the same calls as without ibprof. ibprof counts each call once."""
    tool = build(mpi, "other_tool.c", "-shared", "-fPIC")
    command: list[str | Path] = [build(mpi, "figure36.c")]
    for order in ([library(), tool], [tool, library()]):
        folder = tmp_path / order[0].name
        env = {"LD_PRELOAD": ":".join(map(str, order)), "IBPROF_OUTPUT": str(folder)}
        assert run_mpi(mpi, 2, command, env=env).stdout == "2 broadcasts\n"
        assert recorded(load_complete(folder, 2), operation="BCAST")[0, 1][0] == 200_000


def test_an_unknown_operation_is_reported_once(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    command: list[str | Path] = [build(mpi, "figure36.c")]
    done = run_mpi(mpi, 3, command, recording=tmp_path, env={"IBPROF": "ALLTOAL,bcast"})
    said = done.stderr.splitlines()
    assert len(said) == 1
    assert "unknown operations: ALLTOAL; known are" in said[0]
    assert " ALLTOALL, " in said[0]
    assert set(load_complete(tmp_path, 3).operations) >= {"BCAST"}


def test_a_filter_of_no_known_operation_costs_nothing(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    command: list[str | Path] = [build(system_mpi, "figure36.c")]
    done = run_mpi(system_mpi, 2, command, recording=tmp_path, env={"IBPROF": "NOPE"})
    assert "unknown operations: NOPE (no known name, so all operations are recorded); known are" in done.stderr
    profile = load_complete(tmp_path, 2)
    assert profile.operations_asked == ""
    assert recorded(profile, operation="BCAST")[0, 1][0] == 200_000


def test_an_mpi_without_the_source_that_is_asked_for(build: Build, tmp_path: Path) -> None:
    mpich = find_mpich()
    program = build(mpich, "collectives.c")
    line: list[str | Path] = [mpich.program("mpirun"), "-n", "2", program, "blocking", "Bcast", "1000"]

    def run(extra: dict[str, str]) -> subprocess.CompletedProcess[str]:
        env = environment(extra)
        return processes.run(line, env=env, cwd=tmp_path, timeout=60)

    without, within = run({}), run({"LD_PRELOAD": str(library()), "IBPROF_SOURCE": "openmpi", "IBPROF_TIME": "0"})
    assert (within.returncode, within.stdout) == (without.returncode, without.stdout) == (0, "")
    said = [text for text in within.stderr.splitlines() if text not in without.stderr.splitlines()]
    assert len(said) == 1
    assert "nothing is recorded" in said[0]
    assert list(tmp_path.iterdir()) == []


def test_what_dlsym_finds_without_mpi(tmp_path: Path) -> None:
    """A program without MPI finds MPI_Init in ibprof by dlsym, but the call fails (docs/no-harm.md)."""
    line = "import ctypes; own = ctypes.CDLL(None); print(hasattr(own, 'MPI_Init') and own.MPI_Init(None, None))"

    def run(extra: dict[str, str]) -> str:
        done = processes.run([sys.executable, "-c", line], env=environment(extra), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert (run({}), run({"LD_PRELOAD": str(library())})) == ("False\n", "-1431655766\n")
