# SPDX-License-Identifier: Apache-2.0
"""Two programs connect at run time. One program or both are recorded. All bytes are assigned to the right rank."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from ibprof.profile.missing_data import describe_gaps
from ibprof.profile.profile_data import UNKNOWN_PEER, Kind, Profile
from ibprof.recording.folder_runs import list_runs
from ibprof.recording.recording_reader import merge_run
from ibprof.waiting.wait_split import measure_waiting
from ibprof_testing import processes
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import Matrix, read_tally, received, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, environment, find_mpi, find_mpich_like, in_every_run, library, run_mpi

RANKS = 3
OTHERS = -1  # as in programs/joined.c
STARTS_OTHERS = ("COMM_SPAWN", "COMM_ACCEPT", "COMM_CONNECT")


def check_side(profile: Profile, books: Path, is_mpich_like: bool) -> None:
    """Check one side: bytes to the other side are recorded, with an unknown peer."""
    assert profile.world_size == RANKS
    assert all(rank.finalized and (is_mpich_like or not rank.notes) for rank in profile.ranks)
    for operation, sent in read_tally(books).items():
        found = recorded(profile, operation=operation)
        assert {(rank, OTHERS if peer == UNKNOWN_PEER else peer): n for (rank, peer), n in found.items()} == sent
    assert any("processes outside MPI_COMM_WORLD" in sentence for sentence in describe_gaps(profile))
    if not is_mpich_like:
        assert within(received(profile)) == within(recorded(profile, kinds=Kind))
    measured = measure_waiting(profile)
    assert measured is not None
    of_others = [profile.operations.index(name) for name in STARTS_OTHERS if name in profile.operations]
    shares = measured.shares
    assert not shares.transfer_s[np.isin(shares.operation, of_others)].any()


def within(matrix: Matrix) -> Matrix:
    """Return the matrix without traffic to or from unknown peers."""
    return {pair: amount for pair, amount in matrix.items() if UNKNOWN_PEER not in pair}


def load_side(recording: Path, is_child: bool) -> Profile:
    """Return the spawned program's run if `is_child`, and the spawning program's run otherwise."""
    runs = [merge_run(recording, run) for run in list_runs(recording)]
    (found,) = (run for run in runs if run.command.endswith(" child") == is_child)
    return found


def find(name: str) -> Mpi:
    return find_mpich_like(name) if name in mpis.MPICH_LIKE else find_mpi(name)


@pytest.mark.parametrize("name", in_every_run(*mpis.NAMES, *mpis.MPICH_FROM_PYPI))
@pytest.mark.parametrize("sides", ["parents", "children", "both"])
def test_spawned_programs(name: str, sides: str, build: Build, tmp_path: Path) -> None:
    mpi, recording, books = find(name), tmp_path / "recording", tmp_path / "books"
    program = build(mpi, "joined.c")
    for side in ("parents", "children"):
        (books / side).mkdir(parents=True)
    library_and_folder = [f"LD_PRELOAD={library()}", f"IBPROF_OUTPUT={recording}"]
    around = ["/usr/bin/env", *(["-u", "LD_PRELOAD"] if sides == "parents" else library_and_folder)]
    through = [f"{variable}={value}" for variable, value in mpis.THROUGH_NETWORK.items()]
    command: list[str | Path] = [program, "spawn", *around, f"TALLY={books / 'children'}", *through, program, "child"]
    variables = {"TALLY": str(books / "parents"), **mpis.THROUGH_NETWORK}
    run_mpi(mpi, RANKS, command, recording=None if sides == "children" else recording, env=variables, whole=False)
    for side in ("parents", "children"):
        if sides in (side, "both"):
            check_side(load_side(recording, side == "children"), books / side, mpi.is_mpich_like)
    assert len(list_runs(recording)) == (2 if sides == "both" else 1)


@pytest.mark.parametrize("recorded_side", ["accept", "connect"])
def test_connected_programs(recorded_side: str, build: Build, tmp_path: Path) -> None:
    """Two launchers start the programs, which find each other through a server."""
    mpi, recording, books = find(mpis.SYSTEM), tmp_path / "recording", tmp_path / "books"
    books.mkdir()
    server = tmp_path / "server"
    lines: dict[str, list[str | Path]] = {}
    for side in ("accept", "connect"):
        options: list[str | Path] = ["--ompi-server", f"file:{server}", "-n", str(RANKS)]
        if side == recorded_side:
            variables = {"TALLY": books, "LD_PRELOAD": library(), "IBPROF_OUTPUT": recording}
            options += [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
        lines[side] = [mpi.program("mpirun"), *options, build(mpi, "joined.c"), side, tmp_path / "port"]
    ompi_server: list[str | Path] = [mpi.program("ompi-server"), "--no-daemonize", "-r", server]
    with processes.start(ompi_server, env=environment()):
        while not server.exists() or not server.read_text():
            time.sleep(0.05)
        with processes.start(lines["accept"], env=environment()) as other:
            done = processes.run(lines["connect"], env=environment(), timeout=60)
            assert done.returncode == 0, done.stderr
            assert other.wait(30) == 0
    check_side(load_side(recording, False), books, is_mpich_like=False)
