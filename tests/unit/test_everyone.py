# SPDX-License-Identifier: Apache-2.0
"""All-to-all as a matrix of equals is all-to-all as flows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fabric_samples import IBDIAGNET, load_sample

from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_converter.traffic import rails
from ibprof_converter.traffic.everyone import load_everyone
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.loads import load_links
from ibprof_converter.traffic.patterns import build_pattern, read_all_to_all
from ibprof_converter.traffic.place import place_traffic

DUALRAIL = ("dualrail/rail1", "dualrail/rail2")


def faulty(subnet: Subnet) -> Subnet:
    """Take routes away: one LID everywhere, and half the table of a switch."""
    port = subnet.tables.port.copy()
    port[:, 30] = UNREACHABLE
    port[3, ::2] = UNREACHABLE
    return Subnet(subnet.fabric, replace(subnet.tables, port=port), ())


@pytest.mark.parametrize(
    ("samples", "policy"),
    [
        *((DUALRAIL, policy) for policy in (None, *rails.POLICIES)),
        *((samples, policy) for samples in (DUALRAIL[:1], ("quirks-small",)) for policy in (None, rails.FIRST)),
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
    flows = place_traffic(build_pattern(text, len(hosts.name)), hosts, fabrics, None, policy)
    expected = load_links(flows, subnets)
    traffic, found = load_everyone(text, size, hosts, subnets, policy)
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
