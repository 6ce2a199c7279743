# SPDX-License-Identifier: Apache-2.0
"""Instructions that ibprof adds to a message, counted by callgrind, for several communicators, requests and threads.

The limits are from benchmarks/overhead, which counts the instructions of more cases.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ibprof_testing.mpi.mpis import SYSTEM, find_mpi, library
from ibprof_testing.paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks" / "overhead"))
from bench import MONITORED, WITH, Bench
from cases import GOALS, count_added, count_instructions

# Only the long form has these cases: each takes 4 core-seconds, and ibprof runs the same code as in the case `World`.
LONG = [pytest.param(case, marks=pytest.mark.full) for case in ("Dup", "Persistent")]


@pytest.mark.parametrize("case", ["World", *LONG, "ThreadMultiple"])
def test_message_costs_few_instructions(case: str, tmp_path: Path) -> None:
    bench = Bench(find_mpi(SYSTEM).folder, tmp_path, library())
    added = count_added(bench, case, messages=1000)
    assert 0 < round(added) <= GOALS[case]
    assert list(bench.recording.iterdir()), "nothing was recorded"


@pytest.mark.parametrize(
    ("case", "most"),
    [("World", 12), *(pytest.param(case, 12, marks=pytest.mark.full) for case in ("Dup", "ThreadMultiple"))],
)
def test_call_sites_add_few_instructions(case: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages alternate between two call sites, on one communicator."""
    messages = 20_000  # the first messages at a site take more instructions
    bench = Bench(find_mpi(SYSTEM).folder, tmp_path, library())
    program, counted = bench.build("cases"), []
    for sites in ("0", "1"):
        monkeypatch.setenv("IBPROF_SITES", sites)
        counted.append(count_instructions(bench, WITH, program, case, messages))
    assert round(counted[1] - counted[0]) <= most


@pytest.mark.full
def test_threads_cost_less_than_monitoring(tmp_path: Path) -> None:
    """The limit is the number of instructions of Open MPI 5's own monitoring; Open MPI 4's monitoring needs more."""
    bench = Bench(find_mpi("5.0.11").folder, tmp_path, library())
    recorded, monitored = (
        count_added(bench, "ThreadMultiple", messages=1000, variant=variant) for variant in (WITH, MONITORED)
    )
    assert 0 < recorded < monitored
