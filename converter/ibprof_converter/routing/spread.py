# SPDX-License-Identifier: Apache-2.0
"""Sum the bytes of traffic on link directions, and trace the path of one packet hop by hop.

The routes from all sources to one destination form a tree. All bytes that reach a switch are summed, then moved to the
next switch. So the run time depends on the number of switches, not on (number of pairs * hops). A traced
path is the path that `ibtracert` prints, and the reason why it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import kernels_headers
from ibprof.native.libraries import load_kernels
from ibprof_converter.fabric.fabric_graph import LIDS, Fabric
from ibprof_converter.routing.subnet_routes import (
    NONE,
    IndexedNetwork,
    Integers,
    SubnetRoutes,
    as_lids,
    check_status,
    count_threads,
)
from ibprof_converter.routing.tables import UNREACHABLE


@dataclass(frozen=True, slots=True)
class SpreadLoads:
    """Loads of the links of one subnet.

    Attributes:
        bytes: uint64 [link, end, group], bytes that the node at `end` sends on the link.
        reason: uint8 [flow], the `Reason` why each flow's path ends; empty for a matrix. A flow that does not arrive
            loads no link.
        routed: uint64 [group], bytes that arrive over links.
        same_port: bytes from a port to itself, which load no link.
        unrouted: reason -> bytes that do not arrive.
    """

    bytes: npt.NDArray[np.uint64]
    reason: npt.NDArray[np.uint8]
    routed: npt.NDArray[np.uint64]
    same_port: int
    unrouted: dict[Reason, int]


def spread(
    routes: SubnetRoutes,
    source_lid: Integers,
    destination_lid: Integers,
    bytes: npt.NDArray[np.uint64],
    group: Integers,
    groups: int,
    threads: int | None = None,
) -> SpreadLoads:
    """Add each flow's bytes to every link direction on its path.

    Args:
        source_lid, destination_lid: int [flow].
        bytes: uint64 [flow].
        group: int [flow], from 0 to groups - 1; loads are summed separately for each group.
        threads: largest number of threads. If None: the number of processors.

    Raises:
        InconsistentError: the sum of the bytes exceeds 64 bits.
    """
    kernels = load_kernels()
    pointer = kernels.pointer
    source, destination = as_lids(source_lid), as_lids(destination_lid)
    bytes = np.ascontiguousarray(bytes, np.uint64)
    group = np.ascontiguousarray(group, np.uint32)
    if not len(source) == len(destination) == len(bytes) == len(group):
        raise ValueError("flows: expected columns of equal length")
    load = np.zeros((routes.network.fabric.links, 2, groups), np.uint64)
    routed = np.zeros(groups, np.uint64)
    ended = np.zeros(len(Reason), np.uint64)
    reason = np.zeros(len(source), np.uint8)
    flows = kernels.ffi.new("struct ibp_flows *")
    flows.count, flows.groups = len(source), groups
    flows.source_lid, flows.destination_lid = pointer(source), pointer(destination)
    flows.bytes, flows.group = pointer(bytes), pointer(group)
    results = pointer(load), pointer(routed), pointer(ended), pointer(reason)
    check_status(kernels.lib.ibp_spread_flows(routes.handle, flows, threads or count_threads(), *results))
    occurring = np.bincount(reason, minlength=len(Reason)) > 0
    return _sum_up(load, reason, routed, ended, occurring)


def spread_matrix(
    routes: SubnetRoutes,
    source_lid: Integers,
    destination_lid: Integers,
    bytes: npt.NDArray[np.uint64],
    threads: int | None = None,
) -> SpreadLoads:
    """Add the bytes of each pair of a matrix to every link direction on the pair's path.

    Args:
        source_lid: int [source].
        destination_lid: int [destination].
        bytes: uint64 [source, destination]. The matrix is not copied if the values of each row are adjacent in memory,
            or one broadcast value.
        threads: largest number of threads. If None: the number of processors.

    Raises:
        InconsistentError: the sum of the bytes exceeds 64 bits.
    """
    kernels = load_kernels()
    pointer = kernels.pointer
    source, destination = as_lids(source_lid), as_lids(destination_lid)
    if bytes.dtype != np.uint64 or bytes.shape != (len(source), len(destination)):
        raise ValueError("a matrix: expected uint64 with a row for each source and a column for each destination")
    if bytes.size and (bytes.strides[0] < 0 or bytes.strides[1] not in (0, bytes.itemsize)):
        bytes = np.ascontiguousarray(bytes)
    load = np.zeros((routes.network.fabric.links, 2, 1), np.uint64)
    ended = np.zeros(len(Reason), np.uint64)
    matrix = kernels.ffi.new("struct ibp_matrix *")
    matrix.rows, matrix.columns = bytes.shape
    matrix.row_step, matrix.column_step = (stride // bytes.itemsize for stride in bytes.strides)
    matrix.source_lid, matrix.destination_lid = pointer(source), pointer(destination)
    matrix.bytes = kernels.ffi.cast("uint64_t *", bytes.ctypes.data)
    results = pointer(load), pointer(ended)
    threads = threads or count_threads()
    check_status(kernels.lib.ibp_spread_matrix(routes.handle, routes.trees, matrix, threads, *results))
    return _sum_up(load, np.zeros(0, np.uint8), ended[:1].copy(), ended, ended > 0)


def _sum_up(
    load: npt.NDArray[np.uint64],
    reason: npt.NDArray[np.uint8],
    routed: npt.NDArray[np.uint64],
    ended: npt.NDArray[np.uint64],
    occurring: npt.NDArray[np.bool_],
) -> SpreadLoads:
    """Return the loads; `ended` is the bytes that end for each reason, `occurring` is true for reasons that occur."""
    count = {reason: int(ended[reason]) for reason in Reason if occurring[reason]}
    return SpreadLoads(
        bytes=load,
        reason=reason,
        routed=routed,
        same_port=count.get(Reason.SAME_PORT, 0),
        unrouted={reason: amount for reason, amount in count.items() if not reason.arrives},
    )


@dataclass(frozen=True, slots=True)
class Hop:
    """One link on a path.

    Attributes:
        node, egress_port: the sending node and its port.
        next_node, ingress_port: the receiving node and its port.
        link, end: the link, and the index of its sending end (0 or 1).
    """

    node: int
    egress_port: int
    next_node: int
    ingress_port: int
    link: int
    end: int


@dataclass(frozen=True, slots=True)
class Path:
    """The hops from a source towards a destination, and the reason why the path ends there."""

    hops: tuple[Hop, ...]
    reason: Reason


def trace(network: IndexedNetwork, source_lid: int, destination_lid: int) -> Path:
    """Follow the forwarding tables from the port of one LID to the port of another.

    A CA or router sends by the port with the source LID; a switch sends by the port in its forwarding table.
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
    """Append the hops from port `source` to port `destination`; return the reason why the path ends."""
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
    """Return a switch's egress port for a LID; and the reason why the path ends at this switch, else None."""
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
    """Reason why a path ends."""

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
    Reason.SAME_PORT: "same port",  # The adapter sends the packet to itself, and loads no link.
    Reason.UNKNOWN_LID: "unknown LID",  # No port of the fabric has the source LID or the destination LID.
    Reason.UNKNOWN_PORT: "unknown port",  # The egress port has no active link.
    Reason.MISSING_TABLE: "missing table",  # A switch on the path has no forwarding table.
    Reason.UNREACHABLE: "unreachable LID",  # A switch on the path has no entry for the destination.
    Reason.WRONG_END: "wrong end",  # The route ends at a port that is not the destination.
    Reason.LOOP: "loop",
}
