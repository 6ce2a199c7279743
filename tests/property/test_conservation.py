# SPDX-License-Identifier: Apache-2.0
"""When ibprof maps traffic onto links, no byte is lost or added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibprof.native.libraries import sum_exactly
from ibprof.profile.profile_data import UNKNOWN_PEER, Direction, Profile
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.csv_tables import read_traffic_table
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.lid_traffic import map_to_lids
from ibprof_converter.traffic.link_loads import Loads, load_counted, load_links
from ibprof_converter.traffic.patterns import build_pattern
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic
from ibprof_converter.traffic.traffic_reader import profile_traffic
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

FABRICS = {
    "two leaves": ("testbed44",),
    "two rails": ("dualrail/rail1", "dualrail/rail2"),
    "odd names, LMC, a router": ("quirks-small",),
    "a link down": ("quirks-init",),
    "switches without tables": ("xgft3-1296-partial",),
}
SMALL = [name for name in FABRICS if name != "switches without tables"]
HOSTS = ["host01", "host02", "host40", "laptop"]


def subnets_of(name: str) -> list[Subnet]:
    return [load_sample(sample, IBDIAGNET) for sample in FABRICS[name]]


def put_on_links(
    demand: RankTraffic, subnets: Sequence[Subnet], rule: str | None = None, policy: str | None = None
) -> tuple[Traffic, Loads]:
    fabrics = [subnet.fabric for subnet in subnets]
    traffic = map_to_lids(demand, find_hosts(fabrics), fabrics, rule, policy)
    return traffic, load_links(traffic, subnets)


def crossing(fabric: Fabric, loaded: np.ndarray) -> tuple[int, int]:
    """Return the bytes from hosts and routers to switches, and the bytes from switches to hosts and routers."""
    switch = fabric.node_kind[fabric.link_node] == NodeKind.SWITCH
    total = loaded.sum(axis=2, dtype=np.uint64)
    ends = ~switch & switch[:, ::-1]
    return sum_exactly(total[ends]), sum_exactly(total[:, ::-1][ends])


def assert_conserved(loads: Loads, subnets: Sequence[Subnet]) -> None:
    assert loads.bytes_total == loads.bytes_routed + loads.bytes_on_host + sum(loads.bytes_unrouted.values())
    sums = [crossing(subnet.fabric, loaded) for subnet, loaded in zip(subnets, loads.by_rail, strict=True)]
    assert sum(leaving for leaving, _ in sums) == loads.bytes_routed
    assert sum(entering for _, entering in sums) == loads.bytes_routed


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize(
    "pattern", ["shift:3:7", "all-to-all", "bisect:1:1000", "3dnndiag:2", "random50:1:12345678901"]
)
@pytest.mark.parametrize("policy", ["split", "round-robin", "first"])
def test_patterns(fabric: str, pattern: str, policy: str) -> None:
    if fabric not in SMALL and (pattern == "all-to-all" or policy != "split"):
        pattern, policy = "shift:1", "split"
    subnets = subnets_of(fabric)
    demand = build_pattern(f"pattern:{pattern}", len(find_hosts([each.fabric for each in subnets]).name))
    _, loads = put_on_links(demand, subnets, policy=policy)
    assert loads.bytes_total == sum_exactly(demand.bytes) > 0
    assert_conserved(loads, subnets)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    hosts = draw(st.lists(st.sampled_from(HOSTS), min_size=1, max_size=4, unique=True))
    recorded = draw(st.integers(1, 6))
    world = recorded + draw(st.integers(0, 2))
    count = st.builds(
        Count,
        rank=st.integers(0, recorded - 1),
        peer=st.one_of(st.integers(0, world - 1), st.just(UNKNOWN_PEER)),
        bytes=st.integers(0, 1 << 50),
        messages=st.integers(0, 1 << 30),
        region=st.integers(0, 2),
        operation=st.integers(0, 1),
        direction=st.sampled_from([Direction.SENT, Direction.FETCHED]),
    )
    return make_profile(
        draw(st.lists(count, max_size=30)),
        [make_rank(rank, draw(st.integers(0, len(hosts) - 1))) for rank in range(recorded)],
        [make_host(host) for host in hosts],
        regions=("main", "halo", "fft"),
        operations=("SEND", "ALLTOALL"),
        world_size=world,
    )


@settings(deadline=None)
@given(profiles(), st.sampled_from([None, "packed", "spread", "random:3"]))
def test_profiles(run: Profile, rule: str | None) -> None:
    subnets = subnets_of("two leaves")
    traffic, loads = put_on_links(profile_traffic(run), subnets, rule)
    assert loads.bytes_total == sum(run.counters.bytes.tolist())
    assert_conserved(loads, subnets)
    for by in ((True, False), (False, True), (True, True)):
        apart = load_links(traffic, subnets, *by)
        assert apart.by_rail[0].sum(axis=2).tolist() == loads.by_rail[0].sum(axis=2).tolist()
        assert len(apart.groups) == len(set(apart.groups))


@settings(deadline=None)
@given(profiles(), st.sampled_from(["split", "round-robin", "first", "second"]))
def test_policies_move_bytes_between_rails_and_nothing_else(run: Profile, policy: str) -> None:
    subnets = subnets_of("two rails")
    demand = profile_traffic(run)
    traffic, loads = put_on_links(demand, subnets, "spread", policy)
    assert loads.bytes_total == sum(run.counters.bytes.tolist())
    assert_conserved(loads, subnets)
    assert traffic.rail_source == f"modelled ({policy})"


LID = st.integers(0, 70)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(LID, LID, st.integers(0, 1 << 40)), max_size=30), st.sampled_from(SMALL))
def test_lid_pairs_known_or_not(tmp_path: Path, rows: list[tuple[int, int, int]], fabric: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("src_lid,dst_lid,bytes\n" + "".join(f"{a},{b},{count}\n" for a, b, count in rows))
    subnets = subnets_of(fabric)
    traffic = read_traffic_table(path, len(subnets))
    assert isinstance(traffic, Traffic)
    loads = load_links(traffic, subnets)
    assert loads.bytes_total == sum(count for _, _, count in rows)
    # Bytes on hosts' links are not compared: bytes from or to a switch's LID cross at most one host link.
    assert loads.bytes_total == loads.bytes_routed + loads.bytes_on_host + sum(loads.bytes_unrouted.values())


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 43), st.integers(0, 40), st.integers(0, 1 << 40)), max_size=30))
def test_port_counters_known_or_not(tmp_path: Path, rows: list[tuple[int, int, int]]) -> None:
    subnets = subnets_of("two leaves")
    guids = [f"0x{guid:016x}" for guid in subnets[0].fabric.node_guid.tolist()]
    path = tmp_path / "t.csv"
    path.write_text("guid,port,bytes\n" + "".join(f"{guids[node]},{port},{count}\n" for node, port, count in rows))
    counters = read_traffic_table(path, 1)
    assert isinstance(counters, PortCounters)
    loads = load_counted(counters, [subnets[0].fabric])
    assert loads.bytes_total == sum(count for _, _, count in rows)
    assert sum_exactly(loads.by_rail[0]) == loads.bytes_routed
    assert loads.bytes_total == loads.bytes_routed + sum(loads.bytes_unrouted.values())


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=20))
def test_totals_do_not_wrap_around(values: list[int]) -> None:
    assert sum_exactly(np.array(values, np.uint64)) == sum(values)
