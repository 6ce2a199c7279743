# SPDX-License-Identifier: Apache-2.0
"""Draw bars for each interval of a job, as in most figures. The colour shows the other job's interval."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from thesis_figure_rows import JOBS, OTHER, list_intervals

from ibprof_lab.simulation.reports.charts import Bar, Rows, choose_shades, format_interval

ALONE = "#111111"
SIZES = (4096.0, 524288.0, 4194304.0)


def format_size(size: float) -> str:
    """Return a size as text in the thesis's units, in which KB and MB are powers of two."""
    return f"{size / 2**20:g} MB" if size >= 2**20 else f"{size / 2**10:g} KB"


def colour_intervals(rows: Rows, job: str, size: float, other_size: float) -> dict[float, str]:
    """Return interval -> colour for the other job's intervals in the rows, longest first."""
    other = OTHER[job]
    disturbed = [
        row
        for row in rows
        if row["measured"] == job and row["run"] == "interference" and row.get(f"{job}_bytes") == size
        and row.get(f"{other}_bytes") == other_size and row[f"{job}_share"] == 0.5 and not row.get("io_window_us")
    ]  # fmt: skip
    others = list_intervals(disturbed, f"{other}_interval_us")
    return dict(zip(others, choose_shades(len(others)), strict=True))


def cluster_by_interval(
    rows: Rows, job: str, size: float, other_size: float, colours: Mapping[float, str]
) -> dict[str, list[Bar]]:
    """Return a cluster of bars for each interval of the measured job.

    A cluster has a bar for the job alone, and a bar for each interval of the other job.
    """
    other, share = OTHER[job], {f"{job}_share": 0.5}
    own = [
        row for row in rows if row["measured"] == job and row.get(f"{job}_bytes") == size and row[f"{job}_share"] == 0.5
    ]
    own = [row for row in own if not row.get(f"{job}_window_us") and not row.get("io_window_us")]
    disturbed = [row for row in own if row["run"] == "interference" and row.get(f"{other}_bytes") == other_size]
    clusters = {}
    for interval in list_intervals(disturbed, f"{job}_interval_us"):
        mine = {f"{job}_interval_us": interval, **share}
        bars = [
            Bar(
                next((row for row in own if row["run"] == "baseline" and row[f"{job}_interval_us"] == interval), None),
                ALONE,
            )
        ]
        for each, colour in colours.items():
            found = [row for row in disturbed if all(row[column] == value for column, value in mine.items())]
            row = next((row for row in found if row[f"{other}_interval_us"] == each), None)
            bars.append(Bar(row, colour))
        clusters[format_interval(interval)] = bars
    return clusters


def draw_legend(axes: Axes, job: str, colours: Mapping[float, str]) -> None:
    other = OTHER[job]
    patches = [Patch(color=ALONE, label=f"no {other.upper().replace('IO', 'I/O')}")]
    patches += [Patch(color=colour, label=format_interval(each)) for each, colour in colours.items()]
    axes.legend(handles=patches, fontsize=6, title=f"{JOBS[other]} interval", title_fontsize=6, frameon=False)
