# SPDX-License-Identifier: Apache-2.0
"""Write the web page of steps in delays, in space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_converter.traffic.traffic_data import ALL
from ibprof_converter.viewer.html_page import render_page
from ibprof_converter.viewer.packing import NONE, VERSION, Arrays, pack_document
from ibprof_converter.viewer.view_runs import describe_nothing
from ibprof_lab.latency.features.delay_features import DelayFeatures
from ibprof_lab.latency.features.pair_clusters import PairClusters
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.latency.model.message_lengths import format_length


def write_steps_page(path: Path, delays: Delays, features: DelayFeatures, clusters: PairClusters) -> None:
    """Write the page.

    Raises:
        OSError: the file cannot be written.
    """
    write_atomically(path, render_page(encode_steps("steps in delays", delays, features, clusters)).encode())


MOST_DOTS = 20_000
"""Of more steps every n-th is shown."""

_TICKS = 4

Point = tuple[float, float, float]


def encode_steps(title: str, delays: Delays, features: DelayFeatures, clusters: PairClusters) -> bytes:
    """Return the document of steps, in the format of `encode_document`.

    Args:
        title: the title of the page; plain text.
        delays: that were measured.
        features: their steps.
        clusters: of the pairs.
    """
    pairs, places = np.nonzero(features.steps)
    every = max(-(-len(pairs) // MOST_DOTS), 1)
    pairs, places = pairs[::every], places[::every] + 1
    lengths = [format_length(int(length)) for length in delays.lengths]
    one, other = features.pairs[pairs].T
    extents = np.maximum([delays.processes - 1, delays.processes - 1, len(lengths) - 1], 1)
    dots = np.column_stack([one, other, places]) / extents
    ticks = list(_mark_axes(delays, lengths))
    names = [
        f"{delays.labels[a]} to {delays.labels[b]}, {lengths[place]}"
        for a, b, place in zip(one.tolist(), other.tolist(), places.tolist(), strict=True)
    ]
    shown = "" if every == 1 else f", one in {every} shown"
    header: dict[str, object] = {
        "version": VERSION,
        "title": title,
        "rails": [{"name": title, "has_levels": False}],
        "node_names": [*names, *(name for name, _, _ in ticks)],
        "host_names": [],
        "about": f"{int(np.count_nonzero(features.steps))} steps in the delays of {len(features.pairs)} pairs{shown}; "
        "axes: sender, receiver, bytes",
        "regions": [ALL],
        "operations": [ALL],
        "jobs": [ALL],
        "rank_names": [],
        "attributes": [
            {"name": "cluster", "of": "node", "classes": [f"cluster {k}" for k in range(len(clusters.centroids))]},
            {"name": "rise in µs", "of": "node", "classes": []},
        ],
        "colour": 0,
        "grid": None,
        "link_values": [],
        "runs": [describe_nothing([])],
    }
    rise = features.profiles[pairs, places] - features.profiles[pairs, places - 1]
    unknown = np.full(len(ticks), np.nan)
    arrays = _place(np.vstack([dots, [point for _, point, _ in ticks]]), len(dots), [before for *_, before in ticks])
    arrays["attribute_0"] = np.concatenate([clusters.labels[pairs].astype(np.float64), unknown])
    arrays["attribute_1"] = np.concatenate([rise.astype(np.float64) * 1e6, unknown])
    return pack_document(header, arrays)


def _mark_axes(delays: Delays, lengths: list[str]) -> Iterator[tuple[str, Point, int | None]]:
    """Yield names and places on the axes, and which of them is before each on its axis."""
    last = delays.processes - 1
    yield f"{delays.labels[0]}, {lengths[0]}", (0.0, 0.0, 0.0), None
    yield f"sender {delays.labels[last]}", (1.0, 0.0, 0.0), 0
    yield f"receiver {delays.labels[last]}", (0.0, 1.0, 0.0), 0
    marked = np.unique(np.linspace(0, len(lengths) - 1, _TICKS + 1).astype(int))[1:].tolist()
    for number, place in enumerate(marked):
        yield lengths[place], (0.0, 0.0, place / (len(lengths) - 1)), number + 2 if number else 0


def _place(positions: npt.NDArray[np.float64], dots: int, before: list[int | None]) -> Arrays:
    """Return arrays of dots without links, then of places on axes, each linked with the one before it."""
    nodes = len(positions)
    links = [(dots + one, dots + number) for number, one in enumerate(before) if one is not None]
    return {
        "node_rail": np.zeros(nodes, np.uint8),
        "node_kind": np.where(np.arange(nodes) < dots, NodeKind.CA, NodeKind.SWITCH).astype(np.uint8),
        "node_guid": np.zeros(nodes, np.uint64),
        "node_level": np.zeros(nodes, np.int32),
        "node_x": positions[:, 0].astype(np.float32),
        "node_y": positions[:, 1].astype(np.float32),
        "node_host": np.full(nodes, NONE, np.int32),
        "node_space": positions.astype(np.float32).ravel(),
        "lid_first": np.zeros(0, np.uint16),
        "lid_count": np.zeros(0, np.uint16),
        "lid_node": np.zeros(0, np.int32),
        "end_node": np.array(links, np.uint32).ravel(),
        "end_port": np.zeros(2 * len(links), np.uint8),
        "link_gbps": np.full(len(links), np.nan),
    }
