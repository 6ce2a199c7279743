# SPDX-License-Identifier: Apache-2.0
"""Links and nodes as rows of plain values, the same for every output that lists them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.lower_end import lower_ends, order_of_links
from ibprof_converter.layout.positions import FabricLayout
from ibprof_converter.routing.adaptive_bounds import AdaptiveBounds
from ibprof_converter.traffic.counter_agreement import Agreement
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.loaded_links import Loads
from ibprof_converter.traffic.rail_bounds import Bounds
from ibprof_converter.traffic.traffic_data import ALL

Value = int | float | str | list[int] | list[str] | None
Row = dict[str, Value]

_END_COLUMNS = ("guid", "name", "port", "level", "x", "y")
_END_NAMES = {letter: [f"{letter}_{column}" for column in _END_COLUMNS] for letter in "ab"}

LINK_COLUMNS = (
    "rail",
    *_END_NAMES["a"],
    *_END_NAMES["b"],
    *("gbps", "region", "operation", "a_bytes", "b_bytes"),
)

SITE_COLUMN = "site"
"""A further column after `operation`, where call sites are distinguished."""

JOB_COLUMNS = ("job",)
"""Further columns after the others, where there are several jobs."""

COUNTER_COLUMNS = ("a_counted", "b_counted")
"""Further columns after all others, with port counters."""

BOUND_COLUMNS = ("a_shared", "b_shared", "a_most", "b_most", "a_estimate", "b_estimate")
"""Further columns before counters, with adaptive routing: bounds and estimate of the loads."""

NODE_COLUMNS = ("rail", "guid", "name", "kind", "level", "x", "y", "lids", "ranks", "host")

_KINDS = {NodeKind.CA: "CA", NodeKind.SWITCH: "switch", NodeKind.ROUTER: "router"}


def link_columns(loads: Loads, agreement: Agreement | None = None, bounds: Bounds | None = None) -> tuple[str, ...]:
    """Return the columns that `link_rows` fills: more with call sites, several jobs, adaptive routing, counters."""
    jobs = JOB_COLUMNS if loads.jobs else ()
    columns = LINK_COLUMNS
    if loads.sites:
        after = columns.index("operation") + 1
        columns = (*columns[:after], SITE_COLUMN, *columns[after:])
    return (*columns, *jobs, *(BOUND_COLUMNS if bounds else ()), *(COUNTER_COLUMNS if agreement else ()))


def link_rows(
    fabrics: Sequence[Fabric],
    layouts: Sequence[FabricLayout],
    loads: Loads,
    only_used: bool = False,
    agreement: Agreement | None = None,
    bounds: Bounds | None = None,
) -> Iterator[Row]:
    """Yield a row for each link; with regions, operations or sites, a row for each of them with bytes on the link.

    A link without traffic has one row, of 0 bytes and `ALL` in those columns, unless `only_used` leaves it out.

    Args:
        fabrics, layouts: the rails.
        loads: of their links.
        only_used: whether to leave out links without traffic.
        agreement: with port counters.
        bounds: of adaptive routing. Counters and bounds are of all regions and operations: equal in all rows of a link.

    Yields:
        A dict of `link_columns`; `gbps` and counters are None where they are not known.
    """
    for rail, (fabric, layout, loaded) in enumerate(zip(fabrics, layouts, loads.by_rail, strict=True)):
        lower = lower_ends(fabric, layout).tolist()
        places = _LinkPlaces(rail, fabric, layout)
        used = _used_groups(loaded)
        for link in order_of_links(fabric, layout).tolist():
            a = lower[link]
            where = places.columns(link, a)
            additional = _bound_columns(bounds.by_rail[rail], link, a) if bounds else {}
            additional |= _counted_columns(agreement, rail, link, a) if agreement else {}
            for load in _loads_of_link(loads, loaded[link], used[link], a, only_used):
                yield where | load | additional


def _bound_columns(bounds: AdaptiveBounds, link: int, a: int) -> Row:
    ends = (a, 1 - a)
    values = [round(float(load[link, end])) for load in (bounds.shared, bounds.most, bounds.estimate) for end in ends]
    return dict(zip(BOUND_COLUMNS, values, strict=True))


def _counted_columns(agreement: Agreement, rail: int, link: int, a: int) -> Row:
    ends = zip(COUNTER_COLUMNS, (a, 1 - a), strict=True)
    known, counted = agreement.known[rail][link], agreement.counted[rail][link]
    return {column: int(counted[end]) if known[end] else None for column, end in ends}


def _used_groups(loaded: npt.NDArray[np.uint64]) -> list[list[int]]:
    """Return the groups that have bytes on each link."""
    links, groups = np.nonzero(loaded.any(axis=1))
    begin = np.searchsorted(links, np.arange(len(loaded) + 1)).tolist()
    each = groups.tolist()
    return [each[first:last] for first, last in pairwise(begin)]


def _loads_of_link(
    loads: Loads, loaded: npt.NDArray[np.uint64], used: list[int], a: int, only_used: bool
) -> Iterator[Row]:
    for group in used:
        region, operation = loads.groups[group]
        row: Row = {"region": region, "operation": operation}
        row |= {SITE_COLUMN: loads.sites[group]} if loads.sites else {}
        row |= {"a_bytes": int(loaded[a, group]), "b_bytes": int(loaded[1 - a, group])}
        yield row | ({"job": loads.jobs[group]} if loads.jobs else {})
    if not used and not only_used:
        idle: Row = {"region": ALL, "operation": ALL, "a_bytes": 0, "b_bytes": 0}
        idle |= {SITE_COLUMN: ALL} if loads.sites else {}
        yield idle | ({"job": ALL} if loads.jobs else {})


class _LinkPlaces:
    """Common columns of all rows of a link; read from the arrays of a rail once."""

    def __init__(self, rail: int, fabric: Fabric, layout: FabricLayout) -> None:
        self._rail = rail
        self._nodes, self._ports, self._gbps = (
            column.tolist() for column in (fabric.link_node, fabric.link_port, fabric.link_gbps)
        )
        guids = [_guid(fabric, node) for node in range(len(fabric.node_name))]
        levels, x, y = layout.level.tolist(), layout.x.astype(float).tolist(), layout.y.astype(float).tolist()
        self._node_columns = list(zip(guids, fabric.node_name, levels, x, y, strict=True))

    def columns(self, link: int, a: int) -> Row:
        """Return the columns of a link; `a` is its lower end."""
        row: Row = {"rail": self._rail}
        for letter, end in (("a", a), ("b", 1 - a)):
            guid, name, level, x, y = self._node_columns[self._nodes[link][end]]
            row |= zip(_END_NAMES[letter], (guid, name, self._ports[link][end], level, x, y), strict=True)
        gbps = self._gbps[link]
        row["gbps"] = None if math.isnan(gbps) else gbps
        return row


def node_rows(
    fabrics: Sequence[Fabric],
    layouts: Sequence[FabricLayout],
    hosts: Hosts,
    rank_lid: npt.NDArray[np.int32] | None,
    names: Sequence[str] = (),
) -> Iterator[Row]:
    """Yield a row for each node.

    Args:
        fabrics, layouts: the rails.
        hosts: of the rails.
        rank_lid: int32 [rank, rail], the port of each rank, where the traffic knows ranks.
        names: of the ranks, where there are several jobs; none: their numbers.

    Yields:
        A dict of `NODE_COLUMNS`; `lids` and `ranks` are lists, ascending; `host` is empty for what is no host's.
    """
    for rail, (fabric, layout) in enumerate(zip(fabrics, layouts, strict=True)):
        lids = _lids_by_node(fabric)
        ranks: dict[int, list[int]] = {}
        if rank_lid is not None:
            for rank, node in enumerate(fabric.lid_node[rank_lid[:, rail]].tolist()):
                ranks.setdefault(node, []).append(rank)
        for node in np.lexsort((fabric.node_guid, layout.level)).tolist():
            yield {
                "rail": rail,
                "guid": _guid(fabric, node),
                "name": fabric.node_name[node],
                "kind": _KINDS[NodeKind(fabric.node_kind[node])],
                "level": int(layout.level[node]),
                "x": float(layout.x[node]),
                "y": float(layout.y[node]),
                "lids": lids.get(node, []),
                "ranks": [names[rank] for rank in ranks.get(node, [])] if names else ranks.get(node, []),
                "host": hosts.name[host] if (host := int(hosts.of_node[rail][node])) != NO_HOST else "",
            }


def _lids_by_node(fabric: Fabric) -> dict[int, list[int]]:
    lids: dict[int, list[int]] = {}
    given = np.flatnonzero(fabric.lid_port >= 0)
    for lid, node in zip(given.tolist(), fabric.lid_node[given].tolist(), strict=True):
        lids.setdefault(node, []).append(lid)
    return lids


def _guid(fabric: Fabric, node: int) -> str:
    return f"0x{int(fabric.node_guid[node]):016x}"
