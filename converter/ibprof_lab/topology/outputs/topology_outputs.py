# SPDX-License-Identifier: Apache-2.0
"""Files of an inferred topology, by the name's end: graphs, a fabric, Slurm's tree, positions, a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import TextIO

from ibprof.errors import UsageError
from ibprof_converter.fabric.rates import data_rate_gbps, speed_of_name
from ibprof_converter.outputs.atomic_write import write_text
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs.inferred_fabric import write_fabric, write_slurm_tree
from ibprof_lab.topology.outputs.inferred_page import write_positions, write_topology_page
from ibprof_lab.topology.outputs.inferred_text import describe_topology, write_dot, write_tgf
from ibprof_lab.topology.outputs.vertex_positions import VertexPositions, position_vertices

_GRAPHS: dict[str, Callable[[TextIO, InferredTopology], None]] = {
    ".tgf": write_tgf,
    ".dot": write_dot,
    ".json": lambda file, topology: print(json.dumps(describe_topology(topology), indent=1), file=file),
}
_FABRIC, _SLURM, _PAGE, _POSITIONS = ".lst", ".conf", ".html", ".csv"

_FOUR_LANES = 4


@dataclass(frozen=True, slots=True)
class TopologyOutputs:
    """Where a topology goes.

    Attributes:
        output: files; their ends say what is written.
        json: whether the topology is printed as JSON.
        positions: how positions in space are found, of `METHODS`.
        gamma: how much hosts keep apart there, 0 to 1.
        speed: of all links of a fabric, such as EDR; None where nobody knows.
    """

    output: tuple[Path, ...]
    json: bool
    positions: str
    gamma: float
    speed: str | None

    def check(self, inputs: Iterable[str | Path]) -> None:
        """Refuse files that cannot be written, before anything is computed.

        Raises:
            UsageError: a name's end is unknown, or a file is an input as well.
        """
        check_files(self.output, (*_GRAPHS, _FABRIC, _SLURM, _PAGE, _POSITIONS), inputs)

    def without_fabrics(self) -> TopologyOutputs:
        """Return the outputs without those that other commands and schedulers would rely on."""
        return replace(self, output=tuple(path for path in self.output if path.suffix not in (_FABRIC, _SLURM)))


def check_files(files: Iterable[Path], endings: tuple[str, ...], inputs: Iterable[str | Path]) -> None:
    """Refuse output files with an unknown end, or that are inputs as well.

    Raises:
        UsageError: there is one.
    """
    read = {Path(name).resolve() for name in inputs}
    for path in files:
        if path.suffix not in endings:
            raise UsageError(f"-o {path}: expected a name that ends with {', '.join(endings)}")
        if path.resolve() in read:
            raise UsageError(f"-o {path}: this is also an input")


def write_inferred(outputs: TopologyOutputs, topology: InferredTopology, remark: str) -> Iterator[str]:
    """Write a topology into files; `remark` says where it came from, for formats with comments.

    Yields:
        What a reader of the files must know, a sentence each, as they are written.

    Raises:
        UsageError: a fabric cannot be made of it.
        OSError: a file cannot be written.
    """
    gbps = data_rate_gbps(_FOUR_LANES, speed_of_name(outputs.speed)) if outputs.speed else nan
    for path in outputs.output:
        if path.suffix in _GRAPHS:
            _write_graph(path, topology)
        elif path.suffix == _FABRIC:
            yield write_fabric(path, topology, remark, gbps)
        elif path.suffix == _SLURM:
            write_slurm_tree(path, topology, remark)
    in_space = [path for path in outputs.output if path.suffix in (_PAGE, _POSITIONS)]
    if not in_space:
        return
    space = position_vertices(topology, outputs.positions, outputs.gamma)
    yield describe_positions(space)
    for path in in_space:
        if path.suffix == _PAGE:
            write_topology_page(path, topology, remark, space)
        else:
            write_positions(path, topology, space)


def _write_graph(path: Path, topology: InferredTopology) -> None:
    write = _GRAPHS[path.suffix]
    write_text(path, lambda file: write(file, topology))


def describe_positions(space: VertexPositions) -> str:
    """Return a sentence on the quality of positions, and on the time that they took."""
    return f"{space.describe()}; {space.seconds:.2g} s"
