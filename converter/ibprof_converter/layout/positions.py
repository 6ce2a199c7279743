# SPDX-License-Identifier: Apache-2.0
"""Find positions of nodes in a drawing, and the lower end of each link, which outputs call `a`.

In a tree, parents are above children, the nodes of a pod or chassis are adjacent, and few links cross. A block consists
of all nodes that are connected through nodes up to some level: a leaf with hosts, or a pod. On each level, the nodes of
a block are adjacent, and sorted by the mean position of their neighbours. Several rounds sort the levels from the top
down and from the leaves up. The order with the fewest crossings is used.

Source: the barycentre method of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Transactions on Systems, Man and Cybernetics 11 (1981), here within blocks.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.graph_search import find_parts
from ibprof_converter.fabric.node_names import host_name, rank_names
from ibprof_converter.layout.node_levels import find_chassis, find_levels
from ibprof_converter.layout.plane_positions import is_flat, position_switches

_RAILS_TOGETHER = 2
_GAP = 2.0
_HOSTS_ASIDE = 0.25
"""Offset of hosts to the right of the switch's middle, so that vertical links hide no host."""

Positions = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FabricLayout:
    """Positions of the nodes of one fabric.

    Attributes:
        level: int32 [node], levels from `find_levels`.
        x: float64 [node]; neighbouring hosts have a distance of 1.
        y: float64 [node], level of the node; if `has_levels` is false, its vertical position. Negative on every second
            rail.
        has_levels: true if the fabric is drawn level by level; false, for example, for a torus.
    """

    level: npt.NDArray[np.int32]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    has_levels: bool = True


def lay_out(fabrics: Sequence[Fabric], level_hosts: re.Pattern[str] | None = None) -> list[FabricLayout]:
    """Return positions for the fabrics of one system, one per rail.

    Rails are drawn in pairs; the pairs are side by side. The second rail of a pair is mirrored, with switches below the
    hosts. All adapters of a host (`host_name`) have the same x. Positions do not depend on the order of a file's lines.

    Args:
        fabrics: the rails.
        level_hosts: pattern for the names of CAs that are hosts, as in `find_levels`.
    """
    layouts: list[FabricLayout] = []
    left = 0.0
    for first in range(0, len(fabrics), _RAILS_TOGETHER):
        columns = _HostColumns()
        right = 0.0
        for number, fabric in enumerate(fabrics[first : first + _RAILS_TOGETHER]):
            layout = _lay_out_rail(fabric, level_hosts, columns)
            right = max(right, float(layout.x.max(initial=0.0)))
            y = layout.y * (-1 if number else 1) + 0.0  # adding 0.0 makes -0.0 zero
            layouts.append(FabricLayout(layout.level, layout.x + left, y, layout.has_levels))
        left += right + _GAP
    return layouts


class _HostColumns:
    """Stores the x of the first rail's hosts, for the same hosts on the second rail."""

    def __init__(self) -> None:
        self._of_host: dict[str, list[float]] = defaultdict(list)

    def store(self, fabric: Fabric, layout: FabricLayout, rank: npt.NDArray[np.int64]) -> None:
        """Store the x of the hosts of the first rail."""
        bottom = np.flatnonzero(layout.level == 0)
        for node in bottom[np.argsort(rank[bottom])].tolist():
            self._of_host[host_name(fabric.node_name[node])].append(float(layout.x[node]))

    def columns_of(self, fabric: Fabric, level: npt.NDArray[np.int32], rank: npt.NDArray[np.int64]) -> Positions | None:
        """Return x of each node of level 0, from the first rail; None if this is the first rail.

        Hosts that are only on the second rail are at the right.
        """
        if not self._of_host:
            return None
        left = {name: list(columns) for name, columns in self._of_host.items()}
        right = max(max(columns) for columns in left.values())
        x = np.zeros(fabric.nodes)
        bottom = np.flatnonzero(level == 0)
        for node in bottom[np.argsort(rank[bottom])].tolist():
            columns = left.get(host_name(fabric.node_name[node]))
            if not columns:
                right += 1
            x[node] = columns.pop(0) if columns else right
        return x


def _lay_out_rail(fabric: Fabric, level_hosts: re.Pattern[str] | None, columns: _HostColumns) -> FabricLayout:
    level = find_levels(fabric, level_hosts)
    rank = rank_names(fabric.node_name)
    if len(fabric.link_node) and is_flat(fabric, level):
        return _lay_out_flat(fabric, level, rank)
    hosts_x = columns.columns_of(fabric, level, rank)
    layout = FabricLayout(level, LevelTree.grow(fabric, level, rank).positions(hosts_x), level.astype(np.float64))
    if hosts_x is None:
        columns.store(fabric, layout, rank)
    return layout


