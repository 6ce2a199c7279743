# SPDX-License-Identifier: Apache-2.0
"""Find the link directions on the paths from leaf switches to host ports, and the ports' own link directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import kernels_headers
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.spread import Reason, spread_matrix
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.subnet_routes import NONE, PairPaths, SubnetRoutes
from ibprof_converter.traffic.traffic_data import NO_LID

UNCOUNTED = kernels_headers().constants["IBP_UNCOUNTED"]

NO_END = -1
"""Index in place of a link direction, if the path has no link between switches, or the port has no link."""

NO_LEAF = 0
"""Index of a pseudo-leaf, for ports that are not on the rail; its paths carry no bytes."""

_NO_ROUTE_FACTOR = 1e3
"""A byte without a route counts as this number of bytes on the slowest link."""


@dataclass(frozen=True, slots=True)
class SwitchPaths:
    """Paths between host ports, as indices into a list of the link directions of all rails.

    Here a port means adapters of one host, one adapter on each rail. A leaf is a switch to which ports are cabled. All
    ports at one leaf have the same path to a given port. A path is computed when it is needed: all paths of a large
    fabric need gigabytes of memory.

    Attributes:
        lid: int32 [rail, port], LID of each port; `NO_LID` if the port is not on the rail.
        leaves: largest number of leaves on any rail, including `NO_LEAF`.
        leaf_of_port: uint32 [rail, port], leaf of each port; `NO_LEAF` for a port that is not on the rail.
        leaf_lid: int32 [rail, leaf], LID of any port at each leaf; `NO_LID` for `NO_LEAF`.
        leaf_switch: int32 [rail, leaf], index in `SubnetRoutes.switch_node`; `NONE` for `NO_LEAF`.
        first_direction: uint64 [rail], index of the rail's first link direction in `position`; equal for rails of one
            subnet.
        position: uint32 [link direction of all subnets], its index in the [end] arrays; `UNCOUNTED` for directions that
            are on no path.
        rail, direction: int32 [end], rail of each link direction, and 2 * link + end within the rail. Directions
            between switches come first, then directions of hosts' links. The last entry, with rail -1, counts bytes
            without a route.
        between_switches: number of link directions between switches.
        out_of_port, into_port: uint32 [rail, port], index of the link direction from (to) the port; `UNCOUNTED` if the
            port has no link.
        seconds_per_byte: float64 [end], time of one byte on the link direction.
        notes: sentences on assumed link speeds.
    """

    routes: tuple[SubnetRoutes, ...]
    lid: npt.NDArray[np.int32]
    leaves: int
    leaf_of_port: npt.NDArray[np.uint32]
    leaf_lid: npt.NDArray[np.int32]
    leaf_switch: npt.NDArray[np.int32]
    first_direction: npt.NDArray[np.uint64]
    position: npt.NDArray[np.uint32]
    rail: npt.NDArray[np.int32]
    direction: npt.NDArray[np.int32]
    between_switches: int
    out_of_port: npt.NDArray[np.uint32]
    into_port: npt.NDArray[np.uint32]
    seconds_per_byte: npt.NDArray[np.float64]
    notes: tuple[str, ...]

    @property
    def no_route(self) -> int:
        """Index of the entry that counts bytes without a route."""
        return len(self.rail) - 1

    def between(self, rail: int, source: int, destination: int) -> npt.NDArray[np.uint32]:
        """Return the link directions from port to port, with the ports' own link directions: uint32 [hop]."""
        leaf = self.leaf_of_port[rail, [source]].astype(np.intp)
        found = self._find(rail, leaf, np.array([destination]))
        if found.reason[0] > Reason.SAME_PORT:
            return np.array([self.no_route], np.uint32)
        # `found` is the path from the first port at the leaf. Replace its first and last link direction by those of
        # `source` and `destination`.
        own = self.out_of_port[rail, source], self.into_port[rail, destination]
        return np.array([own[0], *self._positions(rail)[found.end[1:-1]], own[1]], np.uint32)

    def lengths(self, rail: int, leaf: npt.NDArray[np.integer], port: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Count the link directions between switches on the path of each pair: int64 [pair]; 1 without a route."""
        found = self._find(rail, leaf, port)
        length = np.maximum(np.diff(found.offset) - 2, 0)
        return np.where(found.reason > Reason.SAME_PORT, 1, length)

    def borders(
        self, rail: int, leaf: npt.NDArray[np.integer], port: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first and the last link direction between switches on each path from leaf to port.

        Args:
            leaf, port: int [pair], leaf and port of each pair.

        Returns:
            Two arrays int64 [pair]; `NO_END` if the path has no link between switches, or if there is no path.
        """
        found = self._find(rail, leaf, port)
        passes = np.diff(found.offset) > 2
        first, last = (np.full(len(leaf), NO_END, np.int64) for _ in range(2))
        position = self._positions(rail)
        first[passes] = position[found.end[found.offset[:-1][passes] + 1]]
        last[passes] = position[found.end[found.offset[1:][passes] - 2]]
        return first, last

    def _positions(self, rail: int) -> npt.NDArray[np.uint32]:
        return self.position[int(self.first_direction[rail]) :]

    def _find(self, rail: int, leaf: npt.NDArray[np.integer], port: npt.NDArray[np.integer]) -> PairPaths:
        """Return routes from one port of each leaf; their first and last link directions are host links."""
        return self.routes[rail].find_paths(self.leaf_lid[rail, leaf], self.lid[rail, port])


def find_switch_paths(subnets: Sequence[Subnet], lid: npt.NDArray[np.int32]) -> SwitchPaths:
    """Return the paths between host ports along the forwarding tables.

    Args:
        subnets: subnet of each column of `lid`; a subnet with several adapters per host has several columns.
        lid: int32 [port, rail], LIDs of the ports; `NO_LID` if a port is not on a rail.
    """
    by_rail = np.ascontiguousarray(lid.T)
    found = [_find_leaves(subnet.routes, by_rail[rail]) for rail, subnet in enumerate(subnets)]
    leaves = max(len(each.lid) for each in found)
    first_rail = [next(rail for rail, other in enumerate(subnets) if other is subnet) for subnet in subnets]
    sizes = (2 * subnet.fabric.links * (first_rail[rail] == rail) for rail, subnet in enumerate(subnets))
    offset = np.cumsum([0, *sizes])
    used = np.zeros(int(offset[-1]), np.bool_)
    for rail, (subnet, each) in enumerate(zip(subnets, found, strict=True)):
        begin = offset[first_rail[rail]]
        used[begin : begin + 2 * subnet.fabric.links] |= _find_used(subnet, each.lid[1:], by_rail[rail])
    own = [_find_own(subnet, by_rail[rail], offset[first_rail[rail]]) for rail, subnet in enumerate(subnets)]
    is_own = np.zeros(len(used), np.bool_)
    is_own[np.concatenate([each[each != NO_END] for each in own])] = True
    listed = np.concatenate([np.flatnonzero(used), np.flatnonzero(is_own)])
    position = np.full(len(used) + 1, UNCOUNTED, np.uint32)  # the last element is for `NO_END`
    position[listed] = np.arange(len(listed))
    number = np.append(listed, offset[-1])
    rail_of_end = np.searchsorted(offset, number, side="right") - 1
    direction = number - offset[rail_of_end]
    rail_of_end[-1] = -1
    seconds, notes = _seconds_per_byte([subnet.fabric for subnet in subnets], rail_of_end, direction)
    return SwitchPaths(
        routes=tuple(subnet.routes for subnet in subnets),
        lid=by_rail,
        leaves=leaves,
        leaf_of_port=np.stack([each.of_port for each in found]).astype(np.uint32),
        leaf_lid=np.stack([_pad(each.lid, leaves, NO_LID) for each in found]),
        leaf_switch=np.stack([_pad(each.switch, leaves, NONE) for each in found]),
        first_direction=offset[first_rail].astype(np.uint64),
        position=position[:-1],
        rail=rail_of_end.astype(np.int32),
        direction=direction.astype(np.int32),
        between_switches=int(np.count_nonzero(used)),
        out_of_port=np.stack([position[each[0]] for each in own]),
        into_port=np.stack([position[each[1]] for each in own]),
        seconds_per_byte=seconds,
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The leaves of one rail, `NO_LEAF` first.

    Attributes:
        of_port: int64 [port], index of the port's leaf.
        lid: int32 [leaf], LID of the leaf's first port.
        switch: int32 [leaf], index in `SubnetRoutes.switch_node`.
    """

    of_port: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int32]
    switch: npt.NDArray[np.int32]


def _find_leaves(routes: SubnetRoutes, lid: npt.NDArray[np.int32]) -> _Leaves:
    network = routes.network
    fabric = network.fabric
    port = fabric.lid_port[lid]
    end = np.where(port == NONE, NONE, network.end_at[fabric.port_node[port], fabric.port_number[port]])
    position = np.where(end == NONE, NONE, network.switch_of[network.next_node[end]])
    cabled = np.flatnonzero(position != NONE)
    switch, first = np.unique(position[cabled], return_index=True)
    of_port = np.where(position == NONE, NO_LEAF, 1 + np.searchsorted(switch, position))
    number = np.full(len(network.switch_node), NONE, np.int32)
    number[network.switch_of[routes.switch_node]] = np.arange(len(routes.switch_node))
    nowhere = np.array([NONE], np.int32)
    return _Leaves(
        of_port,
        np.concatenate([np.array([NO_LID], np.int32), lid[cabled[first]]]),
        np.concatenate([nowhere, number[switch]]),
    )


def _find_own(subnet: Subnet, lid: npt.NDArray[np.int32], offset: int) -> npt.NDArray[np.int64]:
    """Return `offset` + index of each port's link directions, out and in: int64 [2, port]; `NO_END` without a link."""
    network = subnet.routes.network
    port = subnet.fabric.lid_port[lid]
    out = network.end_at[subnet.fabric.port_node[port], subnet.fabric.port_number[port]].astype(np.int64)
    has_link = (port != NONE) & (out != NONE)
    # The directions of a link have the indices 2 * link and 2 * link + 1: `^ 1` swaps the directions.
    return np.where(has_link, np.stack([out, out ^ 1]) + offset, NO_END)


def _find_used(subnet: Subnet, leaf_lid: npt.NDArray[np.int32], lid: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return true for a direction that joins two switches and is on a path from a leaf to a port: bool [direction]."""
    fabric = subnet.fabric
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    one = np.broadcast_to(np.uint64(1), (len(leaf_lid), len(lid)))
    load = spread_matrix(subnet.routes, leaf_lid, lid, one).bytes[:, :, 0]
    return np.asarray((load > 0) & between[:, np.newaxis]).ravel()


def _pad(values: npt.NDArray[np.int32], length: int, nothing: int) -> npt.NDArray[np.int32]:
    return np.concatenate([values, np.full(length - len(values), nothing, np.int32)])


def _seconds_per_byte(
    fabrics: Sequence[Fabric], rail: npt.NDArray[np.intp], direction: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.float64], tuple[str, ...]]:
    gbps = np.full(len(rail), np.nan)
    notes = []
    for number, fabric in enumerate(fabrics):
        here = np.flatnonzero(rail == number)
        gbps[here] = fabric.link_gbps[direction[here] // 2]
        between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
        for kind in (between, ~between):
            known = fabric.link_gbps[kind & (fabric.link_gbps > 0)]
            unknown = here[~(gbps[here] > 0) & kind[direction[here] // 2]]
            if len(unknown):
                speeds, counts = np.unique(known if len(known) else np.array([100.0]), return_counts=True)
                usual = float(speeds[np.argmax(counts)])
                gbps[unknown] = usual
                links = len(np.unique(direction[unknown] // 2))
                notes.append(f"{fabric.name}: {links} link(s) of unknown speed are assumed to have {usual:g} Gb/s")
    seconds = 8 / (gbps * 1e9)
    seconds[-1] = _NO_ROUTE_FACTOR * (np.nanmax(seconds[:-1]) if len(seconds) > 1 else 8e-9)
    return seconds, tuple(notes)
