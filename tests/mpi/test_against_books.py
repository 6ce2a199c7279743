# SPDX-License-Identifier: Apache-2.0
"""For each operation, the recorded traffic equals the traffic that the program noted at its calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.profile_data import Direction, Kind, Profile
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import Matrix, load_complete, read_tally, received, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, library, run_mpi

SEEDS = [
    pytest.param(ranks, seed, marks=[] if (ranks, seed) in ((2, 1), (5, 1), (8, 2)) else pytest.mark.full)
    for ranks in (2, 5, 8)
    for seed in range(1, 20)
]
FEW_AND_5 = [pytest.param(2, marks=pytest.mark.full), 5]


def record_with_books(
    mpi: Mpi,
    ranks: int,
    command: list[str | Path],
    folder: Path,
    mca: dict[str, str | int] | None = None,
    env: dict[str, str] | None = None,
) -> tuple[Profile, dict[str, Matrix]]:
    books = folder / "books"
    books.mkdir()
    run_mpi(mpi, ranks, command, recording=folder / "recording", env={"TALLY": str(books), **(env or {})}, mca=mca)
    return load_complete(folder / "recording", ranks), read_tally(books)


def recorded_as_in(books: dict[str, Matrix], profile: Profile) -> dict[str, Matrix]:
    return {operation: recorded(profile, operation=operation) for operation in books}


@pytest.mark.parametrize("mpi", mpis.NAMES, indirect=True)
@pytest.mark.parametrize(("ranks", "seed"), SEEDS)
def test_point_to_point(mpi: Mpi, build: Build, ranks: int, seed: int, tmp_path: Path) -> None:
    profile, books = record_with_books(mpi, ranks, [build(mpi, "point_to_point.c"), str(seed)], tmp_path)
    assert len(books) == 9
    assert recorded_as_in(books, profile) == books
    assert received(profile) == recorded(profile, kinds=Kind)


@pytest.mark.parametrize("ranks", FEW_AND_5)
def test_persistent_point_to_point(mpi: Mpi, build: Build, ranks: int, tmp_path: Path) -> None:
    """Recorded messages equal the program's own list of messages, and the messages that receivers counted.

    The reference is not Open MPI's monitoring, which misses persistent sends.
    """
    profile, books = record_with_books(mpi, ranks, [build(mpi, "persistent.c")], tmp_path)
    assert set(books) == {"SEND_INIT", "SSEND_INIT", "BSEND_INIT", "RSEND_INIT"}
    assert recorded_as_in(books, profile) == books
    assert received(profile) == recorded(profile, kinds=Kind)


@pytest.mark.parametrize("monitored", [0, 1], ids=["", "monitored"])
def test_starts_that_another_tool_passes_on(system_mpi: Mpi, build: Build, monitored: int, tmp_path: Path) -> None:
    """Bytes, calls and messages of MPI_Startall are counted once, although another tool wraps MPI_Startall.

    With Open MPI's monitoring, ibprof does not hook requests. Wrappers of MPI_Start* count the bytes.
    """
    (books := tmp_path / "books").mkdir()
    preload = f"{library()}:{build(system_mpi, 'other_tool.c', '-shared', '-fPIC')}"
    env = {"LD_PRELOAD": preload, "IBPROF_OUTPUT": str(tmp_path / "recording"), "TALLY": str(books)}
    components: dict[str, str | int] = {"pml": "ob1,monitoring", "pml_monitoring_enable": 1}
    program = build(system_mpi, "persistent.c")
    run_mpi(system_mpi, 2, [program], env=env, mca=components if monitored else None)
    profile = load_complete(tmp_path / "recording", 2)
    assert recorded_as_in(read_tally(books), profile) == read_tally(books)
    assert received(profile) == recorded(profile, kinds=Kind)
    calls = {
        name: int(profile.times.calls[profile.times.operation == number].sum())
        for number, name in enumerate(profile.operations)
    }
    assert (calls["START"], calls["STARTALL"]) == (2 * 20 * 15 * 4, 2 * 20 * 45)
    assert calls["WAITALL"] == 2 * 20 * 60
    # A rank creates its requests 20 times, for 30 rounds each time. In each round, the rank sends 4 messages.
    assert [rank.messages for rank in profile.ranks] == [2 * 20 * 30 * 4] * 2


@pytest.mark.parametrize("monitored", [0, 1], ids=["", "monitored"])
@pytest.mark.parametrize("threads", [False, True], ids=["one-thread", "threads"])
def test_requests_that_count_their_starts(
    mpi: Mpi, build: Build, threads: bool, monitored: int, tmp_path: Path
) -> None:
    """Each start is counted. Requests that are freed, or that outlive the recording, keep no hook of ibprof.

    Open MPI's monitoring does not start requests through the function in Open MPI's table. So ibprof does not hook
    these requests.
    """
    command: list[str | Path] = [build(mpi, "started_requests.c"), *(["threads"] if threads else [])]
    profile, books = record_with_books(mpi, 3, command, tmp_path, {"pml_monitoring_enable": monitored})
    broadcast = sum(size for size, _ in recorded(profile, operation="BCAST_INIT").values())
    assert broadcast == sum(size for size, _ in books.pop("BCAST_INIT").values())
    assert set(books) == {"SEND_INIT", "BSEND_INIT"}
    assert recorded_as_in(books, profile) == books
    assert received(profile) == recorded(profile, kinds=Kind)
    assert not any(rank.notes for rank in profile.ranks)


@pytest.mark.parametrize("ranks", FEW_AND_5)
@pytest.mark.parametrize("component", ["", "rdma", "pt2pt"])
@pytest.mark.parametrize("window", ["create", "allocate", "shared", "dynamic"])
def test_one_sided(mpi: Mpi, build: Build, window: str, component: str, ranks: int, tmp_path: Path) -> None:
    if component == "pt2pt" and mpi.name.startswith("5"):
        component = "rdma"  # Open MPI 5.0 has no component pt2pt
    mca: dict[str, str | int] = {"osc": f"{component},sm" if window == "shared" else component} if component else {}
    profile, books = record_with_books(mpi, ranks, [build(mpi, "onesided.c"), window], tmp_path, mca)
    assert len(books) == 10
    assert recorded_as_in(books, profile) == books
    under_none = recorded(profile, operation="UNATTRIBUTED")
    assert under_none == {}


@pytest.mark.parametrize("ranks", FEW_AND_5)
@pytest.mark.parametrize("threads", [False, True], ids=["one-thread", "threads"])
@pytest.mark.parametrize("sites", ["0", "1"], ids=["", "sites"])
def test_handles_that_mpi_reuses(mpi: Mpi, build: Build, sites: str, threads: bool, ranks: int, tmp_path: Path) -> None:
    """ibprof forgets freed communicators, datatypes and requests, also those stored for a call site."""
    command: list[str | Path] = [build(mpi, "reused_handles.c", "-pthread"), *(["threads"] if threads else [])]
    profile, books = record_with_books(mpi, ranks, command, tmp_path, env={"IBPROF_SITES": sites})
    assert set(books) == {"SEND", "SEND_INIT"}
    assert recorded_as_in(books, profile) == books
    assert received(profile) == recorded(profile, kinds=Kind)
    for sent, came in (("SEND", "RECV"), ("SEND_INIT", "RECV_INIT")):
        assert recorded(profile, operation=came, directions=[Direction.RECEIVED]) == books[sent]
    assert not any(rank.notes for rank in profile.ranks)
