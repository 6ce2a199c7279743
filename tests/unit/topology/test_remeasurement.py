# SPDX-License-Identifier: Apache-2.0
"""The delays of few pairs determine the latencies of all links, and doubtful links are found."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.model.inferred_topology import InferredRoutes
from ibprof_lab.topology.throughput.remeasurement import choose_representatives, find_unexplained_pairs, schedule_pairs
from ibprof_testing.samples.topologies import Made, disturb, line, star, three_levels, torus


def routes_of(made: Made) -> InferredRoutes:
    values = PairDelays(tuple(str(host) for host in range(made.hosts)), made.delays(), "median", 0, ())
    return InferredRoutes(infer(values, InferenceEffort(replicates=0)).topology)


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize(
    "made", [star(16), three_levels(64), line(16), torus(4, 4)], ids=["star", "tree", "line", "torus"]
)
def test_few_pairs_determine_every_latency(made: Made, each: int) -> None:
    routes = routes_of(made)
    pairs = choose_representatives(routes, each)
    assert len(set(pairs)) == len(pairs) <= 9 * each * len(routes.topology.edge)
    assert all(one < other for one, other in pairs)
    edges = np.arange(len(routes.topology.edge))
    rows = np.array([np.isin(edges, list(routes.links(*pair))) for pair in pairs], float)
    measured = np.array([made.delays()[pair] for pair in pairs]) - routes.topology.overhead_seconds
    found, _, rank, _ = np.linalg.lstsq(rows, measured, rcond=None)
    assert rank == len(routes.topology.edge)
    assert found == pytest.approx(routes.topology.latency_seconds, rel=1e-3, abs=1e-10)


def test_they_are_a_multiple_of_the_links_and_not_of_the_pairs() -> None:
    made = three_levels(256)
    pairs = choose_representatives(routes_of(made))
    assert len(pairs) < 0.03 * 256 * 255 / 2


def test_no_two_pairs_of_a_round_share_a_switch() -> None:
    routes = routes_of(three_levels(64))
    pairs = choose_representatives(routes)
    rounds = schedule_pairs(routes, pairs)
    assert sorted(pair for each in rounds for pair in each) == sorted(pairs)
    assert len(rounds) < len(pairs)
    for each in rounds:
        for one, other in combinations(each, 2):
            assert not set(routes.switches(*one)) & set(routes.switches(*other))


def test_what_the_topology_does_not_explain_is_doubtful() -> None:
    made = three_levels(16)
    topology = routes_of(made).topology
    delays = disturb(made.delays(), 0.02, 1)
    delays[3, 9] *= 2
    delays[9, 3] *= 2
    delays[1, 2] *= 3
    delays[4, 5] = delays[5, 4] = np.nan
    assert find_unexplained_pairs(topology, delays) == [(1, 2), (3, 9)]
    assert find_unexplained_pairs(topology, np.full((16, 16), np.nan)) == []
