# SPDX-License-Identifier: Apache-2.0
"""`ibprof-topology view`: an inferred topology in space, as one HTML file."""

from __future__ import annotations

import argparse
import csv
import sys
from io import StringIO
from pathlib import Path
from typing import Any

from ibprof.errors import InputError, UsageError
from ibprof_converter.latency.files.atomic_write import write_atomically
from ibprof_converter.latency.files.delay_files import read_delays
from ibprof_converter.topology.files.topology_json import read_topology
from ibprof_converter.topology.infer.inference import infer
from ibprof_converter.topology.infer.pair_delays import take_pair_delays
from ibprof_converter.topology.model.host_attachment import NO_EDGE, attach_hosts
from ibprof_converter.topology.model.inferred_topology import InferredTopology
from ibprof_converter.topology.space.vertex_positions import GAMMA, METHODS, VertexPositions, position_vertices

_EXAMPLES = """\
examples:
  ibprof-topology infer delays.nc -o topology.json
  ibprof-topology view topology.json -o view.html
  ibprof-topology view delays.nc -o view.html --positions paper --gamma 1

TOPOLOGY is JSON as `ibprof-topology infer -o topology.json` writes it, or delays to infer it from.
"""


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
    parser.set_defaults(run=_view)
    parser.add_argument("topology", metavar="TOPOLOGY", help="a topology or delays, see below")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file, such as view.html")
    add_position_arguments(parser)


def add_position_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how positions in space are found."""
    parser.add_argument(
        "--positions",
        choices=METHODS,
        default=METHODS[0],
        help="in space: fast, or by the published descent, which takes minutes from some 200 hosts on (fast)",
    )
    parser.add_argument(
        "--gamma", metavar="G", type=_part, default=GAMMA, help=f"how much hosts keep apart, 0 to 1 ({GAMMA:g})"
    )


def _view(arguments: argparse.Namespace) -> None:
    if arguments.output.resolve() == Path(arguments.topology).resolve():
        raise UsageError(f"-o {arguments.output}: this is also the input")
    if arguments.topology.endswith(".json"):
        topology = read_topology(arguments.topology)
    else:
        delays = read_delays(arguments.topology)
        if not delays.processes:
            raise InputError(arguments.topology, None, "delays between hosts", "no host")
        topology = infer(take_pair_delays(delays)).topology
    write_page_of(arguments.output, topology, arguments.topology, find_space(topology, arguments))


def find_space(topology: InferredTopology, arguments: argparse.Namespace) -> VertexPositions:
    """Give positions as the arguments of `add_position_arguments` want them; says on stderr how good they are."""
    space = position_vertices(topology, arguments.positions, arguments.gamma)
    print(f"{space.describe()}; {space.seconds:.2g} s", file=sys.stderr)
    return space


def write_page_of(path: Path, topology: InferredTopology, title: str, space: VertexPositions) -> None:
    """Write the web view of a topology.

    Raises:
        OSError: the file cannot be written.
    """
    from ibprof_converter.viewer.html_page import render_page  # noqa: PLC0415
    from ibprof_converter.viewer.topology_document import encode_topology  # noqa: PLC0415

    write_atomically(path, render_page(encode_topology(title, topology, space)).encode())


def write_positions(path: Path, topology: InferredTopology, space: VertexPositions) -> None:
    """Write positions as what `ibprof-view --node-data` takes, by the nodes of the fabric that is made of a topology.

    A host with a switch of its own leaves its place to that; the view puts it beside.

    Raises:
        OSError: the file cannot be written.
    """
    attachment = attach_hosts(topology)
    hosts, switches = len(topology.hosts), len(topology.switches)
    rows = list(zip(attachment.switch_name[:switches], space.position[hosts:].tolist(), strict=True))
    for host, (switch, edge) in enumerate(
        zip(attachment.host_switch.tolist(), attachment.host_edge.tolist(), strict=True)
    ):
        name = attachment.switch_name[switch] if edge == NO_EDGE else f"{topology.hosts[host]} HCA-1"
        rows.append((name, space.position[host].tolist()))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("node", "x", "y", "z"))
    writer.writerows((name, *(f"{at:.4f}" for at in place)) for name, place in rows)
    write_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _part(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, found {text!r}")
    return value
