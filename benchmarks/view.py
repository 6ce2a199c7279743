# SPDX-License-Identifier: Apache-2.0
"""Compare times of `ibprof-view`'s page with plotly's WebGL scatter and with SVG, in a browser without a GPU.

Run it from a checkout, with ibprof, playwright, chromium and npm installed:

    python benchmarks/view.py [--runs N] [--size LINKS] [--others [svg plotly]] [--files FOLDER] [--json]

Each figure is from the best run: other work on the machine only makes runs slower.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from math import cos, inf, isfinite, pi, sin
from pathlib import Path

from playwright.async_api import async_playwright
from playwright.sync_api import Browser, Page, sync_playwright

from ibprof_converter.cli import layout, view

TREE = str(Path(__file__).parents[1] / "tests/data/fabrics/xgft3-1296")
LARGE = "xgft:3:18,18,36:1,18,18"
HUGE = "xgft:3:18,26,80:1,18,18"
RANKS = 128
MANY_RANKS = 1024
SIZES = {"3888": "3,888 links", "34992": "34,992 links", "100000": "100,800 links"}
OTHERS = ("svg", "plotly")
OTHER_RUNS = 3
PLOTLY = "plotly.js-dist-min@2.35.2"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")

# Reading a pixel back forces the browser to draw the canvas.
REDRAW = """runs => {
    const canvas = document.getElementById("picture");
    const times = [];
    for (let run = 0; run < runs; run++) {
        const began = performance.now();
        ibprof.redraw();
        canvas.getContext("2d").getImageData(0, 0, 1, 1);
        times.push(performance.now() - began);
    }
    return times;
}"""
# Frames per second while the picture is panned (`pan`) or turned (`turn`).
MOVE = """how => new Promise(done => {
    const began = performance.now();
    let frames = 0;
    const step = () => {
        if (performance.now() - began > 2000) return done(frames / (performance.now() - began) * 1000);
        frames++;
        ibprof[how](frames % 40 < 20 ? 6 : -6, 2);
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""
HOVER = """count => {
    const canvas = document.getElementById("picture");
    const lit = ibprof.lit();
    const times = [];
    for (let at = 0; at < count; at++) {
        const [x, y] = ibprof.locateEnd(lit[Math.floor(at * lit.length / count)]);
        const box = canvas.getBoundingClientRect();
        const event = new PointerEvent("pointermove", {clientX: box.left + x, clientY: box.top + y, bubbles: true});
        const began = performance.now();
        canvas.dispatchEvent(event);
        document.getElementById("tooltip").getBoundingClientRect();
        times.push(performance.now() - began);
    }
    return times;
}"""
# Return the halves of links as the page draws them: for each colour, x, y, x, y of each half. The result is text,
# because the browser passes text to this program much faster than an object.
HALVES = """() => {
    const batches = Array.from({length: 64}, () => []);
    const ends = 2 * ibprof.loads().length;
    const short = at => Math.round(10 * at) / 10;
    for (let end = 0; end < ends; end++) batches[end % 64].push(ibprof.extentOfEnd(end).map(short));
    return JSON.stringify(batches);
}"""
SVG = """([batches, runs]) => {
    document.body.innerHTML = '<svg width="880" height="560" xmlns="http://www.w3.org/2000/svg"></svg>';
    const svg = document.querySelector("svg");
    const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    const draw = async shift => {
        const began = performance.now();
        svg.innerHTML = batches.map((lines, batch) =>
            `<path stroke="hsl(${batch * 5} 80% 40%)" fill="none" d="${lines.map(([a, b, c, d]) =>
                `M${a + shift} ${b}L${c + shift} ${d}`).join("")}"/>`).join("");
        await frame(); await frame();
        return performance.now() - began;
    };
    return (async () => {
        const times = [];
        for (let run = 0; run < runs; run++) times.push(await draw(run));
        return times;
    })();
}"""
PLOT = """([batches, runs]) => {
    document.body.innerHTML = '<div id="plot" style="width:880px;height:560px"></div>';
    const traces = batches.map((lines, batch) => ({
        type: "scattergl", mode: "lines", line: {color: `hsl(${batch * 5},80%,40%)`, width: 1}, hoverinfo: "skip",
        x: lines.flatMap(([a, , c]) => [a, c, null]), y: lines.flatMap(([, b, , d]) => [b, d, null]),
    }));
    const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    return (async () => {
        const times = [];
        for (let run = 0; run < runs; run++) {
            const began = performance.now();
            await Plotly.react("plot", traces, {showlegend: false, xaxis: {range: [run, 880 + run]}});
            await frame();
            times.push(performance.now() - began);
        }
        return times;
    })();
}"""


def main() -> None:
    """Print a row for each size, and the time to open the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument(
        "--size", choices=SIZES, action="append", help="measure only this size (default: all sizes, and opening)"
    )
    parser.add_argument("--others", nargs="*", choices=OTHERS, help="also measure plotly and SVG, or one of them")
    parser.add_argument(
        "--limit", type=float, default=60, metavar="S", help="time limit of a redraw with --others (default: 60)"
    )
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="folder of the views; existing views are reused")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    others = OTHERS if arguments.others == [] else arguments.others or ()
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or ""
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.files or Path(temporary)
        files = make_files(folder, [SIZES[size] for size in arguments.size or ()])
        plotly = fetch_plotly(folder) if "plotly" in others else ""
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
            shown = {name: file for name, file in files.items() if name not in SIZES.values()}
            opening = {name: time_opening(browser, file, arguments.runs) for name, file in shown.items()}
            measured = [
                measure(browser, files[SIZES[size]], arguments.runs, bool(others)) for size in arguments.size or SIZES
            ]
            browser.close()
        for row, halves in measured:
            for name in others:
                script, library = (SVG, "") if name == "svg" else (PLOT, plotly)
                row[name] = asyncio.run(time_other(chromium, script, halves, arguments.limit, library))
        sizes = [size for size, _ in measured]
    if arguments.json:
        print(json.dumps({"opening": opening, "sizes": sizes}))
        return
    for name, (file_bytes, ready) in opening.items():
        print(f"{name}: {file_bytes / 1e6:.2f} MB, picture and lists shown after {ready:.0f} ms")
    print(
        "| links | lines, ms | cells, ms | pan, frames/s | hover, median ms (largest) | in space, ms | "
        "turning, frames/s | SVG, ms | plotly WebGL, ms |"
    )
    print("|---" * 9 + "|")
    for size in sizes:
        others = " | ".join(say_other(size, name, arguments.limit) for name in OTHERS)
        print(
            f"| {size['links']:,} | {size['lines']:.0f} | {size['cells']:.0f} | {size['frames']:.0f} | "
            f"{size['hover']:.1f} ({size['hover_most']:.1f}) | {size['space']:.0f} | {size['turning']:.0f} | {others} |"
        )


def say_other(size: dict[str, float], name: str, limit: float) -> str:
    """Return another page's time as text, with its ratio to ibprof-view's time."""
    if name not in size:
        return "-"
    time, sign = (size[name], "") if isfinite(size[name]) else (1000 * limit, "> ")
    return f"{sign}{time:,.0f} ({sign}{time / size['lines']:.1f} times)"


def make_files(folder: Path, names: Sequence[str]) -> dict[str, Path]:
    """Write the views with these names; without names, all views."""
    folder.mkdir(exist_ok=True)

    def matrix(ranks: int) -> str:
        path = folder / f"{ranks}.csv"
        if not path.exists():
            pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
            rows = "".join(f"{a},{b},{1 + (a * 7919 + b * 104729) % (1 << 31)},1\n" for a, b in pairs)
            path.write_text("src,dst,bytes,messages\n" + rows)
        return str(path)

    placed = ("--placement", "spread")
    wanted = {
        "128 ranks": lambda: [TREE, matrix(RANKS), *placed],
        "1,024 ranks": lambda: [LARGE, matrix(MANY_RANKS), *placed],
        "3,888 links": lambda: [TREE, matrix(RANKS), *placed, *in_space(folder, TREE)],
        "34,992 links": lambda: [LARGE, "pattern:shift:324:1000", *in_space(folder, LARGE)],
        "100,800 links": lambda: [HUGE, "pattern:shift:468:1000", *in_space(folder, HUGE)],
    }
    files = {}
    for name in names or wanted:
        files[name] = folder / f"{name}.html"
        if not files[name].exists() and view.main([*wanted[name](), "-o", str(files[name])]):
            raise SystemExit(f"no view of {name}")
    return files


def in_space(folder: Path, fabric: str) -> tuple[str, str]:
    """Write 3D positions of nodes, each level on a circle; return the option of `ibprof-view` that reads them."""
    nodes, places = folder / "nodes.csv", folder / "places.csv"
    layout.main([fabric, "pattern:shift:1:1", "-o", str(folder / "links.csv"), "--nodes", str(nodes)])
    with nodes.open(newline="") as file:
        rows = [(row["guid"], float(row["x"]), float(row["level"])) for row in csv.DictReader(file)]
    widest = 1 + max(x for _, x, _ in rows)
    lines = [f"{guid},{cos(2 * pi * x / widest)},{level / 2},{sin(2 * pi * x / widest)}\n" for guid, x, level in rows]
    places.write_text("guid,x,y,z\n" + "".join(lines))
    return "--node-data", str(places)


def fetch_plotly(folder: Path) -> str:
    """Return plotly's bundle. If the folder lacks the bundle, fetch it from the npm registry."""
    if not any(folder.rglob("plotly.min.js")):
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--prefix", str(folder), PLOTLY], check=True)
    return next(folder.rglob("plotly.min.js")).read_text()


def time_opening(browser: Browser, file: Path, runs: int) -> tuple[int, float]:
    """Return the file's size, and milliseconds from the start of loading until picture and lists are shown."""
    times = []
    for _ in range(runs):
        page = open_page(browser, file)
        times.append(page.evaluate("performance.getEntriesByName('ibprof-shown')[0].startTime"))
        page.close()
    return file.stat().st_size, min(times)


def open_page(browser: Browser, file: Path, address: str = "") -> Page:
    """Open a view in a window of 1280 x 720 pixels."""
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(file.as_uri() + address)
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    page.wait_for_timeout(500)
    return page


def measure(browser: Browser, file: Path, runs: int, others: bool) -> tuple[dict[str, float], str]:
    """Return the figures of one size (times in ms), and the halves of links for plotly and SVG."""
    page = open_page(browser, file, "#picture=cells")
    found = {"links": page.evaluate("ibprof.loads().length"), "cells": min(page.evaluate(REDRAW, runs))}
    page.close()
    page = open_page(browser, file, "#picture=space")
    found |= {"space": min(page.evaluate(REDRAW, runs)), "turning": page.evaluate(MOVE, "turn")}
    page.close()
    page = open_page(browser, file, "#picture=lines")
    found |= {"lines": min(page.evaluate(REDRAW, runs)), "frames": page.evaluate(MOVE, "pan")}
    page.wait_for_timeout(1500)
    page.keyboard.press("0")
    hovers = sorted(page.evaluate(HOVER, 60))
    found |= {"hover": hovers[len(hovers) // 2], "hover_most": hovers[-1]}
    halves = page.evaluate(HALVES) if others else ""
    page.close()
    return found, halves


async def time_other(chromium: str, script: str, halves: str, limit: float, library: str = "") -> float:
    """Return the shortest time, in ms, in which `script` draws `halves` of links in a new browser.

    A redraw may take at most `limit` seconds. The result is infinite if no redraw ends in time. The first redraw also
    builds the scene.
    """
    times = [inf]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = await browser.new_page(viewport={"width": 1280, "height": 720})
        if library:
            await page.add_script_tag(content=library)
        try:
            await page.evaluate("halves => { window.halves = JSON.parse(halves); }", halves)
            for _ in range(OTHER_RUNS):
                drawn = await asyncio.wait_for(page.evaluate(f"({script})([window.halves, 1])"), limit)
                times.append(min(drawn))
        except TimeoutError:
            pass
        await browser.close()
    return min(times)


if __name__ == "__main__":
    main()
