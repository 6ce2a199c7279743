# SPDX-License-Identifier: Apache-2.0
"""The pages look like the golden pictures, which were reviewed. The pictures have half of a page's width and height.

`pytest tests/viewer/test_golden.py --update` replaces the golden pictures, which must be reviewed before a commit. The
edges of letters differ by machine, so mean colours of blocks are compared, not pixels.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import combinations, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page

from ibprof_converter.cli import diff, report
from ibprof_lab.cli import topology
from ibprof_testing.paths import DATA
from ibprof_testing.samples.fabrics import FABRICS, IBDIAGNET, find_sample
from ibprof_testing.samples.timed_profiles import write_timed_profile
from ibprof_testing.samples.topologies import ARCS
from ibprof_testing.samples.traffic import write_matrix
from ibprof_testing.views import Open, Opened

GOLDEN = DATA / "golden" / "view"
TESTBED = str(find_sample("testbed44", IBDIAGNET))
RAILS = [str(FABRICS / "dualrail" / rail) for rail in ("rail1", "rail2")]
LARGE = str(FABRICS / "xgft3-1296")

SCALE = 2
COLOURS = 128
BLOCK = 8
"""Side of the compared blocks, in pixels of the golden picture."""

DIFFERENT = 24
"""Maximum difference of the mean colours of equal blocks, on a scale from 0 to 255."""

TOLERANCE = 0.01
"""Largest fraction of blocks that may differ."""

STATES = {
    "first": ([TESTBED], 12, ""),
    "dark": ([TESTBED], 12, "#theme=dark&log=1&panel=links"),
    "rank": ([LARGE], 64, "#panel=ranks&ranks=5,6"),
    "cells": ([LARGE], 64, "#picture=cells&panel=hosts&theme=dark"),
    "pair": ([TESTBED], 12, "#panel=pairs&source=3&destination=9"),
    "end": ([TESTBED], 12, "#end=4"),
    "torus": (["torus:6x5:2"], 12, "#panel=hosts&hosts=2&by=bytes&load=1000000,9000000"),
    "dragonfly": (["dragonfly:4,2,2"], 12, "#used=1&theme=dark"),
    "rails": (RAILS, 6, "#panel=pairs&source=0&destination=3"),
    "zoomed": ([LARGE], 64, "#at=20,560,8&unfold=1"),
}

COMPARED = {
    "two-placements": ([TESTBED], 12, "#hosts=3"),
    "difference": ([LARGE], 64, "#compare=difference&theme=dark"),
    "difference-cells": ([TESTBED], 12, "#compare=difference&picture=cells&log=1"),
}
"""States of a view file with two placements, `spread` and `packed`."""


def open_in_time(open_view: Open, folder: Path) -> Opened:
    return open_view([TESTBED, write_timed_profile(folder)], address="#panel=time&time=0.25,0.75")


def open_jobs(open_view: Open, folder: Path) -> Opened:
    jobs = [write_timed_profile(each) for each in (folder / "one", folder / "two")]
    return open_view([TESTBED, *jobs], address="#panel=time")


def open_domain(open_view: Open, folder: Path) -> Opened:
    matrix = write_matrix(folder / "matrix.csv", 12)
    rows = [f"{rank},{rank % 4},{rank // 4},{'sea' if rank % 3 else 'land'}" for rank in range(12)]
    (folder / "ranks.csv").write_text("\n".join(["rank,x,y,part", *rows, ""]))
    told = ["--rank-data", str(folder / "ranks.csv")]
    arguments = [TESTBED, matrix, "--placement", "spread"]
    return open_view(arguments, options=told, address="#panel=domain&colour=0&ranks=5,6")


def open_in_space(open_view: Open, folder: Path) -> Opened:
    options = ["--node-data", str(place_torus(folder, (4, 4, 3)))]
    address = "#picture=space&turn=0.28,0.36,0.05,0.88&ranks=7"
    return open_view(["torus:4x4x3:1", "pattern:shift:5:1000"], address=address, options=options)


def open_empty(open_view: Open, folder: Path) -> Opened:
    (folder / "matrix.csv").write_text("src,dst,bytes,messages\n0,1,0,0\n")
    return open_view([TESTBED, str(folder / "matrix.csv"), "--placement", "spread"])


def open_folded(open_view: Open, folder: Path) -> Opened:
    matrix = write_matrix(folder / "matrix.csv", 64)
    return open_view([LARGE, matrix, "--placement", "packed"])


def open_groups(open_view: Open, folder: Path) -> Opened:
    matrix = write_matrix(folder / "matrix.csv", 12)
    return open_view(["dragonfly:4,2,2", matrix, "--placement", "packed"])


def open_one_group(open_view: Open, folder: Path) -> Opened:
    matrix = write_matrix(folder / "matrix.csv", 6)
    return open_view(["dragonfly:4,2,2", matrix, "--placement", "packed"], address="#theme=dark")


def open_many(open_view: Open, folder: Path) -> Opened:
    """Open a run of 1,024 ranks on 1,296 hosts. Each rank has two random partners."""
    draw = random.Random(3)
    rows = [f"{rank},{draw.randrange(1024)},{draw.randint(1, 1 << 20)},1" for rank in range(1024) for _ in range(2)]
    (folder / "matrix.csv").write_text("\n".join(["src,dst,bytes,messages", *rows, ""]))
    return open_view([LARGE, str(folder / "matrix.csv"), "--placement", "packed"])


def open_by_share(open_view: Open, folder: Path) -> Opened:
    one, other = (write_matrix(folder / f"{ranks}.csv", ranks) for ranks in (8, 16))
    options = ["--compare", other]
    return open_view(["xgft:2:4,4:1,4", one, "--placement", "packed"], options=options, address="#theme=dark")


OWN: dict[str, Callable[[Open, Path], Opened]] = {
    "time": open_in_time,
    "jobs": open_jobs,
    "domain": open_domain,
    "space": open_in_space,
    "empty": open_empty,
    "folded": open_folded,
    "groups": open_groups,
    "one-group": open_one_group,
    "many": open_many,
    "share": open_by_share,
}
"""States that need a separate view file."""

DONE: dict[str, tuple[Callable[[Opened], object], str]] = {
    "search": (lambda opened: opened.page.locator("#search").fill("host0"), "#found"),
    "tip": (lambda opened: opened.page.mouse.move(*opened.point_of_end(opened.most_loaded())), "#tooltip"),
    "help": (lambda opened: opened.page.keyboard.press("?"), "#help"),
}
"""Actions on the state `first`, and the part of the page that is compared afterwards."""

PAGES = ("report", "report-ring", "diff", "topology")
"""Pages that are not views."""


LONG = {"rank": "domain, folded", "cells": "difference-cells", "difference": "two-placements", "one-group": "groups"}
"""States that only the long form compares -> states of the short form that show the same parts of the page."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.full) if name in {*LONG, "wide"} else name
        for name in (*STATES, *COMPARED, *OWN, *DONE, "wide")
    ]
)
def shot(
    request: pytest.FixtureRequest, open_view: Open, module_folder: Path, tmp_path: Path
) -> tuple[str, Image.Image]:
    """Open a state, and return its name and picture."""
    name = request.param
    if name in OWN:
        opened = OWN[name](open_view, tmp_path)
    else:
        fabrics, ranks, address = (STATES | COMPARED).get(name, STATES["first"])
        width, height = (2560, 1440) if name == "wide" else (1280, 720)
        arguments = [*fabrics, *placed(fabrics, ranks, module_folder)]
        options = ["--compare-placement", "packed"] if name in COMPARED else []
        opened = open_view(arguments, width=width, height=height, address=address, options=options)
    opened.page.evaluate("document.getElementById('title').textContent = 'title'")  # the title has a temporary path
    opened.page.evaluate("document.getElementById('coverage').textContent = 'what is not seen and what is modelled'")
    act, place = DONE.get(name, (lambda _: None, ".ibprof-view"))
    act(opened)
    opened.page.wait_for_timeout(300)
    return name, take_picture(opened.page.locator(place))


