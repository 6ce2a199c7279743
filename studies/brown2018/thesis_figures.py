# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of chapters 5 and 6 from results, under their numbers.

    python studies/brown2018/thesis_figures.py [RESULTS...] -o figures

RESULTS are folders of studies, or tables; without any, the tables of this study. Bars are black without the other job,
and coloured by the other job's interval with it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from thesis_patterns import DETAIL_BESIDE, DETAIL_OWN, TABLE_5_1, US
from thesis_results import TABLES

from ibprof_converter.outputs.bar_clusters import (
    FEWER,
    MARKS,
    Bar,
    Row,
    Rows,
    choose_shades,
    draw_clusters,
    draw_interval,
    format_interval,
    mark_fewer_seeds,
    mark_missing,
)
from ibprof_converter.outputs.charts import find_tables
from ibprof_converter.simulation.study.result_tables import read_means

_ALONE = "#111111"
_MACHINE = ("fabric", "servers", "packet_bytes", "lane_bytes", "switch_ns", "wire_ns", "gbps")
_JOBS = {"io": "I/O request", "mpi": "MPI message"}
_OTHER = {"io": "mpi", "mpi": "io"}
_OF_NOBODY = {
    f"{job}_{name}": None
    for job in _JOBS
    for name in ("share", "bytes", "interval_us", "window_us", "limit", "whole_ms")
}
"""Studies of other authors may have jobs of other names."""
_SIZES = (4096.0, 524288.0, 4194304.0)
_DOTS_PER_INCH = 120
_USUAL = {"routing": "static", "server_placement": "isolated", "job_placement": "random-node"}
"""The thesis's configuration."""
_SETTINGS = {"routing": "{} routing", "server_placement": "{} servers", "job_placement": "{} jobs"}


def format_size(size: float) -> str:
    """Return a size in the thesis's units: KB and MB are powers of two."""
    return f"{size / 2**20:g} MB" if size >= 2**20 else f"{size / 2**10:g} KB"


def draw(results: Iterable[Path], folder: Path, suffix: str = "png") -> tuple[list[Path], list[str], list[str]]:
    """Draw every figure that results have rows for; return files, missing figures, and machines that are not drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [read_means([table]) for each in results for table in find_tables(each)]
    means, _, others = choose_machine(merge_means(tables))
    return *draw_figures(means, folder, suffix), others


def draw_figures(means: Rows, folder: Path, suffix: str = "png") -> tuple[list[Path], list[str]]:
    """Draw every figure that there are rows for.

    Args:
        means: rows of tables of means of one machine, as `choose_machine` returns them.
        folder: to write into.
        suffix: png, svg or pdf.

    Returns:
        The files, and the names of figures for which rows are missing.
    """
    written, missing = [], []
    for name, draw in FIGURES.items():
        figure = draw(means)
        if figure is None or not any(axes.has_data() for axes in figure.axes):
            missing.append(name)
            continue
        path = folder / f"figure-{name}.{suffix}"
        FigureCanvasAgg(figure)
        _explain(figure, means)
        figure.savefig(path, dpi=_DOTS_PER_INCH, metadata={"Date": None} if suffix == "svg" else None)
        written.append(path)
    return written, missing


def _explain(figure: Figure, means: Rows) -> None:
    """Explain the marks, the empty panels, and the settings that differ from the thesis's."""
    for axes in figure.axes:
        if not axes.has_data():
            title = axes.get_title()
            axes.clear()
            axes.set_axis_off()
            axes.set_title(title, fontsize=9)
            axes.text(0.5, 0.5, "not simulated", ha="center", transform=axes.transAxes)
    used = {artist.get_label() for artist in figure.findobj()}
    said = ["bar: 25th to 75th percentile", "line: median", "dot: mean"]
    figure.supxlabel("    ".join([*said, *(text for label, text in MARKS.items() if label in used)]), fontsize=8)
    settings = {column: _find_usual(means, column) for column in _USUAL}
    others = [_SETTINGS[column].format(value) for column, value in settings.items() if value != _USUAL[column]]
    if others:
        figure.suptitle(" - ".join(filter(None, (figure.get_suptitle(), ", ".join(others)))), fontsize=11)


