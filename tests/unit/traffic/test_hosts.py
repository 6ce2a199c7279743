# SPDX-License-Identifier: Apache-2.0
"""A machine is found in a fabric by its exact name, not by a similar name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.traffic.hosts import HostIndex, find_hosts
from ibprof_converter.traffic.traffic_data import NO_LID
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample


def renamed_testbed(*renamed: tuple[str, str]) -> Fabric:
    fabric = load_sample("testbed44", IBDIAGNET).fabric
    changes = dict(renamed)
    return replace(fabric, node_name=tuple(changes.get(name, name) for name in fabric.node_name))


def test_hosts_come_leaf_after_leaf_in_the_order_of_their_numbers() -> None:
    hosts = find_hosts([renamed_testbed()])
    assert hosts.name == tuple(f"host{number:02}" for number in range(1, 43))
    assert hosts.leaf.tolist() == [0] * 21 + [1] * 21
    assert hosts.lid[:3, 0].tolist() == [1, 6, 9]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("host1", 0),
        ("host17", 1),
        ("host17.cluster.example", 1),
        ("HOST17", 1),
        ("login", 2),
        ("login.a.example", 2),
        ("login.b.example", None),
        ("host", None),
        ("host171", None),
        ("twin", None),
        ("10", None),
        ("10.0.0.1", 5),
        ("", None),
    ],
)
def test_names_with_and_without_domain(asked: str, found: int | None) -> None:
    index = HostIndex(["host1", "host17", "login.a.example", "twin.a", "twin.b", "10.0.0.1"])
    assert index.find(asked) == found


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("n1_hca", "n1"),
        ("n1_HCA0", "n1"),
        ("n1-hca-1", "n1"),
        ("n1 mlx5_0", "n1"),
        ("n1-mlx5_0", "n1"),
        ("n1.cluster.example HCA-2", "n1.cluster.example"),
        ("alhca", "alhca"),
        ("n1\nroot HCA-1", "n1"),
    ],
)
def test_what_a_description_says_of_the_host(description: str, name: str) -> None:
    assert name in find_hosts([renamed_testbed(("host01 HCA-1", description))]).name


def test_machines_without_a_name_are_never_one_host() -> None:
    defaults = ["localhost mlx5_0", "localhost mlx5_1", "localhost.localdomain HCA-1", "(none) HCA-1"]
    fabric = renamed_testbed(*((f"host{number:02} HCA-1", name) for number, name in enumerate(defaults, 1)))
    hosts = find_hosts([fabric])
    assert len(hosts.name) == 42
    assert sum(name.startswith("0x") for name in hosts.name) == len(defaults)
    alone = find_hosts([renamed_testbed(("host01 HCA-1", "localhost HCA-1"))])
    assert "localhost" in alone.name


def test_an_empty_or_repeated_description_names_no_host() -> None:
    unset = "MT25408 ConnectX Mellanox Technologies"
    hosts = find_hosts([renamed_testbed(("host01 HCA-1", ""), ("host02 HCA-1", unset), ("host03 HCA-1", unset))])
    assert len(hosts.name) == 42
    assert {"0x0002c903000a0000", "0x0002c903000a0010", "0x0002c903000a0020"} < set(hosts.name)
    assert "MT25408" not in hosts.name
    assert "MT25408" in hosts.shared


@pytest.mark.parametrize(
    "model", ["MT4123", "MT4123_0", "ConnectX6", "ConnectX-7", "MCX653105A-HDAT", "BlueField-3", "HCA-1", "mlx5_0"]
)
def test_adapters_that_share_a_model_word_are_hosts_of_their_own(model: str) -> None:
    hosts = find_hosts([renamed_testbed(("host01 HCA-1", f"{model} rack 1"), ("host02 HCA-1", f"{model} rack 2"))])
    assert len(hosts.name) == 42
    assert {"0x0002c903000a0000", "0x0002c903000a0010"} < set(hosts.name)


@pytest.mark.parametrize("name", ["hca01", "nvidia-dgx01", "mellanox01", "bluefield7", "mt4123host", "mlx5-login"])
def test_names_of_hosts_that_resemble_models_stay(name: str) -> None:
    assert name in find_hosts([renamed_testbed(("host01 HCA-1", f"{name} HCA-1"))]).name


def test_an_aggregation_node_is_no_host() -> None:
    hosts = find_hosts([renamed_testbed(("host01 HCA-1", "Mellanox Technologies Aggregation Node"))])
    assert len(hosts.name) == 41


def test_a_host_on_two_rails_is_one_host() -> None:
    fabrics = [load_sample(f"dualrail/rail{rail}", IBDIAGNET).fabric for rail in (1, 2)]
    hosts = find_hosts(fabrics)
    assert len(set(hosts.name)) == len(hosts.name)
    on_both = (hosts.lid != NO_LID).all(axis=1)
    assert on_both.sum() > 300
    for rail, fabric in enumerate(fabrics):
        for host in range(len(hosts.name)):
            if lid := int(hosts.lid[host, rail]):
                node = fabric.lid_node[lid]
                assert fabric.node_name[node].split()[0] == hosts.name[host]
                assert hosts.of_node[rail][node] == host


@pytest.mark.parametrize(
    ("first", "second", "hosts"),
    [
        ({"host01": "n1"}, {"host01": "n1.cluster.example"}, 42),
        ({"host01": "n1.cluster.example"}, {"host01": "n1"}, 42),
        ({"host01": "Node1"}, {"host01": "node1"}, 42),
        ({"host01": "n1"}, {"host01": "n1.a", "host02": "n1.b"}, 44),
        ({"host01": "n1.a"}, {"host01": "n1.b"}, 43),
        ({"host01": "n1"}, {"host01": "n1", "host02": "N1"}, 43),
    ],
)
def test_rails_may_write_a_host_with_or_without_its_domain(
    first: dict[str, str], second: dict[str, str], hosts: int
) -> None:
    rails = [
        renamed_testbed(*((f"{old} HCA-1", f"{new} HCA-1") for old, new in names.items())) for names in (first, second)
    ]
    found = find_hosts(rails)
    assert len(found.name) == hosts
    assert sum(int((lid != NO_LID).sum()) for lid in found.lid) == 84


def test_two_domains_are_two_hosts_also_after_a_rail_without_domains() -> None:
    rails = [renamed_testbed(("host01 HCA-1", f"{name} HCA-1")) for name in ("n1", "n1.a", "n1", "N1.A", "n1.b")]
    found = find_hosts(rails)
    assert len(found.name) == 43
    assert (found.lid[found.name.index("n1")] != NO_LID).tolist() == [True, True, True, True, False]


def test_case_decides_only_where_it_must() -> None:
    index = HostIndex(["node1", "Node1", "NODE2"], ["mt25408"])
    assert [index.find(name) for name in ("node1", "Node1", "NODE1", "node2")] == [0, 1, None, 2]
    assert [index.is_shared(name) for name in ("node1", "NODE1", "MT25408", "node3")] == [False, True, True, False]


def test_an_unknown_name_is_answered_with_the_host_most_like_it() -> None:
    index = HostIndex(["Node01", "node02", "login"], ["mt25408"])
    assert index.describe_unknown("noed02") == "; did you mean node02?"
    assert index.describe_unknown("MT25408") == ", a name that several adapters share"
    assert index.describe_unknown("gpu7") == ""


def test_an_adapter_without_lid_or_link_is_no_host() -> None:
    fabric = load_sample("quirks-init", IBDIAGNET).fabric
    hosts = find_hosts([fabric])
    assert (hosts.lid > 0).all()
    assert "q04" in hosts.name
