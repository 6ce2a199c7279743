# SPDX-License-Identifier: Apache-2.0
"""An inferred topology as text and as files (graphs, fabrics, positions, a page); a file's suffix selects its format.

The modules of fabrics, positions and pages are slow to import, and only loaded for files that need them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ibprof.errors import UsageError
from ibprof.text.quantities import count_of
from ibprof_converter.fabric.rates import data_rate_gbps, speed_of_name
from ibprof_converter.outputs.atomic_write import write_text
from ibprof_converter.outputs.slurm_topology import compress
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.infer.reliability import WEAK
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.model.topology_files import describe_topology, write_dot, write_tgf

if TYPE_CHECKING:
    from ibprof_lab.topology.outputs.vertex_positions import VertexPositions

_GRAPHS: dict[str, Callable[..., None]] = {
    ".tgf": write_tgf,
    ".dot": write_dot,
    ".json": lambda file, topology: print(json.dumps(describe_topology(topology), indent=1), file=file),
}
_FABRIC, _SLURM, _PAGE, _POSITIONS = ".lst", ".conf", ".html", ".csv"

_FOUR_LANES = 4

_SHOWN_SWITCHES = 40
_SHOWN_LINKS = 8
_SHOWN_WEAK = 10


@dataclass(frozen=True, slots=True)
class TopologyOutputs:
    """Output options for a topology.

    Attributes:
        output: output files.
        json: True to print the topology as JSON.
        positions: method for 3-D positions of vertices, from `POSITION_METHODS`.
        gamma: weight of the repulsion between vertices in the 3-D positions, 0 to 1.
        speed: speed of a fabric's links without measured throughput, such as EDR; None if unknown.
    """

    output: tuple[Path, ...]
    json: bool
    positions: str
    gamma: float
    speed: str | None

    def check(self, inputs: Iterable[str | Path]) -> None:
        """Refuse output files that cannot be written; call this before the computation.

        Raises:
            UsageError: a suffix is unknown, or a file is also an input.
        """
        check_files(self.output, (*_GRAPHS, _FABRIC, _SLURM, _PAGE, _POSITIONS), inputs)

    def without_fabrics(self) -> TopologyOutputs:
        """Return a copy whose `output` has no fabric files and no Slurm files."""
        return replace(self, output=tuple(path for path in self.output if path.suffix not in (_FABRIC, _SLURM)))


def check_files(files: Iterable[Path], endings: tuple[str, ...], inputs: Iterable[str | Path]) -> None:
    """Refuse output files with an unknown suffix, and output files that are also inputs.

    Raises:
        UsageError: a suffix is unknown, or an output file is also an input.
    """
    read = {Path(name).resolve() for name in inputs}
    for path in files:
        if path.suffix not in endings:
            raise UsageError(f"-o {path}: expected a name that ends with {', '.join(endings)}")
        if path.resolve() in read:
            raise UsageError(f"-o {path}: this is also an input")


def write_inferred(outputs: TopologyOutputs, topology: InferredTopology, remark: str) -> Iterator[str]:
    """Write a topology to files. Formats with comments include `remark`, the origin of the topology.

    Yields:
        Sentences on assumptions in the files.

    Raises:
        UsageError: the topology cannot be written as a fabric.
        OSError: a file cannot be written.
    """
    gbps = data_rate_gbps(_FOUR_LANES, speed_of_name(outputs.speed)) if outputs.speed else nan
    for path in outputs.output:
        if path.suffix in _GRAPHS:
            write_text(path, partial(_GRAPHS[path.suffix], topology=topology))
        elif path.suffix in (_FABRIC, _SLURM):
            from ibprof_lab.topology.outputs import inferred_fabric  # noqa: PLC0415  (slow to import: routing)

            if path.suffix == _FABRIC:
                yield inferred_fabric.write_fabric(path, topology, remark, gbps)
            else:
                inferred_fabric.write_slurm_tree(path, topology, remark)
    in_space = [path for path in outputs.output if path.suffix in (_PAGE, _POSITIONS)]
    if not in_space:
        return
    from ibprof_lab.topology.outputs import vertex_positions  # noqa: PLC0415  (slow to import: the viewer)

    space = vertex_positions.position_vertices(topology, outputs.positions, outputs.gamma)
    yield describe_positions(space)
    for path in in_space:
        if path.suffix == _PAGE:
            vertex_positions.write_topology_page(path, topology, remark, space)
        else:
            vertex_positions.write_positions(path, topology, space)


def describe_positions(space: VertexPositions) -> str:
    """Return a sentence on the quality of positions and the time of their computation."""
    return f"{space.describe()}; {space.seconds:.2g} s"


def describe_inference(
    topology: InferredTopology, values: PairDelays | None = None, again: int = 0, refusal: str | None = None
) -> Iterator[str]:
    """Yield the lines of a topology, the most important first.

    Args:
        values: delays between hosts from which the topology was inferred; None if the delays were between processes.
        again: number of pairs to measure again.
        refusal: reason why the topology is unreliable; None if it is reliable.
    """
    if refusal:
        yield f"not reliable: {refusal}"
    measured = f", {values.statistic.replace('_', ' ')} delays of {count_of(values.length, 'byte')}" if values else ""
    noise = "" if isnan(topology.noise) else f"; delays deviate by {topology.noise:.1%} from this model"
    levels = f", {count_of(count, 'level')}" if (count := topology.count_levels()) else ""
    links = count_of(len(topology.edge), "arc" if topology.directed else "link")
    yield (
        f"{count_of(len(topology.hosts), 'host')}, {count_of(len(topology.switches), 'switch')}{levels}, {links} by "
        f"method {topology.method}{measured}{noise}"
    )
    yield from (f"unknown: {text}" for text in topology.unknown)
    yield from (f"note: {text}" for text in topology.notes)
    if topology.overhead_seconds:
        yield f"overhead of a message, in addition to the delay of its path: {topology.overhead_seconds * 1e6:.4g} µs"
    if topology.switches:
        yield from _describe_switches(topology)
    weak = np.flatnonzero(topology.support < WEAK)
    for edge in weak[np.argsort(topology.support[weak], kind="stable")][:_SHOWN_WEAK].tolist():
        a, b = (topology.names[end] for end in topology.edge[edge])
        yield f"weak link: {a} to {b}, support {topology.support[edge]:.2f}"
    if len(weak) > _SHOWN_WEAK:
        yield f"and {len(weak) - _SHOWN_WEAK} more weak links"
    if again:
        yield f"measure again: {count_of(again, 'pair')} (--outliers FILE writes them)"


def _describe_switches(topology: InferredTopology) -> Iterator[str]:
    hosts = len(topology.hosts)
    own = topology.hosts_of_switches()
    linked: list[list[str]] = [[] for _ in topology.switches]
    for (a, b), latency in zip(np.sort(topology.edge, axis=1).tolist(), topology.latency_seconds, strict=True):
        if a >= hosts:
            linked[a - hosts].append(f"{topology.names[b]} ({latency * 1e6:.3g} µs)")
            linked[b - hosts].append(f"{topology.names[a]} ({latency * 1e6:.3g} µs)")
    for number, name in enumerate(topology.switches[:_SHOWN_SWITCHES]):
        parts = [compress(own[number])] if own[number] else []
        if links := linked[number]:
            more = f" and {len(links) - _SHOWN_LINKS} more" if len(links) > _SHOWN_LINKS else ""
            parts.append(f"links to {', '.join(links[:_SHOWN_LINKS])}{more}")
        yield f"  {name}: {'; '.join(parts)}"
    if len(topology.switches) > _SHOWN_SWITCHES:
        yield f"  and {len(topology.switches) - _SHOWN_SWITCHES} more"


def describe_throughput(topology: InferredTopology) -> Iterator[str]:
    """Yield a line per link, the slowest first, then a line per switch; no lines if throughput was not measured."""
    if (found := topology.throughput) is None:
        return
    for edge in np.argsort(found.edge_gbps, kind="stable").tolist():
        one, other = (topology.names[end] for end in topology.edge[edge])
        yield f"{one} to {other}: {_describe_rate(found.edge_gbps[edge], found.edge_at_least[edge])}"
    for switch, name in enumerate(topology.switches):
        yield f"through {name}: {_describe_rate(found.switch_gbps[switch], found.switch_at_least[switch])}"


def _describe_rate(gbps: float, at_least: bool) -> str:
    if np.isnan(gbps):
        return "not measured: no pair of hosts uses it for certain"
    return f"{'at least ' if at_least else ''}{gbps:.3g} Gb/s"


def describe_inferred(
    topology: InferredTopology, values: PairDelays | None, again: int, refusal: str | None = None
) -> dict[str, Any]:
    """Return the JSON document of an inference; arguments as for `describe_inference`."""
    document = describe_topology(topology)
    if values is not None:
        document |= {"statistic": values.statistic, "length": values.length}
    return document | {"pairs_to_measure_again": again, "refused": refusal}
