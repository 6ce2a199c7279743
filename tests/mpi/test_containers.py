# SPDX-License-Identifier: Apache-2.0
"""Ranks in containers are recorded: the launcher is in the container, or each rank is in a separate container.

Charliecloud needs no service: an image is a folder with a program and its libraries. Debian has no Apptainer.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ibprof_testing import processes
from ibprof_testing.machine import find_program
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, recorded
from ibprof_testing.mpi.mpis import Build, environment, library
from ibprof_testing.mpi.patterns import ring

RANKS = 3
SENT = 1500  # bytes that a rank of programs/copied.c sends to the next rank, with the argument `end`


def make_image(folder: Path, programs: Sequence[str | Path], mounts: Sequence[Path]) -> Path:
    """Make a folder with the programs, their libraries, and empty folders as mount points."""
    for program in programs:
        needed = re.findall(r"(/\S+)", processes.run(["ldd", program], check=True).stdout)
        for name in (str(program), *(each.rstrip(":") for each in needed)):
            target = folder / name.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(name).resolve(), target)
    for mount in (*mounts, Path("/dev"), Path("/proc"), Path("/sys"), Path("/tmp"), Path("/etc")):
        (folder / mount.relative_to("/")).mkdir(parents=True, exist_ok=True)
    for name in ("passwd", "group", "hosts", "resolv.conf"):  # the container mounts these files of the machine
        (folder / "etc" / name).touch()
    return folder


@pytest.mark.full
@pytest.mark.parametrize("launcher", ["inside", "outside"])
def test_ranks_in_a_container_are_recorded(launcher: str, build: Build, tmp_path: Path) -> None:
    run_in = find_program("ch-run", package="charliecloud")
    mpi = mpis.find_mpich_like(mpis.MPICH_SYSTEM)
    program = build(mpi, "copied.c")
    tools = [find_program(name, package="mpich") for name in ("mpiexec.hydra", "hydra_pmi_proxy")]
    shared = [library().parent, tmp_path / "job"]
    shared[1].mkdir()
    image = make_image(tmp_path / "image", [program, *tools, "/bin/sh"], shared)
    binds = [word for path in shared for word in ("-b", f"{path}:{path}")]
    contained: list[str | Path] = [run_in, "-w", *binds, "-c", str(shared[1]), str(image), "--"]
    start: list[str | Path] = [tools[0], "-n", str(RANKS)]
    work: list[str | Path] = [program, "end"]
    line: list[str | Path]
    variables = environment(mpis.THROUGH_NETWORK) | {"USER": "root"}
    if launcher == "inside":
        variables |= {"LD_PRELOAD": str(library()), "IBPROF_OUTPUT": "profile.ibprof"}
        line = [*contained, *start, *work]
    else:
        variables["UCX_TLS"] = "tcp,self"  # ranks in separate containers have no shared memory
        line = [sys.executable, "-m", "ibprof", "run", "--", *start, *contained, *work]
    done = processes.run(line, env=variables, cwd=shared[1])
    assert done.returncode == 0, done.stderr
    profile = load_complete(shared[1] / "profile.ibprof", RANKS)
    assert {pair: size for pair, (size, _) in recorded(profile, operation="SENDRECV").items()} == dict.fromkeys(
        ring(RANKS), SENT
    )
