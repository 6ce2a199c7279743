# SPDX-License-Identifier: Apache-2.0
"""Files of an inferred topology, by the name's end: graphs, a fabric with its tables, Slurm's tree, positions."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import TextIO

import numpy as np

from ibprof.errors import UsageError
from ibprof_converter.fabric.rates import data_rate_gbps, speed_of_name
from ibprof_converter.layout.positions import lay_out
from ibprof_converter.outputs.atomic_write import write_text
from ibprof_converter.outputs.ibdiagnet_files import write_fdbs, write_lst
from ibprof_converter.outputs.rows import link_rows
from ibprof_converter.outputs.slurm_topology import write_topology as write_slurm
from ibprof_converter.traffic.hosts import NO_HOST, find_hosts
from ibprof_converter.traffic.loaded_links import Loads
from ibprof_converter.traffic.traffic_data import ALL
from ibprof_lab.topology.model.host_attachment import NO_EDGE, attach_hosts
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.model.synthetic_fabric import make_fabric
from ibprof_lab.topology.outputs.inferred_graph import describe_topology, write_dot, write_tgf
from ibprof_lab.topology.space.vertex_positions import VertexPositions

PAGE, POSITIONS = ".html", ".csv"
FABRICS = (".lst", ".conf")

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
        check_files(self.output, (*_WRITERS, PAGE, POSITIONS), inputs)

    def without_fabrics(self) -> TopologyOutputs:
        """Return the outputs without those that other commands and schedulers would rely on."""
        return replace(self, output=tuple(path for path in self.output if path.suffix not in FABRICS))

    @property
    def gbps(self) -> float:
        """Data rate of a link of four lanes, Gb/s; nan where the speed is unknown."""
        return data_rate_gbps(_FOUR_LANES, speed_of_name(self.speed)) if self.speed else nan


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


def write_topology(path: Path, topology: InferredTopology, remark: str, gbps: float) -> list[str]:
    """Write a topology, by the name's end, unless that is of a page or of positions.

    Args:
        path: the file.
        topology: what to write.
        remark: where it came from, for formats with comments.
        gbps: data rate of links whose throughput was not measured; nan where unknown.

    Returns:
        What the reader of the file must know, a sentence each.

    Raises:
        UsageError: a fabric cannot be made of it.
        OSError: the file cannot be written.
    """
    return _WRITERS[path.suffix](path, topology, remark, gbps) if path.suffix in _WRITERS else []


def write_positions(path: Path, topology: InferredTopology, space: VertexPositions) -> None:
    """Write positions for `ibprof-view --node-data`, by the nodes of the fabric that is made of the topology.

    A host with a switch of its own gives its position to that switch; the view puts the host next to it.

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


def _write_tgf(path: Path, topology: InferredTopology, _remark: str, _gbps: float) -> list[str]:
    write_text(path, lambda file: write_tgf(file, topology))
    return []


def _write_dot(path: Path, topology: InferredTopology, _remark: str, _gbps: float) -> list[str]:
    write_text(path, lambda file: write_dot(file, topology))
    return []


def _write_json(path: Path, topology: InferredTopology, _remark: str, _gbps: float) -> list[str]:
    write_text(path, lambda file: print(json.dumps(describe_topology(topology), indent=1), file=file))
    return []


def _write_fabric(path: Path, topology: InferredTopology, remark: str, gbps: float) -> list[str]:
    made, tables = make_fabric(topology, str(path), gbps), path.with_suffix(".fdbs")
    speeds = "speeds are unknown" if isnan(gbps) else f"{gbps:g} Gb/s is an assumption"
    write_text(path, lambda file: write_lst(file, made.fabric, f"{remark}; GUIDs are synthetic; {speeds}"))
    write_text(tables, lambda file: write_fdbs(file, made.tables))
    return [f"{path}: routes in {tables} are modelled as shortest paths"]


def _write_slurm(path: Path, topology: InferredTopology, remark: str, _gbps: float) -> list[str]:
    fabric = make_fabric(topology, str(path)).fabric
    names = find_hosts([fabric])
    host_of = {
        f"0x{int(fabric.node_guid[node]):016x}": names.name[host]
        for node, host in enumerate(names.of_node[0].tolist())
        if host != NO_HOST
    }
    no_load = Loads((np.zeros((fabric.links, 2, 1), np.uint64),), ((ALL, ALL),), 0, 0, 0, {})
    rows = list(link_rows([fabric], lay_out([fabric]), no_load))
    write_text(path, lambda file: write_slurm(file, rows, host_of, remark))
    return []


_WRITERS: dict[str, Callable[[Path, InferredTopology, str, float], list[str]]] = {
    ".tgf": _write_tgf,
    ".dot": _write_dot,
    ".json": _write_json,
    ".lst": _write_fabric,
    ".conf": _write_slurm,
}
