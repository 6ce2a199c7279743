# SPDX-License-Identifier: Apache-2.0
"""Pictures of the analytic model: predicted performance with p_1/2 and p_max, and measured points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ibprof.text.quantities import printable
from ibprof_lab.scaling.scaling_model import AnalyticKernel, Cluster, Optimum, Work, find_optimum, performance
from ibprof_lab.scaling.scaling_study import RegionStudy, ScalingStudy

_EXACT, _SLIDE, _PEAK = "#0b4f8a", "#d97706", "#9aa3ad"
_COLOURS = ("#0b4f8a", "#d97706", "#0f8a6a", "#a2307c", "#6b5b95", "#7a6a10")
_GIGA = 1e9
_POINTS = 200


def draw_kernel(path: Path, kernel: AnalyticKernel, cluster: Cluster) -> None:
    """Draw two curves of a kernel's performance: by exact counts, and by the slides' formulas."""
    figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
    axes = figure.subplots()
    optimum = find_optimum(kernel.exact, cluster)
    end = 4 * _last_of(optimum, 1000.0)
    p = np.geomspace(1, end, _POINTS)
    axes.plot(p, p * cluster.peak / _GIGA, color=_PEAK, lw=1, ls=":", label="peak of all units")
    _plot(axes, p, lambda each: performance(kernel.exact, cluster, each), _EXACT, "exact forms")
    axes.plot(
        p, [performance(kernel.approximate, cluster, each) / _GIGA for each in p], color=_SLIDE, ls="--", label="slide"
    )
    _mark(axes, kernel.exact, cluster, optimum, _EXACT)
    _mark_slide(axes, kernel, cluster)
    axes.set_title(f"{kernel.name} (slide {kernel.slide})")
    _finish(axes, top=2 * optimum.l_max / _GIGA if np.isfinite(optimum.l_max) else None)
    figure.savefig(path)


def draw_study(path: Path, study: ScalingStudy) -> None:
    """Draw two plots of a study: bytes and performance, both as measured and by the model."""
    figure = Figure(figsize=(13, 5), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    regions = (study.whole, *study.regions) if len(study.regions) > 1 else (study.whole,)
    for colour, region in zip(_COLOURS, regions, strict=False):
        _draw_exchange(left, region, colour)
    left.set(xscale="log", yscale="log", xlabel="processes", ylabel="bytes exchanged, #x")
    left.set_title("measured points, and the fit")
    left.legend(fontsize=8)
    _draw_performance(right, study)
    figure.savefig(path)


def _draw_exchange(axes: Axes, region: RegionStudy, colour: str) -> None:
    name = "all regions" if region.name == "*" else printable(region.name)
    if region.fit is None:
        return
    for number, size in enumerate(sorted({got.size for got in region.got})):
        points = [(got.processes, got.exchanged) for got in region.got if got.size == size and got.exchanged]
        if not points:
            continue
        axes.plot(*zip(*points, strict=True), "o", color=colour, ms=5, label=name if number == 0 else None)
        p = np.geomspace(min(point[0] for point in points), region.fit.processes[1], _POINTS)
        values = [region.fit.exchange(size, each) for each in p]
        axes.plot(p, values, color=colour, lw=3 if region.name == "*" else 1, alpha=0.4 if region.name == "*" else 1)
        axes.annotate(
            f"n = {size:g}", (p[0], values[0]), (0, 5), textcoords="offset points", fontsize=7, color=colour, ha="left"
        )


def _draw_performance(axes: Axes, study: ScalingStudy) -> None:
    whole = study.whole
    fit = whole.fit
    work = Work(whole.operations, 1.0, lambda p: fit.exchange(study.size, p) if fit else 0.0)
    most = max(got.processes for got in whole.got)
    p = np.geomspace(1, max(4 * _last_of(whole.optimum, 4.0 * most), 2.0 * most), _POINTS)
    axes.plot(p, p * study.cluster.peak / _GIGA, color=_PEAK, lw=1, ls=":", label="peak of all processes")
    _plot(axes, p, lambda each: performance(work, study.cluster, each), _EXACT, f"model, n = {study.size:g}")
    axes.axvspan(most, float(p[-1]), color="#f0f1f3", zorder=0, label="beyond the data")
    points = [
        (got.processes, got.computing * study.cluster.peak * got.processes / got.seconds / _GIGA)
        for got in whole.got
        if got.size == study.size and got.seconds > 0
    ]
    if points:
        axes.plot(*zip(*points, strict=True), "o", color=_SLIDE, label="measured")
    _mark(axes, work, study.cluster, whole.optimum, _EXACT)
    axes.set_title("performance")
    _finish(axes, None)


def _last_of(optimum: Optimum, otherwise: float) -> float:
    known = [each for each in (optimum.p_half, optimum.p_max) if np.isfinite(each)]
    return max(known, default=otherwise)


def _plot(axes: Axes, p: Sequence[float] | np.ndarray, of: Callable[[float], float], colour: str, label: str) -> None:
    axes.plot(p, [of(float(each)) / _GIGA for each in p], color=colour, label=label)


def _mark(axes: Axes, work: Work, cluster: Cluster, optimum: Optimum, colour: str) -> None:
    for p, name, marker in ((optimum.p_half, "p_1/2", "s"), (optimum.p_max, "p_max", "^")):
        if np.isfinite(p):
            axes.plot(
                [p], [performance(work, cluster, p) / _GIGA], marker, color=colour, ms=8, label=f"{name} = {p:.4g}"
            )


def _mark_slide(axes: Axes, kernel: AnalyticKernel, cluster: Cluster) -> None:
    """Mark two points from the slides' closed formulas: p_1/2 on the curve, and l_max at p_max."""
    closed = kernel.closed
    marks = [
        (closed.p_half, performance(kernel.approximate, cluster, closed.p_half), "s", f"p_1/2 = {closed.p_half:.4g}"),
        (closed.p_max, closed.l_max, "^", f"p_max = {closed.p_max:.4g}, l_max = {closed.l_max / _GIGA:.4g} GFlop/s"),
    ]
    for p, height, marker, name in marks:
        if np.isfinite(p) and np.isfinite(height):
            axes.plot([p], [height / _GIGA], marker, color=_SLIDE, ms=8, mfc="none", mew=1.5, label=f"slide: {name}")


def _finish(axes: Axes, top: float | None) -> None:
    axes.set(xscale="log", yscale="log", xlabel="processes", ylabel="performance, GFlop/s")
    if top is not None:
        axes.set_ylim(top=top)
    axes.grid(color="#e4e6e9", lw=0.6)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8)