def choose_machine(means: Rows) -> tuple[list[Row], str, list[str]]:
    """Return the rows of the machine with most rows, its name, and the names of the others.

    Each row is marked if it has fewer seeds than others.
    """
    of_machine = Counter(tuple(row.get(column) for column in _MACHINE) for row in means)
    if not of_machine:
        return [], "", []
    (chosen, _), *others = of_machine.most_common()
    rows = [row for row in means if tuple(row.get(column) for column in _MACHINE) == chosen]
    kept: list[Row] = [{**_OF_NOBODY, **row} for row in mark_fewer_seeds(rows)]
    return (
        kept,
        _name_machine(chosen, [each for each, _ in others]),
        [_name_machine(each, [chosen]) for each, _ in others],
    )


def _name_machine(machine: tuple[Any, ...], others: Iterable[tuple[Any, ...]]) -> str:
    """Return a machine's fabric, with the parameters that differ from other machines."""
    fabric, *rest = (
        str(value) if column == "fabric" else f"{column} {value:g}" if value is not None else f"{column} unknown"
        for at, (column, value) in enumerate(zip(_MACHINE, machine, strict=True))
        if column == "fabric" or any(other[at] != value for other in others)
    )
    return " with ".join(filter(None, (fabric, ", ".join(rest))))


def _find_usual(rows: Rows, column: str) -> str:
    """Return the thesis's setting, or the most frequent one where no row has it."""
    values = Counter(row[column] for row in rows)
    return _USUAL[column] if _USUAL[column] in values or not values else values.most_common(1)[0][0]


def pick(rows: Rows, **wanted: Any) -> list[Row]:
    """Return the rows with the wanted columns, by default of the usual configuration."""
    each = {**{column: _find_usual(rows, column) for column in _USUAL if column not in wanted}, **wanted}
    return [row for row in rows if all(row.get(column) == value for column, value in each.items())]


def _only(rows: Rows, **wanted: Any) -> Row | None:
    found = pick(rows, **wanted)
    return found[0] if found else None


def _intervals(rows: Rows, column: str) -> list[float]:
    return sorted({row[column] for row in rows if row.get(column) is not None}, reverse=True)


def _colour_intervals(rows: Rows, job: str, size: float, other_size: float) -> dict[float, str]:
    """Return the other job's intervals that a job was measured with, the longest first, and their colours."""
    other = _OTHER[job]
    beside = [
        row
        for row in rows
        if row["measured"] == job and row["run"] == "interference" and row.get(f"{job}_bytes") == size
        and row.get(f"{other}_bytes") == other_size and row[f"{job}_share"] == 0.5 and not row.get("io_window_us")
    ]  # fmt: skip
    others = _intervals(beside, f"{other}_interval_us")
    return dict(zip(others, choose_shades(len(others)), strict=True))


def _cluster_by_interval(
    rows: Rows, job: str, size: float, other_size: float, colours: Mapping[float, str]
) -> dict[str, list[Bar]]:
    """Clusters by the measured job's interval, a bar without the other job and one for each of its intervals."""
    other, share = _OTHER[job], {f"{job}_share": 0.5}
    own = [
        row for row in rows if row["measured"] == job and row.get(f"{job}_bytes") == size and row[f"{job}_share"] == 0.5
    ]
    own = [row for row in own if not row.get(f"{job}_window_us") and not row.get("io_window_us")]
    beside = [row for row in own if row["run"] == "interference" and row.get(f"{other}_bytes") == other_size]
    clusters = {}
    for interval in _intervals(beside, f"{job}_interval_us"):
        mine = {f"{job}_interval_us": interval, **share}
        bars = [
            Bar(
                next((row for row in own if row["run"] == "baseline" and row[f"{job}_interval_us"] == interval), None),
                _ALONE,
            )
        ]
        for each, colour in colours.items():
            found = [row for row in beside if all(row[column] == value for column, value in mine.items())]
            row = next((row for row in found if row[f"{other}_interval_us"] == each), None)
            bars.append(Bar(row, colour))
        clusters[format_interval(interval)] = bars
    return clusters


def _legend(axes: Axes, job: str, colours: Mapping[float, str]) -> None:
    other = _OTHER[job]
    patches = [Patch(color=_ALONE, label=f"no {other.upper().replace('IO', 'I/O')}")]
    patches += [Patch(color=colour, label=format_interval(each)) for each, colour in colours.items()]
    axes.legend(handles=patches, fontsize=6, title=f"{_JOBS[other]} interval", title_fontsize=6, frameon=False)


def _is_in_table(row: Row, job: str) -> bool:
    """Return whether a job's pattern is one of table 5.1; true also if the job does not run."""
    size = row.get(f"{job}_bytes")
    return size is None or row[f"{job}_interval_us"] * US in TABLE_5_1.get(int(size), ())


