# SPDX-License-Identifier: Apache-2.0
"""Run a command with and without ibprof, under the same conditions. ibprof may add one line to stderr."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ibprof.profile.profile_data import Profile
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.mpis import Mpi, environment, library

MPICH = "mpich"
EVERY_MPI = (*mpis.NAMES, MPICH)
FAMILIES = (mpis.SYSTEM, "5.0.11", MPICH)
"""One MPI of each family: Open MPI 4, Open MPI 5, MPICH."""

Words = Sequence[str | Path]


def every_mpi_but_quick(*quick: str) -> list[object]:
    """Return all MPIs as pytest parameters. The short form of the tests has only the MPIs in `quick`."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.full) for name in EVERY_MPI]


def families_by_turns(values: Iterable[object]) -> list[object]:
    """Return pytest parameters (MPI, value) for tests that depend more on the value than on the MPI.

    In the short form of the tests, each value is tested with one family, in turn. In the long form, each value is
    tested with every MPI.
    """
    return [
        pytest.param(name, value, marks=[] if name == FAMILIES[number % len(FAMILIES)] else pytest.mark.full)
        for number, value in enumerate(values)
        for name in EVERY_MPI
    ]


def find_any(name: str) -> Mpi:
    """Find an MPI of any family."""
    return mpis.find_mpich() if name == MPICH else mpis.find_mpi(name)


def preload(*libraries: Path) -> dict[str, str]:
    """Return the environment variables that preload libraries, in this order."""
    return {"LD_PRELOAD": ":".join(map(str, libraries))}


def launch(
    mpi: Mpi,
    ranks: int,
    command: Words,
    variables: Mapping[str, str],
    *,
    within: Words = (),
    around: Words = (),
    cwd: Path | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a command on `ranks` ranks. Only the ranks get `variables`, not the launcher.

    Args:
        within: command that starts each rank, such as a shell with limits.
        around: command that starts the launcher, for example as another user.
    """
    settings = ["env", *(f"{name}={value}" for name, value in variables.items())]
    line = [*around, mpi.program("mpirun"), "-n", str(ranks), *within, *settings, *command]
    # A launcher of Open MPI can remove the folders of another launcher in the same parent folder.
    with TemporaryDirectory(prefix="ibp") as own:
        session = {"OMPI_MCA_orte_tmpdir_base": own, "PRTE_MCA_prte_tmpdir_base": own} if not around else {}
        return processes.run(line, env=environment(session), cwd=cwd, timeout=timeout)


def check_no_harm(
    mpi: Mpi,
    ranks: int,
    command: Words,
    output: Path,
    *,
    libraries: Sequence[Path] = (),
    others: Sequence[Path] = (),
    variables: Mapping[str, str] | None = None,
    within: Words = (),
    around: Words = (),
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command with ibprof and without it, and compare output, status and messages.

    Args:
        output: folder to record into.
        libraries: libraries that are preloaded in the run with ibprof; by default ibprof's library alone.
        others: libraries that are preloaded in the run without ibprof.

    Returns:
        The run with ibprof.
    """
    recording = preload(*(libraries or [library()])) | {"IBPROF_OUTPUT": str(output)}
    theirs = preload(*others) if others else {}
    given = dict(variables or {})
    bare = launch(mpi, ranks, command, given | theirs, within=within, around=around, cwd=cwd)
    recorded = launch(mpi, ranks, command, given | recording, within=within, around=around, cwd=cwd)
    printed = ibprof_lines(recorded.stderr)
    said = recorded.stderr + bare.stderr
    assert (recorded.returncode, recorded.stdout) == (bare.returncode, bare.stdout), said
    assert _comparable(recorded.stderr) == _comparable(bare.stderr)
    assert len(printed) <= 1, printed
    return recorded


def ibprof_lines(stderr: str) -> list[str]:
    """Return the lines of ibprof's messages."""
    return [line for line in stderr.splitlines() if line.startswith("ibprof: ")]


def _comparable(stderr: str) -> list[str]:
    """Return the sorted words of all lines except ibprof's, without numbers.

    Numbers, and the order in which ranks print, differ between runs.
    """
    others = [line for line in stderr.splitlines() if line.strip() and not line.startswith("ibprof: ")]
    return sorted(re.sub(r"0x[0-9a-f]+|[0-9]+", "N", " ".join(others)).split())


def check_complete(profile: Profile, ranks: int) -> None:
    """Check that all ranks were recorded, reached MPI_Finalize and lost no bytes."""
    assert [rank.rank for rank in profile.ranks] == list(range(ranks))
    assert all(rank.finalized and not rank.lost_bytes for rank in profile.ranks)
