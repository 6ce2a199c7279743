# SPDX-License-Identifier: Apache-2.0
"""Convert links and nodes to rows of plain values, which all outputs use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.positions import FabricLayout, lower_ends, order_of_links
from ibprof_converter.traffic.hosts import NO_HOST, Hosts
from ibprof_converter.traffic.link_loads import Bounds, Loads
from ibprof_converter.traffic.port_counters import Agreement
from ibprof_converter.traffic.traffic_data import ALL

Value = int | float | str | list[int] | list[str] | None
Row = dict[str, Value]
Table = dict[str, list[Value]]
"""Name of a column -> its values; all columns have the same length."""

_END_COLUMNS = ("guid", "name", "port", "level", "x", "y")
_END_NAMES = {letter: [f"{letter}_{column}" for column in _END_COLUMNS] for letter in "ab"}

LINK_COLUMNS = (
    "rail",
    *_END_NAMES["a"],
    *_END_NAMES["b"],
    *("gbps", "region", "operation", "a_bytes", "b_bytes"),
)

SITE_COLUMN = "site"
"""Column after `operation`, if call sites are distinguished."""

JOB_COLUMNS = ("job",)
"""Column after `b_bytes`, if there are several jobs."""

COUNTER_COLUMNS = ("a_counted", "b_counted")
"""Last columns, with port counters: counted bytes."""

BOUND_COLUMNS = ("a_shared", "b_shared", "a_most", "b_most", "a_estimate", "b_estimate")
"""Columns before `COUNTER_COLUMNS`, with adaptive routing: bounds and estimates of the loads."""

NODE_COLUMNS = ("rail", "guid", "name", "kind", "level", "x", "y", "lids", "ranks", "host")

_KINDS = {NodeKind.CA: "CA", NodeKind.SWITCH: "switch", NodeKind.ROUTER: "router"}


def link_columns(loads: Loads, agreement: Agreement | None = None, bounds: Bounds | None = None) -> tuple[str, ...]:
    """Return the names of the columns of `link_table`."""
    jobs = JOB_COLUMNS if loads.jobs else ()
    columns = LINK_COLUMNS
    if loads.sites:
        after = columns.index("operation") + 1
        columns = (*columns[:after], SITE_COLUMN, *columns[after:])
    return (*columns, *jobs, *(BOUND_COLUMNS if bounds else ()), *(COUNTER_COLUMNS if agreement else ()))


def link_table(
    fabrics: Sequence[Fabric],
    layouts: Sequence[FabricLayout],
    loads: Loads,
    only_used: bool = False,
    agreement: Agreement | None = None,
    bounds: Bounds | None = None,
) -> Table:
    """Return a row for each link and each (region, operation, site, job) with bytes on this link.

    A link without traffic has a row with 0 bytes and `ALL` as region, operation, site and job.

    Args:
        only_used: true to leave out links without traffic.
        agreement: comparison with port counters.
        bounds: bounds of adaptive routing. Counters and bounds are totals of a link, and are equal in all rows of the
            link.

    Returns:
        A table with the columns of `link_columns`; unknown `gbps` and counters are None.
    """
    table: Table = {column: [] for column in link_columns(loads, agreement, bounds)}
    for rail, (fabric, layout, loaded) in enumerate(zip(fabrics, layouts, loads.by_rail, strict=True)):
        link, group = _order_rows(fabric, layout, loaded, only_used)
        ends = np.stack([(lower := lower_ends(fabric, layout)[link]), 1 - lower])
        table["rail"] += [rail] * len(link)
        for letter, end in zip("ab", ends, strict=True):
            _add_end_columns(table, letter, fabric, layout, link, end)
            used = np.where(
                group < len(loads.groups), loaded[link, end, np.minimum(group, len(loads.groups) - 1)], np.uint64(0)
            )
            table[f"{letter}_bytes"] += used.tolist()
        table["gbps"] += [None if math.isnan(each) else each for each in fabric.link_gbps[link].tolist()]
        regions, operations = zip(*loads.groups, (ALL, ALL), strict=True)
        names = {"region": regions, "operation": operations}
        names |= {column: (*name, ALL) for column, name in ((SITE_COLUMN, loads.sites), ("job", loads.jobs)) if name}
        for column, name in names.items():
            table[column] += map(name.__getitem__, group.tolist())
        if bounds:
            known = bounds.by_rail[rail]
            amounts = (load[link, end] for load in (known.shared, known.most, known.estimate) for end in ends)
            for column, amount in zip(BOUND_COLUMNS, amounts, strict=True):
                table[column] += [round(each) for each in amount.tolist()]
        if agreement:
            for column, end in zip(COUNTER_COLUMNS, ends, strict=True):
                counted = zip(
                    agreement.counted[rail][link, end].tolist(), agreement.known[rail][link, end], strict=True
                )
                table[column] += [int(each) if is_known else None for each, is_known in counted]
    return table


def link_rows(
    fabrics: Sequence[Fabric], layouts: Sequence[FabricLayout], loads: Loads, only_used: bool = False
) -> Iterator[Row]:
    """Yield the rows of `link_table` as dicts."""
    return rows_of(link_table(fabrics, layouts, loads, only_used))


def rows_of(table: Table) -> Iterator[Row]:
    """Yield the rows of a table as dicts."""
    return (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))


def table_of(columns: Sequence[str], rows: Iterable[Row]) -> Table:
    """Return the given columns of rows as a table."""
    rows = list(rows)
    return {column: [row[column] for row in rows] for column in columns}


def _order_rows(
    fabric: Fabric, layout: FabricLayout, loaded: npt.NDArray[np.uint64], only_used: bool
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the link of each row, and its index in `Loads.groups`; len(groups) for a link without traffic."""
    place = np.empty(fabric.links, np.intp)
    place[order_of_links(fabric, layout)] = np.arange(fabric.links)
    is_used = np.asarray(loaded.any(axis=1), np.bool_)
    link, group = np.nonzero(is_used)
    if not only_used:
        idle = np.flatnonzero(~is_used.any(axis=1))
        link = np.append(link, idle)
        group = np.append(group, np.full(len(idle), loaded.shape[2]))
    order = np.lexsort((group, place[link]))
    return link[order], group[order]


def _add_end_columns(
    table: Table,
    letter: str,
    fabric: Fabric,
    layout: FabricLayout,
    link: npt.NDArray[np.intp],
    end: npt.NDArray[np.intp],
) -> None:
    node = fabric.link_node[link, end]
    numbers = node.tolist()
    guids = [f"0x{guid:016x}" for guid in fabric.node_guid.tolist()]
    table[f"{letter}_guid"] += map(guids.__getitem__, numbers)
    table[f"{letter}_name"] += map(fabric.node_name.__getitem__, numbers)
    table[f"{letter}_port"] += fabric.link_port[link, end].tolist()
    table[f"{letter}_level"] += layout.level[node].tolist()
    table[f"{letter}_x"] += layout.x[node].astype(float).tolist()
    table[f"{letter}_y"] += layout.y[node].astype(float).tolist()


def node_rows(
    fabrics: Sequence[Fabric],
    layouts: Sequence[FabricLayout],
    hosts: Hosts,
    rank_lid: npt.NDArray[np.int32] | None,
    names: Sequence[str] = (),
) -> Iterator[Row]:
    """Yield a row for each node.

    Args:
        rank_lid: int32 [rank, rail], LID of each rank's port; None if the traffic has no ranks.
        names: names of the ranks, with several jobs; empty to use the ranks' numbers.

    Yields:
        A dict of `NODE_COLUMNS`; `lids` and `ranks` are ascending lists; `host` is empty for nodes without a host.
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
