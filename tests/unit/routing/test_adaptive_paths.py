# SPDX-License-Identifier: Apache-2.0
"""The ports among which adaptive routing chooses, and the loads, equal the results of a walk over all choices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.routing.adaptive_bounds import AdaptiveBounds, bound_adaptive
from ibprof_converter.routing.adaptive_paths import AdaptivePaths
from ibprof_converter.routing.far import parse_far
from ibprof_converter.routing.subnet import Subnet, join_subnet
from ibprof_converter.routing.tables import NO_GROUP, AdaptiveRouting
from ibprof_testing.lab.far import FarForm, write_far
from ibprof_testing.samples.fabrics import read_subnet

TREE = "xgft:2:4,4:1,4"
"""Four leaves of four hosts, LIDs 1 to 16, under four spines."""


PLAIN = FarForm()

FORMS = (PLAIN, FarForm(cut=3), FarForm(cut=1), FarForm(states=("HBF",)), FarForm(states=("Free", "Static", "HBF")))


def with_far(name: str, form: FarForm = PLAIN) -> Subnet:
    subnet = read_subnet(name)
    return join_subnet(subnet.fabric, subnet.tables, parse_far("x.far", write_far(subnet, form).encode()))


def load(subnet: Subnet, pairs: Sequence[tuple[int, int, int]]) -> AdaptiveBounds:
    source, destination, amount = (np.array(column) for column in zip(*pairs, strict=True))
    paths = AdaptivePaths(subnet.routes.network, subnet.adaptive)
    return bound_adaptive(paths, [(source, destination, amount.astype(np.uint64))])


def walk(subnet: Subnet, pairs: Sequence[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Follow all choices of all switches; return two arrays of bytes, [link, end].

    The first array contains the bytes for equal shares of all choices, the second contains the largest possible bytes.
    """
    fabric, adaptive, network = subnet.fabric, subnet.adaptive, subnet.routes.network
    assert adaptive is not None
    shared = [Fraction(0)] * (2 * fabric.links)
    most = [0] * (2 * fabric.links)
    for source, destination, amount in pairs:
        index = int(fabric.lid_port[source])
        first = int(network.end_at[fabric.port_node[index], fabric.port_number[index]])
        reached: set[int] = set()
        todo = [(first, Fraction(amount))]
        while todo:
            end, part = todo.pop()
            shared[end] += part
            reached.add(end)
            node = int(network.next_node[end])
            if fabric.node_kind[node] != NodeKind.SWITCH:
                continue
            ports = choose(subnet, adaptive, node, destination)
            todo += [(int(network.end_at[node, port]), part / len(ports)) for port in ports]
        for end in reached:
            most[end] += amount
    return np.array(shared, float).reshape(-1, 2), np.array(most).reshape(-1, 2)


def choose(subnet: Subnet, adaptive: AdaptiveRouting, node: int, lid: int) -> tuple[int, ...]:
    guid = int(subnet.fabric.node_guid[node])
    group = adaptive.group_of(guid, lid)
    if group == NO_GROUP:
        row = int(subnet.routes.network.row[subnet.routes.network.switch_of[node]])
        return (int(subnet.tables.port[row, lid]),)
    return adaptive.groups[guid, group][0].ports


PAIRS = [(a, b, 1000 * a + b) for a in range(1, 17) for b in range(1, 17) if a != b]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [TREE, "xgft:3:2,2,4:1,2,2:1,2,1"])
def test_loads_are_those_of_a_walk_over_each_choice(name: str, form: FarForm) -> None:
    subnet = with_far(name, form)
    shared, most = walk(subnet, PAIRS)
    found = load(subnet, PAIRS)
    assert np.allclose(found.shared, shared)
    assert np.array_equal(found.most, most)
    assert (found.estimate <= most + 1e-6).all()
    assert np.isclose(found.estimate.sum(), shared.sum())
    assert found.unrouted == 0


def test_groups_of_all_minimal_ports_are_what_no_file_says() -> None:
    subnet = with_far(TREE)
    assert subnet.adaptive is not None
    found, plain = load(subnet, PAIRS), load(read_subnet(TREE), PAIRS)
    assert np.allclose(found.estimate, plain.estimate)
    assert np.array_equal(found.most, plain.most)


def test_the_estimate_avoids_ports_that_static_traffic_fills() -> None:
    """At leaf 1, one flow has a static port. Three flows choose among this port and three other ports."""
    subnet = with_far(TREE, FarForm(states=("Static", "Free")))
    adaptive, network, fabric = subnet.adaptive, subnet.routes.network, subnet.fabric
    assert adaptive is not None
    leaf = int(network.next_node[network.end_at[fabric.lid_node[1], 1]])
    port = choose(subnet, adaptive, leaf, 6)[0]  # the port of static routes to even LIDs
    pairs = [(1, 6, 900_000), (2, 7, 300_000), (3, 9, 300_000), (4, 11, 300_000)]
    found = load(subnet, pairs)
    end = int(network.end_at[leaf, port])
    assert found.shared.ravel()[end] == pytest.approx(900_000 + 3 * 75_000)
    assert found.estimate.ravel()[end] < 900_000 + 100_000
    up = [int(network.end_at[leaf, other]) for other in choose(subnet, adaptive, leaf, 7)]
    assert sum(found.estimate.ravel()[each] for each in up) == pytest.approx(1_800_000)


def test_a_hash_does_not_avoid_full_ports() -> None:
    subnet = with_far(TREE, FarForm(states=("Static", "HBF")))
    found = load(subnet, [(1, 6, 900_000), (2, 7, 300_000), (3, 9, 300_000)])
    assert np.allclose(found.estimate, found.shared)


def test_groups_that_lead_in_a_cycle_are_cut_to_shortest_paths() -> None:
    """Each port group contains all ports of its switch. So a leaf could send a packet from a spine back to spines."""
    subnet = with_far(TREE)
    assert subnet.adaptive is not None
    every = tuple(range(1, 9))
    for key, parts in subnet.adaptive.groups.items():
        subnet.adaptive.groups[key] = (type(parts[0])(0, 0, every),)
    spines = [row for row in range(8) if not (subnet.adaptive.group[row] != NO_GROUP).any()]
    for row in spines:
        subnet.adaptive.group[row, 1:17] = 1
        subnet.adaptive.groups[int(subnet.adaptive.tables.switch_guid[row]), 1] = (type(parts[0])(0, 0, every),)
    found, plain = load(subnet, PAIRS), load(read_subnet(TREE), PAIRS)
    assert len(spines) == 4
    assert np.allclose(found.shared, plain.shared)


def test_flows_that_no_choice_delivers_are_counted() -> None:
    subnet = with_far(TREE)
    tables = subnet.tables
    tables.port[:, 9] = 255
    assert subnet.adaptive is not None
    subnet.adaptive.group[:, 9] = NO_GROUP
    found = load(subnet, [(1, 9, 700), (1, 10, 400)])
    assert found.unrouted == 700
