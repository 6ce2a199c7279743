# SPDX-License-Identifier: Apache-2.0
"""Binary trees over hosts, by average linkage or neighbour joining, pruned to the nodes that the delays support."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import load_kernels

Integers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

CAUTION = 5.0
"""Required gain in log-likelihood beyond a node's parameter and the choice among siblings: a factor of 150."""


@dataclass(frozen=True, slots=True)
class BinaryTree:
    """A binary tree. Node `leaves + k` joins two nodes of smaller number; the last node is the root.

    Attributes:
        child: int32 [leaves - 1, 2], the two nodes that each inner node joins.
        weight: float64 [leaves - 1], inverse variance of the mean over the pairs of leaves that meet in each node.
        height: float64 [leaves - 1], weighted mean over the pairs of leaves that meet in each node.
    """

    leaves: int
    child: Integers
    weight: Floats
    height: Floats


@dataclass(frozen=True, slots=True)
class RootedTree:
    """A rooted tree whose nodes have any number of children; node 0 is the root, and parents come first.

    Attributes:
        node_of_leaf: int32 [leaf], the node above each leaf.
        parent: int32 [node], the node above each node; 0 for the root.
    """

    node_of_leaf: Integers
    parent: Integers

    @property
    def nodes(self) -> int:
        """Number of inner nodes."""
        return len(self.parent)

    def order_leaves(self) -> tuple[Integers, Integers, Integers]:
        """Order the leaves so that the leaves below each node are contiguous.

        Returns:
            The ordered leaves, int32 [leaf]; the begin and the end of each node's leaves, int32 [node] each.
        """
        own = np.bincount(self.node_of_leaf, minlength=self.nodes)
        below = own.copy()
        for node in range(self.nodes - 1, 0, -1):
            below[self.parent[node]] += below[node]
        begin = np.zeros(self.nodes, np.int32)
        free = np.zeros(self.nodes, np.int32)
        for node in range(self.nodes):
            if node:
                begin[node] = free[self.parent[node]]
                free[self.parent[node]] += below[node]
            free[node] = begin[node] + own[node]
        by_node = np.argsort(self.node_of_leaf, kind="stable")
        first = np.concatenate([[0], np.cumsum(own)[:-1]])
        place = np.arange(len(by_node)) - first[self.node_of_leaf[by_node]] + begin[self.node_of_leaf[by_node]]
        order = np.empty(len(by_node), np.int32)
        order[place] = by_node
        return order, begin, (begin + below).astype(np.int32)

    def meeting_nodes(self) -> npt.NDArray[np.int32]:
        """Return the node where two leaves meet, int32 [leaf, leaf]; the diagonal has the node above the leaf."""
        order, begin, end = self.order_leaves()
        ordered = np.zeros((len(order), len(order)), np.int32)
        for node in range(self.nodes):
            ordered[begin[node] : end[node], begin[node] : end[node]] = node
        back = np.argsort(order)
        return ordered[np.ix_(back, back)]

    def children_count(self) -> Integers:
        """Return the number of leaves and nodes directly below each node, int32 [node]."""
        count = np.bincount(self.node_of_leaf, minlength=self.nodes)
        return (count + np.bincount(self.parent[1:], minlength=self.nodes)).astype(np.int32)

    def without_node(self, node: int) -> RootedTree:
        """Return the tree without a node; its children move to the node above."""
        above = self.parent[node]
        parent = np.delete(np.where(self.parent == node, above, self.parent), node)
        node_of_leaf = np.where(self.node_of_leaf == node, above, self.node_of_leaf)
        return RootedTree(
            np.where(node_of_leaf > node, node_of_leaf - 1, node_of_leaf).astype(np.int32),
            np.where(parent > node, parent - 1, parent).astype(np.int32),
        )


@dataclass(frozen=True, slots=True)
class PrunedTree:
    """The kept nodes of a binary tree.

    Attributes:
        height, weight: float64 [node], as in `BinaryTree`.
        lost: increase of the weighted sum of squares.
    """

    tree: RootedTree
    height: Floats
    weight: Floats
    lost: float


def link_average(distances: npt.NDArray[np.float32]) -> BinaryTree:
    """Link clusters by their mean distance.

    Args:
        distances: float32 [n, n], symmetric and finite; overwritten.
    """
    kernels = load_kernels()
    leaves = len(distances)
    child, height = np.empty((leaves - 1, 2), np.int32), np.empty(leaves - 1)
    size = np.empty(leaves - 1, np.uint32)
    status = kernels.lib.ibp_average_linkage(
        kernels.pointer(distances), leaves, kernels.pointer(child), kernels.pointer(height), kernels.pointer(size)
    )
    _check(status)
    sizes = np.concatenate([np.ones(leaves), size])
    return BinaryTree(leaves, child, sizes[child[:, 0]] * sizes[child[:, 1]], height)


