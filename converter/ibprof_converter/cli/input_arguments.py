# SPDX-License-Identifier: Apache-2.0
"""Define the arguments for fabrics and traffic that many commands have; convert parsed arguments to options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ibprof.cli.command import add_row_arguments, row_options
from ibprof.errors import InconsistentError, UsageError
from ibprof_converter.analysis.output_files import FULL_PATHS, PathRedactor
from ibprof_converter.analysis.pipeline_options import FabricOptions, TrafficOptions, parse_pattern, split_names
from ibprof_converter.choices import (
    ALL_INTERFACES,
    COMPUTE,
    NIC_POLICIES,
    PLACEMENT_FORMS,
    RAIL_POLICIES,
    ROUTE_CHOICES,
    STORAGE,
    parse_routes,
)
from ibprof_converter.cli.arguments import type_of

if TYPE_CHECKING:
    from ibprof_converter.traffic.unrouted_bytes import UnroutedBytes

NAMES = "names"
FULL = "full"


def refuse_options(arguments: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raise an error if the user typed any of the named options.

    Args:
        arguments: the parsed arguments; options that were not typed are None, False or empty.
        names: names of the arguments that do not apply.
        why: the reason, for the message.

    Raises:
        UsageError: the user typed one of these options.
    """
    values = {f"--{name.replace('_', '-')}": getattr(arguments, name) for name in names}
    typed = [name for name, value in values.items() if not (value is None or value is False or value in ([], ()))]
    if typed:
        raise UsageError(f"{', '.join(typed)}: {why}")


def list_fabric_arguments() -> list[str]:
    """Return the names of the arguments that `add_fabric_arguments` adds."""
    parser = argparse.ArgumentParser(add_help=False)
    add_fabric_arguments(parser)
    return list(vars(parser.parse_args([])))


def add_input_arguments(parser: argparse.ArgumentParser, fabric_needed: bool) -> None:
    """Add the arguments that name fabrics and traffic."""
    fabrics = "LST..." if fabric_needed else "[LST...]"
    parser.usage = f"{parser.prog} [options] {fabrics} TRAFFIC..."
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="LST... TRAFFIC...",
        help="LST: a dump of ibdiagnet, OpenSM or infiniband-diags, a folder of dumps, or the name of a synthetic "
        "fabric. Name one LST for each rail. TRAFFIC: a profile, for example; name one for each job on the fabric",
    )
    add_fabric_arguments(parser)
    add_row_arguments(parser)


def add_fabric_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that control how fabrics are read, and how traffic is mapped to the fabrics."""
    parser.add_argument(
        "--fdbs",
        nargs="+",
        metavar="FILE",
        default=[],
        help="forwarding tables, a file for each LST in the same order (default: tables in or next to LST). "
        "If LST follows, write -- after the last FILE",
    )
    parser.add_argument(
        "--routes",
        metavar="HOW",
        type=type_of(parse_routes),
        help=f"where routes come from: {ROUTE_CHOICES} (default: tables, or else modelled)",
    )
    parser.add_argument(
        "--node-name-map",
        metavar="FILE",
        help="names of nodes by GUID, in the format of OFED's tools. If FILE does not exist, ibprof searches OFED's "
        "usual folders (default: the map next to LST, if any)",
    )
    parser.add_argument(
        "--placement",
        metavar="HOW",
        action="append",
        help=f"hosts of the ranks, in place of the recorded hosts: {PLACEMENT_FORMS}. With several jobs, "
        "repeat the option: one HOW for each TRAFFIC, in the same order",
    )
    parser.add_argument(
        "--host-names",
        metavar="REGEX",
        type=type_of(parse_pattern),
        help="regular expression for host names in descriptions of adapters. The first group, or else the whole match, "
        "is the name (default: the first word, without endings such as _hca0 or -mlx5_0)",
    )
    add_interfaces_argument(parser)
    parser.add_argument(
        "--level-hosts",
        metavar="REGEX",
        type=type_of(parse_pattern),
        help="count the levels of switches from the CAs whose names match (default: find hosts by the cabling)",
    )
    parser.add_argument(
        "--rails",
        choices=RAIL_POLICIES,
        help=f"rail of bytes whose rail was not measured (default: {RAIL_POLICIES[0]})",
    )
    parser.add_argument(
        "--nic",
        choices=NIC_POLICIES,
        help="adapter of a rank in a subnet, if no adapter was recorded. rank: a host's ranks take adapters in turn; "
        "near: the nearest; spread: each message uses all adapters; first: the first adapter (default: rank)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail if bytes cannot be routed, or if forwarding tables lead to switches, LIDs or links that LST lacks",
    )


def add_interfaces_argument(parser: argparse.ArgumentParser) -> None:
    """Add --interfaces, which chooses the adapters that jobs use."""
    parser.add_argument(
        "--interfaces",
        metavar="WHICH",
        help=f"adapters that jobs use: {COMPUTE}, {STORAGE}, {ALL_INTERFACES}, names such as mlx5_[0-3],mlx5_9, or a "
        f"partition such as pkey:0x8001 (default: {COMPUTE}, if a host's adapters differ by name, partition, speed or "
        "wiring)",
    )


def add_provenance_argument(parser: argparse.ArgumentParser) -> None:
    """Add --provenance, which chooses between whole paths and file names on pages."""
    parser.add_argument(
        "--provenance",
        choices=(NAMES, FULL),
        default=NAMES,
        help="file paths in the page. names: without folders, for pages that are shared. full: whole paths "
        f"(default: {NAMES})",
    )


def shorten_paths(provenance: str, paths: Iterable[Path]) -> PathRedactor:
    """Return the redactor that replaces file paths on a page.

    Args:
        provenance: `NAMES` or `FULL`.
        paths: files that the command reads and writes, and typed paths.
    """
    return FULL_PATHS if provenance == FULL else PathRedactor.of_files(paths)


def add_adaptive_argument(parser: argparse.ArgumentParser) -> None:
    """Add --adaptive, which requests loads of adaptive routing."""
    parser.add_argument(
        "--adaptive",
        action="store_true",
        help="also report bounds and an estimate of the loads under adaptive routing. The estimate decides the verdict "
        "(default: only if a .far file lists the switches' choices)",
    )


def add_counters_argument(parser: argparse.ArgumentParser) -> None:
    """Add --counters, which names files of port counters."""
    parser.add_argument(
        "--counters",
        nargs="+",
        metavar="FILE",
        default=[],
        help="port counters, to compare with the loads; two files: before and after the job. If LST follows, write -- "
        "after the last FILE",
    )


def add_attribute_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --rank-data and --node-data, which name files with data on ranks and nodes."""
    parser.add_argument(
        "--rank-data",
        metavar="FILE",
        type=Path,
        help="CSV with the column rank. Further columns are numbers or words that colour ranks. Columns x, y and z are "
        "positions on the problem's grid (default: the grid of MPI_Cart_create)",
    )
    parser.add_argument(
        "--node-data",
        metavar="FILE",
        type=Path,
        help="CSV with the column host, node (a description) or guid. Further columns are numbers or words that colour "
        "and select nodes, such as a role",
    )


