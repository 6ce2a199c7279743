# SPDX-License-Identifier: Apache-2.0
"""Find levels of nodes (distances from hosts), neighbours, chassis, slow switches, and switches with few links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.fabric_parts import number_parts
from ibprof_converter.fabric.graph_search import find_parts
from ibprof_converter.fabric.node_names import is_aggregation_node

_UNSET = -1


def find_levels(fabric: Fabric, hosts: re.Pattern[str] | None = None) -> npt.NDArray[np.int32]:
    """Return each node's level, by a breadth-first search from all hosts.

    CAs and routers are at level 0. Switches with hosts, the leaves, are at level 1. Every other switch is one level
    above its lowest neighbour. If `hosts` is None, `lower_hostless` then corrects the levels of switches that have no
    hosts below. Switches without a path to hosts are at level 1.

    Args:
        fabric: the nodes and links.
        hosts: pattern for the names of CAs that are hosts. If None: the CAs at the switches of `find_leaves`.

    Returns:
        int32 [node], level of each node.
    """
    if hosts is not None:
        return _climb(fabric, _find_switches_of(fabric, hosts))
    return lower_hostless(fabric, _climb(fabric, find_leaves(fabric)))


def find_leaves(fabric: Fabric) -> npt.NDArray[np.intp]:
    """Return the switches whose CAs are hosts.

    Aggregation nodes do not count as CAs here. A spine can have other CAs, such as a management host. So a switch with
    fewer than half the usual number of CAs is no leaf in these cases (usual: the median over CAs):

    * A link joins the switch and a leaf with many hosts.
    * The switch joins parts of the fabric that no lower switch joins, as a top switch joins pods.
    * The switch is in a chassis without leaves.

    Returns:
        Indices of nodes, ascending.
    """
    is_switch = fabric.node_kind == NodeKind.SWITCH
    is_host = fabric.node_kind == NodeKind.CA
    is_host &= ~np.array([is_aggregation_node(name) for name in fabric.node_name], np.bool_)
    pairs = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]])
    pairs = np.unique(pairs[is_host[pairs[:, 0]] & is_switch[pairs[:, 1]]], axis=0)
    hosts = np.bincount(pairs[:, 1], minlength=fabric.nodes)
    if not hosts.any():
        return np.zeros(0, np.intp)
    usual = np.sort(hosts[pairs[:, 1]])[len(pairs) // 2]
    has_many = 2 * hosts >= usual
    is_leaf = has_many.copy()
    in_doubt = np.flatnonzero((hosts > 0) & ~has_many & ~find_neighbours(fabric, has_many))
    level = _climb(fabric, np.flatnonzero(has_many))
    for each in np.unique(level[in_doubt]):
        some = in_doubt[level[in_doubt] == each]
        is_leaf[some[~_are_spines(fabric, level, some)]] = True
    return np.flatnonzero(is_leaf)


def _find_switches_of(fabric: Fabric, hosts: re.Pattern[str]) -> npt.NDArray[np.intp]:
    """Return the switches with a link to a CA whose name matches."""
    chosen = np.array([bool(hosts.search(name)) for name in fabric.node_name], np.bool_)
    chosen &= fabric.node_kind == NodeKind.CA
    return np.flatnonzero(find_neighbours(fabric, chosen) & (fabric.node_kind == NodeKind.SWITCH))


def _climb(fabric: Fabric, leaves: npt.NDArray[np.intp]) -> npt.NDArray[np.int32]:
    level = np.full(fabric.nodes, _UNSET, np.int32)
    level[fabric.node_kind != NodeKind.SWITCH] = 0
    frontier = leaves
    distance = 0
    while len(frontier):
        distance += 1
        level[frontier] = distance
        frontier = np.flatnonzero(find_neighbours(fabric, level == distance) & (level == _UNSET))
    level[level == _UNSET] = 1
    return level


def _are_spines(fabric: Fabric, level: npt.NDArray[np.int32], nodes: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return true for each of `nodes` that joins separate parts of lower levels, or is in a chassis without leaves.

    Args:
        fabric: the nodes and links.
        level: int32 [node], levels if the CAs of `nodes` are no hosts.
        nodes: switches of one level.
    """
    is_switch = fabric.node_kind == NodeKind.SWITCH
    below = (level < level[nodes[0]]) & is_switch
    part = find_parts(fabric.nodes, fabric.link_node[below[fabric.link_node].all(axis=1)])
    pairs = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]])
    pairs = pairs[np.isin(pairs[:, 0], nodes) & below[pairs[:, 1]]]
    joined = np.unique(np.stack([pairs[:, 0], part[pairs[:, 1]]]), axis=1)
    joins_parts = np.bincount(joined[0], minlength=fabric.nodes) > 1
    chassis = find_chassis(fabric, is_switch)
    lowest = np.full(fabric.nodes + 1, np.iinfo(np.int32).max)
    np.minimum.at(lowest, chassis[is_switch], level[is_switch])
    return np.asarray(joins_parts[nodes] | ((chassis[nodes] >= 0) & (lowest[chassis[nodes]] > 1)))


