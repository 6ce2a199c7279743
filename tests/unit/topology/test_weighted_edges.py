# SPDX-License-Identifier: Apache-2.0
"""Parallel edges, in either direction, become one edge with the smallest of their weights."""

from __future__ import annotations

import numpy as np
import pytest

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.spread import spread
from ibprof_converter.routing.subnet import join_subnet
from ibprof_lab.cli import topology
from ibprof_lab.topology.model.inferred_topology import InferredTopology, weigh_edges
from ibprof_lab.topology.outputs.inferred_fabric import make_fabric
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


def test_hosts_take_the_cables_of_a_doubled_link_in_turn() -> None:
    """Two cables join two switches with two hosts each. Each cable carries the bytes to one host on each switch."""
    edge = np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5], [4, 5]], np.int32)
    ones = np.ones(len(edge))
    found = InferredTopology("bufe", ("a", "b", "c", "d"), ("s1", "s2"), edge, 1e-6 * ones, ones, ones)
    made = make_fabric(found, "doubled", 100.0)
    between = (made.fabric.node_kind[made.fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    assert int(between.sum()) == 2
    source, destination = (each.ravel() for each in np.meshgrid(np.arange(1, 5), np.arange(1, 5)))
    subnet = join_subnet(made.fabric, made.tables)
    loads = spread(subnet.routes, source, destination, np.ones(16, np.uint64), np.zeros(16, np.int32), 1)
    assert loads.bytes[between].reshape(2, 2).tolist() == [[2, 2], [2, 2]]
