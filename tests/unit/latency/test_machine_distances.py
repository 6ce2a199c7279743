# SPDX-License-Identifier: Apache-2.0
"""In outputs of common tools with delays inside a machine, ibprof reads the unit, and finds the machine's levels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_lab.cli.topology import main
from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_lab.topology.infer.inference import infer
from ibprof_lab.topology.infer.pair_delays import take_pair_delays
from ibprof_testing.paths import DATA

DELAYS = DATA / "delays"

SLIT = "10 20 21 21\n20 10 21 21\n21 21 10 20\n21 21 20 10\n"
RING = "10 16 16 22\n16 10 22 16\n16 22 10 16\n22 16 16 10\n"
HWLOC_1 = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc.dtd">
<topology>
  <object type="Machine" os_index="0">
    <distances nbobjs="2" relative_depth="3" latency_base="10.000000">
      <latency value="1.000000"/><latency value="2.100000"/><latency value="2.100000"/><latency value="1.000000"/>
    </distances>
  </object>
</topology>
"""


@pytest.mark.parametrize("name", ["numactl_hardware.out", "lstopo_distances.xml"])
def test_distances_of_firmware_are_read_with_names(name: str) -> None:
    delays = read_delays(DELAYS / name)
    assert delays.labels == ("node0", "node1", "node2", "node3")
    assert np.allclose(delays.median[0] * 1e9, [[0, 20, 21, 21], [20, 0, 21, 21], [21, 21, 0, 20], [21, 21, 20, 0]])


def test_a_matrix_of_the_kernel_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "distance").write_text(SLIT)
    expected = read_delays(DELAYS / "numactl_hardware.out")
    delays = read_delays(tmp_path / "distance")
    assert (delays.labels, dict(delays.attributes)) == (expected.labels, dict(expected.attributes))
    assert np.array_equal(delays.median, expected.median)


def test_distances_of_hwloc_1_are_multiples_of_a_base(tmp_path: Path) -> None:
    (tmp_path / "v1.xml").write_text(HWLOC_1)
    assert np.allclose(read_delays(tmp_path / "v1.xml").median[0] * 1e9, [[0, 21], [21, 0]])


def test_every_difference_of_stated_distances_is_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", str(DELAYS / "numactl_hardware.out")]) == 0
    out = capsys.readouterr().out
    assert "2 switches" in out
    assert "the delays are distances that firmware states (10: local memory); a distance of 1 counts as 1 ns" in out
    assert "measure again" not in out


def test_four_sockets_in_a_ring_are_linked_with_one_another(tmp_path: Path) -> None:
    (tmp_path / "distance").write_text(RING)
    topology = infer(take_pair_delays(read_delays(tmp_path / "distance"))).topology
    assert (topology.method, topology.edge.tolist()) == ("direct", [[0, 1], [0, 2], [1, 3], [2, 3]])


def test_the_first_table_of_core_to_core_latency_is_in_nanoseconds() -> None:
    delays = read_delays(DELAYS / "core_to_core_latency.out", unit=1.0)
    assert delays.labels == tuple("01234567")
    assert np.array_equal(~np.isnan(delays.median[0]), np.tri(8, dtype=bool))
    assert np.allclose(delays.median[0, 4, :5] * 1e9, [94, 92, 92, 93, 0])
    groups = infer(take_pair_delays(delays)).topology.find_splits()
    assert frozenset({4, 5, 6, 7}) in groups


def test_a_lower_triangle_of_means_is_in_nanoseconds_unless_a_unit_is_given(tmp_path: Path) -> None:
    (tmp_path / "cores.csv").write_text(",,\n24.1233,,\n92.3,91.25,\n")
    assert read_delays(tmp_path / "cores.csv").median[0, 2, 1] == pytest.approx(91.25e-9)
    assert read_delays(tmp_path / "cores.csv", unit=1e-6).median[0, 2, 1] == pytest.approx(91.25e-6)


