#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Redraw pictures of README and how-tos: the demo's heat map, the report's page and the view.

    scripts/draw-pages.py [PICTURE...]

Requires an installed ibprof, Chromium, and what `ibprof demo` requires. Sources and names of pictures are in `DRAW`.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image
from playwright.sync_api import Browser

from ibprof_testing.browser import open_browser

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDTH, HEIGHT = 1280, 720
COLOURS = 256

FREQUENT = 24
"""Number of colours that the palette keeps exactly: the most frequent colours, such as those of panels."""

FAT_TREE = "xgft:2:8,12:1,6"
SIDE = 8
"""Number of ranks of the halo exchange along each of two dimensions."""

LARGE_TREE = "xgft:3:18,18,4:1,18,18"
LARGE_SIDE = 32


def draw_heatmap(folder: Path, _browser: Browser) -> Image.Image:
    """Draw the loads of the demo's links."""
    return take_demo_picture(folder, "heatmap.png")


def draw_cure(folder: Path, _browser: Browser) -> Image.Image:
    """Draw the loads of the demo's links with the better order of ranks."""
    return take_demo_picture(folder, "cured.png")


def take_demo_picture(folder: Path, name: str) -> Image.Image:
    run_demo(folder)
    with Image.open(folder / "demo" / name) as drawn:
        return drawn.convert("RGB").resize((WIDTH, drawn.height * WIDTH // drawn.width), Image.Resampling.LANCZOS)


def draw_report(folder: Path, browser: Browser) -> Image.Image:
    """Draw the beginning of the demo's report page: all sections that are not folded, except the view."""
    run_demo(folder)
    with browser.new_page(viewport={"width": WIDTH, "height": 900}) as page:
        page.goto((folder / "demo" / "report.html").as_uri())
        last = page.locator("#todo").bounding_box()
        assert last
        height = last["y"] + last["height"] + last["x"] / 2
        return take_picture(page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}))


def draw_view(folder: Path, browser: Browser) -> Image.Image:
    """Draw a halo exchange of 1,024 ranks in a random order on 1,296 hosts."""
    write_halo(folder / "large.csv", LARGE_SIDE, seed=3)
    run(["ibprof-view", LARGE_TREE, "large.csv", "--placement", "packed", "-o", "large.html"], folder)
    with browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}) as page:
        page.goto((folder / "large.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        return take_picture(page.screenshot())


def draw_comparison(folder: Path, browser: Browser) -> Image.Image:
    """Draw a halo exchange on a fat-tree: two placements side by side, and the difference of loads."""
    write_halo(folder / "halo.csv", SIDE)
    placements = ["--placement", "packed", "--compare-placement", "spread"]
    run(["ibprof-view", FAT_TREE, "halo.csv", *placements, "-o", "view.html"], folder)
    both = Image.new("RGB", (WIDTH, 2 * HEIGHT))
    for number, state in enumerate(("", "#compare=difference")):
        with browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}) as page:
            page.goto((folder / "view.html").as_uri() + state)
            page.wait_for_selector("html[data-ready]")
            both.paste(take_picture(page.screenshot()), (0, HEIGHT * number))
    return both


DRAW: dict[str, Callable[[Path, Browser], Image.Image]] = {
    "heatmap.png": draw_heatmap,
    "cured.png": draw_cure,
    "report.png": draw_report,
    "view.png": draw_view,
    "view-compare.png": draw_comparison,
}


def run(command: Sequence[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


def run_demo(folder: Path) -> None:
    if not (folder / "demo").exists():
        run(["ibprof", "demo", "demo"], folder)


def write_halo(path: Path, side: int, seed: int | None = None) -> None:
    """Write a rank matrix: each rank of a periodic grid sends 2 MB to each of four neighbours.

    Args:
        path: path of the matrix.
        side: number of ranks along each of two dimensions.
        seed: seed of a random order of the ranks on the grid; None to number ranks row by row.
    """
    order = list(range(side * side))
    if seed is not None:
        Random(seed).shuffle(order)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("src", "dst", "bytes", "messages"))
        for place, rank in enumerate(order):
            x, y = divmod(place, side)
            for to_x, to_y in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                writer.writerow((rank, order[to_x % side * side + to_y % side], 2_000_000, 1))


def take_picture(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


def reduce_colours(picture: Image.Image) -> Image.Image:
    """Reduce colours to a palette: the `FREQUENT` colours, and colours that approximate the rare colours of loads."""
    colours, counts = np.unique(np.asarray(picture).reshape(-1, 3), axis=0, return_counts=True)
    frequent = colours[np.argsort(-counts, kind="stable")[:FREQUENT]].ravel().tolist()
    others = picture.quantize(COLOURS - FREQUENT, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*frequent, *others][: 3 * COLOURS])
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def main() -> None:
    """Draw the named pictures, or all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pictures", nargs="*", choices=[*DRAW, []], help="names (default: all)")
    names = parser.parse_args().pictures or list(DRAW)
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        for name in names:
            reduce_colours(DRAW[name](Path(folder), browser)).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
