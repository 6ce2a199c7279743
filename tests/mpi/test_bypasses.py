# SPDX-License-Identifier: Apache-2.0
"""Cases in which ibprof could miss calls or processes. ibprof records the calls, or reports them as missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import recorded
from ibprof_testing.mpi.mpis import MPICH_SYSTEM, PROGRAMS, SYSTEM, THROUGH_NETWORK, Build, Mpi

RANKS = 2
OTHER_PRELOAD = ("-env", "LD_PRELOAD", "libm.so.6")


def find(name: str) -> Mpi:
    return mpis.find_mpich_like(name) if name == MPICH_SYSTEM else mpis.find_mpi(name)


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "ibprof", "run", "--", *command]
    environment = mpis.environment(THROUGH_NETWORK)
    return processes.run(words, cwd=folder, env=environment, timeout=120)


def run_plugin(mpi: Mpi, how: str, build: Build, folder: Path) -> str:
    """Run a program without MPI that loads a plug-in with MPI; return the program's stderr."""
    plugin = build(mpi, "plugin.c", "-DPLUGIN", "-shared", "-fPIC")
    host = folder / "host"
    subprocess.run(["cc", "-o", host, PROGRAMS / "plugin.c", "-ldl"], check=True)
    done = run(folder, mpi.program("mpirun"), "-n", str(RANKS), host, plugin, how)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    return done.stderr


@pytest.mark.parametrize("name", [SYSTEM, MPICH_SYSTEM])
@pytest.mark.parametrize("how", ["local", "global", "deep"])
def test_a_plugin_calls_mpi(how: str, name: str, build: Build, tmp_path: Path) -> None:
    """`deep` is RTLD_DEEPBIND: the plug-in's calls then do not reach a preloaded library."""
    run_plugin(find(name), how, build, tmp_path)
    profile = load_profile(tmp_path / "profile.otf2")
    assert recorded(profile, operation="BCAST") == {(0, 1): (1000, 1)}
    assert recorded(profile, operation="SEND") == {(0, 1): (500, 1)}


def test_an_mpi_in_a_namespace_of_its_own(build: Build, tmp_path: Path) -> None:
    """The dynamic linker preloads nothing into a namespace that dlmopen creates.

    Even without ibprof, Open MPI cannot run in such a namespace, but MPICH can.
    """
    said = run_plugin(find(MPICH_SYSTEM), "namespace", build, tmp_path)
    assert "no process called MPI_Init through libibprof.so" in said
    assert "An MPI opened by dlmopen bypasses it" in said
    assert not (tmp_path / "profile.otf2").exists()


@pytest.mark.parametrize(
    ("name", "option", "line"),
    [
        (SYSTEM, "--app", ()),
        (SYSTEM, "-app", ()),
        ("5.0.11", "--app", ()),
        (MPICH_SYSTEM, "-configfile", ()),
        (MPICH_SYSTEM, "", OTHER_PRELOAD),
    ],
)
def test_options_of_launchers(name: str, option: str, line: tuple[str, ...], build: Build, tmp_path: Path) -> None:
    mpi = find(name)
    words = ["-n", str(RANKS), *line, str(build(mpi, "commands.c"))]
    if option:
        (tmp_path / "words").write_text(" ".join(words) + "\n")
        words = [option, "words"]
    done = run(tmp_path, mpi.program("mpirun"), *words)
    assert (done.returncode, done.stdout) == (0, f"done by {RANKS}\n"), done.stderr
    assert f"{RANKS} of {RANKS} ranks" in done.stderr
    assert recorded(load_profile(tmp_path / "profile.otf2"), operation="BCAST") == {(0, 1): (100, 1)}


def test_an_environment_that_the_command_empties(build: Build, tmp_path: Path) -> None:
    mpi = find(MPICH_SYSTEM)
    done = run(tmp_path, mpi.program("mpirun"), "-n", "1", "env", "-i", build(mpi, "commands.c"))
    assert (done.returncode, done.stdout) == (0, "done by 1\n")
    assert (
        "no process called MPI_Init through libibprof.so. Programs do not load this library after env -i" in done.stderr
    )


def test_another_preload_in_a_file_of_the_launcher(build: Build, tmp_path: Path) -> None:
    """Options in a file of `-configfile` have precedence over options of Hydra's command line."""
    mpi = find(MPICH_SYSTEM)
    (tmp_path / "words").write_text(f"-n 1 {' '.join(OTHER_PRELOAD)} {build(mpi, 'commands.c')}\n")
    done = run(tmp_path, mpi.program("mpirun"), "-configfile", "words")
    assert (done.returncode, done.stdout) == (0, "done by 1\n")
    assert "no process of this host loaded libibprof.so" in done.stderr
    assert "MPI_Init" not in done.stderr


def test_a_command_without_mpi(tmp_path: Path) -> None:
    assert "no process called MPI_Init through libibprof.so" in run(tmp_path, "sh", "-c", "true").stderr
