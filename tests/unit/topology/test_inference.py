# SPDX-License-Identifier: Apache-2.0
"""Inferred topologies: published tables give the published graphs, and synthetic delays give the planted topologies."""

from __future__ import annotations

import tracemalloc
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest

from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_lab.latency.model.delays import Delays
from ibprof_lab.topology.infer import direct_networks, reliability
from ibprof_lab.topology.infer.candidate import OUTLYING, Candidate
from ibprof_lab.topology.infer.direct_networks import describe_grid, find_regular
from ibprof_lab.topology.infer.inference import Inference, InferenceEffort, infer
from ibprof_lab.topology.infer.model_choice import choose_model, find_unconfirmed
from ibprof_lab.topology.infer.pair_delays import PairDelays, take_pair_delays
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_testing.paths import DATA
from ibprof_testing.samples.topologies import SHAPES, Made, disturb, line, star, three_levels, torus

TABLES = DATA / "delays"
QUICK = InferenceEffort(replicates=0)


def make_values(matrix: np.ndarray) -> PairDelays:
    return PairDelays(tuple(f"n{host}" for host in range(len(matrix))), matrix, "median", 0, ())


def infer_table(name: str) -> InferredTopology:
    return infer(take_pair_delays(read_delays(TABLES / f"bufe_table_{name}.csv")), QUICK).topology


def splits_of(topology: InferredTopology) -> set[frozenset[int]]:
    hosts = len(topology.hosts)
    return {split for split in topology.find_splits() if split is not None and 1 < len(split) < hosts - 1}


def edges_of(topology: InferredTopology) -> dict[tuple[str, str], float]:
    names = topology.names
    pairs = (tuple(sorted((names[a], names[b]))) for a, b in topology.edge.tolist())
    return dict(zip(pairs, (topology.latency_seconds * 1e6).round(5).tolist(), strict=True))


def is_recovered(topology: InferredTopology, made: Made) -> bool:
    if made.is_direct:
        return {(min(edge), max(edge)) for edge in topology.edge.tolist()} == made.edges()
    return splits_of(topology) == made.splits()


class TestPublishedTables:
    def test_2_1_is_a_direct_network_without_the_link_that_a_detour_explains(self) -> None:
        expected = dict.fromkeys([("A", "B"), ("A", "C"), ("A", "D"), ("B", "C"), ("C", "D")], 3.0)
        assert edges_of(infer_table("2_1_example")) == expected

    def test_2_2_is_three_switches_joined_by_a_fourth(self) -> None:
        topology = infer_table("2_2_example")
        assert len(topology.switches) == 4
        assert set(edges_of(topology).values()) == {1.0}
        assert splits_of(topology) == {frozenset({3, 4, 5}), frozenset({6, 7, 8}), frozenset(range(3, 9))}

    def test_2_3_has_no_false_edge(self) -> None:
        expected = {("A_1", "switch1"): 1.0, ("A_2", "switch1"): 1.0, ("B", "switch1"): 2.0, ("C", "switch1"): 3.0}
        assert edges_of(infer_table("2_3_example")) == expected

    @pytest.mark.parametrize("name", ["3_5_westmere_internode_us", "3_7_magny_intersocket_us"])
    def test_one_switch(self, name: str) -> None:
        topology = infer_table(name)
        assert len(topology.switches) == 1
        assert any("one switch" in text for text in topology.unknown)

    def test_3_6_is_two_sockets(self) -> None:
        topology = infer_table("3_6_westmere_intranode_us")
        assert len(topology.switches) == 2
        assert splits_of(topology) == {frozenset(range(6, 12))}

    def test_3_8_has_the_second_die_apart(self) -> None:
        assert frozenset(range(6, 12)) in splits_of(infer_table("3_8_magny_intrasocket_us"))


