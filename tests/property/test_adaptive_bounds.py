# SPDX-License-Identifier: Apache-2.0
"""Bounds of adaptive routing equal sums over all shortest paths; static routes' loads do not exceed them."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from ibprof_converter.cli import layout, report
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.adaptive_bounds import bound_adaptive
from ibprof_converter.routing.adaptive_paths import AdaptivePaths
from ibprof_converter.routing.spread import spread
from ibprof_converter.routing.subnet import join_subnet
from ibprof_converter.routing.subnet_routes import IndexedNetwork
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample, host_lids, load_sample
from ibprof_testing.strategies import fabrics, right_tables, scale_examples


def walk_everywhere(fabric: Fabric, pairs: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Compute the bounds from all shortest paths between switches (by networkx), with all parallel cables."""
    graph = nx.MultiGraph()
    is_switch = fabric.node_kind == NodeKind.SWITCH
    cables: dict[tuple[int, int], list[int]] = {}
    at = {}
    for link, ((a, b), ports) in enumerate(zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True)):
        at[a, ports[0]], at[b, ports[1]] = 2 * link, 2 * link + 1
        if is_switch[a] and is_switch[b] and a != b:
            graph.add_edge(a, b)
            cables.setdefault((a, b), []).append(2 * link)
            cables.setdefault((b, a), []).append(2 * link + 1)
    shared, most = np.zeros(2 * fabric.links), np.zeros(2 * fabric.links, np.uint64)
    simple = nx.Graph(graph)
    other = fabric.link_node[:, ::-1].ravel()
    for source, destination, amount in pairs:
        places = []
        for lid in (source, destination):
            index = fabric.lid_port[lid]
            node, port = int(fabric.port_node[index]), int(fabric.port_number[index])
            out = None if is_switch[node] else at.get((node, port))
            places.append((node if is_switch[node] else int(other[out]) if out is not None else -1, out))
        (first, out), (last, into) = places
        if fabric.lid_port[source] == fabric.lid_port[destination] or -1 in (first, last):
            continue
        if not (is_switch[first] and is_switch[last]):
            continue
        paths = [[first]] if first == last else None
        if paths is None:
            if not (first in simple and last in simple and nx.has_path(simple, first, last)):
                continue
            paths = list(nx.all_shortest_paths(simple, first, last))
        for end in (out, None if into is None else into ^ 1):
            if end is not None:
                shared[end] += amount
                most[end] += np.uint64(amount)
        steps = {edge for path in paths for edge in pairwise(path)}
        for edge in steps:
            most[cables[edge]] += np.uint64(amount)
        for path in paths:
            part = float(amount)
            for node, then in pairwise(path):
                ports = sum(len(cables[step]) for step in steps if step[0] == node)
                part /= ports
                part *= len(cables[node, then])
            rest = part
            for edge in pairwise(path):
                shared[cables[edge]] += rest / len(cables[edge])
    return shared.reshape(-1, 2), most.reshape(-1, 2)


@given(fabrics())
@settings(max_examples=scale_examples(60), deadline=None)
def test_bounds_are_those_of_every_shortest_way(fabric: Fabric) -> None:
    lids = fabric.port_lid.tolist()
    pairs = [(a, b, 1 + 7 * a + b) for a in lids for b in lids]
    source, destination, amount = (np.array(column) for column in zip(*pairs, strict=True))
    bounds = bound_adaptive(
        AdaptivePaths(IndexedNetwork.index(fabric, right_tables(fabric))),
        [(source, destination, amount.astype(np.uint64))],
    )
    shared, most = walk_everywhere(fabric, pairs)
    assert np.allclose(bounds.shared, shared)
    assert np.array_equal(bounds.most, most)
    assert (bounds.shared <= bounds.most + 1e-6).all()
    assert (bounds.estimate <= bounds.most + 1e-6).all()
    assert np.isclose(bounds.estimate.sum(), bounds.shared.sum())  # all shortest paths have equally many links


@pytest.mark.parametrize("sample", ["testbed44", "xgft3-512", "dragonfly-72", "torus2d-5x4"])
def test_the_static_answer_is_within_the_bounds_where_its_routes_are_minimal(sample: str) -> None:
    subnet = load_sample(sample, IBDIAGNET)
    lids = host_lids(subnet.fabric)
    source, destination = np.repeat(lids, len(lids)), np.tile(lids, len(lids))
    ones = np.ones(len(source), np.uint64)
    static = spread(subnet.routes, source, destination, ones, ones * 0, 1).bytes[:, :, 0]
    bounds = bound_adaptive(AdaptivePaths(subnet.routes.network), [(source, destination, ones)])
    assert (static <= bounds.most).all()
    assert bounds.unrouted == 0
    assert np.isclose(bounds.shared.sum(), static.sum())  # static paths are shortest paths


def test_a_leaf_shares_over_all_its_uplinks() -> None:
    made = generate("xgft:2:4,3:1,2:1,3")
    subnet = join_subnet(made.fabric, made.tables)
    bounds = bound_adaptive(
        AdaptivePaths(subnet.routes.network), [(np.array([1]), np.array([12]), np.array([600], np.uint64))]
    )
    between = (subnet.fabric.node_kind[subnet.fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    assert sorted(bounds.shared[between].ravel())[-12:] == [100.0] * 12  # six uplinks and six downlinks
    assert bounds.most[between].sum() == 12 * 600


FAR = """Switch {0:#x}
Groups Definition:
Group Sub Group WHBF Ports
1 0 0 1,2,
LFT Definition:
LID Static Port Lid State Group
0x0002 1 Free 1
"""


def test_bounds_stand_next_to_the_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lst = str(find_sample("testbed44", IBDIAGNET))
    assert layout.main([lst, "pattern:shift:1:900", "--adaptive", "--used"]) == 0
    printed = capsys.readouterr()
    assert "a link has no single load" in printed.err
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert all(int(row["a_bytes"]) <= int(row["a_most"]) for row in rows)
    far = tmp_path / "x.far"
    far.write_text(FAR.format(0x0002C90200400000))
    for told, arguments in (
        (True, [lst, str(far), "pattern:shift:1:900"]),
        (False, [lst, "pattern:shift:1:900", "--adaptive"]),
    ):
        assert report.main([*arguments, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["adaptive"]
        assert found["max_switch_link"]["shared"] <= found["max_switch_link"]["most"]
        assert ("x.far: 1 adaptive switch" in found["reason"]) == told
        assert report.main([*arguments, "--full"]) == 0
        assert "at most" in capsys.readouterr().out
    assert layout.main([lst, "pattern:shift:1"]) == 0
    assert "a_most" not in capsys.readouterr().out
    assert layout.main(["--check", lst, str(far)]) == 0
    assert "switches route adaptively" in capsys.readouterr().out
