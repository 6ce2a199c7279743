# SPDX-License-Identifier: Apache-2.0
"""Write an inferred topology into all the files that are wanted of it: graphs, a fabric, positions, the web view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ibprof_converter.outputs.atomic_write import write_atomically
from ibprof_converter.viewer.html_page import render_page
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs.topology_document import encode_topology
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
