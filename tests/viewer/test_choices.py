# SPDX-License-Identifier: Apache-2.0
"""Selections and filters by real gestures: the page's loads equal links.csv of the selected traffic."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from ibprof_converter.cli import layout
from ibprof_testing.samples.fabrics import FABRICS, IBDIAGNET, find_sample
from ibprof_testing.samples.timed_profiles import write_timed_profile
from ibprof_testing.samples.traffic import keep_pairs, loads_in_csv, write_matrix
from ibprof_testing.views import Open, Opened

TESTBED = str(find_sample("testbed44", IBDIAGNET))
TREE = "xgft:2:4,4:1,4"  # 16 hosts
RANKS = 16


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    return write_matrix(tmp_path / "matrix.csv", RANKS)


def test_several_ranks_are_chosen_by_their_boxes(open_view: Open, matrix: str, tmp_path: Path) -> None:
    opened = open_view([TREE, matrix, "--placement", "packed"])
    opened.page.locator("#tab-ranks").click()
    opened.page.get_by_role("checkbox", name=re.compile("^3 on")).check()
    opened.page.locator("#panel-ranks input[type=search]").fill("5 on")
    assert opened.page.locator("#ranks tbody tr").count() == 2
    opened.page.get_by_role("checkbox", name=re.compile("^5 on")).focus()
    opened.page.keyboard.press("Space")
    assert "ranks=3,5" in opened.address()
    kept = keep_pairs(matrix, tmp_path / "kept.csv", lambda a, b: {a, b} & {3, 5} != set())
    assert opened.loads() == loads_in_csv([TREE, kept, "--placement", "packed"], tmp_path / "kept-links.csv")
    opened.page.locator("#chips button").click()
    assert opened.loads() == opened.expected()


def test_a_cell_of_the_host_matrix_is_chosen_by_keys(open_view: Open, matrix: str, tmp_path: Path) -> None:
    opened = open_view([TREE, matrix, "--placement", "packed"])
    opened.page.locator("#tab-pairs").click()
    opened.page.get_by_role("button", name="Hosts", exact=True).click()
    opened.page.locator("#matrix-hosts").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        opened.page.keyboard.press(key)
    assert "from=2&to=1" in opened.address()
    kept = keep_pairs(matrix, tmp_path / "kept.csv", lambda a, b: (a, b) == (2, 1))
    assert opened.loads() == loads_in_csv([TREE, kept, "--placement", "packed"], tmp_path / "kept-links.csv")


def test_ranks_that_share_a_host_are_one_host(open_view: Open, matrix: str, tmp_path: Path) -> None:
    hosts = tmp_path / "ranks.csv"
    hosts.write_text("rank,host\n" + "".join(f"{rank},host{1 + rank % 4:02d}\n" for rank in range(RANKS)))
    opened = open_view([TESTBED, matrix, "--placement", str(hosts)])
    opened.page.locator("#tab-hosts").click()
    assert opened.page.locator("#hosts tbody tr").count() == 4
    opened.page.locator("#hosts button", has_text="host02 (rank 1, 5, 9, 13)").click()
    kept = keep_pairs(matrix, tmp_path / "kept.csv", lambda a, b: 1 in (a % 4, b % 4))
    assert opened.loads() == loads_in_csv([TESTBED, kept, "--placement", str(hosts)], tmp_path / "kept-links.csv")


@pytest.fixture
def two_rails(open_view: Open, module_folder: Path) -> Opened:
    fabrics = [str(FABRICS / "dualrail" / rail) for rail in ("rail1", "rail2")]
    hosts, matrix = module_folder / "hosts.txt", str(module_folder / "matrix.csv")
    if not hosts.exists():
        hosts.write_text("\n".join(f"t2a{host:06d}" for host in (11, 12, 31, 32, 51, 71)) + "\n")
        write_matrix(Path(matrix), 6)
    return open_view([*fabrics, matrix, "--placement", str(hosts), "--rails", "first"])


def test_rows_of_two_rails_are_mirrored_and_a_pair_has_a_way_on_each(two_rails: Opened) -> None:
    opened = two_rails
    rails = {row["rail"] for row in opened.rows}
    assert len(rails) == 2
    opened.page.locator("#tab-pairs").click()
    opened.page.locator("#pairs button").first.click()
    paths = opened.page.locator("#selection li").all_inner_texts()
    assert len(paths) == 2
    assert paths[0].startswith("rail 0: ")
    assert paths[1].startswith("rail 1: ")
    assert paths[1].endswith("(no traffic)")
    lit, others = opened.lit(), opened.page.evaluate("ibprof.unusedRoutes()")
    assert len(lit) == paths[0].count("→")
    assert len(others) == paths[1].count("→")
    assert {opened.rows[end >> 1]["rail"] for end in lit} == {opened.rows[0]["rail"]}
    assert {opened.rows[end >> 1]["rail"] for end in others} == rails - {opened.rows[0]["rail"]}
    # If a pair of hosts is selected, the page lights the same link directions as for the pair's ranks.
    opened.page.keyboard.press("Escape")
    opened.page.get_by_role("button", name="Hosts", exact=True).click()
    opened.page.locator("#pairs button").first.click()
    assert "from=" in opened.address()
    assert opened.page.locator("#selection li").all_inner_texts() == paths
    assert (opened.lit(), opened.page.evaluate("ibprof.unusedRoutes()")) == (lit, others)


def test_filters_by_rail_and_level(two_rails: Opened) -> None:
    opened = two_rails
    used = {end for end, amount in enumerate(opened.bytes_of_ends()) if amount}
    assert opened.lit() == used
    opened.page.locator("#levels").select_option("1")
    assert opened.lit() == {end for end in used if opened.rows[end >> 1]["b_level"] == "1"}
    opened.page.locator("#rails").select_option("1")
    assert opened.lit() == set()
    opened.page.keyboard.press("Escape")
    assert opened.lit() == used


def test_a_drag_on_the_colours_is_a_range_of_loads(open_view: Open, matrix: str) -> None:
    opened = open_view([TREE, matrix, "--placement", "packed"], address="#by=bytes")
    amounts = opened.bytes_of_ends()
    box = opened.page.locator("#colours").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    opened.page.mouse.move(box["x"] + 0.4 * box["width"], y)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 0.8 * box["width"], y, steps=4)
    opened.page.mouse.up()
    low, high = opened.page.evaluate("new URLSearchParams(location.hash.slice(1)).get('load').split(',').map(Number)")
    assert low == pytest.approx(0.4 * max(amounts), rel=0.05)
    assert high == pytest.approx(0.8 * max(amounts), rel=0.05)
    inside = {end for end, amount in enumerate(amounts) if amount and low <= amount <= high}
    assert 0 < len(inside) < sum(map(bool, amounts))
    assert opened.lit() == inside
    opened.page.get_by_role("slider", name="Load of link directions, to").press("End")
    assert opened.lit() == {end for end, amount in enumerate(amounts) if amount >= low}
    opened.page.get_by_role("slider", name="Load of link directions, from").press("Home")
    assert "load" not in opened.address()
    assert opened.loads() == opened.expected()


def test_search_finds_by_host_rank_lid_guid_and_switch(open_view: Open, matrix: str, tmp_path: Path) -> None:
    arguments = [TESTBED, matrix, "--placement", "packed"]
    opened = open_view(arguments)
    nodes = tmp_path / "nodes.csv"
    assert layout.main([*arguments, "-o", str(tmp_path / "again.csv"), "--nodes", str(nodes)]) == 0
    with nodes.open(newline="") as file:
        host = next(row for row in csv.DictReader(file) if row["name"] == "host05 HCA-1")
    lid = str(json.loads(host["lids"])[0])
    own = keep_pairs(matrix, tmp_path / "own.csv", lambda a, b: 4 in (a, b))
    loads = loads_in_csv([TESTBED, own, "--placement", "packed"], tmp_path / "own-links.csv")
    for wanted, found, address in (
        ("host05", "host host05", "hosts="),
        ("rank 4", "rank 4 on host05", "ranks=4"),
        (f"lid {lid}", f"LID {lid}: host05 HCA-1", "node="),
        (host["guid"], f"{host['guid']}: host05 HCA-1", "node="),
    ):
        opened.page.keyboard.press("/")
        opened.page.keyboard.type(wanted)
        assert found in opened.page.locator("#found li").first.inner_text()
        opened.page.keyboard.press("Enter")
        assert address in opened.address()
        assert opened.loads() == loads, wanted
        opened.page.keyboard.press("Escape")
        assert opened.loads() == opened.expected()
    # All bytes of this job go through sw-a, no bytes through sw-b.
    for switch, shown in (("sw-a", opened.expected()), ("sw-b", [["0", "0"]] * len(opened.rows))):
        opened.page.locator("#search").fill(switch)
        opened.page.locator("#found li").first.click()
        assert opened.loads() == shown
        opened.page.keyboard.press("Escape")
    opened.page.locator("#search").fill("no such thing")
    assert "no match" in opened.page.locator("#found").inner_text()


def test_jobs_are_distinguished(open_view: Open, tmp_path: Path) -> None:
    jobs = [write_matrix(tmp_path / f"{name}.csv", 4, seed=seed) for seed, name in enumerate(("one", "two"))]
    for start, name in enumerate(("a", "b")):
        hosts = "".join(f"{rank},host{1 + 10 * start + rank:02d}\n" for rank in range(4))
        (tmp_path / f"{name}.txt").write_text("rank,host\n" + hosts)
    places = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    placements = ["--placement", places[0], "--placement", places[1]]
    opened = open_view([TESTBED, *jobs, *placements])
    opened.page.locator("#jobs button", has_text="two").click()
    alone = loads_in_csv([TESTBED, jobs[1], "--placement", places[1]], tmp_path / "two-links.csv")
    assert opened.loads() == alone
    assert opened.page.locator("#jobs-key button").count() == 2
    opened.page.locator("#search").fill("rank 2")
    found = opened.page.locator("#found li")
    assert found.all_inner_texts() == ["rank 0:2 on host03 HCA-1", "rank 1:2 on host13 HCA-1"]


def test_a_span_of_time_is_dragged_over(open_view: Open, tmp_path: Path) -> None:
    opened = open_view([TESTBED, write_timed_profile(tmp_path)])
    opened.page.locator("#tab-time").click()
    box = opened.page.locator("#time").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    opened.page.mouse.move(box["x"] + box["width"] * 0.6, y)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] + 5, y, steps=4)
    opened.page.mouse.up()
    amounts = {int(each) for ends in opened.loads() for each in ends}
    assert max(amounts) == pytest.approx(400, abs=5)  # 4/5 of rank 2's bytes, and no bytes of rank 0
    assert len(amounts) == 2
    opened.page.locator("#spans button").first.click()
    first = {int(each) for ends in opened.loads() for each in ends} - {0}
    assert first == {round(1000 / 12)}
    opened.page.locator("#chips button").click()
    assert opened.loads() == opened.expected()


def test_a_file_without_time_has_no_time_line(open_view: Open, matrix: str) -> None:
    opened = open_view([TREE, matrix, "--placement", "packed"])
    assert opened.page.locator("#tab-time").count() == 0
