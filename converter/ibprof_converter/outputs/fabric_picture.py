# SPDX-License-Identifier: Apache-2.0
"""Draw a fabric, with nodes in rows by level. The colour of half a link shows the bytes that its node sends."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from ibprof.text.quantities import format_bytes
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.positions import FabricLayout
from ibprof_converter.traffic.link_loads import Loads

_INCHES = (15.0, 7.5)
_PANEL_HEIGHT = 0.8
"""Height of one of several panels / height of a single panel."""

_TWO_COLUMNS = 4
"""Panels are drawn in two columns if there are at least this number."""

_MOST_PANELS = 8
_TITLE_WIDTH = 150
"""Largest number of letters in a line of the title."""

_REST = "(all others)"
_VECTOR = ("svg", "pdf")

_RASTER_FROM = 10_000
"""A picture with more half links than this is drawn as pixels: with lines, SVG and PDF would have many MB."""

_DOTS_PER_INCH = 150
_UNUSED = "#dcdfe3"
_NODE = "#39424e"

_LOW_TO_HIGH = ("#fbd26a", "#f58c46", "#d94a6a", "#8a2a86", "#260c51")
"""Colours from light to dark, which differ also in grey and for colour-blind readers."""

_BUNDLE_HEIGHT = 0.34
"""Parallel links within a level: distance of the outermost link from a straight line / distance of two levels."""

_BUNDLE_STEP = 0.004
"""Parallel links that join two levels: half of the largest distance between adjacent links / the picture's width."""

_INK = 26.0
"""Line width, in points, is this number / the square root of the number of drawn half links."""


@dataclass(frozen=True, slots=True)
class _Halves:
    """Half links as lines.

    Attributes:
        line: float64 [half, 2 points, 2], from a node to the middle of its link.
        bytes: uint64 [half], bytes that the node sends.
        idle: bool [half], true if the link carries no bytes in both directions.
    """

    line: npt.NDArray[np.float64]
    bytes: npt.NDArray[np.uint64]
    idle: npt.NDArray[np.bool_]


def write_picture(
    file: Path | BinaryIO,
    title: str,
    subtitle: str,
    fabrics: Sequence[Fabric],
    layouts: Sequence[FabricLayout],
    loads: Loads,
    panels: str | None = None,
    only_used: bool = False,
    full_scale: int | None = None,
) -> None:
    """Draw all rails into one file.

    Args:
        file: a path, SVG or PDF by its suffix, else PNG; or an open file, which becomes a PNG.
        title, subtitle: the heading, as plain text.
        panels: `region`, `operation`, `site` or `job`, to draw a panel for each value, with a common scale. If None: a
            single panel.
        only_used: true to leave out links without traffic.
        full_scale: bytes of the darkest colour, to compare pictures. If None: bytes of the most loaded link direction.
    """
    drawn = split_loads(loads, panels)
    columns = 1 if len(drawn) < _TWO_COLUMNS else 2
    rows = -(-len(drawn) // columns)
    width, height = (_INCHES[0] / columns, _INCHES[1] / columns) if len(drawn) > 1 else _INCHES
    size = (width * columns, height * rows * (_PANEL_HEIGHT if len(drawn) > 1 else 1.0))
    figure = Figure(figsize=size, dpi=_DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False)
    greatest = full_scale or max((int(each.max(initial=0)) for panel in drawn for each in panel.by_rail), default=0)
    shown = None
    for axes, panel in zip(grid.flat, drawn, strict=False):
        parts = [_halve(*each) for each in zip(fabrics, layouts, panel.by_rail, strict=True)]
        halves = _Halves(*(np.concatenate([getattr(part, name) for part in parts]) for name in _Halves.__slots__))
        shown = _draw_links(axes, halves, float(greatest), only_used) or shown
        for fabric, layout in zip(fabrics, layouts, strict=True):
            _draw_nodes(axes, fabric, layout)
        _label_levels(axes, layouts)
        if len(drawn) > 1:
            axes.set_title(panel.name, loc="left", fontsize=11, parse_math=False)
    for axes in grid.flat[len(drawn) :]:
        axes.set_axis_off()
    if shown is not None:
        bar = figure.colorbar(shown, ax=list(grid.flat), pad=0.01, fraction=0.03, aspect=30 * rows)
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_bytes(value)))
        bar.set_label("bytes that the node at this end sends on the link")
        bar.outline.set_visible(False)
    _write_titles(figure, grid.flat[0], title, subtitle, single=len(drawn) == 1)
    kind = file.suffix.lower().removeprefix(".") if isinstance(file, Path) else "png"
    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "ibprof"}):
        warnings.filterwarnings("ignore", "Glyph")  # no warning if the font lacks letters of a name
        dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        figure.savefig(file, format=kind if kind in _VECTOR else "png", metadata=dated)


