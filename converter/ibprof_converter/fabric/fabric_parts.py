# SPDX-License-Identifier: Apache-2.0
"""Find the separate parts of a fabric, which no cable joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import count_of
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.graph_search import find_parts
from ibprof_converter.fabric.node_names import show_some

_NAMED = 2
"""Texts name at most this number of switches, and of routers."""


@dataclass(frozen=True, slots=True)
class FabricPart:
    """A part of a fabric; no cable joins it to another part.

    Attributes:
        switches, adapters: the part's nodes, ascending; an adapter with cables to several parts is in each of these
            parts.
        text: names of the switches, and number of adapters.
    """

    switches: npt.NDArray[np.intp]
    adapters: npt.NDArray[np.intp]
    text: str


def number_parts(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the index of each node's part: int64 [node].

    An adapter or router with cables to two parts does not join the parts: only switches forward packets.
    """
    is_switch = fabric.node_kind == NodeKind.SWITCH
    joins = is_switch[fabric.link_node].all(axis=1)
    return np.unique(find_parts(fabric.nodes, fabric.link_node[joins]), return_inverse=True)[1]


def list_parts(fabric: Fabric) -> tuple[FabricPart, ...]:
    """Return the parts, sorted by size, descending.

    A switch without cables is left out.
    """
    is_switch = fabric.node_kind == NodeKind.SWITCH
    part = number_parts(fabric)
    linked = np.unique(fabric.link_node[is_switch[fabric.link_node].any(axis=1)].ravel())
    found = []
    for number in np.unique(part[linked[is_switch[linked]]]).tolist():
        switches = np.flatnonzero(is_switch & (part == number))
        near = _joined_to(fabric, switches)
        adapters = near[fabric.node_kind[near] == NodeKind.CA]
        text = show_some([fabric.node_name[node] for node in switches.tolist()], _NAMED)
        found.append(FabricPart(switches, adapters, f"{text} with {count_of(len(adapters), 'adapter')}"))
    return tuple(sorted(found, key=lambda each: (-len(each.adapters), -len(each.switches))))


def count_parts(fabric: Fabric, parts: Sequence[FabricPart]) -> str:
    """Return text on the number of parts, and on any routers that join them."""
    near = [set(_joined_to(fabric, part.switches).tolist()) for part in parts]
    routers = [
        fabric.node_name[node]
        for node in np.flatnonzero(fabric.node_kind == NodeKind.ROUTER).tolist()
        if sum(node in each for each in near) > 1
    ]
    return f"{len(parts)} parts that {f'only router {show_some(routers, _NAMED)}' if routers else 'no cable'} joins"


def find_ends(fabric: Fabric) -> npt.NDArray[np.int64]:
    """Return the switch that each port with a LID is cabled to: int64 [port], -1 without a link to a switch.

    For port 0 of a switch this is the switch itself.
    """
    is_switch = fabric.node_kind == NodeKind.SWITCH
    links = np.concatenate([fabric.link_node, fabric.link_node[:, ::-1]])
    ports = np.concatenate([fabric.link_port[:, 0], fabric.link_port[:, 1]])
    near = {
        (node, port): other
        for (node, other), port in zip(links.tolist(), ports.tolist(), strict=True)
        if is_switch[other]
    }
    places = zip(fabric.port_node.tolist(), fabric.port_number.tolist(), strict=True)
    return np.array([node if is_switch[node] else near.get((node, port), -1) for node, port in places], np.int64)


def _joined_to(fabric: Fabric, switches: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    chosen = np.isin(fabric.link_node, switches)
    return np.unique(fabric.link_node[:, ::-1][chosen])
