# SPDX-License-Identifier: Apache-2.0
"""The cells of a study have the expected keys, estimated times and order. A lock protects their folder."""

from __future__ import annotations

import fcntl
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ibprof.errors import UsageError
from ibprof_lab.simulation.engine.simulated_network import Hardware
from ibprof_lab.simulation.measure.message_latency import FULL, QUICK, Effort
from ibprof_lab.simulation.study import sweep
from ibprof_lab.simulation.study.cell import Setting, make_cells, run_cell
from ibprof_lab.simulation.study.cost_estimate import (
    estimate_hops,
    estimate_seconds,
    find_bottleneck_ns,
    find_mean_hops,
)
from ibprof_lab.simulation.study.presets import PRESETS
from ibprof_lab.simulation.study.simulated_machine import MachineOptions
from ibprof_lab.simulation.study.study_file import plan_preset
from ibprof_lab.simulation.study.sweep import STORE, run_cells
from ibprof_lab.simulation.workload.workloads import IO, MPI, Workload
from ibprof_testing.samples.simulated_jobs import KIB, MIB, MS, SMALL, US, io, mpi


def test_a_key_is_of_what_matters(tmp_path: Path) -> None:
    (first, disturbed), (other, _) = (make_cells(SMALL, [io(interval=each), mpi()], MPI, [1]) for each in (0.0, 1 * MS))
    assert first.key == other.key != disturbed.key  # a baseline's key does not depend on the study's other job
    changed = [
        replace(first, seed=2),
        replace(first, setting=replace(SMALL, servers=5)),
        replace(first, setting=replace(SMALL, hardware=Hardware(lane_bytes=8192))),
        replace(first, setting=replace(SMALL, hardware=Hardware(nic_gap_ns=10))),
        replace(first, setting=replace(SMALL, hardware=Hardware(message_step_bytes=4096))),
        replace(first, setting=replace(SMALL, fabric="xgft:2:8,4:1,4@100")),
    ]
    assert len({first.key, *(cell.key for cell in changed)}) == 7
    # The keys of cells of earlier versions do not change.
    assert {"nic_gap_ns", "message_step_bytes"}.isdisjoint(first.describe()["hardware"])
    assert "steady" not in first.describe()["effort"]


@pytest.mark.parametrize("name", PRESETS)
def test_estimates_are_of_the_right_size(name: str) -> None:
    cells = plan_preset(name, MachineOptions(SMALL.fabric, servers=4, effort=QUICK), [1], True).cells
    assert all(0 < estimate_hops(cell) <= QUICK.hops for cell in cells)


def test_estimates_by_hand() -> None:
    # A path within a leaf has 2 links, other paths have 4. A quarter of the pairs of hosts is within a leaf.
    assert find_mean_hops(SMALL.network, SMALL.hardware) == pytest.approx(0.25 * 2 + 0.75 * 4)
    # 14 clients write 4 MiB each to 4 servers, at 12.5 GB/s.
    cell = make_cells(SMALL, [io(), mpi()], IO, [1])[0]
    assert find_bottleneck_ns(cell, io()) == pytest.approx(14 * 4 * MIB / 12.5 / 4)
    # A real run has about as many packet hops as estimated.
    short = replace(cell, setting=replace(SMALL, effort=Effort(messages=20)))
    assert 0.2 < run_cell(short).packet_hops / estimate_hops(short) < 5
    # If the confidence interval does not end the run, all requested messages of a client are simulated: 1,050, not 8.
    (alone, _) = make_cells(SMALL, [mpi()], MPI, [1])
    every, skipping = (
        replace(alone, setting=replace(SMALL, effort=each)) for each in (replace(FULL, steady=0.0), FULL)
    )
    assert estimate_hops(every) == pytest.approx(1050 / 8 * estimate_hops(alone))
    assert estimate_hops(skipping) == pytest.approx(estimate_hops(every) * 140 / 1050)