def _draw_survey(job: str) -> Callable[[Rows], Figure | None]:
    other = _OTHER[job]

    def draw(means: Rows) -> Figure | None:
        rows = [row for row in pick(means) if all(_is_in_table(row, each) for each in (job, other))]
        if len({row.get(f"{other}_bytes") for row in rows if row["measured"] == job} & set(_SIZES)) < 2:
            return None
        figure = Figure(figsize=(15, 11), layout="constrained")
        figure.suptitle(f"Time of an {_JOBS[job]} next to the other job", fontsize=11)
        for row_number, size in enumerate(_SIZES):
            for column, other_size in enumerate(_SIZES):
                axes = figure.add_subplot(3, 3, 3 * row_number + column + 1)
                letter = "ABCDEFGHI"[3 * row_number + column]
                colours = _colour_intervals(rows, job, size, other_size)
                clusters = _cluster_by_interval(rows, job, size, other_size, colours)
                draw_clusters(axes, clusters, f"{_JOBS[job]} interval")
                axes.set_title(f"{letter}: {format_size(size)} {_JOBS[job]}s next to {format_size(other_size)} "
                               f"{_JOBS[other]}s", fontsize=8)  # fmt: skip
                _legend(axes, job, colours)
        return figure

    return draw


def _is_in_detail(row: Row, job: str) -> bool:
    """Return whether the intervals of the jobs that run are those of the study of 4 MB against 4 MB."""
    own, other = row.get(f"{job}_interval_us"), row.get(f"{_OTHER[job]}_interval_us")
    return own is not None and own * US in DETAIL_OWN and (other is None or other * US in DETAIL_BESIDE)


def _draw_detail(job: str) -> Callable[[Rows], Figure | None]:
    def draw(means: Rows) -> Figure | None:
        size = _SIZES[-1]
        rows = [row for row in pick(means) if _is_in_detail(row, job)]  # other studies have more of that size
        colours = _colour_intervals(rows, job, size, size)
        clusters = _cluster_by_interval(rows, job, size, size, colours)
        if not clusters:
            return None
        figure = Figure(figsize=(11, 5), layout="constrained")
        axes = figure.add_subplot()
        draw_clusters(axes, clusters, f"{_JOBS[job]} interval")
        _legend(axes, job, colours)
        axes.set_title(f"4 MB {_JOBS[job]}s next to 4 MB {_JOBS[_OTHER[job]]}s", fontsize=10)
        return figure

    return draw


def _draw_routing(job: str) -> Callable[[Rows], Figure | None]:
    def draw(means: Rows) -> Figure | None:
        size = _SIZES[1]
        rows_of = {name: pick(means, routing=name) for name in ("static", "adaptive")}
        colours = _colour_intervals([row for rows in rows_of.values() for row in rows], job, size, size)
        sides = {name: _cluster_by_interval(rows, job, size, size, colours) for name, rows in rows_of.items()}
        if not all(sides.values()):
            return None
        figure = Figure(figsize=(14, 5), layout="constrained")
        first: Axes | None = None
        for number, (name, clusters) in enumerate(sides.items()):
            axes = figure.add_subplot(1, 2, number + 1, sharey=first)
            first = first or axes
            draw_clusters(axes, clusters, f"{_JOBS[job]} interval")
            _legend(axes, job, colours)
            axes.set_title(f"{'AB'[number]}: {name} routing, 512 KB {_JOBS[job]}s", fontsize=9)
        return figure

    return draw


def _draw_ratios(axes: Axes, rows: list[Row | None], label: str, colour: str, shift: float) -> None:
    """Draw a line of slow-downs, broken where there is none."""
    ratios = [math.nan if row is None or row["slowdown"] is None else row["slowdown"] for row in rows]
    if not all(map(math.isnan, ratios)):
        axes.plot([place + shift for place in range(len(rows))], ratios, "o-", label=label, color=colour)
    for place, (row, ratio) in enumerate(zip(rows, ratios, strict=True)):
        if row is None or math.isnan(ratio):
            mark_missing(axes, place + shift, row, colour)
            continue
        draw_interval(axes, place + shift, ratio, row.get("slowdown_half"))
        if row["has_fewer_seeds"]:
            axes.plot(place + shift, ratio, "o", color="white", markeredgecolor=colour, label=FEWER)


_SHARES = {0.25: "small (25 %)", 0.5: "medium (50 %)", 0.75: "large (75 %)"}


