# SPDX-License-Identifier: Apache-2.0
"""The link ends between switches on the way from each switch with hosts to each host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.indexed_tables import NONE, Network
from ibprof_converter.routing.reasons import Reason
from ibprof_converter.routing.subnet import Subnet

NO_GATE = 0
"""The gate of a host that is not on a rail; nothing arrives from there."""

_NO_ROUTE_FACTOR = 1e3
"""How much slower than the slowest link a path counts that does not arrive: no search keeps it if there is another."""


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths between hosts, without the hosts' own links, as positions in one list of link ends of all rails.

    A gate is a switch that hosts are cabled to. All hosts at one gate take the same path to a host.

    Attributes:
        gates: number of gates on the rail that has most of them, `NO_GATE` included.
        gate: uint32 [rail, host], the gate of each host; `NO_GATE` where it has none.
        first: uint64 [rail * gates * hosts + 1], where the path of (rail, gate, host) begins in `ends`.
        ends: uint32, paths one after the other, each link end by its place in the next two.
        rail, link_end: int32 [end], what each end is: the rail, and 2 * link + end. The last is no link end: it stands
            for paths that do not arrive, and its rail is -1.
        seconds_per_byte: float64 [end].
        notes: what is taken for granted, a sentence each.
    """

    gates: int
    gate: npt.NDArray[np.uint32]
    first: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint32]
    rail: npt.NDArray[np.int32]
    link_end: npt.NDArray[np.int32]
    seconds_per_byte: npt.NDArray[np.float64]
    notes: tuple[str, ...]

    @property
    def no_route(self) -> int:
        """The end that stands for paths that do not arrive."""
        return len(self.rail) - 1

    def between(self, rail: int, source: int, destination: int) -> npt.NDArray[np.uint32]:
        """Give the path from one host to another."""
        index = (rail * self.gates + int(self.gate[rail, source])) * self.gate.shape[1] + destination
        return self.ends[int(self.first[index]) : int(self.first[index + 1])]

    def lengths(self, rail: int) -> npt.NDArray[np.int64]:
        """Give the number of link ends of each path of a rail: int64 [gate, host]."""
        cells = self.gates * self.gate.shape[1]
        begin = self.first[rail * cells : (rail + 1) * cells + 1].astype(np.int64)
        return np.diff(begin).reshape(self.gates, -1)


def find_paths(subnets: Sequence[Subnet], lid: npt.NDArray[np.int32]) -> Paths:
    """Follow the tables from the gates of hosts to the hosts.

    Args:
        subnets: the rails.
        lid: int32 [host, rail], `NO_LID` where a host is not on a rail.
    """
    found = [_find_gates(subnet.routes.network, lid[:, rail]) for rail, subnet in enumerate(subnets)]
    gates = 1 + max(int(gate.max(initial=0)) for gate in found)
    offsets = np.cumsum([0, *(2 * subnet.fabric.links for subnet in subnets)])
    lengths = np.zeros((len(subnets), gates, len(lid)), np.int64)
    pieces = []
    for rail, (subnet, gate) in enumerate(zip(subnets, found, strict=True)):
        length, ends = _follow(subnet, lid[:, rail], gate, int(offsets[-1] - offsets[rail]))
        lengths[rail, : len(length)] = length
        pieces.append(ends + offsets[rail])
    used, ends = np.unique(np.concatenate([*pieces, offsets[-1:]]), return_inverse=True)
    rail_of_end = np.searchsorted(offsets, used, side="right") - 1
    link_end = used - offsets[rail_of_end]
    rail_of_end[-1] = -1
    seconds, notes = _seconds_per_byte([subnet.fabric for subnet in subnets], rail_of_end, link_end)
    return Paths(
        gates=gates,
        gate=np.stack(found).astype(np.uint32),
        first=np.concatenate([[0], np.cumsum(lengths.ravel())]).astype(np.uint64),
        ends=ends[:-1].astype(np.uint32),
        rail=rail_of_end.astype(np.int32),
        link_end=link_end.astype(np.int32),
        seconds_per_byte=seconds,
        notes=notes,
    )


def _find_gates(network: Network, lid: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Number the switches that hosts are cabled to, from 1: int64 [host], `NO_GATE` where there is none."""
    fabric = network.fabric
    port = fabric.lid_port[lid]
    end = np.where(port == NONE, NONE, network.end_at[fabric.port_node[port], fabric.port_number[port]])
    place = np.where(end == NONE, NONE, network.switch_of[network.next_node[end]])
    switch = np.unique(place[place != NONE])
    return np.where(place == NONE, NO_GATE, 1 + np.searchsorted(switch, place))


def _follow(
    subnet: Subnet, lid: npt.NDArray[np.int32], gate: npt.NDArray[np.int64], no_route: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Follow the tables of one rail from each gate, `NO_GATE` first, to each host.

    Returns:
        int64 [gate, host], link ends between switches on the way; the ends, one path after the other. A path that does
        not arrive is the one end `no_route`.
    """
    hosts = len(lid)
    _, sender = np.unique(gate[gate != NO_GATE], return_index=True)
    source = lid[np.flatnonzero(gate != NO_GATE)[sender]]
    paths = subnet.routes.find_paths(np.repeat(source, hosts), np.tile(lid, len(source)))
    fabric = subnet.fabric
    between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
    kept = between[paths.end // 2]
    pair = np.repeat(np.arange(len(paths.reason)), np.diff(paths.offset))[kept]
    lost = np.flatnonzero(paths.reason > Reason.SAME_PORT)
    # A path that does not arrive has no ends of its own; the gate that is none comes before all others.
    pair = np.concatenate([np.arange(-hosts, 0), pair, lost])
    ends = np.concatenate([np.full(hosts, no_route), paths.end[kept], np.full(len(lost), no_route)])
    order = np.argsort(pair, kind="stable")
    length = np.bincount(pair + hosts, minlength=hosts * (1 + len(source))).reshape(-1, hosts)
    return length, ends[order].astype(np.int64)


def _seconds_per_byte(
    fabrics: Sequence[Fabric], rail: npt.NDArray[np.intp], link_end: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.float64], tuple[str, ...]]:
    gbps = np.full(len(rail), np.nan)
    notes = []
    for number, fabric in enumerate(fabrics):
        here = np.flatnonzero(rail == number)
        gbps[here] = fabric.link_gbps[link_end[here] // 2]
        between = (fabric.node_kind[fabric.link_node] == NodeKind.SWITCH).all(axis=1)
        known = fabric.link_gbps[between & ~np.isnan(fabric.link_gbps)]
        unknown = here[np.isnan(gbps[here])]
        if len(unknown):
            speeds, counts = np.unique(known if len(known) else np.array([100.0]), return_counts=True)
            usual = float(speeds[np.argmax(counts)])
            gbps[unknown] = usual
            links = len(np.unique(link_end[unknown] // 2))
            notes.append(f"{fabric.name}: {links} link(s) of unknown speed are taken as {usual:g} Gb/s")
    seconds = 8 / (gbps * 1e9)
    seconds[-1] = _NO_ROUTE_FACTOR * (np.nanmax(seconds[:-1]) if len(seconds) > 1 else 8e-9)
    return seconds, tuple(notes)
