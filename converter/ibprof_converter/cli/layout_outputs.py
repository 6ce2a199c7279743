# SPDX-License-Identifier: Apache-2.0
"""What `ibprof-layout` writes: tables, graphs, pictures, all from the same rows."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from ibprof.errors import UsageError
from ibprof.text.quantities import format_bytes, printable
from ibprof_converter.cli.inputs import OPERATION, REGION, Loaded, split_inputs
from ibprof_converter.outputs.csv_file import write_csv
from ibprof_converter.outputs.rows import NODE_COLUMNS, Row, link_columns, link_rows, node_rows
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.traffic.hosts import NO_HOST
from ibprof_converter.traffic.traffic_data import Traffic

OPTIONS = ("output", "nodes", "yaml", "png", "figure", "graphml", "dot", "tgf", "topology_conf", "boxfish", "html")
"""Options that name a file to write."""

_STDOUT = Path("-")
_PARQUET = ".parquet"
_FIGURES = (".png", ".svg", ".pdf")
_JOB = "job"


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name what is to be written."""
    outputs = parser.add_argument_group("outputs")

    def add(option: str, metavar: str, text: str) -> None:
        outputs.add_argument(option, metavar=metavar, type=Path, help=text)

    outputs.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="links.csv, a row a link (default: stdout); Parquet if it ends with .parquet",
    )
    add("--nodes", "FILE", "nodes.csv, a row a node; Parquet if it ends with .parquet")
    add("--yaml", "FILE", "nodes and links in one YAML file")
    add("--png", "FILE", "a picture, each link end coloured by its own load")
    add("--figure", "FILE", "the same for a paper: PNG, SVG or PDF by its ending")
    outputs.add_argument(
        "--panels",
        choices=(REGION, OPERATION, _JOB),
        help="pictures of each region, operation (with --by) or job, with one scale of colours",
    )
    add("--html", "FILE", "the view of ibprof-view: one page for any browser")
    add("--graphml", "FILE", "a graph for networkx, Gephi, yEd: an edge for each end of a link")
    add("--dot", "FILE", "the same for Graphviz")
    add("--tgf", "FILE", "the same as Trivial Graph Format")
    add("--topology-conf", "FILE", "Slurm's topology.conf: which hosts are near one another")
    add("--boxfish", "DIR", "a folder of tables for Boxfish")
    outputs.add_argument(
        "--by",
        metavar="region,operation",
        type=_columns,
        default=(),
        help="a row for each region, operation or both that has bytes on a link",
    )
    outputs.add_argument("--used", action="store_true", help="leave out links without traffic")


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be written, before anything is lost: over an input, or two outputs into one file.

    Raises:
        UsageError: two names are of one file, or a figure would be of no known kind or of panels that nothing tells.
    """
    if arguments.figure and arguments.figure.suffix.lower() not in _FIGURES:
        raise UsageError(f"--figure {arguments.figure}: expected a name that ends with {', '.join(_FIGURES)}")
    if arguments.panels in (REGION, OPERATION) and arguments.panels not in arguments.by:
        raise UsageError(f"--panels {arguments.panels} needs --by {arguments.panels}")
    traffics = split_inputs(arguments.inputs)[1]
    if arguments.panels == _JOB and len(traffics) < 2:
        raise UsageError("--panels job needs several jobs")
    named = {f"--{option.replace('_', '-')}": getattr(arguments, option) for option in OPTIONS}
    check_files(arguments, named | {"--output": arguments.output or _STDOUT})


def check_files(arguments: argparse.Namespace, named: Mapping[str, Path | None]) -> None:
    """Refuse to write over an input, or two outputs into one file.

    Args:
        arguments: of `add_input_arguments`.
        named: option -> the file that it names, None for none.

    Raises:
        UsageError: two names are of one file.
    """
    taken = {_identify(name): "an input" for name in named_files(arguments)}
    for name, path in named.items():
        if path is None or (file := _identify(path)) is None:
            continue
        if file in taken:
            raise UsageError(f"{name} {path}: this is also {taken[file]}")
        taken[file] = name


def named_files(arguments: argparse.Namespace) -> Iterator[Path]:
    """Give the files that the arguments of `add_input_arguments` name, and those found for them."""
    listings, traffics = split_inputs(arguments.inputs)
    for rail in find_rails(listings, arguments.fdbs):
        yield from rail.all()
    named = [*traffics, *arguments.counters, *(arguments.placement or ())]
    for option in ("compare", "compare_placement"):
        named += getattr(arguments, option, ())
    named += [getattr(arguments, option, None) for option in ("rank_data", "node_data")]
    yield from map(Path, filter(None, named))


def write_outputs(arguments: argparse.Namespace, loaded: Loaded) -> None:
    """Write all that was asked for. What takes long to import is imported where it is wanted alone.

    Raises:
        IbprofError: of any kind.
        OSError: a file cannot be written; it names it.
    """
    fabrics = [subnet.fabric for subnet in loaded.subnets]
    traffic = loaded.placed if isinstance(loaded.placed, Traffic) else None

    def links() -> Iterator[Row]:
        return link_rows(fabrics, loaded.layouts, loaded.loads, arguments.used, loaded.agreement, loaded.bounds)

    def nodes() -> Iterator[Row]:
        names = traffic.rank_names if traffic and len(traffic.jobs) > 1 else ()
        return node_rows(fabrics, loaded.layouts, traffic.rank_lid if traffic else None, names)

    _write_table(arguments.output, link_columns(loaded.loads, loaded.agreement, loaded.bounds), links())
    if arguments.nodes:
        _write_table(arguments.nodes, NODE_COLUMNS, nodes())
    if arguments.yaml:
        from ibprof_converter.outputs.yaml_file import write_yaml  # noqa: PLC0415

        with _open(arguments.yaml) as file:
            write_yaml(file, _about(loaded), nodes(), links())
    _write_graphs(arguments, loaded, nodes, links)
    if arguments.boxfish:
        from ibprof_converter.outputs.boxfish import write_boxfish  # noqa: PLC0415

        with naming(arguments.boxfish):
            write_boxfish(arguments.boxfish, _about(loaded), nodes(), links())
    _draw(arguments, loaded)
    if arguments.html:
        from ibprof_converter.cli.view_outputs import write_view  # noqa: PLC0415

        write_view(arguments.html, loaded)


def _write_table(path: Path | None, columns: tuple[str, ...], rows: Iterator[Row]) -> None:
    if path is not None and path.suffix.lower() == _PARQUET:
        from ibprof_converter.outputs.parquet import write_parquet  # noqa: PLC0415

        with naming(path):
            write_parquet(path, columns, rows)
        return
    with _open(path) as file:
        write_csv(file, columns, rows)


def _write_graphs(
    arguments: argparse.Namespace,
    loaded: Loaded,
    nodes: Callable[[], Iterator[Row]],
    links: Callable[[], Iterator[Row]],
) -> None:
    if arguments.dot or arguments.tgf or arguments.graphml:
        from ibprof_converter.outputs.graph import write_dot, write_graphml, write_tgf  # noqa: PLC0415

        for path, write in ((arguments.dot, write_dot), (arguments.tgf, write_tgf)):
            if path:
                with _open(path) as file:
                    write(file, nodes(), links())
        if arguments.graphml:
            with naming(arguments.graphml):
                write_graphml(arguments.graphml, nodes(), links())
    if arguments.topology_conf:
        from ibprof_converter.outputs.slurm import write_topology  # noqa: PLC0415

        fabric = loaded.subnets[0].fabric
        host_of = {
            f"0x{int(fabric.node_guid[node]):016x}": loaded.hosts.name[host]
            for node, host in enumerate(loaded.hosts.of_node[0].tolist())
            if host != NO_HOST
        }
        every = link_rows([fabric], loaded.layouts[:1], replace(loaded.loads, by_rail=loaded.loads.by_rail[:1]))
        with _open(arguments.topology_conf) as file:
            write_topology(file, every, host_of, fabric.name)


def _draw(arguments: argparse.Namespace, loaded: Loaded) -> None:
    for path in (arguments.png, arguments.figure):
        if not path:
            continue
        # Where it cannot keep its fonts' list, or takes long to make it, is no news of the fabric.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        from ibprof_converter.outputs.picture import write_picture  # noqa: PLC0415

        title, subtitle = titles_of(loaded)
        fabrics = [subnet.fabric for subnet in loaded.subnets]
        with naming(path):
            write_picture(
                path, title, subtitle, fabrics, loaded.layouts, loaded.loads, arguments.panels, arguments.used
            )


def _columns(text: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(","))
    if unknown := set(columns) - {REGION, OPERATION}:
        found = ", ".join(sorted(unknown))
        raise argparse.ArgumentTypeError(f"expected {REGION}, {OPERATION} or both, found {found!r}")
    return columns


@contextmanager
def _open(path: Path | None) -> Iterator[TextIO]:
    if path is None or path == _STDOUT:
        yield sys.stdout
        return
    with naming(path), path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        yield file


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an error of writing, such as a full disk, name its file."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def _identify(path: Path) -> object:
    """Tell a file from others, whatever its names; None for a device or a pipe, which may be written to twice."""
    if not path.exists():
        return path.resolve()
    status = path.stat()
    return (status.st_dev, status.st_ino) if path.is_file() else None


def _about(loaded: Loaded) -> dict[str, object]:
    return {
        "traffic": loaded.placed.origin,
        "fabrics": [subnet.fabric.name for subnet in loaded.subnets],
        "rails": loaded.placed.rail_source if isinstance(loaded.placed, Traffic) else None,
        "bytes_total": loaded.loads.bytes_total,
        "bytes_routed": loaded.loads.bytes_routed,
        "bytes_on_host": loaded.loads.bytes_on_host,
        "bytes_unrouted": loaded.loads.bytes_unrouted,
    }


def name_fabrics(loaded: Loaded) -> str:
    """Name the fabrics with their last folders too: dumps of all fabrics bear the same names."""
    return " and ".join("/".join(Path(subnet.fabric.name).parts[-2:]) for subnet in loaded.subnets)


def titles_of(loaded: Loaded) -> tuple[str, str]:
    """Say what a picture shows, and what of it is on the links."""
    loads = loaded.loads
    hottest = max(int(each.sum(axis=2, dtype="uint64").max(initial=0)) for each in loads.by_rail)
    subtitle = f"{format_bytes(loads.bytes_routed)} over links, {format_bytes(hottest)} on the hottest end of one"
    if loads.bytes_on_host:
        subtitle += f"; {format_bytes(loads.bytes_on_host)} within hosts"
    if unrouted := sum(loads.bytes_unrouted.values()):
        subtitle += f"; {format_bytes(unrouted)} not routed"
    if isinstance(loaded.placed, Traffic) and len(loaded.subnets) > 1:
        subtitle += f"; rails {loaded.placed.rail_source}"
    return printable(f"{loaded.placed.origin} on {name_fabrics(loaded)}"), subtitle