def _draw_scaling(job: str) -> Callable[[Rows], Figure | None]:
    """Figures 5.10 (by the I/O interval) and 5.11 (by the size of MPI messages)."""
    by = f"{job}_interval_us" if job == "io" else f"{job}_bytes"
    fixed = {"mpi_bytes": _SIZES[-1], "mpi_interval_us": 500.0} if job == "io" else {"io_interval_us": 0.0}
    name = format_interval if job == "io" else format_size

    def draw(means: Rows) -> Figure | None:
        rows = [row for row in pick(means, measured=job) if not row.get("io_window_us")]
        if job == "io":
            rows = [row for row in rows if row.get("io_bytes") == _SIZES[-1]]
        else:
            rows = [row for row in rows if row.get("mpi_interval_us") == 500.0]
        beside = [row for row in rows if row["run"] == "interference" and all(row[k] == v for k, v in fixed.items())]
        if len({row[f"{job}_share"] for row in beside if row["slowdown"] is not None}) < 2:
            return None
        places = sorted({row[by] for row in beside if row[f"{job}_share"] != 0.5})
        figure = Figure(figsize=(14, 5), layout="constrained")
        left, right = figure.subplots(1, 2)
        clusters: dict[str, list[Bar]] = {}
        for share, label in _SHARES.items():
            colour, ratios = choose_shades(3)[list(_SHARES).index(share)], []
            for place in places:
                here = [row for row in rows if row[by] == place and row[f"{job}_share"] == share]
                alone = next((row for row in here if row["run"] == "baseline"), None)
                with_other = next((row for row in beside if row in here), None)
                clusters.setdefault(name(place), []).extend([Bar(alone, _ALONE), Bar(with_other, colour)])
                ratios.append(with_other)
            _draw_ratios(right, ratios, label, colour, 0.08 * (list(_SHARES).index(share) - 1))
        what = f"{_JOBS[job]} interval" if job == "io" else f"bytes of an {_JOBS[job]}"
        other_what = "4 MB MPI messages every 500 us" if job == "io" else "a checkpoint of 4 MB I/O requests"
        draw_clusters(left, clusters, what, "log" if job == "mpi" else "linear")
        left.set_title(f"A: time of {_JOBS[job]}s, alone (black) and next to {other_what}", fontsize=9)
        right.set_title("B: slow-down by it", fontsize=9)
        right.set_xlabel(what, fontsize=8)
        right.set_ylabel("times as long as alone", fontsize=8)
        right.tick_params(labelsize=7)
        right.set_xticks(range(len(places)), [name(place) for place in places], fontsize=7)
        right.grid(linewidth=0.3)
        right.legend(fontsize=7, frameon=False)
        return figure

    return draw


def _draw_places(column: str) -> Callable[[Rows], Figure | None]:
    """Figures 6.2 and 6.5: a column's values side by side, the two pairs of jobs of section 6.4."""
    pairs = {
        "io": {"io_bytes": _SIZES[-1], "io_interval_us": 128000.0},
        "mpi": {"mpi_bytes": _SIZES[0], "mpi_interval_us": 500.0},
    }
    beside = {
        "io": {"mpi_bytes": _SIZES[-1], "mpi_interval_us": 500.0},
        "mpi": {"io_interval_us": 0.0, "io_window_us": 0.0},
    }
    titles = {
        "io": "4 MB I/O requests every 128 ms,\nalone (black) and next to 4 MB MPI messages every 500 us",
        "mpi": "4 KB MPI messages every 500 us,\nalone (black) and next to a checkpoint of 4 MB I/O requests",
    }

    def draw(means: Rows) -> Figure | None:
        values = sorted({row[column] for row in means})
        if len(values) < 2:
            return None
        figure = Figure(figsize=(12, 5), layout="constrained")
        for number, (job, own) in enumerate(pairs.items()):
            axes = figure.add_subplot(1, 2, number + 1)
            clusters = {}
            for value in values:
                usual = {column: value, "measured": job, f"{job}_share": 0.5, **own}
                alone = _only(means, **usual, run="baseline")
                both = _only(means, **usual, **beside[job], run="interference")
                clusters[value] = [Bar(alone, _ALONE), Bar(both, "#d94a6a")]
                if both is not None and both["slowdown"] is not None:
                    at = list(values).index(value)
                    axes.annotate(f"{both['slowdown']:.2f}x", (at + 0.21, both["mean_us"]), (0, 7), fontsize=8,
                                  textcoords="offset points", ha="center")  # fmt: skip
            draw_clusters(axes, clusters, column.replace("_", " "))
            axes.margins(y=0.15)
            axes.set_ylim(bottom=0, auto=None)
            axes.set_title(f"{'AB'[number]}: {titles[job]}", fontsize=9)
        return figure

    return draw


