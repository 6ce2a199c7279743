# SPDX-License-Identifier: Apache-2.0
"""If a program leaves a call by longjmp or an exception, later messages are not counted under this call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from ibprof.load import load_profile
from ibprof.profile.profile_data import Kind
from ibprof_testing.mpi.matrices import Matrix, operations_sent, recorded
from ibprof_testing.mpi.mpis import Build
from ibprof_testing.mpi.no_harm import FAMILIES, check_complete, check_no_harm, every_mpi_but_quick, find_any

RANKS = 5
VARIABLES = {"IBPROF_INTRANODE": "1", "MPIR_CVAR_NOLOCAL": "1"}
Returned = tuple[str, dict[str, Matrix]]
EXITS = ("left", "signalled", "threaded")


def sent(folder: Path) -> dict[str, Matrix]:
    """Return each operation's messages, including control messages."""
    profile = load_profile(folder)
    check_complete(profile, RANKS)
    return {name: recorded(profile, operation=name, kinds=Kind) for name in operations_sent(profile)}


@pytest.fixture(scope="module")
def returned(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Returned]:
    """Return a function that runs a program with invalid calls and returns the output and messages."""

    @functools.cache
    def run(source: str, name: str) -> Returned:
        folder, mpi = tmp_path_factory.mktemp("returned"), find_any(name)
        program = build(mpi, source, "-pthread")
        done = check_no_harm(mpi, RANKS, [program, "returned"], folder, variables=VARIABLES)
        return done.stdout, sent(folder)

    return run


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
@pytest.mark.parametrize(
    ("source", "how"), [*(("non_local_exits.c", exit_) for exit_ in EXITS), ("non_local_exits.cpp", "left")], ids=str
)
def test_what_follows_is_named_after_its_own_call(
    source: str, how: str, name: str, build: Build, returned: Callable[[str, str], Returned], tmp_path: Path
) -> None:
    """The expected messages are from another run, where the same invalid calls return errors."""
    mpi = find_any(name)
    program = build(mpi, source, "-pthread")
    left = check_no_harm(mpi, RANKS, [program, how], tmp_path / "left", variables=VARIABLES)
    stdout, expected = returned(source, name)
    assert (left.stdout, left.returncode) == (stdout, 0)
    assert left.stdout.startswith("11 left")
    assert {"ALLREDUCE", "ALLGATHER", "SCAN", "SEND", "ISEND", "SEND_INIT"} <= set(expected)
    assert sent(tmp_path / "left") == expected


@pytest.mark.parametrize("name", every_mpi_but_quick(*FAMILIES))
def test_error_handlers_hear_of_the_programs_own_errors_alone(name: str, build: Build, tmp_path: Path) -> None:
    """An invalid call sends nothing. In MPICH, an invalid call returns success if the error handler returns."""
    mpi = find_any(name)
    done = check_no_harm(mpi, RANKS, [build(mpi, "wrong_arguments.c")], tmp_path)
    assert done.stdout.count("MPI_") > 42
    profile = load_profile(tmp_path)
    check_complete(profile, RANKS)
    assert not {"PUT", "GET", "ACCUMULATE"} & operations_sent(profile)
