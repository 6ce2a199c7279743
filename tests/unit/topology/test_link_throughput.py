# SPDX-License-Identifier: Apache-2.0
"""Throughputs of links are found in a network with fair sharing. Pairs that are measured together share no link."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from ibprof.errors import InconsistentError
from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.model.inferred_topology import InferredRoutes, InferredTopology, LinkThroughput
from ibprof_lab.topology.throughput.link_throughput import (
    ThroughputMeasurement,
    pair_neighbours,
    pair_through_switch,
    split_evenly,
)
from ibprof_lab.topology.throughput.pair_jobs import find_ranks, put_into_rounds
from ibprof_testing.samples.fair_network import FairNetwork, rounds_on, with_rates
from ibprof_testing.samples.topologies import Made, line, star, three_levels, torus, tree


def infer_made(made: Made) -> InferredTopology:
    values = PairDelays(tuple(str(host) for host in range(made.hosts)), made.delays(), "median", 0, ())
    return infer(values, InferenceEffort(replicates=0)).topology


def measure(made: Made, limits: dict[str, float] | None = None) -> tuple[InferredTopology, LinkThroughput, FairNetwork]:
    topology = infer_made(made)
    network = FairNetwork(made.graph, limits)
    throughput = ThroughputMeasurement(topology).run(rounds_on(network, made.hosts), lambda: None)
    return topology, throughput, network


def find_capacity(made: Made, topology: InferredTopology) -> dict[frozenset[int], float]:
    """Return the true capacity of each edge, keyed by the hosts that the edge separates from host 0."""
    found: dict[frozenset[int], float] = {}
    for one, other, data in list(made.graph.edges(data=True)):
        made.graph.remove_edge(one, other)
        far = frozenset(range(made.hosts)) - nx.node_connected_component(made.graph, 0)
        made.graph.add_edge(one, other, **data)
        found[far] = min(data["gbps"], found.get(far, np.inf))
    return found


def thin_trunk() -> Made:
    return with_rates(three_levels(16), 10.0, 4.0)


def mixed_hosts() -> Made:
    made = with_rates(star(9), 10.0, 40.0)
    for host in (2, 5):
        made.graph.edges[host, "s"]["gbps"] = 2.5
    return made


def one_slow_uplink() -> Made:
    made = with_rates(tree(4, 4), 10.0, 100.0)
    made.graph.edges["s", "s.1"]["gbps"] = 12.0
    return made


@pytest.mark.parametrize(
    "made",
    [thin_trunk(), mixed_hosts(), one_slow_uplink(), with_rates(line(16), 10.0, 5.0)],
    ids=["thin trunk", "mixed hosts", "slow uplink", "line"],
)
def test_every_link_has_its_capacity_or_a_bound(made: Made) -> None:
    topology, throughput, _ = measure(made)
    capacity = find_capacity(made, topology)
    for edge, far in enumerate(topology.find_splits()):
        assert far is not None
        found, wanted = throughput.edge_gbps[edge], capacity[far]
        if throughput.edge_at_least[edge]:
            assert found <= wanted * 1.001
        else:
            assert found == pytest.approx(wanted, rel=1e-3)
    known = ~throughput.edge_at_least
    narrow = [edge for edge, far in enumerate(topology.find_splits()) if capacity[far or frozenset()] < 6]
    assert known[narrow].all()


def test_a_wide_link_is_a_bound() -> None:
    """Four hosts at 10 Gb/s cannot saturate an uplink of 100 Gb/s, so the uplink's result is a lower bound."""
    topology, throughput, _ = measure(with_rates(tree(4, 4), 10.0, 100.0))
    between = (topology.edge >= len(topology.hosts)).all(axis=1)
    assert between.sum() == 4
    assert throughput.edge_at_least[between].all()
    assert throughput.edge_gbps[between] == pytest.approx(np.full(4, 40.0))
    assert throughput.switch_gbps.max() == pytest.approx(80.0)