@dataclass(frozen=True, slots=True)
class LoadPanel:
    """One panel of a picture.

    Attributes:
        name: name of the region, operation, site or job.
        by_rail: for each rail uint64 [link, end], bytes of each link direction.
    """

    name: str
    by_rail: tuple[npt.NDArray[np.uint64], ...]


def split_loads(loads: Loads, panels: str | None) -> list[LoadPanel]:
    """Return each panel's loads, in recorded order; if there are more than `_MOST_PANELS`, the smallest are merged.

    Args:
        loads: loads of links, by region, operation, site or job.
        panels: one of `region`, `operation`, `site` and `job`; None for the sum.
    """
    if panels is None:
        return [LoadPanel("", tuple(loaded.sum(axis=2, dtype=np.uint64) for loaded in loads.by_rail))]
    columns = {"job": loads.jobs, "site": loads.sites}
    columns |= {name: tuple(group[at] for group in loads.groups) for at, name in enumerate(("region", "operation"))}
    names = columns[panels]
    amount = np.sum([loaded.sum(axis=(0, 1), dtype=np.float64) for loaded in loads.by_rail], axis=0)
    total = dict.fromkeys(names, 0.0)
    for name, part in zip(names, amount.tolist(), strict=True):
        total[name] += part
    room = _MOST_PANELS if len(total) <= _MOST_PANELS else _MOST_PANELS - 1
    kept = set(sorted(total, key=lambda name: -total[name])[:room])
    chosen: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        chosen.setdefault(name if name in kept else _REST, []).append(index)
    return [
        LoadPanel(name, tuple(loaded[:, :, members].sum(axis=2, dtype=np.uint64) for loaded in loads.by_rail))
        for name, members in chosen.items()
    ]


def _write_titles(figure: Figure, axes: Axes, title: str, subtitle: str, single: bool) -> None:
    # Titles contain names from files, in which `$` does not begin a formula.
    if single:
        axes.set_title(title, loc="left", fontsize=14, fontweight="bold", parse_math=False, pad=24)
        axes.text(0, 1.015, subtitle, transform=axes.transAxes, fontsize=10, color="#5a6573", parse_math=False)
        return
    # Titles of several jobs are long: use the whole width of the picture.
    lines = [line for each in (title, subtitle) for line in wrap(each, _TITLE_WIDTH)]
    text = figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=12)
    text.set_parse_math(False)


def _halve(fabric: Fabric, layout: FabricLayout, loaded: npt.NDArray[np.uint64]) -> _Halves:
    """Return the two halves of each link; parallel links are bent apart."""
    ends = np.stack([layout.x[fabric.link_node], layout.y[fabric.link_node]], axis=2)
    middle = ends.mean(axis=1) + _bend(fabric, layout)
    line = np.stack([ends, np.repeat(middle[:, None], 2, axis=1)], axis=2)
    idle = ~loaded.any(axis=1)
    return _Halves(line=line.reshape(-1, 2, 2), bytes=loaded.reshape(-1), idle=np.repeat(idle, 2))


