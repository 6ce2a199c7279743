# SPDX-License-Identifier: Apache-2.0
"""A pending receive keeps its operation and communicator, even if the communicator is freed or reused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof.profile.profile_data import Direction, Kind
from ibprof_testing.mpi.matrices import load_complete, read_tally, received, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi

RANKS = 5


@pytest.mark.parametrize(
    ("threads", "recorded_too"),
    [
        ("single", ""),
        ("single", "IBPROF_TIME"),
        ("single", "IBPROF_SITES"),
        ("single", "IBPROF_TIME IBPROF_SITES"),
        ("multiple", ""),
        ("multiple", "IBPROF_SITES"),
    ],
)
def test_pending_receives(mpi: Mpi, build: Build, threads: str, recorded_too: str, tmp_path: Path) -> None:
    books = tmp_path / "books"
    books.mkdir()
    env = {"TALLY": str(books), "IBPROF_SITES": "0"} | dict.fromkeys(recorded_too.split(), "1")
    run_mpi(mpi, RANKS, [build(mpi, "pending_receives.c"), threads], recording=tmp_path / "recording", env=env)
    profile = load_complete(tmp_path / "recording", RANKS)
    expected = read_tally(books)
    of_mpi_4 = {"ISENDRECV"} if mpi.name.startswith("5") else set()
    assert set(expected) == {"RECV", "RECV_INIT", "SENDRECV"} | of_mpi_4
    for operation, matrix in expected.items():
        assert recorded(profile, operation=operation, directions=[Direction.RECEIVED]) == matrix
    assert received(profile) == recorded(profile, kinds=Kind)
    counters = profile.counters
    assert np.all(counters.site[counters.direction == Direction.RECEIVED] == 0)
    assert not any(rank.notes for rank in profile.ranks)