@pytest.mark.parametrize(
    ("jobs", "measured", "seconds"),
    [
        ((io(4 * MIB, 50 * MS), mpi(4 * MIB, 100 * US)), IO, 5.8),
        ((io(512 * KIB, 10 * US), mpi(4 * MIB, 100 * US)), IO, 52.0),
        ((io(512 * KIB, 50 * US), mpi(4 * MIB, 100 * US)), MPI, 18.4),
    ],
    ids=["alone", "full servers", "next to full servers"],
)
def test_estimated_seconds_are_those_of_measured_cells(
    jobs: tuple[Workload, Workload], measured: str, seconds: float
) -> None:
    """The estimates for the survey's completely timed simulations are right within a factor of 4."""
    setting = Setting("xgft:3:18,18,4:1,18,2:1,1,9@100", servers=72, effort=FULL)
    alone, together = make_cells(setting, jobs, measured, [1])
    cell = alone if seconds < 10 else together
    assert seconds / 4 < estimate_seconds(cell) < 4 * seconds


def test_a_hop_of_full_servers_takes_longer_than_one_of_pairs() -> None:
    """The longest simulations must begin first, not the simulations with the most packet hops."""
    setting = Setting("xgft:3:18,18,4:1,18,2:1,1,9@100", servers=72, effort=FULL)
    full, dense = (
        make_cells(setting, jobs, measured, [1])[1]
        for jobs, measured in (
            ((io(4 * MIB, 500 * US), mpi(4 * MIB, 50 * MS)), MPI),
            ((io(4 * MIB, 50 * MS), mpi(4 * MIB, 100 * US)), IO),
        )
    )
    of_hop = [estimate_seconds(each) / estimate_hops(each) for each in (full, dense)]
    assert of_hop[0] > 4 * of_hop[1]
    adaptive = replace(full, setting=replace(setting, adaptive=True))
    assert estimate_seconds(adaptive) == pytest.approx(50e-9 * estimate_hops(adaptive))


def test_a_seed_before_the_next_and_its_longest_first(tmp_path: Path) -> None:
    class Noting(ThreadPoolExecutor):
        begun: ClassVar[list[tuple[int, float]]] = []

        def submit(self, fn: Any, cell: Any) -> Any:  # type: ignore[override]
            self.begun.append((cell.seed, -estimate_seconds(cell)))
            return super().submit(fn, cell)

    cells = make_cells(SMALL, [io(4 * KIB), mpi(64 * KIB)], MPI, [2, 1])
    with Noting(1) as pool:
        run_cells(cells, tmp_path, pool)
    assert len(pool.begun) == 4
    assert pool.begun == sorted(pool.begun)


@pytest.mark.parametrize(("worth_s", "processes"), [(60.0, False), (0.0, True)])
def test_a_little_work_starts_no_process(
    worth_s: float, processes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_WORTH_PROCESSES_S", worth_s)
    cell = make_cells(SMALL, [mpi()], MPI, [1])[0]
    with sweep.open_pool(2) as pool:
        assert pool
        (outcome,) = run_cells([cell], tmp_path, pool).values()
        assert bool(active_children()) == processes
    assert str(outcome.latency) == str(run_cell(cell).latency)  # compared as text, since some values are nan
    assert not active_children()


def test_a_folder_has_one_that_simulates_in_it(tmp_path: Path) -> None:
    cells = make_cells(SMALL, [mpi()], MPI, [1])
    with ThreadPoolExecutor(1) as pool, (tmp_path / STORE).open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match=f"^{re.escape(str(tmp_path))}: another ibprof-sim writes into"):
            run_cells(cells, tmp_path, pool)
        other.close()
        assert run_cells(cells, tmp_path, pool).keys() == {cells[0].key}


def test_a_checkpoint_is_timed_whole() -> None:
    # 40 writes of one client to one server take at least the time of their bytes.
    setting = Setting("xgft:1:4:1@100", servers=1, effort=QUICK)
    jobs = [io(512 * KIB, share=0.34, limit=40), mpi(4 * KIB, 50 * US, share=0.66)]
    (_, disturbed) = make_cells(setting, jobs, MPI, [1])
    (whole,) = run_cell(disturbed).whole_ns[IO]
    assert 40 * 512 * KIB / 12.5 < whole < 1.2 * 40 * 512 * KIB / 12.5
