# SPDX-License-Identifier: Apache-2.0
"""Trees over hosts: binary trees by average linkage or neighbour joining, pruned trees, and additive trees.

In an additive tree each edge has a latency, and a delay is the sum of the latencies on the path. The search joins
neighbours into a binary tree, and drops inner edges while a penalised fit improves. A least-squares fit then yields the
latencies, all at least 0. Unlike `levels`, additive trees represent heterogeneous hosts and chains of switches.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from ibprof.native.libraries import load_kernels
from ibprof_lab.topology.infer.candidate import FLOOR, Candidate, find_pattern

Integers = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

CAUTION = 5.0
"""An inner node is kept only if the node raises the log-likelihood by more than this value plus two other costs (see
`prune`). A gain of 5 is a factor of 150 in likelihood."""


@dataclass(frozen=True, slots=True)
class BinaryTree:
    """A binary tree. Node `leaves + k` is the parent of two nodes with smaller indices; the last node is the root.

    Attributes:
        child: int32 [leaves - 1, 2], the two child nodes of each inner node.
        weight: float64 [leaves - 1], inverse variance of `height`.
        height: float64 [leaves - 1], weighted mean distance of the pairs of leaves whose lowest common node this is.
    """

    leaves: int
    child: Integers
    weight: Floats
    height: Floats


@dataclass(frozen=True, slots=True)
class RootedTree:
    """A rooted tree: inner node 0 is the root, and parents have smaller indices than their children.

    Attributes:
        node_of_leaf: int32 [leaf], parent of each leaf.
        parent: int32 [node], parent of each inner node; 0 for the root.
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
            Leaves in the new order, int32 [leaf]; begin and end of each node's leaves in this order, int32 [node].
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
        """Return the lowest common node of each pair of leaves, int32 [leaf, leaf]; the diagonal has leaves'
        parents."""
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

    def as_graph(self, host_length: Floats, node_length: Floats) -> tuple[Integers, Floats, int]:
        """Return the edges over hosts and switches. A root with two children becomes one edge between the children.

        Args:
            host_length: float64 [leaf], length of the edge from each leaf to its parent; at least two leaves.
            node_length: float64 [node], length of the edge from each node to its parent; the root's value is ignored.

        Returns:
            The edges, their lengths, and the number of switches.
        """
        hosts = len(self.node_of_leaf)
        ends = np.concatenate([self.node_of_leaf, self.parent[1:]]) + hosts
        edge = np.stack([np.concatenate([np.arange(hosts), hosts + np.arange(1, self.nodes)]), ends], axis=1)
        length = np.concatenate([host_length, node_length[1:]])
        at_root = np.flatnonzero(edge[:, 1] == hosts)
        if len(at_root) == 2:
            a, b = sorted(edge[at_root, 0].tolist())
            whole = length[at_root].sum()
            edge, length = np.delete(edge, at_root, axis=0), np.delete(length, at_root)
            edge, length = np.concatenate([edge, [[a, b]]]), np.append(length, whole)
            edge = np.where(edge > hosts, edge - 1, edge)
            return edge.astype(np.int32), length, self.nodes - 1
        return np.sort(edge, axis=1).astype(np.int32), length, self.nodes

    def without_node(self, node: int) -> RootedTree:
        """Return the tree without a node; the node's children become children of the node's parent."""
        above = self.parent[node]
        parent = np.delete(np.where(self.parent == node, above, self.parent), node)
        node_of_leaf = np.where(self.node_of_leaf == node, above, self.node_of_leaf)
        return RootedTree(
            np.where(node_of_leaf > node, node_of_leaf - 1, node_of_leaf).astype(np.int32),
            np.where(parent > node, parent - 1, parent).astype(np.int32),
        )


@dataclass(frozen=True, slots=True)
class PrunedTree:
    """A binary tree after some inner nodes were merged into their parents.

    Attributes:
        height, weight: float64 [node], as in `BinaryTree`, of the remaining nodes.
        lost: increase of the weighted sum of squared residuals by the merges.
    """

    tree: RootedTree
    height: Floats
    weight: Floats
    lost: float


