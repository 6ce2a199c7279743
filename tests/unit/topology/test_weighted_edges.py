# SPDX-License-Identifier: Apache-2.0
"""Parallel edges keep the least of their weights, in whichever direction they are written."""

from __future__ import annotations

import numpy as np
import pytest

from ibprof_lab.cli import topology
from ibprof_lab.topology.model.weighted_edges import weigh_edges
from ibprof_testing.paths import DATA

EDGES = np.array([[0, 1], [0, 1], [1, 0], [1, 2], [2, 2]])
WEIGHT = np.array([3.0, 2.0, 5.0, 1.0, 9.0])


def test_parallel_edges_are_one_of_the_least_weight() -> None:
    assert weigh_edges(EDGES, WEIGHT, 3).toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert weigh_edges(EDGES, WEIGHT, 3, directed=True).toarray().tolist() == [[0, 2, 0], [5, 0, 1], [0, 0, 0]]


def test_a_fabric_with_a_doubled_cable_is_like_itself(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DATA / "cases" / "doubled-cable.dot")
    assert topology.main(["compare", path, path]) == 0
    assert "slow" not in capsys.readouterr().out
