# SPDX-License-Identifier: Apache-2.0
"""Estimated loads of adaptive routing are close to the packet engine's loads. Reports and placements use estimates."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ibprof_converter.analysis.pipeline_options import FabricOptions, TrafficOptions
from ibprof_converter.analysis.pipeline_stages import load_fabric
from ibprof_converter.cli import layout, place, report
from ibprof_lab.simulation.engine.simulated_network import Hardware, index_network
from ibprof_testing.lab.far import write_far
from ibprof_testing.paths import ROOT
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample, read_sample_bytes, read_subnet

sys.path.insert(0, str(ROOT / "benchmarks"))
from adaptive_estimate import Errors, compare, patterns, without_cables

SPREAD = "xgft:2:8,8:1,8"
"""Eight leaves of eight hosts, LIDs 1 to 64, under eight spines."""


def write_collisions(folder: Path) -> Path:
    """Write flows; each host sends one flow and receives one flow.

    The seven flows of a leaf to other leaves share one static uplink.
    """
    rows = [(8 * leaf + n + 1, 8 * ((leaf + n) % 8) + leaf + 1) for leaf in range(8) for n in range(1, 8)]
    path = folder / "flows.csv"
    path.write_text("src_lid,dst_lid,bytes\n" + "".join(f"{one},{other},10000000\n" for one, other in rows))
    return path


def run_json(main: Callable[[list[str]], int], arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_the_estimate_ranks_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report advises another placement with static routes (5.6 ms), and no change with adaptive routes (0.8 ms)."""
    arguments = [SPREAD, str(write_collisions(tmp_path)), "--json"]
    static = run_json(report.main, arguments, capsys)
    assert static["load_basis"] == static["diagnosis"]["load_basis"] == "static"
    assert [cause["cause"] for cause in static["diagnosis"]["causes"]] == ["placement"]
    assert static["diagnosis"]["max_time_s"] == pytest.approx(5.6e-3)
    assert static["diagnosis"]["causes"][0]["evidence"][0].startswith(
        "with another placement on the same hosts, the most loaded link needs 800 \N{MICRO SIGN}s; "
    )
    assert static["max_switch_link"] == 70_000_000
    assert "static_bytes" not in static["hotspots"][0]
    adaptive = run_json(report.main, [*arguments, "--adaptive"], capsys)
    assert adaptive["load_basis"] == adaptive["diagnosis"]["load_basis"] == "estimate"
    assert adaptive["diagnosis"]["causes"] == []
    assert adaptive["diagnosis"]["max_time_s"] == pytest.approx(0.8e-3)
    assert adaptive["max_switch_link"] == 70_000_000 / 8
    assert adaptive["adaptive"]["max_switch_link"] == {
        "static": 70_000_000,
        "shared": 8_750_000,
        "estimate": 8_750_000,
        "most": 70_000_000,
    }
    assert {spot["static_bytes"] for spot in adaptive["switch_hotspots"]} <= {0, 10_000_000, 70_000_000}


def test_text_and_page_say_that_loads_are_estimated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flows = write_collisions(tmp_path)
    page = tmp_path / "report.html"
    assert report.main([SPREAD, str(flows), "--adaptive", "--html", str(page)]) == 0
    assert "Most loaded links, by time at line rate (estimate, adaptive routing)" in page.read_text()
    capsys.readouterr()
    assert report.main([SPREAD, str(flows), "--adaptive", "--full"]) == 0
    text = capsys.readouterr().out
    for sentence in (
        "Most loaded links, and who loads them (estimate, adaptive routing)",
        "Why: bounds, causes and what would help (estimate, adaptive routing)",
        "By rail and level (static routes)",
        "(on no static route)",
    ):
        assert sentence in text


def test_pictures_and_the_view_say_that_they_are_static(tmp_path: Path) -> None:
    fabric = FabricOptions((SPREAD,))
    traffic = str(write_collisions(tmp_path))
    static, adaptive = (load_fabric(fabric, TrafficOptions((traffic,), adaptive=asked)) for asked in (False, True))
    assert adaptive.subtitle == f"{static.subtitle}; loads of static routes, though switches route adaptively"
    (shown,) = set(adaptive.coverage.modelled) - set(static.coverage.modelled)
    assert "lists of hosts use static routes" in shown
    modelled = load_fabric(FabricOptions((SPREAD,), routes="modelled"), TrafficOptions((traffic,)))
    assert modelled.subtitle == f"{static.subtitle}; routes modelled:d-mod-k"