_ALIKE = 0.5
"""Two switches are similar if they share at least this fraction of their neighbours (Jaccard's index)."""


def lower_hostless(fabric: Fabric, level: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the levels. Set the level of switches without hosts below to the level of similarly cabled switches.

    Args:
        fabric: the nodes and links.
        level: int32 [node], hops to the nearest host.
    """
    level = level.copy()
    is_switch = fabric.node_kind == NodeKind.SWITCH
    links = fabric.link_node[is_switch[fabric.link_node].all(axis=1)]
    pairs = np.concatenate([links, links[:, ::-1]])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    neighbours = np.unique(pairs[:, 0].astype(np.int64) * fabric.nodes + pairs[:, 1])
    one, other = np.divmod(neighbours, fabric.nodes)
    for base in range(1, int(level.max(initial=0)) - 1):
        known = np.flatnonzero(is_switch & (level == base))
        far = np.flatnonzero(is_switch & (level >= base + 2))
        above = level == base + 1
        # A leaf has no switches below: all neighbours of a leaf without hosts are above it.
        if base == 1:
            is_below = np.bincount(one, minlength=fabric.nodes) == np.bincount(
                one[above[other]], minlength=fabric.nodes
            )
            far = far[is_below[far]]
        if len(far) and len(known):
            _lower(level, pairs, far[_are_alike(pairs, far, known, above)], base)
    return level


def _are_alike(
    pairs: npt.NDArray[np.integer],
    far: npt.NDArray[np.intp],
    known: npt.NDArray[np.intp],
    above: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Return true for each `far` switch with a cabling similar to that of a `known` switch.

    Two switches have similar cabling if they share at least the fraction `_ALIKE` of their neighbours above. A `known`
    switch must have at least as many links up as the `far` switch.

    Args:
        pairs: int [edge, 2], the two switches of each link, in both orders.
        above: bool [node], true for the switches one level above the `known` switches.
    """
    links_of = []
    for switches in (far, known):
        row, column = np.full(len(above), -1), np.full(len(above), -1)
        row[switches], column[above] = np.arange(len(switches)), np.arange(above.sum())
        own = pairs[(row[pairs[:, 0]] >= 0) & above[pairs[:, 1]]]
        cell = row[own[:, 0]] * above.sum() + column[own[:, 1]]
        links_of.append(np.bincount(cell, minlength=len(switches) * above.sum()).reshape(len(switches), -1))
    of_far, of_known = ((links > 0).astype(np.float64) for links in links_of)
    common = of_far @ of_known.T
    total = of_far.sum(axis=1)[:, np.newaxis] + of_known.sum(axis=1)[np.newaxis, :] - common
    fits = links_of[0].sum(axis=1) <= links_of[1].sum(axis=1).max()
    return np.asarray(((common / np.maximum(total, 1)).max(axis=1) >= _ALIKE) & fits)


def _lower(
    level: npt.NDArray[np.int32], pairs: npt.NDArray[np.integer], nodes: npt.NDArray[np.intp], base: int
) -> None:
    """Set the level of `nodes` to `base`, and the levels of the switches below to `base` - 1, `base` - 2, ..."""
    below = level[nodes]
    level[nodes] = base
    while len(nodes) and base > 1:
        base -= 1
        at = int(below.max())
        reached = np.unique(pairs[np.isin(pairs[:, 0], nodes), 1])
        nodes = reached[level[reached] > at]
        below = level[nodes]
        level[nodes] = base


_SLOWER = 0.99
"""A link is slow if its speed is below this fraction of the usual speed."""


def find_neighbours(fabric: Fabric, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return true for nodes with a link to a chosen node: bool [node]."""
    near = np.zeros(fabric.nodes, np.bool_)
    for end in (0, 1):
        near[fabric.link_node[chosen[fabric.link_node[:, end]], 1 - end]] = True
    return near


def find_chassis(fabric: Fabric, is_switch: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return an index of the chassis of each switch chip, from its SystemGUID.

    Returns:
        int64 [node]; -1 for nodes that are no switches, and for switches that share no SystemGUID.
    """
    guid = np.where(is_switch, fabric.system_guid, np.uint64(0))
    _, number, count = np.unique(guid, return_inverse=True, return_counts=True)
    return np.where((guid > 0) & (count[number] > 1), number, -1)


@dataclass(frozen=True, slots=True)
class SlowSwitch:
    """A switch whose links to some level are slower than other switches' links to this level.

    Attributes:
        node: the switch.
        links: intp [link], the slow links of the switch.
        usual: float64 [link], usual speed of links to the same level, in Gbit/s.
        peers: number of switches of the same level with links of the usual speed.
        lanes: number of lanes of the usual links, if the slow links have fewer lanes; else 0.
    """

    node: int
    links: npt.NDArray[np.intp]
    usual: npt.NDArray[np.float64]
    peers: int
    lanes: int

    def describe(self, fabric: Fabric) -> str:
        """Return text that compares the slow links with the links of other switches."""
        own, usual = fabric.link_gbps[self.links], self.usual
        rate = " or ".join(f"{gbps:g}" for gbps in np.unique(own).tolist())
        others = " or ".join(f"{gbps:g}" for gbps in np.unique(usual).tolist())
        to_host = (fabric.node_kind[fabric.link_node[self.links]] != NodeKind.SWITCH).any(axis=1)
        to = "hosts" if to_host.all() else "hosts and switches" if to_host.any() else "switches"
        width = f" on {fabric.link_lanes[self.links[0]]} of {self.lanes} lanes" if self.lanes else ""
        peers = f"{self.peers} others" if self.peers != 1 else "another one"
        return f"all {len(self.links)} links of {fabric.node_name[self.node]} to {to} run at {rate} Gb/s{width}, " + (
            f"those of {peers} at {others} Gb/s"
        )


def find_slow_switches(fabric: Fabric, level: npt.NDArray[np.int32]) -> list[SlowSwitch]:
    """Return the switches whose links to some level all have the same speed, below the usual speed.

    The usual speed is the commonest speed; of equally common speeds, the highest. A switch with a single link to a
    level is left out: the fault may be the link's, not the switch's.
    """
    pairs = np.sort(level[fabric.link_node], axis=1)
    is_known = fabric.link_gbps > 0
    found: dict[int, list[tuple[npt.NDArray[np.intp], float, int, int]]] = {}
    for pair in np.unique(pairs, axis=0):
        members = np.flatnonzero((pairs == pair).all(axis=1) & is_known)
        if not len(members):
            continue
        speeds, counts = np.unique(fabric.link_gbps[members], return_counts=True)
        usual = float(speeds[len(speeds) - 1 - counts[::-1].argmax()])
        ends = fabric.link_node[members]
        for side in np.unique(pair).tolist():
            is_side = (level == side) & (fabric.node_kind == NodeKind.SWITCH)
            # Links with both ends at one switch count once.
            here = is_side[ends] & np.stack([ends[:, 0] >= 0, ends[:, 0] != ends[:, 1]], axis=1)
            switches, rates = ends[here], np.broadcast_to(fabric.link_gbps[members, np.newaxis], here.shape)[here]
            count = np.bincount(switches, minlength=fabric.nodes)
            slowest, fastest = np.full(fabric.nodes, np.inf), np.zeros(fabric.nodes)
            np.minimum.at(slowest, switches, rates)
            np.maximum.at(fastest, switches, rates)
            peers = int((fastest >= _SLOWER * usual).sum())
            is_slow = (count > 1) & (slowest == fastest) & (fastest < _SLOWER * usual)
            for node in np.flatnonzero(is_slow & (peers > 0)).tolist():
                links = members[(ends == node).any(axis=1)]
                normal = members[fabric.link_gbps[members] == usual]
                lanes = int(fabric.link_lanes[normal].max())
                is_narrow = 0 < fabric.link_lanes[links].max() < lanes
                found.setdefault(node, []).append((links, usual, peers, lanes if is_narrow else 0))
    return [
        SlowSwitch(
            node,
            np.concatenate([links for links, _, _, _ in parts]),
            np.concatenate([np.full(len(links), usual) for links, usual, _, _ in parts]),
            min(peers for _, _, peers, _ in parts),
            max(lanes for _, _, _, lanes in parts),
        )
        for node, parts in sorted(found.items())
    ]


@dataclass(frozen=True, slots=True)
class FewLinks:
    """Switches of the top level with fewer links to lower levels than usual.

    Attributes:
        nodes: intp [switch], the switches with fewer links.
        count: int64 [switch], number of each switch's links to lower levels.
        usual: usual number of such links.
        peers: number of compared switches, including `nodes`: top switches in one part with equal numbers of ports.
        level: the top level.
    """

    nodes: npt.NDArray[np.intp]
    count: npt.NDArray[np.int64]
    usual: int
    peers: int
    level: int


def find_few_links(fabric: Fabric, level: npt.NDArray[np.int32]) -> Iterator[FewLinks]:
    """Yield the top-level switches with fewer links to lower levels than most comparable switches.

    Switches are comparable if they are in one part of the fabric and have equal numbers of ports: a smaller switch has
    fewer links by design. Links within the level, such as those between groups of a Dragonfly+, do not count. If level
    1 is the top level, no switch is yielded.
    """
    is_switch = fabric.node_kind == NodeKind.SWITCH
    links = fabric.link_node[is_switch[fabric.link_node].all(axis=1)]
    one, other = level[links].T
    count = np.bincount(np.concatenate([links[one > other, 0], links[other > one, 1]]), minlength=fabric.nodes)
    top = int(level[is_switch].max(initial=0))
    tops = np.flatnonzero(is_switch & (level == top) & (count > 0))
    if top < 2:
        return
    kind = np.stack([number_parts(fabric)[tops], fabric.node_ports[tops]])
    group = np.unique(kind, axis=1, return_inverse=True)[1].ravel()
    for number in range(int(group.max(initial=-1)) + 1):
        peers = tops[group == number]
        usual = find_usual_count(count[peers])
        few = peers[count[peers] < usual]
        if len(peers) >= 3 and 0 < 2 * len(few) < len(peers):
            yield FewLinks(few, count[few], usual, len(peers), top)


def find_usual_count(counts: npt.NDArray[np.int64]) -> int:
    """Return the largest value that at least two and at least 25% of `counts` have, or else the commonest value."""
    number, having = np.unique(counts, return_counts=True)
    shared = number[having >= max(2, len(counts) / 4)]
    return int(shared[-1] if len(shared) else number[::-1][having[::-1].argmax()])
