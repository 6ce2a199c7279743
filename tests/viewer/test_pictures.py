# SPDX-License-Identifier: Apache-2.0
"""In the view's pictures, pointing, keys, zoom, folding and saving work, even for large and unusual fabrics."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ibprof_testing.samples.fabrics import FABRICS, IBDIAGNET, find_sample, read_sample_bytes
from ibprof_testing.samples.traffic import write_matrix
from ibprof_testing.views import Open, wait_for_address

TESTBED = str(find_sample("testbed44", IBDIAGNET))
TREE = "xgft:2:4,4:1,4"


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    return write_matrix(tmp_path / "matrix.csv", 12)


_FOUND = """() => ibprof.lit().map(end => {
    const [fromX, fromY, toX, toY] = ibprof.extentOfEnd(end);
    const at = part => ibprof.find(fromX + part * (toX - fromX), fromY + part * (toY - fromY)).end;
    return [0.5, 0.8, 0.95].some(part => at(part) === end);
})"""
"""JavaScript: return, for each link direction with traffic, true if it is found at one of three points."""


@pytest.mark.parametrize("fabric", [TREE, "torus:4x4:2", "dragonfly:4,2,2", str(FABRICS / "hypercube-4")])
def test_each_link_direction_is_found_where_it_is_drawn(open_view: Open, matrix: str, fabric: str) -> None:
    opened = open_view([fabric, matrix, "--placement", "packed"])
    # Lines of other links may be nearer at some points. Cells do not overlap.
    for picture, missed in (("lines", 0.05), ("cells", 0)):
        opened.page.locator("#pictures").select_option(picture)
        found = opened.page.evaluate(_FOUND)
        assert found
        assert found.count(False) <= missed * len(found)


def test_parallel_links_are_apart(open_view: Open) -> None:
    opened = open_view(["xgft:2:4,2:1,2:1,3", "pattern:shift:4"])
    bundles: dict[tuple[str, str], list[int]] = {}
    for link, row in enumerate(opened.rows):
        bundles.setdefault((row["a_guid"], row["b_guid"]), []).append(link)
    bundle = next(links for links in bundles.values() if len(links) == 3)
    middles = [opened.page.evaluate(f"ibprof.extentOfEnd({2 * link}).slice(2)") for link in bundle]
    assert len({round(x) for x, _ in middles}) == 3


def test_what_is_pointed_at_is_never_covered(open_view: Open, matrix: str) -> None:
    opened = open_view([TESTBED, matrix, "--placement", "spread"])
    tip = opened.page.locator("#tooltip")
    for end in sorted(opened.lit())[::5]:
        opened.page.mouse.move(*opened.point_of_end(end))
        if tip.is_hidden():
            continue
        box, frame = tip.bounding_box(), opened.page.locator("#picture").bounding_box()
        assert box
        assert frame
        x, y = opened.page.evaluate(f"ibprof.locateEnd({end})")
        inside = box["x"] <= frame["x"] + x <= box["x"] + box["width"]
        assert not (inside and box["y"] <= frame["y"] + y <= box["y"] + box["height"])
        assert frame["x"] <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        assert frame["y"] <= box["y"]
        assert box["y"] + box["height"] <= frame["y"] + frame["height"] + 1


def test_keys_alone_lead_to_the_most_loaded_link(open_view: Open, matrix: str) -> None:
    opened = open_view([TESTBED, matrix, "--placement", "spread"])
    most_loaded = opened.most_loaded()
    opened.page.locator("#picture").focus()
    opened.page.keyboard.press("n")
    assert opened.rows[most_loaded >> 1]["a_name"] in opened.page.locator("#tooltip").inner_text()
    opened.page.keyboard.press("Enter")
    assert f"end={most_loaded}" in opened.address()
    opened.page.keyboard.press("?")
    assert opened.page.locator("#help").is_visible()
    opened.page.keyboard.press("Escape")
    assert f"end={most_loaded}" in opened.address()  # the key closed only the help, not the selection
    opened.page.keyboard.press("v")
    assert "picture=cells" in opened.address()
    assert opened.page.locator("#pictures").input_value() == "cells"


def test_zoom_and_pan_stand_in_the_address(open_view: Open, matrix: str) -> None:
    opened = open_view([TESTBED, matrix, "--placement", "spread"])
    opened.page.locator("#picture").focus()
    for key in ("+", "+", "+", "ArrowLeft"):
        opened.page.keyboard.press(key)
    wait_for_address(opened.page, "at=")
    point, address = opened.point_of_end(0), opened.page.url
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector("html[data-ready]")
    assert opened.point_of_end(0) == pytest.approx(point, abs=1)
    opened.page.keyboard.press("0")
    opened.page.wait_for_function("() => !location.hash.includes('at=')")


def test_unused_links_can_be_left_out(open_view: Open, matrix: str) -> None:
    opened = open_view([TESTBED, matrix, "--placement", "spread"])
    idle = next(end for end, amount in enumerate(opened.bytes_of_ends()) if not amount)
    where = opened.page.evaluate(f"ibprof.locateEnd({idle})")
    assert opened.page.evaluate("([x, y]) => ibprof.find(x, y).end", where) is not None
    opened.page.get_by_label("used only").check()
    assert opened.page.evaluate("([x, y]) => ibprof.find(x, y).end", where) != idle
    assert "used=1" in opened.address()


def test_parts_without_traffic_are_folded_until_a_click(open_view: Open, tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path / "large.csv", 64)
    opened = open_view([str(FABRICS / "xgft3-1296"), matrix, "--placement", "packed"])
    page = opened.page
    width = page.locator("#picture").bounding_box()["width"]  # type: ignore[index]
    lit = {end >> 1 for end in opened.lit()}
    used = [link for link, row in enumerate(opened.rows) if row["a_level"] == "0" and link in lit]
    assert len(used) == 64

    def spread() -> float:
        xs = [page.evaluate(f"ibprof.extentOfEnd({2 * link})[0]") for link in (used[0], used[-1])]
        return float(xs[1] - xs[0])

    assert spread() > 0.6 * width
    idle = [link for link, row in enumerate(opened.rows) if row["a_level"] == "0" and link not in lit]
    x, y, *_ = page.evaluate(f"ibprof.extentOfEnd({2 * idle[-1]})")
    found = page.evaluate("([x, y]) => ibprof.find(x, y).stub", [x, y])
    assert (found["hosts"], found["switches"]) == (972, 108)
    box = page.locator("#picture").bounding_box()
    assert box
    page.mouse.move(box["x"] + x, box["y"] + y)
    assert "972 hosts and 108 switches without traffic" in page.locator("#tooltip").inner_text()
    page.mouse.click(box["x"] + x, box["y"] + y)
    assert f"open={found['group']}" in opened.address()
    assert spread() < 0.2 * width
    page.get_by_label("fold idle").uncheck()
    assert "unfold=1" in opened.address()
    assert spread() < 0.1 * width
    page.keyboard.press("f")
    assert spread() > 0.6 * width
    assert opened.loads() == opened.expected()
    assert opened.complaints == []


def test_pictures_are_saved_as_png_and_svg(open_view: Open, tmp_path: Path, matrix: str) -> None:
    hostile = "<script>&"
    lst = read_sample_bytes("testbed44", IBDIAGNET).decode().replace("sw-a", hostile)
    (tmp_path / IBDIAGNET).write_text(lst)
    (tmp_path / "ibdiagnet.fdbs").write_bytes(read_sample_bytes("testbed44", "ibdiagnet.fdbs"))
    opened = open_view([str(tmp_path / IBDIAGNET), matrix, "--placement", "spread"])
    with opened.page.expect_download() as png:
        opened.page.locator("#png").click()
    picture = Image.open(BytesIO(Path(png.value.path()).read_bytes()))
    assert picture.width > 1000
    assert len(np.unique(np.asarray(picture.convert("L")))) > 50
    with opened.page.expect_download() as svg:
        opened.page.locator("#svg").click()
    root = ET.fromstring(Path(svg.value.path()).read_text())
    name = "{http://www.w3.org/2000/svg}"
    lines = [path.get("d", "").count("M") for path in root.iter(f"{name}path") if path.get("fill") == "none"]
    # The three most loaded links are drawn a second time, on top. Each half of these links has a rim.
    assert sum(lines) == 2 * len(opened.rows) + 3 * 2 * 2
    texts = [text.text or "" for text in root.iter(f"{name}text")]
    assert any("Modelled: link loads are sums" in text for text in texts)
    assert any("on" in text and "testbed" not in text for text in texts)
    assert not list(root.iter(f"{name}script"))
    assert opened.complaints == []
    assert opened.requests == [] or all(each.startswith("blob:") for each in opened.requests)


def test_cells_take_the_place_of_lines_where_there_are_many_links(open_view: Open) -> None:
    opened = open_view(["xgft:3:18,18,12:1,18,18", "pattern:shift:100:1000"])
    assert len(opened.rows) > 10_000
    assert opened.page.locator("#pictures").input_value() == "cells"
    assert opened.loads() == opened.expected()
    end = opened.most_loaded()
    point = opened.point_of_end(end)
    opened.page.mouse.move(*point)
    opened.page.mouse.wheel(0, -2000)
    wait_for_address(opened.page, "at=")
    opened.page.mouse.click(*opened.point_of_end(end))
    assert f"end={end}" in opened.address()


@pytest.mark.full
def test_a_hundred_thousand_links(open_view: Open) -> None:
    opened = open_view(["xgft:3:18,26,80:1,18,18", "pattern:shift:468:1000"])
    assert len(opened.rows) > 100_000
    assert opened.loads() == opened.expected()
    assert opened.complaints == []


@pytest.mark.parametrize("ranks", [1, 2])
def test_one_link_and_one_rank(open_view: Open, tmp_path: Path, ranks: int) -> None:
    traffic = tmp_path / "traffic.csv"
    traffic.write_text("src,dst,bytes,messages\n" + ("0,0,5,1\n" if ranks == 1 else f"0,1,{1 << 63},1\n1,0,0,0\n"))
    opened = open_view(["xgft:1:2:1", str(traffic), "--placement", "packed"])
    assert opened.loads() == opened.expected()
    for tab in opened.page.locator("#tabs button").all():
        tab.click()
    for key in ("g", "u", "v", "n", "0", "+", "-"):
        opened.page.keyboard.press(key)
    assert opened.complaints == []
    if ranks == 2:
        assert "9.22 EB" in opened.page.locator("#top-links").inner_text()


def test_names_of_odd_bytes_are_spelt_out(open_view: Open, tmp_path: Path) -> None:
    control = bytes(each for each in range(1, 40) if each not in b'"\r\n')[:31]
    odd = control + b"\xff\xfe\xe2\x80\xae" + b"<b>&amp;" + b"x" * 20
    assert len(odd) == 64
    lst = read_sample_bytes("testbed44", IBDIAGNET).replace(b"{host01 HCA-1}", b"{" + odd + b"}")
    (tmp_path / IBDIAGNET).write_bytes(lst)
    (tmp_path / "ibdiagnet.fdbs").write_bytes(read_sample_bytes("testbed44", "ibdiagnet.fdbs"))
    opened = open_view([str(tmp_path / IBDIAGNET), "pattern:shift:3:1000"])
    assert opened.loads() == opened.expected()
    opened.page.locator("#tab-links").click()
    said = opened.page.locator("#links").inner_text()
    assert "<b>&amp;" in said
    assert "\\u{202e}" in said
    assert "\u202e" not in said
    assert opened.page.locator("#links b").count() == 0
    assert opened.complaints == []
