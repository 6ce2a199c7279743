# SPDX-License-Identifier: Apache-2.0
"""Bytes of nonblocking collectives are counted under their calls, also on inter-communicators and freed communicators.

The expected messages are from a run that completes each call at once. In the long form, each call is also run alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ibprof.profile.profile_data import Profile
from ibprof.profile.unaccounted import UNATTRIBUTED
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import Matrix, load_complete, operations_sent, recorded
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, Mpi, run_mpi

RANKS = 5
CALLS = ("Iallreduce", "Ibcast", "Iallgather", "Ireduce_scatter_block", "Ialltoall")
PERSISTENT = ("Iallreduce", "Bcast_init", "Iscan", "Allreduce_init", "Ibcast")
MADE = ("Iallreduce", "Ibcast", "Iscan", "Iallgather", "Ialltoall")
MAKES = ("COMM_", "INTERCOMM_", "CART_", "DIST_GRAPH_", "WIN_", "FILE_")
"""Prefixes of operations that create or free objects."""


def by_operation(run: Profile) -> dict[str, Matrix]:
    matrices = {name: recorded(run, operation=name) for name in operations_sent(run) if not name.startswith(MAKES)}
    return {name: matrix for name, matrix in matrices.items() if matrix}


@pytest.fixture(params=["in turn", pytest.param("alone", marks=pytest.mark.full)])
def known(request: pytest.FixtureRequest) -> str:
    """Return the source of the expected messages: one run of all calls "in turn", or a run for each call "alone"."""
    return str(request.param)


def check_pending(
    mpi: Mpi,
    program: Path,
    how: str,
    calls: tuple[str, ...],
    folder: Path,
    known: str,
    forced: Mapping[str, str] | None = None,
) -> None:
    def run(name: str) -> dict[str, Matrix]:
        env = THROUGH_NETWORK | dict(forced or {}) if mpi.is_mpich_like else None
        run_mpi(mpi, RANKS, [program, how, name], recording=folder / name, env=env)
        return by_operation(load_complete(folder / name, RANKS))

    wanted = {} if known == "alone" else run("each")
    for call in calls if known == "alone" else ():
        (wanted[call.upper()],) = run(call).values()
    assert wanted.keys() == {call.upper() for call in calls}
    assert run("all") == wanted


def test_between_groups(mpi: Mpi, build: Build, known: str, tmp_path: Path) -> None:
    """Each group also sends messages within itself, on a communicator that the program does not know."""
    check_pending(mpi, build(mpi, "pending_collectives.c"), "between", CALLS, tmp_path, known)


def with_long(names: Sequence[str], long: Sequence[str]) -> list[object]:
    """Return pytest parameters: the MPIs in `names`; in the long form of the tests, also the MPIs in `long`.

    Each MPI in `long` allocates tags like an MPI in `names`.
    """
    return [*names, *(pytest.param(name, marks=pytest.mark.full) for name in long)]


@pytest.mark.parametrize("name", with_long([mpis.SYSTEM, mpis.INTEL], [mpis.MPICH_SYSTEM, "mpich-5.0.2"]))
def test_while_objects_are_made(name: str, build: Build, known: str, tmp_path: Path) -> None:
    """Intel MPI's calls that create communicators, windows and files allocate a tag of the parent communicator."""
    mpi = mpis.find_mpi(name) if name in mpis.NAMES else mpis.find_mpich_like(name)
    check_pending(mpi, build(mpi, "pending_collectives.c"), "made", MADE, tmp_path, known)


@pytest.mark.parametrize("name", with_long([mpis.SYSTEM, "mpich-5.0.2"], [mpis.MPICH_SYSTEM, mpis.INTEL]))
def test_after_calls_that_fail(name: str, build: Build, known: str, tmp_path: Path) -> None:
    """Calls with wrong arguments allocate no tag.

    But in MPICH, reductions of a negative number of items allocate a tag.
    """
    mpi = mpis.find_mpi(name) if name in mpis.NAMES else mpis.find_mpich_like(name)
    check_pending(
        mpi, build(mpi, "pending_collectives.c"), "failed", ("Iallreduce", "Ibcast", "Iscan"), tmp_path, known
    )


@pytest.mark.parametrize(
    "name", with_long([mpis.SYSTEM, mpis.MPICH_SYSTEM], [*mpis.MPICH_FROM_PYPI, mpis.STANDARD_ABI, mpis.INTEL])
)
def test_before_neighbourhood_collectives(name: str, build: Build, known: str, tmp_path: Path) -> None:
    """MPICH implements neighbourhood collectives by nonblocking collectives. Two pending calls on different
    communicators have the same tag. In these calls, some ranks send no messages."""
    mpi = mpis.find_mpi(name) if name in mpis.NAMES else mpis.find_mpich_like(name)
    program = build(mpi, "pending_collectives.c")
    check_pending(mpi, program, "neighbours", ("Ibcast", "Neighbor_allgather"), tmp_path, known)


@pytest.mark.parametrize("algorithm", ["auto", "nb"])
@pytest.mark.parametrize("name", mpis.in_every_run(mpis.MPICH_SYSTEM, *mpis.MPICH_FROM_PYPI))
def test_among_blocking_collectives(name: str, algorithm: str, build: Build, known: str, tmp_path: Path) -> None:
    """With the algorithm `nb`, MPICH implements blocking collectives by nonblocking ones."""
    mpi = mpis.find_mpich_like(name)
    blocking = ("Bcast", "Alltoall", "Allreduce", "Allgather")
    forced = {f"MPIR_CVAR_{call.upper()}_INTRA_ALGORITHM": algorithm for call in blocking}
    program = build(mpi, "pending_collectives.c")
    check_pending(mpi, program, "blocking", ("Iallreduce", "Ibcast", *blocking), tmp_path, known, forced)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, how) for name in ("mpich-5.0.2", mpis.INTEL) for how in ("between", "freed", "persistent")),
        ("mpich-5.0.2", "freed-persistent"),
    ],
)
def test_mpich(name: str, how: str, build: Build, known: str, tmp_path: Path) -> None:
    """Open MPI is not tested: even without ibprof, freeing a communicator while calls are pending crashes Open MPI.
    Intel MPI's persistent collectives allocate a tag at each start."""
    mpi = mpis.find_mpich_like(name)
    calls = (*CALLS, "Iscan") if how == "freed" else PERSISTENT if how.endswith("persistent") else CALLS
    check_pending(mpi, build(mpi, "pending_collectives.c"), how, calls, tmp_path, known)


@pytest.mark.parametrize("call", PERSISTENT)
def test_starts_on_a_freed_communicator_of_intel_mpi(call: str, build: Build, tmp_path: Path) -> None:
    """In Intel MPI, each start allocates a tag, which ibprof cannot know after the communicator is freed. Later
    messages are UNATTRIBUTED, and no message is counted under another call."""
    mpi = mpis.find_mpich_like(mpis.INTEL)
    command: list[str | Path] = [build(mpi, "pending_collectives.c"), "freed-persistent", call]
    run_mpi(mpi, RANKS, command, recording=tmp_path, env=THROUGH_NETWORK)
    assert set(by_operation(load_complete(tmp_path, RANKS))) <= {call.upper(), UNATTRIBUTED}