def _lay_out_flat(fabric: Fabric, level: npt.NDArray[np.int32], rank: npt.NDArray[np.int64]) -> FabricLayout:
    """Return positions that do not depend on levels; the hosts of each switch are in a row below the switch."""
    switch, points, below = position_switches(fabric)
    point = np.zeros((fabric.nodes, 2))
    pairs = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]])
    is_switch = np.zeros(fabric.nodes, np.bool_)
    is_switch[switch] = True
    pairs = pairs[~is_switch[pairs[:, 0]] & is_switch[pairs[:, 1]]]
    hung = np.full(fabric.nodes, fabric.nodes)
    np.minimum.at(hung, pairs[:, 0], pairs[:, 1])
    others = np.flatnonzero(~is_switch)
    others = others[np.lexsort((rank[others], hung[others]))]
    owner, count = np.unique(hung[others], return_counts=True)
    width = int(count.max(initial=0)) + 1
    point[switch] = points * (width, 1) + ((width - 1) / 2, 1)
    index = np.arange(len(others)) - np.repeat(np.cumsum(count) - count, count)
    middle = np.append(point, [[point[:, 0].max() + width, 1.0]], axis=0)[np.repeat(owner, count)]
    point[others] = middle + np.stack(
        [index - (np.repeat(count, count) - 1) / 2 + _HOSTS_ASIDE, np.full(len(others), -below)], axis=1
    )
    x = point[:, 0] - min(float(point[:, 0].min()), 0.0)
    return FabricLayout(level, x, point[:, 1], has_levels=False)


