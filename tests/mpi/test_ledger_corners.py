# SPDX-License-Identifier: Apache-2.0
"""ibprof reports no missing bytes for complete operations: special cases of calls, coll/han, inter-communicators."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ibprof.profile.profile_data import Profile
from ibprof.profile.unaccounted import UNATTRIBUTED, describe_uncompared, find_unaccounted
from ibprof_testing.lab import hosts as lab
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, operations_sent, recorded
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, Mpi, run_mpi

RANKS = 5
STYLES = ("blocking", "nonblocking", "persistent")
OF_STYLE = {"blocking": "ALLTOALLW", "nonblocking": "IALLTOALLW", "persistent": "ALLTOALLW_INIT"}
PROGRAMS = ("ledger_corners.c", "intercomms.c", "collectives.c")

# Cases of MPICH, except two of MPICH 4.0.2 that end with "Invalid communicator" even without ibprof.
OF_MPICH = [
    (name, program, style)
    for name in mpis.MPICH_LIKE
    if name != mpis.INTEL
    for program in PROGRAMS
    for style in STYLES
    if (name, style) != (mpis.MPICH_SYSTEM, "persistent") or program == "ledger_corners.c"
]


def is_quick(name: str, program: str, style: str) -> bool:
    """Return whether the short form runs a case: most cases of one MPICH, and one style for each other MPICH."""
    if name == mpis.MPICH_FROM_PYPI[-1]:
        return program != "collectives.c" or style == "nonblocking"  # the program's longest style
    turns = (mpis.STANDARD_ABI, mpis.MPICH_FROM_PYPI[0], mpis.MPICH_SYSTEM)
    return program == "ledger_corners.c" and (style, name) in zip(STYLES, turns, strict=True)


def count_ranks(mpi: Mpi) -> int:
    """Return `RANKS`, or fewer for MPICH 4.0, whose waiting ranks neither sleep nor yield cores."""
    return 3 if mpi.name == mpis.MPICH_SYSTEM else RANKS


def check_compared(run: Profile, operation: str) -> None:
    """Check that calls of `operation` requested bytes, and that the recording lacks no bytes."""
    assert describe_uncompared(run) is None
    asked = run.demands.bytes[run.demands.operation == run.operations.index(operation)]
    assert asked.sum() > 0
    assert find_unaccounted(run) == []


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("setting", ["", "coll=^tuned", "coll_han_priority=100", "coll_adapt_priority=100"])
def test_corners_of_calls(setting: str, style: str, mpi: Mpi, build: Build, tmp_path: Path) -> None:
    name, _, value = setting.partition("=")
    mca = {name: value} if name else {}
    run_mpi(mpi, RANKS, [build(mpi, "ledger_corners.c"), style], recording=tmp_path / "rec", mca=mca)
    run = load_complete(tmp_path / "rec", RANKS)
    check_compared(run, OF_STYLE[style])
    # coll/adapt implements blocking calls by nonblocking calls with tags of coll/adapt.
    assert UNATTRIBUTED not in operations_sent(run)


@pytest.mark.parametrize(
    ("name", "program", "style"),
    [pytest.param(*case, marks=[] if is_quick(*case) else pytest.mark.full) for case in OF_MPICH],
)
def test_corners_of_calls_of_mpich(name: str, program: str, style: str, build: Build, tmp_path: Path) -> None:
    mpi = mpis.find_mpich_like(name)
    ranks = count_ranks(mpi)
    run_mpi(mpi, ranks, [build(mpi, program), style], recording=tmp_path / "rec", env=THROUGH_NETWORK)
    run = load_complete(tmp_path / "rec", ranks)
    assert all(rank.sees_host for rank in run.ranks)
    check_compared(run, {"blocking": "BCAST", "nonblocking": "IBCAST", "persistent": "BCAST_INIT"}[style])


FORTRAN_ITEMS = 3000
"""Number of items in programs/ledger_corners.f90, with four bytes each."""


@pytest.mark.parametrize(
    ("name", "interface"),
    [
        *((mpis.SYSTEM, interface) for interface in ("HEADER", "MODULE", "F08")),
        *((mpis.MPICH_SYSTEM, interface) for interface in ("HEADER", "F08")),
        pytest.param(mpis.MPICH_SYSTEM, "MODULE", marks=pytest.mark.full),
    ],
)
def test_corners_of_calls_of_fortran(interface: str, name: str, build: Build, tmp_path: Path) -> None:
    """Fortran's MPI_IN_PLACE and handles differ from C's."""
    mpi = mpis.find_mpi(name) if name in mpis.NAMES else mpis.find_mpich_like(name)
    program = build(mpi, "ledger_corners.f90", "-cpp", "-w", "-fallow-argument-mismatch", f"-D{interface}")
    ranks = count_ranks(mpi)
    run_mpi(mpi, ranks, [program], recording=tmp_path / "rec", env=THROUGH_NETWORK if mpi.is_mpich_like else None)
    run = load_complete(tmp_path / "rec", ranks)
    for operation in ("ALLTOALLW", "IALLTOALLW", "ALLGATHERV", "REDUCE_SCATTER", "SCATTERV"):
        check_compared(run, operation)
    each = (FORTRAN_ITEMS * 4, 1)
    ring = {(rank, (rank + 1) % ranks): each for rank in range(ranks)}
    assert recorded(run, operation="SENDRECV") == ring
    assert recorded(run, operation="PUT") == ring
    graph = ring | {(rank, (rank + 2) % ranks): each for rank in range(ranks)}
    assert recorded(run, operation="NEIGHBOR_ALLGATHER") == graph


IN_MEMORY = {f"coll_han_{call}_low_module": 1 for call in ("bcast", "reduce", "allreduce")}
"""Settings of coll/han that use coll/sm within hosts."""


def test_collectives_by_levels_of_hosts(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """coll/han sends within hosts and between hosts. With coll/sm, ibprof reports the bytes within hosts as missing.

    Even without ibprof, coll/han crashes if collectives.c makes all its calls.
    """
    folders = [str(Path(sys.executable).parent), str(system_mpi.folder), os.environ["PATH"]]
    around = mpis.environment({"PATH": ":".join(folders)})
    (tmp_path / "lab").mkdir()
    with lab.up(2, tmp_path / "lab") as hosts:

        def record(name: str, *words: str, **parameters: object) -> tuple[Profile, str]:
            folder = tmp_path / f"{name} {len(parameters)}"
            folder.mkdir()
            launch = [str(system_mpi.program("mpirun")), "-n", "4", *hosts.over_tcp(2, **parameters)]
            command = ["ibprof", "run", "--", *launch, str(build(system_mpi, name)), "blocking", *words]
            done = hosts.run("node1", command, around, folder)
            assert done.returncode == 0, done.stderr
            return load_complete(folder / "profile.otf2", 4), done.stderr

        for name, words in (("ledger_corners.c", ()), ("collectives.c", ("all", "100000"))):
            run, said = record(name, *words, coll_han_priority=100)
            assert "fewer bytes were seen" not in said
            check_compared(run, "ALLTOALLW")
        run, said = record("collectives.c", "all", "100000", coll_han_priority=100, coll_sm_priority=50, **IN_MEMORY)
    found = find_unaccounted(run)
    assert {"BCAST", "REDUCE", "ALLREDUCE"} <= {each.operation for each in found}
    assert all(each.on_host for each in found)
    assert said.splitlines()[-1].endswith("the rest stayed on hosts: MPI moved it through memory (as coll/sm does)")
