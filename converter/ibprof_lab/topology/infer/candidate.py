# SPDX-License-Identifier: Apache-2.0
"""Candidates: graphs that may explain delays, and how well they do."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import RootedTree

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

FLOOR = 0.003
"""Relative deviation of clocks and rounding; it keeps the likelihood of a perfect fit finite."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A graph over hosts and switches.

    Attributes:
        model: `levels`, `additive` or `direct`.
        switches: number of them; their vertices come after the hosts'.
        edge: int32 [edge, 2], vertices.
        latency: float64 [edge], seconds.
        overhead: cost of a message that does not depend on its path, seconds.
        explained: float64 [host, host], the delays that it explains, seconds.
        parameters: number of fitted values.
    """

    model: str
    switches: int
    edge: Integers
    latency: Floats
    overhead: float
    explained: Floats
    parameters: int

    def residuals(self, delays: Floats) -> Floats:
        """Return the logarithm of each delay over the explained one, float64 [host, host]; 0 on the diagonal."""
        with np.errstate(divide="ignore", invalid="ignore"):
            residuals = np.log(delays / self.explained)
        np.fill_diagonal(residuals, 0.0)
        return residuals


def score(candidate: Candidate, delays: Floats, known: npt.NDArray[np.bool_]) -> float:
    """Return Schwarz's criterion for errors with Laplace's distribution in the logarithm; less is better.

    Args:
        candidate: to be scored.
        delays: float64 [host, host], seconds.
        known: bool [host, host], which delays were measured and count.
    """
    above = np.triu(known, 1)
    pairs = int(np.count_nonzero(above))
    deviation = float(np.abs(candidate.residuals(delays)[above]).mean()) if pairs else 0.0
    return 2 * pairs * log(max(deviation, FLOOR)) + candidate.parameters * log(max(pairs, 2))


def find_attached_switches(edge: Integers, hosts: int) -> npt.NDArray[np.integer]:
    """Return the vertex of the switch of each host, int [host]; a host without one is by itself."""
    switch = np.arange(hosts)
    ends = np.sort(edge, axis=1)
    on_switch = ends[(ends[:, 0] < hosts) & (ends[:, 1] >= hosts)]
    switch[on_switch[:, 0]] = on_switch[:, 1]
    return switch


def find_switches(edge: Integers, hosts: int) -> npt.NDArray[np.integer]:
    """Return the switch of each host, int [host], numbered from 0 on; a host without one is by itself."""
    numbered: npt.NDArray[np.integer] = np.unique(find_attached_switches(edge, hosts), return_inverse=True)[1]
    return numbered


def graph_of_tree(tree: RootedTree, host_length: Floats, node_length: Floats) -> tuple[Integers, Floats, int]:
    """Return a rooted tree as edges of hosts and switches, without a root that has two children: it would only forward.

    Args:
        tree: at least two leaves.
        host_length: float64 [leaf], of the edge above each leaf.
        node_length: float64 [node], of the edge above each node; the root's is ignored.

    Returns:
        Edges, their lengths, and the number of switches.
    """
    hosts = len(tree.node_of_leaf)
    ends = np.concatenate([tree.node_of_leaf, tree.parent[1:]]) + hosts
    edge = np.stack([np.concatenate([np.arange(hosts), hosts + np.arange(1, tree.nodes)]), ends], axis=1)
    length = np.concatenate([host_length, node_length[1:]])
    at_root = np.flatnonzero(edge[:, 1] == hosts)
    if len(at_root) == 2:
        a, b = sorted(edge[at_root, 0].tolist())
        whole = length[at_root].sum()
        edge, length = np.delete(edge, at_root, axis=0), np.delete(length, at_root)
        edge, length = np.concatenate([edge, [[a, b]]]), np.append(length, whole)
        edge = np.where(edge > hosts, edge - 1, edge)
        return edge.astype(np.int32), length, tree.nodes - 1
    return np.sort(edge, axis=1).astype(np.int32), length, tree.nodes
