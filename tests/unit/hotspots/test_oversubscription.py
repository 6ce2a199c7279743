# SPDX-License-Identifier: Apache-2.0
"""Narrowest cuts equal bisections calculated by hand. A cut never needs more time than the tables' routes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.hotspots.causes.oversubscription import narrowest_cut, try_links
from ibprof_converter.routing.balanced_tables import balance_tables
from ibprof_converter.routing.subnet import Subnet
from ibprof_testing.samples.planted_causes import Pairs, all_to_all, count_hosts, make_rails, situation


@pytest.mark.parametrize(
    ("shape", "crossing", "gbps"),
    [
        # A cut through the middle of even rings crosses two cables of each ring.
        ("torus:6x6:2", 36 * 36, 12 * 100),
        ("torus:4x8:1", 16 * 16, 8 * 100),
        ("torus:4x4x6:1", 48 * 48, 32 * 100),
        # A cut with 4 of the 9 groups on one side crosses 20 cables. A cut around a single group is wider.
        ("dragonfly:4,2,2", 32 * 40, 20 * 100),
    ],
)
def test_bisections_by_hand(shape: str, crossing: int, gbps: float) -> None:
    rails = make_rails(shape)
    cut = narrowest_cut(situation(rails, all_to_all(np.arange(count_hosts(rails)))))
    assert cut is not None
    assert cut.seconds >= crossing * 1e6 * 8e-9 / gbps * (1 - 1e-12)
    if shape.startswith("torus"):
        assert (cut.bytes, cut.gbps) == (crossing * 1_000_000, gbps)
        assert "improved by moving switches" in cut.found_by


def test_sparse_traffic_over_half_of_a_ring() -> None:
    """Four cables join the halves of a torus of 8 x 2 switches. Four hosts of a half send to the other half."""
    rails = make_rails("torus:8x2:1")
    source, destination = np.array([0, 2, 4, 6]), np.array([8, 10, 12, 14])
    case = situation(rails, (source, destination))
    cut = narrowest_cut(case)
    assert cut is not None
    assert cut.bytes == 4_000_000
    assert cut.gbps == 400.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", ["torus:4x5:2", "dragonfly:3,2,1", "torus:3x3x3:1", "xgft:2:4,6:1,3"])
def test_no_cut_is_above_what_tables_reach(shape: str, seed: int) -> None:
    (subnet,) = make_rails(shape)
    hosts = count_hosts([subnet])
    source, destination = np.random.default_rng(seed).integers(0, hosts, (2, 3 * hosts))
    case = situation([subnet], (source[source != destination], destination[source != destination]))
    cut = narrowest_cut(case)
    assert cut is not None
    balanced = Subnet(subnet.fabric, balance_tables(subnet.fabric, subnet.tables), ())
    for each in (case, case.changed(subnets=[balanced])):
        assert cut.seconds <= each.max_switch_seconds * (1 + 1e-12)
    # Calculated independently: bytes of flows between the two sides, and the rate of the links between them.
    inside = np.zeros(subnet.fabric.nodes, np.bool_)
    inside[cut.nodes] = True
    node = subnet.fabric.lid_node
    ends = [inside[node[lid]] for lid in (case.flows.source_lid, case.flows.destination_lid)]
    crossing = [int(case.flows.bytes[(ends[0] == way) & (ends[1] != way)].sum()) for way in (True, False)]
    across = inside[subnet.fabric.link_node]
    gbps = float(subnet.fabric.link_gbps[across[:, 0] != across[:, 1]].sum())
    assert (cut.bytes, cut.gbps) == (max(crossing), gbps)


def advise(shape: str, pairs: Pairs) -> str:
    """Return the advice on oversubscription for traffic between these hosts."""
    (change,) = try_links(situation(make_rails(shape), pairs))
    return change.advice.split(" links:")[0]


def test_only_moves_to_free_hosts_are_advised() -> None:
    """Four leaves with four hosts and one uplink each."""
    everyone = np.arange(16)
    shape = "xgft:2:4,4:1,1"
    assert advise(shape, all_to_all(everyone)) == "add"
    assert advise(shape, all_to_all(everyone[:8])) == "spread the job over more leaves, or add"
    assert advise(shape, (everyone, (everyone + 4) % 16)) == "place ranks that send to each other on one leaf, or add"


def test_pods_that_are_all_in_use_are_no_advice() -> None:
    """There are two pods of two leaves. One link joins each pod's switch and the top."""
    shape = "xgft:3:4,2,2:1,2,1"
    assert advise(shape, all_to_all(np.arange(16))) == "add"


@pytest.mark.parametrize(
    ("ports", "advice"),
    [
        (0, "add links: 3.20 times as many, if the switches have free ports (their number of ports is not known)"),
        (5, "links 3.20 times as fast, on other switches: the present switches have no free ports"),
        (6, "add links: 2.00 times as many"),
        (8, "add links: 3.20 times as many"),
        (40, "add links: 3.20 times as many"),
    ],
)
def test_links_are_added_only_to_free_ports(ports: int, advice: str) -> None:
    """Each of four leaves has four hosts and one uplink, so 5 ports are used. The spine uses 4 ports."""
    (rail,) = make_rails("xgft:2:4,4:1,1")
    fabric = replace(rail.fabric, node_ports=np.full(rail.fabric.nodes, ports, np.uint8))
    spine = np.bincount(fabric.link_node.ravel(), minlength=fabric.nodes) == 4
    fabric.node_ports[spine & (fabric.node_kind == NodeKind.SWITCH)] *= 4
    (change,) = try_links(situation([replace(rail, fabric=fabric)], all_to_all(np.arange(16))))
    assert change.advice == advice
    assert change.after is not None
    factor = float(re.findall(r"([0-9.]+) times", advice)[0])
    wide = fabric.node_kind[fabric.link_node].min(axis=1) == NodeKind.SWITCH
    assert np.allclose(change.after.subnets[0].fabric.link_gbps[wide], 100 * factor)
