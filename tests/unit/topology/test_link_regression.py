# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology regress` finds planted latencies, and reports the latencies that no delay determines."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import lstsq

from ibprof.errors import UsageError
from ibprof_lab.cli import topology
from ibprof_lab.lab_choices import MINIMUM, NONE, STORE_AND_FORWARD
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.reference.link_regression import correct_for_size, regress
from ibprof_lab.topology.reference.reference_topology import ReferencePaths
from ibprof_testing.samples.topologies import Made, disturb, mixed_speeds, three_levels, torus


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def paths_of(*links: list[int]) -> ReferencePaths:
    return ReferencePaths(np.cumsum([0, *map(len, links)]), np.concatenate(links))


def write_made(made: Made, noise: float = 0.0, lengths: tuple[int, ...] = (0,)) -> None:
    matrix = disturb(made.delays(), noise, 1).astype(np.float32)
    names = tuple(f"n{host}" for host in range(made.hosts))
    write_delays("delays.nc", Delays(names, np.array(lengths), np.stack([matrix] * len(lengths))))


def test_three_hosts_on_a_switch() -> None:
    """Source: equation 2.4."""
    found = regress(paths_of([0, 1], [0, 2], [1, 2]), np.array([3.0, 4.0, 5.0]), 3)
    assert found.latency_seconds.tolist() == pytest.approx([1, 2, 3])
    assert found.r_squared == pytest.approx(1)


def test_an_even_ring_of_pairs_determines_no_link() -> None:
    """Equation 2.6: if n hosts of a switch are measured in a ring, the matrix is singular for even n only."""
    for hosts in (4, 5, 6, 7):
        ring = paths_of(*([k, (k + 1) % hosts] for k in range(hosts)))
        found = regress(ring, np.full(hosts, 2.0), hosts)
        assert np.isnan(found.latency_seconds).all() == (hosts % 2 == 0)
        if hosts % 2:
            assert found.latency_seconds.tolist() == pytest.approx([1] * hosts)


def test_least_squares_are_those_of_scipy_and_r_squared_is_by_its_definition() -> None:
    draw = np.random.default_rng(3)
    links = [sorted(draw.choice(9, 4, replace=False).tolist()) for _ in range(60)]
    delays = draw.random(60) + 1
    matrix = np.zeros((60, 9))
    for row, own in enumerate(links):
        matrix[row, own] = 1
    wanted = lstsq(matrix, delays)[0]
    found = regress(paths_of(*links), delays, 9)
    assert found.latency_seconds == pytest.approx(wanted)
    assert found.r_squared == pytest.approx(
        1 - np.sum((delays - matrix @ wanted) ** 2) / np.sum((delays - delays.mean()) ** 2)
    )


def test_both_corrections_for_size() -> None:
    paths = paths_of([0, 1], [1])
    # 1,000 bytes at 8 Gb/s take 1 us, at 4 Gb/s 2 us.
    delays, gbps = np.array([10e-6, 5e-6]), np.array([8.0, 4.0])
    assert correct_for_size(paths, delays, gbps, 1000, MINIMUM) == pytest.approx([8e-6, 3e-6])
    assert correct_for_size(paths, delays, gbps, 1000, STORE_AND_FORWARD) == pytest.approx([7e-6, 3e-6])
    assert correct_for_size(paths, delays, gbps, 1000, NONE) is delays
    with pytest.raises(UsageError, match="--gbps"):
        correct_for_size(paths, delays, np.full(2, np.nan), 1000, MINIMUM)