def test_links_csv_has_static_loads_bounds_and_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main([SPREAD, str(write_collisions(tmp_path)), "--adaptive"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0])[-6:] == ["a_shared", "b_shared", "a_most", "b_most", "a_estimate", "b_estimate"]
    between = [row for row in rows if row["a_level"] == "1"]
    assert max(int(row["a_bytes"]) for row in between) == 70_000_000
    assert {int(row["a_estimate"]) for row in between} == {8_750_000}


def test_a_far_alone_makes_the_estimate_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ibdiagnet2.lst").write_bytes(read_sample_bytes("xgft3-512", IBDIAGNET))
    (tmp_path / "ibdiagnet2.far").write_text(write_far(load_sample("xgft3-512", IBDIAGNET)))
    found = run_json(report.main, [str(tmp_path), "pattern:shift:7:1000", "--json"], capsys)
    assert found["load_basis"] == "estimate"
    assert "ibdiagnet2.far" in found["adaptive"]["reason"]
    assert found["adaptive"]["bytes_unrouted"] == 0


def test_placements_are_judged_by_the_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight ranks on one leaf send to eight ranks on another leaf.

    Adaptive routes use all uplinks equally, so no other placement is better.
    """
    traffic = tmp_path / "ranks.csv"
    traffic.write_text("src,dst,bytes,messages\n" + "".join(f"{n},{8 + n},8000000,1\n" for n in range(8)))
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"host{n:02d}\n" for n in (*range(1, 9), *range(9, 17))))
    arguments = [SPREAD, str(traffic), "--hosts", str(hosts), "--time", "0.2", "--json"]
    static = run_json(place.main, arguments, capsys)
    adaptive = run_json(place.main, [*arguments, "--adaptive"], capsys)
    assert (static["load_basis"], adaptive["load_basis"]) == ("static", "estimate")
    times = adaptive["max_link_seconds"]
    assert times["best"] == min(value for name, value in times.items() if name != "bound")
    # 16 ranks at random on two leaves: half of the bytes cross each leaf's eight uplinks.
    assert times["random"] < static["max_link_seconds"]["random"]
    assert "estimated loads" in adaptive["limits"]
    assert adaptive["above_bound"] is None


CASES = [(shape, cut) for shape in ("xgft:2:6,6:1,6", "xgft:3:4,4,3:1,4,2") for cut in (None, 5)]
"""Fabrics for this test only: the estimate was calibrated on the benchmark's fabrics."""


@pytest.mark.parametrize(("shape", "cut"), CASES)
def test_the_error_of_the_estimate_is_that_of_the_docs(shape: str, cut: int | None) -> None:
    subnet = read_subnet(shape) if cut is None else without_cables(read_subnet(shape), cut)
    hosts = index_network(subnet, Hardware()).hosts
    found = [compare(name, subnet, flows) for name, flows in patterns(hosts, seed=3)]
    errors = [each for each in found if isinstance(each, Errors)]
    assert len(errors) > 3
    assert max(abs(each.bottleneck) for each in errors) < 0.3
    assert max(each.moved for each in errors) < 0.2
    if cut is not None:
        assert sum(each.moved for each in errors) < sum(each.shared_moved for each in errors)


def test_ports_that_are_equally_full_but_lead_to_unequal_ones() -> None:
    """A middle switch lost three of four uplinks, but the queues of leaf switches do not show this at first.

    If leaf switches chose all uplinks equally often, 6 flows would use the last uplink, instead of 3.1 in the engine.
    """
    subnet = without_cables(read_subnet("xgft:3:4,4,4:1,4,4"), 3)
    hosts = index_network(subnet, Hardware()).hosts
    found = compare("shift by half", subnet, dict(patterns(hosts, seed=11))["shift by half"])
    assert found is not None
    assert found.shared_bottleneck > 0.9
    assert abs(found.bottleneck) < 0.2
    assert found.moved < found.shared_moved
