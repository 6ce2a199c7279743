# SPDX-License-Identifier: Apache-2.0
"""Clusters of bars, one for each row of a table of means.

A bar reaches from the 25th to the 75th percentile, with a line at the median and a dot at the mean (figure 5.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.ticker import FuncFormatter

Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a cluster.

    Attributes:
        row: of the table of means; None leaves its place empty.
        colour: of it.
    """

    row: Row | None
    colour: str


def format_time(microseconds: float) -> str:
    """Give a time in the unit that suits it."""
    return f"{microseconds / 1000:g} ms" if microseconds >= 1000 else f"{microseconds:g} us"


def format_interval(microseconds: float) -> str:
    """Give an interval as people say it; 0 is a checkpoint."""
    if not microseconds:
        return "checkpoint"
    return format_time(microseconds)


def format_size(size: float) -> str:
    """Give a size in the thesis's units: KB and MB are powers of two."""
    return f"{size / 2**20:g} MB" if size >= 2**20 else f"{size / 2**10:g} KB"


def choose_shades(count: int) -> list[str]:
    """Give so many colours, from dark to light."""
    scale = colormaps["plasma"]
    return [to_hex(scale(0.88 * (number + 0.5) / max(count, 1))) for number in range(count)]


def draw_clusters(axes: Axes, clusters: Mapping[str, Sequence[Bar]], by: str, scale: str = "linear") -> None:
    """Draw clusters of bars.

    Args:
        axes: to draw on.
        clusters: bars by the cluster's name.
        by: what the names are of.
        scale: of the times.
    """
    axes.set_xlabel(by, fontsize=8)
    axes.set_yscale(scale)
    for place, bars in enumerate(clusters.values()):
        width = 0.84 / max(len(bars), 1)
        for number, bar in enumerate(bars):
            if bar.row is None:
                continue
            x = place - 0.42 + (number + 0.5) * width
            low, high, row = bar.row["p25_us"], bar.row["p75_us"], bar.row
            axes.bar(x, max(high - low, 0), 0.8 * width, low, color=bar.colour, alpha=0.75, linewidth=0)
            axes.hlines(row["p50_us"], x - 0.45 * width, x + 0.45 * width, color=bar.colour, linewidth=1.6)
            axes.plot(x, row["mean_us"], "o", color=bar.colour, markersize=3.2, markeredgecolor="white", mew=0.4)
    axes.set_xticks(range(len(clusters)), list(clusters), fontsize=7)
    axes.set_xlim(-0.55, len(clusters) - 0.45)
    if scale == "linear":
        axes.set_ylim(bottom=0, auto=True)  # charts that share the axis may need more of it
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_time(value)))
    axes.tick_params(labelsize=7)
