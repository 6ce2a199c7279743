# SPDX-License-Identifier: Apache-2.0
"""The view in a browser: its loads equal links.csv, and gestures work."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from ibprof.archive.otf2_archive import write_archive
from ibprof.profile.profile_data import Site
from ibprof_converter.cli import layout, report, view
from ibprof_testing.samples.demands import with_demands
from ibprof_testing.samples.fabrics import FABRICS, IBDIAGNET, find_sample, read_sample_bytes
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank
from ibprof_testing.samples.timed_profiles import write_regions_profile
from ibprof_testing.samples.traffic import write_matrix
from ibprof_testing.views import Open, Opened

TESTBED = str(find_sample("testbed44", IBDIAGNET))
AXE = Path(__file__).resolve().parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture
def profile(tmp_path: Path) -> str:
    hosts = ["host01", "host21", "host41"]
    counts = [
        Count(0, 1, 9_000_000_000_000_000_001, region=0, operation=0),
        Count(2, 1, 70, region=1, operation=1),
        Count(0, 2, 5, region=1, operation=0),
    ]
    run = make_profile(
        counts,
        [make_rank(rank, rank) for rank in range(3)],
        [make_host(name) for name in hosts],
        regions=("main", "<b>halo</b>"),
        operations=("BCAST", "SEND"),
    )
    write_archive(run, tmp_path / "profile.otf2")
    return str(tmp_path / "profile.otf2")


@pytest.mark.parametrize(
    ("fabrics", "traffic"),
    [
        (["testbed44"], "pattern:all-to-all:7"),  # this traffic has loads, but no list of flows
        (["testbed44"], "pattern:shift:3:1000"),
        pytest.param(["dualrail/rail1", "dualrail/rail2"], "pattern:bisect:1:12345", marks=pytest.mark.full),
        (["torus2d-5x4"], "pattern:shift:7"),
        (["dragonfly-72"], "pattern:permutation:3:99"),
        (["xgft3-1296-partial"], "pattern:shift:9"),  # some flows have no route
        (["oversub-faulty"], "pattern:shift:11"),
    ],
)
def test_loads_that_the_page_adds_up_are_those_of_links_csv(open_view: Open, fabrics: list[str], traffic: str) -> None:
    opened = open_view([*(str(FABRICS / fabric) for fabric in fabrics), traffic, "--max-unrouted", "100"])
    assert opened.loads() == opened.expected()
    assert opened.complaints == []
    assert opened.requests == []


def test_bytes_beyond_what_doubles_hold_are_exact(open_view: Open, profile: str) -> None:
    opened = open_view([TESTBED, profile])
    assert opened.loads() == opened.expected()
    assert any(int(each) > 1 << 62 and int(each) % 2 for ends in opened.loads() for each in ends)


def test_the_first_screen_names_the_most_loaded_links_as_the_report_does(
    open_view: Open, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = open_view([TESTBED, profile])
    first = opened.page.locator("#top-links li").first
    assert opened.page.locator("#top-links li").count() == 3
    for said in ("rank 0 to rank 1 100.0%", "region main", "MPI_Bcast", "9 EB", "at line rate"):
        assert said in first.inner_text()
    assert first.evaluate("each => each.getBoundingClientRect().bottom < innerHeight")
    assert report.main([TESTBED, profile, "--full"]) == 0
    row = opened.rows[opened.most_loaded() >> 1]
    assert row["a_name"] in capsys.readouterr().out
    assert "Modelled: link loads are sums" in opened.page.locator("#coverage").inner_text()
    assert opened.page.locator("#coverage").is_visible()


def test_links_are_ranked_by_time_at_line_rate_as_in_the_verdict(open_view: Open) -> None:
    page = open_view([str(find_sample("oversub-faulty", IBDIAGNET)), "pattern:shift:7:100000"]).page
    # This link carries a third of the bytes of the most used link, at a quarter of the speed.
    assert "leaf09 port 16" in page.inner_text("#top-links li:first-child")
    assert "leaf09 port 16" in page.inner_text("#verdict")


def test_a_telephone_shows_the_picture_and_below_it_the_lists(open_view: Open) -> None:
    page = open_view([TESTBED, "pattern:shift:7:100000"]).page
    page.set_viewport_size({"width": 390, "height": 844})
    picture, lists, title = (page.locator(each).bounding_box() for each in ("#network", "aside", ".headings"))
    assert picture
    assert lists
    assert title
    assert picture["width"] == lists["width"] == 390
    assert lists["y"] >= picture["y"] + picture["height"]
    assert title["height"] < 60
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_operations_of_which_bytes_are_missing_are_named_below_the_picture(open_view: Open, tmp_path: Path) -> None:
    ranks = [make_rank(rank, rank, sees_host=True) for rank in range(2)]
    run = make_profile([Count(0, 1, 99)], ranks, [make_host("host01"), make_host("host42")], operations=("BCAST",))
    write_archive(with_demands(run, [(1, 0, 5000)]), tmp_path / "profile.otf2")
    opened = open_view([TESTBED, str(tmp_path / "profile.otf2")])
    named = opened.page.locator("#coverage p", has_text="MPI_Bcast")
    assert named.inner_text() == (
        "Not seen: MPI_Bcast: 1 call must send at least 5 kB between ranks; 99 B were seen; "
        "MPI sent the rest by a path that ibprof does not see"
    )
    assert named.is_visible()


def test_a_region_and_an_operation_are_chosen_by_a_click(open_view: Open, profile: str, tmp_path: Path) -> None:
    opened = open_view([TESTBED, profile])
    by = tmp_path / "by.csv"
    assert layout.main([TESTBED, profile, "--by", "region,operation", "-o", str(by)]) == 0

    def expected(region: str, operation: str | None) -> set[tuple[str, str, str, str]]:
        with by.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["region"] == region]
        chosen = [row for row in rows if operation in (None, row["operation"])]
        keys = ("a_name", "a_port", "a_bytes", "b_bytes")
        return {(row[keys[0]], row[keys[1]], row[keys[2]], row[keys[3]]) for row in chosen}

    def shown() -> set[tuple[str, str, str, str]]:
        return {
            (row["a_name"], row["a_port"], ends[0], ends[1])
            for row, ends in zip(opened.rows, opened.loads(), strict=True)
            if ends != ["0", "0"]
        }

    opened.page.locator("#regions button", has_text="main").click()
    assert shown() == expected("main", None)
    opened.page.locator("#regions button", has_text="halo").click()
    opened.page.locator("#operations button", has_text="SEND").click()
    assert shown() == expected("<b>halo</b>", "SEND")
    opened.page.keyboard.press("Escape")
    assert opened.loads() == opened.expected()


def test_a_call_site_is_chosen_by_a_click(open_view: Open, tmp_path: Path) -> None:
    counts = [Count(0, 1, 900), Count(2, 1, 70), Count(0, 2, 5)]
    hosts = [make_host(name) for name in ("host01", "host21", "host41")]
    run = make_profile(counts, [make_rank(rank, rank) for rank in range(3)], hosts)
    sites = tuple(Site("/src/a.c", line, "f", "app", name=f"a.c:{line}") for line in (7, 212))
    run = replace(run, sites=sites, counters=replace(run.counters, site=np.array([1, 2, 2], np.int32)))
    write_archive(run, tmp_path / "profile.otf2")
    command, by = [TESTBED, str(tmp_path / "profile.otf2")], tmp_path / "by.csv"
    opened = open_view(command)
    assert layout.main([*command, "--by", "site", "-o", str(by)]) == 0
    with by.open(newline="") as file:
        of_line = {(row["a_guid"], row["a_port"]): row for row in csv.DictReader(file) if row["site"] == "a.c:212"}
    nothing = {"a_bytes": "0", "b_bytes": "0"}
    of_link = [of_line.get((row["a_guid"], row["a_port"]), nothing) for row in opened.rows]
    opened.page.locator("#sites button", has_text="a.c:212").click()
    assert opened.loads() == [[row["a_bytes"], row["b_bytes"]] for row in of_link]
    assert len(of_line) > 2
    opened.page.keyboard.press("Escape")
    assert opened.loads() == opened.expected()


def test_a_rank_lights_up_its_own_paths(open_view: Open, tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "matrix.csv", 12)
    opened = open_view([TESTBED, matrix, "--placement", "spread"])
    opened.page.locator("#tab-ranks").click()
    opened.page.locator("#ranks button").filter(has_text="5 on ").first.click()
    kept = [
        line
        for line in Path(matrix).read_text().splitlines(keepends=True)
        if line.startswith(("src", "5,")) or line.split(",")[1] == "5"
    ]
    own = tmp_path / "own.csv"
    own.write_text("".join([*kept, "11,10,0,1\n"]))  # so that both matrices have the same number of ranks
    links = tmp_path / "own-links.csv"
    assert layout.main([TESTBED, str(own), "--placement", "spread", "-o", str(links)]) == 0
    with links.open(newline="") as file:
        assert opened.loads() == [[row["a_bytes"], row["b_bytes"]] for row in csv.DictReader(file)]


def test_a_cell_of_the_matrix_lights_up_the_path_of_its_pair(open_view: Open, tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "matrix.csv", 12)
    opened = open_view([TESTBED, matrix, "--placement", "spread"])
    opened.page.locator("#tab-pairs").click()
    canvas = opened.page.locator("#matrix-ranks")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    cell = box["width"] / 12
    canvas.click(position={"x": 7.5 * cell, "y": 3.5 * cell})
    pair = next(line for line in Path(matrix).read_text().splitlines() if line.startswith("3,7,"))
    amount = pair.split(",")[2]
    loads = opened.loads()
    used = [row for row, ends in zip(opened.rows, loads, strict=True) if ends != ["0", "0"]]
    assert {each for ends in loads for each in ends} == {"0", amount}
    assert len([row for row in used if row["a_level"] == "0"]) == 2  # the access links of the two hosts
    pressed = opened.page.locator("#pairs button[aria-pressed=true]")
    assert pressed.all_inner_texts() in (["rank 3 to rank 7"], [])  # the table lists only the largest flows
    assert opened.page.evaluate("location.hash") == "#panel=pairs&source=3&destination=7"


def test_the_address_holds_what_is_chosen(open_view: Open, profile: str) -> None:
    opened = open_view([TESTBED, profile])
    opened.page.locator("#regions button", has_text="halo").click()
    opened.page.keyboard.press("g")
    opened.page.keyboard.press("d")
    address, loads = opened.page.evaluate("location.href"), opened.loads()
    assert loads != opened.expected()
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector("html[data-ready][data-theme=dark]")
    assert opened.loads() == loads
    assert opened.page.locator("#log").get_attribute("aria-pressed") == "true"
    opened.page.evaluate("location.hash = '#region=99&end=-1&ranks=1e3&theme=<b>&job=x&at=1,2&load=a,b&rail=7'")
    opened.page.wait_for_selector("html[data-theme=light]")
    assert opened.loads() == opened.expected()
    assert opened.complaints == []


def test_a_click_on_half_a_link_says_who_is_on_it(open_view: Open, profile: str) -> None:
    opened = open_view([TESTBED, profile])
    end = opened.most_loaded()
    opened.page.mouse.move(*opened.point_of_end(end))
    tip = opened.page.locator("#tooltip").inner_text()
    row = opened.rows[end >> 1]
    assert row["a_name"] in tip
    assert f"{int(row[('a_bytes', 'b_bytes')[end & 1]]):,}" in tip
    opened.page.mouse.down()
    opened.page.mouse.up()
    assert "rank 0 to rank 1" in opened.page.locator("#selection").inner_text()
    assert opened.loads()[end >> 1][end & 1] == row[("a_bytes", "b_bytes")[end & 1]]


def wait_for_point(opened: Opened, end: int, point: tuple[float, float], within: float) -> None:
    """Wait until a link direction is at a point of the window: on a busy machine, the page reacts late."""
    for _ in range(100):
        if opened.point_of_end(end) == pytest.approx(point, abs=within):
            return
        opened.page.wait_for_timeout(50)
    assert opened.point_of_end(end) == pytest.approx(point, abs=within)


def test_wheel_zooms_to_the_pointer_and_a_drag_pans(open_view: Open, profile: str) -> None:
    opened = open_view([TESTBED, profile])
    end = opened.most_loaded()
    point = opened.point_of_end(end)
    opened.page.mouse.move(*point)
    spread = "ibprof.locateNode(0)[0] - ibprof.locateNode(1)[0]"
    before = opened.page.evaluate(spread)
    opened.page.mouse.wheel(0, -600)
    opened.page.wait_for_function(f"before => Math.abs({spread}) > 1.5 * Math.abs(before)", arg=before)
    wait_for_point(opened, end, point, 1)
    opened.page.mouse.down()
    opened.page.mouse.move(point[0] + 50, point[1] + 20, steps=5)
    opened.page.mouse.up()
    wait_for_point(opened, end, (point[0] + 50, point[1] + 20), 2)
    opened.page.keyboard.press("0")
    wait_for_point(opened, end, point, 1)


def test_names_from_files_are_text(open_view: Open, tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>"
    lst = read_sample_bytes("testbed44", IBDIAGNET).decode().replace("{host01 HCA-1}", "{" + hostile + "}")
    (tmp_path / IBDIAGNET).write_text(lst)
    (tmp_path / "ibdiagnet.fdbs").write_bytes(read_sample_bytes("testbed44", "ibdiagnet.fdbs"))
    opened = open_view([str(tmp_path / IBDIAGNET), "pattern:shift:3:1000"])
    assert opened.page.locator("img").count() == 0
    opened.page.locator("#tab-ranks").click()
    assert hostile in opened.page.locator("#ranks").inner_text()
    assert opened.complaints == []
    assert opened.requests == []


def test_an_empty_traffic_is_shown_as_such(open_view: Open, tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.csv"
    matrix.write_text("src,dst,bytes,messages\n0,1,0,0\n")
    opened = open_view([TESTBED, str(matrix), "--placement", "spread"])
    assert "no traffic on any link" in opened.page.locator("#top-links").inner_text()
    assert opened.loads() == opened.expected()
    assert opened.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_view: Open, tmp_path: Path, scheme: str) -> None:
    inputs = ["xgft:2:4,4:1,4", write_regions_profile(tmp_path, 8), "--placement", "packed"]
    opened = open_view(inputs, scheme, address="#panel=time")
    opened.page.locator("#top-links button").first.click()
    opened.page.evaluate(AXE.read_text())
    assert [each["id"] for each in opened.page.evaluate("axe.run()")["violations"]] == []


def test_a_file_of_1296_hosts_is_small(tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "matrix.csv", 128, (1, 1 << 31))
    html = tmp_path / "view.html"
    assert view.main([str(FABRICS / "xgft3-1296"), matrix, "--placement", "spread", "-o", str(html)]) == 0
    assert html.stat().st_size < 1_500_000


def test_it_refuses_to_write_over_what_it_reads(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert view.main([TESTBED, profile, "-o", TESTBED]) == 2
    assert "this is also an input" in capsys.readouterr().err


def test_without_scripts_it_says_so(browser: Browser, tmp_path: Path) -> None:
    html = tmp_path / "view.html"
    assert view.main(["xgft:1:4:1", "pattern:shift:1", "-o", str(html)]) == 0
    page = browser.new_page(java_script_enabled=False, offline=True)
    page.goto(html.as_uri())
    assert "ibprof-report --html" in page.locator("noscript p").inner_text()
    page.close()