def link_average(distances: npt.NDArray[np.float32]) -> BinaryTree:
    """Build a binary tree: join the two clusters with the smallest mean distance until one cluster is left.

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
    """Return the two children of each inner node by neighbour joining, int32 [n - 1, 2].

    The root lies on the edge that divides the leaves most equally.

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
    """Merge each inner node into its parent unless the node improves the fit by more than the node's cost.

    The cost of a node, in log-likelihood, has three terms: a parameter (Schwarz's criterion), the logarithm of the
    number of alternative sibling pairs, and `CAUTION`.

    Args:
        variance: variance of the delay of a pair with weight 1.
        pairs: number of pairs with a delay.
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
    """Return the tree of the nodes that were not merged, with parents before children."""
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
    """Move the root to the edge that divides the leaves most equally; children precede parents again."""
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


_ROUNDS = 8
_SETTLED = 0.01
_RIDGE = 1e-9
"""First value added to the diagonal of the normal equations, which are singular if too few pairs were measured."""


def find_additive(delays: Floats, known: npt.NDArray[np.bool_]) -> Candidate:
    """Find an additive tree.

    Args:
        delays: float64 [n, n], seconds, symmetric, above 0 except on the diagonal; n at least 3.
        known: bool [n, n], True for delays that are fitted. All delays are used for the initial binary tree.
    """
    hosts = len(delays)
    pairs = int(np.count_nonzero(np.triu(known, 1)))
    with np.errstate(divide="ignore"):  # errors are relative
        weight: Floats = np.where(known, 1 / np.square(delays), 0.0)
    np.fill_diagonal(weight, 0.0)
    rest, tree = _fit_binary(join_neighbours(delays), delays, weight)
    variance = max(rest / max(pairs - (2 * hosts - 3), 1), FLOOR**2)
    for _ in range(_ROUNDS):
        pruned = prune(tree, variance, pairs)
        before = variance
        variance = max((rest + pruned.lost) / max(pairs - hosts - pruned.tree.nodes, 1), FLOOR**2)
        if abs(variance / before - 1) < _SETTLED:
            break
    shape = pruned.tree
    if shape.nodes > 1 and shape.children_count()[0] == 2:  # delays cannot locate a root with two children
        shape = shape.without_node(int(np.flatnonzero(shape.parent[1:] == 0)[0]) + 1)
    fit = _Fit(shape, delays, weight)
    while (weakest := fit.weakest_node(pairs)) is not None or (weakest := fit.smallest_step(known)) is not None:
        shape = shape.without_node(weakest)
        fit = _Fit(shape, delays, weight)
    edge, latency, switches = shape.as_graph(fit.length[:hosts], fit.length[hosts - 1 :])
    return Candidate("additive", switches, edge, latency, 0.0, fit.explained, len(edge))


def _fit_binary(child: Integers, delays: Floats, weight: Floats) -> tuple[float, BinaryTree]:
    """Fit all edges of a binary tree at once.

    The delay of hosts i and j is d_i + d_j - 2 d(k), with distances d from the root and the lowest common node k. The
    delay is linear in the unknowns. The unknowns are d of each host, and a height for each node: -2 d(k).

    Returns:
        The weighted sum of squared residuals, and the tree with the fitted heights.
    """
    hosts = len(delays)
    parent = np.zeros(hosts - 1, np.int32)
    node_of_leaf = np.zeros(hosts, np.int32)
    last = 2 * hosts - 2
    for k, pair in enumerate(child.tolist()):
        for below in pair:
            if below < hosts:
                node_of_leaf[below] = last - hosts - k
            else:
                parent[last - below] = last - hosts - k
    tree = RootedTree(node_of_leaf, parent)
    system = _System(tree, delays, weight)
    distance, height = system.solve()
    rest = system.squares_left(distance, height)
    own = system.node_weight[::-1].copy()
    return rest, BinaryTree(hosts, child, np.maximum(own, 1e-300), height[::-1].copy())


def _factorise(gram: Floats) -> Floats:
    """Return the Cholesky factor of a matrix plus a diagonal ridge; the ridge grows tenfold until a factor exists."""
    ridge = _RIDGE
    while True:
        try:
            factor: Floats = cholesky(gram + ridge * np.eye(len(gram)), lower=True)
        except LinAlgError:
            ridge *= 10
        else:
            return factor


class _System:
    """The normal equations of a rooted tree. Unknowns: the hosts' distances from the root, and heights of nodes."""

    def __init__(self, tree: RootedTree, delays: Floats, weight: Floats) -> None:
        hosts = len(delays)
        self.tree, self.delays, self.weight = tree, delays, weight
        self.meeting = tree.meeting_nodes()
        flat = self.meeting.ravel()
        self.node_weight = np.bincount(flat, weight.ravel(), tree.nodes) / 2
        weighted = weight * delays
        keys = np.arange(hosts)[:, None] * tree.nodes + self.meeting
        by_host = np.bincount(keys.ravel(), weight.ravel(), hosts * tree.nodes).reshape(hosts, tree.nodes)
        self.gram = np.block([[weight + np.diag(weight.sum(axis=1)), by_host], [by_host.T, np.diag(self.node_weight)]])
        self.right = np.concatenate([weighted.sum(axis=1), np.bincount(flat, weighted.ravel(), tree.nodes) / 2])

    def solve(self) -> tuple[Floats, Floats]:
        """Return the hosts' distances from the root, and the nodes' heights."""
        hosts = len(self.delays)
        size = self.gram.diagonal()
        scale = 1 / np.sqrt(np.maximum(size, size.max() * 1e-12))
        factor = _factorise(self.gram * scale[:, None] * scale)
        solution = cho_solve((factor, True), self.right * scale) * scale
        return solution[:hosts], solution[hosts:]

    def explain(self, distance: Floats, height: Floats) -> Floats:
        explained: Floats = distance[:, None] + distance + height[self.meeting]
        np.fill_diagonal(explained, 0.0)
        return explained

    def squares_left(self, distance: Floats, height: Floats) -> float:
        return float((self.weight * np.square(self.delays - self.explain(distance, height))).sum()) / 2


