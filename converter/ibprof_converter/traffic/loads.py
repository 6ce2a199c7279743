# SPDX-License-Identifier: Apache-2.0
"""Traffic becomes loads of link ends, on every rail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.model import Fabric
from ibprof_converter.routing.spread import spread
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.traffic.model import ALL, PortCounters, Traffic, total_bytes

UNKNOWN_PORT = "port is not in the fabric"

Group = tuple[str, str]
"""Region and operation; `ALL` for all of them."""


@dataclass(frozen=True, slots=True)
class Loads:
    """What a traffic puts on the links of all rails.

    bytes_total = bytes_routed + bytes_on_host + the bytes that were not routed, always.

    Attributes:
        by_rail: for each rail uint64 [link, end, group]: what the node at that end sends on the link.
        groups: what each group is; one `(ALL, ALL)` when nothing is told apart.
        bytes_total: of the traffic.
        bytes_routed: that arrived over links. For port counters: that were counted on links of the fabric.
        bytes_on_host: that load no link.
        bytes_unrouted: reason -> bytes.
    """

    by_rail: tuple[npt.NDArray[np.uint64], ...]
    groups: tuple[Group, ...]
    bytes_total: int
    bytes_routed: int
    bytes_on_host: int
    bytes_unrouted: dict[str, int]


def load_links(
    traffic: Traffic, subnets: Sequence[Subnet], by_region: bool = False, by_operation: bool = False
) -> Loads:
    """Send each flow along the forwarding tables of its rail.

    Args:
        traffic: the flows.
        subnets: the rails.
        by_region, by_operation: what to tell apart.
    """
    groups, group = _group(traffic, by_region, by_operation)
    unrouted = dict(traffic.unplaced)
    by_rail = []
    routed = 0
    on_host = traffic.on_host_bytes
    for rail, subnet in enumerate(subnets):
        here = traffic.rail == rail if len(subnets) > 1 else slice(None)
        loads = spread(
            subnet.routes,
            traffic.source_lid[here],
            traffic.destination_lid[here],
            traffic.bytes[here],
            group[here],
            len(groups),
        )
        by_rail.append(loads.bytes)
        routed += total_bytes(loads.routed)
        on_host += loads.same_port
        for reason, amount in loads.unrouted.items():
            unrouted[reason.label] = unrouted.get(reason.label, 0) + amount
    return Loads(
        by_rail=tuple(by_rail),
        groups=groups,
        bytes_total=total_bytes(traffic.bytes) + traffic.on_host_bytes + sum(traffic.unplaced.values()),
        bytes_routed=routed,
        bytes_on_host=on_host,
        bytes_unrouted=unrouted,
    )


def _group(traffic: Traffic, by_region: bool, by_operation: bool) -> tuple[tuple[Group, ...], npt.NDArray[np.int32]]:
    """Number the (region, operation) pairs that occur, in the order of their names' numbers."""
    if not (by_region or by_operation) or not len(traffic.bytes):
        return ((ALL, ALL),), np.broadcast_to(np.int32(0), len(traffic.bytes))
    operations = len(traffic.operations)
    region = traffic.region.astype(np.int64) if by_region else np.int64(0)
    operation = traffic.operation.astype(np.int64) if by_operation else np.int64(0)
    keys, group = np.unique(region * operations + operation, return_inverse=True)
    names = tuple(
        (
            traffic.regions[key // operations] if by_region else ALL,
            traffic.operations[key % operations] if by_operation else ALL,
        )
        for key in keys.tolist()
    )
    return names, group.astype(np.int32)


def load_counted(counters: PortCounters, fabrics: Sequence[Fabric]) -> Loads:
    """Put what ports counted on the link ends that they are."""
    by_rail = tuple(np.zeros((fabric.links, 2, 1), np.uint64) for fabric in fabrics)
    matched = np.zeros(len(counters.bytes), bool)
    for fabric, loads in zip(fabrics, by_rail, strict=True):
        end_key = (fabric.node_guid[fabric.link_node.ravel()].tolist(), fabric.link_port.ravel().tolist())
        ends = {key: end for end, key in enumerate(zip(*end_key, strict=True))}
        wanted = zip(counters.node_guid.tolist(), counters.port.tolist(), strict=True)
        end = np.array([ends.get(key, -1) for key in wanted], np.intp)
        here = (end >= 0) & ~matched
        np.add.at(loads.reshape(-1), end[here], counters.bytes[here])
        matched |= here
    unknown = total_bytes(counters.bytes[~matched])
    total = total_bytes(counters.bytes)
    return Loads(
        by_rail=by_rail,
        groups=((ALL, ALL),),
        bytes_total=total,
        bytes_routed=total - unknown,
        bytes_on_host=0,
        bytes_unrouted={UNKNOWN_PORT: unknown} if unknown else {},
    )
