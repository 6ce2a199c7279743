# SPDX-License-Identifier: Apache-2.0
"""Wheels for old systems and other processors have the right tags. The AArch64 libraries run in an emulator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.communication_matrix import build_matrix
from ibprof_testing import processes
from ibprof_testing.machine import find_program
from ibprof_testing.mpi.mpis import MPICH, THROUGH_NETWORK, find_mpich_like
from ibprof_testing.paths import ROOT

pytestmark = pytest.mark.full

MACHINES = ("x86_64", "aarch64")

# Loads a library and calls one of its functions.
PROGRAM = """
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
int main(int count, char **names)
{
    (void)count;
    void *kernels = dlopen(names[1], RTLD_NOW), *otf2 = dlopen(names[2], RTLD_NOW), *lines = dlopen(names[3], RTLD_NOW);
    if (!kernels || !otf2 || !lines || !dlsym(lines, "ibp_find_lines")) return fprintf(stderr, "%s\\n", dlerror()), 1;
    void (*sum)(const uint64_t *, size_t, uint64_t *);
    const char *(*describe)(int);
    *(void **)&sum = dlsym(kernels, "ibp_sum");
    *(void **)&describe = dlsym(otf2, "OTF2_Error_GetDescription");
    uint64_t values[] = {UINT64_MAX, 2, 40}, result[2];
    sum(values, 3, result);
    return printf("%d %d %s\\n", (int)result[1], (int)result[0], describe(0)) < 0;
}
"""

# Each rank sends seven messages to the next rank.
RING = """
#include <mpi.h>
int main(int count, char **names)
{
    static char out[1000], in[1000];
    int rank, size;
    MPI_Init(&count, &names);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int k = 0; k < 7; k++)
        MPI_Sendrecv(out, 1000, MPI_BYTE, (rank + 1) % size, 0, in, 1000, MPI_BYTE, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Finalize();
}
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if built := os.environ.get("IBPROF_TEST_WHEELS"):
        return Path(built)
    folder = tmp_path_factory.mktemp("wheels")
    subprocess.run(["scripts/make-wheels.sh", folder], cwd=ROOT, check=True)
    return folder


@pytest.mark.parametrize("machine", MACHINES)
def test_the_tag_is_that_of_any_linux_since_2012(machine: str, wheels: Path) -> None:
    (wheel,) = wheels.glob(f"ibprof-*_{machine}.whl")
    assert wheel.name.endswith(f"-py3-none-manylinux2014_{machine}.manylinux_2_17_{machine}.whl")
    shown = subprocess.run(
        [ROOT / ".venv-wheels/bin/auditwheel", "show", wheel], capture_output=True, text=True, check=True
    )
    assert f'"manylinux_2_17_{machine}"' in shown.stdout


@pytest.mark.parametrize(("machine", "name"), [("x86_64", "amd64"), ("aarch64", "arm64")])
def test_a_debian_package_needs_what_the_wheel_needs(machine: str, name: str, wheels: Path, tmp_path: Path) -> None:
    (wheel,) = wheels.glob(f"ibprof-*_{machine}.whl")
    subprocess.run(["scripts/make-deb.sh", wheel, tmp_path], cwd=ROOT, check=True, umask=0o077)
    (package,) = tmp_path.glob(f"ibprof_*_{name}.deb")
    listed = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
    assert {line[7:10] for line in listed.splitlines()} == {"r--", "r-x"}, "all users can read its files"
    depends = subprocess.run(
        ["dpkg-deb", "--field", package, "Depends"], capture_output=True, text=True, check=True
    ).stdout
    given = dict(re.findall(r"python3-(\w+) \(>= (?:1:)?([\d.]+)\)", depends))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    dependencies = project.partition("\ndependencies = [")[2].partition("\n]")[0]
    needed = dict(re.findall(r'"(\w+)>=([\d.]+)"', dependencies))
    assert {"pyyaml" if each == "yaml" else each: least for each, least in given.items()} == needed
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path / "root"], check=True)
    packages = tmp_path / "root" / "usr" / "lib" / "python3" / "dist-packages"
    variables = os.environ | {"PYTHONPATH": str(packages)}
    command = [Path(sys.executable), tmp_path / "root" / "usr" / "bin" / "ibprof", Path("lib")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=variables)
    assert shown.stdout == f"{packages}/ibprof/lib/libibprof.so\n"


@pytest.fixture
def library(wheels: Path, tmp_path: Path) -> Path:
    """Return the folder with the unpacked libraries for AArch64."""
    (wheel,) = wheels.glob("ibprof-*_aarch64.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    return tmp_path / "ibprof" / "lib"


def build_for_aarch64(program: Path, text: str, *options: str | Path) -> None:
    source = program.with_suffix(".c")
    source.write_text(text)
    compiler = [str(ROOT / ".venv-wheels/bin/python"), "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.2.28"]
    subprocess.run([*compiler, "-g", "-o", program, source, *options], check=True)


def emulate(**variables: str | Path) -> list[str]:
    """Return the first words of a command that runs an AArch64 program with these variables."""
    given = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
    return [str(find_program("qemu-aarch64", package="qemu-user")), "-L", "/usr/aarch64-linux-gnu", *given]


def test_libraries_for_aarch64_run_in_an_emulator(library: Path, tmp_path: Path) -> None:
    build_for_aarch64(tmp_path / "call", PROGRAM, "-ldl")
    names = [library / name for name in ("libibprof_kernels.so", "libibprof_otf2.so", "libibprof_lines.so")]
    # Preloaded as in a job, the library must not change the program.
    command: list[str | Path] = [*emulate(LD_PRELOAD=library / "libibprof.so"), tmp_path / "call", *names]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (shown.stdout, shown.stderr) == ("1 41 Success\n", "")


def test_ranks_for_aarch64_are_recorded_in_an_emulator(library: Path, tmp_path: Path) -> None:
    """This machine's launcher starts emulated ranks: Hydra and a rank exchange only lines of text."""
    pip = [str(ROOT / ".venv-wheels/bin/pip"), "download", "--quiet", "--only-binary", ":all:", "--no-deps"]
    chosen = ["--platform", "manylinux_2_28_aarch64", f"mpich=={MPICH}"]
    subprocess.run([*pip, *chosen], cwd=tmp_path, check=True)
    (wheel,) = tmp_path.glob("mpich-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "mpich")
    (installed,) = (tmp_path / "mpich").glob("*.data/data")
    include, libraries = f"-I{installed / 'include'}", installed / "lib"
    # Libraries that MPICH needs are in the wheel, where the program's linker does not search.
    build_for_aarch64(tmp_path / "ring", RING, include, f"-L{libraries}", "-lmpi", "-Wl,--allow-shlib-undefined")
    output = tmp_path / "ring.ibprof"
    variables = THROUGH_NETWORK | {"LD_LIBRARY_PATH": libraries, "LD_PRELOAD": library / "libibprof.so"}
    launcher = find_mpich_like(f"mpich-{MPICH}").program("mpiexec")
    command = [str(launcher), "-n", "3", *emulate(**variables, IBPROF_OUTPUT=output), "./ring"]
    processes.run(command, cwd=tmp_path, check=True)
    assert list(build_matrix(load_profile(output)).rows()) == [
        ("0", "1", 7000, 7),
        ("1", "2", 7000, 7),
        ("2", "0", 7000, 7),
    ]
