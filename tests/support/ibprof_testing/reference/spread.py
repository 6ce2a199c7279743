# SPDX-License-Identifier: Apache-2.0
"""Reference for the kernels: add flows to link directions, for all sources of a destination at once.

For each destination, the sum of the bytes that reach a switch moves to the next switch of the in-tree.
The cost depends on the number of switches, not on the number of pairs and hops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_converter.fabric.fabric_graph import LIDS, Fabric
from ibprof_converter.routing.spread import Reason, SpreadLoads
from ibprof_converter.routing.subnet_routes import NONE, IndexedNetwork
from ibprof_converter.routing.tables import ForwardingTables
from ibprof_testing.reference.intree import InTrees, arrive

Integers = npt.NDArray[np.integer]

_CELLS = 1 << 22
"""Maximum number of places x destinations x groups in a batch. A batch of this size takes about 200 MB."""


def spread(
    fabric: Fabric,
    tables: ForwardingTables,
    source_lid: Integers,
    destination_lid: Integers,
    bytes: npt.NDArray[np.uint64],
    group: Integers,
    groups: int,
) -> SpreadLoads:
    """Add each flow's bytes to every link direction on its path.

    Args:
        source_lid, destination_lid: int [flow].
        bytes: uint64 [flow].
        group: int [flow], 0 .. groups - 1. Loads are computed for each group separately.

    Raises:
        InconsistentError: the bytes do not add up within 64 bits.
    """
    if _total(bytes) >= 1 << 64:
        raise InconsistentError("the traffic sums to more than 2^64 - 1 bytes")
    network = IndexedNetwork.index(fabric, tables)
    flows = _Flows.start(network, source_lid, destination_lid)
    group = group.astype(np.int64)
    loads = np.zeros(2 * fabric.links * groups, np.uint64)
    for trees, column_of_all, all_here in _grow_in_batches(network, flows, groups):
        flows.finish(trees, column_of_all, all_here)
        arriving = flows.reason[all_here] == Reason.DELIVERED
        chosen, column = all_here[arriving], column_of_all[arriving]
        first = flows.end[chosen]
        by_port = first != NONE
        np.add.at(loads, first[by_port] * groups + group[chosen[by_port]], bytes[chosen[by_port]])
        _flow_down(trees, column, flows.place[chosen], group[chosen], bytes[chosen], groups, loads)
    routed = np.zeros(groups, np.uint64)
    delivered = flows.reason == Reason.DELIVERED
    np.add.at(routed, group[delivered], bytes[delivered])
    ended = {reason: _total(bytes[flows.reason == reason]) for reason in Reason if (flows.reason == reason).any()}
    return SpreadLoads(
        bytes=loads.reshape(fabric.links, 2, groups),
        reason=flows.reason,
        routed=routed,
        same_port=ended.get(Reason.SAME_PORT, 0),
        unrouted={reason: count for reason, count in ended.items() if not reason.arrives},
    )


@dataclass(frozen=True, slots=True)
class _Flows:
    """Flows, after the source's port has sent them.

    Attributes:
        destination_lid: int [flow].
        end: int32 [flow], the source's link direction; `NONE` if the source is a switch or cannot send.
        place: int32 [flow], the place at which the flow enters the in-tree.
        reason: uint8 [flow], a `Reason`, which is final after `finish`.
    """

    destination_lid: Integers
    end: npt.NDArray[np.int32]
    place: npt.NDArray[np.int32]
    reason: npt.NDArray[np.uint8]

    @classmethod
    def start(cls, network: IndexedNetwork, source_lid: Integers, destination_lid: Integers) -> _Flows:
        """Send each flow from its source."""
        fabric = network.fabric
        switches = len(network.switch_node)
        source, destination = _find_ports(fabric, source_lid), _find_ports(fabric, destination_lid)
        # The added last element is for the port `NONE`.
        end = np.append(network.end_at[fabric.port_node, fabric.port_number], np.int32(NONE))[source]
        switch = np.append(network.switch_of[fabric.port_node], np.int32(NONE))[source]
        place = np.where(switch == NONE, arrive(network, end, destination), switch).astype(np.int32)
        place[(end == NONE) & (switch == NONE)] = switches + Reason.UNKNOWN_PORT
        place[source == destination] = switches + Reason.SAME_PORT
        place[(source == NONE) | (destination == NONE)] = switches + Reason.UNKNOWN_LID
        reason = np.maximum(place - switches, Reason.DELIVERED).astype(np.uint8)
        return cls(destination_lid, end, place, reason)

    def finish(self, trees: InTrees, column: npt.NDArray[np.intp], chosen: npt.NDArray[np.intp]) -> None:
        """Store the outcomes of the flows with indices `chosen`."""
        self.reason[chosen] = trees.reason[self.place[chosen], column]


def _grow_in_batches(
    network: IndexedNetwork, flows: _Flows, groups: int
) -> Iterator[tuple[InTrees, npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Grow the trees of all destinations, in batches that fit into `_CELLS`.

    Yields:
        Three values for each batch. The first has the tree of the routes to each destination. The second and third are
        arrays, [flow to the destinations]: the column of the flow's tree, and the flow's index.
    """
    switches = len(network.switch_node)
    travelling = np.flatnonzero((flows.place < switches) | (flows.reason == Reason.DELIVERED))
    used = np.zeros(LIDS, np.bool_)
    used[flows.destination_lid[travelling]] = True
    lids = np.flatnonzero(used)
    rank = np.cumsum(used) - 1
    column = rank[flows.destination_lid[travelling]]
    size = max(1, _CELLS // ((switches + len(Reason)) * groups))
    batch = (column // size).astype(np.uint16)
    order = np.argsort(batch, kind="stable") if len(lids) > size else np.arange(len(batch))
    bounds = np.searchsorted(batch[order], np.arange(-(-len(lids) // size) + 1))
    for number, (start, stop) in enumerate(pairwise(bounds)):
        here = order[start:stop]
        trees = InTrees.grow(network, lids[number * size : (number + 1) * size])
        yield trees, column[here] - number * size, travelling[here]


def _flow_down(
    trees: InTrees,
    tree: npt.NDArray[np.intp],
    place: npt.NDArray[np.int32],
    group: Integers,
    bytes: npt.NDArray[np.uint64],
    groups: int,
    loads: npt.NDArray[np.uint64],
) -> None:
    """Move bytes along the trees to the roots. Add the bytes to each link direction on the path.

    Args:
        tree: [flow], the column of the flow's tree in `trees`.
        place: [flow], the place where the flow enters the tree.
        group, bytes: [flow].
        loads: uint64 [link direction * groups + group]; the bytes are added here.
    """
    wanted = tree * groups + group
    used = np.zeros(trees.next.shape[1] * groups, np.bool_)
    used[wanted] = True
    columns = np.flatnonzero(used)
    column = (np.cumsum(used) - 1)[wanted]
    of_tree, of_group = columns // groups, columns % groups
    width = len(columns)
    inflow = np.zeros(len(trees.next) * width, np.uint64)
    np.add.at(inflow, place.astype(np.int64) * width + column, bytes)
    end = trees.end[:, of_tree].ravel()
    to = (trees.next[:, of_tree].astype(np.int64) * width + np.arange(width)).ravel()
    for cells in _by_falling_depth(trees.depth[:, of_tree].ravel()):
        amount = inflow[cells]
        moving = np.flatnonzero(amount)
        np.add.at(inflow, to[cells[moving]], amount[moving])
    loading = np.flatnonzero((inflow > 0) & (end != NONE))
    np.add.at(loads, end[loading].astype(np.int64) * groups + of_group[loading % width], inflow[loading])


def _by_falling_depth(depth: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the indices of the elements with each depth, from the largest depth to depth 1."""
    order = np.argsort(depth.astype(np.uint16), kind="stable")
    bounds = np.cumsum(np.bincount(depth)) if len(depth) else np.zeros(1, np.int64)
    for level in range(len(bounds) - 1, 0, -1):
        yield order[bounds[level - 1] : bounds[level]]


def _find_ports(fabric: Fabric, lid: Integers) -> npt.NDArray[np.int32]:
    """Return the port of each LID: int32 [lid]; `NONE` for invalid LIDs and LIDs that no port has."""
    inside = (lid >= 0) & (lid < LIDS)
    return np.where(inside, fabric.lid_port[np.where(inside, lid, 0)], NONE).astype(np.int32)


def _total(bytes: npt.NDArray[np.uint64]) -> int:
    """Return the exact sum. The 32-bit halves are summed separately, because these sums cannot overflow."""
    return (int((bytes >> np.uint64(32)).sum()) << 32) + int((bytes & np.uint64(0xFFFFFFFF)).sum())
