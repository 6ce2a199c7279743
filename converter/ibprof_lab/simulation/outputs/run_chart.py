# SPDX-License-Identifier: Apache-2.0
"""A picture of one simulated run: how long messages took, how that changed, and where bytes waited."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ibprof_lab.simulation.measure.run_observer import Counts, Watch, bin_edges
from ibprof_lab.simulation.measure.run_tables import find_fullest, name_end

_DOTS_PER_INCH = 120
_QUEUES = 4
"""Link directions whose queues are drawn, the fullest."""


def draw_run(path: Path, title: str, watch: Watch) -> None:
    """Draw a run that was watched.

    Args:
        path: of the picture.
        title: of it.
        watch: of the run, which has ended.
    """
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title).set_parse_math(False)
    latency, over_time, queues = figure.subplots(1, 3)
    _draw_latencies(latency, watch)
    _draw_over_time(over_time, watch)
    _draw_queues(queues, watch)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name in a script that the font lacks is drawn as boxes
        warnings.filterwarnings("ignore", "constrained_layout not applied")  # a legend of many jobs leaves no room
        figure.savefig(path, dpi=_DOTS_PER_INCH)


def _draw_latencies(axes: Axes, watch: Watch) -> None:
    """Draw which part of the messages took longer than a time."""
    for number, job in enumerate(watch.simulation.jobs):
        _draw_tail(axes, watch.histogram(number), job.name, f"C{number}", "-")
        operations = watch.operations(number)
        if operations is not None:
            _draw_tail(axes, operations, f"{job.name}, whole operations", f"C{number}", "--")
    axes.set(xscale="log", yscale="log", xlabel="latency, µs", ylabel="part of the messages that took longer")
    most = max(int(watch.histogram(number).sum()) for number in range(len(watch.simulation.jobs)))
    axes.set_ylim(0.5 / max(most, 1), 1.5)
    _finish(axes)


def _draw_tail(axes: Axes, counts: Counts, label: str, colour: str, style: str) -> None:
    used = np.flatnonzero(counts)
    if not len(used):
        return
    # A bin is a step; the last one is as high as the one before, for a logarithm has no 0.
    longer = 1 - np.cumsum(counts[used]) / counts.sum()
    edges = bin_edges() / 1000
    at = np.append(edges[used[0]], edges[used + 1])
    height = np.concatenate([[1.0], longer[:-1], longer[-2:-1] if len(used) > 1 else [1.0]])
    axes.plot(at, height, label=_label(label), color=colour, linestyle=style, drawstyle="steps-post")


def _draw_over_time(axes: Axes, watch: Watch) -> None:
    drawn = []
    for number, job in enumerate(watch.simulation.jobs):
        over = watch.over_time(number)
        seen = over.messages > 0
        middle = (over.begin_ns + over.width_ns / 2)[seen] / 1e6
        axes.plot(middle, over.mean_ns[seen] / 1000, label=_label(job.name), color=f"C{number}", linewidth=1)
        drawn.append(over.mean_ns[seen] / 1000)
    axes.set(yscale="log", xlabel="time, ms", ylabel="mean latency of the messages that arrived, µs")
    if len(means := np.concatenate(drawn)):
        axes.set_ylim(means.min() / 1.2, means.max() * 1.2)  # what hardly differs is no axis of its own
    _finish(axes)


def _draw_queues(axes: Axes, watch: Watch) -> None:
    queues = watch.queues()
    for end in find_fullest(queues, _QUEUES):
        kibibytes = queues.bytes[:, end] / 1024
        axes.plot(queues.time_ns / 1e6, kibibytes, label=_label(name_end(watch.simulation, end)), linewidth=0.8)
    axes.set(xlabel="time, ms", ylabel="KiB that lie or wait at the fullest transmit ports")
    axes.set_ylim(bottom=0)
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.grid(visible=True, alpha=0.3)
    if axes.lines:
        for text in axes.legend(fontsize="small").get_texts():
            text.set_parse_math(False)


def _label(name: str) -> str:
    """Names that begin with _ are left out of a legend."""
    return f" {name}" if name.startswith("_") else name
