# SPDX-License-Identifier: Apache-2.0
"""Fabrics with forwarding tables, levels, positions and hosts: what traffic is put on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ibprof.errors import InconsistentError
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import printable
from ibprof_converter.analysis.load_options import FabricOptions, Progress, no_progress
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.positions import FabricLayout, lay_out
from ibprof_converter.outputs.rows import Row, node_rows
from ibprof_converter.routing.route_choice import name_routes, read_routed_rail
from ibprof_converter.routing.subnet import TABLES, Subnet, check_rails
from ibprof_converter.traffic.hosts import Hosts, find_hosts


@dataclass(frozen=True, slots=True, repr=False)
class RoutedFabric(NotebookView):
    """Fabrics, a rail each.

    Attributes:
        subnets: fabric and forwarding tables of each rail.
        layouts: level and position of each node, by rail.
        hosts: machines of all rails.
    """

    subnets: tuple[Subnet, ...]
    layouts: tuple[FabricLayout, ...]
    hosts: Hosts

    def __repr__(self) -> str:
        links = sum(fabric.links for fabric in self.fabrics)
        return printable(
            f"<RoutedFabric {self.name}: {len(self.hosts.name)} hosts, {self.switches} switches, {links} links, "
            f"{len(self.subnets)} rail(s)>"
        )

    @property
    def fabrics(self) -> tuple[Fabric, ...]:
        """The fabric of each rail."""
        return tuple(subnet.fabric for subnet in self.subnets)

    @property
    def switches(self) -> int:
        """Number of switches on all rails."""
        return sum(int((fabric.node_kind == NodeKind.SWITCH).sum()) for fabric in self.fabrics)

    @property
    def name(self) -> str:
        """Names of the rails with their last folders, since dumps of all fabrics have the same file names."""
        return " and ".join("/".join(Path(fabric.name).parts[-2:]) for fabric in self.fabrics)

    @property
    def route_source(self) -> str:
        """Where routes come from: `tables`, `modelled:MODEL` or `opensm:ENGINE`, by rail where they differ."""
        return name_routes(self.subnets)

    def has_links_of(self, other: RoutedFabric) -> bool:
        """Return whether both have the same links between the same nodes, on each rail."""
        return len(self.fabrics) == len(other.fabrics) and all(
            np.array_equal(getattr(mine, name), getattr(theirs, name))
            for mine, theirs in zip(self.fabrics, other.fabrics, strict=True)
            for name in ("node_guid", "link_node", "link_port")
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Oddities of the dumps and of how forwarding tables fit them, a sentence each."""
        return tuple(warning for subnet in self.subnets for warning in subnet.warnings)

    def nodes(self) -> Iterator[Row]:
        """Yield the rows of nodes.csv as dicts; `pandas.DataFrame(fabric.nodes())` takes them."""
        return node_rows(self.fabrics, self.layouts, self.hosts, None)


def read_subnets(options: FabricOptions, progress: Progress = no_progress) -> tuple[Subnet, ...]:
    """Return the rails: each a fabric with its forwarding tables. Missing ones are modelled, but not with `strict`.

    Raises:
        InputError: a file is not what it should be, or tables are missing though they are asked for.
        InconsistentError: two rails are one; with `strict`, forwarding tables lead to what the dumps lack.
        MissingToolError: OpenSM is asked for, and it or ibsim is not installed.
    """
    progress("reading the fabric")
    routes = options.routes or (TABLES if options.strict else None)
    subnets = tuple(read_routed_rail(files, rail, routes) for rail, files in enumerate(options.find_rails()))
    check_rails(subnets)
    if options.strict and (gaps := [gap for subnet in subnets for gap in subnet.gaps]):
        raise InconsistentError(f"--strict: {'; '.join(gaps)}")
    return subnets


def read_routed_fabric(options: FabricOptions, progress: Progress = no_progress) -> RoutedFabric:
    """Return the fabrics with levels, positions and hosts.

    Raises:
        IbprofError: as `read_subnets` does.
    """
    subnets = read_subnets(options, progress)
    fabrics = [subnet.fabric for subnet in subnets]
    return RoutedFabric(subnets, tuple(lay_out(fabrics, options.level_hosts)), find_hosts(fabrics, options.host_names))