def _bend(fabric: Fabric, layout: FabricLayout) -> npt.NDArray[np.float64]:
    """Return the offset of each link's middle, different for parallel links: float64 [link, 2]."""
    pair = np.sort(fabric.link_node, axis=1)
    _, bundle, size = np.unique(pair, axis=0, return_inverse=True, return_counts=True)
    bundle = bundle.reshape(-1)
    order = np.argsort(bundle, kind="stable")
    place = np.empty(len(order))
    place[order] = np.arange(len(order)) - (np.cumsum(size) - size)[bundle[order]]
    gaps = np.maximum(size[bundle] - 1, 1)
    across = np.where(size[bundle] > 1, 2 * place / gaps - 1, 0.0)  # position among parallel links, -1 to 1
    width = float(np.ptp(layout.x))
    crowd = np.bincount(layout.level[fabric.node_kind == NodeKind.SWITCH], minlength=1).max()
    sideways = np.minimum(_BUNDLE_STEP * width * gaps, 0.4 * width / max(int(crowd), 1))
    within_level = np.equal(*layout.y[fabric.link_node].T)
    return np.stack(
        [np.where(within_level, 0.0, across * sideways), np.where(within_level, across * _BUNDLE_HEIGHT, 0.0)], axis=1
    )


def _draw_links(axes: Axes, halves: _Halves, greatest: float, only_used: bool) -> LineCollection | None:
    """Draw unused link directions faintly, then used link directions in ascending order of load.

    Return the used link directions; None if no link carries bytes.
    """
    many = len(halves.bytes) > _RASTER_FROM
    width = float(np.clip(_INK / np.sqrt(len(halves.bytes) + 1), 0.5, 2.4))
    faint = (halves.bytes == 0) & ~(halves.idle & only_used)
    unused = LineCollection(list(halves.line[faint]), colors=_UNUSED, linewidths=width * 0.7, zorder=1)
    unused.set_rasterized(many)
    axes.add_collection(unused)
    used = np.flatnonzero(halves.bytes)
    if not len(used):
        return None
    most_loaded_last = used[np.argsort(halves.bytes[used], kind="stable")]
    shown = LineCollection(
        list(halves.line[most_loaded_last]),
        cmap=LinearSegmentedColormap.from_list("load", _LOW_TO_HIGH),
        norm=Normalize(0, greatest),
        linewidths=width,
        zorder=2,
    )
    shown.set_array(halves.bytes[most_loaded_last].astype(np.float64))
    shown.set_rasterized(many)
    axes.add_collection(shown)
    return shown


def _draw_nodes(axes: Axes, fabric: Fabric, layout: FabricLayout) -> None:
    switch = fabric.node_kind == NodeKind.SWITCH
    crowd = max(np.bincount(layout.level).max(), 1) if fabric.nodes else 1
    size = float(np.clip(2000 / crowd, 2, 36))
    axes.scatter(layout.x[~switch], layout.y[~switch], s=size, marker="s", color=_NODE, linewidths=0, zorder=3)
    axes.scatter(layout.x[switch], layout.y[switch], s=size * 2, marker="s", color=_NODE, linewidths=0, zorder=3)


def _label_levels(axes: Axes, layouts: Sequence[FabricLayout]) -> None:
    """Label the rows of nodes with their level and, with several rails, a letter for the rail."""
    names: dict[float, str] = {}
    for letter, layout in zip("abcdefgh" if len(layouts) > 1 else " ", layouts, strict=False):
        for y, level in set(zip(layout.y.tolist(), layout.level.tolist(), strict=True)) if layout.has_levels else ():
            names[y] = f"{level}{letter.strip()}" if level else "hosts 0"
    axes.set_yticks(list(names), list(names.values()))
    axes.set_ylabel("level" if names else "", labelpad=12)
    axes.set_xticks([])
    axes.margins(x=0.01, y=0.06)
    axes.tick_params(left=False)
    for side in axes.spines.values():
        side.set_visible(False)
