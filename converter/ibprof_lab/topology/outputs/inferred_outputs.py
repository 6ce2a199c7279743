# SPDX-License-Identifier: Apache-2.0
"""Write an inferred topology into all the files that are wanted of it: graphs, a fabric, positions, the web view."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_converter.traffic.traffic_data import ALL
from ibprof_converter.viewer.html_page import render_page
from ibprof_converter.viewer.link_values import LinkValue, describe_link_values
from ibprof_converter.viewer.packing import NONE, VERSION, Arrays, pack_document
from ibprof_converter.viewer.view_runs import describe_nothing
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs.topology_writers import (
    PAGE,
    POSITIONS,
    TopologyOutputs,
    write_positions,
    write_topology,
)
from ibprof_lab.topology.space.vertex_positions import VertexPositions, position_vertices


def write_inferred(outputs: TopologyOutputs, topology: InferredTopology, remark: str) -> Iterator[str]:
    """Write a topology into files.

    Args:
        outputs: which files.
        topology: what to write.
        remark: where it came from, for formats with comments.

    Yields:
        What a reader of the files must know, a sentence each, as they are written.

    Raises:
        UsageError: a fabric cannot be made of it.
        OSError: a file cannot be written.
    """
    for path in outputs.output:
        yield from write_topology(path, topology, remark, outputs.gbps)
    in_space = [path for path in outputs.output if path.suffix in (PAGE, POSITIONS)]
    if not in_space:
        return
    space = position_vertices(topology, outputs.positions, outputs.gamma)
    yield describe_positions(space)
    for path in in_space:
        if path.suffix == PAGE:
            write_topology_page(path, topology, remark, space)
        else:
            write_positions(path, topology, space)


def describe_positions(space: VertexPositions) -> str:
    """Return a sentence on the quality of positions, and on the time that they took."""
    return f"{space.describe()}; {space.seconds:.2g} s"


def write_topology_page(path: Path, topology: InferredTopology, title: str, space: VertexPositions) -> None:
    """Write the web view of a topology.

    Raises:
        OSError: the file cannot be written.
    """
    write_atomically(path, render_page(encode_topology(title, topology, space)).encode())


def encode_topology(title: str, topology: InferredTopology, space: VertexPositions) -> bytes:
    """Return the document of a topology, in the format of `encode_document`.

    The two arcs between two vertices become one link, with a value for each direction.

    Args:
        title: the title of the page; plain text.
        topology: the network.
        space: the positions of its vertices.
    """
    hosts, vertices = len(topology.hosts), topology.vertices
    ends, values = _pair_arcs(topology)
    notes = [*topology.notes, *topology.unknown, space.describe()]
    header: dict[str, object] = {
        "version": VERSION,
        "title": title,
        "rails": [{"name": title, "has_levels": False}],
        "node_names": list(topology.names),
        "host_names": list(topology.hosts),
        "about": _describe(topology, len(ends)),
        "regions": [ALL],
        "operations": [ALL],
        "jobs": [ALL],
        "rank_names": [],
        "attributes": [],
        "grid": None,
        "runs": [describe_nothing(notes)],
    }
    number = np.arange(vertices)
    is_host = number < hosts
    arrays: Arrays = {
        "node_rail": np.zeros(vertices, np.uint8),
        "node_kind": np.where(is_host, NodeKind.CA, NodeKind.SWITCH).astype(np.uint8),
        "node_guid": np.zeros(vertices, np.uint64),
        "node_level": np.where(is_host, 0, 1).astype(np.int32),
        "node_x": space.position[:, 0].astype(np.float32),
        "node_y": space.position[:, 1].astype(np.float32),
        "node_host": np.where(is_host, number, NONE).astype(np.int32),
        "node_space": space.position.astype(np.float32).ravel(),
        "lid_first": np.zeros(0, np.uint16),
        "lid_count": np.zeros(0, np.uint16),
        "lid_node": np.zeros(0, np.int32),
        "end_node": ends.ravel().astype(np.uint32),
        "end_port": np.zeros(2 * len(ends), np.uint8),
        "link_gbps": np.full(len(ends), np.nan),
    }
    describe_link_values(header, arrays, values)
    return pack_document(header, arrays)


def _describe(topology: InferredTopology, links: int) -> str:
    noise = "" if isnan(topology.noise) else f"; delays deviate by {topology.noise:.1%} from it"
    switches = f"{len(topology.switches)} switches, " if topology.switches else ""
    return f"{len(topology.hosts)} hosts, {switches}{links} links by {topology.method}{noise}; no traffic"


def _pair_arcs(topology: InferredTopology) -> tuple[npt.NDArray[np.int64], list[LinkValue]]:
    """Return the two vertices of each link, and its properties by direction."""
    low, high = topology.edge.min(axis=1), topology.edge.max(axis=1)
    ends, link = np.unique(np.stack([low, high], axis=1).astype(np.int64), axis=0, return_inverse=True)
    link = link.ravel()
    from_end = 2 * link + (topology.edge[:, 0] == high)
    known = {
        ("delay", "s"): topology.latency_seconds,
        ("probability", ""): topology.probability,
        ("support", ""): topology.support,
        ("throughput", "Gb/s"): topology.throughput.edge_gbps if topology.throughput else None,
    }
    values: list[LinkValue] = []
    for (name, unit), given in known.items():
        if given is None or np.isnan(given).all():
            continue
        value = np.full(2 * len(ends), np.nan)
        value[from_end] = given
        if not topology.directed:
            value[from_end ^ 1] = given
        values.append(LinkValue(name, unit, value))
    # The page opens with the first property: probabilities if they differ, else delays.
    if len(ends) and np.ptp(topology.probability) > 0:
        values.sort(key=lambda each: each.name != "probability")
    return ends, values
