# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology view`: an inferred topology in space, as one HTML file."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ibprof.errors import UsageError
from ibprof_converter.cli.arguments import fill_options
from ibprof_converter.cli.topology_options import add_position_arguments, find_positions, write_page
from ibprof_converter.topology.infer.inference_methods import read_or_infer

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  ibprof-topology view topology.json -o view.html
  ibprof-topology view delays.nc -o view.html --positions paper --gamma 1

TOPOLOGY is JSON as `ibprof-topology infer -o topology.json` writes it, or delays to infer it from.
"""


@dataclass(frozen=True, slots=True)
class _ViewOptions:
    """The topology or delays, the page, and how positions are found."""

    topology: str
    output: Path
    positions: str
    gamma: float


def add_command(commands: Any, raw: type[argparse.HelpFormatter]) -> None:
    """Add the command `view`."""
    parser = commands.add_parser(
        "view",
        help="a topology in space, as one HTML file",
        description="Write one HTML file that shows a topology in space, links about as long as their delays and "
        "coloured by delay, probability or support. It opens in any browser and needs no network.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    parser.set_defaults(options=lambda arguments: fill_options(_ViewOptions, arguments), run=_view)
    parser.add_argument("topology", metavar="TOPOLOGY", help="a topology or delays, see below")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file, such as view.html")
    add_position_arguments(parser)


def _view(options: _ViewOptions) -> None:
    if options.output.resolve() == Path(options.topology).resolve():
        raise UsageError(f"-o {options.output}: this is also the input")
    topology = read_or_infer(options.topology)
    space = find_positions(topology, options.positions, options.gamma)
    write_page(options.output, topology, options.topology, space)
