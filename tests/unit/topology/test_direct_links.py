# SPDX-License-Identifier: Apache-2.0
"""If a direct link's delay equals the path's delay, traffic that saturates the path shows the link."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from ibprof_lab.topology.infer.inference import InferenceEffort, infer
from ibprof_lab.topology.infer.pair_delays import PairDelays
from ibprof_lab.topology.model.inferred_topology import InferredTopology, attach_hosts
from ibprof_lab.topology.throughput.direct_links import BlockedRates, DirectLinkTest, Finding, add_direct_links
from ibprof_lab.topology.throughput.link_throughput import ThroughputMeasurement
from ibprof_testing.samples.fair_network import FairNetwork, rounds_on, with_rates
from ibprof_testing.samples.topologies import Made, line, tree


def infer_made(made: Made) -> InferredTopology:
    values = PairDelays(tuple(str(host) for host in range(made.hosts)), made.delays(), "median", 0, ())
    return infer(values, InferenceEffort(replicates=0)).topology


def add_link(made: Made, one: object, other: object, gbps: float) -> None:
    """Add a link with slightly less delay than the path. Messages cross the link, but delays do not show the link."""
    length = nx.shortest_path_length(made.graph, one, other, weight="us")
    made.graph.add_edge(one, other, us=length * (1 - 1e-6), gbps=gbps)


def run(made: Made, topology: InferredTopology) -> tuple[DirectLinkTest, tuple[BlockedRates, ...]]:
    test = DirectLinkTest(topology)
    return test, test.run(rounds_on(FairNetwork(made.graph), made.hosts), lambda: None).rates


def own_switches(made: Made, host: int) -> str:
    return next(str(each) for each in made.graph[host])


def find(results: tuple[BlockedRates, ...], made: Made) -> dict[frozenset[str], Finding]:
    return {frozenset(own_switches(made, host) for host in each.path.hosts): each.finding for each in results}


def test_a_hidden_link_between_two_ends_of_a_line_is_found() -> None:
    """The switches are in a row, and trunks are as fast as hosts' links. A hidden link joins the end switches."""
    made = with_rates(line(16), 10.0, 10.0)
    topology = infer_made(made)
    add_link(made, "s0", "s3", 10.0)
    _, results = run(made, topology)
    found = find(results, made)
    assert found.pop(frozenset({"s0", "s3"})) is Finding.DIRECT
    assert found
    assert set(found.values()) == {Finding.NONE}
    corrected = add_direct_links(topology, results)
    assert len(corrected.edge) == len(topology.edge) + 1
    ends = next(each.path for each in results if each.finding is Finding.DIRECT)
    vertices = attach_hosts(topology).vertices()
    assert set(corrected.edge[-1].tolist()) == {int(vertices[ends.switches[place]]) for place in (0, -1)}
    assert corrected.latency_seconds[-1] == pytest.approx(3e-6)
    assert corrected.explain_delays() == pytest.approx(topology.explain_delays())


@pytest.mark.parametrize("made", [line(16), tree(4, 4), tree(2, 2, 4)], ids=["line", "tree", "three levels"])
def test_without_hidden_links_none_is_found(made: Made) -> None:
    made = with_rates(made, 10.0, 10.0)
    topology = infer_made(made)
    _, results = run(made, topology)
    assert results
    assert {each.finding for each in results} == {Finding.NONE}
    assert add_direct_links(topology, results).edge.tolist() == topology.edge.tolist()


def test_links_that_carry_all_of_them_do_not_show_it_but_a_known_throughput_does() -> None:
    """Three pairs send 30 Gb/s, and the trunk carries 35 Gb/s."""
    made = with_rates(tree(2, 2, 4), 10.0, 30.0)
    topology = infer_made(made)
    for one, other in (("s.0", "s.0.0"), ("s.0", "s.0.1"), ("s.1", "s.1.0"), ("s.1", "s.1.1")):
        made.graph.edges[one, other]["gbps"] = 35.0
    add_link(made, "s.0.0", "s.0.1", 10.0)
    _, results = run(made, topology)
    assert Finding.UNKNOWN in find(results, made).values()
    assert find(results, made)[frozenset({"s.0.0", "s.0.1"})] is not Finding.NONE
    measurement = ThroughputMeasurement(topology)
    known = replace(topology, throughput=measurement.run(rounds_on(FairNetwork(made.graph), made.hosts), lambda: None))
    _, again = run(made, known)
    assert find(again, made)[frozenset({"s.0.0", "s.0.1"})] is Finding.DIRECT


def test_hosts_that_are_their_own_switches() -> None:
    """Hosts form a ring or a line without switches, as in Bufe's figures 2.4 and 2.5."""
    graph = nx.path_graph(4)
    nx.set_edge_attributes(graph, 1.0, "us")
    made = with_rates(Made(4, graph), 10.0, 10.0)
    edges = np.array(sorted(graph.edges), np.int32)
    ones = np.ones(3)
    topology = InferredTopology("direct", ("0", "1", "2", "3"), (), edges, ones * 1e-6, ones, ones)
    test, results = run(made, topology)
    assert {each.path.hosts: each.finding for each in results} == dict.fromkeys([(0, 2), (0, 3), (1, 3)], Finding.NONE)
    assert test.left_out == 0
    add_link(made, 0, 3, 10.0)
    _, results = run(made, topology)
    assert [each.path.hosts for each in results if each.finding is Finding.DIRECT] == [(0, 3)]
    assert add_direct_links(topology, results).edge.tolist()[-1] == [0, 3]


def test_paths_at_the_same_time_share_nothing() -> None:
    test = DirectLinkTest(infer_made(with_rates(tree(4, 4, 4), 10.0, 10.0)))
    for row in test._rounds:
        hosts = [host for job in row for pair in job.pairs for host in pair]
        links = [link for job in row for link in frozenset().union(*job.links)]
        assert len(set(hosts)) == len(hosts)
        assert len(set(links)) == len(links)
    assert test.rounds == 3 * len(test._rounds)


def test_chosen_hosts_alone_and_stopped_runs() -> None:
    made = with_rates(line(16), 10.0, 10.0)
    topology = infer_made(made)
    test = DirectLinkTest(topology, [(0, 15)])
    network = FairNetwork(made.graph)
    assert [each.path.hosts for each in test.run(rounds_on(network, 16), lambda: None).rates] == [(0, 15)]
    network.stopped = True
    assert test.run(rounds_on(network, 16), lambda: None).rates == ()
    assert DirectLinkTest(topology, [(0, 1)]).left_out == 1
