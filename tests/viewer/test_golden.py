# SPDX-License-Identifier: Apache-2.0
"""The page looks as it did when somebody last looked at it: golden pictures, half as wide and high.

`pytest tests/viewer/test_golden.py --update` writes them anew; look at them before they are committed. How the edges of
letters are drawn differs by machine, so blocks of pixels are compared, not pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import combinations, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from fabric_samples import FABRICS, IBDIAGNET, find_sample
from opened_views import Open
from PIL import Image
from timed_profiles import write_timed_profile
from traffic_samples import write_matrix

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "view"
TESTBED = str(find_sample("testbed44", IBDIAGNET))
RAILS = [str(FABRICS / "dualrail" / rail) for rail in ("rail1", "rail2")]
LARGE = str(FABRICS / "xgft3-1296")

SCALE = 2
COLOURS = 128
BLOCK = 8
"""Side of the blocks whose mean colours are compared, in pixels of the golden picture."""

DIFFERENT = 24
"""Steps of 255 by which a block's mean is another colour."""

TOLERANCE = 0.01
"""Part of all blocks that may be."""

STATES = {
    "first": ([TESTBED], 12, ""),
    "dark": ([TESTBED], 12, "#theme=dark&log=1&panel=links"),
    "rank": ([LARGE], 64, "#panel=ranks&ranks=5,6"),
    "cells": ([LARGE], 64, "#picture=cells&panel=hosts&theme=dark"),
    "pair": ([TESTBED], 12, "#panel=pairs&source=3&destination=9"),
    "end": ([TESTBED], 12, "#end=4"),
    "torus": (["torus:6x5:2"], 12, "#panel=hosts&hosts=2&load=1000000,9000000"),
    "dragonfly": (["dragonfly:4,2,2"], 12, "#used=1&theme=dark"),
    "rails": (RAILS, 6, "#panel=pairs&source=0&destination=3"),
    "zoomed": ([LARGE], 64, "#at=20,560,8"),
}

BESIDE = {
    "beside": ([TESTBED], 12, "#hosts=3"),
    "difference": ([LARGE], 64, "#compare=difference&theme=dark"),
    "difference-cells": ([TESTBED], 12, "#compare=difference&picture=cells&log=1"),
}
"""States of a file with two placements: `spread` and `packed`."""


@pytest.fixture(params=[*STATES, *BESIDE, "time", "jobs", "domain", "space", "wide"])
def shot(request: pytest.FixtureRequest, open_view: Open, tmp_path: Path) -> tuple[str, Image.Image]:
    """A state, and the page in it."""
    name = request.param
    if name == "time":
        opened = open_view([TESTBED, write_timed_profile(tmp_path)], address="#panel=time&time=0.25,0.75")
    elif name == "jobs":
        jobs = [write_timed_profile(folder) for folder in (tmp_path / "one", tmp_path / "two")]
        opened = open_view([TESTBED, *jobs], address="#panel=time")
    elif name == "domain":
        matrix = write_matrix(tmp_path / "matrix.csv", 12)
        rows = [f"{rank},{rank % 4},{rank // 4},{'sea' if rank % 3 else 'land'}" for rank in range(12)]
        (tmp_path / "ranks.csv").write_text("\n".join(["rank,x,y,part", *rows, ""]))
        told = ["--rank-data", str(tmp_path / "ranks.csv")]
        address = "#panel=domain&colour=0&ranks=5,6"
        opened = open_view([TESTBED, matrix, "--placement", "spread"], beside=told, address=address)
    elif name == "space":
        arguments = ["torus:4x4x3:1", "pattern:shift:5:1000"]
        address = "#picture=space&turn=0.28,0.36,0.05,0.88&ranks=7"
        opened = open_view(arguments, address=address, beside=["--node-data", str(place_torus(tmp_path, (4, 4, 3)))])
    else:
        fabrics, ranks, address = (STATES | BESIDE)["first" if name == "wide" else name]
        width, height = (2560, 1440) if name == "wide" else (1280, 720)
        arguments = [*fabrics, *placed(fabrics, ranks, tmp_path)]
        beside = ["--compare-placement", "packed"] if name in BESIDE else []
        opened = open_view(arguments, width=width, height=height, address=address, beside=beside)
    opened.page.evaluate("document.getElementById('title').textContent = 'title'")  # it has the folder of this run
    opened.page.evaluate("document.getElementById('coverage').textContent = 'what is not seen and what is modelled'")
    opened.page.wait_for_timeout(300)
    return name, Image.open(BytesIO(opened.page.screenshot())).convert("RGB")


def place_torus(folder: Path, extents: tuple[int, int, int]) -> Path:
    """Write where the switches of a torus are in space."""
    rows = [f"sw{x}-{y}-{z},{x},{y},{z}\n" for x, y, z in product(*map(range, extents))]
    path = folder / "places.csv"
    path.write_text("node,x,y,z\n" + "".join(rows))
    return path


def placed(fabrics: Sequence[str], ranks: int, folder: Path) -> list[str]:
    matrix = write_matrix(folder / "matrix.csv", ranks)
    if len(fabrics) == 1:
        return [matrix, "--placement", "spread"]
    hosts = folder / "hosts.txt"
    hosts.write_text("".join(f"t2a{host:06d}\n" for host in (11, 12, 31, 32, 51, 71)))
    return [matrix, "--placement", str(hosts), "--rails", "first"]


def reduce_picture(picture: Image.Image) -> Image.Image:
    scale = SCALE * picture.width // 1280
    return picture.resize((picture.width // scale, picture.height // scale), Image.Resampling.BOX)


def count_different(one: Image.Image, other: Image.Image) -> float:
    """Give the part of blocks that have another colour."""

    def blocks(picture: Image.Image) -> npt.NDArray[np.float64]:
        size = (picture.width // BLOCK, picture.height // BLOCK)
        return np.asarray(picture.convert("RGB").resize(size, Image.Resampling.BOX)).astype(np.float64)

    return float((np.abs(blocks(one) - blocks(other)).max(axis=2) > DIFFERENT).mean())


def test_a_state_looks_as_it_did(shot: tuple[str, Image.Image], request: pytest.FixtureRequest) -> None:
    name, picture = shot
    reduced = reduce_picture(picture)
    golden = GOLDEN / f"{name}.png"
    if request.config.getoption("--update"):
        GOLDEN.mkdir(exist_ok=True)
        reduced.quantize(COLOURS).save(golden, optimize=True)
    different = count_different(reduced, Image.open(golden))
    if different > TOLERANCE:
        kept = Path(f"{name}-found.png").resolve()
        picture.save(kept)
        pytest.fail(f"{different:.1%} of {golden.name} looks otherwise; what was found: {kept}")


def test_the_tolerance_tells_states_apart() -> None:
    pictures = [Image.open(GOLDEN / f"{name}.png") for name in (*STATES, *BESIDE, "time", "jobs", "domain", "space")]
    for one, other in combinations(pictures, 2):
        assert count_different(one, other) > 2 * TOLERANCE
