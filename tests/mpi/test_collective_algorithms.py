# SPDX-License-Identifier: Apache-2.0
"""For each collective algorithm of an MPI, all bytes that calls must send are recorded, under the calls' operations.

Run n forces the n-th algorithm of each call. Programs use several kinds of communicators.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest

from ibprof.profile.profile_data import Kind
from ibprof.profile.unaccounted import UNATTRIBUTED, describe_uncompared, find_unaccounted
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.algorithms import FORCED, list_rounds
from ibprof_testing.mpi.matrices import Matrix, load_complete, operations_sent, received, recorded
from ibprof_testing.mpi.monitoring import run_monitored
from ibprof_testing.mpi.mpis import THROUGH_NETWORK, Build, Mpi, run_mpi

PROGRAMS = ("collectives.c", "intercomms.c", "neighbours.c")
STYLES = ("blocking", "nonblocking")
QUICK = [
    (mpis.SYSTEM, "collectives.c", "blocking", 5),
    (mpis.SYSTEM, "collectives.c", "nonblocking", 5),
    ("mpich-5.0.2", "collectives.c all 20000", "nonblocking", 5),
]
ALL = [
    QUICK[2],  # a single case, because many ranks of MPICH are slow on few cores
    *itertools.product((*mpis.NAMES, *mpis.MPICH_FROM_PYPI), PROGRAMS, STYLES, (2, 4, 5, 6)),
    *itertools.product([mpis.INTEL], PROGRAMS, STYLES, [5]),
]
CASES = [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.full) for case in ALL]


def run_round(
    mpi: Mpi, ranks: int, command: list[str | Path], forced: Mapping[str, str], recording: Path | None
) -> bool:
    """Run a program under settings; return whether it ended with status 0."""
    mca, env = ({}, THROUGH_NETWORK | dict(forced)) if mpi.is_mpich_like else (FORCED | dict(forced), {})
    done = run_mpi(mpi, ranks, command, mca=mca, env=env, recording=recording, check=False, whole=False)
    return done.returncode == 0


def record_rounds(mpi: Mpi, ranks: int, command: list[str | Path], folder: Path) -> list[Matrix]:
    """Check the recording of each round; return the matrices of the rounds without a failure of the MPI itself."""
    matrices = []
    for number, forced in enumerate(list_rounds(mpi, ranks)):
        recording = folder / str(number)
        if not run_round(mpi, ranks, command, forced, recording):
            assert not run_round(mpi, ranks, command, forced, None), forced
            continue
        run = load_complete(recording, ranks)
        assert describe_uncompared(run) is None, forced
        assert find_unaccounted(run) == [], forced
        matrices.append(recorded(run, kinds=Kind))
        if not mpi.is_mpich_like:
            assert UNATTRIBUTED not in operations_sent(run), forced
            assert received(run) == matrices[-1], forced
    return matrices


@pytest.mark.parametrize(("name", "program", "style", "ranks"), CASES)
def test_each_algorithm(name: str, program: str, style: str, ranks: int, build: Build, tmp_path: Path) -> None:
    mpi = mpis.find_mpi(name) if name in mpis.NAMES else mpis.find_mpich_like(name)
    source, *words = program.split()
    matrices = record_rounds(mpi, ranks, [build(mpi, source), style, *words], tmp_path)
    # Check that the settings change messages. On two ranks, many algorithms send the same messages. Intel MPI has few
    # algorithms.
    least = len(matrices) // 2 if ranks > 2 and name != mpis.INTEL else 2
    assert source != "collectives.c" or len({tuple(matrix.items()) for matrix in matrices}) > least


@pytest.mark.full
@pytest.mark.parametrize("program", ["collectives.c", "neighbours.c"])
@pytest.mark.parametrize("style", STYLES)
def test_open_mpi_next_to_its_monitoring(
    system_mpi: Mpi, build: Build, style: str, program: str, tmp_path: Path
) -> None:
    """ibprof and the monitoring agree on each pair of ranks, in each round."""
    command: list[str | Path] = [build(system_mpi, program), style]
    for number, forced in enumerate(list_rounds(system_mpi, 5)):
        assert run_round(system_mpi, 5, command, forced, tmp_path / str(number))
        sent = recorded(load_complete(tmp_path / str(number), 5), kinds=Kind)
        assert sent == run_monitored(system_mpi, 5, command, tmp_path / f"{number} o", mca=FORCED | forced), forced


@pytest.mark.parametrize("name", mpis.in_every_run(*mpis.MPICH_FROM_PYPI))
def test_persistent_ones_after_communicators_are_made(name: str, build: Build, tmp_path: Path) -> None:
    """With the algorithm `nb`, calls that create communicators allocate tags of the parent communicator. So the
    parent's next requests have later tags."""
    mpi = mpis.find_mpich_like(name)
    nonblocking = {f"MPIR_CVAR_{call}_INTRA_ALGORITHM": "nb" for call in ("ALLREDUCE", "ALLGATHER", "BCAST")}
    runs = []
    for number, forced in enumerate(({}, nonblocking)):
        command: list[str | Path] = [build(mpi, "collectives.c"), "persistent"]
        assert run_round(mpi, 3, command, forced, tmp_path / str(number))
        runs.append(load_complete(tmp_path / str(number), 3))
    plain, shifted = runs
    assert UNATTRIBUTED not in operations_sent(shifted)
    persistent = [each for each in operations_sent(plain) if each.endswith("_INIT")]
    assert persistent
    for operation in persistent:
        assert recorded(shifted, operation=operation) == recorded(plain, operation=operation)


def test_an_algorithm_that_sends_too_little_is_named(build: Build, tmp_path: Path) -> None:
    """`sparbit` of Open MPI 5.0.11 does not pass on data of MPI_IN_PLACE.

    The algorithm's results are wrong, even without ibprof.
    """
    mpi = mpis.find_mpi("5.0.11")
    forced = {"coll_tuned_allgather_algorithm": "sparbit"}
    assert run_round(mpi, 4, [build(mpi, "collectives.c"), "blocking", "Allgather"], forced, tmp_path / "rec")
    (found,) = find_unaccounted(load_complete(tmp_path / "rec", 4))
    assert found.operation == "ALLGATHER"
    assert found.seen_bytes < found.least_bytes


@pytest.mark.parametrize("algorithm", ["", "5"])
def test_intel_mpi_sends_half_where_types_differ(algorithm: str, build: Build, tmp_path: Path) -> None:
    """If ranks send pairs of integers and receive integers, results are wrong, even without ibprof.

    The error is in algorithm 5 of MPI_Allgather, which version 2021.18 also chooses on four ranks.
    """
    mpi = mpis.find_mpich_like(mpis.INTEL)
    forced = {"I_MPI_ADJUST_ALLGATHER": algorithm} if algorithm else {}
    assert run_round(mpi, 4, [build(mpi, "ledger_corners.c"), "blocking"], forced, tmp_path / "rec")
    (found,) = find_unaccounted(load_complete(tmp_path / "rec", 4))
    assert found.operation == "ALLGATHER"
    assert found.seen_bytes < found.least_bytes
