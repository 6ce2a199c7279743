# SPDX-License-Identifier: Apache-2.0
"""Fabrics that the lab builds from network namespaces: trees with slow links, missing cables or given tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.route_choice import route_by_opensm
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.tables import ForwardingTables

TREE = "xgft:2:4,4:1,2"
"""16 hosts on four leaf switches. Each leaf has four hosts and one uplink to each of two spines."""

SMALL = "xgft:2:2,2:1,2"
"""4 hosts on two leaf switches, two spines."""

MBIT = 20.0
"""Default data rate of links, in Mb/s."""


@dataclass(frozen=True, slots=True)
class LabRail:
    """A fabric and its forwarding tables."""

    fabric: Fabric
    tables: ForwardingTables


def make_rail(
    spec: str = TREE,
    mbit: float = MBIT,
    slow: Mapping[tuple[str, str], float] | None = None,
    gone: tuple[tuple[str, str], ...] = (),
    engine: str = "",
    host_mbit: float | None = None,
    number: int = 0,
) -> LabRail:
    """Make a rail.

    Args:
        spec: specification of a fabric for `ibprof-layout`.
        mbit, host_mbit: data rate of links, and of hosts' links, Mb/s; without `host_mbit`, all links have `mbit`.
        slow: first words of two nodes' names -> data rate of the cable, Mb/s.
        gone: missing cables.
        engine: OpenSM's routing engine, which computes the tables. If empty, the generator of the fabric computes the
            tables, and `gone` must be empty.
    """
    made = generate(spec, number)
    fabric = replace(made.fabric, link_gbps=np.full(made.fabric.links, mbit / 1000))
    if host_mbit:
        fabric.link_gbps[(fabric.node_kind[fabric.link_node] == NodeKind.CA).any(axis=1)] = host_mbit / 1000
    for (one, other), rate in (slow or {}).items():
        fabric.link_gbps[find_cable(fabric, one, other)] = rate / 1000
    missing = [find_cable(fabric, one, other) for one, other in gone]
    kept = np.setdiff1d(np.arange(fabric.links), missing)
    names = ("link_node", "link_port", "link_gbps", "link_lanes", "link_half", "link_unequal")
    fabric = replace(fabric, **{name: getattr(fabric, name)[kept] for name in names})
    if engine:
        return LabRail(fabric, route_by_opensm(fabric, engine).subnet.tables)
    return LabRail(fabric, made.tables)


def find_cable(fabric: Fabric, one: str, other: str) -> int:
    """Return the link between two nodes, given the first word of each node's name."""
    names = [name.split()[0] for name in fabric.node_name]
    wanted = {names.index(one), names.index(other)}
    (found,) = [link for link, ends in enumerate(fabric.link_node.tolist()) if set(ends) == wanted]
    return int(found)


def crowd(rail: LabRail, spine: str) -> LabRail:
    """Return a two-level tree with poor tables: all traffic between leaf switches uses one spine."""
    fabric, tables = rail.fabric, rail.tables
    ports = tables.port.copy()
    names = [name.split()[0] for name in fabric.node_name]
    switches = {int(guid): row for row, guid in enumerate(tables.switch_guid.tolist())}
    for link, ends in enumerate(fabric.link_node.tolist()):
        if names.index(spine) not in ends:
            continue
        side = 1 - ends.index(names.index(spine))
        leaf = ends[side]
        row = switches[int(fabric.node_guid[leaf])]
        own = {int(port) for port, pair in _ports_to_hosts(fabric, leaf)}
        up = ~np.isin(ports[row], [*own, 0, 255])
        ports[row, up] = fabric.link_port[link, side]
    return LabRail(fabric, replace(tables, port=ports))


def _ports_to_hosts(fabric: Fabric, leaf: int) -> list[tuple[int, int]]:
    found = []
    for nodes, numbers in zip(fabric.link_node.tolist(), fabric.link_port.tolist(), strict=True):
        if leaf in nodes:
            side = nodes.index(leaf)
            if fabric.node_kind[nodes[1 - side]] != fabric.node_kind[leaf]:
                found.append((numbers[side], nodes[1 - side]))
    return found
