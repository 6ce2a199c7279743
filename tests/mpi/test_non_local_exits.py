# SPDX-License-Identifier: Apache-2.0
"""Calls that a program leaves by longjmp or by an exception: what follows is not theirs, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.profile_data import Kind
from ibprof_testing.mpi.matrices import Matrix, operations_sent, recorded
from ibprof_testing.mpi.mpis import Build
from ibprof_testing.mpi.no_harm import FAMILIES, check_complete, check_no_harm, every_mpi_but_quick, find_any

RANKS = 5
EXITS = ("left", "signalled", "threaded")


def sent(folder: Path) -> dict[str, Matrix]:
    """Return what each operation sent, control messages too."""
    profile = load_profile(folder)
    check_complete(profile, RANKS)
    return {name: recorded(profile, operation=name, kinds=Kind) for name in operations_sent(profile)}


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
@pytest.mark.parametrize(
    ("source", "how"), [*(("non_local_exits.c", exit_) for exit_ in EXITS), ("non_local_exits.cpp", "left")], ids=str
)
def test_what_follows_is_named_after_its_own_call(
    source: str, how: str, name: str, build: Build, tmp_path: Path
) -> None:
    """The same calls with the same wrong arguments, but told by a status, are the measure."""
    mpi = find_any(name)
    program = build(mpi, source, "-pthread")
    variables = {"IBPROF_INTRANODE": "1", "MPIR_CVAR_NOLOCAL": "1"}
    returned = check_no_harm(mpi, RANKS, [program, "returned"], tmp_path / "returned", variables=variables)
    left = check_no_harm(mpi, RANKS, [program, how], tmp_path / "left", variables=variables)
    assert (left.stdout, left.returncode) == (returned.stdout, 0)
    assert left.stdout.startswith("11 left")
    expected = sent(tmp_path / "returned")
    assert {"ALLREDUCE", "ALLGATHER", "SCAN", "SEND", "ISEND"} <= set(expected)
    assert sent(tmp_path / "left") == expected


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_error_handlers_hear_of_the_programs_own_errors_alone(name: str, build: Build, tmp_path: Path) -> None:
    """A wrong call moves nothing, also where it says that it succeeded, as in MPICH when a handler returns."""
    mpi = find_any(name)
    done = check_no_harm(mpi, RANKS, [build(mpi, "wrong_arguments.c")], tmp_path)
    assert done.stdout.count("MPI_") > 42
    profile = load_profile(tmp_path)
    check_complete(profile, RANKS)
    assert not {"PUT", "GET", "ACCUMULATE"} & operations_sent(profile)
