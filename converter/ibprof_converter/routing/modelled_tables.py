# SPDX-License-Identifier: Apache-2.0
"""Model forwarding tables for fabrics with unknown tables. All routes are shortest paths.

`MIN_HOP`: a switch sends to each adapter by the least used of its ports on shortest paths, as with OpenSM's default
engine. `D_MOD_K`, for regular trees: the adapter's number selects the uplinks, as in fat-tree engines.

Source: OpenSM 3.3.23, osm_ucast_mgr.c and osm_switch.c; E. Zahavi, "D-Mod-K routing providing non-blocking traffic for
shift permutations on real life fat trees", CCIT report 776, Technion, 2010.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.choices import D_MOD_K, MIN_HOP
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.graph_search import count_hops, find_parts
from ibprof_converter.fabric.node_names import is_aggregation_node
from ibprof_converter.routing.subnet_routes import NONE, IndexedNetwork
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

_FAR = np.iinfo(np.int16).max


_NOT_REACHED = 1 << 14


def model_tables(fabric: Fabric, model: str | None = None) -> tuple[ForwardingTables, str]:
    """Return tables of all switches, and the name of the model.

    The tables have routes to all CAs and routers that are cabled to a switch.

    Args:
        model: one of `MODELS`, by default `D_MOD_K`. For a fabric that is no regular tree, `MIN_HOP` is used in place
            of `D_MOD_K`.
    """
    guid = np.sort(fabric.node_guid[fabric.node_kind == NodeKind.SWITCH])
    width = int((fabric.port_lid + (1 << fabric.port_lmc)).max(initial=1))
    tables = ForwardingTables("modelled routes", guid, np.full((len(guid), width), UNREACHABLE, np.uint8))
    network = IndexedNetwork.index(fabric, tables)
    leads_to = _find_peers(network)
    ends = _find_destinations(network)
    tree = None if model == MIN_HOP else find_regular_tree(leads_to, _find_leaves(network, ends))
    leaves = _order_leaves(network, ends, tree)
    distance = _measure_distances(leads_to, leaves)
    used = np.zeros(leads_to.shape, np.int32)  # [switch, port], adapters routed over the port so far
    below = np.cumprod([1, *(tree.uplinks if tree else ())])  # Product of uplinks over the levels below, [level].
    most = int(np.bincount(ends.leaf).max(initial=0))
    table = tables.port
    for number, switch in enumerate(leaves.tolist()):
        here = np.flatnonzero(ends.leaf == switch)
        here = here[np.argsort(ends.port[here], kind="stable")]
        choices = _Choices(leads_to, distance[:, number])
        for nth, each in enumerate(here.tolist()):
            lid = int(ends.lid[each])
            block = slice(lid, lid + (1 << int(fabric.port_lmc[fabric.lid_port[lid]])))
            if tree:
                chosen = choices.take_by_number(number * most + nth, below[choices.find_lower_level(tree.level)])
            else:
                chosen = choices.take_least_used(used)
            table[network.row[choices.switch], block] = chosen[:, np.newaxis]
            table[network.row[switch], block] = ends.port[each]
    return tables, D_MOD_K if tree else MIN_HOP


@dataclass(frozen=True, slots=True)
class _Destinations:
    """Cabled ports of CAs and routers: leaf switch, port of the leaf switch, LID and node; int64 [destination] each."""

    leaf: npt.NDArray[np.int64]
    port: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int64]
    node: npt.NDArray[np.int64]


class _Choices:
    """For each switch, the ports on shortest paths to one leaf switch.

    Attributes:
        switch: int [row], switches that have a path to the leaf.
    """

    def __init__(self, leads_to: npt.NDArray[np.int32], distance: npt.NDArray[np.int16]) -> None:
        beyond = np.append(distance, _FAR)[leads_to]
        is_near = (beyond < _FAR) & (beyond + 1 == distance[:, np.newaxis])
        self.switch = np.flatnonzero(is_near.any(axis=1))
        count = is_near[self.switch].sum(axis=1)
        # In each row, ports on shortest paths come first, in ascending order.
        order = np.argsort(~is_near[self.switch], axis=1, kind="stable")[:, : int(count.max(initial=1))]
        self._port = order.astype(np.int32)
        self._leads_to = leads_to
        self._count = count
        self._is_none = np.arange(order.shape[1]) >= count[:, np.newaxis]
        self._row = np.arange(len(self.switch))

    def take_least_used(self, used: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
        """Return the first of the least used ports of each row: uint8 [row]; count its use in `used`."""
        uses = used[self.switch[:, np.newaxis], self._port]
        uses[self._is_none] = np.iinfo(np.int32).max
        chosen = self._port[self._row, uses.argmin(axis=1)]
        used[self.switch, chosen] += 1
        return np.asarray(chosen, np.uint8)

    def find_lower_level(self, level: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the lower of two levels, of the row's switch and of the next switch: int64 [row]."""
        return np.minimum(level[self.switch], level[self._leads_to[self.switch, self._port[:, 0]]])

    def take_by_number(self, number: int, divisor: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Return port (`number` // `divisor`) mod n of each row: uint8 [row]; n is the number of ports of the row."""
        return np.asarray(self._port[self._row, number // divisor % self._count], np.uint8)


def _find_peers(network: IndexedNetwork) -> npt.NDArray[np.int32]:
    """Return the switch to which each port is cabled: int32 [switch, port], `NONE` if it is cabled to no switch."""
    end = network.end_at[network.switch_node]
    beyond = network.next_node[end]
    peer = np.where((end == NONE) | (beyond == NONE), NONE, network.switch_of[beyond])
    cabled = np.flatnonzero((peer != NONE).any(axis=0))
    return np.ascontiguousarray(peer[:, : int(cabled.max(initial=0)) + 1], np.int32)


def _find_destinations(network: IndexedNetwork) -> _Destinations:
    fabric = network.fabric
    is_end = fabric.node_kind[fabric.port_node] != NodeKind.SWITCH
    end = np.where(is_end, network.end_at[fabric.port_node, fabric.port_number], NONE)
    leaf = np.where(end == NONE, NONE, network.switch_of[network.next_node[end]])
    found = np.flatnonzero((leaf != NONE) & (fabric.port_lid > 0))
    columns = (leaf[found], fabric.link_port.ravel()[end[found] ^ 1], fabric.port_lid[found], fabric.port_node[found])
    return _Destinations(*(column.astype(np.int64) for column in columns))


def _find_leaves(network: IndexedNetwork, ends: _Destinations) -> npt.NDArray[np.bool_]:
    """Return true for switches that have hosts: bool [switch]. Aggregation nodes of switches are not hosts."""
    names = network.fabric.node_name
    is_host = np.array([not is_aggregation_node(names[node]) for node in ends.node.tolist()], np.bool_)
    is_leaf = np.zeros(len(network.switch_node), np.bool_)
    is_leaf[ends.leaf[is_host]] = True
    return is_leaf


def _order_leaves(network: IndexedNetwork, ends: _Destinations, tree: RegularTree | None) -> npt.NDArray[np.int64]:
    """Return the switches with CAs or routers, in the order in which routes are computed."""
    count = np.bincount(ends.leaf, minlength=len(network.switch_node))
    leaves = np.flatnonzero(count)
    if tree:
        return np.concatenate([tree.leaves, np.setdiff1d(leaves, tree.leaves)])
    # As in OpenSM, switches with more adapters come first.
    guid = network.fabric.node_guid[network.switch_node[leaves]]
    return np.asarray(leaves[np.lexsort((guid, -count[leaves]))])


def _measure_distances(leads_to: npt.NDArray[np.int32], leaves: npt.NDArray[np.integer]) -> npt.NDArray[np.int16]:
    """Return the number of links from each switch to each leaf: int16 [switch, leaf], `_FAR` without a path."""
    at, port = np.nonzero(leads_to != NONE)
    distance = count_hops(len(leads_to), np.column_stack([at, leads_to[at, port]]), leaves)
    distance[distance < 0] = _FAR
    return distance


@dataclass(frozen=True, slots=True)
class RegularTree:
    """A tree in which all switches of a level have the same number of uplinks.

    Attributes:
        level: int [switch], 0 for leaf switches.
        uplinks: number of uplinks of a switch, for each level below the highest.
        leaves: int [leaf], leaf switches; the leaf switches of a subtree are consecutive.
    """

    level: npt.NDArray[np.int64]
    uplinks: tuple[int, ...]
    leaves: npt.NDArray[np.int64]


def find_regular_tree(leads_to: npt.NDArray[np.int32], is_leaf: npt.NDArray[np.bool_]) -> RegularTree | None:
    """Return the levels of a regular tree; None for any other fabric.

    Args:
        leads_to: int32 [switch, port], the switch at the other end, `NONE` if it is no switch.
        is_leaf: bool [switch], true for switches with hosts.
    """
    level = _count_levels(leads_to, is_leaf)
    at, port = np.nonzero(leads_to != NONE)
    to = leads_to[at, port]
    top = int(level.max(initial=0))
    if top == 0 or top >= _NOT_REACHED or (np.abs(level[at] - level[to]) != 1).any():
        return None
    count = np.bincount(at[level[to] > level[at]], minlength=len(level))
    uplinks = []
    for each in range(top):
        of_level = np.unique(count[level == each])
        if len(of_level) != 1 or of_level[0] == 0:
            return None
        uplinks.append(int(of_level[0]))
    if count[level == top].any():
        return None
    leaves = np.flatnonzero(is_leaf)
    subtrees = [_find_subtrees(level, at, to, each)[leaves] for each in range(1, top)]
    return RegularTree(level, tuple(uplinks), leaves[np.lexsort(np.array([leaves, *subtrees]))])


def _count_levels(leads_to: npt.NDArray[np.int32], is_leaf: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the number of links from each switch to the nearest leaf: int64 [switch]."""
    level = np.where(is_leaf, 0, _NOT_REACHED)
    at, port = np.nonzero(leads_to != NONE)
    to = leads_to[at, port]
    for steps in range(1, len(level)):
        near = at[(level[to] == steps - 1) & (level[at] == _NOT_REACHED)]
        if not len(near):
            break
        level[near] = steps
    return level


def _find_subtrees(
    level: npt.NDArray[np.int64], at: npt.NDArray[np.intp], to: npt.NDArray[np.int32], highest: int
) -> npt.NDArray[np.int32]:
    """Return the subtree of each switch, int32 [switch]: switches joined by links on levels up to `highest`."""
    inside = (level[at] <= highest) & (level[to] <= highest)
    return find_parts(len(level), np.column_stack([at[inside], to[inside]])).astype(np.int32)


def add_switch_routes(fabric: Fabric, tables: ForwardingTables) -> ForwardingTables:
    """Add shortest routes to all switches with a LID; return the tables. Other routes are kept."""
    cables: dict[int, list[tuple[int, int]]] = {}
    for (a, b), (p, q) in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
        if fabric.node_kind[a] == fabric.node_kind[b] == NodeKind.SWITCH:
            cables.setdefault(a, []).append((q, b))
            cables.setdefault(b, []).append((p, a))
    row = {int(guid): number for number, guid in enumerate(tables.switch_guid)}
    rows = {node: row[int(guid)] for node, guid in enumerate(fabric.node_guid) if int(guid) in row}
    is_switch = fabric.node_kind[fabric.port_node] == NodeKind.SWITCH
    lids = fabric.port_lid[is_switch]
    width = max(tables.port.shape[1], int(lids.max(initial=0)) + 1)
    table = np.full((len(tables.switch_guid), width), UNREACHABLE, np.uint8)
    table[:, : tables.port.shape[1]] = tables.port
    for node, lid in zip(fabric.port_node[is_switch].tolist(), lids.tolist(), strict=True):
        if lid > 0:
            for at, port in _route_to(cables, node).items():
                if at in rows:
                    table[rows[at], lid] = port
    return ForwardingTables(tables.name, tables.switch_guid, table)


def _route_to(cables: dict[int, list[tuple[int, int]]], switch: int) -> dict[int, int]:
    """Return switch -> egress port towards the destination `switch`; 0 for the destination itself."""
    egress = {switch: 0}
    queue = deque([switch])
    while queue:
        here = queue.popleft()
        for port, other in cables.get(here, ()):
            if other not in egress:
                egress[other] = port
                queue.append(other)
    return egress
