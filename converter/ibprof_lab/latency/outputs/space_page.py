# SPDX-License-Identifier: Apache-2.0
"""Web pages of 3-D points: one page shows nodes at given positions, another page the steps of delays over length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.traffic.traffic_data import ALL
from ibprof_converter.viewer.view_file import NONE, VERSION, Arrays, pack_document, write_page
from ibprof_converter.viewer.view_runs import describe_nothing
from ibprof_lab.latency.features.delay_features import DelayFeatures
from ibprof_lab.latency.features.pair_clusters import PairClusters
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.latency.model.typed_quantities import format_length

_MOST_DOTS = 20_000
"""Largest number of displayed steps. If there are more steps, every n-th step is displayed."""

_TICKS = 4

Point = tuple[float, float, float]


def write_space_page(
    path: Path,
    header: dict[str, object],
    position: npt.NDArray[np.float64],
    leaves: int,
    ends: npt.NDArray[np.integer],
    arrays: Arrays,
) -> None:
    """Write a page of nodes at 3-D positions, without traffic.

    Args:
        header: `title`, `about`, `node_names`, and other entries of the document (docs/formats/view.md).
        position: float64 [node, 3].
        leaves: number of nodes displayed as hosts; these nodes are the first in `position`.
        ends: [link, 2], the two nodes of each link.
        arrays: arrays to add to the document; an array of the same name is replaced.

    Raises:
        OSError: the file cannot be written.
    """
    nodes = len(position)
    document: dict[str, object] = {
        "version": VERSION,
        "title": header["title"],
        "rails": [{"name": header["title"], "has_levels": False}],
        "node_names": [],
        "host_names": [],
        "about": "",
        "regions": [ALL],
        "operations": [ALL],
        "jobs": [ALL],
        "rank_names": [],
        "attributes": [],
        "grid": None,
        "link_values": [],
        "runs": [describe_nothing([])],
    }
    of_nodes: Arrays = {
        "node_rail": np.zeros(nodes, np.uint8),
        "node_kind": np.where(np.arange(nodes) < leaves, NodeKind.CA, NodeKind.SWITCH).astype(np.uint8),
        "node_guid": np.zeros(nodes, np.uint64),
        "node_level": np.zeros(nodes, np.int32),
        "node_x": position[:, 0].astype(np.float32),
        "node_y": position[:, 1].astype(np.float32),
        "node_host": np.full(nodes, NONE, np.int32),
        "node_space": position.astype(np.float32).ravel(),
        "lid_first": np.zeros(0, np.uint16),
        "lid_count": np.zeros(0, np.uint16),
        "lid_node": np.zeros(0, np.int32),
        "end_node": ends.ravel().astype(np.uint32),
        "end_port": np.zeros(2 * len(ends), np.uint8),
        "link_gbps": np.full(len(ends), np.nan),
    }
    write_page(path, pack_document(document | header, of_nodes | arrays))


def write_steps_page(path: Path, delays: Delays, features: DelayFeatures, clusters: PairClusters) -> None:
    """Write the page of steps; each step is a dot at (sender, receiver, message length).

    Raises:
        OSError: the file cannot be written.
    """
    pairs, places = np.nonzero(features.steps)
    every = max(-(-len(pairs) // _MOST_DOTS), 1)
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
        "title": "steps in delays",
        "node_names": [*names, *(name for name, _, _ in ticks)],
        "about": f"{int(np.count_nonzero(features.steps))} steps in the delays of {len(features.pairs)} pairs{shown}; "
        "axes: sender, receiver, bytes",
        "attributes": [
            {"name": "cluster", "of": "node", "classes": [f"cluster {k}" for k in range(len(clusters.centroids))]},
            {"name": "rise in µs", "of": "node", "classes": []},
        ],
        "colour": 0,
    }
    rise = (features.profiles[pairs, places] - features.profiles[pairs, places - 1]).astype(np.float64) * 1e6
    unknown = np.full(len(ticks), np.nan)
    arrays = {
        "attribute_0": np.concatenate([clusters.labels[pairs].astype(np.float64), unknown]),
        "attribute_1": np.concatenate([rise, unknown]),
    }
    position = np.vstack([dots, [point for _, point, _ in ticks]])
    axes = [(one, number) for number, (*_, one) in enumerate(ticks) if one is not None]
    write_space_page(path, header, position, len(dots), len(dots) + np.array(axes, np.int64), arrays)


def _mark_axes(delays: Delays, lengths: list[str]) -> Iterator[tuple[str, Point, int | None]]:
    """Yield name and position of each mark on an axis, and the index of the previous mark (for the origin, None)."""
    last = delays.processes - 1
    yield f"{delays.labels[0]}, {lengths[0]}", (0.0, 0.0, 0.0), None
    yield f"sender {delays.labels[last]}", (1.0, 0.0, 0.0), 0
    yield f"receiver {delays.labels[last]}", (0.0, 1.0, 0.0), 0
    marked = np.unique(np.linspace(0, len(lengths) - 1, _TICKS + 1).astype(int))[1:].tolist()
    for number, place in enumerate(marked):
        yield lengths[place], (0.0, 0.0, place / (len(lengths) - 1)), number + 2 if number else 0
