# SPDX-License-Identifier: Apache-2.0
"""Nodes of fabrics that are almost trees get the right levels and positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.node_levels import find_levels
from ibprof_converter.layout.positions import FabricLayout, lay_out
from ibprof_testing.samples.fabrics import read_subnet


def cable(links: Sequence[tuple[str, str]], kinds: Mapping[str, NodeKind] | None = None) -> Fabric:
    """Return a fabric with these cables. Nodes `sw...` are switches, others are CAs; `kinds` contains exceptions."""
    names = sorted(set(chain.from_iterable(links)))
    kind = {name: NodeKind.SWITCH if name.startswith("sw") else NodeKind.CA for name in names} | dict(kinds or {})
    used = dict.fromkeys(names, 0)
    ends = []
    for link in links:
        for name in link:
            used[name] += 1
        ends.append([(names.index(name), used[name]) for name in link])
    array = np.array(ends, np.int32).reshape(-1, 2, 2)
    count = np.arange(len(names))
    return Fabric(
        name="cabled",
        node_guid=count.astype(np.uint64),
        node_kind=np.array([kind[name] for name in names], np.uint8),
        node_name=tuple(names),
        system_guid=np.zeros(len(names), np.uint64),
        link_node=array[:, :, 0],
        link_port=array[:, :, 1],
        link_gbps=np.full(len(links), 100.0),
        port_node=count.astype(np.int32),
        port_number=np.zeros(len(names), np.int32),
        port_guid=count.astype(np.uint64),
        port_lid=count.astype(np.int32) + 1,
        port_lmc=np.zeros(len(names), np.int32),
    )


def tree(leaves: int = 4, spines: int = 2, hosts: int = 6) -> list[tuple[str, str]]:
    """Return the cables of a two-level tree."""
    up = [(f"sw leaf{leaf}", f"sw spine{spine}") for leaf in range(leaves) for spine in range(spines)]
    return up + [(f"h{leaf * hosts + host} HCA-1", f"sw leaf{leaf}") for leaf in range(leaves) for host in range(hosts)]


def levels(fabric: Fabric) -> dict[str, int]:
    return dict(zip(fabric.node_name, find_levels(fabric).tolist(), strict=True))


def places(fabric: Fabric, layout: FabricLayout) -> dict[str, float]:
    return dict(zip(fabric.node_name, layout.x.tolist(), strict=True))


def test_aggregation_nodes_do_not_make_leaves_of_spines() -> None:
    nodes = [(f"Mellanox Technologies Aggregation Node {spine}", f"sw spine{spine}") for spine in range(2)]
    found = levels(cable(tree() + nodes))
    assert found["sw spine0"] == found["sw spine1"] == 2
    assert all(found[name] == 0 for name, _ in nodes)


def test_a_management_host_on_a_spine_does_not_make_it_a_leaf() -> None:
    found = levels(cable([*tree(), ("mgmt01 HCA-1", "sw spine0")]))
    assert (found["sw spine0"], found["sw spine1"], found["mgmt01 HCA-1"]) == (2, 2, 0)


def test_a_leaf_with_one_host_is_a_leaf() -> None:
    extra = [("storage HCA-1", "sw leaf9"), ("sw leaf9", "sw spine0"), ("sw leaf9", "sw spine1")]
    assert levels(cable(tree() + extra))["sw leaf9"] == 1


def test_routers_are_at_level_0_and_make_no_leaves() -> None:
    found = levels(cable([*tree(), ("router", "sw spine0")], {"router": NodeKind.ROUTER}))
    assert (found["router"], found["sw spine0"]) == (0, 2)


def test_every_node_has_a_level_and_a_place_of_its_own_whatever_the_cabling() -> None:
    loose = [("sw far1", "sw far2"), ("lone1", "lone2")]
    for links in (tree() + loose, loose, [("sw a", "sw b")], [("a", "b")]):
        fabric = cable(links)
        layout = lay_out([fabric])[0]
        assert (layout.level >= 0).all()
        assert np.isfinite(layout.x).all()
        assert len(set(zip(layout.x.tolist(), layout.y.tolist(), strict=True))) == fabric.nodes


def test_hosts_count_as_people_do() -> None:
    fabric = cable(tree(leaves=3, hosts=5))
    x = places(fabric, lay_out([fabric])[0])
    assert [x[f"h{host} HCA-1"] for host in range(15)] == list(range(15))
    assert [x[f"sw leaf{leaf}"] for leaf in range(3)] == [2, 7, 12]
    assert x["sw spine0"] < x["sw spine1"]


def test_a_host_on_two_leaves_has_one_place() -> None:
    links = [(f"h{host} HCA-1", f"sw leaf{leaf}") for host in range(4) for leaf in range(2)]
    fabric = cable(links + [(f"sw leaf{leaf}", "sw spine") for leaf in range(2)])
    layout = lay_out([fabric])[0]
    assert len(set(layout.x[layout.level == 0])) == 4
    assert len(set(layout.x[layout.level == 1])) == 2


def test_rails_come_in_mirrored_pairs() -> None:
    rails = [cable([(a.replace("HCA-1", f"HCA-{rail}"), b) for a, b in tree()]) for rail in range(1, 4)]
    first, second, third = lay_out(rails)
    assert (first.y >= 0).all()
    assert (second.y == -first.y).all()
    assert (second.x == first.x).all()
    assert (third.y == first.y).all()
    assert third.x.min() > first.x.max()


def test_hosts_of_one_rail_alone_follow_to_the_right() -> None:
    one = cable(tree())
    other = cable([*((a.replace("HCA-1", "HCA-2"), b) for a, b in tree()), ("gw HCA-2", "sw leaf0")])
    first, second = lay_out([one, other])
    assert places(other, second)["gw HCA-2"] > first.x.max()


def test_nothing_to_lay_out_gives_no_layouts() -> None:
    assert lay_out([]) == []


def without_hosts(fabric: Fabric, leaves: Sequence[int]) -> tuple[Fabric, np.ndarray]:
    """Return a fabric without the hosts of some leaves, and the kept nodes' indices in the whole fabric."""
    gone = np.isin(fabric.link_node, leaves) & (fabric.node_kind[fabric.link_node[:, ::-1]] == NodeKind.CA)
    lost = fabric.link_node[:, ::-1][gone]
    kept = np.setdiff1d(np.arange(fabric.nodes), lost)
    links = ~np.isin(fabric.link_node, lost).any(axis=1)
    ports = np.isin(fabric.port_node, kept)
    place = np.searchsorted(kept, np.arange(fabric.nodes))
    smaller = replace(
        fabric,
        node_guid=fabric.node_guid[kept],
        node_kind=fabric.node_kind[kept],
        node_name=tuple(fabric.node_name[node] for node in kept),
        system_guid=fabric.system_guid[kept],
        link_node=place[fabric.link_node[links]].astype(np.int32),
        link_port=fabric.link_port[links],
        link_gbps=fabric.link_gbps[links],
        link_lanes=fabric.link_lanes[links],
        link_half=fabric.link_half[links],
        link_unequal=fabric.link_unequal[links],
        port_node=place[fabric.port_node[ports]].astype(np.int32),
        port_number=fabric.port_number[ports],
        port_guid=fabric.port_guid[ports],
        port_lid=fabric.port_lid[ports],
        port_lmc=fabric.port_lmc[ports],
    )
    return smaller, kept


@pytest.mark.parametrize("name", ["xgft:2:6,9:1,4", "xgft:3:4,4,4:1,4,4", "xgft:3:6,6,6:1,3,9"])
@pytest.mark.parametrize("which", ["every third leaf", "a pod"])
def test_switches_without_hosts_are_at_the_level_of_those_cabled_like_them(name: str, which: str) -> None:
    """Switches whose hosts are not installed have the level that they have in the whole fabric."""
    full = read_subnet(name).fabric
    level = find_levels(full)
    leaves = np.flatnonzero(level == 1)
    size = int(name.split(":")[2].split(",")[1])
    empty = leaves[::3] if which == "every third leaf" else leaves[:size]
    if len(empty) == len(leaves):
        empty = leaves[: size - 1]
    smaller, kept = without_hosts(full, empty.tolist())
    assert find_levels(smaller).tolist() == level[kept].tolist()
