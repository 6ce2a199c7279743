# SPDX-License-Identifier: Apache-2.0
"""Measure the time of `ibprof-layout` and its stages, on a fat-tree of 1,296 hosts with all-to-all traffic.

Run it from a checkout, with ibprof installed:  python benchmarks/layout.py [--runs N] [--crossings]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ibprof_converter.fabric.node_names import rank_names
from ibprof_converter.layout.positions import count_crossings, lay_out, visit
from ibprof_testing.samples.fabrics import read_subnet

TESTS = Path(__file__).parents[1] / "tests/data/fabrics"
TREES = (
    *(str(TESTS / name / "ibdiagnet.lst.xz") for name in ("dualrail/rail1", "xgft3-512", "xgft3-1296")),
    str(TESTS / "oversub-faulty/ibdiagnet.lst.xz"),
    "xgft:3:18,18,36:1,18,18",
)
FABRIC = Path(__file__).parents[1] / "tests/data/fabrics/xgft3-1296/ibdiagnet.lst.xz"
TRAFFIC = "pattern:all-to-all"
GOAL_S = 3.0

# Each run is a new interpreter, because users also wait for imports.
STAGES = """
import pathlib, sys, time
began = time.perf_counter()
laps = []

def lap(name):
    global began
    now = time.perf_counter()
    laps.append((now - began, name))
    began = now

from ibprof_converter.analysis import pipeline_options, pipeline_stages
from ibprof_converter.cli import layout  # all that the command imports
from ibprof_converter.outputs import table_files
lap("imports")
fabric, traffic, folder = sys.argv[1:]
current = None

def stage(name):
    global current
    if current:
        lap(current)
    current = name

options = pipeline_options.FabricOptions((fabric,)), pipeline_options.TrafficOptions((traffic,), flows_limit=0)
loads = pipeline_stages.load_fabric(*options, progress=stage)
lap(current)

with open(f"{folder}/links.csv", "w") as file:
    table_files.write_csv(file, loads.table())
lap("writing links.csv")

from ibprof_converter.outputs import yaml_files
lap("import of yaml")
with open(f"{folder}/links.yaml", "w") as file:
    yaml_files.write_yaml(file, {}, [], loads.rows())
lap("writing links.yaml")

from ibprof_converter.outputs import fabric_picture
lap("import of matplotlib")
fabric = loads.fabric
fabric_picture.write_picture(pathlib.Path(folder, "heatmap.png"), "", "", fabric.fabrics, fabric.layouts, loads.loads)
lap("drawing heatmap.png")
for seconds, name in laps:
    print(f"{seconds} {name}")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="number of runs for a median (default: 5)")
    parser.add_argument("--crossings", action="store_true", help="only count crossings of links")
    arguments = parser.parse_args()
    if arguments.crossings:
        show_crossings()
        return
    runs = arguments.runs
    with tempfile.TemporaryDirectory() as folder:
        outputs = ["-o", f"{folder}/links.csv", "--yaml", f"{folder}/links.yaml", "--png", f"{folder}/heatmap.png"]
        links_only = time_command([str(FABRIC), TRAFFIC, *outputs[:2]], runs)
        everything = time_command([str(FABRIC), TRAFFIC, *outputs], runs)
        stages = time_stages([str(FABRIC), TRAFFIC, folder], runs)
    print(f"ibprof-layout {FABRIC.parent.name} {TRAFFIC}, medians of {runs} runs")
    print(f"  {links_only:6.3f} s  whole command with only links.csv (goal: under {GOAL_S:.0f} s)")
    print(f"  {everything:6.3f} s  whole command with links.csv, YAML and PNG")
    print("its stages:")
    for name, seconds in stages.items():
        print(f"  {seconds:6.3f} s  {name}")
    sys.exit(links_only >= GOAL_S)


def time_command(arguments: list[str], runs: int) -> float:
    command = "import sys; from ibprof_converter.cli.layout import main; sys.exit(main())"
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", command, *arguments], check=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def time_stages(arguments: list[str], runs: int) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for _ in range(runs):
        shown = subprocess.run(
            [sys.executable, "-c", STAGES, *arguments], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        for line in shown.splitlines():
            seconds, name = line.split(" ", 1)
            times.setdefault(name, []).append(float(seconds))
    return {name: statistics.median(values) for name, values in times.items()}


def show_crossings() -> None:
    """Count the crossings of all links, and of links within pods, in the layout and in breadth-first order."""
    print(f"{'':34} {'layout':>9} {'crossings':>10} {'by search':>10} {'in pods':>9} {'by search':>10}")
    for name in TREES:
        fabric = read_subnet(name).fabric
        began = time.perf_counter()
        (layout,) = lay_out([fabric])
        took = time.perf_counter() - began
        met = visit(fabric, rank_names(fabric.node_name)).astype(float)
        in_pods = fabric.link_node[layout.level[fabric.link_node].max(axis=1) < layout.level.max()]
        pods = replace(
            fabric,
            link_node=in_pods,
            link_port=np.zeros_like(in_pods),
            link_gbps=np.zeros(len(in_pods)),
        )
        counts = [count_crossings(each, layout.level, x) for each in (fabric, pods) for x in (layout.x, met)]
        shown = " ".join(f"{count:10}" for count in counts)
        print(f"{'/'.join(Path(name).parts[-3:-1]) or name:34} {1e3 * took:6.0f} ms {shown}")


if __name__ == "__main__":
    main()