class _Fit:
    """Fitted lengths, at least 0, of the edge from each host to its parent, then from each node except the root."""

    def __init__(self, tree: RootedTree, delays: Floats, weight: Floats) -> None:
        hosts = len(delays)
        self.tree = tree
        self._delays = delays
        system = _System(tree, delays, weight)
        self._meeting = system.meeting
        # `sums` computes distances from the root, and heights, as sums of edge lengths.
        above = np.zeros((tree.nodes, tree.nodes - 1))
        for node in range(1, tree.nodes):
            above[node] = above[tree.parent[node]]
            above[node, node - 1] = 1
        sums = np.block([[np.eye(hosts), above[tree.node_of_leaf]], [np.zeros((tree.nodes, hosts)), -2 * above]])
        gram, right = sums.T @ system.gram @ sums, sums.T @ system.right
        scale = 1 / np.sqrt(np.maximum(gram.diagonal(), gram.diagonal().max() * 1e-12))
        self._factor, self._scale = _factorise(gram * scale[:, None] * scale), scale
        self.length = cho_solve((self._factor, True), right * scale) * scale
        if (self.length < 0).any():
            from scipy.optimize import nnls  # noqa: PLC0415  (slow to import)

            target = solve_triangular(self._factor, right * scale, lower=True)
            self.length = nnls(self._factor.T, target)[0] * scale
        parts = sums @ self.length
        self.explained = system.explain(parts[:hosts], parts[hosts:])
        rest = float((weight * np.square(delays - self.explained)).sum()) / 2
        pairs = int(np.count_nonzero(np.triu(weight, 1)))
        self.variance = max(rest / max(pairs - len(self.length), 1), FLOOR**2)

    def weakest_node(self, pairs: int) -> int | None:
        """Return the node whose edge's cost most exceeds the edge's gain in likelihood; None if no cost exceeds its
        gain."""
        hosts = len(self.tree.node_of_leaf)
        if self.tree.nodes == 1:
            return None
        inner = slice(hosts, len(self.length))
        unit = np.eye(len(self.length))[:, inner]
        spread = np.square(solve_triangular(self._factor, unit, lower=True)).sum(axis=0) * self._scale[inner] ** 2
        gain = np.square(self.length[inner]) / spread / (2 * self.variance)
        children = self.tree.children_count()
        joined = children[self.tree.parent[1:]] + children[1:] - 1
        cost = CAUTION + 0.5 * log(pairs) + np.log(0.5 * joined * (joined - 1.0))
        worst = int(np.argmin(gain - cost))
        return worst + 1 if gain[worst] < cost[worst] else None

    def smallest_step(self, known: npt.NDArray[np.bool_]) -> int | None:
        """Return the node whose edge increases delays least; None if errors cannot explain the increase."""
        if self.tree.nodes == 1:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            residuals = np.where(known, np.log(self._delays / self.explained), 0.0)
        pairs = np.bincount(self._meeting[known], minlength=self.tree.nodes)
        below = np.bincount(self._meeting[known], self.explained[known], self.tree.nodes) / np.maximum(pairs, 1)
        added = 2 * self.length[len(self.tree.node_of_leaf) :] / np.maximum(below[1:], 1e-300)
        node = int(np.argmin(added))
        return node + 1 if np.log1p(added[node]) < find_pattern(residuals, known).least_step else None
