# SPDX-License-Identifier: Apache-2.0
"""One packet's path, hop by hop, as `ibtracert` follows it, and the reason why it ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

from ibprof.native.headers import kernels_headers
from ibprof_converter.fabric.fabric_graph import LIDS, Fabric
from ibprof_converter.routing.subnet_routes import NONE, IndexedNetwork
from ibprof_converter.routing.tables import UNREACHABLE


@dataclass(frozen=True, slots=True)
class Hop:
    """One link on a path.

    Attributes:
        node, egress_port: the sending node, and its port.
        next_node, ingress_port: the receiving node, and its port.
        link, end: the link, and its sending end: the packet loads this direction.
    """

    node: int
    egress_port: int
    next_node: int
    ingress_port: int
    link: int
    end: int


@dataclass(frozen=True, slots=True)
class Path:
    """The hops from a source towards a destination, and the reason why they end."""

    hops: tuple[Hop, ...]
    reason: Reason


def trace(network: IndexedNetwork, source_lid: int, destination_lid: int) -> Path:
    """Follow the forwarding tables from the port of one LID to the port of another.

    A CA or router sends from the port that owns the source LID. A switch sends by its table.
    """
    source, destination = (_find_port(network.fabric, lid) for lid in (source_lid, destination_lid))
    if NONE in (source, destination):
        return Path((), Reason.UNKNOWN_LID)
    if source == destination:
        return Path((), Reason.SAME_PORT)
    hops: list[Hop] = []
    reason = _follow_hops(network, source, destination, destination_lid, hops)
    return Path(tuple(hops), reason)


def _follow_hops(
    network: IndexedNetwork, source: int, destination: int, destination_lid: int, hops: list[Hop]
) -> Reason:
    """Append the hops from one port (index into the fabric's ports) to another; return the reason why they end."""
    fabric = network.fabric
    passed: set[int] = set()
    node, egress_port = int(fabric.port_node[source]), int(fabric.port_number[source])
    while True:
        if network.switch_of[node] != NONE:
            if node == fabric.port_node[destination]:
                return Reason.DELIVERED
            if node in passed:
                return Reason.LOOP
            passed.add(node)
            egress_port, fault = _look_up(network, node, destination_lid)
            if fault is not None:
                return fault
        elif hops:
            arrived = network.arrives_at[2 * hops[-1].link + hops[-1].end] == destination
            return Reason.DELIVERED if arrived else Reason.WRONG_END
        if network.end_at[node, egress_port] == NONE:
            return Reason.UNKNOWN_PORT
        hops.append(_cross(fabric, *divmod(int(network.end_at[node, egress_port]), 2)))
        node = hops[-1].next_node


def _find_port(fabric: Fabric, lid: int) -> int:
    return int(fabric.lid_port[lid]) if 0 <= lid < LIDS else NONE


def _look_up(network: IndexedNetwork, node: int, lid: int) -> tuple[int, Reason | None]:
    """Return a switch's egress port for a LID, and the reason if there is none."""
    row = network.row[network.switch_of[node]]
    if row == NONE:
        return 0, Reason.MISSING_TABLE
    table = network.tables.port[row]
    port = int(table[lid]) if lid < len(table) else UNREACHABLE
    if port == UNREACHABLE:
        return port, Reason.UNREACHABLE
    return port, Reason.WRONG_END if port == 0 else None


def _cross(fabric: Fabric, link: int, end: int) -> Hop:
    node, port = fabric.link_node[link], fabric.link_port[link]
    return Hop(int(node[end]), int(port[end]), int(node[1 - end]), int(port[1 - end]), link, end)


class Reason(IntEnum):
    """Reason why a path ends. All reasons except the first two leave a flow's bytes unrouted."""

    _generate_next_value_ = kernels_headers().numbers_of("ibp_reason", "IBP_")
    DELIVERED = auto()
    SAME_PORT = auto()
    UNKNOWN_LID = auto()
    UNKNOWN_PORT = auto()
    MISSING_TABLE = auto()
    UNREACHABLE = auto()
    WRONG_END = auto()
    LOOP = auto()

    @property
    def label(self) -> str:
        """The reason's name in reports."""
        return _LABELS[self]

    @property
    def arrives(self) -> bool:
        """True if the bytes reach their destination."""
        return self <= Reason.SAME_PORT


_LABELS = {
    Reason.DELIVERED: "delivered",
    Reason.SAME_PORT: "same port",  # The adapter loops it back: no link is loaded.
    Reason.UNKNOWN_LID: "unknown LID",  # Source or destination belongs to no port of the fabric.
    Reason.UNKNOWN_PORT: "unknown port",  # The egress port has no active link.
    Reason.MISSING_TABLE: "missing table",  # A switch on the path has no forwarding table.
    Reason.UNREACHABLE: "unreachable LID",  # A switch on the path has no entry for the destination.
    Reason.WRONG_END: "wrong end",  # The route ends at a port that is not the destination.
    Reason.LOOP: "loop",
}