@pytest.fixture(params=PAGES)
def page_shot(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path) -> tuple[str, Image.Image]:
    """Open a page that is not a view; return its name and picture."""
    html = tmp_path / "page.html"
    if request.param == "report":
        assert report.main([TESTBED, write_timed_profile(tmp_path), "--html", str(html)]) == 0
    elif request.param == "report-ring":
        matrix = write_matrix(tmp_path / "matrix.csv", 12)
        assert report.main(["dragonfly:4,2,2", matrix, "--placement", "spread", "--html", str(html)]) == 0
    elif request.param == "diff":
        matrices = [write_matrix(tmp_path / f"{seed}.csv", 12, seed=seed) for seed in (7, 8)]
        fabric = ["--fabric", TESTBED, "--placement", "spread"]
        assert diff.main([*matrices, *fabric, "--fail-on", "max_link>+1%", "--html", str(html)]) == 1
    else:
        (tmp_path / "arcs.json").write_text(ARCS)
        assert topology.main(["view", str(tmp_path / "arcs.json"), "-o", str(html)]) == 0
    page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light", offline=True)
    page.goto(html.as_uri())
    # The script writes the titles that are replaced below.
    if request.param == "topology":
        page.wait_for_selector("html[data-ready]")
    elif request.param.startswith("report"):
        page.frame_locator("#network iframe").locator("html[data-ready]").wait_for()
    for frame in page.frames:  # frames contain temporary paths
        frame.evaluate(
            "for (const each of document.querySelectorAll('h1, header p, #compared p')) each.textContent = 'said'"
        )
    page.wait_for_timeout(300)
    picture = take_picture(page)
    page.close()
    return request.param, picture