@pytest.mark.parametrize("made", [three_levels(16), mixed_speeds(16)], ids=["tree", "mixed"])
def test_latencies_of_a_tree_come_back(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    write_made(made, 0.02)
    assert topology.main(["infer", "delays.nc", "-o", "t.json", "--bootstrap", "0"]) == 0
    capsys.readouterr()
    assert topology.main(["regress", "t.json", "delays.nc", "--json", "-o", "r.tgf", "-o", "r.csv"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["r_squared"] > 0.98
    assert document["ways"] == 120
    for edge in document["edges"]:
        if edge["a"].startswith("n"):
            (data,) = made.graph[int(edge["a"][1:])].values()
            assert edge["latency_us"] == pytest.approx(data["us"], rel=0.1)
    with Path("r.csv").open() as file:
        assert [row["latency_us"] for row in csv.DictReader(file)]
    assert " l: " in Path("r.tgf").read_text()


def test_time_of_the_bytes_is_taken_off(capsys: pytest.CaptureFixture[str]) -> None:
    made = three_levels(16)
    matrix = made.delays() + 1250 * 8 / 10e9  # add the time of the bytes on one link to each delay
    np.fill_diagonal(matrix, 0)
    names = tuple(f"n{host}" for host in range(16))
    write_delays("delays.nc", Delays(names, np.array([1250]), matrix[None].astype(np.float32)))
    assert topology.main(["infer", "delays.nc", "-o", "t.json", "--bootstrap", "0"]) == 0
    capsys.readouterr()
    assert topology.main(["regress", "t.json", "delays.nc", "--correct", "minimum", "--gbps", "10", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["corrected"] == "minimum"
    own = [edge["latency_us"] for edge in document["edges"] if edge["a"].startswith("n")]
    assert own == pytest.approx([1.0] * 16, rel=1e-3)


def test_of_a_torus_pairs_with_one_way_alone_count(capsys: pytest.CaptureFixture[str]) -> None:
    made = torus(4, 5, overhead=1.0)
    made.graph.edges[0, 1]["us"] = 0.12
    write_made(made)
    assert topology.main(["infer", "delays.nc", "-o", "t.json", "--method", "direct", "--bootstrap", "0"]) == 0
    capsys.readouterr()
    assert topology.main(["regress", "t.json", "delays.nc", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert 40 <= document["ways"] < 190
    latency = {(edge["a"], edge["b"]): edge["latency_us"] for edge in document["edges"]}
    assert latency["n0", "n1"] == pytest.approx(0.12, rel=0.05)
    assert document["r_squared"] > 0.99


def test_a_fabrics_links_by_guid_and_port(capsys: pytest.CaptureFixture[str]) -> None:
    # With two spines, the forwarding tables determine the links that a delay includes.
    fabric = "xgft:2:4,4:1,2"
    names = tuple(f"host{host:02}" for host in range(1, 17))
    matrix = np.where(np.arange(16)[:, None] // 4 == np.arange(16) // 4, 2e-6, 4e-6)
    np.fill_diagonal(matrix, 0)
    write_delays("delays.nc", Delays(names, np.array([8]), matrix[None].astype(np.float32)))
    assert topology.main(["regress", fabric, "delays.nc", "-o", "r.csv", "--correct", "none"]) == 0
    assert "24 links, 120 paths, R2 1.000000" in capsys.readouterr().out
    with Path("r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len({(row["a_guid"], row["a_port"], row["b_guid"], row["b_port"]) for row in rows}) == 24
    of_hosts = [float(row["latency_us"]) for row in rows if "host" in row["a"] + row["b"]]
    assert of_hosts == pytest.approx([1.0] * 16, rel=1e-3)


def test_what_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    write_made(three_levels(16))
    assert topology.main(["infer", "delays.nc", "-o", "t.json", "--bootstrap", "0"]) == 0
    for arguments, status in (
        (["t.json", "delays.nc", "--correct", "minimum"], 2),
        (["nowhere.json", "delays.nc"], 3),
        (["xgft:2:4,4:1,2", "delays.nc"], 5),
        (["xgft:2:4,4:1,2", "delays.nc", "-o", "x.json"], 2),
        (["t.json", "delays.nc", "-o", "t.json"], 2),
    ):
        assert topology.main(["regress", *arguments]) == status
        assert "Traceback" not in capsys.readouterr().err
