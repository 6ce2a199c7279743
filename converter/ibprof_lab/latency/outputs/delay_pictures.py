# SPDX-License-Identifier: Apache-2.0
"""Pictures of delays: heat maps; curves with peaks and steps; histograms; clusters; steps in 3-D."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ibprof.text.quantities import printable
from ibprof_lab.latency.features.delay_features import DelayFeatures
from ibprof_lab.latency.features.pair_clusters import PairClusters
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.latency.model.typed_quantities import format_length

_COLOURS = ("#0b4f8a", "#d97706", "#0f8a6a", "#a2307c", "#6b5b95", "#7a6a10", "#2b9ed8", "#c2452d",
            "#5a8f29", "#8d6e63", "#3f51b5", "#607d8b")  # fmt: skip
_CENTROID, _CURVE = "#d0021b", "#7a828c"
_MICRO = 1e6
_CURVES, _CURVES_OF_CLUSTER, _DOTS = 6, 150, 40_000
_figure = partial(Figure, dpi=130, layout="constrained")
_NAMED = 40
"""Largest number of processes whose names are on a heat map."""


def draw_matrix(path: Path, delays: Delays, index: int, statistic: str) -> None:
    """Draw the matrix of one length as a heat map; the scale of delays is logarithmic, in microseconds."""
    figure = _figure(figsize=(8, 7))
    axes = figure.subplots()
    matrix = delays.present[statistic][index].astype(np.float64) * _MICRO
    matrix[~delays.measured[index]] = np.nan
    positive = matrix[np.isfinite(matrix) & (matrix > 0)]
    norm = LogNorm(positive.min(), max(positive.max(), 1.01 * positive.min())) if positive.size else None
    image = axes.imshow(matrix, norm=norm, cmap="viridis", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="µs", format="%.3g")
    if delays.processes <= _NAMED:
        names = [printable(label) for label in delays.labels]
        axes.set_xticks(range(delays.processes), names, rotation=90, fontsize=7)
        axes.set_yticks(range(delays.processes), names, fontsize=7)
    axes.set(
        xlabel="receiver", ylabel="sender", title=f"{statistic.replace('_', ' ')}, {delays.lengths[index]:,} bytes"
    )
    figure.savefig(path)


def draw_curves(path: Path, delays: Delays, features: DelayFeatures, clusters: PairClusters) -> None:
    """Draw delays of some pairs with their peaks and steps; a lower plot has the correlations and thresholds."""
    figure = _figure(figsize=(10, 9))
    above, peaks, steps = figure.subplots(3, 1, sharex=True, height_ratios=(3, 1, 1))
    chosen = _choose(clusters)
    for colour, place in zip(_COLOURS, chosen, strict=False):
        one, other = features.pairs[place]
        name = printable(f"{delays.labels[one]} → {delays.labels[other]}")
        profile = features.profiles[place] * _MICRO
        above.plot(delays.lengths, profile, color=colour, lw=1.2, label=name)
        found = np.flatnonzero(features.peaks[place])
        above.plot(delays.lengths[found], profile[found], "o", color=colour, ms=7, mfc="none")
        for step in np.flatnonzero(features.steps[place]):
            above.plot(delays.lengths[step : step + 2], profile[step : step + 2], color=colour, lw=4, alpha=0.5)
        peaks.plot(delays.lengths, np.abs(features.peak_correlations[place]), color=colour, lw=1)
        steps.plot(delays.lengths[1:], np.abs(features.step_correlations[place]), color=colour, lw=1)
    above.set(ylabel="µs", title="delays of some pairs: circles are peaks, thick pieces are steps")
    above.legend(fontsize=7)
    for axes, name, threshold in (
        (peaks, "peaks", features.peak_threshold),
        (steps, "steps", features.step_threshold),
    ):
        axes.axhline(threshold, color=_CENTROID, lw=1, ls="--", label=f"threshold {threshold:.2f}")
        axes.set(ylabel=f"|correlation|\n{name}", ylim=(0, 1))
        axes.legend(fontsize=7, loc="upper right")
    _scale_lengths(steps, delays)
    figure.savefig(path)


def draw_histograms(path: Path, delays: Delays, features: DelayFeatures) -> None:
    """Draw two histograms: peaks per pair, and steps per message length (figures 4 and 5 of the paper)."""
    figure = _figure(figsize=(11, 4.5))
    left, right = figure.subplots(1, 2)
    count = np.count_nonzero(features.peaks, axis=1)
    left.bar(*np.unique(count, return_counts=True), color=_COLOURS[0], width=0.8)
    left.set(xlabel="peaks of a pair", ylabel="pairs", title='pairs containing "peaks"')
    left.xaxis.get_major_locator().set_params(integer=True)
    rises, falls = ((features.steps == sign).sum(axis=0) for sign in (1, -1))
    places = np.arange(len(rises))
    right.bar(places, rises, color=_COLOURS[0], label="up")
    if falls.any():
        right.bar(places, -falls, color=_COLOURS[1], label="down")
        right.legend(fontsize=8)
    shown = places[:: max(len(places) // 12, 1)]
    right.set_xticks(shown, [format_length(int(delays.lengths[place + 1])) for place in shown], rotation=45, fontsize=8)
    right.set(xlabel="first length after the step", ylabel="pairs", title='distribution of "steps"')
    figure.savefig(path)


def draw_clusters(path: Path, delays: Delays, features: DelayFeatures, clusters: PairClusters) -> None:
    """Draw each cluster's curves with its centroid in red."""
    count = len(clusters.centroids)
    columns = min(count, 3)
    figure = _figure(figsize=(5 * max(columns, 1), 3.6 * -(-count // max(columns, 1))))
    panels = figure.subplots(-(-count // columns), columns, squeeze=False, sharex=True).ravel()
    for k, axes in enumerate(panels):
        if k >= count:
            axes.set_visible(False)
            continue
        members = np.flatnonzero(clusters.labels == k)
        for place in members[:: max(len(members) // _CURVES_OF_CLUSTER, 1)]:
            axes.plot(delays.lengths, features.profiles[place] * _MICRO, color=_CURVE, lw=0.4, alpha=0.5)
        axes.plot(delays.lengths, clusters.centroids[k] * _MICRO, color=_CENTROID, lw=2)
        axes.set(title=f"cluster {k}: {len(members):,} pairs", ylabel="µs", xlabel="bytes")
        _scale_lengths(axes, delays)
    figure.savefig(path)


def draw_steps(path: Path, delays: Delays, features: DelayFeatures, clusters: PairClusters) -> None:
    """Draw each step as a dot at (sender, receiver, length), coloured by its pair's cluster."""
    figure = _figure(figsize=(9, 8))
    axes = figure.add_subplot(projection="3d")
    pairs, places = np.nonzero(features.steps)
    thinned = slice(None, None, max(len(pairs) // _DOTS, 1))
    pairs, places = pairs[thinned], places[thinned]
    for k in range(len(clusters.centroids)):
        mine = clusters.labels[pairs] == k
        if mine.any():
            one, other = features.pairs[pairs[mine]].T
            colour = _COLOURS[k % len(_COLOURS)]
            axes.scatter(one, other, places[mine] + 1, s=6, color=colour, label=f"cluster {k}", depthshade=False)
    shown = np.arange(0, len(delays.lengths), max(len(delays.lengths) // 10, 1))
    axes.set_zticks(shown, [format_length(int(delays.lengths[place])) for place in shown], fontsize=8)
    axes.set(xlabel="sender", ylabel="receiver", zlabel="bytes", title=f"{len(pairs):,} steps")
    axes.set(xlim=(0, delays.processes - 1), ylim=(0, delays.processes - 1), zlim=(0, len(delays.lengths) - 1))
    if len(pairs):
        axes.legend(fontsize=8)
    figure.savefig(path)


def _choose(clusters: PairClusters) -> npt.NDArray[np.int64]:
    """Return the indices of the displayed pairs: the first pair of each cluster, then evenly spaced pairs."""
    order = np.argsort(clusters.labels, kind="stable")
    _, first = np.unique(clusters.labels[order], return_index=True)
    rest = np.linspace(0, len(order) - 1, _CURVES).astype(int)
    return np.asarray(order[list(dict.fromkeys([*first.tolist(), *rest.tolist()]))[:_CURVES]], np.int64)


def _scale_lengths(axes: Axes, delays: Delays) -> None:
    gaps = np.diff(delays.lengths)
    if gaps.max() > 8 * gaps.min():  # lengths in geometric steps
        axes.set_xscale("symlog", base=2, linthresh=int(delays.lengths[delays.lengths > 0][0]))
        axes.set_xlim(left=0)
    axes.set_xlabel("bytes")
