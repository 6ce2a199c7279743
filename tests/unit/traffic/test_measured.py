# SPDX-License-Identifier: Apache-2.0
"""With measured rails, each byte is on the rail that carried the byte. Modelled bytes are labelled."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from ibprof.errors import UsageError
from ibprof.profile.profile_data import Host, Opcode, PortPair, Profile
from ibprof.profile.profile_rows import RowChoice
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.hotspots.coverage import describe_coverage
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.adapter_policies import MEASURED_RAILS
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.link_loads import load_links
from ibprof_converter.traffic.measured_rails import UNKNOWN_PORT, split_in_proportion
from ibprof_converter.traffic.traffic_data import NO_RANK, RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import LEFT_OUT, choose_demand, profile_traffic
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample
from ibprof_testing.samples.profiles import (
    Count,
    Posted,
    make_host,
    make_pair,
    make_port,
    make_profile,
    make_rank,
    make_transfers,
)


@cache
def rails() -> tuple[Subnet, ...]:
    return tuple(load_sample(sample, IBDIAGNET) for sample in ("dualrail/rail1", "dualrail/rail2"))


@cache
def adapters(rail: int) -> list[tuple[int, int]]:
    """Return (port GUID, LID) of a rail's adapters, sorted by the host's name."""
    fabric = rails()[rail].fabric
    rows = [row for row, node in enumerate(fabric.port_node) if fabric.node_kind[node] == NodeKind.CA]
    rows.sort(key=lambda row: fabric.node_name[fabric.port_node[row]])
    return [(int(fabric.port_guid[row]), int(fabric.port_lid[row])) for row in rows]


def make_hosts(count: int) -> list[Host]:
    ports = [
        [make_port(lid, guid, device=f"mlx5_{rail}") for rail in (0, 1) for guid, lid in [adapters(rail)[number]]]
        for number in range(count)
    ]
    return [make_host(f"node{number}", *both) for number, both in enumerate(ports)]


def between(hosts: list[Host], own: int, remote: int, rail: int) -> PortPair:
    lids = [host.ports[rail].lid for host in (hosts[own], hosts[remote])]
    return make_pair(own, lids[0], lids[1], f"mlx5_{rail}")


HOSTS = make_hosts(3)
PAIRS = (
    between(HOSTS, 0, 1, 0),
    between(HOSTS, 0, 1, 1),
    between(HOSTS, 1, 0, 0),
    between(HOSTS, 0, 0, 0),
    make_pair(0, HOSTS[0].ports[0].lid, None, remote_gid="::1"),
)


def make_run(*posted: Posted, counts: tuple[Count, ...] = (Count(0, 1, 90), Count(0, 1, 10, operation=1))) -> Profile:
    ranks = [make_rank(rank, rank) for rank in range(3)]
    run = make_profile(counts, ranks, HOSTS, operations=("SEND", "BCAST"), regions=("main", "x"))
    return replace(run, pairs=PAIRS, transfers=make_transfers(posted))


def place(run: Profile, policy: str | None = None, rule: str | None = None) -> Traffic:
    fabrics = [subnet.fabric for subnet in rails()]
    return map_to_lids(profile_traffic(run), find_hosts(fabrics), fabrics, rule, policy)


def flows(traffic: Traffic) -> list[tuple[int, ...]]:
    columns = (
        *(traffic.rail, traffic.source_lid, traffic.destination_lid),
        *(traffic.source_rank, traffic.destination_rank, traffic.operation, traffic.bytes),
    )
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_bytes_take_the_rail_that_carried_them_and_are_shared_out_by_operation() -> None:
    traffic = place(make_run(Posted(0, 0, 200), Posted(1, 2, 1001, opcode=Opcode.READ), Posted(0, 1, 30)))
    first, second = ([host.ports[rail].lid for host in HOSTS[:2]] for rail in (0, 1))
    assert flows(traffic) == [
        (0, *first, 0, 1, 0, 180),
        (0, *first, 0, 1, 0, 900),
        (0, *first, 0, 1, 1, 20),
        (0, *first, 0, 1, 1, 101),
        (1, *second, 0, 1, 0, 27),
        (1, *second, 0, 1, 1, 3),
    ]
    assert traffic.rail_source == MEASURED_RAILS


def test_every_byte_is_on_a_link_or_has_a_reason() -> None:
    posted = [Posted(0, pair, 1000 + pair, region=region) for pair in range(len(PAIRS)) for region in (0, 1)]
    traffic = place(make_run(*posted))
    assert traffic.on_host_bytes == 2 * 1003
    assert traffic.unmapped == {UNKNOWN_PORT: 2 * 1004}
    loads = load_links(traffic, rails())
    assert loads.bytes_total == sum(each.bytes for each in posted)
    assert loads.bytes_routed == 2 * (1000 + 1001 + 1002)


def test_bytes_to_aggregation_nodes_are_on_links_and_said_to_be_reduced_by_switches() -> None:
    run = make_run(Posted(0, 0, 2000, region=1), Posted(1, 2, 30))
    fabrics = [subnet.fabric for subnet in rails()]
    node = fabrics[0].lid_node[PAIRS[0].remote_lid]
    names = [*fabrics[0].node_name]
    names[node] = "Mellanox Technologies Aggregation Node"
    reducing = [replace(fabrics[0], node_name=tuple(names)), fabrics[1]]
    hosts = (run.hosts[0], make_host("node1"), run.hosts[2])
    traffic = map_to_lids(profile_traffic(replace(run, hosts=hosts)), find_hosts(reducing), reducing, None, None)
    (note,) = [note for note in traffic.notes if "SHARP" in note]
    assert note.startswith("2 kB were sent to aggregation nodes: switches reduce them (SHARP)")
    assert (0, PAIRS[0].lid, PAIRS[0].remote_lid) in {flow[:3] for flow in flows(traffic)}
    assert not any("SHARP" in note for note in place(run).notes)


def test_what_no_message_explains_belongs_to_nobody() -> None:
    traffic = place(make_run(Posted(0, 0, 200, region=1)))
    ((*_, source, destination, operation, amount),) = flows(traffic)
    assert (source, destination, traffic.operations[operation], amount) == (NO_RANK, NO_RANK, "UNATTRIBUTED", 200)


def test_a_remote_host_that_was_not_recorded_is_known_by_its_lid() -> None:
    run = make_run(Posted(0, 0, 200), counts=())
    run = replace(run, hosts=(run.hosts[0], make_host("node1"), run.hosts[2]))
    ((rail, source, destination, *_),) = flows(place(run))
    assert (rail, source, destination) == (0, PAIRS[0].lid, PAIRS[0].remote_lid)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"policy": "first"}, None),
        ({"rule": "packed"}, None),
        ({"unseen": 1}, "1 queue pair(s) bypass verbs"),
        ({"guid": "0x0000000000000001"}, "the fabric has no port GUID of the run"),
        ({"bytes": 50}, "only 50 of 100 bytes between hosts"),
    ],
)
def test_else_rails_are_a_model(changes: dict[str, Any], why: str | None) -> None:
    run = make_run(Posted(0, 0, changes.get("bytes", 200)))
    run = replace(
        run,
        ranks=tuple(replace(rank, queue_pairs_unseen=changes.get("unseen", 0)) for rank in run.ranks[:1])
        + run.ranks[1:],
    )
    if guid := changes.get("guid"):
        ports = [tuple(replace(port, port_guid=str(guid)) for port in host.ports) for host in run.hosts]
        run = replace(run, hosts=tuple(replace(host, ports=new) for host, new in zip(run.hosts, ports, strict=True)))
    traffic = place(run, policy=changes.get("policy"), rule=changes.get("rule"))
    assert traffic.rail_source.startswith("modelled")
    told = [note for note in traffic.notes if "although work requests were recorded" in note]
    assert (why in told[0]) if why else not told


def test_the_report_says_what_is_measured_and_what_is_shared_out() -> None:
    run = make_run(Posted(0, 0, 200))
    demand = profile_traffic(run)
    coverage = describe_coverage(demand, place(run), rails())
    assert coverage.rails == MEASURED_RAILS
    assert any("attributed in proportion" in sentence for sentence in coverage.modelled)
    assert not any("rails that carry the bytes" in sentence for sentence in coverage.modelled)
    assert "queue pairs (verbs)" in coverage.origin


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9).filter(any))
def test_parts_add_up_and_are_in_proportion(total: int, weights: list[int]) -> None:
    parts = split_in_proportion(total, np.array(weights, np.uint64)).tolist()
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - total * weight / sum(weights)) <= 1 + total * 1e-12


def test_chosen_calls_keep_their_share_of_measured_bytes() -> None:
    counts = (Count(0, 1, 90), Count(0, 1, 10, operation=1), Count(1, 0, 5, operation=1))
    posted = (Posted(0, 0, 1000), Posted(0, 1, 500), Posted(1, 2, 70), Posted(0, 4, 3), Posted(0, 3, 2))
    run = make_run(*posted, counts=counts)
    hosts, fabrics = find_hosts([rail.fabric for rail in rails()]), [rail.fabric for rail in rails()]
    whole = profile_traffic(run)
    chosen = choose_demand(whole, RowChoice(operation="BCAST"), "p.otf2")
    assert isinstance(chosen, RankTraffic)
    assert chosen.bytes.tolist() == [10, 5]
    placed = map_to_lids(chosen, hosts, fabrics, None, None)
    assert placed.rail_source == MEASURED_RAILS
    assert placed.bytes.tolist() == [100, 50, 70]  # a tenth of the bytes from rank 0 to 1, and all bytes from 1 to 0
    assert (placed.unmapped, placed.on_host_bytes) == ({}, 0)
    assert LEFT_OUT in placed.notes
    assert placed.origin.startswith(f"{whole.origin}, only --operation BCAST")
    in_region = choose_demand(whole, RowChoice(region="main"), "p.otf2")
    assert isinstance(in_region, RankTraffic)
    assert map_to_lids(in_region, hosts, fabrics, None, None).bytes.sum() == 1570
    nowhere = choose_demand(whole, RowChoice(region="x"), "p.otf2")
    assert isinstance(nowhere, RankTraffic)
    assert not len(map_to_lids(nowhere, hosts, fabrics, None, None).bytes)


def test_coverage_is_of_the_whole_run() -> None:
    run = make_run(counts=(Count(0, 1, 90), Count(0, 7, 4, operation=1)))
    chosen = choose_demand(profile_traffic(run), RowChoice(operation="SEND"), "p.otf2")
    assert isinstance(chosen, RankTraffic)
    assert describe_coverage(chosen, None, ()).not_seen == describe_coverage(chosen.whole, None, ()).not_seen


def test_only_recorded_runs_are_chosen_from() -> None:
    matrix = replace(profile_traffic(make_run()), profile=None)
    with pytest.raises(UsageError, match=r"--site a\.c:1: m\.csv: only recorded runs know"):
        choose_demand(matrix, RowChoice(site="a.c:1"), "m.csv")
    with pytest.raises(UsageError, match=r"p\.otf2: --site a\.c:1: call sites were not recorded"):
        choose_demand(profile_traffic(make_run()), RowChoice(site="a.c:1"), "p.otf2")
