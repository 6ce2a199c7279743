# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of chapter 5: effects of I/O and MPI on each other."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from thesis_figure_rows import JOBS, OTHER, pick
from thesis_interval_bars import ALONE, SIZES, cluster_by_interval, colour_intervals, draw_legend, format_size
from thesis_patterns import DETAIL_OTHER, DETAIL_OWN, TABLE_5_1, US

from ibprof_lab.simulation.reports.charts import (
    FEWER,
    Bar,
    Row,
    Rows,
    choose_shades,
    draw_clusters,
    draw_interval,
    format_interval,
    mark_missing,
)


def _is_in_table(row: Row, job: str) -> bool:
    """Return whether a job's pattern is in table 5.1; true also if the job does not run."""
    size = row.get(f"{job}_bytes")
    return size is None or row[f"{job}_interval_us"] * US in TABLE_5_1.get(int(size), ())


def draw_survey(job: str) -> Callable[[Rows], Figure | None]:
    other = OTHER[job]

    def draw(means: Rows) -> Figure | None:
        rows = [row for row in pick(means) if all(_is_in_table(row, each) for each in (job, other))]
        if len({row.get(f"{other}_bytes") for row in rows if row["measured"] == job} & set(SIZES)) < 2:
            return None
        figure = Figure(figsize=(15, 11), layout="constrained")
        figure.suptitle(f"Time of an {JOBS[job]} next to the other job", fontsize=11)
        for row_number, size in enumerate(SIZES):
            for column, other_size in enumerate(SIZES):
                axes = figure.add_subplot(3, 3, 3 * row_number + column + 1)
                letter = "ABCDEFGHI"[3 * row_number + column]
                colours = colour_intervals(rows, job, size, other_size)
                clusters = cluster_by_interval(rows, job, size, other_size, colours)
                draw_clusters(axes, clusters, f"{JOBS[job]} interval")
                axes.set_title(f"{letter}: {format_size(size)} {JOBS[job]}s next to {format_size(other_size)} "
                               f"{JOBS[other]}s", fontsize=8)  # fmt: skip
                draw_legend(axes, job, colours)
        return figure

    return draw


def _is_in_detail(row: Row, job: str) -> bool:
    """Return whether the running jobs have intervals of the study `detail` (4 MB next to 4 MB)."""
    own, other = row.get(f"{job}_interval_us"), row.get(f"{OTHER[job]}_interval_us")
    return own is not None and own * US in DETAIL_OWN and (other is None or other * US in DETAIL_OTHER)


def draw_detail(job: str) -> Callable[[Rows], Figure | None]:
    def draw(means: Rows) -> Figure | None:
        size = SIZES[-1]
        rows = [row for row in pick(means) if _is_in_detail(row, job)]  # other studies have further rows with 4 MB
        colours = colour_intervals(rows, job, size, size)
        clusters = cluster_by_interval(rows, job, size, size, colours)
        if not clusters:
            return None
        figure = Figure(figsize=(11, 5), layout="constrained")
        axes = figure.add_subplot()
        draw_clusters(axes, clusters, f"{JOBS[job]} interval")
        draw_legend(axes, job, colours)
        axes.set_title(f"4 MB {JOBS[job]}s next to 4 MB {JOBS[OTHER[job]]}s", fontsize=10)
        return figure

    return draw


def draw_routing(job: str) -> Callable[[Rows], Figure | None]:
    def draw(means: Rows) -> Figure | None:
        size = SIZES[1]
        rows_of = {name: pick(means, routing=name) for name in ("static", "adaptive")}
        colours = colour_intervals([row for rows in rows_of.values() for row in rows], job, size, size)
        sides = {name: cluster_by_interval(rows, job, size, size, colours) for name, rows in rows_of.items()}
        if not all(sides.values()):
            return None
        figure = Figure(figsize=(14, 5), layout="constrained")
        first: Axes | None = None
        for number, (name, clusters) in enumerate(sides.items()):
            axes = figure.add_subplot(1, 2, number + 1, sharey=first)
            first = first or axes
            draw_clusters(axes, clusters, f"{JOBS[job]} interval")
            draw_legend(axes, job, colours)
            axes.set_title(f"{'AB'[number]}: {name} routing, 512 KB {JOBS[job]}s", fontsize=9)
        return figure

    return draw


def _draw_ratios(axes: Axes, rows: list[Row | None], label: str, colour: str, shift: float) -> None:
    """Draw a line of slow-downs, interrupted where a slow-down is missing."""
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


_SHARES = {0.25: "small (25%)", 0.5: "medium (50%)", 0.75: "large (75%)"}


def draw_scaling(job: str) -> Callable[[Rows], Figure | None]:
    """Return a function that draws figure 5.10 (slow-down over the I/O interval) or 5.11 (over MPI's message size)."""
    by = f"{job}_interval_us" if job == "io" else f"{job}_bytes"
    fixed = {"mpi_bytes": SIZES[-1], "mpi_interval_us": 500.0} if job == "io" else {"io_interval_us": 0.0}
    name = format_interval if job == "io" else format_size

    def draw(means: Rows) -> Figure | None:
        rows = [row for row in pick(means, measured=job) if not row.get("io_window_us")]
        if job == "io":
            rows = [row for row in rows if row.get("io_bytes") == SIZES[-1]]
        else:
            rows = [row for row in rows if row.get("mpi_interval_us") == 500.0]
        disturbed = [row for row in rows if row["run"] == "interference" and all(row[k] == v for k, v in fixed.items())]
        if len({row[f"{job}_share"] for row in disturbed if row["slowdown"] is not None}) < 2:
            return None
        places = sorted({row[by] for row in disturbed if row[f"{job}_share"] != 0.5})
        figure = Figure(figsize=(14, 5), layout="constrained")
        left, right = figure.subplots(1, 2)
        clusters: dict[str, list[Bar]] = {}
        for share, label in _SHARES.items():
            colour, ratios = choose_shades(3)[list(_SHARES).index(share)], []
            for place in places:
                here = [row for row in rows if row[by] == place and row[f"{job}_share"] == share]
                alone = next((row for row in here if row["run"] == "baseline"), None)
                with_other = next((row for row in disturbed if row in here), None)
                clusters.setdefault(name(place), []).extend([Bar(alone, ALONE), Bar(with_other, colour)])
                ratios.append(with_other)
            _draw_ratios(right, ratios, label, colour, 0.08 * (list(_SHARES).index(share) - 1))
        what = f"{JOBS[job]} interval" if job == "io" else f"bytes of an {JOBS[job]}"
        other_what = "4 MB MPI messages every 500 µs" if job == "io" else "a checkpoint of 4 MB I/O requests"
        draw_clusters(left, clusters, what, "log" if job == "mpi" else "linear")
        left.set_title(f"A: time of {JOBS[job]}s, alone (black) and next to {other_what}", fontsize=9)
        right.set_title("B: slow-down next to that job", fontsize=9)
        right.set_xlabel(what, fontsize=8)
        right.set_ylabel("times as long as alone", fontsize=8)
        right.tick_params(labelsize=7)
        right.set_xticks(range(len(places)), [name(place) for place in places], fontsize=7)
        right.grid(linewidth=0.3)
        right.legend(fontsize=7, frameon=False)
        return figure

    return draw
