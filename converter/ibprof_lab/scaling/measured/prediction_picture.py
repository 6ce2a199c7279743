# SPDX-License-Identifier: Apache-2.0
"""Picture of predicted run times with their intervals, and the recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_BLUE, _ORANGE = "#0b4f8a", "#d97706"


def draw_prediction(path: Path, document: dict[str, Any], runs: Sequence[tuple[float, int, float]]) -> None:
    """Draw wall time over processes.

    Args:
        path: png, svg or pdf.
        document: of `query_prediction`.
        runs: n, p and seconds of the recorded runs.
    """
    figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    curve = document["curve"]
    p = [row["processes"] for row in curve]
    axes.fill_between(
        p, [row["low"] for row in curve], [row["high"] for row in curve], color=_BLUE, alpha=0.2, label="95% interval"
    )
    axes.plot(p, [row["seconds"] for row in curve], color=_BLUE, marker=".", label="predicted wall time")
    axes.plot(p, [row["computing"] for row in curve], color=_BLUE, lw=1, ls=":", label="of which computing")
    sizes = {round(row["processes"]): row["n"] for row in curve}
    shown = [(count, seconds) for size, count, seconds in runs if abs(sizes.get(count, size) / size - 1) < 1e-6]
    axes.plot(*zip(*shown, strict=True) if shown else ([], []), "o", color=_ORANGE, label="recorded")
    axes.set(xscale="log", yscale="log", xlabel="processes", ylabel="seconds", title=f"{document['scaling']} scaling")
    axes.set_xticks(p, [str(each) for each in p])
    axes.legend(fontsize=8)
    figure.savefig(path)
