# SPDX-License-Identifier: Apache-2.0
"""The link directions between switches on the path from each leaf switch to each port of a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.indexed_network import NONE, IndexedNetwork
from ibprof_converter.routing.reasons import Reason
from ibprof_converter.routing.subnet import Subnet

NO_LEAF = 0
"""The leaf of a port that is not on a rail; its paths carry nothing."""

_NO_ROUTE_FACTOR = 1e3
"""Cost of a path that does not arrive, relative to the slowest link: no search keeps it where another path exists."""


@dataclass(frozen=True, slots=True)
class SwitchPaths:
    """Paths between ports of hosts, without access links, as positions in one list of link directions of all rails.

    A port is an adapter of a host, one on each rail. A leaf is a switch that ports are cabled to. All ports at one leaf
    take the same path to a port.

    Attributes:
        leaves: largest number of leaves on any rail, `NO_LEAF` included.
        leaf_of_port: uint32 [rail, port]; `NO_LEAF` where a port is not on a rail.
        first: uint64 [rail * leaves * ports + 1], start of the path of (rail, leaf, port) in `ends`.
        ends: uint32, concatenated paths; each entry is an index into the next two arrays.
        rail, direction: int32 [end], the rail of each link direction, and 2 * link + end. The last entry stands for
            paths that do not arrive; its rail is -1.
        seconds_per_byte: float64 [end].
        notes: assumptions, a sentence each.
    """

    leaves: int
    leaf_of_port: npt.NDArray[np.uint32]
    first: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint32]
    rail: npt.NDArray[np.int32]
    direction: npt.NDArray[np.int32]
    seconds_per_byte: npt.NDArray[np.float64]
    notes: tuple[str, ...]

    @property
    def no_route(self) -> int:
        """The entry that stands for paths that do not arrive."""
        return len(self.rail) - 1

    def between(self, rail: int, source: int, destination: int) -> npt.NDArray[np.uint32]:
        """Return the path from one port to another."""
        index = (rail * self.leaves + int(self.leaf_of_port[rail, source])) * self.leaf_of_port.shape[1] + destination
        return self.ends[int(self.first[index]) : int(self.first[index + 1])]

    def lengths(self, rail: int) -> npt.NDArray[np.int64]:
        """Return the number of link directions of each path of a rail: int64 [leaf, port]."""
        cells = self.leaves * self.leaf_of_port.shape[1]
        begin = self.first[rail * cells : (rail + 1) * cells + 1].astype(np.int64)
        return np.diff(begin).reshape(self.leaves, -1)


def find_switch_paths(subnets: Sequence[Subnet], lid: npt.NDArray[np.int32]) -> SwitchPaths:
    """Follow the forwarding tables from the leaves to the ports of hosts.

    Args:
        subnets: the rails. One that is named for several rails is the subnet of several adapters of each host.
        lid: int32 [port, rail], `NO_LID` where a port is not on a rail.
    """
    found = [_find_leaves(subnet.routes.network, lid[:, rail]) for rail, subnet in enumerate(subnets)]
    leaves = 1 + max(int(leaf.max(initial=0)) for leaf in found)
    first_rail = [next(rail for rail, other in enumerate(subnets) if other is subnet) for subnet in subnets]
    sizes = (2 * subnet.fabric.links * (first_rail[rail] == rail) for rail, subnet in enumerate(subnets))
    offsets = np.cumsum([0, *sizes])
    lengths = np.zeros((len(subnets), leaves, len(lid)), np.int64)
    pieces = []
    for rail, (subnet, leaf) in enumerate(zip(subnets, found, strict=True)):
        begin = offsets[first_rail[rail]]
        length, ends = _follow(subnet, lid[:, rail], leaf, int(offsets[-1] - begin))
        lengths[rail, : len(length)] = length
        pieces.append(ends + begin)
    used, ends = np.unique(np.concatenate([*pieces, offsets[-1:]]), return_inverse=True)
    rail_of_end = np.searchsorted(offsets, used, side="right") - 1
    direction = used - offsets[rail_of_end]
    rail_of_end[-1] = -1
    seconds, notes = _seconds_per_byte([subnet.fabric for subnet in subnets], rail_of_end, direction)
    return SwitchPaths(
        leaves=leaves,
        leaf_of_port=np.stack(found).astype(np.uint32),
        first=np.concatenate([[0], np.cumsum(lengths.ravel())]).astype(np.uint64),
        ends=ends[:-1].astype(np.uint32),
        rail=rail_of_end.astype(np.int32),
        direction=direction.astype(np.int32),
        seconds_per_byte=seconds,
        notes=notes,
    )


def _find_leaves(network: IndexedNetwork, lid: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the number of each port's leaf switch, counted from 1: int64 [port]; `NO_LEAF` where there is none."""
    fabric = network.fabric
    port = fabric.lid_port[lid]
    end = np.where(port == NONE, NONE, network.end_at[fabric.port_node[port], fabric.port_number[port]])
    position = np.where(end == NONE, NONE, network.switch_of[network.next_node[end]])
    switch = np.unique(position[position != NONE])
    return np.where(position == NONE, NO_LEAF, 1 + np.searchsorted(switch, position))


