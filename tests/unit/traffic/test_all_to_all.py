# SPDX-License-Identifier: Apache-2.0
"""The loads of a matrix with equal entries equal the loads of separate all-to-all flows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ibprof_converter.choices import RAIL_POLICIES
from ibprof_converter.cli import report
from ibprof_converter.hotspots import link_report
from ibprof_converter.hotspots.link_report import DIAGNOSED_FLOWS
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_converter.traffic import lid_traffic
from ibprof_converter.traffic.adapter_policies import FIRST_RAIL
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.lid_traffic import load_all_to_all, map_to_lids
from ibprof_converter.traffic.link_loads import load_links
from ibprof_converter.traffic.patterns import build_pattern, read_all_to_all
from ibprof_converter.traffic.traffic_data import join_parts
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample

DUALRAIL = ("dualrail/rail1", "dualrail/rail2")


def faulty(subnet: Subnet) -> Subnet:
    """Remove the routes to one LID on all switches, and half of one switch's table."""
    port = subnet.tables.port.copy()
    port[:, 30] = UNREACHABLE
    port[3, ::2] = UNREACHABLE
    return Subnet(subnet.fabric, replace(subnet.tables, port=port), ())


@pytest.mark.parametrize(
    ("samples", "policy"),
    [
        *((DUALRAIL, policy) for policy in (None, *RAIL_POLICIES)),
        *((samples, policy) for samples in (DUALRAIL[:1], ("quirks-small",)) for policy in (None, FIRST_RAIL)),
    ],
)
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("size", [0, 1, 7])
def test_loads_are_those_of_the_flows(samples: tuple[str, ...], policy: str | None, broken: bool, size: int) -> None:
    subnets = [load_sample(sample, IBDIAGNET) for sample in samples]
    if broken:
        subnets = [faulty(subnet) for subnet in subnets]
    fabrics = [subnet.fabric for subnet in subnets]
    hosts = find_hosts(fabrics)
    text = f"pattern:all-to-all:{size}"
    flows = map_to_lids(build_pattern(text, len(hosts.ends)), hosts, fabrics, None, policy)
    expected = load_links(flows, subnets)
    traffic, found = load_all_to_all(text, size, hosts, subnets, policy)
    assert all((one == other).all() for one, other in zip(found.by_rail, expected.by_rail, strict=True))
    assert found.groups == expected.groups
    assert (found.bytes_total, found.bytes_routed, found.bytes_on_host) == (
        expected.bytes_total,
        expected.bytes_routed,
        expected.bytes_on_host,
    )
    assert found.bytes_unrouted == {reason: amount for reason, amount in expected.bytes_unrouted.items() if amount}
    assert (traffic.rail_source, traffic.origin, traffic.notes) == (flows.rail_source, flows.origin, flows.notes)
    assert np.array_equal(traffic.rank_lid, flows.rank_lid)


@pytest.mark.parametrize("policy", RAIL_POLICIES)
def test_flows_in_parts_are_all_flows(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lid_traffic, "_FLOWS", 100)
    subnets = [load_sample(sample, IBDIAGNET) for sample in DUALRAIL]
    fabrics = [subnet.fabric for subnet in subnets]
    hosts = find_hosts(fabrics)
    text = "pattern:all-to-all:7"
    flows = map_to_lids(build_pattern(text, len(hosts.ends)), hosts, fabrics, None, policy)
    traffic, _ = load_all_to_all(text, 7, hosts, subnets, policy)
    parts = list(traffic.parts())
    assert len(parts) > 10
    joined = join_parts(parts)
    columns = ("rail", "source_rank", "destination_rank", "source_lid", "destination_lid", "bytes")
    found, expected = (np.array([getattr(each, column) for column in columns]) for each in (joined, flows))
    assert np.array_equal(found[:, np.lexsort(found)], expected[:, np.lexsort(expected)])


def test_reports_and_bounds_are_the_same_from_parts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lid_traffic, "_FLOWS", 100)
    said = []
    for limit in (DIAGNOSED_FLOWS, 0):
        monkeypatch.setattr(link_report, "DIAGNOSED_FLOWS", limit)
        assert report.main(["--json", "--adaptive", "xgft:2:4,4:1,2", "pattern:all-to-all:7"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    for name in ("hotspots", "switch_hotspots", "adaptive", "bytes_routed", "max_link"):
        assert said[0][name] == said[1][name], name
    assert said[1]["adaptive"]["max_switch_link"]["most"] > 0
    assert said[0]["diagnosis"] is not None
    assert said[1]["diagnosis"] is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("pattern:all-to-all", 1),
        ("pattern:all-to-all:7", 7),
        ("pattern:ALL-to-all:0", 0),
        ("pattern:all-to-all:-1", None),
        ("pattern:all-to-all:9223372036854775807", None),
        ("pattern:all-to-all:1:2", None),
        ("pattern:shift:3", None),
        ("all-to-all", None),
    ],
)
def test_only_the_pattern_as_it_should_be_is_taken(text: str, size: int | None) -> None:
    assert read_all_to_all(text, 10) == size
