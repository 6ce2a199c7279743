# SPDX-License-Identifier: Apache-2.0
"""Mouse and keys rotate the 3-D picture of a topology. The colours and the table show the file's values."""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from ibprof_converter.cli import layout, view
from ibprof_lab.cli import latency, topology
from ibprof_lab.latency.files.delay_files import write_delays
from ibprof_testing.samples.delays import make_delays
from ibprof_testing.samples.topologies import ARCS, SHAPES, disturb
from ibprof_testing.views import Open, wait_for_address

AXE = Path(__file__).resolve().parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"

Show = Callable[..., Page]


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Yield a function that opens the view of a topology; check that the page has no errors and no network requests."""
    opened = []
    heard: list[str] = []

    def show_one(source: Path, address: str = "", width: int = 1280, height: int = 720) -> Page:
        html = source
        if source.suffix != ".html":
            html = tmp_path / "topology.html"
            assert topology.main(["view", str(source), "-o", str(html)]) == 0
        page = browser.new_page(viewport={"width": width, "height": height}, offline=True)
        opened.append(page)
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: heard.append(request.url) if request.url.startswith("http") else None)
        page.goto(html.as_uri() + address)
        page.wait_for_selector("html[data-ready]")
        return page

    yield show_one
    assert heard == []
    for page in opened:
        page.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    delays = disturb(SHAPES["2 levels"](16).delays(), 0.02, 1) * 1e6
    with (tmp_path / "delays.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *(f"n{host}" for host in range(16))])
        writer.writerows([f"n{host}", *row] for host, row in enumerate(delays))
    path = tmp_path / "topology.json"
    assert topology.main(["infer", str(tmp_path / "delays.csv"), "-o", str(path), "--bootstrap", "0"]) == 0
    return path


@pytest.fixture
def arcs(tmp_path: Path) -> Path:
    path = tmp_path / "arcs.json"
    path.write_text(ARCS)
    return path


def point_of_node(page: Page, node: int) -> tuple[float, float]:
    x, y = page.evaluate(f"ibprof.locateNode({node})")
    box = page.locator("#picture").bounding_box()
    assert box
    return box["x"] + x, box["y"] + y


def point_of_end(page: Page, end: int) -> tuple[float, float]:
    x, y = page.evaluate(f"ibprof.locateEnd({end})")
    box = page.locator("#picture").bounding_box()
    assert box
    return box["x"] + x, box["y"] + y


def fragment(page: Page) -> str:
    return str(page.evaluate("location.hash"))


def drag(page: Page, by: tuple[float, float]) -> None:
    box = page.locator("#picture").bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for part in range(1, 9):
        page.mouse.move(x + by[0] * part / 8, y + by[1] * part / 8)
    page.mouse.up()


def test_a_drag_turns_the_picture_and_the_address_keeps_it(show: Show, tree: Path) -> None:
    page = show(tree)
    before = np.array([page.evaluate(f"ibprof.locateNode({node})") for node in range(16)])
    drag(page, (150, 40))
    wait_for_address(page, "turn=")
    after = np.array([page.evaluate(f"ibprof.locateNode({node})") for node in range(16)])
    assert np.abs(after - before).max() > 20
    assert np.linalg.norm(page.evaluate("ibprof.turned()")) == pytest.approx(1, abs=1e-4)
    address = page.url.partition("#")[0] + fragment(page)
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    again = np.array([page.evaluate(f"ibprof.locateNode({node})") for node in range(16)])
    assert again == pytest.approx(after, abs=1)
    page.keyboard.press("0")
    page.wait_for_function("() => !location.hash.includes('turn=')")
    home = np.array([page.evaluate(f"ibprof.locateNode({node})") for node in range(16)])
    assert home == pytest.approx(before, abs=1)


def test_what_was_taken_hold_of_stays_under_the_hand(show: Show, arcs: Path) -> None:
    """During a small drag on the front of the ball, the point below the pointer follows the pointer."""
    page = show(arcs)
    box = page.locator("#picture").bounding_box()
    assert box
    radius = min(box["width"], box["height"]) / 2
    drag(page, (0.1 * radius, 0))
    wait_for_address(page, "turn=")
    x, y, z, w = page.evaluate("ibprof.turned()")
    # The rotation is twice the angle between the ball's two points (Shoemake), about the vertical axis.
    assert 2 * np.degrees(np.arctan2(np.hypot(np.hypot(x, y), z), w)) == pytest.approx(
        2 * np.degrees(np.arcsin(0.1)), rel=0.05
    )
    assert abs(y) > 20 * max(abs(x), abs(z))


def test_keys_turn_and_shift_moves(show: Show, tree: Path) -> None:
    page = show(tree)
    page.locator("#picture").focus()
    page.keyboard.press("ArrowLeft")
    wait_for_address(page, "turn=")
    assert "at=" not in fragment(page)
    turned = page.evaluate("ibprof.turned()")
    page.keyboard.press("Shift+ArrowLeft")
    wait_for_address(page, "at=")
    assert page.evaluate("ibprof.turned()") == turned
    page.mouse.move(*point_of_node(page, 3))
    before = point_of_node(page, 3)
    page.mouse.wheel(0, -500)
    page.wait_for_timeout(300)
    assert point_of_node(page, 3) == pytest.approx(before, abs=2), "the zoom is about the pointer"


def test_values_tooltip_and_table_say_what_the_file_says(show: Show, arcs: Path) -> None:
    page = show(arcs)
    # If links differ in probability, this is shown first. A one-way link is listed once, at the node where it starts.
    assert page.locator("#values").input_value() == "0"
    rows = [row.inner_text().split("\t") for row in page.locator("#links tbody tr").all()]
    assert rows == [
        ["n0 to n1", "1, back 0.5", "1 µs, back 2 µs"],
        ["<b>n3 to n2", "0.75", "4 µs"],
        ["n1 to n0", "1, back 0.5", "1 µs, back 2 µs"],
        ["n1 to n2", "0.25", "3 µs"],
    ]
    page.locator("#values").select_option("delay")
    assert "value=1" in fragment(page)
    assert page.locator("#most").inner_text() == "4 µs"
    assert page.locator("#links tbody tr").first.inner_text().startswith("<b>n3 to n2")
    end = page.evaluate("ibprof.ranked()")[0]
    page.mouse.move(*point_of_end(page, end))
    assert "delay 4 µs" in page.locator("#tooltip").inner_text()
    page.mouse.click(*point_of_end(page, end))
    assert f"end={end}" in fragment(page)
    assert "4 µs" in page.locator("#selection").inner_text()
    page.keyboard.press("Escape")
    page.mouse.click(*point_of_node(page, 0))
    assert "hosts=0" in fragment(page)
    assert page.locator("#chips").inner_text().startswith("host n0")


def test_a_range_on_the_bar_leaves_links_uncoloured(show: Show, arcs: Path) -> None:
    page = show(arcs, "#value=1")
    assert len(page.evaluate("ibprof.lit()")) == 4
    handle = page.get_by_role("slider", name="Load of link directions, from")
    handle.focus()
    for _ in range(12):
        page.keyboard.press("PageUp")
        if len(page.evaluate("ibprof.lit()")) < 4:
            break
    assert 0 < len(page.evaluate("ibprof.lit()")) < 4
    assert page.locator("#chips").inner_text().startswith("delay of")


def test_the_picture_is_saved_with_its_arrows(show: Show, arcs: Path) -> None:
    page = show(arcs)
    with page.expect_download() as svg:
        page.locator("#svg").click()
    root = ET.fromstring(Path(svg.value.path()).read_text())
    name = "{http://www.w3.org/2000/svg}"
    filled = [path.get("d", "") for path in root.iter(f"{name}path") if path.get("fill") != "none"]
    arrows = [path for path in filled if path.count("L") == 2]
    assert len(arrows) == 2, "one for each link that leads one way"
    lines = [path.get("d", "").count("M") for path in root.iter(f"{name}path") if path.get("fill") == "none"]
    assert sum(lines) == 2 * 3 + len(arrows)
    texts = [text.text or "" for text in root.iter(f"{name}text")]
    assert "<b>n3" in texts
    with page.expect_download() as png:
        page.locator("#png").click()
    assert Path(png.value.path()).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(show: Show, tree: Path, theme: str) -> None:
    page = show(tree, f"#theme={theme}&hosts=2")
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


@pytest.mark.parametrize("edges", [[], [(0, 1)]])
def test_networks_of_next_to_nothing_are_shown(show: Show, tmp_path: Path, edges: list[tuple[int, int]]) -> None:
    document = json.loads(ARCS) | {"edges": [], "hosts": ["n0", "n1"]}
    document["edges"] = [
        {"a": f"n{a}", "b": f"n{b}", "latency_us": 0, "support": None, "probability": 1} for a, b in edges
    ]
    path = tmp_path / "few.json"
    path.write_text(json.dumps(document))
    page = show(path)
    for key in ("g", "v", "n", "0", "+", "d"):
        page.keyboard.press(key)
    drag(page, (90, 90))
    assert page.locator("#failure").is_hidden()


def test_a_fabric_with_places_in_space_has_the_picture_too(open_view: Open, tree: Path, tmp_path: Path) -> None:
    delays = str(tmp_path / "delays.csv")
    outputs = [argument for name in ("net.lst", "places.csv") for argument in ("-o", str(tmp_path / name))]
    assert topology.main(["infer", delays, *outputs, "--bootstrap", "0", "--speed", "EDR"]) == 0
    options = ["--node-data", str(tmp_path / "places.csv")]
    opened = open_view([str(tmp_path / "net.lst"), "pattern:shift:4:1000"], options=options)
    page = opened.page
    assert page.locator("#pictures").input_value() == "lines"
    page.locator("#pictures").select_option("space")
    assert opened.loads() == opened.expected()
    # A node may be in front of a link, so links are tried in the order of the list.
    listed = [int(each.get_attribute("data-end") or "") for each in page.locator("#top-links button").all()]
    found = []
    for end in listed:
        page.mouse.click(*opened.point_of_end(end))
        found += [end] * (f"end={end}" in opened.address())
    assert found
    drag(page, (120, 60))
    wait_for_address(page, "turn=")
    page.locator("#values").select_option("speed")
    assert page.locator("#most").inner_text() == "100 Gb/s"
    assert opened.complaints == []


# JavaScript that stores the bounds of each text drawn on a canvas.
KEEP_TEXTS = """
    window.drawn = [];
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
        const { width } = this.measureText(text);
        const left = x - (this.textAlign === "center" ? width / 2 : 0);
        window.drawn.push({ text, left, top: y - 5, right: left + width, bottom: y + 5 });
        return write.call(this, text, x, y, ...rest);
    };