def _follow(
    subnet: Subnet, lid: npt.NDArray[np.int32], leaf: npt.NDArray[np.int64], no_route: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Follow the forwarding tables of one rail from each leaf, `NO_LEAF` first, to each port.

    Returns:
        int64 [leaf, port], number of link directions between switches on each path; the concatenated paths. A path that
        does not arrive is the single entry `no_route`.
    """
    hosts = len(lid)
    _, sender = np.unique(leaf[leaf != NO_LEAF], return_index=True)
    source = lid[np.flatnonzero(leaf != NO_LEAF)[sender]]
    paths = subnet.routes.find_paths(np.repeat(source, hosts), np.tile(lid, len(source)))
    fabric = subnet.fabric
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    kept = between[paths.end // 2]
    pair = np.repeat(np.arange(len(paths.reason)), np.diff(paths.offset))[kept]
    lost = np.flatnonzero(paths.reason > Reason.SAME_PORT)
    # A path that does not arrive has no link directions; `NO_LEAF` comes before all leaves.
    pair = np.concatenate([np.arange(-hosts, 0), pair, lost])
    ends = np.concatenate([np.full(hosts, no_route), paths.end[kept], np.full(len(lost), no_route)])
    order = np.argsort(pair, kind="stable")
    length = np.bincount(pair + hosts, minlength=hosts * (1 + len(source))).reshape(-1, hosts)
    return length, ends[order].astype(np.int64)


def _seconds_per_byte(
    fabrics: Sequence[Fabric], rail: npt.NDArray[np.intp], direction: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.float64], tuple[str, ...]]:
    gbps = np.full(len(rail), np.nan)
    notes = []
    for number, fabric in enumerate(fabrics):
        here = np.flatnonzero(rail == number)
        gbps[here] = fabric.link_gbps[direction[here] // 2]
        between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
        known = fabric.link_gbps[between & ~np.isnan(fabric.link_gbps)]
        unknown = here[np.isnan(gbps[here])]
        if len(unknown):
            speeds, counts = np.unique(known if len(known) else np.array([100.0]), return_counts=True)
            usual = float(speeds[np.argmax(counts)])
            gbps[unknown] = usual
            links = len(np.unique(direction[unknown] // 2))
            notes.append(f"{fabric.name}: {links} link(s) of unknown speed are assumed to have {usual:g} Gb/s")
    seconds = 8 / (gbps * 1e9)
    seconds[-1] = _NO_ROUTE_FACTOR * (np.nanmax(seconds[:-1]) if len(seconds) > 1 else 8e-9)
    return seconds, tuple(notes)