class TestSyntheticTopologies:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("hosts", [16, 64])
    def test_without_errors_all_is_recovered(self, shape: str, hosts: int) -> None:
        made = SHAPES[shape](hosts)
        topology = infer(make_values(made.delays()), QUICK).topology
        assert is_recovered(topology, made)
        explained, measured = topology.explain_delays(), made.delays()
        assert np.allclose(explained, measured, rtol=1e-3)

    @pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "torus"])
    @pytest.mark.parametrize("noise", [pytest.param(0.05, marks=pytest.mark.full), 0.08])
    def test_trees_are_recovered_from_noise(self, shape: str, noise: float) -> None:
        for hosts, seeds in ((16, 5), (64, 2)):
            made = SHAPES[shape](hosts)
            found = [
                is_recovered(infer(make_values(disturb(made.delays(), noise, seed)), QUICK).topology, made)
                for seed in range(seeds)
            ]
            assert all(found)

    def test_a_torus_is_recovered_from_noise_that_hides_single_links(self) -> None:
        made = torus(4, 4)
        topology = infer(make_values(disturb(made.delays(), 0.02, 1)), QUICK).topology
        assert is_recovered(topology, made)
        assert topology.overhead_seconds == pytest.approx(1e-6, rel=0.05)

    def test_a_ring_of_switches(self) -> None:
        graph = nx.cycle_graph(["a", "b", "c", "d"])
        nx.set_edge_attributes(graph, 1.0, "us")
        for host in range(12):
            graph.add_edge("abcd"[host // 3], host, us=1.0)
        made = Made(12, graph)
        topology = infer(make_values(disturb(made.delays(), 0.03, 3)), QUICK).topology
        assert len(topology.switches) == 4
        assert len(topology.edge) == 16
        between = topology.edge[topology.edge.min(axis=1) >= 12]
        assert sorted(np.bincount(between.ravel())[12:]) == [2, 2, 2, 2]

    def test_wrong_values_are_found_and_measuring_them_again_repairs_the_answer(self) -> None:
        made = three_levels(64)
        matrix = disturb(made.delays(), 0.05, 2, wrong=0.05)
        wrong = np.abs(np.log((matrix + np.eye(64)) / (made.delays() + np.eye(64)))) > 0.5
        for attempt in range(3):
            choice = choose_model(matrix)
            again = choice.outliers | find_unconfirmed(choice.candidate, 64)
            if attempt == 0:
                assert np.count_nonzero(again & wrong) > 0.9 * np.count_nonzero(wrong)
                assert np.count_nonzero(again) < 0.2 * again.size
            matrix = np.where(again, disturb(made.delays(), 0.05, 100 + attempt, wrong=0.05), matrix)
        assert is_recovered(infer(make_values(matrix), QUICK).topology, made)

    def test_pairs_that_were_not_measured_are_no_obstacle(self) -> None:
        made = line(16)
        matrix = disturb(made.delays(), 0.03, 5)
        hidden = np.triu(np.random.default_rng(1).random(matrix.shape) < 0.1, 1)
        matrix[hidden | hidden.T] = np.nan
        topology = infer(make_values(matrix), QUICK).topology
        assert is_recovered(topology, made)
        assert any("not measured" in note for note in topology.notes)


class TestWhatIsSaidOfAnAnswer:
    def test_support_is_high_where_delays_are_clear_and_low_where_they_are_not(self) -> None:
        made = three_levels(16)
        sure = infer(make_values(disturb(made.delays(), 0.02, 1)), InferenceEffort(replicates=30)).topology
        assert (sure.support > 0.9).all()
        unsure = infer(take_pair_delays(read_delays(TABLES / "bufe_table_3_8_magny_intrasocket_us.csv"))).topology
        assert 0.2 < unsure.support.min() < 0.9

    def test_noise_is_reported(self) -> None:
        topology = infer(make_values(disturb(star(64).delays(), 0.05, 1)), QUICK).topology
        assert topology.noise == pytest.approx(0.05, rel=0.15)

    def test_delays_without_structure_are_those_of_one_switch(self) -> None:
        topology = infer(make_values(disturb(star(16).delays(), 0.4, 7)), QUICK).topology
        assert len(topology.switches) == 1
        assert any("deviate" in text for text in topology.unknown)
        assert any("one switch" in text for text in topology.unknown)

    @pytest.mark.parametrize("hosts", [1, 2])
    def test_too_few_hosts(self, hosts: int) -> None:
        inferred = infer(make_values(np.full((hosts, hosts), 1e-6) * (1 - np.eye(hosts))), QUICK)
        assert len(inferred.topology.hosts) == hosts
        assert inferred.topology.unknown
        assert len(inferred.again) == 0

    def test_three_hosts(self) -> None:
        matrix = np.array([[0, 2, 3], [2, 0, 3], [3, 3, 0]]) * 1e-6
        topology = infer(make_values(matrix), QUICK).topology
        assert np.allclose(topology.explain_delays(), matrix)

    def test_hosts_that_nothing_connects_are_left_out_and_named(self) -> None:
        matrix = star(6).delays()
        matrix[5, :5] = matrix[:5, 5] = np.nan
        topology = infer(make_values(matrix), QUICK).topology
        assert topology.hosts == ("n0", "n1", "n2", "n3", "n4")
        assert any("n5" in note for note in topology.notes)

    def test_of_two_halves_that_nothing_connects_one_is_left_out(self) -> None:
        matrix = star(40).delays()
        matrix[:20, 20:] = matrix[20:, :20] = np.nan
        topology = infer(make_values(matrix), QUICK).topology
        assert topology.hosts in (tuple(f"n{host}" for host in range(first, first + 20)) for first in (0, 20))
        assert len(topology.switches) == 1
        assert any("20 hosts are left out" in note for note in topology.notes)

    def test_thousands_of_hosts_and_a_wrong_value(self) -> None:
        hosts, leaf = 2100, 30
        level = np.where(np.arange(hosts)[:, None] // leaf == np.arange(hosts) // leaf, 2e-6, 4e-6).astype(np.float32)
        level *= np.exp(0.05 * np.random.default_rng(1).standard_normal(level.shape, np.float32))
        level = np.triu(level, 1)
        level[3, 2000] = 1e-4
        inferred = infer(make_values(level + level.T), QUICK)
        assert len(inferred.topology.switches) == hosts // leaf + 1
        assert np.bincount(inferred.topology.edge.ravel())[:hosts].tolist() == [1] * hosts
        assert [3, 2000] in inferred.again.tolist()


class TestValues:
    def test_directions_are_joined_and_outliers_reported(self) -> None:
        matrix = star(8).delays().astype(np.float32)
        matrix[0, 1] *= 3
        matrix[2, 3] = np.nan
        matrix[4, 5] = 0
        values = take_pair_delays(Delays(tuple("abcdefgh"), np.array([8]), matrix[None]))
        assert np.allclose(values.seconds, star(8).delays())
        assert any("the shorter delay counts for 1 pair," in note for note in values.notes)
        assert any("not measured: 1 delay of 0, since" in note for note in values.notes)

    def test_processes_of_a_host_are_one_leaf(self) -> None:
        made = three_levels(16)
        place = np.repeat(np.arange(16), 2)
        matrix = made.delays()[np.ix_(place, place)].astype(np.float32)
        matrix[matrix == 0] = 3e-7
        matrix[1::2] *= 1.1
        np.fill_diagonal(matrix, 0)
        delays = Delays(tuple(f"h{host}" for host in place), np.array([8]), matrix[None])
        values = take_pair_delays(delays)
        assert values.hosts == tuple(f"h{host}" for host in range(16))
        assert is_recovered(infer(values, QUICK).topology, made)

    def test_one_host_alone_has_its_processes_as_leaves(self) -> None:
        delays = Delays(("h",) * 8, np.array([8]), star(8).delays().astype(np.float32)[None])
        assert infer(take_pair_delays(delays), QUICK).topology.hosts == tuple(f"h#{core}" for core in range(8))


def test_pairs_to_measure_again_are_of_the_matrix_that_was_given() -> None:
    matrix = np.full((9, 9), np.nan)
    matrix[1:, 1:] = disturb(star(8).delays(), 0.02, 1)
    matrix[2, 5] = matrix[5, 2] = 2e-6 * (1 + 10 * OUTLYING * 0.02)
    inferred: Inference = infer(make_values(matrix), QUICK)
    assert [2, 5] in inferred.again.tolist()
    assert len(inferred.again) < 4


@pytest.mark.parametrize(("hosts", "slow", "us"), [(16, 3, 1.3), (16, 8, 1.3), (50, 8, 1.3), (64, 8, 1.6)])
def test_some_slower_links_make_no_switch(hosts: int, slow: int, us: float) -> None:
    made = star(hosts)
    for host in range(slow):
        made.graph.edges[host, "s"]["us"] = us
    for seed in range(5):
        topology = infer(make_values(disturb(made.delays(), 0.05, seed)), QUICK).topology
        assert len(topology.switches) == 1
        own = {int(edge[0]): seconds for edge, seconds in zip(topology.edge, topology.latency_seconds, strict=True)}
        assert np.mean([own[host] for host in range(slow)]) == pytest.approx(us * 1e-6, rel=0.05)


@pytest.mark.parametrize(
    ("noise", "overhead", "lost"),
    [(0.0, 1.0, 0.0), (0.01, 1.0, 0.0), (0.01, 1.5, 0.0), (0.01, 1.5, 0.05), (0.003, 1.0, 0.5)],
)
def test_a_torus_of_many_hosts_is_recognised_with_its_sizes(noise: float, overhead: float, lost: float) -> None:
    """A link adds 6% to a delay. With errors of 1%, some hosts two links apart have shorter delays than neighbours."""
    place = np.stack(np.unravel_index(np.arange(576), (8, 8, 9)), axis=1)
    apart = np.abs(place[:, None] - place)
    hops = np.minimum(apart, np.array([8, 8, 9]) - apart).sum(axis=2)
    delays = disturb(np.where(hops > 0, (overhead + 0.1 * hops) * 1e-6, 0.0), noise, 1)
    unmeasured = np.triu(np.random.default_rng(1).random(delays.shape) < lost, 1)
    delays[unmeasured | unmeasured.T] = np.nan
    inferred = infer(make_values(delays), QUICK)
    linked = {(min(edge), max(edge)) for edge in inferred.topology.edge.tolist()}
    assert linked == {(int(a), int(b)) for a, b in np.argwhere(np.triu(hops == 1))}
    assert any("torus of 8 x 8 x 9 hosts" in note for note in inferred.topology.notes)
    assert not any("an estimated delay" in note for note in inferred.topology.notes)
    assert inferred.refusal is None


def test_hops_between_many_hosts_are_counted_in_blocks() -> None:
    graph = torus(33, 35).graph
    hops = direct_networks._count_hops(np.array(list(graph.edges)), len(graph))
    assert hops is not None
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    assert hops.tolist() == [[lengths[a][b] for b in range(len(graph))] for a in range(len(graph))]


@pytest.mark.parametrize(("noise", "samples"), [(0.005, 10), (0.03, 60)])
def test_sampling_ends_when_each_sample_has_each_link(
    monkeypatch: pytest.MonkeyPatch, noise: float, samples: int
) -> None:
    taken = []

    def infer_again(*arguments: Any) -> Candidate | None:
        taken.append(arguments)
        return infer_sample(*arguments)

    infer_sample = reliability._infer_again
    monkeypatch.setattr(reliability, "_infer_again", infer_again)
    made = torus(4, 4, 4)
    inferred = infer(make_values(disturb(made.delays(), noise, 1)), InferenceEffort(replicates=60, seconds=100))
    assert len(taken) == samples
    assert (inferred.topology.support == 1).all() == (samples == 10)
    assert not any("support comes from" in note for note in inferred.topology.notes)


@pytest.mark.filterwarnings("error")
def test_few_measured_pairs_are_no_regular_network() -> None:
    """Most hosts have fewer measured delays than a host of a regular network has neighbours."""
    delays = disturb(star(300).delays(), 0.05, 1)
    unmeasured = np.triu(np.random.default_rng(1).random(delays.shape) < 0.97, 1)
    known = (delays > 0) & ~(unmeasured | unmeasured.T)
    assert np.median(known.sum(axis=1)) < 10
    assert find_regular(np.where(known, delays, np.nan), known) is None


def test_pairs_are_judged_only_until_there_are_too_many_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts of one switch have similar delays, so each unmeasured pair could be a link."""
    asked = []

    def judge(*arguments: Any) -> npt.NDArray[np.bool_]:
        asked.append(len(arguments[1]))
        return are_neighbours(*arguments)

    are_neighbours = direct_networks._are_neighbours
    monkeypatch.setattr(direct_networks, "_are_neighbours", judge)
    delays = disturb(star(600).delays(), 0.05, 1)
    unmeasured = np.triu(np.random.default_rng(1).random(delays.shape) < 0.9, 1)
    known = (delays > 0) & ~(unmeasured | unmeasured.T)
    assert find_regular(np.where(known, delays, np.nan), known) is None
    assert sum(asked) < known.size / 4


@pytest.mark.parametrize(
    ("sizes", "rings", "name"),
    [
        ((20, 15), False, "a mesh of 15 x 20 hosts"),
        ((2,) * 9, False, "a hypercube of 9 dimensions"),
        ((8, 8, 6), (True, True, False), "a torus of 8 x 8 hosts, lines of 6"),
    ],
)
def test_meshes_and_hypercubes_are_named_with_their_sizes(
    sizes: tuple[int, ...], rings: bool | tuple[bool, ...], name: str
) -> None:
    graph = nx.convert_node_labels_to_integers(nx.grid_graph(sizes, periodic=rings))
    nx.set_edge_attributes(graph, 0.1, "us")
    made = Made(len(graph), graph, 1.0)
    topology = infer(make_values(disturb(made.delays(), 0.005, 1)), QUICK).topology
    assert is_recovered(topology, made)
    assert f"the links form {name}" in topology.notes


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ("hosts", "a torus of 5 x 6 x 10 hosts, without 9 of its hosts"),
        ("cables", "a torus of 5 x 6 x 10 hosts, without 18 of its links"),
        ("pairs", "a torus of 5 x 6 x 10 hosts"),
        ("speed", "a torus of 5 x 6 x 10 hosts"),
    ],
)
def test_a_torus_that_lacks_something_is_recovered_with_its_sizes(lacks: str, said: str) -> None:
    """3% of the hosts, 2% of the cables or 3% of the measurements are missing, or a host is slow."""
    draw = np.random.default_rng(1)
    graph = torus(5, 6, 10).graph.copy()
    if lacks == "hosts":
        graph.remove_nodes_from(draw.choice(300, 9, replace=False).tolist())
    if lacks == "cables":
        edges = list(graph.edges)
        graph.remove_edges_from([edges[each] for each in draw.choice(len(edges), 18, replace=False)])
    made = Made(len(graph), nx.convert_node_labels_to_integers(graph), 1.0)
    delays = disturb(made.delays(), 0.003, 1)
    if lacks == "pairs":
        delays[tuple(np.argwhere(np.triu(draw.random(delays.shape) < 0.03, 1)).T)] = np.nan
        delays = np.where(np.isnan(delays.T), np.nan, delays)
    if lacks == "speed":
        delays[7] *= 1.5
        delays[:, 7] *= 1.5
    found = infer(make_values(delays), QUICK)
    assert is_recovered(found.topology, made)
    assert found.refusal is None
    assert f"the links form {said}" in found.topology.notes
    assert any("(n7) are 1.5" in note for note in found.topology.notes) == (lacks == "speed")


@pytest.mark.parametrize(
    "graph",
    [nx.random_regular_graph(6, 60, 1), nx.petersen_graph(), nx.circulant_graph(64, [1, 8]), nx.balanced_tree(2, 4)],
    ids=["random", "Petersen", "twisted", "tree"],
)
def test_other_networks_get_no_name_of_a_grid(graph: nx.Graph) -> None:
    assert describe_grid(np.array(list(graph.edges)), len(graph)) is None


def test_networks_with_more_neighbours_than_any_grid_cost_no_memory() -> None:
    """In a full mesh of 100 hosts, a list of all squares of four linked hosts would take 3.5 GB."""
    edges = np.array(list(nx.complete_graph(64).edges))
    tracemalloc.start()
    assert describe_grid(edges, 64) is None
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.005, 0.01])
def test_processors_of_a_blizzard_node_are_switches(noise: float) -> None:
    """Bufe's figure 3.2: four meshed blocks of four processors. A processor has two cores, and two links to blocks."""
    graph = nx.Graph()
    for processor in range(16):
        block, place = divmod(processor, 4)
        inside = [(processor, 4 * block + other, 0.15) for other in range(place)]
        graph.add_weighted_edges_from([*inside, (processor, 4 * ((block + 1) % 4) + place, 0.57)], "us")
    cores = nx.Graph()
    cores.add_weighted_edges_from([(32 + a, 32 + b, us["us"]) for a, b, us in graph.edges(data=True)], "us")
    cores.add_weighted_edges_from([(core, 32 + core // 2, 0.575) for core in range(32)], "us")
    topology = infer(make_values(disturb(Made(32, cores).delays(), noise, 1)), InferenceEffort(replicates=20)).topology
    edge = np.sort(topology.edge, axis=1)
    switch = dict(edge[edge[:, 0] < 32].tolist())
    assert all(switch[core] == switch[core + 1] != switch[(core + 2) % 32] for core in range(0, 32, 2))
    assert (len(topology.switches), len(topology.edge)) == (16, len(cores.edges))


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_a_dragonfly_is_recovered_although_some_switches_have_one_host(noise: float) -> None:
    """Nine groups of four switches with two hosts each. Three hosts were not measured."""
    own = np.delete(np.repeat(np.arange(36), 2), [0, 10, 20])  # switch of each host
    hosts = len(own)
    links = {(4 * group + a, 4 * group + b) for group in range(9) for a in range(4) for b in range(a)}
    links |= {(4 * group + a // 2, 4 * ((group + 1 + a) % 9) + (7 - a) // 2) for group in range(9) for a in range(8)}
    graph = nx.Graph([(hosts + a, hosts + b) for a, b in links] + list(zip(range(hosts), hosts + own, strict=True)))
    nx.set_edge_attributes(graph, 1.0, "us")
    found = infer(make_values(disturb(Made(hosts, graph).delays(), noise, 1)), InferenceEffort(replicates=10))
    edge = np.sort(found.topology.edge, axis=1)
    number = {vertex: int(own[host]) for host, vertex in edge[edge[:, 0] < hosts].tolist()}
    assert sorted(number.values()) == list(range(36))
    assert {frozenset((number[a], number[b])) for a, b in edge[edge[:, 0] >= hosts].tolist()} == set(
        map(frozenset, links)
    )
    assert found.refusal is None


def test_a_network_that_no_model_explains_is_refused() -> None:
    place = np.random.default_rng(0).random((300, 3))
    delays = (1 + np.linalg.norm(place[:, None] - place, axis=2)) * 1e-6
    np.fill_diagonal(delays, 0.0)
    refusal = infer(make_values(delays), QUICK).refusal
    assert refusal is not None
    assert "no model explains" in refusal
