# SPDX-License-Identifier: Apache-2.0
"""For each interface that marks regions, traffic is counted under the region that is open at the send."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ibprof.profile.profile_data import Direction, MarkKind, Profile
from ibprof_testing.mpi import patterns
from ibprof_testing.mpi.matrices import Matrix, load_complete, recorded
from ibprof_testing.mpi.mpis import PROGRAMS, Build, Mpi, library, run_mpi
from ibprof_testing.mpi.patterns import all_the_same

RANKS = 5

# These values are programs/regions.c's.
REGIONS, VISITS, SENDING_VISITS = 500, 2000, 2


def record(mpi: Mpi, program: Path, what: str, folder: Path) -> Profile:
    done = run_mpi(mpi, RANKS, [program, what], recording=folder)
    assert done.stdout == "done\n"
    return load_complete(folder, RANKS)


def by_region(profile: Profile) -> dict[str, Matrix]:
    found = {region: recorded(profile, operation="SENDRECV", region=region) for region in profile.regions}
    return {region: matrix for region, matrix in found.items() if matrix}


def in_ring(size: int, messages: int) -> Matrix:
    """Return a matrix: each rank sends `size` bytes in total to the next rank."""
    return {pair: (size, messages) for pair, _ in all_the_same(patterns.ring(RANKS), 0).items()}


def visits(profile: Profile) -> dict[str, set[int]]:
    """Return region -> set of the numbers of visits that ranks recorded."""
    times = profile.region_times
    return {name: {int(n) for n in times.visits[times.region == i]} for i, name in enumerate(profile.regions)}


def line_of_mark(source: str, which: int = 0) -> str:
    lines = (PROGRAMS / source).read_text().splitlines()
    return f"{source}:{[number for number, line in enumerate(lines, 1) if 'IBPROF_REGION();' in line][which]}"


def test_nested_and_closed(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    profile = record(mpi, build(mpi, "regions.c"), "nested", tmp_path)
    closed = line_of_mark("regions.c")
    assert by_region(profile) == {
        "outer": in_ring(1010, 2),
        "inner": in_ring(300, 3),
        closed: in_ring(10001, 2),
        "named": in_ring(2, 1),
        "MPI_Finalize": in_ring(3, 1),
    }
    once = {name: {1} for name in ("outer", closed, "named", "MPI_Finalize")}
    assert visits(profile) == once | {"inner": {3}, "main": {0}}


def test_time_in_a_region_holds_that_of_regions_within(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    profile = record(system_mpi, build(system_mpi, "regions.c"), "nested", tmp_path)
    times = profile.region_times
    wall_ns = {name: times.wall_ns[times.region == i] for i, name in enumerate(profile.regions)}
    assert np.all(wall_ns["inner"] > 0)
    assert np.all(wall_ns["inner"] <= wall_ns["outer"])
    assert np.all(times.first_ns[times.visits > 0] <= times.last_ns[times.visits > 0])
    assert np.all(times.wall_ns <= times.last_ns - times.first_ns)


def test_hundreds_visited_a_million_times_do_not_grow(system_mpi: Mpi, build: Build, tmp_path: Path) -> None:
    profile = record(system_mpi, build(system_mpi, "regions.c"), "many", tmp_path)
    # ibprof counts messages also in regions where all messages are empty.
    expected = {f"region {size}": in_ring(SENDING_VISITS * size, SENDING_VISITS) for size in range(REGIONS)}
    assert by_region(profile) == expected
    assert {name: n for name, n in visits(profile).items() if name in expected} == {name: {VISITS} for name in expected}
    counted = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert counted < RANKS * 1_000_000
    assert all(rank.marks_seen >= 2 * REGIONS * VISITS for rank in profile.ranks)
    assert 0 < len(profile.marks) < 10_000


def test_switched_off(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    profile = record(mpi, build(mpi, "regions.c"), "off", tmp_path)
    assert recorded(profile, operation="SENDRECV") == in_ring(10101, 3)
    assert all(rank.off_ns > 0 for rank in profile.ranks)
    kinds = [mark.kind for mark in profile.marks if mark.rank == 0]
    assert [kind for kind in kinds if kind in (MarkKind.OFF, MarkKind.ON)] == [MarkKind.OFF, MarkKind.ON] * 2


def test_what_nobody_should_do_does_no_harm(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    profile = record(mpi, build(mpi, "regions.c"), "odd", tmp_path)
    regions = by_region(profile)
    assert recorded(profile, operation="SENDRECV") == in_ring(1111, 4)
    assert regions["deep"] == in_ring(10, 1)
    assert regions["left open"] == in_ring(1000, 1)
    (shortened,) = [name for name in regions if name.startswith("xxx")]
    assert len(shortened) < 100
    assert "..." in shortened


@pytest.mark.parametrize("linked", [False, True], ids=["without-the-library", "linked-with-it"])
def test_a_marked_program_runs_without_preload(mpi: Mpi, build: Build, linked: bool, tmp_path: Path) -> None:
    folder = library().parent
    options = [f"-L{folder}", "-Wl,--no-as-needed", "-libprof", f"-Wl,-rpath,{folder}"] if linked else []
    program = build(mpi, "regions.c", *options)
    done = run_mpi(mpi, RANKS, [program, "nested"], env={"IBPROF_OUTPUT": str(tmp_path / "recording")})
    assert (done.stdout, done.stderr) == ("done\n", "")
    assert (tmp_path / "recording").exists() == linked
    if linked:
        assert by_region(load_complete(tmp_path / "recording", RANKS))["outer"] == in_ring(1010, 2)


def test_two_broadcasts_and_their_marks(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """Each mark has the bytes since the run's start (K. A. Brown, figure 3.6). The third mark is at MPI_Finalize."""
    run_mpi(mpi, 2, [build(mpi, "figure36.c")], recording=tmp_path)
    profile = load_complete(tmp_path, 2)
    names = [line_of_mark("figure36.c", 0), line_of_mark("figure36.c", 1), "MPI_Finalize"]
    for rank, sent, received in ((0, 1, 0), (1, 0, 1)):
        marks = [mark for mark in profile.marks if mark.rank == rank and mark.kind == MarkKind.CLOSE]
        assert [profile.regions[mark.region] for mark in marks] == names
        assert [mark.sent_bytes for mark in marks] == [100_000 * sent, 200_000 * sent, 200_000 * sent]
        assert [mark.received_bytes for mark in marks] == [100_000 * received, 200_000 * received, 200_000 * received]
        assert marks[1].time_ns - marks[0].time_ns >= 1e8
        assert profile.ranks[rank].start_ns < marks[0].time_ns
    for name, size in zip(names, (100_000, 100_000, 0), strict=True):
        total = recorded(profile, operation="BCAST", region=name)
        assert {pair: of_pair[0] for pair, of_pair in total.items()} == ({(0, 1): size} if size else {})


def test_the_same_message_in_two_regions(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    """Until the region changes, ibprof reuses the last message's counter for an equal message."""
    rounds = 50
    run_mpi(mpi, 2, [build(mpi, "alternating_regions.c"), str(2 * rounds)], recording=tmp_path)
    profile = load_complete(tmp_path, 2)
    for region, size in (("first", 100), ("second", 101)):
        half = patterns.all_the_same(patterns.ring(2), size, rounds)
        assert recorded(profile, operation="SEND", region=region) == half
        assert recorded(profile, operation="ISEND", region=region) == half
        both = patterns.all_the_same(patterns.ring(2), size, 2 * rounds)
        assert recorded(profile, region=region, directions=[Direction.RECEIVED]) == both
