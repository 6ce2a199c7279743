# SPDX-License-Identifier: Apache-2.0
"""ibprof predicts times from calls and computing times of a real run. Predictions agree with the program's actions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof_lab.scaling.measured.call_costs import MESSAGES, read_calls
from ibprof_testing.mpi.matrices import load_complete
from ibprof_testing.mpi.mpis import Build, Mpi, run_mpi

SIZE, ROUNDS = 360_000, 3


@pytest.mark.parametrize("ranks", [2, 3])
def test_calls_and_computing_of_a_program(system_mpi: Mpi, build: Build, tmp_path: Path, ranks: int) -> None:
    program = build(system_mpi, "divided_work.c", "-O1", "-g")
    recording = tmp_path / "run.ibprof"
    variables = {"IBPROF_TIME": "1"}
    run_mpi(system_mpi, ranks, [program, str(SIZE), str(ROUNDS)], recording=recording, env=variables)
    run = read_calls(load_complete(recording, ranks), SIZE)
    assert run.processes == ranks
    groups = run.groups
    assert (groups["ALLTOALL"].calls, groups["ALLTOALL"].size) == (ROUNDS, SIZE // ranks**2)
    assert (groups["ALLREDUCE"].calls, groups["ALLREDUCE"].size) == (ROUNDS, 8)
    assert (groups[MESSAGES].calls, groups[MESSAGES].size) == (ROUNDS, SIZE // ranks // 8)
    assert groups["BARRIER"].calls == 2
    # Each rank sleeps 1 µs for each byte of the rank's part. Other processes can only add time.
    rests = ROUNDS * SIZE / ranks * 1e-6
    assert rests < run.computing < run.seconds
    assert run.computing + sum(group.seconds for group in groups.values()) == pytest.approx(run.seconds)
