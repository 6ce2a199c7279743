# SPDX-License-Identifier: Apache-2.0
"""Positions on a tree: parents over their children, pods and chassis together, few crossings.

Nodes that are connected below a level (a leaf with its hosts, a pod) form a block, which keeps one stretch of every
level. Within its blocks, a level is sorted by the mean position of its neighbours. Several rounds go from the leaves up
and from the top down. The order with the fewest crossings is kept.

Source: the barycentre method of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Transactions on Systems, Man and Cybernetics 11 (1981), here within blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.neighbours import find_chassis, find_parts

_ROUNDS = 6

Positions = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LevelTree:
    """A fabric whose nodes are positioned level by level.

    Attributes:
        fabric: the nodes and links.
        level: int32 [node], levels of the nodes.
        rank: int64 [node], order by name: the initial order, and the tie-break.
        part: int64 [level, node], block of each node among the nodes connected up to that level.
        chassis: int64 [node], chassis of each node; -1 without a chassis.
    """

    fabric: Fabric
    level: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int64]
    part: npt.NDArray[np.int64]
    chassis: npt.NDArray[np.int64]

    @classmethod
    def grow(cls, fabric: Fabric, level: npt.NDArray[np.int32], rank: npt.NDArray[np.int64]) -> LevelTree:
        """Find the blocks of a fabric."""
        height = level[fabric.link_node].max(axis=1, initial=0)
        part = np.stack(
            [find_parts(fabric.nodes, fabric.link_node[height <= top]) for top in range(int(level.max(initial=0)) + 1)]
        )
        return cls(fabric, level, rank, part, find_chassis(fabric, fabric.node_kind == NodeKind.SWITCH))

    def positions(self, hosts_x: Positions | None) -> Positions:
        """Return x of each node.

        Args:
            hosts_x: float64 [node], given x of the nodes of level 0; None: below their leaves.
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
        """Return the least key of the level-0 nodes in each node's block; blocks without such nodes sort last."""
        least = np.full(self.fabric.nodes, np.inf)
        bottom = self.level == 0
        np.minimum.at(least, part[bottom], key[bottom])
        lead: Positions = least[part]
        # Blocks without hosts all have the same key; their lowest node breaks the tie.
        return np.where(np.isinf(lead), 1e18 + part, lead)

    def _sort(self, lead: list[Positions], key: Positions, hosts_x: Positions | None) -> Positions:
        """Sort each level by the means of its lower neighbours, from the leaves up: float64 [node], rank in level."""
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
        """Sort each level again: top down by the neighbours above, then from the leaves up."""
        position = position.copy()
        for level in range(len(lead) - 2, 0, -1):
            self._arrange(level, lead, self._mean_of_neighbours(position, level, 1), position)
        for level in range(2, len(lead)):
            self._arrange(level, lead, self._mean_of_neighbours(position, level, -1), position)
        return position

    def _mean_of_neighbours(self, position: Positions, level: int, side: int) -> Positions:
        """Return the mean position of each node's neighbours above (side 1) or below (-1); without any, its own."""
        pairs = np.concatenate([self.fabric.link_node, self.fabric.link_node[:, ::-1]])
        pairs = pairs[(self.level[pairs[:, 0]] == level) & (self.level[pairs[:, 1]] == level + side)]
        nodes = self.fabric.nodes
        count = np.bincount(pairs[:, 0], minlength=nodes)
        total = np.bincount(pairs[:, 0], weights=position[pairs[:, 1]], minlength=nodes)
        return np.where(count > 0, total / np.maximum(count, 1), position)

    def _arrange(self, level: int, lead: list[Positions], mean: Positions, position: Positions) -> None:
        """Set the order of a level: by block, then by chassis, then by mean; ties by name."""
        here = np.flatnonzero(self.level == level)
        in_chassis = self.chassis[here] >= 0
        total = np.bincount(self.chassis[here[in_chassis]], weights=mean[here[in_chassis]])
        count = np.bincount(self.chassis[here[in_chassis]])
        of_chassis = mean[here].copy()
        of_chassis[in_chassis] = (total / np.maximum(count, 1))[self.chassis[here[in_chassis]]]
        blocks = [lead[above][here] for above in range(level, len(lead))]
        # Means that differ only by rounding are equal.
        keys = [self.rank[here], mean[here].round(9), self.chassis[here], of_chassis.round(9), *blocks]
        position[here[np.lexsort(keys)]] = np.arange(len(here))

    def _stand(self, position: Positions, hosts_x: Positions | None) -> Positions:
        """Return x from the order in each level: hosts below their leaves, each block above its hosts."""
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
        """Return x of the nodes of level 0, in columns of equal width per leaf; others follow to the right."""
        pairs = np.concatenate([self.fabric.link_node, self.fabric.link_node[:, ::-1]])
        pairs = pairs[(self.level[pairs[:, 0]] == 0) & (self.level[pairs[:, 1]] == 1)]
        leaf_of = np.full(self.fabric.nodes, np.inf)  # the first of several leaves
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
        """Spread the nodes of a level, in their order, over the stretches of their blocks."""
        nodes = self.fabric.nodes
        low, high = np.full(nodes, np.inf), np.full(nodes, -np.inf)
        # A node of level 0 that is cabled to this level, as aggregation nodes are, does not extend the stretch.
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
    """Return the number of pairs of links that cross, among those that join the same two levels.

    Links within a level do not count.

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
    """Return the number of pairs ordered differently by `first` and `second`: O(n log n), one bit at a time."""
    value = second[np.lexsort((second, first))]
    total = 0
    for bit in reversed(range(int(value.max(initial=0)).bit_length())):
        # Values are sorted by their higher bits, in stable order. In each run of equal higher bits, a 1 before a 0 is a
        # pair in the wrong order. No other bit counts this pair.
        one = value >> bit & 1
        ones_before = np.cumsum(one) - one
        run = value >> (bit + 1)
        starts = np.flatnonzero(np.concatenate([[True], run[1:] != run[:-1]]))
        before_run = np.repeat(ones_before[starts], np.diff([*starts, len(value)]))
        total += int((ones_before - before_run)[one == 0].sum())
        value = value[np.argsort(value >> bit, kind="stable")]
    return total