def join_neighbours(distances: Floats) -> Integers:
    """Return the children of a binary tree by neighbour joining, int32 [n - 1, 2]; the root splits the leaves evenly.

    Args:
        distances: float64 [n, n], symmetric, finite, 0 on the diagonal.
    """
    kernels = load_kernels()
    leaves = len(distances)
    child = np.empty((leaves - 1, 2), np.int32)
    scratch = np.ascontiguousarray(distances, np.float64).copy()
    _check(kernels.lib.ibp_join_neighbours(kernels.pointer(scratch), leaves, kernels.pointer(child)))
    return _root_in_the_middle(child, leaves)


def prune(tree: BinaryTree, variance: float, pairs: int) -> PrunedTree:
    """Merge a node into the node above while the merge costs less than keeping the node.

    A node is kept if its gain in log-likelihood exceeds three costs: a parameter (Schwarz's criterion), the choice
    among its siblings, and `CAUTION`.

    Args:
        variance: variance of a pair of weight 1.
        pairs: number of pairs.
    """
    kernels = load_kernels()
    nodes = tree.leaves - 1
    into, weight, height = np.empty(nodes, np.int32), np.empty(nodes), np.empty(nodes)
    lost = np.zeros(1)
    described = kernels.ffi.new("struct ibp_binary_tree *")
    described.leaves = tree.leaves
    described.child = kernels.pointer(tree.child)
    described.weight = kernels.pointer(tree.weight)
    described.height = kernels.pointer(tree.height)
    penalty = CAUTION + 0.5 * log(max(pairs, 1))
    _check(
        kernels.lib.ibp_prune_tree(
            described, variance, penalty,
            *(kernels.pointer(array) for array in (into, weight, height, lost)),
        )
    )  # fmt: skip
    return _gather(tree, into, weight, height, float(lost[0]))


def _gather(tree: BinaryTree, into: Integers, weight: Floats, height: Floats, lost: float) -> PrunedTree:
    """Number the kept nodes, parents first."""
    leaves, nodes = tree.leaves, tree.leaves - 1
    kept = np.flatnonzero(into == leaves + np.arange(nodes))[::-1]
    number = np.full(2 * leaves - 1, -1, np.int32)
    number[leaves + kept] = np.arange(len(kept))
    number[leaves:] = number[into]
    above = np.zeros(2 * leaves - 1, np.int32)
    above[tree.child.ravel()] = np.repeat(np.arange(leaves, 2 * leaves - 1), 2)
    parent = number[above[leaves + kept]]
    parent[:1] = 0
    return PrunedTree(RootedTree(number[above[:leaves]], parent.astype(np.int32)), height[kept], weight[kept], lost)


def _root_in_the_middle(child: Integers, leaves: int) -> Integers:
    """Move the root to the edge that splits the leaves most evenly, and number children before parents again."""
    neighbours: list[list[int]] = [[] for _ in range(2 * leaves - 2)]
    top, (left, right) = 2 * leaves - 2, child[-1].tolist()
    for k, pair in enumerate(child[:-1].tolist()):
        for below in pair:
            neighbours[leaves + k].append(below)
            neighbours[below].append(leaves + k)
    neighbours[left].append(right)
    neighbours[right].append(left)
    size = np.ones(2 * leaves - 1, np.int64)
    for k, (a, b) in enumerate(child.tolist()):
        size[leaves + k] = size[a] + size[b]
    above = {below: leaves + k for k, pair in enumerate(child[:-1].tolist()) for below in pair}
    best = int(np.argmin(np.abs(2 * size[:top] - leaves)))
    ends = (best, above.get(best, right if best == left else left))
    made: list[tuple[int, int]] = []
    stack: list[tuple[int, int, bool]] = [(ends[0], ends[1], False), (ends[1], ends[0], False)]
    number = list(range(leaves)) + [-1] * (leaves - 1)
    while stack:
        node, came_from, done = stack.pop()
        if node < leaves:
            continue
        below = [each for each in neighbours[node] if each != came_from]
        if done:
            number[node] = leaves + len(made)
            made.append((number[below[0]], number[below[1]]))
        else:
            stack.append((node, came_from, True))
            stack.extend((each, node, False) for each in below)
    made.append((number[ends[0]], number[ends[1]]))
    return np.array(made, np.int32)


def _check(status: int) -> None:
    if status == -12:
        raise MemoryError
    if status:
        raise ValueError(f"a kernel refused its input: {status}")
