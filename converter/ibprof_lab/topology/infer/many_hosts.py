# SPDX-License-Identifier: Apache-2.0
"""Levels of thousands of hosts, with one copy of the matrix in memory at most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_lab.topology.infer.candidate import FLOOR, Candidate, graph_of_tree
from ibprof_lab.topology.infer.model_choice import fill_gaps
from ibprof_lab.topology.infer.nested_levels import Levels, find_levels
from ibprof_lab.topology.infer.residual_pattern import NORMAL, OUTLYING, find_pattern

_SAMPLED = 192
_MOST_AGAIN = 1_000_000


@dataclass(frozen=True, slots=True)
class ManyHosts:
    """Levels of thousands of hosts.

    Attributes:
        candidate: the graph, without the matrix of explained delays.
        noise: typical relative deviation of a delay.
        unexplained: whether the residuals have a pattern.
        again: int [pair, 2], delays that deviate too far.
    """

    candidate: Candidate
    noise: float
    unexplained: bool
    again: npt.NDArray[np.integer]


def choose_for_many(delays: npt.NDArray[np.floating]) -> ManyHosts:
    """Find nested switches and the delays that deviate from them.

    Args:
        delays: [n, n], seconds, symmetric, nan where not measured.
    """
    measured = ~np.isnan(delays)
    np.fill_diagonal(measured, False)
    working = delays if measured.sum() == measured.size - len(delays) else fill_gaps(delays, measured)
    levels = find_levels(working)
    rows = np.linspace(0, len(delays) - 1, _SAMPLED).astype(int)
    sampled = np.stack([each for _, each in _residuals(levels, working, rows)])
    left = float(np.median(np.abs(sampled[measured[rows]])))
    limit = OUTLYING * NORMAL * max(left, FLOOR)
    found: list[npt.NDArray[np.integer]] = []
    count = 0
    for row, residuals in _residuals(levels, working, np.arange(len(delays))):
        far = np.flatnonzero((np.abs(residuals[row + 1 :]) > limit) & measured[row, row + 1 :]) + row + 1
        found.append(np.stack([np.full(len(far), row), far], axis=1))
        count += len(far)
        if count > _MOST_AGAIN:
            break
    tree, delay = levels.pruned.tree, np.exp(levels.pruned.height)
    edge, latency, switches = graph_of_tree(tree, delay[tree.node_of_leaf] / 2, (delay[tree.parent] - delay) / 2)
    return ManyHosts(
        Candidate("levels", switches, edge, latency, 0.0, np.zeros((0, 0)), tree.nodes),
        NORMAL * left,
        find_pattern(sampled[:, rows], measured[np.ix_(rows, rows)]).is_certain,
        np.concatenate(found),
    )


def _residuals(
    levels: Levels, delays: npt.NDArray[np.floating], rows: npt.NDArray[np.integer]
) -> Iterator[tuple[int, npt.NDArray[np.floating]]]:
    """Yield rows of the logarithm of each delay over the explained one; 0 on the diagonal."""
    tree, height = levels.pruned.tree, levels.pruned.height.astype(np.float32)
    order, begin, end = tree.order_leaves()
    back = np.argsort(order)
    ordered = np.empty(len(order), np.float32)
    for row in rows.tolist():
        path = [int(tree.node_of_leaf[row])]
        while path[-1]:
            path.append(int(tree.parent[path[-1]]))
        for node in reversed(path):
            ordered[begin[node] : end[node]] = height[node]
        with np.errstate(divide="ignore"):
            residuals = np.log(delays[row]) - ordered[back]
        residuals[row] = 0.0
        yield row, residuals
