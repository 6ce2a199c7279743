# SPDX-License-Identifier: Apache-2.0
"""Findings about the dumps themselves: lines that are not used, and tables that end early."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ibprof.text.quantities import count_of
from ibprof_converter.checks.fabric_findings import FabricFinding, FindingKind
from ibprof_converter.fabric.damage import Damage, DamageKind
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.indexed_network import NONE
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.tables import UNREACHABLE

_KINDS = {
    DamageKind.LOST: FindingKind.DAMAGED,
    DamageKind.NO_ANSWER: FindingKind.NO_ANSWER,
    DamageKind.STRAY: FindingKind.STRAY_LINES,
}


def check_dumps(rail: int, subnet: Subnet) -> Iterator[FabricFinding]:
    """Find what of the dumps is not used or missing, with the switch and its loss."""
    fabric, adaptive = subnet.fabric, subnet.adaptive
    dumps = [(fabric.name, fabric.damage), (subnet.tables.name, subnet.tables.damage)]
    if adaptive is not None and adaptive.tables is not subnet.tables:
        dumps.append((adaptive.name, adaptive.damage))
    for name, damages in dumps:
        for kind, finding in _KINDS.items():
            found = [damage for damage in damages if damage.kind is kind]
            if found:
                places = tuple(_describe(fabric, damage) for damage in found)
                what = f"{name}: {len(found)} {_WORDS[kind][len(found) > 1]}"
                yield FabricFinding(finding, rail, what, places)
    short = tuple(_find_short_tables(subnet))
    if short:
        what = f"{subnet.tables.name}: {count_of(len(short), 'table')} shorter than the others"
        yield FabricFinding(FindingKind.DAMAGED, rail, what, short)


_WORDS = {
    DamageKind.LOST: ("damaged part", "damaged parts"),
    DamageKind.NO_ANSWER: ("part with missing answers", "parts with missing answers"),
    DamageKind.STRAY: ("part that does not belong to it", "parts that do not belong to it"),
}


def _describe(fabric: Fabric, damage: Damage) -> str:
    """Return damage in words, with the name of its switch."""
    lines = f" ({damage.place})" if damage.place else ""
    if damage.node_guid is None:
        return f"{damage.what}{lines}"
    node = np.flatnonzero(fabric.node_guid == damage.node_guid)
    name = repr(fabric.node_name[node[0]]) if len(node) else "unlisted switch"
    return f"{name} ({damage.node_guid:#018x}): {damage.what}{lines}"


def _find_short_tables(subnet: Subnet) -> Iterator[str]:
    """Yield the tables that lack the adapters' LIDs above their last one, where others have them."""
    fabric, tables, network = subnet.fabric, subnet.tables, subnet.routes.network
    if len(tables.switch_guid) < 2:
        return
    # A switch needs no route to other switches.
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
            yield f"{named}: its table {end}, {missing} LIDs lack"
