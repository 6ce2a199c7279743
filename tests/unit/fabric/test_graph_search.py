# SPDX-License-Identifier: Apache-2.0
"""Searches of graphs agree with scipy's, on random graphs with loops, parallel edges and unreachable nodes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path

from ibprof_converter.fabric.graph_search import count_hops, find_parts


@pytest.mark.parametrize(("nodes", "edges"), [(1, 0), (1, 3), (7, 5), (30, 25), (40, 160), (700, 900)])
def test_parts_and_hops_are_those_of_scipy(nodes: int, edges: int) -> None:
    random = np.random.default_rng(nodes)
    pairs = random.integers(0, nodes, (edges, 2))
    goals = random.permutation(nodes)[: max(nodes - 2, 1)]
    graph = coo_array((np.ones(edges), pairs.T), (nodes, nodes)).tocsr()
    hops = count_hops(nodes, pairs, goals)
    assert np.array_equal(np.where(hops < 0, np.inf, hops), shortest_path(graph, unweighted=True)[:, goals])
    _, label = connected_components(graph, directed=False)
    assert np.array_equal(np.unique(find_parts(nodes, pairs), return_inverse=True)[1], label)