def test_hosts_of_a_narrow_switch_are_measured_one_pair_after_another() -> None:
    made = with_rates(star(8), 10.0, 40.0)
    _, throughput, network = measure(made, {"s": 12.0})
    assert throughput.edge_gbps == pytest.approx(np.full(8, 10.0))
    assert not throughput.edge_at_least.any()
    assert throughput.switch_gbps == pytest.approx([12.0])
    assert not throughput.switch_at_least.any()
    assert sum(len(pairs) == 1 for pairs in network.calls) >= 2 * 28
    _, _, wide = measure(with_rates(star(8), 10.0, 40.0))
    assert len(wide.calls) < len(network.calls)


@pytest.mark.parametrize("made", [three_levels(64), line(16), torus(4, 4)], ids=["tree", "line", "torus"])
def test_what_runs_at_once_shares_no_link(made: Made) -> None:
    topology = infer_made(made)
    measurement = ThroughputMeasurement(topology)
    jobs = [job for jobs in measurement._shared for job in jobs]
    rounds = [*put_into_rounds(jobs), *pair_neighbours(InferredRoutes(topology))]
    for together in rounds:
        for one, other in combinations(together, 2):
            assert one.touched.isdisjoint(other.touched)
    for together in rounds:
        hosts = [host for job in together for pair in job.pairs for host in pair]
        assert len(hosts) == len(set(hosts))


def test_links_of_a_direct_network_are_each_measured() -> None:
    made = torus(4, 4)
    for number, (_, _, data) in enumerate(made.graph.edges(data=True)):
        data["gbps"] = 5.0 + number
    topology, throughput, _ = measure(made)
    for edge, rate in zip(topology.edge.tolist(), throughput.edge_gbps.tolist(), strict=True):
        assert rate == pytest.approx(made.graph.edges[edge]["gbps"])


@pytest.mark.parametrize(("ring", "rounds"), [(True, 2), (False, 2)])
def test_a_ring_and_a_line_of_hosts_take_two_rounds(ring: bool, rounds: int) -> None:
    """A host that is linked with n hosts takes n rounds (Bufe, figures 2.17 and 2.18)."""
    count = 10
    edges = np.array([(host, host + 1) for host in range(count - 1)] + ([(0, count - 1)] if ring else []), np.int32)
    assert len(pair_neighbours(InferredRoutes(direct(count, edges)))) == rounds
    hub = np.array([(0, host) for host in range(1, 6)] + [(1, 2)], np.int32)
    assert len(pair_neighbours(InferredRoutes(direct(6, hub)))) == 5


def direct(count: int, edges: np.ndarray) -> InferredTopology:
    ones = np.ones(len(edges))
    return InferredTopology("direct", tuple(map(str, range(count))), (), edges, ones * 1e-6, ones, ones)


def test_groups_are_as_even_as_can_be() -> None:
    """Source: the example in Bufe's section 2.3.4."""
    groups = split_evenly([2, 3, 3, 4, 6])
    assert sum(size for size, group in zip([2, 3, 3, 4, 6], groups, strict=True) if group) == 9
    assert split_evenly([]) == []
    assert sorted(split_evenly([5, 1])) == [0, 1]


def test_a_switch_in_the_middle_is_crossed_by_all_pairs() -> None:
    made = with_rates(three_levels(16), 10.0, 40.0)
    routes = InferredRoutes(infer_made(made))
    for switch in range(len(routes.topology.switches)):
        job = pair_through_switch(routes, switch)
        assert job is not None
        assert all(switch in routes.switches(*pair) for pair in job.pairs)


def test_each_host_has_the_first_rank_on_it() -> None:
    assert find_ranks(("a", "b"), ["b", "a", "a"], "t.json") == [1, 0]
    assert find_ranks(("a#0", "a#1"), ["a", "a"], "t.json") == [0, 1]
    with pytest.raises(InconsistentError, match=r"t\.json: expected a process on each of its 2 hosts, found none on c"):
        find_ranks(("a", "c"), ["a", "b"], "t.json")


def test_without_pairs_nothing_is_known() -> None:
    """If the measurement is stopped before its first round, no throughput is known."""
    made = thin_trunk()
    network = FairNetwork(made.graph)
    network.stopped = True
    found = ThroughputMeasurement(infer_made(made)).run(rounds_on(network, 16), lambda: None)
    assert np.isnan(found.edge_gbps).all()
    assert np.isnan(found.switch_gbps).all()
