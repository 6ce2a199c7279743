# SPDX-License-Identifier: Apache-2.0
"""The published methods give the published graphs, and the kernels agree with scipy and plain loops."""

from __future__ import annotations

import os
import subprocess
import sys
from math import comb

import networkx as nx
import numpy as np
import pytest
from scipy.cluster.hierarchy import leaves_list, linkage, to_tree
from scipy.spatial.distance import squareform

from ibprof.errors import UsageError
from ibprof_lab.latency.files.delay_files import read_delays
from ibprof_lab.topology.infer.binary_trees import BinaryTree, join_neighbours, link_average, prune
from ibprof_lab.topology.infer.direct_networks import find_detours
from ibprof_lab.topology.infer.inference_methods import join_models
from ibprof_lab.topology.infer.published_methods import (
    build_basic_model,
    group_latencies,
    infer_bannikov_salnikov,
    infer_bufe,
    is_less,
)
from ibprof_lab.topology.model.inferred_topology import InferredTopology
from ibprof_testing.paths import DATA
from ibprof_testing.samples.topologies import Made, disturb, line, mixed_speeds, three_levels, torus

TABLES = DATA / "delays"


def table(name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    delays = read_delays(TABLES / f"bufe_table_{name}.csv", unit=1.0)
    return delays.matrix().astype(np.float64), delays.hosts


def edges_of(topology: InferredTopology) -> dict[tuple[str, str], float]:
    names = topology.names
    pairs = (tuple(sorted((names[a], names[b]))) for a, b in topology.edge.tolist())
    return dict(zip(pairs, topology.latency_seconds.round(5).tolist(), strict=True))


def hosts_of(made: Made) -> list[str]:
    return [str(host) for host in range(made.hosts)]


NOISY = "\n".join(
    (
        "import numpy as np",
        "from ibprof_lab.topology.infer.published_methods import infer_bufe",
        "group = np.arange(10) // 3",
        "delays = np.where(group[:, None] == group, 1, 2) * (1 + 0.3 * np.random.default_rng(5).random((10, 10)))",
        "topology = infer_bufe((delays + delays.T) / 2, list(map(str, range(10))), 0.15)",
        "print(topology.edge.tolist())",
    )
)


class TestBufe:
    def test_noisy_delays_give_equal_results_in_every_process(self) -> None:
        found = {
            subprocess.run(
                [sys.executable, "-c", NOISY],
                env=os.environ | {"PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in "124"
        }
        assert len(found) == 1

    def test_comparison_is_relative_to_the_mean(self) -> None:
        assert is_less(10.0, 11.1, 0.1)
        assert not is_less(10.0, 11.0, 0.1)
        assert not is_less(11.0, 10.0, 0.0)

    def test_basic_model_of_table_2_1(self) -> None:
        model = build_basic_model(table("2_1_example")[0], 0.0)
        assert {frozenset(edge) for edge in model.edges} == {
            frozenset(edge) for edge in ((0, 1), (0, 2), (0, 3), (1, 2), (2, 3))
        }

    def test_table_2_2(self) -> None:
        topology = infer_bufe(*table("2_2_example"), 0.0)
        assert len(topology.switches) == 4
        edges = edges_of(topology)
        assert len(edges) == 12
        assert set(edges.values()) == {1.0}

    def test_table_2_3_has_no_false_edge(self) -> None:
        expected = {("A_1", "switch1"): 1.0, ("A_2", "switch1"): 1.0, ("B", "switch1"): 2.0, ("C", "switch1"): 3.0}
        assert edges_of(infer_bufe(*table("2_3_example"), 0.0)) == expected

    @pytest.mark.parametrize("epsilon", [0.03, 0.1, 0.2])
    def test_table_3_5_is_a_star(self, epsilon: float) -> None:
        topology = infer_bufe(*table("3_5_westmere_internode_us"), epsilon)
        assert (len(topology.switches), len(topology.edge)) == (1, 10)

    @pytest.mark.parametrize("epsilon", [0.07, 0.15, 0.3])
    def test_table_3_6_is_two_sockets(self, epsilon: float) -> None:
        topology = infer_bufe(*table("3_6_westmere_intranode_us"), epsilon)
        assert len(topology.switches) == 2
        assert frozenset(range(6, 12)) in topology.find_splits()

    def test_table_3_9_has_the_groups_of_the_text(self) -> None:
        text = (TABLES / "bufe_table_3_9_blizzard_from_p0_us.csv").read_text().split()[1:]
        values = {int(line.split(",")[0]): float(line.split(",")[1]) for line in text}
        groups = group_latencies(values.values(), 0.05)
        together = [[p for p, value in values.items() if sum(value >= least for least in groups) == k + 1]
                    for k in range(len(groups))]  # fmt: skip
        assert together[0] == [1, 2, 3]
        assert together[1] == [6, 8]
        assert together[-1] == [14, 15]

    def test_two_kinds_of_hosts_on_one_switch_are_rejoined(self) -> None:
        half = np.array([1.0, 1.0, 1.0, 2.0, 2.0])
        matrix = half[:, None] + half
        np.fill_diagonal(matrix, 0.0)
        topology = infer_bufe(matrix, list("abcde"), 0.0)
        assert len(topology.switches) == 1
        assert np.allclose(topology.explain_delays(), matrix)

    def test_a_ring_of_four_switches_keeps_no_diagonal(self) -> None:
        graph = nx.cycle_graph(["a", "b", "c", "d"])
        nx.set_edge_attributes(graph, 1.0, "us")
        for host in range(12):
            graph.add_edge("abcd"[host // 3], host, us=1.0)
        made = Made(12, graph)
        topology = infer_bufe(made.delays(), hosts_of(made), 0.01)
        assert (len(topology.switches), len(topology.edge)) == (4, 16)
        assert np.allclose(topology.explain_delays(), made.delays())

    def test_without_errors_trees_are_recovered(self) -> None:
        for made in (three_levels(16), line(16)):
            topology = infer_bufe(made.delays(), hosts_of(made), 0.2)
            splits = {split for split in topology.find_splits() if split and 1 < len(split) < 15}
            assert splits == made.splits()

    def test_a_search_that_takes_too_long_is_given_up_and_told(self) -> None:
        noisy = disturb(three_levels(64).delays(), 0.03, 1)
        topology = infer_bufe(noisy, [str(host) for host in range(64)], 0.2, seconds=0.05)
        assert any("the search for cliques ended" in text for text in topology.unknown)

    def test_thousands_of_hosts_end_in_time_too(self) -> None:
        topology = infer_bufe(np.ones((2000, 2000)) - np.eye(2000), [str(host) for host in range(2000)], 0.1, 0.05)
        assert any("the search for cliques ended" in text for text in topology.unknown)

    def test_the_published_probabilities_of_no_error_are_those_of_all_pairs(self) -> None:
        lines = (TABLES / "bufe_table_3_10_probability.csv").read_text().split()
        columns = [int(name[1:]) for name in lines[0].split(",")[1:]]
        misprinted = {(0.999, 32): 0.6088, (0.9999, 256): 0.0382}
        for line_ in lines[1:]:
            p, *printed = (float(field) for field in line_.split(","))
            for hosts, value in zip(columns, printed, strict=True):
                expected = misprinted.get((p, hosts), value)
                assert p ** comb(hosts, 2) == pytest.approx(expected, abs=6e-4)  # equation 3.5


def test_models_are_joined_by_the_external_vertex() -> None:
    outer = infer_bufe(np.array([[0, 12, 12], [12, 0, 12], [12, 12, 0.0]]), ["h1", "h2", "h3"], 0.01)
    # Two sockets with two cores each. The node's external link has a delay of 5, and is at the first socket.
    inner = np.array([[0, 2, 4, 4, 6], [2, 0, 4, 4, 6], [4, 4, 0, 2, 8], [4, 4, 2, 0, 8], [6, 6, 8, 8, 0.0]])
    joined = join_models(outer, infer_bufe(inner, ["c0", "c1", "c2", "c3", "far"], 0.01), "far")
    assert joined.hosts[:5] == ("h1/c0", "h1/c1", "h1/c2", "h1/c3", "h2/c0")
    delays = joined.explain_delays()
    assert np.allclose(delays[:4, :4], inner[:4, :4])
    assert delays[0, 4] == pytest.approx(12.0)
    assert delays[2, 4] == pytest.approx(14.0)
    assert delays[2, 6] == pytest.approx(16.0)


class TestBannikovSalnikov:
    def test_a_direct_network_is_recovered(self) -> None:
        made = torus(4, 4, overhead=0.0)
        topology = infer_bannikov_salnikov(made.delays()[None], hosts_of(made))
        assert {(min(edge), max(edge)) for edge in topology.edge.tolist()} == made.edges()
        assert topology.directed
        assert len(topology.edge) == 2 * len(made.edges())

    def test_a_hierarchical_one_is_fully_linked(self) -> None:
        made = three_levels(16)
        assert len(infer_bannikov_salnikov(made.delays()[None] + 1e-6, hosts_of(made)).edge) == 16 * 15

    def test_a_channel_whose_directions_differ_is_simplex(self) -> None:
        made = torus(6, overhead=0.0)
        matrix = made.delays()
        matrix[1, 0] *= 1.8
        arcs = {tuple(edge) for edge in infer_bannikov_salnikov(matrix[None], hosts_of(made)).edge.tolist()}
        assert (0, 1) in arcs
        assert (1, 0) not in arcs
        wide = infer_bannikov_salnikov(matrix[None], hosts_of(made), epsilon_d=0.9)
        assert (1, 0) in {tuple(edge) for edge in wide.edge.tolist()}

    def test_more_processes_than_it_can_do_are_refused(self) -> None:
        with pytest.raises(UsageError, match="found 5000"):
            infer_bannikov_salnikov(np.ones((1, 1, 1)), ["h"] * 5000)

    def test_probability_is_the_share_of_lengths(self) -> None:
        made = torus(6, overhead=0.0)
        cube = np.repeat(made.delays()[None], 4, axis=0)
        cube[0, 0, 1] = cube[0, 1, 0] = np.nan
        topology = infer_bannikov_salnikov(cube, hosts_of(made))
        probability = dict(zip(map(tuple, topology.edge.tolist()), topology.probability, strict=True))
        assert probability[0, 1] == 0.75
        assert probability[1, 2] == 1.0


class TestKernels:
    @pytest.mark.parametrize("leaves", [2, 3, 17, 300])
    def test_average_linkage_is_scipys(self, leaves: int) -> None:
        matrix = np.random.default_rng(leaves).random((leaves, leaves))
        matrix += matrix.T
        np.fill_diagonal(matrix, 0.0)
        expected = linkage(squareform(matrix), "average")
        tree = link_average(matrix.astype(np.float32))
        assert np.allclose(np.sort(tree.height), expected[:, 2], rtol=1e-5)
        below: list[frozenset[int]] = [frozenset([leaf]) for leaf in range(leaves)]
        for a, b in tree.child.tolist():
            below.append(below[a] | below[b])
        nodes: list[frozenset[int]] = []
        stack = [to_tree(expected)]
        while stack:
            node = stack.pop()
            if node.left and node.right:
                nodes.append(frozenset(node.pre_order()))
                stack += [node.left, node.right]
        assert set(below[leaves:]) == set(nodes)
        assert len(leaves_list(expected)) == leaves

    def test_linkage_refuses_what_is_no_distance(self) -> None:
        matrix = np.ones((20, 20), np.float32)
        matrix[3, 4] = matrix[4, 3] = np.nan
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="refused"):
            link_average(np.full((20, 20), np.nan, np.float32))

    def test_neighbour_joining_finds_the_tree_of_additive_distances(self) -> None:
        made = mixed_speeds(64)
        child = join_neighbours(made.delays())
        below: list[frozenset[int]] = [frozenset([leaf]) for leaf in range(64)]
        for a, b in child.tolist():
            below.append(below[a] | below[b])
        everyone = frozenset(range(64))
        sides = {side if 0 not in side else everyone - side for side in below}
        assert made.splits() <= sides
        assert below[-1] == everyone
        assert abs(len(below[child[-1][0]]) - 32) <= 16

    def test_detours_are_the_least_over_all_others(self) -> None:
        matrix = np.random.default_rng(3).random((70, 70))
        detour = find_detours(matrix)
        for a, b in [(0, 1), (5, 60), (69, 31)]:
            others = [k for k in range(70) if k not in (a, b)]
            assert detour[a, b] == pytest.approx(min(matrix[a, k] + matrix[k, b] for k in others), rel=1e-6)

    def test_pruning_keeps_what_gains_more_than_it_costs(self) -> None:
        # Leaves 0 and 1 are much nearer to each other than to other leaves; leaves 2 and 3 are only slightly nearer.
        # The gain of a node is weight * gap^2 / (4 * variance).
        child = np.array([[0, 1], [2, 3], [4, 5]], np.int32)
        tree = BinaryTree(4, child, np.array([10.0, 10.0, 40.0]), np.array([1.0, 1.95, 2.0]))
        pruned = prune(tree, 0.01, 60)
        assert pruned.tree.node_of_leaf.tolist() == [1, 1, 0, 0]
        assert pruned.height[1] == 1.0
        assert pruned.height[0] == pytest.approx((40 * 2.0 + 10 * 1.95) / 50)
        assert pruned.lost == pytest.approx(8.0 * 0.05**2)
        assert prune(tree, 10.0, 60).tree.nodes == 1
