# SPDX-License-Identifier: Apache-2.0
"""A fabric with links added, removed or at another speed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.listing import PORTS

_OF_LINKS = ("link_node", "link_port", "link_gbps", "link_lanes", "link_half", "link_unequal")


@dataclass(frozen=True, slots=True, order=True)
class PortOfNode:
    """A port: the node's index in the fabric, and its number on the node."""

    node: int
    port: int


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable between two ports, and its data rate in Gb/s."""

    one: PortOfNode
    other: PortOfNode
    gbps: float


def remove_links(fabric: Fabric, ports: Iterable[PortOfNode]) -> Fabric:
    """Return the fabric without the links at some ports."""
    kept = np.ones(fabric.links, np.bool_)
    for port in ports:
        kept &= ~((fabric.link_node == port.node) & (fabric.link_port == port.port)).any(axis=1)
    return replace(fabric, **{name: getattr(fabric, name)[kept] for name in _OF_LINKS})


def add_cables(fabric: Fabric, cables: Sequence[Cable]) -> Fabric:
    """Return the fabric with more links. A port that is in use is replaced by the next free one of its node."""
    if not cables:
        return fabric
    free = FreePorts(fabric)
    ends = [sorted(free.take(end.node, end) or end for end in (cable.one, cable.other)) for cable in cables]
    new = {
        "link_node": np.array([[end.node for end in pair] for pair in ends], np.int32),
        "link_port": np.array([[end.port for end in pair] for pair in ends], np.int32),
        "link_gbps": np.array([cable.gbps for cable in cables], np.float64),
        "link_lanes": np.zeros(len(cables), np.uint8),
        "link_half": np.zeros(len(cables), np.bool_),
        "link_unequal": np.zeros(len(cables), np.bool_),
    }
    joined = {name: np.concatenate([getattr(fabric, name), new[name]]) for name in _OF_LINKS}
    order = np.lexsort((joined["link_port"][:, 0], joined["link_node"][:, 0]))
    columns: dict[str, Any] = {name: column[order] for name, column in joined.items()}
    return replace(fabric, **columns)


def set_speed(fabric: Fabric, port: PortOfNode, gbps: float) -> Fabric:
    """Return the fabric with another data rate, in Gb/s, of the link whose first end is a port."""
    is_link = (fabric.link_node[:, 0] == port.node) & (fabric.link_port[:, 0] == port.port)
    return replace(fabric, link_gbps=np.where(is_link, gbps, fabric.link_gbps))


class FreePorts:
    """Ports of a fabric that no link uses.

    Args:
        fabric: the fabric.
        freed: ports whose links are to be removed.
    """

    def __init__(self, fabric: Fabric, freed: Iterable[PortOfNode] = ()) -> None:
        ends = zip(fabric.link_node.ravel().tolist(), fabric.link_port.ravel().tolist(), strict=True)
        self._used = {PortOfNode(node, port) for node, port in ends}
        self._used.difference_update(freed)

    def take(self, node: int, wanted: PortOfNode | None = None) -> PortOfNode | None:
        """Return a free port of a node, the wanted one if it is free, and use it; None where the node has none."""
        candidates = (PortOfNode(node, port) for port in range(1, PORTS - 1))
        found = wanted if wanted and wanted not in self._used else None
        found = found or next((each for each in candidates if each not in self._used), None)
        if found is not None:
            self._used.add(found)
        return found


def usual_speed(fabric: Fabric, node: int) -> float:
    """Return the median data rate of a switch's links to others, in Gb/s; of all such links where it has none."""
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1) & np.isfinite(fabric.link_gbps)
    own: npt.NDArray[np.bool_] = between & (fabric.link_node == node).any(axis=1)
    rates = fabric.link_gbps[own if own.any() else between]
    return float(np.median(rates)) if len(rates) else 0.0
