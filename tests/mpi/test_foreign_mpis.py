# SPDX-License-Identifier: Apache-2.0
"""ibprof reports unknown MPIs, and libraries that translate handles for an MPI. ibprof does no harm with them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import (
    MPICH_SYSTEM,
    PROGRAMS,
    STANDARD_ABI,
    SYSTEM,
    THROUGH_NETWORK,
    Build,
    Mpi,
    find_mpi,
    find_mpich_like,
    library,
)
from ibprof_testing.mpi.no_harm import check_no_harm, ibprof_lines

MOCK = PROGRAMS / "mock_mpi"
OPENS = "-DINNER={inner} -DHOW=RTLD_LOCAL|RTLD_DEEPBIND"
IS_LINKED = "-DINNER=NULL -DHOW=0 -Wl,--no-as-needed {path}"
REPLACES = "-DINNER={inner} -DHOW=RTLD_GLOBAL"
"""RTLD_GLOBAL, because Open MPI's components open the layer by MPI's file name, and need symbols of MPI's library."""
LAYERS = {
    "opens it": ("libtranslates.so", OPENS),
    "opens it, without PMPI names": ("libtranslates.so", f"{OPENS} -DWITHOUT_PMPI"),
    "takes its name": ("libmpi.so.40", REPLACES),
    "takes its name, without PMPI names": ("libmpi.so.40", f"{REPLACES} -DWITHOUT_PMPI"),
    "is linked with it": ("libtranslates.so", IS_LINKED),
    "has the name of the standard ABI": ("libmpi_abi.so.1", IS_LINKED),
    "is linked with it, without PMPI names": ("libtranslates.so", f"{IS_LINKED} -DWITHOUT_PMPI"),
}
"""Kind -> file name and options of a layer: a library that translates a program's handles for an MPI. Programs are
linked with the layer, or the linker finds the layer before MPI."""


def compile_c(*words: str | Path) -> None:
    command = ["cc", "-std=gnu11", f"-I{MOCK}", *words, "-ldl"]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr


def make_mock(folder: Path, name: str, *options: str) -> Path:
    """Compile a mock library and a program that is linked with it."""
    made = folder / name
    compile_c("-shared", "-fPIC", "-o", made, MOCK / "mock.c", *options, f"-Wl,-soname,{name}")
    program = folder / "program"
    compile_c("-o", program, MOCK / "program.c", made, f"-Wl,-rpath,{folder}", "-Wl,--allow-shlib-undefined")
    return program


@pytest.mark.parametrize("name", ["libmpi.so.7", "libmpich.so.12", "libown.so"])
@pytest.mark.parametrize("options", [[], ["-DWITHOUT_PMPI"], ["-DWITH_OBJECTS"]], ids=["pmpi", "no pmpi", "objects"])
def test_an_unknown_mpi_is_left_alone(name: str, options: list[str], tmp_path: Path) -> None:
    program = make_mock(tmp_path, name, *options)
    done = check_no_harm(find_mpi(SYSTEM), 2, [program], tmp_path / "recording")
    assert (done.returncode, done.stdout) == (0, "done by 1\ndone by 1\n")
    assert ibprof_lines(done.stderr) == ["ibprof: nothing is recorded: ibprof does not know this MPI (Mock MPI 1.0)"]
    assert not (tmp_path / "recording").exists()


