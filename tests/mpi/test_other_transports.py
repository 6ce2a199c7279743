# SPDX-License-Identifier: Apache-2.0
"""The recording and all outputs name the libraries that move data without MPI's messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.missing_data import describe_gaps
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import FROM_PYPI, MPICH_SYSTEM, SYSTEM, THROUGH_NETWORK, Build

RANKS = 2
MEANINGS = {
    "libhcoll.so.1": "libhcoll is loaded: collectives may bypass",
    "libucc.so.1": "libucc is loaded: collectives may bypass",
    "libnccl.so.2": "libnccl is loaded: this library sends without MPI",
    "librccl.so.1": "librccl is loaded: this library sends without MPI",
    "libsharp_coll.so.5": "libsharp_coll is loaded: switches may reduce data (SHARP); ibprof counts",
    "libsharp.so.5": "libsharp is loaded: switches may reduce data (SHARP); ibprof counts",
    "liboshmem.so.40": "liboshmem is loaded: OpenSHMEM's puts, gets and atomics are counted only if they are "
    "posted by verbs, and by port, not by PE",
    "libsma.so.1": "libsma is loaded: OpenSHMEM's puts, gets and atomics are counted only if they are "
    "posted by verbs, and by port, not by PE",
}


def mock(folder: Path, *names: str) -> str:
    """Create empty libraries with these names; return the value of LD_PRELOAD that loads them."""
    for name in names:
        command: list[str | Path] = [
            "cc",
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{name}",
            "-o",
            folder / name,
            "-x",
            "c",
            "/dev/null",
        ]
        subprocess.run(command, check=True)
    return ":".join(str(folder / name) for name in names)


def run(folder: Path, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ibprof", *words]
    return processes.run(command, cwd=folder, env=mpis.environment({**THROUGH_NETWORK, **variables}), timeout=120)


@pytest.mark.parametrize("name", [SYSTEM, FROM_PYPI[-1], MPICH_SYSTEM])
def test_all_are_named(name: str, build: Build, tmp_path: Path) -> None:
    mpi = mpis.find_mpich_like(name) if name == MPICH_SYSTEM else mpis.find_mpi(name)
    # NCCL's plug-ins and UCX have similar names, but are other libraries.
    loaded = mock(tmp_path, *MEANINGS, "libnccl-net.so", "libucc_other.so.1")
    program = build(mpi, "collectives.c")
    command = (mpi.program("mpirun"), "-n", str(RANKS), program, "blocking", "Bcast", "1000")
    done = run(tmp_path, "run", "--", *command, LD_PRELOAD=loaded)
    assert done.returncode == 0, done.stderr
    profile = load_profile(tmp_path / "profile.otf2")
    for rank in profile.ranks:
        named = [note for note in rank.notes if " is loaded: " in note]
        assert len(named) == len(MEANINGS)
        assert all(any(note.startswith(said) for note in named) for said in MEANINGS.values())
    for said in MEANINGS.values():
        assert f"ibprof: rank 0-1: {said}" in done.stderr
        assert any(f"rank 0-1: {said}" in sentence for sentence in describe_gaps(profile))


def test_none_is_named_where_none_is_loaded(build: Build, tmp_path: Path) -> None:
    mpi = mpis.find_mpi(SYSTEM)
    program = build(mpi, "collectives.c")
    done = run(tmp_path, "run", "--", mpi.program("mpirun"), "-n", str(RANKS), program, "blocking", "Bcast", "1000")
    assert " is loaded: " not in done.stderr


def test_an_openshmem_program_that_posts_nothing_by_verbs_is_said_to_be_one(tmp_path: Path) -> None:
    mock(tmp_path, "liboshmem.so.40")
    program = tmp_path / "program"
    (tmp_path / "program.c").write_text("int main(void) { return 0; }\n")
    link: list[str | Path] = ["-Wl,--no-as-needed", tmp_path / "liboshmem.so.40", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["cc", "-o", program, tmp_path / "program.c", *link], check=True)
    for command in ([program], [mpis.find_mpi(SYSTEM).program("mpirun"), "-n", "2", program]):
        done = run(tmp_path, "run", "--", *command)
        assert (
            "ibprof: an OpenSHMEM program: its puts, gets and atomics are recorded only if they are posted by verbs"
            in done.stderr
        )
    assert (
        "SHMEM      liboshmem.so.40: puts, gets and atomics are counted"
        in run(tmp_path, "doctor", "--", program).stdout
    )
