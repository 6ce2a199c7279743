# SPDX-License-Identifier: Apache-2.0
"""`ibprof-layout`: where nodes lie and what every link end carries."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ibprof.cli.command import run_command
from ibprof.errors import UsageError
from ibprof.show import format_bytes, printable
from ibprof_converter.cli.check import check_fabric
from ibprof_converter.cli.inputs import (
    OPERATION,
    REGION,
    Loaded,
    add_counters_argument,
    add_input_arguments,
    load_inputs,
    show_stages,
    split_inputs,
    warn_of_gaps,
)
from ibprof_converter.outputs.csv_file import write_csv
from ibprof_converter.outputs.rows import NODE_COLUMNS, link_columns, link_rows, node_rows
from ibprof_converter.routing.generated.spec import FORMS
from ibprof_converter.routing.sources import find_rails
from ibprof_converter.traffic.model import Traffic
from ibprof_converter.traffic.read import KINDS

NAME = "ibprof-layout"

_STDOUT = Path("-")

_EXAMPLE = f"""\
examples:
  ibprof-layout ibdiagnet.lst profile.otf2 -o links.csv
  ibprof-layout rail1.lst rail2.lst profile.otf2 -o links.csv --nodes nodes.csv --png heatmap.png
  ibprof-layout ibdiagnet.lst pattern:all-to-all --png capacity.png -o links.csv
  ibprof-layout ibdiagnet.lst job1.otf2 job2.otf2 -o links.csv
  ibprof-layout --check rail1/ rail2/

{KINDS}
{FORMS}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ibprof-layout`."""
    return run_command(NAME, _lay_out, argv)


def _lay_out(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_intermixed_args(argv)
    if arguments.check:
        return check_fabric(NAME, arguments)
    if arguments.json:
        raise UsageError("--json is for --check; links.csv and --yaml hold the loads")
    if not split_inputs(arguments.inputs)[0]:
        raise UsageError("expected at least one LST, then TRAFFIC; see --help")
    _check_outputs(arguments)
    with show_stages() as progress:
        loaded = load_inputs(arguments, arguments.by, progress)
    warn_of_gaps(NAME, loaded)
    fabrics = [subnet.fabric for subnet in loaded.subnets]
    placed = loaded.placed if isinstance(loaded.placed, Traffic) else None
    rank_lid = placed.rank_lid if placed else None
    rank_names = placed.rank_names if placed and len(placed.jobs) > 1 else ()
    with _open(arguments.output) as file:
        columns = link_columns(loaded.loads, loaded.agreement)
        write_csv(file, columns, link_rows(fabrics, loaded.layouts, loaded.loads, arguments.used, loaded.agreement))
    if arguments.nodes:
        with _open(arguments.nodes) as file:
            write_csv(file, NODE_COLUMNS, node_rows(fabrics, loaded.layouts, rank_lid, rank_names))
    # PyYAML and matplotlib are slow to import, and most runs want neither.
    if arguments.yaml:
        from ibprof_converter.outputs.yaml_file import write_yaml  # noqa: PLC0415

        with _open(arguments.yaml) as file:
            nodes = node_rows(fabrics, loaded.layouts, rank_lid, rank_names)
            links = link_rows(fabrics, loaded.layouts, loaded.loads, arguments.used, loaded.agreement)
            write_yaml(file, _about(loaded), nodes, links)
    if arguments.png:
        # Where it cannot keep its fonts' list, or takes long to make it, is no news of the fabric.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        from ibprof_converter.outputs.picture import write_picture  # noqa: PLC0415

        title, subtitle = _titles(loaded)
        with _naming(arguments.png):
            write_picture(arguments.png, title, subtitle, fabrics, loaded.layouts, loaded.loads)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Lay a fabric out, follow its forwarding tables, and write what every link end carries.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_input_arguments(parser, fabric_needed=True)
    add_counters_argument(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="look the fabric over instead, with no TRAFFIC: gaps in the dumps, routes that lead nowhere, links and "
        "switches unlike their kin; status 5 where routes cannot be trusted",
    )
    parser.add_argument("--json", action="store_true", help="with --check: the findings for programs")
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("-o", "--output", metavar="FILE", type=Path, help="links.csv, a row a link (default: stdout)")
    outputs.add_argument("--nodes", metavar="FILE", type=Path, help="nodes.csv, a row a node")
    outputs.add_argument("--yaml", metavar="FILE", type=Path, help="nodes and links in one YAML file")
    outputs.add_argument("--png", metavar="FILE", type=Path, help="a picture, each link end coloured by its own load")
    outputs.add_argument(
        "--by",
        metavar="region,operation",
        type=_columns,
        default=(),
        help="a row for each region, operation or both that has bytes on a link",
    )
    outputs.add_argument("--used", action="store_true", help="leave out links without traffic")
    return parser


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
    with _naming(path), path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        yield file


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Have an error of writing, such as a full disk, name its file."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse to write over what is read, or two outputs into one file, before anything is lost.

    Raises:
        UsageError: two names are of one file.
    """
    listings, traffics = split_inputs(arguments.inputs)
    dumps = [path for rail in find_rails(listings, arguments.fdbs) for path in rail.all()]
    read = [*traffics, *dumps, *arguments.counters, *(arguments.placement or ())]
    taken = {_identify(Path(name)): "an input" for name in read if name}
    for option in ("output", "nodes", "yaml", "png"):
        path = getattr(arguments, option) or (_STDOUT if option == "output" else None)
        if path is None or (file := _identify(path)) is None:
            continue
        if file in taken:
            raise UsageError(f"--{option} {path}: this is also {taken[file]}")
        taken[file] = f"--{option}"


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


def _titles(loaded: Loaded) -> tuple[str, str]:
    # The last folder too: dumps of all fabrics bear the same names.
    fabrics = " and ".join("/".join(Path(subnet.fabric.name).parts[-2:]) for subnet in loaded.subnets)
    loads = loaded.loads
    hottest = max(int(each.sum(axis=2, dtype="uint64").max(initial=0)) for each in loads.by_rail)
    subtitle = f"{format_bytes(loads.bytes_routed)} over links, {format_bytes(hottest)} on the hottest end of one"
    if loads.bytes_on_host:
        subtitle += f"; {format_bytes(loads.bytes_on_host)} within hosts"
    if unrouted := sum(loads.bytes_unrouted.values()):
        subtitle += f"; {format_bytes(unrouted)} not routed"
    if isinstance(loaded.placed, Traffic) and len(loaded.subnets) > 1:
        subtitle += f"; rails {loaded.placed.rail_source}"
    return printable(f"{loaded.placed.origin} on {fabrics}"), subtitle
