# SPDX-License-Identifier: Apache-2.0
"""Result tables contain slowdowns over seeds, confidence intervals, and notes on means that did not settle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ibprof_lab.cli.sim import main
from ibprof_lab.simulation.measure.message_latency import NOTHING
from ibprof_lab.simulation.study.cell import Outcome, make_cells
from ibprof_lab.simulation.study.result_tables import (
    average_seeds,
    describe_latency,
    list_results,
    read_means,
    write_table,
)
from ibprof_lab.simulation.workload.workloads import MPI
from ibprof_testing.samples.simulated_jobs import SMALL, io, latency_of, mpi


def test_a_slowdown_is_the_mean_of_each_seeds_own() -> None:
    cells = make_cells(SMALL, [io(), mpi()], MPI, [1, 2, 3])
    means = dict(zip([cell.key for cell in cells], (2000.0, 4000.0, 1000.0, 4000.0, 1000.0, 9000.0), strict=True))
    outcomes = {key: Outcome(key, latency_of(mean), 1, 0.0, {}) for key, mean in means.items()}
    alone, disturbed = average_seeds(list_results(cells, outcomes))
    assert (alone["run"], alone["seeds"], alone["slowdown"]) == ("baseline", 3, None)
    # The slowdowns are 2, 4 and 9, with standard deviation 3.6056; t(0.975, 2) = 4.3027.
    assert disturbed["slowdown"] == 5.0
    assert disturbed["slowdown_half"] == pytest.approx(4.3027 * 3.6056 / 3**0.5, abs=1e-3)
    assert alone["io_bytes"] is None


def test_a_slowdown_is_of_the_seeds_that_have_both_runs() -> None:
    cells = make_cells(SMALL, [io(), mpi()], MPI, [1, 2, 3])
    latencies = [
        latency_of(1e3),
        latency_of(2e3),
        latency_of(1e3, False),
        latency_of(9e3),
        latency_of(1e3),
        latency_of(4e3),
    ]
    latencies = [replace(each, node_mean=2 * each.mean - 1e3) for each in latencies]
    outcomes = {cell.key: Outcome(cell.key, each, 1, 0.0, {}) for cell, each in zip(cells, latencies, strict=True)}
    alone, disturbed = average_seeds(list_results(cells, outcomes))
    assert (alone["seeds"], disturbed["seeds"], disturbed["slowdown_seeds"]) == (2, 3, 2)
    assert (disturbed["slowdown"], disturbed["node_slowdown"]) == (3.0, 5.0)


def test_an_interval_by_clients() -> None:
    """The interval is calculated by Student's t from the clients' means. A single client has no interval."""
    clients = tuple((host, 50, mean) for host, mean in enumerate((1000.0, 1200.0, 1400.0, 1200.0)))
    latency = replace(NOTHING, messages=200, mean=1200.0, node_mean=1200.0, is_settled=True, by_client=clients)
    row = describe_latency(latency)
    assert row["node_half_us"] == pytest.approx(3.182 * 0.1633 / 2, rel=1e-3)
    assert describe_latency(replace(latency, by_client=clients[:1]))["node_half_us"] is None
    assert describe_latency(replace(latency, is_settled=False))["node_half_us"] is None


def test_what_is_not_settled_is_empty_and_says_why() -> None:
    cells = make_cells(SMALL, [io(), mpi()], MPI, [1, 2])
    outcomes = {cell.key: Outcome(cell.key, latency_of(1e3, cell.is_alone), 1, 0.0, {}) for cell in cells[:3]}
    results = list_results(cells, outcomes)
    assert [row["mean_us"] for row in results] == [1.0, None, 1.0, None]
    disturbed = average_seeds(results)[1]
    assert (disturbed["mean_us"], disturbed["slowdown"], disturbed["seeds"]) == (None, None, 0)
    assert disturbed["note"] == "2 of 2 seeds: not simulated yet; said"
    assert average_seeds(results[:2])[1]["note"] == "said"


def test_tables_read_back_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    cells = make_cells(SMALL, [io(), mpi()], MPI, [1, 2])
    outcomes = {cell.key: Outcome(cell.key, latency_of(1e3 * cell.seed), 1, 0.0, {}) for cell in cells}
    write_table(tmp_path / "means.csv", average_seeds(list_results(cells, outcomes)))
    means = read_means([tmp_path / "means.csv"])
    write_table(tmp_path / "again.csv", means)
    assert read_means([tmp_path / "again.csv"]) == means
    write_table(tmp_path / "means.parquet", means)
    table = pq.read_table(tmp_path / "means.parquet")
    assert table.to_pylist() == means == read_means([tmp_path / "means.parquet"])
    assert "null" not in map(str, table.schema.types)
    assert main(["charts", str(tmp_path / "means.parquet"), "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().out
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "means.parquet").read_bytes()[:100])
    assert main(["charts", str(tmp_path / "cut.parquet"), "-o", str(tmp_path)]) == 3
    assert "cut.parquet: expected a Parquet file" in capsys.readouterr().err
