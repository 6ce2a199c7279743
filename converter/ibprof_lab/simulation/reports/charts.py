# SPDX-License-Identifier: Apache-2.0
"""Charts of studies: for each measured job, its latency if it runs alone, and its latency if all jobs run.

A black bar shows the job alone. The colour of all other bars shows properties of the other jobs. The bars of a cluster
agree in the measured job's properties, or in the setting. Each message size has a panel. A bar reaches from the 25th to
the 75th percentile of latencies, with a line at the median and a dot at the mean. The whisker at the dot is the 95%
interval over seeds. A bar with fewer seeds than other bars is hollow. If a mean is missing, a mark at the axis replaces
the bar.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil, sqrt
from pathlib import Path
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from ibprof.errors import InputError
from ibprof_lab.simulation.study.result_tables import MEANS, PATTERN_COLUMNS, SETTING_COLUMNS, is_means, read_means
from ibprof_lab.simulation.study.sizes_and_times import format_size

_ALONE = "#111111"
_DOTS_PER_INCH = 120
_MOST_PANELS = 16
_MOST_BARS = 400

Key = tuple[Any, ...]

Row = Mapping[str, Any]

Rows = Sequence[Row]

WHISKER, FEWER, ABSENT, UNSTEADY = "_whisker", "_fewer seeds", "_not simulated", "_no steady state"
"""Labels of marks. Matplotlib's legends do not show labels that begin with _."""

MARKS: Mapping[str, str] = {
    WHISKER: "whisker: 95% interval of the mean over seeds",
    FEWER: "hollow: fewer seeds than others",
    ABSENT: "x: not simulated",
    UNSTEADY: "~: no steady state",
}
"""Label of a mark -> explanation in the chart."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns that vary in a measured job's rows; each column distinguishes panels, clusters or bars (`others`)."""

    panels: tuple[str, ...]
    clusters: tuple[str, ...]
    others: tuple[str, ...]


def draw_results(results: Iterable[Path], folder: Path, suffix: str = "png") -> tuple[list[Path], list[str]]:
    """Draw charts of tables of means.

    Args:
        results: tables of means, or folders; all tables of means in a folder are drawn.
        suffix: png, svg or pdf.

    Returns:
        The written files, and sentences on tables without charts.

    Raises:
        InputError: a folder contains no table of means, or a table is invalid.
    """
    tables = _name_tables(results)
    means = {name: read_means([path]) for name, path in tables.items()}
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    notes: list[str] = []
    for name, rows in means.items():
        drawn = draw_means(rows, folder, name, suffix)
        files += drawn
        if not drawn:
            notes.append(f"{tables[name]}: nothing is drawn, since no mean settled")
    return files, notes


def _name_tables(results: Iterable[Path]) -> dict[str, Path]:
    """Return name for the chart -> path of a table of means. If a name occurs twice, a number is appended."""
    named: dict[str, Path] = {}
    for path in (table for each in results for table in find_tables(each)):
        name = path.resolve().parent.name if path.stem == Path(MEANS).stem else path.stem
        free = next(each for number in count(1) if (each := f"{name}-{number}" if number > 1 else name) not in named)
        named[free] = path
    return named


def find_tables(path: Path) -> list[Path]:
    """Return the path of a table, or the paths of all tables of means in a folder.

    Raises:
        InputError: the folder contains no table of means.
    """
    if not path.is_dir():
        return [path]
    found = [each for each in sorted(path.rglob("*.csv")) if is_means(each)]
    if not found:
        raise InputError(path, None, f"{MEANS} of a study in this folder", "none")
    return found


def draw_means(means: Rows, folder: Path, name: str, suffix: str = "png") -> list[Path]:
    """Draw a chart `NAME-JOB.png` for each measured job that has a mean; return the paths of the files."""
    files: list[Path] = []
    marked = mark_fewer_seeds(means)
    for job in dict.fromkeys(str(row["measured"]) for row in marked):
        rows = [row for row in marked if row["measured"] == job]
        if all(row["mean_us"] is None for row in rows):
            continue
        path = folder / f"{_to_file_name(name)}-{_to_file_name(job)}.{suffix}"
        while path in files:  # two jobs may have the same name after `_to_file_name`
            path = path.with_stem(f"{path.stem}-")
        _save(_draw_job(rows, job), path, suffix)
        files.append(path)
    return files


