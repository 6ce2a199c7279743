# SPDX-License-Identifier: Apache-2.0
"""Wheels for old systems and other processors: their tags hold, and the libraries for AArch64 run in an emulator."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from ibprof_testing.machine import find_program
from ibprof_testing.paths import ROOT

pytestmark = pytest.mark.full

MACHINES = ("x86_64", "aarch64")

# Loads a library, and calls a function of it.
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


def test_libraries_for_aarch64_run_in_an_emulator(wheels: Path, tmp_path: Path) -> None:
    emulator = find_program("qemu-aarch64", package="qemu-user")
    (wheel,) = wheels.glob("ibprof-*_aarch64.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "call.c").write_text(PROGRAM)
    target = ["-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.2.17"]
    subprocess.run(
        [ROOT / ".venv-wheels/bin/python", *target, "-o", "call", "call.c", "-ldl"], cwd=tmp_path, check=True
    )
    library = tmp_path / "ibprof" / "lib"
    names = [library / name for name in ("libibprof_kernels.so", "libibprof_otf2.so", "libibprof_lines.so")]
    # Preloaded as in a job: the program must run as it does without.
    command = [emulator, "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_PRELOAD={library}/libibprof.so"]
    shown = subprocess.run([*command, tmp_path / "call", *names], capture_output=True, text=True, check=True)
    assert (shown.stdout, shown.stderr) == ("1 41 Success\n", "")
