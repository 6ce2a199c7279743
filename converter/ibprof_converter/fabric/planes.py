# SPDX-License-Identifier: Apache-2.0
"""Planes: parts of one list of links that no cable joins. Each plane has the same adapters; XDR has four planes.

An XDR adapter has a port on each of four planes, with one LID or one each. Its hardware spreads packets over them. Each
plane becomes a rail, over which traffic is spread evenly.

A chassis can have a switch on each plane, joined by inner links, whose ports ibdiagnet labels `FNM`. Only management
uses these links. Aggregation nodes are on one plane each.
Source: public parsers of ibdiagnet's dumps of XDR fabrics describe their rows; no whole dump was available.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.graph_search import find_parts
from ibprof_converter.fabric.listing import Groups, Listing
from ibprof_converter.fabric.node_names import is_aggregation_node

_MOST_PLANES = 8
_SHARED = 0.25
"""Share of all adapters that every plane must have: a lost leaf has many adapters."""

_LANE_GBPS = 190.0
"""Minimum data rate of an XDR lane in Gb/s; XDR adapters have planes."""


_SWITCH_OF_CHASSIS = re.compile(r"/U\d+$")
"""Suffix of a switch's description in a chassis with several switches."""


def number_planes(listing: Listing) -> npt.NDArray[np.int64] | None:
    """Return the plane of each row: int64 [row], in the order of the switches' GUIDs; None without planes.

    Links inside a chassis have plane -1. All planes have the same adapters, by NODE GUID or description. The links are
    XDR, or all ports of an adapter have one LID.
    """
    is_switch = listing.kind == NodeKind.SWITCH
    nodes = Groups.by(listing.node_guid)
    between = is_switch.all(axis=1)
    inside = between & _join_chassis(listing)
    part = find_parts(len(nodes.key), nodes.of_end[between & ~inside])
    rows = np.flatnonzero(is_switch.any(axis=1))
    switch_end = np.where(is_switch[rows, 0], 0, 1)
    of_row = part[nodes.of_end[rows, switch_end]]
    parts, plane = np.unique(of_row, return_inverse=True)
    if len(parts) < 2 or len(rows) < len(listing.line):
        return None
    aggregates = np.array([is_aggregation_node(name) for name in listing.names])
    ends = ~between & ~aggregates[listing.name].any(axis=1)
    adapter_end = 1 - switch_end
    rate = listing.gbps / np.maximum(listing.lanes, 1)
    is_xdr = bool((rate[ends] > _LANE_GBPS).any())
    guid = listing.node_guid[rows, adapter_end]
    name = listing.name[rows, adapter_end]
    shares_lids = _shares_lids(listing)
    for key in (guid, name):
        has = [set(key[ends & (plane == number)].tolist()) for number in range(len(parts))]
        every = set().union(*has)
        # Two whole planes share adapters. A piece that broke off a plane shares no adapter with the plane's larger
        # piece.
        ranked = sorted(range(len(has)), key=lambda number: -len(has[number]))
        whole = sorted(
            number
            for at, number in enumerate(ranked)
            if not any(has[number].isdisjoint(has[larger]) for larger in ranked[:at])
        )
        is_shared = len(every) > 1 and min(len(has[number]) for number in whole) >= _SHARED * len(every)
        if is_shared and 1 < len(whole) <= _MOST_PLANES and (of_part := _join_pieces(has, whole)) is not None:
            return np.where(inside, -1, of_part[plane]) if is_xdr or shares_lids else None
    return None


def _join_pieces(has: list[set[int]], whole: list[int]) -> npt.NDArray[np.int64] | None:
    """Return the plane of each part; a leaf that lost its uplinks belongs to the one plane that lacks its adapters.

    Args:
        has: adapters of each part.
        whole: the parts that are planes.

    Returns:
        int64 [part], in the order of `whole`; None if the plane of a part is not known.
    """
    of_part = np.full(len(has), -1, np.int64)
    of_part[whole] = np.arange(len(whole))
    for piece in np.flatnonzero(of_part < 0).tolist():
        lacking = [plane for plane in whole if has[piece].isdisjoint(has[plane])]
        if len(lacking) != 1:
            return None
        of_part[piece] = of_part[lacking[0]]
    return of_part


def _join_chassis(listing: Listing) -> npt.NDArray[np.bool_]:
    """Return a mask of rows that join two switches of one chassis, by description or SystemGUID: bool [row]."""
    of_name: npt.NDArray[np.intp] = np.unique(
        [_SWITCH_OF_CHASSIS.sub("", name) for name in listing.names], return_inverse=True
    )[1]
    named = (listing.name[:, 0] != listing.name[:, 1]) & (np.diff(of_name[listing.name])[:, 0] == 0)
    system = listing.system_guid
    in_system = (system[:, 0] == system[:, 1]) & (system[:, 0] > 0) & (np.diff(listing.node_guid)[:, 0] != 0)
    joined: npt.NDArray[np.bool_] = named | in_system
    return joined


def _shares_lids(listing: Listing) -> bool:
    """Return whether several ports of an adapter share a LID."""
    is_adapter = (listing.kind == NodeKind.CA) & (listing.lid > 0)
    ends = np.stack([listing.node_guid[is_adapter], listing.lid[is_adapter].astype(np.uint64)])
    ports = np.unique(np.vstack([ends, listing.port[is_adapter].astype(np.uint64)]), axis=1)
    _, count = np.unique(ports[:2], axis=1, return_counts=True)
    return bool((count > 1).any())


def take_plane(listing: Listing, plane: int, planes: npt.NDArray[np.int64] | None) -> Listing:
    """Return the links of one plane, with a number from `planes`, the result of `number_planes`."""
    if planes is None:
        raise ValueError(f"{listing.path} has no planes")
    chosen = listing.select(np.flatnonzero(planes == plane))
    count = int(planes.max()) + 1
    remark = f"{count} planes that no cable joins, each with a port of every adapter: traffic is spread over them"
    notes = [remark]
    if inside := int((planes < 0).sum()):
        notes.append(f"{inside} rows of links inside chassis join planes: only management uses these links")
    return replace(
        chosen,
        path=f"{chosen.path} (plane {plane + 1})",
        remarks=(*chosen.remarks, *(notes if plane == 0 else [])),
        damage=chosen.damage if plane == 0 else (),
    )
