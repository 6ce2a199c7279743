# SPDX-License-Identifier: Apache-2.0
"""Candidates: graphs that may explain delays, how well they do, and whether the residuals have a pattern.

Errors of real machines are alike for pairs that share a host, a route or a place on a chip. A mean over many such pairs
is no more exact than one of them. Tests that count pairs then find a switch in every group of hosts that lie a little
nearer to one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.binary_trees import RootedTree

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

FLOOR = 0.003
"""Relative deviation of clocks and rounding; it keeps the likelihood of a perfect fit finite."""

OUTLYING = 3.5
"""Times the residuals' scaled median absolute deviation; beyond it a value is an outlier."""

NORMAL = 1.4826
"""Median absolute deviation -> standard deviation, for normal errors."""

LEAST_STEP = 0.02
"""Least increase of a delay by a link, of its logarithm: clocks, cables and firmware differ by less."""

_STEP_WITH_PATTERN = 5.0
"""Times the deviation of residuals with a pattern (docs/inference.md). With 4, one of 60 synthetic processors with
errors by place has a switch too many; with 8, links of a cluster behind queues are lost."""

_PATTERN = 2.8
"""Times sigma sqrt(n): errors alone reach about 2, and seldom more than this with ten hosts."""

_LIKELY_PATTERN = 2.1
"""The same, where taking errors for a pattern costs little: links that are much larger are kept anyway. One of a
hundred matrices of 6 to 192 hosts with independent errors exceeds it."""

_LOOKED_AT = 192
"""Number of hosts whose residuals are tested for a pattern."""

_ITERATIONS = 40


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
        errors: known deviation of the errors that its switches were found with; 0 where the delays showed it.
    """

    model: str
    switches: int
    edge: Integers
    latency: Floats
    overhead: float
    explained: Floats
    parameters: int
    errors: float = 0.0

    def residuals(self, delays: npt.NDArray[np.floating]) -> Floats:
        """Return the logarithm of each delay over the explained one, float64 [host, host]; 0 on the diagonal."""
        with np.errstate(divide="ignore", invalid="ignore"):
            residuals = np.log(delays / self.explained)
        np.fill_diagonal(residuals, 0.0)
        return residuals


def score(candidate: Candidate, delays: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> float:
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


@dataclass(frozen=True, slots=True)
class ResidualPattern:
    """Strength and size of a pattern in residuals.

    Attributes:
        strength: largest eigenvalue over sigma sqrt(n). It is near 2 for independent errors; a pattern, such as a host
            that is slower to all others, adds up along rows and exceeds that.
        deviation: sigma, the root mean square of the residuals, outliers clipped; of the logarithm of a delay.

    Source: E. P. Wigner, "On the distribution of the roots of certain symmetric matrices", Annals of Mathematics 67,
    1958.
    """

    strength: float
    deviation: float

    @property
    def is_certain(self) -> bool:
        """True if residuals are more than independent errors."""
        return self.strength > _PATTERN

    @property
    def is_likely(self) -> bool:
        """True if residuals are probably more than independent errors."""
        return self.strength > _LIKELY_PATTERN

    @property
    def least_step(self) -> float:
        """Least increase of the logarithm of a delay that shows a link."""
        with_pattern = _STEP_WITH_PATTERN * self.deviation if self.is_likely else 0.0
        return max(LEAST_STEP, with_pattern)


def sample_hosts(hosts: int) -> npt.NDArray[np.integer]:
    """Return the hosts whose residuals are enough to find a pattern: all, or some hundred."""
    return np.linspace(0, hosts - 1, min(hosts, _LOOKED_AT)).astype(int)


def find_pattern(residuals: npt.NDArray[np.floating], known: npt.NDArray[np.bool_]) -> ResidualPattern:
    """Look for a pattern in residuals.

    Args:
        residuals: [n, n], symmetric, logarithm of the delay over the explained one.
        known: bool [n, n], which of them count.
    """
    rows = sample_hosts(len(residuals))
    residuals, known = residuals[np.ix_(rows, rows)], known[np.ix_(rows, rows)]
    if not known.any():
        return ResidualPattern(0.0, 0.0)
    limit = OUTLYING * NORMAL * float(np.median(np.abs(residuals[known])))
    left = np.where(known, np.clip(residuals, -limit, limit), 0.0)
    sigma = float(np.sqrt(np.square(left).sum() / np.count_nonzero(known)))
    if sigma < FLOOR:
        return ResidualPattern(0.0, sigma)
    return ResidualPattern(_largest_eigenvalue(left) / (sigma * sqrt(len(left))), sigma)


def _largest_eigenvalue(symmetric: Floats) -> float:
    """Return the largest absolute eigenvalue, to some percent, by power iteration."""
    vector = np.random.default_rng(0).standard_normal(len(symmetric))
    length = 0.0
    for _ in range(_ITERATIONS):
        vector = symmetric @ (vector / np.linalg.norm(vector))
        length = float(np.linalg.norm(vector))
    return length
