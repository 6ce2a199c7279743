# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for small fabrics, right or wrong forwarding tables, and flows; and the number of examples."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import settings
from hypothesis import strategies as st

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

GUID = 0x0002C90300000000
SWITCH_PORTS = 12


def scale_examples(full: int) -> int:
    """Return the number of examples: `full` in `make test-full`; else a fraction of `full`, but at least 5."""
    return max(full * settings().max_examples // 100, 5)


@dataclass(frozen=True)
class Flows:
    """Flows, as arrays of equal length, and the number of groups."""

    source_lid: npt.NDArray[np.int64]
    destination_lid: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.uint64]
    group: npt.NDArray[np.int64]
    groups: int


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Draw a fabric with random links: up to 5 switches, up to 6 CAs of two ports, and an LMC of 0 to 2."""
    switches = draw(st.integers(0, 5))
    adapters = draw(st.integers(2, 6))
    kinds = [NodeKind.SWITCH] * switches + [NodeKind.CA] * adapters
    kinds = draw(st.permutations(kinds))
    free = [list(range(1, 1 + (SWITCH_PORTS if kind == NodeKind.SWITCH else 2))) for kind in kinds]
    links = []
    for a, b in draw(st.lists(st.tuples(*[st.integers(0, len(kinds) - 1)] * 2), max_size=14)):
        if free[a] and free[b] and a != b:
            links.append(sorted([(a, free[a].pop(0)), (b, free[b].pop(0))]))
    links.sort()
    ends = np.array(links, np.int32).reshape(-1, 2, 2)
    ports = [(node, 0 if kind == NodeKind.SWITCH else number) for node, kind in enumerate(kinds) for number in (1, 2)]
    ports = sorted(set(ports))
    lmc = draw(st.integers(0, 2))
    return Fabric(
        name="drawn",
        node_guid=np.arange(len(kinds), dtype=np.uint64) + np.uint64(GUID),
        node_kind=np.array(kinds, np.uint8),
        node_name=tuple(f"node{number} HCA-1" for number in range(len(kinds))),
        system_guid=np.zeros(len(kinds), np.uint64),
        link_node=ends[:, :, 0].copy(),
        link_port=ends[:, :, 1].copy(),
        link_gbps=np.full(len(ends), 100.0),
        port_node=np.array([node for node, _ in ports], np.int32),
        port_number=np.array([number for _, number in ports], np.int32),
        port_guid=np.arange(len(ports), dtype=np.uint64),
        port_lid=np.arange(1, len(ports) + 1, dtype=np.int32) << lmc,
        port_lmc=np.full(len(ports), lmc, np.int32),
    )


def right_tables(fabric: Fabric) -> ForwardingTables:
    """Route a fabric by shortest paths: a breadth-first search from each LID's port selects the paths to this LID."""
    switches = np.flatnonzero(fabric.node_kind == NodeKind.SWITCH)
    table = np.full((len(switches), len(fabric.port_lid) * 8 + 9), UNREACHABLE, np.uint8)
    row = {int(node): number for number, node in enumerate(switches)}
    for lid in np.flatnonzero(fabric.lid_port >= 0):
        target = fabric.lid_port[lid]
        root = int(fabric.port_node[target])
        queue = deque([root])
        seen = {root}
        if root in row:
            table[row[root], lid] = 0
        while queue:
            node = queue.popleft()
            for (a, b), (a_port, b_port) in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
                for near, near_port, far, far_port in ((a, a_port, b, b_port), (b, b_port, a, a_port)):
                    wrong_port = near == root and root not in row and near_port != fabric.port_number[target]
                    if near == node and not wrong_port and far in row and far not in seen:
                        seen.add(far)
                        queue.append(far)
                        table[row[far], lid] = far_port
    return ForwardingTables("drawn", fabric.node_guid[switches], table)


@st.composite
def any_tables(draw: st.DrawFn, fabric: Fabric) -> ForwardingTables:
    """Draw wrong tables: right tables with some entries overwritten, switches removed, or columns cut off."""
    right = right_tables(fabric)
    table = right.port.copy()
    rows, lids = table.shape
    if rows:
        spots = st.tuples(st.integers(0, rows - 1), st.integers(0, lids - 1))
        ports = st.one_of(st.integers(0, SWITCH_PORTS + 1), st.just(UNREACHABLE))
        for (row, lid), port in draw(st.lists(st.tuples(spots, ports), max_size=60)):
            table[row, lid] = port
    kept = draw(st.lists(st.booleans(), min_size=rows, max_size=rows)) if draw(st.booleans()) else [True] * rows
    width = draw(st.integers(1, lids))
    return ForwardingTables("drawn", right.switch_guid[kept], table[kept][:, :width].copy())


@st.composite
def flows(draw: st.DrawFn, fabric: Fabric) -> Flows:
    """Draw flows between any LIDs, even LIDs that the fabric does not have."""
    groups = draw(st.integers(1, 3))
    known = np.flatnonzero(fabric.lid_port >= 0).tolist()
    lid = st.one_of(st.sampled_from(known), st.sampled_from(known), st.sampled_from([0, 5, 60, 0xBFFF, 70_000, -3]))
    size = st.one_of(st.integers(0, 9), st.integers(0, (1 << 60) - 1))
    rows = draw(st.lists(st.tuples(lid, lid, size, st.integers(0, groups - 1)), max_size=15))
    source, destination, count, group = (list(column) for column in zip(*rows, strict=True)) if rows else [[]] * 4
    return Flows(
        np.array(source, np.int64),
        np.array(destination, np.int64),
        np.array(count, np.uint64),
        np.array(group, np.int64),
        groups,
    )
