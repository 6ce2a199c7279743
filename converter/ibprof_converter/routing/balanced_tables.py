# SPDX-License-Identifier: Apache-2.0
"""Compute forwarding tables with shortest routes that use all links evenly; the traffic has no influence.

A comparison of balanced tables with the present tables shows the effect of routing alone. On fabrics with cycles
(tori, dragonflies), balanced routes can deadlock.

Source: T. Hoefler, T. Schneider, A. Lumsdaine, "Optimized Routing for Large-Scale InfiniBand Networks", HOTI 2009.
Routes to each destination use the links that earlier routes use least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.subnet_routes import NONE, IndexedNetwork
from ibprof_converter.routing.tables import ForwardingTables

_FAR = 1 << 20


@dataclass(frozen=True, slots=True)
class _SwitchEnds:
    """Link directions between switches: index (2 * link + end), sending switch, receiving switch and data rate."""

    number: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    gbps: npt.NDArray[np.float64]


def balance_tables(fabric: Fabric, tables: ForwardingTables) -> ForwardingTables:
    """Return tables with balanced shortest routes to all CAs and routers, for each switch with a table.

    Args:
        tables: the present tables, whose routes to switches are kept.
    """
    network = IndexedNetwork.index(fabric, tables)
    ends = _find_switch_ends(network)
    leaves, lids, ports = _find_destinations(network)
    distance = _measure_distances(len(network.switch_node), ends)
    sources = np.bincount(leaves, minlength=len(network.switch_node)).astype(np.float64)
    table = tables.port.copy()
    load = np.zeros(len(ends.number))
    egress = fabric.link_port.ravel()[ends.number]
    # Route all destinations at one leaf switch, then those at the next: this loads the links of a tree evenly.
    for each in np.argsort(leaves, kind="stable"):
        leaf, lid = int(leaves[each]), int(lids[each])
        chosen = _route(ends, distance[:, leaf], leaf, sources, load)
        block = slice(lid, lid + (1 << int(fabric.port_lmc[fabric.lid_port[lid]])))
        rows = network.row[ends.source[chosen]]
        table[rows[rows != NONE], block] = egress[chosen][rows != NONE, np.newaxis]
        if network.row[leaf] != NONE:
            table[network.row[leaf], block] = ports[each]
    return ForwardingTables(f"{tables.name}, balanced", tables.switch_guid, table)


def _find_switch_ends(network: IndexedNetwork) -> _SwitchEnds:
    fabric = network.fabric
    node = fabric.link_node.ravel()
    number = np.arange(len(node))
    source, target = network.switch_of[node], network.switch_of[network.next_node[:-1]]
    between = (source != NONE) & (target != NONE) & (source != target)
    gbps = np.repeat(np.nan_to_num(fabric.link_gbps, nan=1.0), 2)
    return _SwitchEnds(
        number[between], source[between].astype(np.int64), target[between].astype(np.int64), gbps[between]
    )


def _find_destinations(
    network: IndexedNetwork,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return leaf switch, LID and the leaf's egress port for each CA or router port that is cabled to a switch."""
    fabric = network.fabric
    is_host = fabric.node_kind[fabric.port_node] != NodeKind.SWITCH
    end = np.where(is_host, network.end_at[fabric.port_node, fabric.port_number], NONE)
    leaf = np.where(end == NONE, NONE, network.switch_of[network.next_node[end]])
    found = np.flatnonzero((leaf != NONE) & (fabric.port_lid > 0))
    return (
        leaf[found].astype(np.int64),
        fabric.port_lid[found].astype(np.int64),
        fabric.link_port.ravel()[end[found] ^ 1].astype(np.int64),
    )


def _measure_distances(switches: int, ends: _SwitchEnds) -> npt.NDArray[np.int64]:
    """Return the number of hops between switches: int64 [switch, switch]."""
    near = np.zeros((switches, switches), np.float32)
    near[ends.source, ends.target] = 1
    distance = np.full((switches, switches), _FAR, np.int64)
    np.fill_diagonal(distance, 0)
    reached = np.eye(switches, dtype=np.float32)
    for hops in range(1, switches):
        reached = (near @ reached > 0).astype(np.float32)
        new = (reached > 0) & (distance == _FAR)
        if not new.any():
            break
        distance[new] = hops
    return distance


def _route(
    ends: _SwitchEnds,
    distance: npt.NDArray[np.int64],
    leaf: int,
    sources: npt.NDArray[np.float64],
    load: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """Choose the link direction on which each switch sends to a leaf.

    Add to `load` the bytes that all hosts send to the leaf.

    Returns:
        Indices into `ends`, one for each switch that reaches the leaf.
    """
    shorter = np.flatnonzero((distance[ends.source] < _FAR) & (distance[ends.source] == distance[ends.target] + 1))
    hops = distance[ends.source[shorter]]
    by_hops = [shorter[hops == each] for each in range(1, int(hops.max(initial=0)) + 1)]
    # From the leaf outwards, find each switch's best path to the leaf: the path whose most loaded link has the smallest
    # load.
    ahead = np.zeros(len(distance))
    chosen = []
    for candidates in by_hops:
        own = load[candidates] / ends.gbps[candidates]
        worst = np.maximum(own, ahead[ends.target[candidates]])
        order = np.lexsort((own, worst, ends.source[candidates]))
        source = ends.source[candidates][order]
        first = np.append(True, source[1:] != source[:-1])
        ahead[source[first]] = worst[order][first]
        chosen.append(candidates[order[first]])
    # From the farthest switches inwards, sum the number of hosts that send through each switch.
    passing = sources.copy()
    passing[leaf] = 0
    for each in reversed(chosen):
        load[each] += passing[ends.source[each]]
        np.add.at(passing, ends.target[each], passing[ends.source[each]])
    return np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