"""
LAST_DRAWN = "() => { window.drawn.length = 0; ibprof.redraw(); return window.drawn; }"


def find_overlaps(texts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [
        (one["text"], other["text"])
        for one, other in combinations(texts, 2)
        if one["left"] < other["right"]
        and other["left"] < one["right"]
        and one["top"] < other["bottom"]
        and other["top"] < one["bottom"]
    ]


@pytest.mark.parametrize("spec", ["dragonfly:4,2,2", "torus:4x4x3:1", "torus:6x5:2"])
def test_labels_do_not_overlap(browser: Browser, tmp_path: Path, spec: str) -> None:
    html, nodes, places = (tmp_path / name for name in ("view.html", "nodes.csv", "places.csv"))
    traffic = [spec, "pattern:shift:5:1000"]
    assert layout.main([*traffic, "-o", str(tmp_path / "links.csv"), "--nodes", str(nodes)]) == 0
    with nodes.open(newline="") as file:
        switches = [(row["guid"], row["x"], row["y"]) for row in csv.DictReader(file) if row["level"] == "1"]
    lines = [f"{guid},{x},{y},{number % 4}\n" for number, (guid, x, y) in enumerate(switches)]
    places.write_text("guid,x,y,z\n" + "".join(lines))
    assert view.main([*traffic, "--node-data", str(places), "-o", str(html)]) == 0
    page = browser.new_page(offline=True)
    page.add_init_script(KEEP_TEXTS)
    named = {390: 0, 1280: 0, 2560: 0}
    for width in named:
        page.set_viewport_size({"width": width, "height": 800})
        for state in ("lines", "space", "space&turn=0.28,0.36,0.05,0.88", "space&turn=0.1,0.7,0.1,0.7"):
            page.goto("about:blank")
            page.goto(f"{html.as_uri()}#picture={state}")
            page.wait_for_selector("html[data-ready]")
            texts = page.evaluate(LAST_DRAWN)
            assert find_overlaps(texts) == [], (width, state)
            named[width] += sum(not text["text"].isdigit() for text in texts)
    assert 0 < named[390] <= named[1280] <= named[2560]
    page.close()


def test_places_that_are_no_numbers_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "places.csv").write_text("node,x,y,z\nnobody,1,2,3\n")
    arguments = ["xgft:2:4,4:1,4", "pattern:shift:4", "--node-data", str(tmp_path / "places.csv")]
    assert view.main([*arguments, "-o", str(tmp_path / "view.html")]) == 3
    assert "places.csv:2: expected a node of the fabric" in capsys.readouterr().err


def test_steps_in_delays_turn(show: Show, tmp_path: Path) -> None:
    """Each step is a dot in its cluster's colour, and the axes have names. A click on a cluster selects its dots."""
    write_delays(tmp_path / "delays.nc", make_delays(peaks=50))
    folder = tmp_path / "features"
    assert latency.main(["features", str(tmp_path / "delays.nc"), "-o", str(folder), "--threshold", "0.25"]) == 0
    page = show(folder / "steps.html")
    assert "1760 steps in the delays of 992 pairs" in page.locator("body").inner_text()
    rows = page.locator("#panel-domain tbody tr").all_inner_texts()
    assert [row.split()[:3] for row in rows] == [["cluster", "0", "224"], ["cluster", "1", "1536"]]
    assert page.locator("#bar").is_hidden()
    before = page.locator("#picture").screenshot()
    page.mouse.move(400, 350)
    page.mouse.down()
    page.mouse.move(520, 300, steps=4)
    page.mouse.up()
    page.wait_for_url("**turn=*", wait_until="commit")
    assert page.locator("#picture").screenshot() != before
    page.mouse.click(*point_of_node(page, 0))
    page.wait_for_url("**node=*", wait_until="commit")
    assert "n00 to n01, 3000" in page.locator("body").inner_text()