_WHOLE = {
    "io_whole_ms": (-0.2, "#c9a3c7", "mean client"),
    "io_whole_most_ms": (0.2, "#8a2a86", "last client (the print's)"),
}


def _draw_throttle(means: Rows) -> Figure | None:
    rows = [row for row in pick(means, run="interference", io_interval_us=0.0) if row["mpi_bytes"] == _SIZES[0]]
    mpi = {row["io_window_us"]: row for row in rows if row["measured"] == "mpi" and row["io_share"] == 0.5}
    longest = max((row["io_limit"] or 0 for row in rows if row.get("io_whole_ms")), default=0)
    io = {row["io_window_us"]: row for row in rows if longest and row["io_limit"] == longest}
    windows = sorted(mpi.keys() | io.keys())
    if len(windows) < 2:
        return None
    figure = Figure(figsize=(14, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = ["none" if not window else format_interval(window) for window in windows]
    unthrottled = io.get(0.0, {})
    for at, window in enumerate(windows):
        row = io.get(window)
        if row is None or not row.get("io_whole_ms"):
            mark_missing(left, at, row)
            continue
        for column, (shift, colour, _) in _WHOLE.items():
            each, first = row[column], unthrottled.get(column)
            bar = left.bar(at + shift, each, 0.38, color=colour)[0]
            if row["has_fewer_seeds"]:
                bar.set(fill=False, edgecolor=colour, label=FEWER)
            if first and window:
                left.annotate(f"{100 * (each / first - 1):+.1f} %", (at + shift, each), (0, 3), fontsize=7, rotation=90,
                              textcoords="offset points", ha="center")  # fmt: skip
    handles = [Patch(color=colour, label=label) for _, colour, label in _WHOLE.values()]
    left.legend(handles=handles, fontsize=7, ncols=2, loc="upper left")
    left.margins(y=0.15)
    left.set_xticks(range(len(windows)), names, fontsize=8)
    left.set_title("A: time of an I/O client for all that it writes", fontsize=9)
    left.set_ylabel("ms", fontsize=8)
    left.set_xlabel("throttle window", fontsize=8)
    left.tick_params(labelsize=7)
    alone = next((row for row in pick(means) if row["measured"] == "mpi" and row["run"] == "baseline"
                  and row.get("mpi_bytes") == _SIZES[0] and row.get("mpi_interval_us") == 500.0), None)  # fmt: skip
    bars = {"no I/O": [Bar(alone, _ALONE)]}
    bars |= {name: [Bar(mpi.get(window), "#d94a6a")] for name, window in zip(names, windows, strict=True)}
    draw_clusters(right, bars, "throttle window")
    right.set_title("B: time of 4 KB MPI messages every 500 us next to it", fontsize=9)
    return figure


FIGURES: dict[str, Callable[[Rows], Figure | None]] = {
    "5.3": _draw_survey("io"),
    "5.4": _draw_detail("io"),
    "5.5": _draw_survey("mpi"),
    "5.7": _draw_detail("mpi"),
    "5.8": _draw_routing("io"),
    "5.9": _draw_routing("mpi"),
    "5.10": _draw_scaling("io"),
    "5.11": _draw_scaling("mpi"),
    "6.2": _draw_places("job_placement"),
    "6.5": _draw_places("server_placement"),
    "6.7": _draw_throttle,
}
"""By their numbers in the thesis."""


def merge_means(tables: Iterable[Rows]) -> list[Row]:
    """Put tables together; of a simulation that several have, the one with most seeds is taken."""
    merged: dict[tuple[Any, ...], Row] = {}
    for table in tables:
        for row in table:
            before = list(row)[: list(row).index("seeds")]
            key = tuple((column, row[column]) for column in sorted(before))
            if key not in merged or (merged[key]["seeds"] or 0) < (row["seeds"] or 0):
                merged[key] = row
    return list(merged.values())


def main() -> None:
    """Draw the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS", type=Path, nargs="*", default=[TABLES])
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, default=Path("figures"), help="default: figures")
    parser.add_argument("--format", choices=("png", "svg", "pdf"), default="png", help="default: png")
    arguments = parser.parse_args()
    written, missing, others = draw(arguments.results, arguments.output, arguments.format)
    for path in written:
        print(path)
    if missing:
        print(f"no results for the figures {', '.join(missing)}", file=sys.stderr)
    if others:
        print(f"not drawn are results of {', '.join(others)}", file=sys.stderr)


if __name__ == "__main__":
    main()
