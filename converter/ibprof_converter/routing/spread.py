# SPDX-License-Identifier: Apache-2.0
"""Spread traffic over link directions, for all sources of a destination at once.

The routes to one destination form an in-tree. Bytes that reach a switch are summed before they are moved on. The cost
therefore depends on the number of switches, not on pairs times hops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.kernel_library import load_kernels
from ibprof_converter.routing.hop_trace import Reason
from ibprof_converter.routing.subnet_routes import Integers, SubnetRoutes, as_lids, check_status, count_threads


@dataclass(frozen=True, slots=True)
class SpreadLoads:
    """Loads of the links of one subnet.

    Attributes:
        bytes: uint64 [link, end, group], bytes that the node at that end sends on the link.
        reason: uint8 [flow], `Reason` why each flow ends; a flow that does not arrive loads no link. Empty for a
            matrix.
        routed: uint64 [group], bytes that arrive over links.
        same_port: bytes with the same source and destination port, which load no link.
        unrouted: reason -> bytes that do not arrive; only reasons that occur.
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
        routes: the subnet's routes.
        source_lid, destination_lid: int [flow].
        bytes: uint64 [flow].
        group: int [flow], 0 .. groups - 1; loads are summed by group.
        groups: number of groups.
        threads: largest number of threads; None: the number of processors.

    Raises:
        InconsistentError: the sum of the bytes exceeds 64 bits.
    """
    kernels = load_kernels()
    pointer = kernels.pointer
    source, destination = as_lids(source_lid), as_lids(destination_lid)
    bytes = np.ascontiguousarray(bytes, np.uint64)
    group = np.ascontiguousarray(group, np.uint32)
    if not len(source) == len(destination) == len(bytes) == len(group):
        raise ValueError("flows: expected columns of one length")
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
    """Add the bytes of each pair to every link direction on its path, for a whole matrix of pairs.

    Args:
        routes: the subnet's routes.
        source_lid: int [source].
        destination_lid: int [destination].
        bytes: uint64 [source, destination]. Adjacent columns are not copied. A matrix broadcast from one column costs
            next to nothing.
        threads: largest number of threads; None: the number of processors.

    Raises:
        InconsistentError: the sum of the bytes exceeds 64 bits.
    """
    kernels = load_kernels()
    pointer = kernels.pointer
    source, destination = as_lids(source_lid), as_lids(destination_lid)
    if bytes.dtype != np.uint64 or bytes.shape != (len(source), len(destination)):
        raise ValueError("a matrix: expected uint64, a row a source and a column a destination")
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
    """Return the loads, with the bytes of each reason that occurs: both [reason]."""
    count = {reason: int(ended[reason]) for reason in Reason if occurring[reason]}
    return SpreadLoads(
        bytes=load,
        reason=reason,
        routed=routed,
        same_port=count.get(Reason.SAME_PORT, 0),
        unrouted={reason: amount for reason, amount in count.items() if not reason.arrives},
    )
