# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands of `ibprof-topology` have: the method, outputs; writing these."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from ibprof_converter.cli.arguments import count_in, fill_options, number_in, parse_positive, type_of
from ibprof_lab.cli.lab_commands import add_unit
from ibprof_lab.latency.model.typed_quantities import parse_length
from ibprof_lab.topology.infer.inference_methods import METHODS, STATISTICS
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_lab.topology.outputs.topology_outputs import TopologyOutputs, write_inferred
from ibprof_lab.topology.outputs.vertex_positions import GAMMA
from ibprof_lab.topology.outputs.vertex_positions import METHODS as POSITION_METHODS

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
    add_unit(parser)
    add("--epsilon-s", metavar="E", type=parse_tolerance, default=0.1, help="bannikov-salnikov: formula 1 (0.1)")
    add("--epsilon-d", metavar="E", type=parse_tolerance, default=0.5, help="bannikov-salnikov: duplex up to it (0.5)")
    add("--clique-seconds", metavar="S", type=parse_positive, default=30.0, help="bufe: limit of CPU time (30)")
    add("--length", metavar="BYTES", type=type_of(parse_length), help="of the messages (default: the shortest)")
    add("--statistic", choices=STATISTICS, help="of the repetitions (default: in which both directions agree best)")
    add("--bootstrap", metavar="N", type=count_in(0), default=100, help="resampled matrices for edge support (100)")
    add("--seconds", metavar="S", type=parse_positive, default=10.0, help="limit of time for resampling (10)")
    add("--seed", metavar="N", type=count_in(0), default=0, help="of resampling (0)")


def add_bufe_epsilon(parser: argparse.ArgumentParser) -> None:
    """Add the tolerance of Bufe's method."""
    parser.add_argument(
        "--epsilon", metavar="E", type=parse_tolerance, default=0.1, help="bufe: relative tolerance (0.1)"
    )


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
    for note in write_inferred(outputs, topology, remark):
        print(note, file=sys.stderr)