def _to_file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)


def _save(figure: Figure, path: Path, suffix: str) -> None:
    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_parse_math(False)  # names are untrusted text
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # matplotlib draws boxes in place of characters that the font lacks
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # a large legend may need the charts' space
        figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={"Date": None} if suffix == "svg" else None)


def _draw_job(rows: Rows, job: str) -> Figure:
    columns = _find_columns(rows, job)
    panels = _group(rows, columns.panels)
    shown = dict(list(panels.items())[:_MOST_PANELS])
    across = ceil(sqrt(len(shown)))
    figure = Figure(figsize=(5 + 4 * across, 2 + 3 * ceil(len(shown) / across)), layout="constrained")
    left_out = f", the first {len(shown)} of {len(panels)} panels" if len(shown) < len(panels) else ""
    figure.suptitle(f"Latency of {job}, alone (black) and next to other jobs{left_out}", fontsize=11)
    for number, (key, of_panel) in enumerate(shown.items(), start=1):
        axes = figure.add_subplot(ceil(len(shown) / across), across, number)
        axes.set_title(_describe(columns.panels, key), fontsize=8)
        _draw_panel(axes, of_panel, columns, job)
    used = {str(artist.get_label()) for artist in figure.findobj()}
    marks = (text for label, text in MARKS.items() if label in used)
    figure.supxlabel("    ".join(("bar: 25th to 75th percentile", "line: median", "dot: mean", *marks)), fontsize=8)
    return figure


def _find_columns(rows: Rows, job: str) -> _Columns:
    """Find the columns with several values, and decide their use in the chart."""
    names = [column.removesuffix("_share") for column in rows[0] if column.endswith("_share")]
    varying = {column for column in rows[0] if len({row.get(column) for row in rows} - {None}) > 1}

    def choose(jobs: Iterable[str], columns: Sequence[str]) -> list[str]:
        return [f"{name}_{column}" for name in jobs for column in columns if f"{name}_{column}" in varying]

    others = [name for name in names if name != job]
    patterns = ("share", *(column for column in PATTERN_COLUMNS if column != "bytes"))
    sizes, own = choose([job], ["bytes"]), choose([job], patterns)
    settings = [column for column in SETTING_COLUMNS if column in varying]
    panels = [*(sizes if own or settings else ()), *choose(others, ["bytes"]), *(settings if own else ())]
    return _Columns(tuple(panels), tuple(own or settings or sizes), tuple(choose(others, patterns)))


def _group(rows: Rows, columns: Sequence[str]) -> dict[Key, list[Row]]:
    """Group rows by columns.

    A baseline (the job alone) is added to each group with the same values in the columns. Columns of other jobs are not
    compared, since they are empty in a baseline.
    """
    others = [row for row in rows if row["run"] != "baseline"] or rows
    groups: dict[Key, list[Row]] = {}
    for row in others:
        groups.setdefault(tuple(row.get(column) for column in columns), []).append(row)
    for row in rows:
        if row["run"] != "baseline" or others is rows:
            continue
        for key, of_group in groups.items():
            pairs = zip(columns, key, strict=True)
            if all(row.get(column) in (value, None) for column, value in pairs):
                of_group.insert(0, row)
    return dict(sorted(groups.items(), key=lambda each: [_order(value) for value in each[0]]))


def _draw_panel(axes: Axes, rows: Rows, columns: _Columns, job: str) -> None:
    keys = dict.fromkeys(
        tuple(row.get(column) for column in columns.others) for row in rows if row["run"] != "baseline"
    )
    ordered = sorted(keys, key=lambda key: [_order(value) for value in key], reverse=True)
    colours = dict(zip(ordered, choose_shades(len(ordered)), strict=True))
    clusters: dict[str, list[Bar]] = {}
    for key, of_cluster in _group(rows, columns.clusters).items():
        alone = [Bar(row, _ALONE) for row in of_cluster if row["run"] == "baseline"]
        others = [row for row in of_cluster if row["run"] != "baseline"]
        by_key = {tuple(row.get(each) for each in columns.others): row for row in others}
        bars = [*alone[:1], *(Bar(by_key[each], colour) for each, colour in colours.items() if each in by_key)]
        if sum(map(len, clusters.values())) + len(bars) > _MOST_BARS:
            break
        clusters[_describe(columns.clusters, key, sep="\n") or job] = bars
    draw_clusters(axes, clusters, ", ".join(map(_name_column, columns.clusters)))
    axes.margins(y=0.1)
    axes.set_ylim(bottom=0, auto=None)
    if len(ordered) > 1:
        patches = [Patch(color=colour, label=f" {_describe(columns.others, key)}") for key, colour in colours.items()]
        axes.legend(handles=patches, fontsize=6, frameon=False)


