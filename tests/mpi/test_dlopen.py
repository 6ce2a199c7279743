# SPDX-License-Identifier: Apache-2.0
"""ibprof sees functions of MPI or libibverbs that programs find by dlsym. ibprof does not change other lookups."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.paths import ROOT

C_TESTS = ROOT / "csrc" / "tests"


def compile_c(output: Path, source: Path, *options: str) -> Path:
    output.parent.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = ["cc", "-Wall", "-D_GNU_SOURCE", f"-I{C_TESTS}", "-o", output, source, *options, "-ldl"]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
    return output


def mock_verbs(folder: Path) -> None:
    versions = f"-Wl,--version-script={C_TESTS / 'mock_verbs.map'}"
    compile_c(folder / "libibverbs.so.1", C_TESTS / "mock_verbs.c", "-shared", "-fPIC", versions)


def run(program: list[str | Path], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    recording = {
        "LD_PRELOAD": str(mpis.library()),
        "IBPROF_OUTPUT": str(folder / "recording"),
        "LD_LIBRARY_PATH": str(folder),
    }
    env = mpis.environment(recording | variables)
    return processes.run(program, env=env, timeout=60)


@pytest.mark.parametrize("by", ["dlsym", "dlvsym"])
@pytest.mark.parametrize("bound", ["lazily", "at once"])
def test_verbs(by: str, bound: str, tmp_path: Path) -> None:
    mock_verbs(tmp_path)
    option = "-Wl,-z,lazy" if bound == "lazily" else "-Wl,-z,now,-z,relro"
    program = compile_c(tmp_path / "program", mpis.PROGRAMS / "verbs_by_dlsym.c", option)
    done = run([program, by], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    profile = load_profile(tmp_path / "recording")
    assert profile.transfers.bytes.sum() == 12340
    assert profile.transfers.messages.sum() == 10
    assert {pair.remote_lid for pair in profile.pairs} == {77}


def test_a_program_without_mpi_that_posts_for_openshmem_is_said_to_be_one(tmp_path: Path) -> None:
    mock_verbs(tmp_path)
    shmem = compile_c(tmp_path / "liboshmem.so.40", Path("/dev/null"), "-x", "c", "-shared", "-fPIC")
    program = compile_c(tmp_path / "program", mpis.PROGRAMS / "verbs_by_dlsym.c")
    assert run([program, "dlsym"], tmp_path, LD_PRELOAD=f"{mpis.library()}:{shmem}").returncode == 0
    (process,) = load_profile(tmp_path / "recording").ranks
    (note,) = [each for each in process.notes if "SHMEM" in each]
    assert note.startswith("liboshmem is loaded: OpenSHMEM's puts, gets and atomics are counted only")


def test_who_asks_decides_what_is_found(tmp_path: Path) -> None:
    """dlsym with RTLD_NEXT, and dlopen of a library in the caller's folder, have the same results as without ibprof."""
    mock_verbs(tmp_path)
    source = mpis.PROGRAMS / "opens_library.c"
    compile_c(tmp_path / "own" / "libopened.so", source, "-shared", "-fPIC", "-DOPENED")
    inherit = ["-shared", "-fPIC", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/own"]
    library = compile_c(tmp_path / "libopener.so", source, *inherit)
    asks = f"import ctypes, sys; sys.exit(ctypes.CDLL('{library}', mode=ctypes.RTLD_GLOBAL).opens_library())"
    for preload in ("", str(mpis.library())):
        done = run([sys.executable, "-c", asks], tmp_path, LD_PRELOAD=preload)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", [mpis.SYSTEM, mpis.MPICH_SYSTEM])
def test_mpi(name: str, tmp_path: Path) -> None:
    """The program looks up each function in the library that it opened, as Julia's MPI.jl does."""
    mpi = mpis.find_mpi(name) if name == mpis.SYSTEM else mpis.find_mpich_like(name)
    needed = processes.run(["ldd", mpis_program(mpi, tmp_path)], check=True).stdout
    found = re.search(r"=> (\S*/libmpi(?:ch)?\.so\S*)", needed)
    assert found
    command: list[str | Path] = [sys.executable, mpis.PROGRAMS / "by_ctypes.py", found[1]]
    mpis.run_mpi(mpi, 2, command, recording=tmp_path / "recording", env=dict(mpis.THROUGH_NETWORK))
    profile = load_complete(tmp_path / "recording", 2)
    assert recorded(profile, operation="SEND") == {(0, 1): (5000, 1)}
    assert recorded(profile, operation="BCAST") == {(0, 1): (20000, 1)}


def mpis_program(mpi: mpis.Mpi, folder: Path) -> Path:
    """Return a program that is linked with this MPI's library."""
    return mpis.build(mpi, "threads.c", folder)


def test_nobody_else_is_in_the_way(tmp_path: Path) -> None:
    """If neither MPI nor libibverbs is loaded, a lookup works as without ibprof, and ibprof prints nothing."""
    done = run([sys.executable, "-c", "import ctypes; print(ctypes.CDLL(None).getpid())"], tmp_path, IBPROF_VERBOSE="5")
    assert done.stdout.strip().isdigit()
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "recording").exists()
