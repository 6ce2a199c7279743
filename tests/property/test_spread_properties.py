# SPDX-License-Identifier: Apache-2.0
"""Loads of links are the sums of all flows' bytes along the paths of single packets."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ibprof_converter.fabric.fabric_graph import LIDS, Fabric, NodeKind
from ibprof_converter.routing.spread import Reason, SpreadLoads, spread, spread_matrix, trace
from ibprof_converter.routing.subnet_routes import IndexedNetwork, SubnetRoutes, scan_flows
from ibprof_converter.routing.tables import ForwardingTables
from ibprof_testing.reference import spread as reference
from ibprof_testing.strategies import Flows, any_tables, fabrics, flows, right_tables

Case = tuple[Fabric, ForwardingTables, Flows]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    fabric = draw(fabrics())
    return fabric, draw(any_tables(fabric)), draw(flows(fabric))


def spread_case(case: Case, threads: int = 1) -> SpreadLoads:
    fabric, tables, these = case
    routes = SubnetRoutes(fabric, tables)
    return spread(
        routes, these.source_lid, these.destination_lid, these.bytes, these.group, these.groups, threads=threads
    )


def spread_by_numpy(case: Case) -> SpreadLoads:
    fabric, tables, these = case
    return reference.spread(
        fabric, tables, these.source_lid, these.destination_lid, these.bytes, these.group, these.groups
    )


def pairs(these: Flows) -> list[tuple[int, int]]:
    return list(zip(these.source_lid.tolist(), these.destination_lid.tolist(), strict=True))


@given(cases())
def test_spread_is_the_sum_of_the_paths_of_single_packets(case: Case) -> None:
    fabric, tables, these = case
    network = IndexedNetwork.index(fabric, tables)
    loads = spread_case(case)
    expected: Counter[tuple[int, int, int]] = Counter()
    unrouted: Counter[Reason] = Counter()
    for flow, (source, destination) in enumerate(pairs(these)):
        path = trace(network, source, destination)
        assert loads.reason[flow] == path.reason
        if path.reason.arrives:
            for hop in path.hops:
                expected[hop.link, hop.end, int(these.group[flow])] += int(these.bytes[flow])
        else:
            unrouted[path.reason] += int(these.bytes[flow])
    found = {
        (int(link), int(end), int(group)): int(loads.bytes[link, end, group])
        for link, end, group in zip(*np.nonzero(loads.bytes), strict=True)
    }
    assert found == {key: count for key, count in expected.items() if count}
    assert loads.unrouted == dict(unrouted)


@given(cases())
def test_bytes_that_leave_hosts_are_those_that_enter_hosts_and_those_routed(case: Case) -> None:
    fabric, tables, these = case
    is_switch = fabric.node_kind == NodeKind.SWITCH
    of_hosts = ~np.append(is_switch, True)[
        fabric.lid_node[np.clip([these.source_lid, these.destination_lid], 0, LIDS - 1)]
    ]
    both = of_hosts.all(axis=0) if len(these.bytes) else np.zeros(0, np.bool_)
    these = Flows(
        these.source_lid[both], these.destination_lid[both], these.bytes[both], these.group[both], these.groups
    )
    loads = spread_case((fabric, tables, these))
    sends = ~is_switch[fabric.link_node]
    receives = sends[:, ::-1]
    for group in range(these.groups):
        assert int(loads.bytes[sends, group].sum()) == int(loads.routed[group])
        assert int(loads.bytes[receives, group].sum()) == int(loads.routed[group])
    total = sum(these.bytes.tolist())
    assert total == sum(loads.routed.tolist()) + loads.same_port + sum(loads.unrouted.values())


@given(cases())
def test_a_flow_alone_loads_its_bytes_times_its_hops(case: Case) -> None:
    fabric, tables, these = case
    network = IndexedNetwork.index(fabric, tables)
    for flow, (source, destination) in enumerate(pairs(these)):
        one = slice(flow, flow + 1)
        alone = Flows(
            these.source_lid[one], these.destination_lid[one], these.bytes[one], these.group[one], these.groups
        )
        loads = spread_case((fabric, tables, alone))
        path = trace(network, source, destination)
        hops = len(path.hops) if path.reason.arrives else 0
        assert sum(map(int, loads.bytes.ravel())) == int(these.bytes[flow]) * hops


def same(one: SpreadLoads, other: SpreadLoads) -> bool:
    return (
        bool((one.bytes == other.bytes).all() and (one.routed == other.routed).all())
        and (one.reason == other.reason).all()
        and (one.same_port, one.unrouted) == (other.same_port, other.unrouted)
    )


@given(cases())
def test_the_kernel_gives_what_its_numpy_reference_gives(case: Case) -> None:
    assert same(spread_case(case), spread_by_numpy(case))


@given(cases(), st.integers(0, 4), st.sampled_from([1, 3]))
def test_a_matrix_gives_what_its_pairs_give_as_flows(case: Case, more: int, threads: int) -> None:
    fabric, tables, these = case
    source, destination = these.source_lid, np.concatenate([these.destination_lid, these.source_lid[:more]])
    matrix = np.outer(these.bytes % np.uint64(1 << 20), np.arange(len(destination), dtype=np.uint64))
    routes = SubnetRoutes(fabric, tables)
    sources, destinations = (side.ravel() for side in np.broadcast_arrays(source[:, None], destination))
    nothing = np.zeros(matrix.size, np.int64)
    expected = spread(routes, sources, destinations, matrix.ravel(), nothing, 1)
    unrouted = {reason: amount for reason, amount in expected.unrouted.items() if amount}
    # The matrix is contiguous, or has gaps between rows or columns, or repeats one value throughout each row.
    apart = np.zeros((len(source), len(destination) + 3), np.uint64)
    apart[:, : len(destination)] = matrix
    for layout in (matrix, apart[:, : len(destination)], np.asfortranarray(matrix)):
        found = spread_matrix(routes, source, destination, layout, threads)
        assert (found.bytes == expected.bytes).all()
        assert (found.routed == expected.routed).all()
        assert (found.same_port, found.unrouted) == (expected.same_port, unrouted)
    row = np.broadcast_to(matrix[:, -1:], matrix.shape) if len(destination) else matrix
    expected = spread(routes, sources, destinations, row.ravel(), nothing, 1)
    found = spread_matrix(routes, source, destination, row, threads)
    assert (found.bytes == expected.bytes).all()
    assert found.same_port == expected.same_port


@given(cases())
def test_found_paths_are_those_of_single_packets(case: Case) -> None:
    fabric, tables, these = case
    network = IndexedNetwork.index(fabric, tables)
    found = SubnetRoutes(fabric, tables).find_paths(these.source_lid, these.destination_lid)
    for flow, (source, destination) in enumerate(pairs(these)):
        path = trace(network, source, destination)
        ends = [2 * hop.link + hop.end for hop in path.hops] if path.reason.arrives else []
        assert found.end[found.offset[flow] : found.offset[flow + 1]].tolist() == ends
        assert found.reason[flow] == path.reason


@given(cases())
def test_flows_on_a_link_direction_are_those_whose_path_has_it(case: Case) -> None:
    fabric, tables, these = case
    network = IndexedNetwork.index(fabric, tables)
    paths = [trace(network, source, destination) for source, destination in pairs(these)]
    routes, ends = SubnetRoutes(fabric, tables), range(2 * fabric.links)
    for number, rows in zip(ends, scan_flows(routes, these.source_lid, these.destination_lid, ends), strict=True):
        expected = [p.reason.arrives and any(2 * h.link + h.end == number for h in p.hops) for p in paths]
        assert rows.tolist() == np.flatnonzero(expected).tolist()


@given(cases())
def test_paths_are_connected_and_pass_no_switch_twice(case: Case) -> None:
    fabric, tables, these = case
    network = IndexedNetwork.index(fabric, tables)
    for source, destination in pairs(these):
        path = trace(network, source, destination)
        for one, other in zip(path.hops, path.hops[1:], strict=False):
            assert one.next_node == other.node
        if path.reason is not Reason.LOOP:
            entered = [hop.next_node for hop in path.hops if fabric.node_kind[hop.next_node] == NodeKind.SWITCH]
            assert len(entered) == len(set(entered))


@given(fabrics())
def test_right_tables_have_no_loops(fabric: Fabric) -> None:
    tables = right_tables(fabric)
    network = IndexedNetwork.index(fabric, tables)
    lids = fabric.port_lid.tolist()
    reasons = {trace(network, source, destination).reason for source in lids for destination in lids}
    assert not reasons & {Reason.LOOP, Reason.MISSING_TABLE, Reason.UNKNOWN_LID}
