# SPDX-License-Identifier: Apache-2.0
"""ibprof's paths equal the paths that ibtracert printed on the same subnet, in each hop and port."""

from __future__ import annotations

import numpy as np
import pytest

from ibprof_converter.routing.spread import Reason, spread, trace
from ibprof_converter.routing.subnet_routes import scan_flows
from ibprof_testing.samples.fabrics import (
    IBDIAGNET,
    OPENSM,
    TRACED,
    as_traced,
    load_of_traces,
    load_sample,
    load_traces,
)

PAIRS = {"quirks-small": 100, "torus2d-5x4-t2qos": 60}


@pytest.mark.parametrize("lst", [IBDIAGNET, OPENSM])
@pytest.mark.parametrize("sample", TRACED)
def test_every_saved_pair_is_traced_alike(sample: str, lst: str) -> None:
    subnet = load_sample(sample, lst)
    pairs = load_traces(sample)
    assert len(pairs) == PAIRS.get(sample, 200)
    for pair in pairs:
        path = trace(subnet.routes.network, pair.source_lid, pair.destination_lid)
        assert path.reason is Reason.DELIVERED
        assert tuple(as_traced(subnet.fabric, hop) for hop in path.hops) == pair.hops
        assert subnet.fabric.node_guid[path.hops[0].node] == pair.source_guid


@pytest.mark.parametrize("lst", [IBDIAGNET, OPENSM])
@pytest.mark.parametrize("sample", TRACED)
def test_a_byte_a_pair_loads_the_link_directions_that_ibtracert_passed(sample: str, lst: str) -> None:
    subnet = load_sample(sample, lst)
    pairs = load_traces(sample)
    loads = spread(
        subnet.routes,
        np.array([pair.source_lid for pair in pairs]),
        np.array([pair.destination_lid for pair in pairs]),
        np.ones(len(pairs), np.uint64),
        np.zeros(len(pairs), np.int64),
        1,
    )
    assert (loads.bytes[:, :, 0] == load_of_traces(subnet.fabric, pairs).sum(axis=0)).all()
    assert loads.unrouted == {}


@pytest.mark.parametrize("sample", TRACED)
def test_the_flows_on_a_link_direction_are_the_pairs_that_ibtracert_sent_over_it(sample: str) -> None:
    subnet = load_sample(sample, IBDIAGNET)
    pairs = load_traces(sample)
    source = np.array([pair.source_lid for pair in pairs])
    destination = np.array([pair.destination_lid for pair in pairs])
    each = load_of_traces(subnet.fabric, pairs) > 0
    busiest = np.argsort(each.sum(axis=0).ravel())[-40:]
    for number, rows in zip(busiest, scan_flows(subnet.routes, source, destination, busiest.tolist()), strict=True):
        expected = np.flatnonzero(each[:, number // 2, number % 2])
        assert len(expected)
        assert rows.tolist() == expected.tolist()
