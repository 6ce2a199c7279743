# SPDX-License-Identifier: Apache-2.0
"""Source of a rail's routes: its forwarding tables, OpenSM on this machine, or a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike, fspath

from ibprof.errors import InputError
from ibprof_converter.choices import D_MOD_K, MIN_HOP, MODELLED, OPENSM, TABLES
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.routing.rail_files import RailFiles, find_rails
from ibprof_converter.routing.subnet import MissingTablesError, Subnet, join_subnet, read_rail, read_rail_fabric

_DEFAULT_ENGINE = "minhop"

_EXPLAINED = {
    f"{MODELLED}:{D_MOD_K}": "shortest routes as engines for fat-trees choose them, not the subnet's own",
    f"{MODELLED}:{MIN_HOP}": "shortest routes as OpenSM's default engine chooses them, not the subnet's own",
    OPENSM: "OpenSM on this machine routed the list of links on ibsim; not the subnet's own tables",
}


def read_routed_rail(files: RailFiles, number: int = 0, routes: str | None = None) -> Subnet:
    """Read the files of one rail, or generate it, with routes of any origin.

    Args:
        files: the rail's files.
        number: the rail's number, which distinguishes synthetic rails.
        routes: source of the routes, in the form that `parse_routes` returns; None: the rail's tables, else a model.

    Raises:
        InputError: a file is invalid, or the requested tables do not exist.
        InconsistentError: the files describe different fabrics, or OpenSM cannot route the fabric.
        MissingToolError: OpenSM or ibsim is not installed.
        UsageError: the synthetic fabric is impossible.
    """
    kind, _, detail = (routes or TABLES).partition(":")
    if kind == OPENSM:
        from ibprof_converter.routing.opensm_run import route_by_opensm  # noqa: PLC0415  (most fabrics come with tables)

        return route_by_opensm(read_rail_fabric(files, number), detail or _DEFAULT_ENGINE).subnet
    unused: tuple[str, ...] = ()
    if kind == TABLES:
        try:
            return read_rail(files, number)
        except MissingTablesError as error:
            if routes is not None:
                raise
            unused = error.unused
    fabric = read_rail_fabric(files, number)
    from ibprof_converter.routing.modelled_tables import model_tables  # noqa: PLC0415  (most fabrics come with tables)

    tables, model = model_tables(fabric, detail or None)
    subnet = join_subnet(fabric, tables, route_source=f"{MODELLED}:{model}")
    return replace(subnet, warnings=(*subnet.warnings, *unused)) if unused else subnet


def read_routed_subnet(path: str | PathLike[str], routes: str | None = None) -> Subnet:
    """Read a fabric of one rail, with its tables or with modelled routes.

    Args:
        path: path of the fabric's dumps.
        routes: source of the routes, as in `read_routed_rail`.

    Raises:
        InputError: a file is invalid, or the path is a folder of several rails.
        IbprofError: as `read_routed_rail` does.
    """
    rails = find_rails([path])
    if len(rails) != 1:
        found = f"{len(rails)}: {show_some([str(rail.links) for rail in rails])}" if rails else "none"
        raise InputError(fspath(path), None, "the dumps of one rail", found)
    return read_routed_rail(rails[0], 0, routes)


def name_routes(subnets: Sequence[Subnet]) -> str:
    """Return the source of the rails' routes: `TABLES`, or another source by rail."""
    return " and ".join(dict.fromkeys(subnet.route_source for subnet in subnets))


def describe_routes(subnets: Sequence[Subnet]) -> str | None:
    """Return a sentence on the source of routes; None if all routes come from tables that were read."""
    sources = [source for source in dict.fromkeys(subnet.route_source for subnet in subnets) if source != TABLES]
    if not sources:
        return None
    told = "; ".join(f"{source} ({_EXPLAINED[source if source in _EXPLAINED else OPENSM]})" for source in sources)
    return f"routes: {told}"


def are_modelled(subnets: Sequence[Subnet]) -> bool:
    """Return true if the routes of any rail are modelled."""
    return any(subnet.route_source.startswith(MODELLED) for subnet in subnets)
