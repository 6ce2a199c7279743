# SPDX-License-Identifier: Apache-2.0
"""Additive trees: each edge has its own latency, and a delay is the sum along its path.

Neighbour joining gives a binary tree. Its inner edges are dropped while a penalised fit improves; the remaining edges
get their latencies by least squares, none below zero. Trees represent heterogeneous hosts and switches in a row, which
levels cannot.
"""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import nnls

from ibprof_lab.topology.infer.binary_trees import CAUTION, BinaryTree, Integers, RootedTree, join_neighbours, prune
from ibprof_lab.topology.infer.candidate import FLOOR, Candidate, Floats, find_pattern, graph_of_tree

_ROUNDS = 8
_SETTLED = 0.01
_RIDGE = 1e-9
"""Ridge that keeps the normal equations regular if few pairs determine the latencies."""


def find_additive(delays: Floats, known: npt.NDArray[np.bool_]) -> Candidate:
    """Find an additive tree.

    Args:
        delays: float64 [n, n], seconds, symmetric, above 0 except on the diagonal; n at least 3.
        known: bool [n, n], delays that count; the others only help to find the first tree.
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
    if shape.nodes > 1 and shape.children_count()[0] == 2:  # the delays do not determine the root's place
        shape = shape.without_node(int(np.flatnonzero(shape.parent[1:] == 0)[0]) + 1)
    fit = _Fit(shape, delays, weight)
    while (weakest := fit.weakest_node(pairs)) is not None or (weakest := fit.smallest_step(known)) is not None:
        shape = shape.without_node(weakest)
        fit = _Fit(shape, delays, weight)
    edge, latency, switches = graph_of_tree(shape, fit.length[:hosts], fit.length[hosts - 1 :])
    return Candidate("additive", switches, edge, latency, 0.0, fit.explained, len(edge))


def _fit_binary(child: Integers, delays: Floats, weight: Floats) -> tuple[float, BinaryTree]:
    """Fit all edges of a binary tree at once.

    With d the distance of a host from the root, a delay is d_i + d_j - 2 d(meeting node): linear in the hosts'
    distances and one height per node.

    Returns:
        The residual sum of weighted squares, and the tree with the heights.
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
    """Return the Cholesky factor of a matrix plus the smallest ridge that keeps the matrix regular under rounding."""
    ridge = _RIDGE
    while True:
        try:
            factor: Floats = cholesky(gram + ridge * np.eye(len(gram)), lower=True)
        except LinAlgError:
            ridge *= 10
        else:
            return factor


class _System:
    """The normal equations of a rooted tree. Unknowns: the hosts' distances from the root and a height per node."""

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
        """Return distances and heights. The small ridge determines the root's position, which the delays leave open."""
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
    """Lengths of all edges of a tree, none negative: the hosts' edges, then the edges above nodes 1, 2, ..."""

    def __init__(self, tree: RootedTree, delays: Floats, weight: Floats) -> None:
        hosts = len(delays)
        self.tree = tree
        self._delays = delays
        system = _System(tree, delays, weight)
        self._meeting = system.meeting
        # Distances from the root and heights are sums of edges.
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
            target = solve_triangular(self._factor, right * scale, lower=True)
            self.length = nnls(self._factor.T, target)[0] * scale
        parts = sums @ self.length
        self.explained = system.explain(parts[:hosts], parts[hosts:])
        rest = float((weight * np.square(delays - self.explained)).sum()) / 2
        pairs = int(np.count_nonzero(np.triu(weight, 1)))
        self.variance = max(rest / max(pairs - len(self.length), 1), FLOOR**2)

    def weakest_node(self, pairs: int) -> int | None:
        """Return the node whose edge improves the fit least, if the penalty exceeds the improvement; else None."""
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
        """Return the node whose edge adds least to a delay, if the errors could hide that edge; else None."""
        if self.tree.nodes == 1:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            residuals = np.where(known, np.log(self._delays / self.explained), 0.0)
        pairs = np.bincount(self._meeting[known], minlength=self.tree.nodes)
        below = np.bincount(self._meeting[known], self.explained[known], self.tree.nodes) / np.maximum(pairs, 1)
        added = 2 * self.length[len(self.tree.node_of_leaf) :] / np.maximum(below[1:], 1e-300)
        node = int(np.argmin(added))
        return node + 1 if np.log1p(added[node]) < find_pattern(residuals, known).least_step else None