def add_unrouted_argument(parser: argparse.ArgumentParser) -> None:
    """Add --max-unrouted, the largest accepted percentage of bytes without a route."""
    parser.add_argument(
        "--max-unrouted",
        metavar="PERCENT",
        type=_parse_percentage,
        help="end with status 5 if more than PERCENT of the bytes have no route (default: 1)",
    )


def check_unrouted(lost: UnroutedBytes | None, most: float | None) -> None:
    """Raise an error if too many bytes have no route. Call this after the results are printed.

    Args:
        lost: bytes without a route; None if all bytes have a route.
        most: largest accepted percentage. If None: `MOST_UNROUTED`.

    Raises:
        InconsistentError: more than `most` percent of the bytes have no route.
    """
    from ibprof_converter.traffic.unrouted_bytes import MOST_UNROUTED  # noqa: PLC0415  (--help must come at once)

    limit = MOST_UNROUTED if most is None else most / 100
    if lost and lost.share > limit:
        sys.stdout.flush()
        raise InconsistentError(
            f"more than {100 * limit:.4g}% of the bytes have no route (--max-unrouted): {lost.text}"
        )


def _parse_percentage(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"expected a percentage, 0 to 100, found {text!r}")
    return value


def parse_count(text: str) -> int:
    """Parse a whole number that is not negative."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
    return int(text)


def fabric_options(arguments: argparse.Namespace, fabric_needed: bool = True) -> FabricOptions:
    """Return the options to read the fabrics of the command line.

    Raises:
        UsageError: the command needs a fabric, but the user named none.
    """
    names = split_names(arguments.inputs)[0]
    if fabric_needed and not names:
        raise UsageError("expected at least one LST, then TRAFFIC; see --help")
    return reading_options(arguments, names)


def reading_options(arguments: argparse.Namespace, names: tuple[str, ...]) -> FabricOptions:
    """Return the options to read the named fabrics."""
    return FabricOptions(
        names,
        tuple(arguments.fdbs),
        arguments.host_names,
        arguments.level_hosts,
        strict=arguments.strict,
        name_map=arguments.node_name_map,
        routes=arguments.routes,
        interfaces=arguments.interfaces,
    )


def traffic_options(arguments: argparse.Namespace, flows_limit: int | None = None) -> TrafficOptions:
    """Return the options to read the traffic of the command line, and to map it to a fabric."""
    return TrafficOptions(
        names=split_names(arguments.inputs)[1],
        placements=tuple(arguments.placement or ()),
        rails=arguments.rails,
        nic=arguments.nic,
        by=tuple(getattr(arguments, "by", ())),
        counters=tuple(getattr(arguments, "counters", ())),
        adaptive=getattr(arguments, "adaptive", False),
        strict=arguments.strict,
        flows_limit=flows_limit,
        chosen=row_options(arguments),
    )
