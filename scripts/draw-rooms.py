#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw the imports and includes between the parts of a checkout's sources.

scripts/draw-rooms.py [CHECKOUT] -o rooms.png

A node is a package or a single module; in C, a folder or a single file. An arrow goes from the importing part to the
imported part. Arrows within a cycle are red.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_CIRCLE, _FORWARD = "#c0392b", "#9aa5b1"


def python_rooms(root: Path) -> nx.DiGraph:
    """Return the graph of imports between the parts of a Python package, imports inside functions included."""
    graph = nx.DiGraph()
    for path in sorted(root.rglob("*.py")):
        room = _room(path.relative_to(root).with_suffix("").parts)
        graph.add_node(room)
        for name in _imported(ast.parse(path.read_text(encoding="utf-8")), root.name):
            target = _room(tuple(name.split(".")[1:]))
            is_room = (root / target).is_dir() or (root / f"{target}.py").is_file()
            if target != room and is_room:
                graph.add_edge(room, target)
    return graph


def _room(parts: tuple[str, ...]) -> str:
    return parts[0] if parts else "__init__"


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == package)


def c_rooms(root: Path) -> nx.DiGraph:
    """Return the graph of includes between the parts of a folder of C sources."""
    sources = sorted([*root.rglob("*.c"), *root.rglob("*.h")])
    rooms = {path: _room(path.relative_to(root).with_suffix("").parts) for path in sources}
    headers = [path for path in sources if path.suffix == ".h"]
    graph = nx.DiGraph()
    for path, room in rooms.items():
        graph.add_node(room)
        for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            # Headers are next to the file, relative to the root, or, in old checkouts, in any folder.
            named = (path.parent / name, root / name, *(each for each in headers if each.name == name))
            target = next((rooms[each] for each in named if each in rooms), room)
            if target != room:
                graph.add_edge(room, target)
    return graph


def draw_rooms(graph: nx.DiGraph, title: str, axes: Axes) -> None:
    """Draw a graph. Parts that import nothing are at the bottom; arrows within a cycle are red."""
    condensed = nx.condensation(graph)
    heights: dict[int, int] = {}
    for part in reversed(list(nx.topological_sort(condensed))):
        heights[part] = max((heights[each] + 1 for each in condensed.successors(part)), default=0)
    layers: dict[int, list[str]] = {}
    for part, height in heights.items():
        layers.setdefault(height, []).extend(sorted(condensed.nodes[part]["members"]))
    places = {
        name: ((index + 0.5) / len(names) + 0.06 * (height % 2), height + 0.22 * (index % 3 - 1) * (len(names) > 4))
        for height, names in layers.items()
        for index, name in enumerate(names)
    }
    circles = [part for part in nx.strongly_connected_components(graph) if len(part) > 1]
    colours = [_CIRCLE if any({a, b} <= part for part in circles) else _FORWARD for a, b in graph.edges]
    nx.draw_networkx_edges(graph, places, ax=axes, edge_color=colours, width=0.7, arrowsize=6, node_size=500)
    box = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": "#2c3e50", "lw": 0.6}
    nx.draw_networkx_labels(graph, places, ax=axes, font_size=8, bbox=box)
    within = sum(len(part) for part in circles)
    axes.set_title(f"{title}: {len(graph)} parts, {graph.number_of_edges()} arrows, {within} in cycles", fontsize=9)
    axes.set_axis_off()
    axes.margins(0.12)


def main() -> None:
    """Draw the three graphs of a checkout side by side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(), help="sources (default: this folder)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="a PNG file")
    wanted = parser.parse_args()
    figure = Figure(figsize=(20, 7), layout="constrained")
    axes = figure.subplots(1, 3)
    draw_rooms(python_rooms(wanted.checkout / "ibprof"), "ibprof", axes[0])
    draw_rooms(python_rooms(wanted.checkout / "converter/ibprof_converter"), "ibprof_converter", axes[1])
    draw_rooms(c_rooms(wanted.checkout / "csrc/preload"), "csrc/preload", axes[2])
    figure.savefig(wanted.output, dpi=70)


if __name__ == "__main__":
    main()
