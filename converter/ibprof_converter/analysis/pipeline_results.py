# SPDX-License-Identifier: Apache-2.0
"""Results of the pipeline: fabrics with forwarding tables, and link loads with the traffic that causes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.profile.missing_data import LEFT_OUT
from ibprof.profile.profile_data import Profile
from ibprof.text.notebook_html import NotebookView
from ibprof.text.quantities import format_bytes, printable
from ibprof_converter.choices import TABLES
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.hotspots.coverage import Coverage, describe_left_out
from ibprof_converter.hotspots.hot_links import Hotspot, LinkDirections, LinkHeat
from ibprof_converter.layout.positions import FabricLayout
from ibprof_converter.outputs.rows import Row, Table, link_table, node_rows, rows_of
from ibprof_converter.routing.route_choice import describe_routes, name_routes
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.adapter_policies import MODELLED, describe_nic
from ibprof_converter.traffic.hosts import Hosts
from ibprof_converter.traffic.interfaces import describe_interfaces
from ibprof_converter.traffic.link_loads import Bounds, Loads
from ibprof_converter.traffic.port_counters import Agreement
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic, describe_origin
from ibprof_converter.traffic.unrouted_bytes import UnroutedBytes, find_unrouted

STATIC_PARTS = (
    "switches route adaptively: the estimate decides the order of links and the verdict. Pictures, the view, graphs "
    "and lists of hosts use static routes"
)


@dataclass(frozen=True, slots=True, repr=False)
class RoutedFabric(NotebookView):
    """Fabrics, one per rail.

    Attributes:
        subnets: fabric and forwarding tables of each rail.
        layouts: levels and positions of the nodes of each rail.
        hosts: the hosts of all rails.
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
        """Names of the rails: last folder and file name, because dumps of several fabrics may have one file name."""
        return " and ".join("/".join(Path(fabric.name).parts[-2:]) for fabric in self.fabrics)

    @property
    def route_source(self) -> str:
        """Source of routes: `tables`, `modelled:MODEL` or `opensm:ENGINE`; one per rail if the rails differ."""
        return name_routes(self.subnets)

    def has_links_of(self, other: RoutedFabric) -> bool:
        """Return true if each rail has the same links between the same nodes in both fabrics."""
        return len(self.fabrics) == len(other.fabrics) and all(
            np.array_equal(getattr(mine, name), getattr(theirs, name))
            for mine, theirs in zip(self.fabrics, other.fabrics, strict=True)
            for name in ("node_guid", "link_node", "link_port")
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on anomalies of the dumps, and of their forwarding tables."""
        return tuple(warning for subnet in self.subnets for warning in subnet.warnings)

    def nodes(self) -> Iterator[Row]:
        """Yield the rows of nodes.csv as dicts, for example for `pandas.DataFrame(fabric.nodes())`."""
        return node_rows(self.fabrics, self.layouts, self.hosts, None)


@dataclass(frozen=True, slots=True, repr=False)
class FabricLoads(NotebookView):
    """Link loads of a traffic on a fabric.

    Attributes:
        fabric: the rails.
        demand: the traffic between ranks; None without ranks, and for several jobs.
        profiles: the recorded run of each job; None for a job that was not recorded.
        placed: the traffic of all jobs, from LID to LID, or port counters.
        loads: bytes of the links.
        coverage: unseen and modelled data.
        agreement: comparison with port counters; None without port counters.
        bounds: bounds on the link loads, if they were requested, a dump shows adaptive routing, or routes are modelled;
            otherwise, and for port counters, None.
    """

    fabric: RoutedFabric
    demand: RankTraffic | None
    profiles: tuple[Profile | None, ...]
    placed: Traffic | PortCounters
    loads: Loads
    coverage: Coverage
    agreement: Agreement | None = None
    bounds: Bounds | None = None

    def __repr__(self) -> str:
        loads = self.loads
        unrouted = sum(loads.bytes_unrouted.values())
        return (
            f"<FabricLoads {self.title}: {format_bytes(loads.bytes_routed)} over links, "
            f"{format_bytes(loads.bytes_on_host)} within hosts, {format_bytes(unrouted)} not routed>"
        )

    @property
    def by_rail(self) -> tuple[npt.NDArray[np.uint64], ...]:
        """Loads of each rail: uint64 [link, end, group], bytes that the node at `end` sends on the link."""
        return self.loads.by_rail

    @property
    def traffic(self) -> Traffic | None:
        """The flows between ports; None for port counters."""
        return self.placed if isinstance(self.placed, Traffic) else None

    @property
    def judging_bounds(self) -> Bounds | None:
        """The bounds whose estimates decide the order of links and the verdict; None without adaptive routing."""
        return self.bounds if self.bounds and self.bounds.is_adaptive else None

    @property
    def title(self) -> str:
        """Name of the traffic and of the fabric."""
        return printable(f"{self.placed.origin} on {self.fabric.name}")

    @property
    def subtitle(self) -> str:
        """Routed, local and unrouted bytes, in one line."""
        loads = self.loads
        busiest = max(int(each.sum(axis=2, dtype=np.uint64).max(initial=0)) for each in loads.by_rail)
        text = (
            f"{format_bytes(loads.bytes_routed)} over links, {format_bytes(busiest)} on the most loaded link direction"
        )
        if loads.bytes_on_host:
            text += f"; {format_bytes(loads.bytes_on_host)} within hosts"
        if unrouted := sum(loads.bytes_unrouted.values()):
            text += f"; {format_bytes(unrouted)} not routed"
        if self.traffic and len(self.fabric.subnets) > 1:
            text += f"; rails {self.traffic.rail_source}"
        if self.traffic and self.traffic.nic:
            text += f"; adapters {self.traffic.nic}"
        if self.traffic and self.fabric.route_source != TABLES:
            text += f"; routes {self.fabric.route_source}"
        if self.judging_bounds:
            text += "; loads of static routes, though switches route adaptively"
        return text

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences that each output of the loads must show: notes, bounds, and bytes that load no link."""
        loads = self.loads
        losses = (each for each in describe_left_out(self.coverage) if each.startswith(LEFT_OUT))
        lines = [*self.coverage.lost, *losses, *self.coverage.notes]
        if self.traffic and self.traffic.nic and MODELLED in self.traffic.nic:
            lines.insert(0, f"adapters that send the bytes: {describe_nic(self.traffic.nic)}")
        if self.traffic and (routes := describe_routes(self.fabric.subnets)):
            lines.insert(0, routes)
        lines[:0] = describe_interfaces(self.fabric.fabrics)
        if self.bounds:
            lines.append(f"{self.bounds.reason}: {self.bounds.label}")
        for reason, amount in loads.bytes_unrouted.items():
            lines.append(f"{amount} of {loads.bytes_total} bytes are on no link: {reason}")
        if loads.bytes_total and loads.bytes_on_host == loads.bytes_total:
            lines.append("all bytes stay within hosts, so no link is loaded; --placement puts ranks on other hosts")
        return tuple(lines)

    def rows(self, only_used: bool = False) -> Iterator[Row]:
        """Yield the rows of links.csv as dicts, for example for `pandas.DataFrame(loads.rows())`.

        Args:
            only_used: true to leave out links without traffic.
        """
        return rows_of(self.table(only_used))

    def table(self, only_used: bool = False) -> Table:
        """Return the columns of links.csv, for example for `pandas.DataFrame(loads.table())`.

        Args:
            only_used: true to leave out links without traffic.
        """
        fabric = self.fabric
        return link_table(fabric.fabrics, fabric.layouts, self.loads, only_used, self.agreement, self.bounds)

    def nodes(self) -> Iterator[Row]:
        """Yield the rows of nodes.csv as dicts, with the ranks on each node."""
        traffic = self.traffic
        names = traffic.rank_names if traffic and len(traffic.jobs) > 1 else ()
        return node_rows(
            self.fabric.fabrics, self.fabric.layouts, self.fabric.hosts, traffic.rank_lid if traffic else None, names
        )

    def most_loaded(self, count: int = 10) -> tuple[Hotspot, ...]:
        """Return the most loaded link directions, with the ranks that load them."""
        return self.ends().most_loaded(count, groups=0).hotspots

    def heat(self) -> LinkHeat:
        """Return the largest load, and the mean load of the link directions that carry bytes."""
        return self.ends().heat()

    def ends(self) -> LinkDirections:
        """Return the link directions of all rails with their loads."""
        return LinkDirections(self.fabric.subnets, self.fabric.layouts, self.loads, self.traffic, self.judging_bounds)

    def find_unrouted(self) -> UnroutedBytes | None:
        """Return the bytes without a route; None if all bytes have a route."""
        return find_unrouted(self.placed, self.fabric.subnets, self.loads)

    def about(self) -> dict[str, object]:
        """Return the traffic, the fabric and the totals as plain values."""
        return {
            "traffic": describe_origin(self.placed),
            "fabrics": [fabric.name for fabric in self.fabric.fabrics],
            "rails": self.traffic.rail_source if self.traffic else None,
            "nic": self.traffic.nic if self.traffic else None,
            "routes": self.fabric.route_source if self.traffic else None,
            "bytes_total": self.loads.bytes_total,
            "bytes_routed": self.loads.bytes_routed,
            "bytes_on_host": self.loads.bytes_on_host,
            "bytes_unrouted": self.loads.bytes_unrouted,
        }
