# SPDX-License-Identifier: Apache-2.0
"""Clusters of bars, one for each row of a table of means.

A bar reaches from the 25th to the 75th percentile, with a line at the median and a dot at the mean. The dot's whisker
is the interval over seeds. A bar of fewer seeds is hollow; a row without a mean is a mark at the axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter

Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a cluster.

    Attributes:
        row: of the table of means; None, or one without a mean, is drawn as a mark.
        colour: of the bar.
    """

    row: Row | None
    colour: str


def format_time(microseconds: float) -> str:
    """Return a time in microseconds or milliseconds."""
    return f"{microseconds / 1000:g} ms" if microseconds >= 1000 else f"{microseconds:g} µs"


def format_interval(microseconds: float) -> str:
    """Return an interval as text; 0 is a checkpoint."""
    if not microseconds:
        return "checkpoint"
    return format_time(microseconds)


def choose_shades(count: int) -> list[str]:
    """Return a number of colours, from dark to light."""
    scale = colormaps["plasma"]
    return [to_hex(scale(0.88 * (number + 0.5) / max(count, 1))) for number in range(count)]


def mark_fewer_seeds(rows: Rows) -> list[Row]:
    """Return rows with a column that says whether they are of fewer seeds than others."""
    seeds = max((row["seeds"] or 0 for row in rows), default=0)
    return [{**row, "has_fewer_seeds": 0 < (row["seeds"] or 0) < seeds} for row in rows]


WHISKER, FEWER, ABSENT, UNSTEADY = "_whisker", "_fewer seeds", "_not simulated", "_no steady state"
"""Labels of marks; labels that begin with _ are in no legend."""

MARKS: Mapping[str, str] = {
    WHISKER: "whisker: 95% interval of the mean over seeds",
    FEWER: "hollow: fewer seeds than others",
    ABSENT: "x: not simulated",
    UNSTEADY: "~: no steady state",
}
"""Meaning of each mark."""


def mark_missing(axes: Axes, x: float, row: Row | None, colour: str = "#666666") -> None:
    """Mark at the axis that there is no mean."""
    unsteady = row is not None and "no steady state" in row["note"]
    text = axes.text(x, 0.015, "~" if unsteady else "x", color=colour, fontsize=7, ha="center", va="bottom",
                     transform=axes.get_xaxis_transform())  # fmt: skip
    text.set_label(UNSTEADY if unsteady else ABSENT)


def draw_interval(axes: Axes, x: float, value: float, half: float | None) -> None:
    """Draw half an interval to either side of a value, visible on dark bars too."""
    if half:
        lines = axes.vlines(x, value - half, value + half, color="#111111", linewidth=0.8, label=WHISKER, zorder=3)
        lines.set_path_effects([withStroke(linewidth=2, foreground="white")])


def draw_clusters(axes: Axes, clusters: Mapping[str, Sequence[Bar]], by: str, scale: str = "linear") -> None:
    """Draw clusters of bars.

    Args:
        axes: to draw on.
        clusters: bars by the cluster's name.
        by: label of the clusters' axis.
        scale: of the times' axis.
    """
    axes.set_xlabel(by, fontsize=8)
    axes.set_yscale(scale)
    for place, bars in enumerate(clusters.values()):
        width = 0.84 / max(len(bars), 1)
        for number, bar in enumerate(bars):
            x, row = place - 0.42 + (number + 0.5) * width, bar.row
            if row is None or row["mean_us"] is None:
                mark_missing(axes, x, row)
                continue
            low, high, fewer = row["p25_us"], row["p75_us"], row.get("has_fewer_seeds")
            box = axes.bar(x, max(high - low, 0), 0.8 * width, low, color=bar.colour, alpha=0.75, linewidth=0)[0]
            if fewer:
                box.set(fill=False, edgecolor=bar.colour, alpha=1, linewidth=0.8, label=FEWER)
            axes.hlines(row["p50_us"], x - 0.45 * width, x + 0.45 * width, color=bar.colour, linewidth=1.6)
            draw_interval(axes, x, row["mean_us"], row.get("mean_half_us"))
            edges = (bar.colour, "white") if not fewer else ("white", bar.colour)
            axes.plot(
                x, row["mean_us"], "o", color=edges[0], markersize=3.2, markeredgecolor=edges[1], mew=0.6, zorder=4
            )
    axes.set_xticks(range(len(clusters)), list(clusters), fontsize=7)
    axes.set_xlim(-0.55, len(clusters) - 0.45)
    if scale == "linear":
        axes.set_ylim(bottom=0, auto=True)  # charts that share the axis may need more of it
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_time(value)))
    axes.tick_params(labelsize=7)
