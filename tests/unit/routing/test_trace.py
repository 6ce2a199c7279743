# SPDX-License-Identifier: Apache-2.0
"""For a packet that does not arrive, the right reason is found.

In testbed44, host01 has LID 1 and is on sw-a (LID 2). sw-b has LID 5.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ibprof.errors import InconsistentError
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.routing.spread import Reason, spread, trace
from ibprof_converter.routing.subnet_routes import IndexedNetwork, SubnetRoutes, scan_flows
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample

HOST, ITS_SWITCH, OTHER_SWITCH, FAR_HOST = 1, 2, 5, 17


def load() -> tuple[Fabric, ForwardingTables]:
    subnet = load_sample("testbed44", IBDIAGNET)
    return subnet.fabric, subnet.tables


def redirect(port: int, switch: int = 0) -> ForwardingTables:
    """Return tables with another port for packets to FAR_HOST on one switch."""
    _, tables = load()
    table = tables.port.copy()
    table[switch, FAR_HOST] = port
    return replace(tables, port=table)


def without(switch: int) -> ForwardingTables:
    _, tables = load()
    return replace(
        tables, switch_guid=np.delete(tables.switch_guid, switch), port=np.delete(tables.port, switch, axis=0)
    )


def cut_short() -> ForwardingTables:
    _, tables = load()
    return replace(tables, port=tables.port[:, :FAR_HOST])


FAULTS = [
    (redirect(UNREACHABLE), Reason.UNREACHABLE, 1),
    (cut_short(), Reason.UNREACHABLE, 1),
    (without(0), Reason.MISSING_TABLE, 1),
    (without(1), Reason.MISSING_TABLE, 2),
    (redirect(200), Reason.UNKNOWN_PORT, 1),
    (redirect(3), Reason.WRONG_END, 2),
    (redirect(0), Reason.WRONG_END, 1),
    (redirect(22, switch=1), Reason.LOOP, 3),
]


@pytest.mark.parametrize(("tables", "reason", "hops"), FAULTS)
def test_a_fault_in_the_tables_is_named_and_loads_nothing(tables: ForwardingTables, reason: Reason, hops: int) -> None:
    fabric, _ = load()
    path = trace(IndexedNetwork.index(fabric, tables), HOST, FAR_HOST)
    assert (path.reason, len(path.hops)) == (reason, hops)
    loads = spread(
        SubnetRoutes(fabric, tables), np.array([HOST]), np.array([FAR_HOST]), np.array([7], np.uint64), np.array([0]), 1
    )
    assert loads.unrouted == {reason: 7}
    assert not loads.bytes.any()
    ends = list({2 * hop.link + hop.end for hop in path.hops})
    found = scan_flows(SubnetRoutes(fabric, tables), np.array([HOST]), np.array([FAR_HOST]), ends)
    assert not any(map(len, found))


@pytest.mark.parametrize("unknown", [0, 60, 0xBFFF, 0xFFFF, 70_000, -1])
def test_lids_that_no_port_has_are_named(unknown: int) -> None:
    fabric, tables = load()
    assert trace(IndexedNetwork.index(fabric, tables), HOST, unknown).reason is Reason.UNKNOWN_LID
    assert trace(IndexedNetwork.index(fabric, tables), unknown, HOST).reason is Reason.UNKNOWN_LID


def test_a_port_that_sends_to_itself_loads_nothing() -> None:
    fabric, tables = load()
    assert trace(IndexedNetwork.index(fabric, tables), HOST, HOST).reason is Reason.SAME_PORT
    loads = spread(
        SubnetRoutes(fabric, tables), np.array([HOST]), np.array([HOST]), np.array([7], np.uint64), np.array([0]), 1
    )
    assert (loads.same_port, loads.routed.tolist(), loads.unrouted) == (7, [0], {})


def test_switches_send_and_receive_too() -> None:
    fabric, tables = load()
    assert len(trace(IndexedNetwork.index(fabric, tables), HOST, ITS_SWITCH).hops) == 1
    assert len(trace(IndexedNetwork.index(fabric, tables), OTHER_SWITCH, HOST).hops) == 2
    assert len(trace(IndexedNetwork.index(fabric, tables), ITS_SWITCH, OTHER_SWITCH).hops) == 1


def test_what_is_for_a_switch_ends_there_whatever_its_table_says() -> None:
    fabric, tables = load()
    table = tables.port.copy()
    table[0, ITS_SWITCH] = 22
    odd = replace(tables, port=table)
    assert len(trace(IndexedNetwork.index(fabric, odd), HOST, ITS_SWITCH).hops) == 1
    loads = spread(
        SubnetRoutes(fabric, odd), np.array([HOST]), np.array([ITS_SWITCH]), np.array([7], np.uint64), np.array([0]), 1
    )
    assert loads.bytes.sum() == 7


def test_bytes_are_exact_up_to_64_bits_and_refused_beyond() -> None:
    fabric, tables = load()
    source, destination = np.array([HOST, HOST]), np.array([FAR_HOST, FAR_HOST])
    most = np.array([(1 << 64) - 2, 1], np.uint64)
    loads = spread(SubnetRoutes(fabric, tables), source, destination, most, np.zeros(2, np.int64), 1)
    assert set(loads.bytes[loads.bytes > 0].tolist()) == {(1 << 64) - 1}
    with pytest.raises(InconsistentError, match="more than 2"):
        spread(SubnetRoutes(fabric, tables), source, destination, most + np.uint64(1), np.zeros(2, np.int64), 1)


def test_every_reason_has_a_label() -> None:
    assert len({reason.label for reason in Reason}) == len(Reason)
