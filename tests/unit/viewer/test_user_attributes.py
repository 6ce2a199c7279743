# SPDX-License-Identifier: Apache-2.0
"""The user's attributes of ranks and nodes are read unchanged or refused. Grids equal the programs' grids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof.profile.profile_data import Grid
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.viewer.user_attributes import find_recorded_grid, read_node_data, read_rank_data
from ibprof_converter.viewer.view_file import NONE
from ibprof_testing.samples.profiles import make_profile, make_rank

FABRICS = [generate("xgft:2:2,2:1,1", rail).fabric for rail in (0, 1)]


def write(folder: Path, text: str) -> Path:
    path = folder / "told.csv"
    path.write_text(text)
    return path


def test_numbers_classes_and_places_of_ranks(tmp_path: Path) -> None:
    text = "rank,part,x,y,cells\n2,ice,10,-1.5,7\n0,ocean,20,3,\n"
    (part, cells), grid = read_rank_data(write(tmp_path, text), 4)
    assert (part.name, part.of_ranks, part.classes) == ("part", True, ("ice", "ocean"))
    assert np.array_equal(part.value, [1, np.nan, 0, np.nan], equal_nan=True)
    assert np.array_equal(cells.value, [np.nan, np.nan, 7, np.nan], equal_nan=True)
    assert cells.classes == ()
    assert grid is not None
    assert grid.place.tolist() == [[1, 1, 0], [NONE] * 3, [0, 0, 0], [NONE] * 3]


@pytest.mark.parametrize("kind", ["host", "node", "guid"])
def test_what_is_known_of_a_node(tmp_path: Path, kind: str) -> None:
    fabric = FABRICS[0]
    node = fabric.node_name.index("host2 HCA-1")
    key = {"host": "host2", "node": "host2 HCA-1", "guid": f"0x{int(fabric.node_guid[node]):016x}"}[kind]
    (role,) = read_node_data(write(tmp_path, f"{kind},role\n{key},storage\n"), FABRICS, find_hosts(FABRICS))
    given = np.flatnonzero(~np.isnan(role.value)).tolist()
    assert given[0] == node
    assert len(given) == (2 if kind == "host" else 1)  # a host has an adapter on each rail
    assert not role.of_ranks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"told.csv:1: expected a header with rank, then other columns, found ''"),
        ("rank\n0\n", r"told.csv:1: expected a header with rank, then other columns"),
        ("host,role\nhost1,x\n", r"told.csv:1: expected a header with rank"),
        ("rank,a,a\n0,1,2\n", r"told.csv:1: expected at most 64 different columns"),
        ("rank,a\n0\n", r"told.csv:2: expected 2 columns, found 1"),
        ("rank,a\n0,1\n0,2\n", r"told.csv:3: expected each rank once, found '0' again"),
        ("rank,a\n4,1\n", r"told.csv:2: expected a rank"),
        ("rank,x\n0,east\n", r"told.csv:2: expected a number for x, found 'east'"),
    ],
)
def test_what_is_no_rank_data(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_rank_data(write(tmp_path, text), 4)


def test_a_host_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"told.csv:3: expected a host of the fabric, found 'host9'"):
        read_node_data(write(tmp_path, "host,role\nhost1,a\nhost9,b\n"), FABRICS, find_hosts(FABRICS))


def test_the_first_whole_grid_of_a_program_is_taken() -> None:
    def grids(rank: int) -> tuple[Grid, ...]:
        part = (Grid(1, (8,), (0,), (rank,)),) if rank < 6 else ()  # the recording lacks ranks 6 and 7 of this grid
        return *part, Grid(3, (2, 2, 2), (0, 0, 0), (rank // 4, rank // 2 % 2, rank % 2))

    profile = make_profile([], ranks=[make_rank(rank, grids=grids(rank)) for rank in range(8)])
    found = find_recorded_grid(profile)
    assert found is not None
    assert "2 x 2 x 2" in found.title
    assert found.place.tolist() == [[rank % 2, rank // 2 % 2, rank // 4] for rank in range(8)]
    assert find_recorded_grid(make_profile([], ranks=[make_rank(0)])) is None
    assert find_recorded_grid(None) is None
