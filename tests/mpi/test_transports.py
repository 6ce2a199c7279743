# SPDX-License-Identifier: Apache-2.0
"""The recording is the same, whichever of Open MPI's layers carries the messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.profile.profile_data import Kind
from ibprof_testing.mpi.matrices import load_complete, read_tally, received, recorded
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi

TRANSPORTS: dict[str, dict[str, str | int]] = {
    "ucx": {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"},
    "as-shipped": {"pml": "^monitoring", "btl": "^openib", "osc": "^monitoring"},
}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_point_to_point_and_collectives(mpi: Mpi, build: Build, transport: str, tmp_path: Path) -> None:
    ranks, mca = 4, TRANSPORTS[transport]
    books = tmp_path / "books"
    books.mkdir()
    point_to_point: list[str | Path] = [build(mpi, "point_to_point.c"), "1"]
    run_mpi(mpi, ranks, point_to_point, recording=tmp_path / "p2p", mca=mca, env={"TALLY": str(books)})
    profile = load_complete(tmp_path / "p2p", ranks)
    wanted = read_tally(books)
    assert {operation: recorded(profile, operation=operation) for operation in wanted} == wanted
    assert received(profile) == recorded(profile, kinds=Kind)

    # Collectives send the same messages, whichever layer carries them.
    collectives: list[str | Path] = [build(mpi, "collectives.c"), "blocking"]
    run_mpi(mpi, ranks, collectives, recording=tmp_path / "collectives", mca=mca)
    run_mpi(mpi, ranks, collectives, recording=tmp_path / "ob1")
    over_transport = load_complete(tmp_path / "collectives", ranks)
    assert recorded(over_transport) == recorded(load_complete(tmp_path / "ob1", ranks))
    assert received(over_transport) == recorded(over_transport, kinds=Kind)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("AUTO", ""),
        ("openmpi", ""),
        (
            "nonsense",
            "IBPROF_SOURCE has an unknown value: nonsense; ibprof chooses a source; known values: auto, exact,",
        ),
        ("ucx", "nothing is recorded: this MPI ("),
        ("verbs", "nothing is recorded: IBPROF_SOURCE=verbs records only work requests"),
    ],
)
def test_a_source_that_is_asked_for(system_mpi: Mpi, build: Build, asked: str, said: str, tmp_path: Path) -> None:
    command: list[str | Path] = [build(system_mpi, "collectives.c"), "blocking", "Bcast", "1000"]
    done = run_mpi(
        system_mpi, 2, command, recording=tmp_path / "recording", env={"IBPROF_SOURCE": asked, "IBPROF_TIME": "0"}
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("ibprof: ")]
    assert len(lines) == bool(said)
    assert all(said in line for line in lines)
    if said.startswith("nothing"):
        assert not (tmp_path / "recording").exists()
    else:
        assert recorded(load_complete(tmp_path / "recording", 2), operation="BCAST") == {(0, 1): (1000, 1)}