def visit(fabric: Fabric, name_rank: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Visit all nodes breadth-first: each component from its first host by name, neighbours in the order of names.

    Returns:
        int64 [node], number of nodes that were visited before the node.
    """
    neighbours: list[list[int]] = [[] for _ in range(fabric.nodes)]
    pairs = np.unique(np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]]), axis=0)
    for a, b in pairs[np.argsort(name_rank[pairs[:, 1]], kind="stable")].tolist():
        neighbours[a].append(b)
    when = np.full(fabric.nodes, -1, np.int64)
    count = 0
    for start in np.lexsort((name_rank, fabric.node_kind != NodeKind.CA)).tolist():
        queue = deque([start] if when[start] < 0 else [])
        while queue:
            node = queue.popleft()
            if when[node] < 0:
                when[node] = count
                count += 1
                queue.extend(other for other in neighbours[node] if when[other] < 0)
    return when


def lower_ends(fabric: Fabric, layout: FabricLayout) -> npt.NDArray[np.intp]:
    """Return the lower end of each link, 0 or 1: the end on the lower level, nearer to the hosts.

    If both ends are on one level, the lower end has the smaller node GUID; if both are at one node, the smaller port
    number.

    Returns:
        intp [link].
    """
    node = fabric.link_node
    keys = np.stack([layout.level[node].astype(np.uint64), fabric.node_guid[node], fabric.link_port.astype(np.uint64)])
    lower = np.zeros(fabric.links, np.intp)
    decided = np.zeros(fabric.links, bool)
    for first, second in zip(keys[:, :, 0], keys[:, :, 1], strict=True):
        lower[~decided & (second < first)] = 1
        decided |= first != second
    return lower


def order_of_links(fabric: Fabric, layout: FabricLayout) -> npt.NDArray[np.intp]:
    """Return the order of links in outputs: sorted by level, GUID and port of the lower end.

    Returns:
        intp [link], a permutation of the links.
    """
    links = np.arange(fabric.links)
    end = lower_ends(fabric, layout)
    node = fabric.link_node[links, end]
    return np.lexsort((fabric.link_port[links, end], fabric.node_guid[node], layout.level[node]))


_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class LevelTree:
    """A fabric whose nodes are positioned level by level.

    Attributes:
        fabric: the nodes and links.
        level: int32 [node], levels of the nodes.
        rank: int64 [node], position of each node in the order of names: the last sort key.
        part: int64 [level, node], block of each node on each level.
        chassis: int64 [node], chassis from `find_chassis`; -1 for a node without a chassis.
    """

    fabric: Fabric
    level: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int64]
    part: npt.NDArray[np.int64]
    chassis: npt.NDArray[np.int64]

    @classmethod
    def grow(cls, fabric: Fabric, level: npt.NDArray[np.int32], rank: npt.NDArray[np.int64]) -> LevelTree:
        """Find the blocks and chassis of a fabric."""
        height = level[fabric.link_node].max(axis=1, initial=0)
        part = np.stack(
            [find_parts(fabric.nodes, fabric.link_node[height <= top]) for top in range(int(level.max(initial=0)) + 1)]
        )
        return cls(fabric, level, rank, part, find_chassis(fabric, fabric.node_kind == NodeKind.SWITCH))

    def positions(self, hosts_x: Positions | None) -> Positions:
        """Return x of each node.

        Args:
            hosts_x: float64 [node], x of the nodes of level 0. If None: hosts are placed below their leaves.
        """
        key = self.rank.astype(np.float64) if hosts_x is None else hosts_x
        lead = [self._lead(part, key) for part in self.part]
        order = self._sort(lead, key, hosts_x)
        x = self._stand(order, hosts_x)
        if hosts_x is None:
            best = x, count_crossings(self.fabric, self.level, x)
            for _ in range(_ROUNDS if best[1] else 0):
                last, order = order, self._sweep(lead, order)
                if np.array_equal(order, last):
                    break
                x = self._stand(order, None)
                crossings = count_crossings(self.fabric, self.level, x)
                if crossings < best[1]:
                    best = x, crossings
            x = best[0]
        return x

    def _lead(self, part: npt.NDArray[np.int64], key: Positions) -> Positions:
        """Return the smallest key of a host in each node's block; a very large key for blocks without hosts."""
        least = np.full(self.fabric.nodes, np.inf)
        bottom = self.level == 0
        np.minimum.at(least, part[bottom], key[bottom])
        lead: Positions = least[part]
        # Blocks without hosts are sorted by their lowest node.
        return np.where(np.isinf(lead), 1e18 + part, lead)

    def _sort(self, lead: list[Positions], key: Positions, hosts_x: Positions | None) -> Positions:
        """Sort each level, from the leaves up, by the mean position of each node's neighbours below.

        Returns:
            float64 [node], index of each node in the order of its level.
        """
        position = np.zeros(self.fabric.nodes)
        for level in range(len(lead)):
            if level == 0:
                mean = key
            elif level == 1:
                mean = lead[1] if hosts_x is None else self._mean_of_neighbours(hosts_x, 1, -1)
            else:
                mean = self._mean_of_neighbours(position, level, -1)
            self._arrange(level, lead, mean, position)
        return position

    def _sweep(self, lead: list[Positions], position: Positions) -> Positions:
        """Sort each level again: from the top down by neighbours above, then from the leaves up by neighbours below."""
        position = position.copy()
        for level in range(len(lead) - 2, 0, -1):
            self._arrange(level, lead, self._mean_of_neighbours(position, level, 1), position)
        for level in range(2, len(lead)):
            self._arrange(level, lead, self._mean_of_neighbours(position, level, -1), position)
        return position

    def _mean_of_neighbours(self, position: Positions, level: int, side: int) -> Positions:
        """Return the mean position of each node's neighbours above (side 1) or below (-1).

        For a node without such neighbours, this is its own position.
        """
        pairs = np.concatenate([self.fabric.link_node, self.fabric.link_node[:, ::-1]])
        pairs = pairs[(self.level[pairs[:, 0]] == level) & (self.level[pairs[:, 1]] == level + side)]
        nodes = self.fabric.nodes
        count = np.bincount(pairs[:, 0], minlength=nodes)
        total = np.bincount(pairs[:, 0], weights=position[pairs[:, 1]], minlength=nodes)
        return np.where(count > 0, total / np.maximum(count, 1), position)

    def _arrange(self, level: int, lead: list[Positions], mean: Positions, position: Positions) -> None:
        """Sort a level's nodes by block, mean of the chassis, chassis, `mean`, name; store the order in `position`."""
        here = np.flatnonzero(self.level == level)
        in_chassis = self.chassis[here] >= 0
        total = np.bincount(self.chassis[here[in_chassis]], weights=mean[here[in_chassis]])
        count = np.bincount(self.chassis[here[in_chassis]])
        of_chassis = mean[here].copy()
        of_chassis[in_chassis] = (total / np.maximum(count, 1))[self.chassis[here[in_chassis]]]
        blocks = [lead[above][here] for above in range(level, len(lead))]
        # Round the means, so that means that differ only by rounding errors count as equal.
        keys = [self.rank[here], mean[here].round(9), self.chassis[here], of_chassis.round(9), *blocks]
        position[here[np.lexsort(keys)]] = np.arange(len(here))

    def _stand(self, position: Positions, hosts_x: Positions | None) -> Positions:
        """Return x of all nodes, in the given order: hosts are below their leaves, blocks above their hosts."""
        x = self._put_hosts_under_leaves(position) if hosts_x is None else hosts_x.copy()
        right = float(x[self.level == 0].max(initial=-1.0)) + 1
        for level in range(1, len(self.part)):
            here = np.flatnonzero(self.level == level)
            here = here[np.argsort(position[here])]
            standing = self._stand_over_blocks(self.part[level], here, x, right)
            if (np.diff(standing) <= 0).any():  # blocks that overlap
                standing = _spread_evenly(len(here), right)
            x[here] = standing
        return x

    def _put_hosts_under_leaves(self, position: Positions) -> Positions:
        """Return x of level-0 nodes: below the leaf, with equal space per leaf; nodes without a leaf at the right."""
        pairs = np.concatenate([self.fabric.link_node, self.fabric.link_node[:, ::-1]])
        pairs = pairs[(self.level[pairs[:, 0]] == 0) & (self.level[pairs[:, 1]] == 1)]
        leaf_of = np.full(self.fabric.nodes, np.inf)  # position of each node's first leaf
        np.minimum.at(leaf_of, pairs[:, 0], position[pairs[:, 1]])
        bottom = np.flatnonzero(self.level == 0)
        bottom = bottom[np.lexsort((self.rank[bottom], leaf_of[bottom]))]
        under = bottom[np.isfinite(leaf_of[bottom])]
        slot, count = np.unique(leaf_of[under], return_counts=True)
        x = np.zeros(self.fabric.nodes)
        width = int(count.max(initial=0))
        index = np.arange(len(under)) - np.repeat(np.cumsum(count) - count, count)
        size = np.repeat(count, count)
        x[under] = np.repeat(slot, count) * width + (index + 0.5) * width / size - 0.5
        leaves = int((self.level == 1).sum())
        x[bottom[len(under) :]] = leaves * width + np.arange(len(bottom) - len(under))
        return x

    def _stand_over_blocks(
        self, part: npt.NDArray[np.int64], here: npt.NDArray[np.intp], x: Positions, right: float
    ) -> Positions:
        """Return x of a level's nodes: a block's nodes are spread evenly, in order, over the x range of its hosts."""
        nodes = self.fabric.nodes
        low, high = np.full(nodes, np.inf), np.full(nodes, -np.inf)
        # Blocks are not widened by level-0 nodes without a leaf, such as the aggregation node of a spine.
        bottom = np.flatnonzero((self.level == 0) & np.isin(self.part[1], self.part[1][self.level == 1]))
        np.minimum.at(low, part[bottom], x[bottom])
        np.maximum.at(high, part[bottom], x[bottom])
        block = part[here]
        starts = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]])) if len(block) else np.zeros(0, int)
        count = np.diff([*starts, len(block)])
        without = np.isinf(low[block[starts]])
        left = np.where(without, 0, low[block[starts]]) - 0.5
        width = np.where(without, count, high[block[starts]] - low[block[starts]] + 1)
        left[without] = right - 0.5 + np.cumsum(count[without]) - count[without]
        index = np.arange(len(block)) - np.repeat(starts, count)
        return np.asarray(np.repeat(left, count) + (index + 0.5) * np.repeat(width / np.maximum(count, 1), count))


