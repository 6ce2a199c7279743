# SPDX-License-Identifier: Apache-2.0
"""Neighbourhood collectives send each neighbour its data, so the graph determines the matrix."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.profile_data import Kind
from ibprof_testing.mpi.matrices import Matrix, add_up, load_complete, received, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi

CALLS = ["ALLGATHER", "ALLGATHERV", "ALLTOALL", "ALLTOALLV", "ALLTOALLW"]
# These sizes are programs/neighbours.c's.
SIZES = [8, 1 << 10, 16 << 10, 200 << 10]


def neighbours(topology: str, ranks: int) -> list[tuple[int, int]]:
    """Return (sender, receiver) of each edge, as in programs/neighbours.c."""
    if topology == "graph":
        return [(rank, (rank + step) % ranks) for rank in range(ranks) for step in (1, -1)]
    return [(rank, (rank + 1) % ranks) for rank in range(ranks)] + [(0, rank) for rank in range(2, ranks)]


@pytest.mark.parametrize("ranks", [7, pytest.param(3, marks=pytest.mark.full)])
@pytest.mark.parametrize("topology", ["adjacent", "distributed", "graph"])
@pytest.mark.parametrize(("style", "name"), [("blocking", "NEIGHBOR_{}"), ("nonblocking", "INEIGHBOR_{}")])
def test_each_edge(mpi: Mpi, build: Build, style: str, name: str, topology: str, ranks: int, tmp_path: Path) -> None:
    run_mpi(mpi, ranks, [build(mpi, "neighbours.c"), style, topology], recording=tmp_path)
    profile = load_complete(tmp_path, ranks)
    edges: Matrix = add_up((*edge, sum(SIZES), len(SIZES)) for edge in neighbours(topology, ranks))
    got = {call: recorded(profile, operation=name.format(call)) for call in CALLS}
    assert got == dict.fromkeys(CALLS, edges)
    assert received(profile) == recorded(profile, kinds=Kind)