def take_picture(of: Page | Locator) -> Image.Image:
    return Image.open(BytesIO(of.screenshot())).convert("RGB")


def place_torus(folder: Path, extents: tuple[int, int, int]) -> Path:
    """Write the positions of a torus's switches in space."""
    rows = [f"sw{x}-{y}-{z},{x},{y},{z}\n" for x, y, z in product(*map(range, extents))]
    path = folder / "places.csv"
    path.write_text("node,x,y,z\n" + "".join(rows))
    return path


def placed(fabrics: Sequence[str], ranks: int, folder: Path) -> list[str]:
    path = folder / f"{ranks}.csv"
    matrix = str(path) if path.exists() else write_matrix(path, ranks)
    if len(fabrics) == 1:
        return [matrix, "--placement", "spread"]
    hosts = folder / "hosts.txt"
    hosts.write_text("".join(f"t2a{host:06d}\n" for host in (11, 12, 31, 32, 51, 71)))
    return [matrix, "--placement", str(hosts), "--rails", "first"]


def reduce_picture(picture: Image.Image) -> Image.Image:
    scale = SCALE * max(1, picture.width // 1280)
    return picture.resize((picture.width // scale, picture.height // scale), Image.Resampling.BOX)


def count_different(one: Image.Image, other: Image.Image) -> float:
    """Return the fraction of blocks that differ in colour."""

    def blocks(picture: Image.Image) -> npt.NDArray[np.float64]:
        size = (picture.width // BLOCK, picture.height // BLOCK)
        return np.asarray(picture.convert("RGB").resize(size, Image.Resampling.BOX)).astype(np.float64)

    return float((np.abs(blocks(one) - blocks(other)).max(axis=2) > DIFFERENT).mean())


def test_a_state_looks_as_it_did(shot: tuple[str, Image.Image], request: pytest.FixtureRequest) -> None:
    compare_with_golden(*shot, request.config.getoption("--update"))


def test_a_page_looks_as_it_did(page_shot: tuple[str, Image.Image], request: pytest.FixtureRequest) -> None:
    compare_with_golden(*page_shot, request.config.getoption("--update"))


def compare_with_golden(name: str, picture: Image.Image, update: bool) -> None:
    reduced = reduce_picture(picture)
    golden = GOLDEN / f"{name}.png"
    if update:
        GOLDEN.mkdir(exist_ok=True)
        reduced.quantize(COLOURS).save(golden, optimize=True)
    different = count_different(reduced, Image.open(golden))
    if different > TOLERANCE:
        kept = Path(f"{name}-found.png").resolve()
        picture.save(kept)
        pytest.fail(f"{different:.1%} of {golden.name} differs; picture found: {kept}")


def test_the_tolerance_distinguishes_states() -> None:
    pictures = [Image.open(GOLDEN / f"{name}.png") for name in (*STATES, *COMPARED, *OWN, *PAGES)]
    for one, other in combinations(pictures, 2):
        assert count_different(one, other) > 2 * TOLERANCE
