# SPDX-License-Identifier: Apache-2.0
"""Web page of an inferred topology in space, and positions for `ibprof-view --node-data`."""

from __future__ import annotations

import csv
from math import isnan
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from ibprof_converter.outputs.atomic_write import write_text
from ibprof_converter.viewer.view_document import LinkValue, describe_link_values
from ibprof_converter.viewer.view_file import NONE, Arrays
from ibprof_converter.viewer.view_runs import describe_nothing
from ibprof_lab.latency.outputs.space_page import write_space_page
from ibprof_lab.topology.model.inferred_routes import NO_EDGE, attach_hosts
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs.vertex_positions import VertexPositions


def write_topology_page(path: Path, topology: InferredTopology, title: str, space: VertexPositions) -> None:
    """Write the web view of a topology in space; `title` is plain text.

    The two arcs between two vertices become one link, with a value for each direction.

    Raises:
        OSError: the file cannot be written.
    """
    ends, values = _pair_arcs(topology)
    header: dict[str, object] = {
        "title": title,
        "node_names": list(topology.names),
        "host_names": list(topology.hosts),
        "about": _describe(topology, len(ends)),
        "runs": [describe_nothing([*topology.notes, *topology.unknown, space.describe()])],
    }
    hosts, number = len(topology.hosts), np.arange(topology.vertices)
    arrays: Arrays = {
        "node_level": (number >= hosts).astype(np.int32),
        "node_host": np.where(number < hosts, number, NONE).astype(np.int32),
    }
    describe_link_values(header, arrays, values)
    write_space_page(path, header, space.position, hosts, ends, arrays)


def _describe(topology: InferredTopology, links: int) -> str:
    noise = "" if isnan(topology.noise) else f"; delays deviate by {topology.noise:.1%} from it"
    switches = f"{len(topology.switches)} switches, " if topology.switches else ""
    return f"{len(topology.hosts)} hosts, {switches}{links} links by {topology.method}{noise}; no traffic"


def _pair_arcs(topology: InferredTopology) -> tuple[npt.NDArray[np.int64], list[LinkValue]]:
    """Return the two vertices of each link, and the link's properties by direction."""
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


def write_positions(path: Path, topology: InferredTopology, space: VertexPositions) -> None:
    """Write positions for `ibprof-view --node-data`, by the nodes of the fabric made from the topology.

    A host with its own switch gives the position to that switch; the view puts the host next to it.

    Raises:
        OSError: the file cannot be written.
    """
    attachment = attach_hosts(topology)
    hosts, switches = len(topology.hosts), len(topology.switches)
    rows = list(zip(attachment.switch_name[:switches], space.position[hosts:].tolist(), strict=True))
    on_switch = zip(attachment.host_switch.tolist(), attachment.host_edge.tolist(), strict=True)
    for host, (switch, edge) in enumerate(on_switch):
        name = attachment.switch_name[switch] if edge == NO_EDGE else f"{topology.hosts[host]} HCA-1"
        rows.append((name, space.position[host].tolist()))

    def write(file: TextIO) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("node", "x", "y", "z"))
        writer.writerows((name, *(f"{at:.4f}" for at in place)) for name, place in rows)

    write_text(path, write)
