# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology view`: an inferred topology in space, as one HTML file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from ibprof.errors import UsageError
from ibprof_converter.cli.subcommands import Subcommands, add_subcommand
from ibprof_lab.cli.delay_unit import add_unit
from ibprof_lab.cli.topology_options import add_position_arguments
from ibprof_lab.topology.infer.inference_methods import read_or_infer
from ibprof_lab.topology.outputs.inferred_outputs import describe_positions, write_topology_page
from ibprof_lab.topology.space.vertex_positions import position_vertices

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  ibprof-topology view topology.json -o view.html
  ibprof-topology view delays.nc -o view.html --positions paper --gamma 1

TOPOLOGY is JSON as `ibprof-topology infer -o topology.json` writes it, or delays to infer it from.
"""


@dataclass(frozen=True, slots=True)
class _ViewOptions:
    """The topology or delays, the unit of these, the page, and how positions are found."""

    topology: str
    unit: str
    output: Path
    positions: str
    gamma: float


def add_view(commands: Subcommands) -> None:
    """Add the command `view`."""
    description = (
        "Write one HTML file that shows a topology in space, links about as long as their delays and coloured by "
        "delay, probability or support. It opens in any browser and needs no network."
    )
    summary = "a topology in space, as one HTML file"
    parser = add_subcommand(commands, "view", summary, _EXAMPLES, _ViewOptions, _view, description)
    parser.add_argument("topology", metavar="TOPOLOGY", help="a topology or delays, see below")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file, such as view.html")
    add_unit(parser)
    add_position_arguments(parser)


def _view(options: _ViewOptions) -> None:
    if options.output.resolve() == Path(options.topology).resolve():
        raise UsageError(f"-o {options.output}: this is also the input")
    topology = read_or_infer(options.topology, options.unit)
    space = position_vertices(topology, options.positions, options.gamma)
    print(describe_positions(space), file=sys.stderr)
    write_topology_page(options.output, topology, options.topology, space)