def inner_library(build: Build, mpi: Mpi | None = None) -> str:
    program = build(mpi or find_mpi(SYSTEM), "threads.c", "-pthread")
    loads = processes.run(["ldd", program], check=True).stdout
    found = re.search(r"=> (\S*/libmpi(?:ch)?\.so\S*)", loads)
    assert found
    return found[1]


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_over_open_mpi(kind: str, build: Build, tmp_path: Path) -> None:
    """The program's handles are not Open MPI's handles. ibprof counts messages in Open MPI's function table, not at the
    program's calls."""
    path = inner_library(build)
    name, options = LAYERS[kind]
    program = make_mock(tmp_path, name, *options.format(inner=f'"{path}"', path=path).split())
    done = check_no_harm(find_mpi(SYSTEM), 2, [program], tmp_path / "recording")
    assert (done.returncode, done.stdout, ibprof_lines(done.stderr)) == (0, "done by 2\n", [])
    profile = load_complete(tmp_path / "recording", 2)
    assert recorded(profile, operation="BCAST") == {(0, 1): (1000, 1)}
    assert recorded(profile, operation="SEND") == {(0, 1): (500, 1)}
    assert recorded(profile, operation="IBCAST") == {(0, 1): (700, 1)}
    assert recorded(profile, operation="SEND_INIT") == {(0, 1): (900, 3)}
    notes = {note for rank in profile.ranks for note in rank.notes}
    assert any("one-sided" in note for note in notes), notes


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (MPICH_SYSTEM, "opens it"),
        (MPICH_SYSTEM, "is linked with it"),
        (MPICH_SYSTEM, "is linked with it, without PMPI names"),
        (mpis.MPICH_FROM_PYPI[0], "opens it, without PMPI names"),
        (mpis.MPICH_FROM_PYPI[1], "opens it"),
    ],
)
def test_a_layer_over_mpich(name: str, kind: str, build: Build, tmp_path: Path) -> None:
    """ibprof's sources need MPICH's handles, which the program does not pass, so the program is not recorded."""
    mpi = find_mpich_like(name)
    path = inner_library(build, mpi)
    soname, options = LAYERS[kind]
    program = make_mock(tmp_path, soname, "-DOF_MPICH", *options.format(inner=f'"{path}"', path=path).split())
    done = check_no_harm(mpi, 2, [program], tmp_path / "recording", variables=THROUGH_NETWORK)
    assert (done.returncode, done.stdout) == (0, "done by 2\n")
    assert ibprof_lines(done.stderr) == [
        "ibprof: nothing is recorded: the program calls its MPI (Mock MPI 1.0) through a library that translates "
        f"handles ({soname})"
    ]
    assert not (tmp_path / "recording").exists()


def test_what_is_linked_with_an_unknown_mpi_keeps_its_status(tmp_path: Path) -> None:
    """A preloaded program with an unknown MPI keeps its status and output. ibprof prints one line."""
    program = make_mock(tmp_path, "libmpi.so.7")
    environment = mpis.environment({"LD_PRELOAD": str(library()), "IBPROF_OUTPUT": str(tmp_path / "recording")})
    done = processes.run([program, "3"], env=environment)
    assert (done.returncode, done.stdout, len(ibprof_lines(done.stderr))) == (3, "done by 1\n", 1)


def test_the_standard_abi_without_pmpi_names(build: Build, tmp_path: Path) -> None:
    """The doctor examines MPICH 5's library of the standard ABI with changed PMPI names."""
    mpi = find_mpich_like(STANDARD_ABI)
    folder = mpi.folder.parent / "lib"
    shipped = (folder / "libmpi_abi.so.1").read_bytes()
    assert b"\0PMPI_Init\0" in shipped
    (tmp_path / "libmpi_abi.so.1").write_bytes(shipped.replace(b"\0PMPI_", b"\0XMPI_"))
    (tmp_path / "mpich").symlink_to(folder / "mpich")
    search = {"LD_LIBRARY_PATH": str(tmp_path)}
    program = build(mpi, "collectives.c")
    loads = processes.run(["ldd", program], env=search, check=True).stdout
    assert str(tmp_path) in loads
    command: list[str | Path] = [program, "blocking", "Bcast", "9600"]
    mpis.run_mpi(mpi, 2, command, recording=tmp_path / "recording", env=THROUGH_NETWORK | search)
    profile = load_complete(tmp_path / "recording", 2)
    assert recorded(profile, operation="BCAST") == {(0, 1): (9600, 1)}


def doctor(program: Path, folder: Path) -> dict[str, dict[str, object]]:
    """Return subject -> finding of `ibprof doctor`; the last finding if a subject has several."""
    words: list[str | Path] = [sys.executable, "-m", "ibprof", "doctor", "--json", "--", program]
    environment = mpis.environment()
    done = processes.run(words, cwd=folder, env=environment)
    return {finding["about"]: finding for finding in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize("name", ["libmpi.so.7", "libown.so"])
def test_doctor_names_an_unknown_mpi(name: str, tmp_path: Path) -> None:
    found = doctor(make_mock(tmp_path, name), tmp_path)
    assert name in str(found["MPI"]["text"])
    assert found["source"]["good"] is False
    assert str(found["source"]["text"]).startswith("nothing is recorded: ibprof does not know this MPI (Mock MPI 1.0)")


def test_doctor_names_a_layer(build: Build, tmp_path: Path) -> None:
    options = REPLACES.format(inner=f'"{inner_library(build)}"').split()
    found = doctor(make_mock(tmp_path, "libmpi.so.40", *options), tmp_path)
    assert str(found["MPI"]["text"]).endswith("through a library that translates handles")
    assert str(found["source"]["text"]).startswith("openmpi: a trial with a single process was recorded")
    assert "one-sided and partitioned calls are not counted" in str(found["unseen"]["text"])
