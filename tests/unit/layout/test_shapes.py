# SPDX-License-Identifier: Apache-2.0
"""Layouts show the shape of a fabric: pods, chassis, rings, grids, groups. Additional CAs do not change the layout."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.node_names import rank_names
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.layout.plane_positions import position_by_distance, position_in_groups, position_on_grid
from ibprof_converter.layout.positions import count_crossings, lay_out, visit
from ibprof_testing.reference.crossings import fewest_crossings
from ibprof_testing.samples.fabrics import IBDIAGNET, OPENSM, load_sample, read_subnet

Graph = list[set[int]]


def graph_of(count: int, pairs: list[tuple[int, int]]) -> Graph:
    graph: Graph = [set() for _ in range(count)]
    for a, b in pairs:
        graph[a].add(b)
        graph[b].add(a)
    return graph


def torus(sides: list[int], wrapped: bool, shuffled: np.ndarray | None = None) -> Graph:
    shape = tuple(sides)
    count = int(np.prod(shape))
    name = np.arange(count) if shuffled is None else shuffled
    pairs = []
    for node in range(count):
        at = np.unravel_index(node, shape)
        for axis, side in enumerate(shape):
            ahead = list(at)
            ahead[axis] += 1
            if ahead[axis] < side or (wrapped and side > 2):
                ahead[axis] %= side
                pairs.append((int(name[node]), int(name[np.ravel_multi_index(ahead, shape)])))
    return graph_of(count, pairs)


def with_ca_on(fabric: Fabric, switches: np.ndarray, name: str) -> Fabric:
    """Return the fabric with an additional CA at a free port of each switch in `switches`."""
    count = len(switches)
    node = np.arange(fabric.nodes, fabric.nodes + count)
    guid = fabric.node_guid.max() + np.arange(1, count + 1).astype(np.uint64)
    return replace(
        fabric,
        node_guid=np.concatenate([fabric.node_guid, guid]),
        node_kind=np.concatenate([fabric.node_kind, np.full(count, NodeKind.CA, np.uint8)]),
        node_name=(*fabric.node_name, *(f"{name}{number} HCA-1" for number in range(count))),
        system_guid=np.concatenate([fabric.system_guid, guid]),
        link_node=np.concatenate([fabric.link_node, np.stack([switches, node], axis=1)]).astype(np.int32),
        link_port=np.concatenate([fabric.link_port, np.full((count, 2), 250)]).astype(np.int32),
        link_gbps=np.concatenate([fabric.link_gbps, np.repeat(fabric.link_gbps[:1], count)]),
    )


@pytest.mark.parametrize("sample", ["xgft3-512", "xgft3-1296"])
def test_a_ca_on_every_spine_changes_no_level(sample: str) -> None:
    fabric = load_sample(sample, IBDIAGNET).fabric
    level = find_levels(fabric)
    more = with_ca_on(fabric, np.flatnonzero(level >= 2), "mgmt")
    assert find_levels(more)[: fabric.nodes].tolist() == level.tolist()
    assert (find_levels(more)[fabric.nodes :] == 0).all()


def test_a_ca_on_every_director_spine_changes_no_level() -> None:
    fabric = load_sample("dualrail/rail1", IBDIAGNET).fabric
    level = find_levels(fabric)
    more = with_ca_on(fabric, np.flatnonzero(level == 3), "mgmt")
    assert find_levels(more)[: fabric.nodes].tolist() == level.tolist()


def test_names_of_hosts_can_say_where_levels_begin() -> None:
    fabric = load_sample("xgft3-512", IBDIAGNET).fabric
    level = find_levels(fabric)
    more = with_ca_on(fabric, np.flatnonzero(level == 3), "login")
    assert find_levels(more, re.compile("^node")).tolist()[: fabric.nodes] == level.tolist()
    tops = find_levels(more, re.compile("^login"))[: fabric.nodes][level == 3]
    assert (tops == 1).all()


def crossings_by_pairs(fabric: Fabric, level: np.ndarray, x: np.ndarray) -> int:
    total = 0
    for one, other in combinations(fabric.link_node.tolist(), 2):
        (a, b), (c, d) = (sorted(link, key=lambda node: level[node]) for link in (one, other))
        if (level[a], level[b]) == (level[c], level[d]) and level[a] < level[b]:
            total += (x[a] - x[c]) * (x[b] - x[d]) < 0
    return int(total)


@given(st.data())
def test_crossings_are_those_of_all_pairs_of_links(data: st.DataObject) -> None:
    fabric = load_sample("quirks-small", OPENSM).fabric
    level = np.array(data.draw(st.lists(st.integers(0, 3), min_size=fabric.nodes, max_size=fabric.nodes)))
    x = np.array(data.draw(st.lists(st.integers(0, 9), min_size=fabric.nodes, max_size=fabric.nodes)), float)
    assert count_crossings(fabric, level, x) == crossings_by_pairs(fabric, level, x)


@pytest.mark.parametrize("sample", ["xgft3-512", "xgft3-1296", "dualrail/rail1", "oversub-faulty"])
def test_no_more_links_cross_than_in_the_order_of_a_traversal(sample: str) -> None:
    fabric = load_sample(sample, IBDIAGNET).fabric
    (layout,) = lay_out([fabric])
    met = visit(fabric, rank_names(fabric.node_name)).astype(float)
    assert count_crossings(fabric, layout.level, layout.x) <= count_crossings(fabric, layout.level, met)


@pytest.mark.parametrize(
    ("sample", "tree"),
    [("xgft3-512", (8, 8, 8, 8)), ("xgft3-1296", (18, 4, 18, 2, (1, 9))), ("xgft:3:2,6,3:1,4,5", (6, 3, 4, 5))],
)
def test_full_fat_trees_are_drawn_with_the_fewest_crossings(
    sample: str, tree: tuple[int, int, int, int, tuple[int, int]]
) -> None:
    fabric = (read_subnet(sample) if ":" in sample else load_sample(sample, IBDIAGNET)).fabric
    (layout,) = lay_out([fabric])
    assert count_crossings(fabric, layout.level, layout.x) == fewest_crossings(*tree)


@pytest.mark.parametrize(("leaves", "tops", "cables"), [(2, 1, (1, 1)), (2, 2, (1, 1)), (1, 2, (2, 1)), (2, 1, (1, 2))])
def test_no_order_has_fewer_crossings_than_the_bound(leaves: int, tops: int, cables: tuple[int, int]) -> None:
    """The test tries all orders of all levels of a tree of two pods, which have two middle switches each."""
    below = [(p * leaves + i, p * 2 + g) for p in range(2) for g in range(2) for i in range(leaves)] * cables[0]
    above = [(g * tops + i, p * 2 + g) for p in range(2) for g in range(2) for i in range(tops)] * cables[1]

    def crossings(links: list[tuple[int, int]], outer: tuple[int, ...], middle: tuple[int, ...]) -> int:
        return sum((outer[a] - outer[c]) * (middle[b] - middle[d]) < 0 for (a, b), (c, d) in combinations(links, 2))

    fewest = min(
        min(crossings(below, order, middle) for order in permutations(range(2 * leaves)))
        + min(crossings(above, order, middle) for order in permutations(range(2 * tops)))
        for middle in permutations(range(4))
    )
    assert fewest == fewest_crossings(leaves, 2, 2, tops, cables)


@pytest.mark.parametrize(("sample", "pods"), [("xgft3-512", 8), ("xgft3-1296", 4)])
def test_pods_stand_apart_and_over_their_hosts(sample: str, pods: int) -> None:
    fabric = load_sample(sample, IBDIAGNET).fabric
    (layout,) = lay_out([fabric])
    width = (layout.x.max() + 1) / pods
    pod = ((layout.x + 0.5) // width).astype(int)
    inside = layout.level[fabric.link_node].max(axis=1) <= 2
    ends = pod[fabric.link_node[inside]]
    assert (ends[:, 0] == ends[:, 1]).all()
    assert np.unique(ends).tolist() == list(range(pods))


def test_switches_of_a_chassis_stand_together() -> None:
    fabric = load_sample("dualrail/rail1", IBDIAGNET).fabric
    (layout,) = lay_out([fabric])
    for level in (2, 3):
        here = np.flatnonzero(layout.level == level)
        chassis = fabric.system_guid[here[np.argsort(layout.x[here])]]
        assert int((chassis[1:] != chassis[:-1]).sum()) == 1


@pytest.mark.parametrize("sample", ["torus2d-5x4", "hypercube-4", "dragonfly-72", "xgft3-512", "dualrail/rail1"])
def test_every_node_has_a_place_of_its_own(sample: str) -> None:
    fabric = load_sample(sample, OPENSM).fabric
    (layout,) = lay_out([fabric])
    assert layout.has_levels == sample.startswith(("xgft", "dualrail"))
    assert len(set(zip(layout.x.tolist(), layout.y.tolist(), strict=True))) == fabric.nodes


def cells(graph: Graph) -> list[tuple[int, int]]:
    points = position_on_grid(graph)
    assert points is not None
    return [(round(x), round(y)) for x, y in (points - points.min(axis=0) - 0.25).tolist()]


@pytest.mark.parametrize("seed", range(3))
def test_a_torus_is_drawn_as_its_folded_grid_whatever_its_switches_are_called(seed: int) -> None:
    name = np.random.RandomState(seed).permutation(35)
    at = cells(torus([7, 5], True, name))
    assert sorted(at) == [(x, y) for x in range(7) for y in range(5)]
    for a, b in ((a, b) for a, around in enumerate(torus([7, 5], True, name)) for b in around):
        step = sorted((abs(at[a][0] - at[b][0]), abs(at[a][1] - at[b][1])))
        assert step in ([0, 1], [0, 2])


@pytest.mark.parametrize(("sides", "wrapped"), [([6, 3], False), ([5, 4], True), ([2] * 4, False)])
def test_products_fill_a_rectangle(sides: list[int], wrapped: bool) -> None:
    at = cells(torus(sides, wrapped))
    across, up = (max(values) + 1 for values in zip(*at, strict=True))
    assert across * up == len(at) == len(set(at))


def distances(points: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the distance between each link and each node, [link, node]; infinite for the link's ends."""
    start, along = points[pairs[:, 0]], points[pairs[:, 1]] - points[pairs[:, 0]]
    part = ((points - start[:, None]) * along[:, None]).sum(axis=2) / (along**2).sum(axis=1)[:, None]
    apart = points - start[:, None] - np.clip(part, 0, 1)[:, :, None] * along[:, None]
    distance: np.ndarray = np.linalg.norm(apart, axis=2)
    distance[np.arange(len(pairs))[:, None], pairs] = np.inf
    return distance


