# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of chapter 6: placements of jobs and servers, and throttled I/O."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from matplotlib.patches import Patch
from thesis_figure_rows import pick, pick_one
from thesis_interval_bars import ALONE, SIZES

from ibprof_lab.simulation.reports.charts import FEWER, Bar, Rows, draw_clusters, format_interval, mark_missing


def draw_placements(column: str) -> Callable[[Rows], Figure | None]:
    """Return a function that draws figure 6.2 or 6.5: bars for each value of `column`, for both jobs of section 6.4."""
    pairs = {
        "io": {"io_bytes": SIZES[-1], "io_interval_us": 128000.0},
        "mpi": {"mpi_bytes": SIZES[0], "mpi_interval_us": 500.0},
    }
    disturbed = {
        "io": {"mpi_bytes": SIZES[-1], "mpi_interval_us": 500.0},
        "mpi": {"io_interval_us": 0.0, "io_window_us": 0.0},
    }
    titles = {
        "io": "4 MB I/O requests every 128 ms,\nalone (black) and next to 4 MB MPI messages every 500 µs",
        "mpi": "4 KB MPI messages every 500 µs,\nalone (black) and next to a checkpoint of 4 MB I/O requests",
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
                alone = pick_one(means, **usual, run="baseline")
                both = pick_one(means, **usual, **disturbed[job], run="interference")
                clusters[value] = [Bar(alone, ALONE), Bar(both, "#d94a6a")]
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
    "io_whole_most_ms": (0.2, "#8a2a86", "last client (as in the thesis)"),
}


def draw_throttle(means: Rows) -> Figure | None:
    rows = [row for row in pick(means, run="interference", io_interval_us=0.0) if row["mpi_bytes"] == SIZES[0]]
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
                left.annotate(f"{100 * (each / first - 1):+.1f}%", (at + shift, each), (0, 3), fontsize=7, rotation=90,
                              textcoords="offset points", ha="center")  # fmt: skip
    handles = [Patch(color=colour, label=label) for _, colour, label in _WHOLE.values()]
    left.legend(handles=handles, fontsize=7, ncols=2, loc="upper left")
    left.margins(y=0.15)
    left.set_xticks(range(len(windows)), names, fontsize=8)
    left.set_title("A: time until an I/O client has written all its data", fontsize=9)
    left.set_ylabel("ms", fontsize=8)
    left.set_xlabel("throttle window", fontsize=8)
    left.tick_params(labelsize=7)
    alone = next((row for row in pick(means) if row["measured"] == "mpi" and row["run"] == "baseline"
                  and row.get("mpi_bytes") == SIZES[0] and row.get("mpi_interval_us") == 500.0), None)  # fmt: skip
    bars = {"no I/O": [Bar(alone, ALONE)]}
    bars |= {name: [Bar(mpi.get(window), "#d94a6a")] for name, window in zip(names, windows, strict=True)}
    draw_clusters(right, bars, "throttle window")
    right.set_title("B: time of 4 KB MPI messages every 500 µs next to the throttled I/O", fontsize=9)
    return figure
