# SPDX-License-Identifier: Apache-2.0
"""Find the planes in a list of links. No cable joins two planes, and each adapter is on all planes.

An XDR adapter has a port on each of four planes, and spreads packets over the planes. The four ports share a LID, or
have four LIDs. ibprof reads each plane as a rail, and spreads traffic evenly over these rails.

A chassis can have a switch on each plane. Management links inside the chassis join the switches of a chassis. ibdiagnet
labels the ports of these links `FNM`. An aggregation node is on one plane. Source: public parsers of ibdiagnet's dumps
of XDR fabrics. No complete dump was available.
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
"""A plane has at least this share of all adapters: less than all if some leaf switches are missing."""

_LANE_GBPS = 190.0
"""Least data rate of an XDR lane, in Gb/s. Only XDR adapters have planes."""


_SWITCH_OF_CHASSIS = re.compile(r"/U\d+$")
"""Matches the end of a switch's description if its chassis has several switches."""


def number_planes(listing: Listing) -> npt.NDArray[np.int64] | None:
    """Return the plane of each row: int64 [row], -1 for links inside a chassis. None if the list has no planes.

    Planes are sorted by their lowest switch GUID. Separate parts of a list are planes if adapters, by NODE GUID or
    description, are in several parts. In addition, links must be XDR links, or ports of an adapter must share a LID.
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
        # Two planes have common adapters. Two pieces of one plane, which lacks cables, have no common adapter.
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
    """Return the plane of each part. A part that is no plane, such as a leaf without uplinks, is a piece of a plane.

    Args:
        has: adapters of each part.
        whole: the parts that are planes.

    Returns:
        int64 [part], index into `whole`. A piece belongs to the plane that has none of the piece's adapters. None if no
        plane, or several planes, qualify for any piece.
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
    """Return true for rows that join two switches of one chassis, by description or SystemGUID: bool [row]."""
    of_name: npt.NDArray[np.intp] = np.unique(
        [_SWITCH_OF_CHASSIS.sub("", name) for name in listing.names], return_inverse=True
    )[1]
    named = (listing.name[:, 0] != listing.name[:, 1]) & (np.diff(of_name[listing.name])[:, 0] == 0)
    system = listing.system_guid
    in_system = (system[:, 0] == system[:, 1]) & (system[:, 0] > 0) & (np.diff(listing.node_guid)[:, 0] != 0)
    joined: npt.NDArray[np.bool_] = named | in_system
    return joined


def _shares_lids(listing: Listing) -> bool:
    is_adapter = (listing.kind == NodeKind.CA) & (listing.lid > 0)
    ends = np.stack([listing.node_guid[is_adapter], listing.lid[is_adapter].astype(np.uint64)])
    ports = np.unique(np.vstack([ends, listing.port[is_adapter].astype(np.uint64)]), axis=1)
    _, count = np.unique(ports[:2], axis=1, return_counts=True)
    return bool((count > 1).any())


def take_plane(listing: Listing, plane: int, planes: npt.NDArray[np.int64] | None) -> Listing:
    """Return the links of plane number `plane`; `planes` is the result of `number_planes`."""
    if planes is None:
        raise ValueError(f"{listing.path} has no planes")
    chosen = listing.select(np.flatnonzero(planes == plane))
    count = int(planes.max()) + 1
    remark = f"{count} planes that no cable joins, each with a port of every adapter: traffic is spread over the planes"
    notes = [remark]
    if inside := int((planes < 0).sum()):
        notes.append(f"{inside} rows are left out: their links serve only management, inside a chassis")
    return replace(
        chosen,
        path=f"{chosen.path} (plane {plane + 1})",
        remarks=(*chosen.remarks, *(notes if plane == 0 else [])),
        damage=chosen.damage if plane == 0 else (),
    )
