# SPDX-License-Identifier: Apache-2.0
"""Recordings equal Open MPI's own monitoring in bytes and messages of each pair of ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.profile_data import Kind
from ibprof_testing.mpi import mpis
from ibprof_testing.mpi.matrices import load_complete, operations_sent, received, recorded
from ibprof_testing.mpi.monitoring import run_monitored
from ibprof_testing.mpi.mpis import Build, Mpi, find_mpi, run_mpi

STYLES = ["blocking", "nonblocking", "persistent"]


def check_every_pair(mpi: Mpi, ranks: int, command: list[str | Path], folder: Path) -> None:
    run_mpi(mpi, ranks, command, recording=folder / "recording")
    profile = load_complete(folder / "recording", ranks)
    sent = recorded(profile, kinds=Kind)
    assert received(profile) == sent
    if mpi.has_monitoring:
        assert sent == run_monitored(mpi, ranks, command, folder / "monitoring")


@pytest.mark.parametrize("ranks", [5, *(pytest.param(ranks, marks=pytest.mark.full) for ranks in (2, 3, 4, 8))])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("source", ["collectives.c", "neighbours.c"])
def test_collectives(mpi: Mpi, build: Build, source: str, style: str, ranks: int, tmp_path: Path) -> None:
    check_every_pair(mpi, ranks, [build(mpi, source), style], tmp_path)


@pytest.mark.parametrize("mpi", mpis.NAMES, indirect=True)
@pytest.mark.parametrize("ranks", [5, *(pytest.param(ranks, marks=pytest.mark.full) for ranks in (2, 8))])
def test_making_of_communicators(mpi: Mpi, build: Build, ranks: int, tmp_path: Path) -> None:
    check_every_pair(mpi, ranks, [build(mpi, "communicators.c")], tmp_path)


@pytest.mark.parametrize(
    ("ranks", "seed"),
    [
        pytest.param(ranks, seed, marks=[] if (ranks, seed) in ((2, 2), (5, 1)) else pytest.mark.full)
        for ranks in (2, 5, 8)
        for seed in range(1, 20)
    ],
)
def test_point_to_point(mpi: Mpi, build: Build, ranks: int, seed: int, tmp_path: Path) -> None:
    check_every_pair(mpi, ranks, [build(mpi, "point_to_point.c"), str(seed), "intra"], tmp_path)


# The monitoring crashes on inter-communicators of two groups of different sizes. To create an inter-communicator, Open
# MPI 5 sends lists of processes, whose length changes from run to run. So ibprof and the monitoring count the same run.
@pytest.mark.parametrize("ranks", [4, *(pytest.param(ranks, marks=pytest.mark.full) for ranks in (2, 8))])
@pytest.mark.parametrize("style", ["blocking", "nonblocking"])
def test_intercommunicators(mpi: Mpi, build: Build, style: str, ranks: int, tmp_path: Path) -> None:
    command: list[str | Path] = [build(mpi, "intercomms.c"), style]
    recording = tmp_path / "recording"
    if mpi.has_monitoring:
        monitored = run_monitored(mpi, ranks, command, tmp_path / "monitoring", recording)
    else:
        run_mpi(mpi, ranks, command, recording=recording)
    profile = load_complete(recording, ranks)
    sent = recorded(profile, kinds=Kind)
    assert received(profile) == sent
    if mpi.has_monitoring:
        assert sent == monitored


ONE_SIDED = ("PUT", "GET", "ACCUMULATE", "GET_ACCUMULATE", "FETCH_AND_OP", "COMPARE_AND_SWAP")
MOVES_DATA = (*ONE_SIDED, *(f"R{name}" for name in ONE_SIDED))


@pytest.mark.parametrize("how", ["create", "allocate", "shared", "dynamic"])
def test_what_windows_send_in_addition_to_their_data(how: str, build: Build, tmp_path: Path) -> None:
    """For windows, the monitoring counts only control messages. Calls that move data are left out, because ibprof
    counts the data too.
    """
    mpi = find_mpi("5.0.11")
    command: list[str | Path] = [build(mpi, "onesided.c"), how]
    monitored = run_monitored(mpi, 3, command, tmp_path / "monitoring", tmp_path / "recording")
    profile = load_complete(tmp_path / "recording", 3)
    additional: dict[tuple[int, int], list[int]] = {}
    for operation in set(profile.operations) - set(MOVES_DATA):
        for pair, amounts in recorded(profile, operation=operation, kinds=Kind).items():
            additional[pair] = [known + more for known, more in zip(additional.get(pair, [0, 0]), amounts, strict=True)]
    assert {pair: tuple(amounts) for pair, amounts in additional.items()} == monitored
    assert {"WIN_FREE"} < operations_sent(profile) - set(MOVES_DATA)
