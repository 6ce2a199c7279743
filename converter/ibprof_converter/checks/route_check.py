# SPDX-License-Identifier: Apache-2.0
"""Check dumps and routes: find damaged dumps, tables that contradict the links, and routes that do not arrive."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import count_of
from ibprof_converter.checks.fabric_findings import FabricFinding, FindingKind
from ibprof_converter.fabric.damage import Damage, DamageKind
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind, Origin
from ibprof_converter.routing.spread import Reason, spread
from ibprof_converter.routing.subnet import Subnet, find_dangling_ports, find_unlisted
from ibprof_converter.routing.subnet_routes import NONE, SubnetRoutes
from ibprof_converter.routing.tables import UNREACHABLE

_FLOWS = 1 << 22
"""Largest number of pairs (switch, LID) whose routes are followed at the same time."""

_DAMAGE = {
    DamageKind.LOST: (FindingKind.DAMAGED, "damaged part", "damaged parts"),
    DamageKind.NO_ANSWER: (FindingKind.NO_ANSWER, "part with missing answers", "parts with missing answers"),
    DamageKind.STRAY: (FindingKind.STRAY_LINES, "part with other text", "parts with other text"),
}


def check_tables(rail: int, subnet: Subnet) -> Iterator[FabricFinding]:
    """Find forwarding tables that contradict the links, and LIDs that several ports have."""
    fabric, tables = subnet.fabric, subnet.tables
    network = subnet.routes.network
    foreign = tables.switch_guid[~np.isin(tables.switch_guid, fabric.node_guid)]
    if len(foreign):
        what = f"{count_of(len(foreign), 'table')} of switches that are not listed"
        yield FabricFinding(FindingKind.FOREIGN_TABLE, rail, what, tuple(f"{int(guid):#018x}" for guid in foreign))
    unlisted = np.flatnonzero(find_unlisted(fabric, tables))
    if len(unlisted):
        what = f"tables lead to {count_of(len(unlisted), 'LID')} that no listed port has"
        yield FabricFinding(FindingKind.UNLISTED_LID, rail, what, tuple(f"LID {lid:#06x}" for lid in unlisted))
    dangling = find_dangling_ports(network)
    if dangling:
        places = tuple(f"{fabric.node_name[node]!r} port {port}" for node, port in dangling)
        yield FabricFinding(
            FindingKind.NO_LINK,
            rail,
            f"routes leave by {count_of(len(dangling), 'switch port')} without a link",
            places,
        )
    overlapping = _find_overlaps(fabric)
    if overlapping:
        yield FabricFinding(
            FindingKind.LID_TWICE,
            rail,
            f"{count_of(len(overlapping), 'port')} with LIDs that another port also has",
            overlapping,
        )


def check_routes(rail: int, subnet: Subnet) -> Iterator[FabricFinding]:
    """Follow the tables from each switch with hosts to each host; find routes that do not arrive.

    Routes between switches are not checked: in a fat-tree, spines have no routes to other spines.
    """
    fabric = subnet.fabric
    network = subnet.routes.network
    is_end = np.append(fabric.node_kind != NodeKind.SWITCH, False)
    lids = np.flatnonzero(is_end[fabric.lid_node])
    lost = _count_lost(subnet.routes, lids)
    without = network.switch_node[network.row == NONE]
    if not len(subnet.tables.switch_guid) and len(without):
        is_subnet = fabric.origin is Origin.SUBNET
        kind = FindingKind.NO_TABLES if is_subnet else FindingKind.TABLELESS
        of = "" if is_subnet else f", as {fabric.origin.value} has none"
        yield FabricFinding(kind, rail, f"no forwarding tables of {count_of(len(without), 'switch')}{of}", ())
    elif len(without):
        what = f"{len(without)} of {len(network.row)} switches have no forwarding table"
        what += f"; {lost[Reason.MISSING_TABLE].sum()} of {lost.sum()} routes end at such a switch"
        yield FabricFinding(FindingKind.NO_TABLE, rail, what, name_nodes(fabric, without))
    for reason, kind, words in (
        (Reason.UNREACHABLE, FindingKind.UNREACHABLE, "end at a switch that has no entry for them"),
        (Reason.LOOP, FindingKind.LOOP, "run into a loop"),
        (Reason.WRONG_END, FindingKind.WRONG_END, "end at another port"),
    ):
        bad = np.flatnonzero(lost[reason])
        if len(bad) and len(subnet.tables.switch_guid):
            what = f"{count_of(int(lost[reason].sum()), 'route')} to {len(bad)} of {len(lids)} LIDs {words}"
            yield FabricFinding(kind, rail, what, tuple(_name_lid(fabric, int(lids[index])) for index in bad))


def _count_lost(routes: SubnetRoutes, lids: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Count the leaf switches whose path to a LID ends for a `Reason`: int64 [reason, LID]."""
    fabric = routes.network.fabric
    is_leaf = np.zeros(fabric.nodes, np.bool_)
    is_leaf[routes.switch_node[: routes.leaves]] = True
    leaf_lids = fabric.port_lid[is_leaf[fabric.port_node]]
    counts = np.zeros((len(Reason), len(lids)), np.int64)
    size = max(1, _FLOWS // max(len(lids), 1))
    for start in range(0, len(leaf_lids), size):
        sources = leaf_lids[start : start + size]
        nothing = np.zeros(len(sources) * len(lids), np.uint64)
        reason = spread(routes, np.repeat(sources, len(lids)), np.tile(lids, len(sources)), nothing, nothing, 1).reason
        by_source = reason.reshape(len(sources), len(lids))
        for outcome in Reason:
            counts[outcome] += (by_source == outcome).sum(axis=0)
    return counts


def _find_overlaps(fabric: Fabric) -> tuple[str, ...]:
    """Return the ports that share any of their 2^LMC LIDs with another port."""
    places = []
    for index, (lid, lmc) in enumerate(zip(fabric.port_lid.tolist(), fabric.port_lmc.tolist(), strict=True)):
        if (fabric.lid_port[lid : lid + (1 << lmc)] != index).any():
            places.append(f"{fabric.node_name[fabric.port_node[index]]!r} LID {lid:#06x} LMC {lmc}")
    return tuple(places)


def name_nodes(fabric: Fabric, nodes: npt.NDArray[np.integer]) -> tuple[str, ...]:
    """Return the name of each node; add the GUID if several nodes of the fabric have this name."""
    names = [fabric.node_name[node] for node in nodes.tolist()]
    alone = {name for name in names if fabric.node_name.count(name) == 1}
    return tuple(
        repr(name) if name in alone else f"{name!r} ({int(fabric.node_guid[node]):#018x})"
        for name, node in zip(names, nodes.tolist(), strict=True)
    )


def _name_lid(fabric: Fabric, lid: int) -> str:
    node = int(fabric.lid_node[lid])
    return f"LID {lid:#06x} of {fabric.node_name[node]!r}"


def check_dumps(rail: int, subnet: Subnet) -> Iterator[FabricFinding]:
    """Find damage, missing answers and stray lines in the dumps, and tables that are too short."""
    fabric, adaptive = subnet.fabric, subnet.adaptive
    dumps = [(fabric.name, fabric.damage), (subnet.tables.name, subnet.tables.damage)]
    if adaptive is not None and adaptive.tables is not subnet.tables:
        dumps.append((adaptive.name, adaptive.damage))
    for name, damages in dumps:
        for kind, (finding, *words) in _DAMAGE.items():
            places = tuple(_describe(fabric, damage) for damage in damages if damage.kind is kind)
            if places:
                yield FabricFinding(finding, rail, f"{name}: {len(places)} {words[len(places) > 1]}", places)
    short = tuple(_find_short_tables(subnet))
    if short:
        what = f"{subnet.tables.name}: {count_of(len(short), 'table')} without the last LIDs, which most tables have"
        yield FabricFinding(FindingKind.DAMAGED, rail, what, short)


def _describe(fabric: Fabric, damage: Damage) -> str:
    """Return text on damage, with the name of the affected node if known."""
    lines = f" ({damage.place})" if damage.place else ""
    if damage.node_guid is None:
        return f"{damage.what}{lines}"
    node = np.flatnonzero(fabric.node_guid == damage.node_guid)
    name = repr(fabric.node_name[node[0]]) if len(node) else "unlisted node"
    return f"{name} ({damage.node_guid:#018x}): {damage.what}{lines}"


def _find_short_tables(subnet: Subnet) -> Iterator[str]:
    """Yield text on each table that ends at least two adapter LIDs before the median end of all tables."""
    fabric, tables, network = subnet.fabric, subnet.tables, subnet.routes.network
    if len(tables.switch_guid) < 2:
        return
    # Ignore entries for LIDs of switches: a switch needs no routes to other switches.
    is_end = fabric.node_kind[fabric.port_node] != NodeKind.SWITCH
    lids = np.sort(fabric.port_lid[is_end & (fabric.port_lid < tables.port.shape[1])])
    if not len(lids):
        return
    reached = tables.port[:, lids] != UNREACHABLE
    last = np.where(reached.any(axis=1), len(lids) - reached[:, ::-1].argmax(axis=1), 0)
    usual = int(np.median(last))
    for switch in np.flatnonzero(network.row != NONE).tolist():
        row = int(network.row[switch])
        missing = usual - int(last[row])
        if missing > 1:
            node = int(network.switch_node[switch])
            end = f"ends at LID {int(lids[last[row] - 1]):#06x}" if last[row] else "is empty"
            named = f"{fabric.node_name[node]!r} ({int(fabric.node_guid[node]):#018x})"
            yield f"{named}: its table {end} and lacks {missing} LIDs of adapters"