def _spread_evenly(count: int, width: float) -> Positions:
    return (np.arange(count) + 0.5) * max(width, 1.0) / max(count, 1) - 0.5


def count_crossings(fabric: Fabric, level: npt.NDArray[np.integer], x: npt.NDArray[np.float64]) -> int:
    """Return the number of crossings between links that join the same two levels. Links within a level do not count.

    Args:
        fabric: the links.
        level: int [node].
        x: float64 [node], in any unit.
    """
    ends = fabric.link_node
    upper = np.take_along_axis(ends, np.argmax(level[ends], axis=1)[:, None], axis=1)[:, 0]
    lower = ends.sum(axis=1) - upper
    total = 0
    joined = level[lower].astype(np.int64) << 32 | level[upper]
    for pair in np.unique(joined[level[lower] != level[upper]]):
        here = joined == pair
        total += _count_inversions(_rank(x[lower[here]]), _rank(x[upper[here]]))
    return total


def _rank(x: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.unique(x, return_inverse=True)[1].astype(np.int64)


def _count_inversions(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> int:
    """Return the number of pairs that have opposite orders in `first` and `second`, in O(n log n)."""
    value = second[np.lexsort((second, first))]
    total = 0
    for bit in reversed(range(int(value.max(initial=0)).bit_length())):
        # `value` is sorted stably by the bits above `bit`. Among values with equal higher bits, each 1 before a 0 is an
        # inversion that is counted at no other bit.
        one = value >> bit & 1
        ones_before = np.cumsum(one) - one
        run = value >> (bit + 1)
        starts = np.flatnonzero(np.concatenate([[True], run[1:] != run[:-1]]))
        before_run = np.repeat(ones_before[starts], np.diff([*starts, len(value)]))
        total += int((ones_before - before_run)[one == 0].sum())
        value = value[np.argsort(value >> bit, kind="stable")]
    return total
