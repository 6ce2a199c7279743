# SPDX-License-Identifier: Apache-2.0
"""Link loads for notebooks and scripts: a fabric and a traffic in, loads that show themselves out.

from ibprof_converter.reports.link_loads import load
load("ibdiagnet.lst", traffic="profile.otf2")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ibprof.text.notebook_html import escape, render_table
from ibprof.text.quantities import format_bytes, format_seconds
from ibprof_converter.hotspots.links import Hotspot, LinkEnds
from ibprof_converter.layout.positions import FabricLayout, lay_out
from ibprof_converter.outputs.rows import Row, link_rows
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import Subnet, check_rails, read_rail
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.loaded_links import Loads, load_counted, load_links
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import read_traffic

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class LinkLoads:
    """What a traffic puts on the links of a fabric.

    Attributes:
        subnets, layouts: the rails.
        placed: the traffic on them.
        loads: of their links.
    """

    subnets: tuple[Subnet, ...]
    layouts: tuple[FabricLayout, ...]
    placed: Traffic | PortCounters
    loads: Loads

    def rows(self, only_used: bool = False) -> Iterator[Row]:
        """Give the rows of links.csv, as dicts; `pandas.DataFrame(loads.rows())` takes them."""
        return link_rows([subnet.fabric for subnet in self.subnets], self.layouts, self.loads, only_used)

    def hottest(self, count: int = _SHOWN) -> tuple[Hotspot, ...]:
        """Give the link ends that carry most, and who loads them."""
        return self._ends().hottest(count)[0]

    def _ends(self) -> LinkEnds:
        flows = self.placed if isinstance(self.placed, Traffic) else None
        return LinkEnds(self.subnets, self.layouts, self.loads, flows)

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        ends = self._ends()
        heat, hottest = ends.heat(), ends.hottest(_SHOWN)[0]
        said = f"{format_bytes(self.loads.bytes_routed)} over {heat.links_used:,} of {heat.links:,} links"
        lost = sum(self.loads.bytes_unrouted.values())
        parts = [
            f"<strong>{escape(self.placed.origin)}</strong>",
            f"<p>{said}; {format_bytes(self.loads.bytes_on_host)} within hosts; {format_bytes(lost)} not routed</p>",
            render_table(
                ("rail", "from", "to", "bytes", "x mean", "least time", "most by"), map(_describe_end, hottest)
            ),
        ]
        return "<div>" + "".join(parts) + "</div>"


def _describe_end(spot: Hotspot) -> Sequence[str]:
    source, destination = (spot.a, spot.b) if spot.end == "a" else (spot.b, spot.a)
    pairs = spot.contributors.rank_pairs if spot.contributors else ()
    who = ""
    if pairs:
        named = pairs[0].source_rank is not None
        ranks = f"rank {pairs[0].source_rank} -> {pairs[0].destination_rank}"
        who = f"{ranks if named else f'{pairs[0].source} -> {pairs[0].destination}'} ({pairs[0].share * 100:.1f} %)"
    return (
        str(spot.rail),
        f"{source.name or source.guid} port {source.port}",
        f"{destination.name or destination.guid} port {destination.port}",
        format_bytes(spot.bytes),
        f"{spot.ratio_to_mean:.2f}",
        "-" if spot.least_time_s is None else format_seconds(spot.least_time_s),
        who,
    )


def load(*fabrics: str, traffic: str, placement: str | None = None, rails: str | None = None) -> LinkLoads:
    """Put a traffic on the links of a fabric.

    Args:
        fabrics: as `ibprof-report` takes them: dumps, folders or names of fabrics that are made up, a rail each.
        traffic: as `ibprof-report` takes it.
        placement: where the ranks are, whatever was recorded.
        rails: which rail bytes take where nothing measured it.

    Raises:
        IbprofError: of any kind.
    """
    subnets = tuple(read_rail(files, rail) for rail, files in enumerate(find_rails(fabrics)))
    check_rails(subnets)
    dumps = [subnet.fabric for subnet in subnets]
    hosts = find_hosts(dumps)
    demand = read_traffic(traffic, hosts, dumps)
    placed = map_to_lids(demand, hosts, dumps, placement, rails) if isinstance(demand, RankTraffic) else demand
    loads = load_links(placed, subnets) if isinstance(placed, Traffic) else load_counted(placed, dumps)
    return LinkLoads(subnets, tuple(lay_out(dumps)), placed, loads)