@pytest.mark.parametrize(
    ("name", "row", "microseconds"),
    [
        ("intel_mlc.out", 0, [0, 0.1348]),
        ("nvbandwidth.out", 1, [0.82583, 0, 1.22876, 1.22945]),
        ("p2p_bandwidth_latency_test.out", 0, [0, 2.25, 16.85, 16.96]),
    ],
)
def test_the_table_that_matters_is_chosen_of_several(name: str, row: int, microseconds: list[float]) -> None:
    assert np.allclose(read_delays(DELAYS / name).median[0, row] * 1e6, microseconds)


def test_json_of_nvbandwidth_has_the_delays_of_its_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, found = (read_delays(DELAYS / f"nvbandwidth.{ending}") for ending in ("out", "json"))
    assert found.labels == text.labels
    assert np.allclose(found.median, text.median, rtol=0, atol=0.006e-9)  # the text has two decimals
    compact = tmp_path / "compact.json"
    compact.write_text(json.dumps(json.loads((DELAYS / "nvbandwidth.json").read_text())))
    assert np.array_equal(read_delays(compact).median, found.median)
    assert main(["infer", str(compact), "--bootstrap", "0"]) == 0
    assert "switch2: [2-3]" in capsys.readouterr().out


def test_json_of_nvbandwidth_without_delays_ends_with_status_3(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "bandwidths.json"
    path.write_text((DELAYS / "nvbandwidth.json").read_text().replace("(ns)", "(GB/s)"))
    assert main(["infer", str(path)]) == 3
    assert f"{path}:17: expected a table of delays, found 'memcpy CE GPU(row) -> GPU" in capsys.readouterr().err
    path.write_text('{"nvbandwidth": {"error": "ERROR: no device"}}')
    with pytest.raises(InputError, match="expected a table of delays, found none"):
        read_delays(path)


@pytest.mark.parametrize("name", ["nvbandwidth.out", "nvbandwidth.json", "p2p_bandwidth_latency_test.out"])
def test_gpus_behind_two_switches_are_found(name: str) -> None:
    assert frozenset({2, 3}) in infer(take_pair_delays(read_delays(DELAYS / name))).topology.find_splits()


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("numactl_hardware.out", "  2:  21  21", "  2:  21", r":18: expected 4 distances of node 2, found"),
        ("numactl_hardware.out", "node   0   1   2   3 ", "nodes", r":15: expected the line `node 0 1 ...` after"),
        ("lstopo_distances.xml", 'kind="5"', 'kind="9"', r"expected distances that are latencies"),
        ("lstopo_distances.xml", 'kind="5"', 'kind="q"', r"expected XML of lstopo, found invalid literal"),
        ("lstopo_distances.xml", "0 1 2 3 </ind", "0 1 2 7 </ind", r"expected 9 distances of 3 objects, found 16"),
        ("lstopo_distances.xml", "</topology>", "", r"expected XML of lstopo, found no element found"),
        ("lstopo_distances.xml", "21 21 21 21", "21 21 21 x", r"expected 16 distances of 4 objects"),
        ("core_to_core_latency.out", "      3 ", "      4 ", r":13: expected 3 delays of core 4, found '3"),
        ("nvbandwidth.json", '"1228.28"', '"fast"', r":86: expected a delay, found 'fast'"),
        (
            "nvbandwidth.json",
            '"1228.28",',
            "",
            r":84: expected a square table of delays .*, found 3 values in a row, and 4",
        ),
        ("nvbandwidth.json", '"1228.28",', '"1228.28"', r":87: expected JSON of nvbandwidth, found Expecting ',' del"),
        ("nvbandwidth.json", "SM GPU(row)", "SM (row)", r":69: expected one table of delays, found another: 'Device"),
    ],
)
def test_damage_is_refused_with_its_line(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    text = (DELAYS / name).read_text()
    assert old in text
    (tmp_path / "in.txt").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_delays(tmp_path / "in.txt")
