# SPDX-License-Identifier: Apache-2.0
"""Modelled tables equal OpenSM's tables for the same links. Routes are as short as networkx's shortest paths."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest

from ibprof_converter.choices import D_MOD_K, MIN_HOP
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.modelled_tables import model_tables
from ibprof_converter.routing.spread import spread_matrix, trace
from ibprof_converter.routing.subnet import Subnet, join_subnet
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_testing.samples.fabrics import IBDIAGNET, OPENSM, host_lids, load_sample


def entries(tables: ForwardingTables, fabric: Fabric) -> npt.NDArray[np.uint8]:
    """Return the ports of all switches for the LIDs of all CAs."""
    lids = fabric.port_lid[fabric.node_kind[fabric.port_node] != NodeKind.SWITCH]
    return tables.port[:, lids]


def model(fabric: Fabric, name: str | None = None) -> Subnet:
    tables, _ = model_tables(fabric, name)
    return join_subnet(fabric, tables)


@pytest.mark.parametrize("sample", ["testbed44", "hypercube-4", "oversub-faulty", "xgft3-512"])
def test_min_hop_tables_are_those_that_opensm_made(sample: str) -> None:
    """OpenSM used the engine minhop or updn, on regular and irregular fabrics. Each entry with a route is equal."""
    captured = load_sample(sample, OPENSM)
    tables, name = model_tables(captured.fabric, MIN_HOP)
    assert name == MIN_HOP
    assert np.array_equal(tables.switch_guid, captured.tables.switch_guid)
    found, expected = entries(tables, captured.fabric), entries(captured.tables, captured.fabric)
    assert np.array_equal(found[expected != UNREACHABLE], expected[expected != UNREACHABLE])


@pytest.mark.parametrize("name", ["xgft:2:4,4:1,2", "xgft:3:6,6,4:1,3,6", "xgft:3:4,4,4:1,2,2", "tree:4,3"])
def test_regular_trees_are_routed_by_d_mod_k(name: str) -> None:
    """Generated trees compute their d-mod-k tables by a separate formula."""
    made = generate(name)
    tables, used = model_tables(made.fabric)
    assert used == D_MOD_K
    assert np.array_equal(entries(tables, made.fabric), entries(made.tables, made.fabric))


def test_parallel_links_of_a_regular_tree_are_used_evenly() -> None:
    """In an all-to-all, the largest load is the same with the model's tables as with ftree's captured tables."""
    captured = load_sample("xgft3-1296", IBDIAGNET)
    tables, used = model_tables(captured.fabric)
    assert used == D_MOD_K
    lids = host_lids(captured.fabric)
    ones = np.broadcast_to(np.uint64(1), (len(lids), len(lids)))
    loads = [
        spread_matrix(subnet.routes, lids, lids, ones).bytes[:, :, 0]
        for subnet in (captured, join_subnet(captured.fabric, tables))
    ]
    assert loads[0].max() == loads[1].max()


@pytest.mark.parametrize("name", ["torus:5x4:2", "dragonfly:4,2,2", "dragonfly:2,1,1,2"])
def test_other_fabrics_are_routed_by_min_hop(name: str) -> None:
    assert model_tables(generate(name).fabric)[1] == MIN_HOP


@pytest.mark.parametrize("model_name", [None, MIN_HOP])
@pytest.mark.parametrize("name", ["xgft:3:3,3,2:1,2,3", "torus:4x3:2", "dragonfly:2,2,1"])
def test_every_route_is_shortest(name: str, model_name: str | None) -> None:
    subnet = model(generate(name).fabric, model_name)
    fabric = subnet.fabric
    graph = nx.Graph(fabric.link_node.tolist())
    lids = host_lids(fabric).tolist()
    for source in lids[:: max(len(lids) // 8, 1)]:
        start = int(fabric.port_node[fabric.lid_port[source]])
        hops = nx.single_source_shortest_path_length(graph, start)
        for destination in lids:
            if destination == source:
                continue
            path = trace(subnet.routes.network, source, destination)
            assert path.reason.arrives
            assert len(path.hops) == hops[int(fabric.port_node[fabric.lid_port[destination]])]


def test_a_fabric_in_two_parts_has_no_routes_between_them() -> None:
    fabric = generate("xgft:2:4,4:1,2").fabric
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    apart = replace(
        fabric,
        link_node=fabric.link_node[~between],
        link_port=fabric.link_port[~between],
        link_gbps=fabric.link_gbps[~between],
    )
    tables, used = model_tables(apart)
    assert used == MIN_HOP
    assert ((entries(tables, apart) != UNREACHABLE).sum(axis=0) == 1).all()
