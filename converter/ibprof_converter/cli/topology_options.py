# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands of `ibprof-topology` have: the method, outputs; writing these."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ibprof.text.quantities import printable
from ibprof_converter.cli.arguments import count_in, fill_options, number_in, parse_length, parse_positive
from ibprof_converter.latency.files.atomic_write import write_atomically
from ibprof_converter.outputs.topology_writers import (
    PAGE,
    POSITIONS,
    TopologyOutputs,
    write_positions,
    write_topology,
)
from ibprof_converter.topology.infer.inference_methods import METHODS, STATISTICS, InferenceMethod
from ibprof_converter.topology.model.inferred_topology import InferredTopology
from ibprof_converter.topology.space.vertex_positions import GAMMA, VertexPositions, position_vertices
from ibprof_converter.topology.space.vertex_positions import METHODS as POSITION_METHODS

_ALIASES = {"bannikov": "bannikov-salnikov"}
_SPEEDS = ("SDR", "DDR", "QDR", "FDR", "EDR", "HDR", "NDR", "XDR")

parse_tolerance = number_in(0, math.nextafter(2, 0))


def add_method_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose the method, and the delays that it takes."""
    add = parser.add_argument
    add("--method", type=lambda text: _ALIASES.get(text, text), choices=METHODS, default="auto", help="auto: the one "
        "of levels, additive trees and direct networks that explains the delays best; or one of these; or a published "
        "method: bufe, bannikov-salnikov (default: auto)")  # fmt: skip
    add_bufe_epsilon(parser)
    add("--epsilon-s", metavar="E", type=parse_tolerance, default=0.1, help="bannikov-salnikov: formula 1 (0.1)")
    add("--epsilon-d", metavar="E", type=parse_tolerance, default=0.5, help="bannikov-salnikov: duplex up to it (0.5)")
    add("--clique-seconds", metavar="S", type=parse_positive, default=30.0, help="bufe: limit of CPU time (30)")
    add("--length", metavar="BYTES", type=parse_length, help="of the messages (default: the shortest)")
    add("--statistic", choices=STATISTICS, help="of the repetitions (default: in which both directions agree best)")
    add("--bootstrap", metavar="N", type=count_in(0), default=100, help="resampled matrices for edge support (100)")
    add("--seconds", metavar="S", type=parse_positive, default=10.0, help="limit of time for resampling (10)")
    add("--seed", metavar="N", type=count_in(0), default=0, help="of resampling (0)")


def add_bufe_epsilon(parser: argparse.ArgumentParser) -> None:
    """Add the tolerance of Bufe's method."""
    parser.add_argument(
        "--epsilon", metavar="E", type=parse_tolerance, default=0.1, help="bufe: relative tolerance (0.1)"
    )


def build_method(arguments: argparse.Namespace) -> InferenceMethod:
    """Return the method that the arguments choose."""
    return fill_options(InferenceMethod, arguments)


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where a topology goes."""
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", type=Path, action="append", default=[], help="see below")
    add("--html", metavar="FILE", type=Path, action="append", dest="output", help="the topology in space: -o FILE.html")
    add_position_arguments(parser)
    add("--json", action="store_true", help="the topology as JSON on stdout")
    add("--speed", metavar="NAME", type=str.upper, choices=_SPEEDS, help="of all links of a .lst, 4x; delays do not "
        "show it (default: unknown)")  # fmt: skip


def build_outputs(arguments: argparse.Namespace) -> TopologyOutputs:
    """Return where the topology goes.

    Raises:
        UsageError: a file cannot be written, or is an input.
    """
    outputs = fill_options(TopologyOutputs, arguments, output=tuple(arguments.output))
    outputs.check(name for name in vars(arguments).values() if isinstance(name, str | Path))
    return outputs


def add_position_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how positions in space are found."""
    add = parser.add_argument
    add("--positions", choices=POSITION_METHODS, default=POSITION_METHODS[0], help="in space: fast, or by the "
        "published descent, which takes minutes from some 200 hosts on (fast)")  # fmt: skip
    add("--gamma", metavar="G", type=number_in(0, 1), default=GAMMA, help=f"how much hosts keep apart ({GAMMA:g})")


def write_outputs(outputs: TopologyOutputs, topology: InferredTopology, remark: str) -> None:
    """Write a topology into the files that were asked for, and print what a reader must know of them on stderr.

    Raises:
        UsageError: a fabric cannot be made of it.
        OSError: a file cannot be written.
    """
    for path in outputs.output:
        for note in write_topology(path, topology, remark, outputs.gbps):
            print(note, file=sys.stderr)
    in_space = [path for path in outputs.output if path.suffix in (PAGE, POSITIONS)]
    if in_space:
        space = find_positions(topology, outputs.positions, outputs.gamma)
        for path in in_space:
            if path.suffix == PAGE:
                write_page(path, topology, remark, space)
            else:
                write_positions(path, topology, space)


def find_positions(topology: InferredTopology, method: str, gamma: float) -> VertexPositions:
    """Return positions in space, and print on stderr how good they are."""
    space = position_vertices(topology, method, gamma)
    print(f"{space.describe()}; {space.seconds:.2g} s", file=sys.stderr)
    return space


def write_page(path: Path, topology: InferredTopology, title: str, space: VertexPositions) -> None:
    """Write the web view of a topology.

    Raises:
        OSError: the file cannot be written.
    """
    from ibprof_converter.viewer.html_page import render_page  # noqa: PLC0415  (slow to import)
    from ibprof_converter.viewer.topology_document import encode_topology  # noqa: PLC0415  (slow to import)

    write_atomically(path, render_page(encode_topology(title, topology, space)).encode())


def print_result(document: dict[str, Any], lines: Iterable[str], as_json: bool) -> None:
    """Print a result on stdout, as JSON or as lines."""
    if as_json:
        print(json.dumps(document, indent=1))
    else:
        for line in lines:
            print(printable(line))