def _describe(columns: Sequence[str], values: Sequence[Any], sep: str = ", ") -> str:
    return sep.join(_format(column, value) for column, value in zip(columns, values, strict=True))


def _name_column(column: str) -> str:
    return re.sub("_(us|ns|bytes)$", "", column).replace("_", " ")


def _format(column: str, value: Any) -> str:
    """Return a column's value for the chart: a word unchanged, a quantity with the column's name and unit."""
    if value is None or isinstance(value, str):
        return str(value or "")
    if column.endswith("_interval_us"):
        said = format_interval(value)
    elif column.endswith("_us"):
        said = format_interval(value) if value else "none"
    elif column.endswith("bytes"):
        said = format_size(round(value))
    else:
        said = f"{value:g}{' ns' if column.endswith('_ns') else ''}"
    return f"{_name_column(column)} {said}"


def _order(value: Any) -> tuple[bool, str, float]:
    """Return a sort key for values: first missing values, then numbers, then words."""
    is_number = isinstance(value, (int, float))
    return value is not None, "" if is_number or value is None else str(value), float(value) if is_number else 0.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a cluster.

    Attributes:
        row: row of the table of means. If the row is None or has no mean, a mark is drawn.
    """

    row: Row | None
    colour: str


def format_time(microseconds: float) -> str:
    """Return a time in microseconds or milliseconds."""
    return f"{microseconds / 1000:g} ms" if microseconds >= 1000 else f"{microseconds:g} µs"


def format_interval(microseconds: float) -> str:
    """Return an interval as text; interval 0 is shown as "checkpoint"."""
    return format_time(microseconds) if microseconds else "checkpoint"


def choose_shades(count: int) -> list[str]:
    """Return `count` colours, from dark to light."""
    scale = colormaps["plasma"]
    return [to_hex(scale(0.88 * (number + 0.5) / max(count, 1))) for number in range(count)]


def mark_fewer_seeds(rows: Rows) -> list[Row]:
    """Add the column `has_fewer_seeds` to rows: True if the row has seeds, but fewer than another row."""
    seeds = max((row["seeds"] or 0 for row in rows), default=0)
    return [{**row, "has_fewer_seeds": 0 < (row["seeds"] or 0) < seeds} for row in rows]


def mark_missing(axes: Axes, x: float, row: Row | None, colour: str = "#666666") -> None:
    """Draw the mark of a missing mean at the axis."""
    unsteady = row is not None and "no steady state" in row["note"]
    text = axes.text(x, 0.015, "~" if unsteady else "x", color=colour, fontsize=7, ha="center", va="bottom",
                     transform=axes.get_xaxis_transform())  # fmt: skip
    text.set_label(UNSTEADY if unsteady else ABSENT)


def draw_interval(axes: Axes, x: float, value: float, half: float | None) -> None:
    """Draw the whisker from value - half to value + half; a white outline makes it visible on dark bars."""
    if half:
        lines = axes.vlines(x, value - half, value + half, color="#111111", linewidth=0.8, label=WHISKER, zorder=3)
        lines.set_path_effects([withStroke(linewidth=2, foreground="white")])


def draw_clusters(axes: Axes, clusters: Mapping[str, Sequence[Bar]], by: str, scale: str = "linear") -> None:
    """Draw clusters of bars.

    Args:
        clusters: name of a cluster -> its bars.
        by: label of the axis of clusters.
        scale: `linear` or `log`, scale of the time axis.
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
        axes.set_ylim(bottom=0, auto=True)  # do not shrink the range: another chart on this axis may need it
    axes.grid(axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_time(value)))
    axes.tick_params(labelsize=7)