def dragonfly(groups: int, size: int) -> Graph:
    """Return a dragonfly. A group's global links lead to the other groups in turn, clockwise."""
    pairs = [(g * size + a, g * size + b) for g in range(groups) for a, b in combinations(range(size), 2)]
    each = -(-(groups - 1) // size)
    pairs += [
        (a * size + (b - a - 1) // each, b * size + (a - b + groups - 1) // each)
        for a, b in combinations(range(groups), 2)
    ]
    return graph_of(groups * size, pairs)


@pytest.mark.parametrize(
    "graph",
    [
        torus([7, 5], True),
        torus([6, 3], False),
        torus([4, 4, 3], True),
        torus([3, 4, 5], True),
        torus([2] * 5, False),
        dragonfly(5, 4),
        dragonfly(9, 4),
        dragonfly(19, 6),
        dragonfly(33, 8),
    ],
)
def test_no_link_lies_on_another_or_on_a_switch(graph: Graph) -> None:
    points = position_on_grid(graph)
    if points is None:
        points = position_in_groups(graph)
    assert points is not None
    pairs = np.array([(a, b) for a, around in enumerate(graph) for b in around if a < b])
    # Lines overlap if a line ends on another line, or if two lines leave a node in the same direction.
    assert distances(points, pairs).min() > 0.1
    along = points[pairs[:, ::-1]] - points[pairs]
    angle = np.arctan2(along[..., 1], along[..., 0])
    for node in range(len(graph)):
        around = np.sort(angle[pairs == node])
        assert np.diff([*around, around[0] + 2 * np.pi]).min() > np.radians(1)


def test_a_torus_that_lacks_a_cable_is_still_laid_out() -> None:
    graph = torus([6, 5], True)
    graph[0].discard(1)
    graph[1].discard(0)
    points = position_on_grid(graph)
    if points is None:
        points = position_by_distance(graph)
    assert len(np.unique(points.round(6), axis=0)) == 30


def test_groups_of_a_dragonfly_stand_together() -> None:
    groups, size = 5, 4
    pairs = [(g * size + a, g * size + b) for g in range(groups) for a, b in combinations(range(size), 2)]
    pairs += [(a * size + b - 1, b * size + a) for a, b in combinations(range(groups), 2)]
    points = position_in_groups(graph_of(groups * size, pairs))
    assert points is not None
    centre = points.reshape(groups, size, 2).mean(axis=1)
    within = np.linalg.norm(points.reshape(groups, size, 2) - centre[:, None], axis=2).max()
    apart = min(np.linalg.norm(a - b) for a, b in combinations(centre, 2))
    assert apart > 2 * within


def test_other_graphs_are_no_grids_and_no_groups() -> None:
    graph = graph_of(
        10, [(i, (i + 1) % 5) for i in range(5)] + [(i, i + 5) for i in range(5)] + [(5, 7), (7, 9), (9, 6)]
    )
    assert position_on_grid(graph) is None
    assert position_in_groups(graph) is None


def test_a_ring_without_structure_otherwise_is_drawn_as_a_ring() -> None:
    ring = graph_of(12, [(i, (i + 1) % 12) for i in range(12)])
    assert position_on_grid(ring) is None
    points = position_by_distance(ring)
    radius = np.linalg.norm(points - points.mean(axis=0), axis=1)
    assert radius.min() > 0.9 * radius.max()


def make_cells(cells: int, leaves: int = 3, tops: int = 2, hosts: int = 4) -> Fabric:
    """Return a fabric of cells of switches. Each top switch has a link to its counterpart in each other cell."""
    used: dict[int, int] = {}
    links: list[tuple[int, int, int, int]] = []

    def join(a: int, b: int) -> None:
        used[a], used[b] = used.get(a, 0) + 1, used.get(b, 0) + 1
        links.append((a, used[a], b, used[b]))

    leaf, top = cells * leaves * hosts, cells * leaves * (hosts + 1)
    nodes = top + cells * tops
    for host in range(leaf):
        join(host, leaf + host // hosts)
    for each, upper in ((each, upper) for each in range(cells * leaves) for upper in range(tops)):
        join(leaf + each, top + each // leaves * tops + upper)
    for (one, other), upper in ((pair, upper) for pair in combinations(range(cells), 2) for upper in range(tops)):
        join(top + one * tops + upper, top + other * tops + upper)
    table = np.array(sorted(links), np.int32)
    return Fabric(
        name="cells",
        node_guid=np.arange(1, nodes + 1, dtype=np.uint64),
        node_kind=np.where(np.arange(nodes) < leaf, NodeKind.CA, NodeKind.SWITCH).astype(np.uint8),
        node_name=tuple(f"n{node:03d}" for node in range(nodes)),
        system_guid=np.zeros(nodes, np.uint64),
        link_node=table[:, [0, 2]],
        link_port=table[:, [1, 3]],
        link_gbps=np.full(len(table), 100.0),
        port_node=np.arange(nodes, dtype=np.int32),
        port_number=np.ones(nodes, np.int32),
        port_guid=np.arange(1, nodes + 1, dtype=np.uint64),
        port_lid=np.arange(1, nodes + 1, dtype=np.int32),
        port_lmc=np.zeros(nodes, np.int32),
    )


def test_cells_have_levels_though_most_links_of_their_top_switches_are_within_a_level() -> None:
    fabric = make_cells(8)
    (layout,) = lay_out([fabric])
    assert layout.has_levels
    assert np.bincount(layout.level).tolist() == [96, 24, 16]
    # The hosts of a cell are adjacent.
    cell = np.arange(96) // 12
    assert np.count_nonzero(np.diff(cell[np.argsort(layout.x[:96], kind="stable")])) == 7
