# SPDX-License-Identifier: Apache-2.0
"""Draw the figures of chapters 5 and 6 from results. The figure's number names its file.

    python studies/brown2018/thesis_figures.py [RESULTS...] -o figures

RESULTS are folders of studies, or tables (default: tables of this study). Black bars show a job alone. Coloured bars
show a job next to the other job. The colour shows the other job's interval.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from thesis_chapter5_figures import draw_detail, draw_routing, draw_scaling, draw_survey
from thesis_chapter6_figures import draw_placements, draw_throttle
from thesis_figure_rows import USUAL, choose_machine, find_usual, merge_means
from thesis_results import TABLES

from ibprof_lab.simulation.reports.charts import MARKS, Rows, find_tables
from ibprof_lab.simulation.study.result_tables import read_means

_DOTS_PER_INCH = 120
_SETTINGS = {"routing": "{} routing", "server_placement": "{} servers", "job_placement": "{} jobs"}


def draw(results: Iterable[Path], folder: Path, suffix: str = "png") -> tuple[list[Path], list[str], list[str]]:
    """Draw each figure for which the results have rows. Return files, missing figures, and undrawn machines."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [read_means([table]) for each in results for table in find_tables(each)]
    means, _, others = choose_machine(merge_means(tables))
    return *draw_figures(means, folder, suffix), others


def draw_figures(means: Rows, folder: Path, suffix: str = "png") -> tuple[list[Path], list[str]]:
    """Draw each figure for which the results have rows.

    Args:
        means: rows of one machine's means, from `choose_machine`.
        folder: folder for the files.
        suffix: png, svg or pdf.

    Returns:
        The files, and the names of figures without rows.
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
    settings = {column: find_usual(means, column) for column in USUAL}
    others = [_SETTINGS[column].format(value) for column, value in settings.items() if value != USUAL[column]]
    if others:
        figure.suptitle(" - ".join(filter(None, (figure.get_suptitle(), ", ".join(others)))), fontsize=11)


FIGURES: dict[str, Callable[[Rows], Figure | None]] = {
    "5.3": draw_survey("io"),
    "5.4": draw_detail("io"),
    "5.5": draw_survey("mpi"),
    "5.7": draw_detail("mpi"),
    "5.8": draw_routing("io"),
    "5.9": draw_routing("mpi"),
    "5.10": draw_scaling("io"),
    "5.11": draw_scaling("mpi"),
    "6.2": draw_placements("job_placement"),
    "6.5": draw_placements("server_placement"),
    "6.7": draw_throttle,
}
"""Number in the thesis -> function that draws the figure."""


def main() -> None:
    """Draw all figures, and report missing figures."""
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
        print(f"not drawn: results of other machines: {', '.join(others)}", file=sys.stderr)


if __name__ == "__main__":
    main()
