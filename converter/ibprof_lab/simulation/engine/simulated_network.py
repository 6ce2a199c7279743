# SPDX-License-Identifier: Apache-2.0
"""A fabric with forwarding tables, as arrays for the packet engine. Hosts and switches are indices; times are ticks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError
from ibprof_converter.fabric.graph_search import count_hops
from ibprof_converter.routing.subnet import Subnet
from ibprof_converter.routing.subnet_routes import NONE, IndexedNetwork
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_converter.traffic.hosts import find_adapters

_BITS_A_TICK = 64
"""By default, a tick is the time in which the fastest link transmits this number of bits."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Properties of a network that dumps of a fabric do not contain.

    Attributes:
        packet_bytes: size of the largest packet.
        lane_bytes: buffer size of a virtual lane, for each link direction.
        switch_ns: delay of a switch: from the arrival of a packet's last bit to its start on the next link.
        wire_ns: propagation delay of a link.
        nic_gap_ns: idle time of a host's adapter between two packets.
        gbps: speed of all links, Gb/s; None to use the speeds in the fabric.
        tick_ns: duration of a tick; None for the time of 8 bytes on the fastest link.
        message_step_bytes: with 0, adaptive routing chooses a port for each packet. Above 0, it chooses a port for a
            message's first packet: the port with the fewest occupied bytes, in whole multiples of this number. The
            message's later packets take the same ports at the first 15 switches with several possible ports.
    """

    packet_bytes: int = 4096
    lane_bytes: int = 65536
    switch_ns: float = 90.0
    wire_ns: float = 0.0
    nic_gap_ns: float = 0.0
    gbps: float | None = None
    tick_ns: float | None = None
    message_step_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SimulatedNetwork:
    """A network as arrays.

    A host is an adapter's port with a LID and a link. Hosts are in the order of the fabric's ports. Switches have
    `IndexedNetwork`'s indices.

    Attributes:
        subnet: the fabric, with forwarding tables.
        hardware: assumed properties of the hardware.
        tick_ns: duration of a tick, ns.
        host_port: int32 [host], index of the fabric's port.
        host_end: int32 [host], link direction on which the host sends.
        host_leaf: uint32 [host], index of the host's leaf switch.
        end_to: uint32 [link direction], receiving node: the index of a host, or the number of hosts + the index of a
            switch.
        end_byte_ticks: uint64 [link direction], ticks to transmit a byte, times 2**32, rounded down.
        end_delay: uint32 [link direction], ticks from a packet's last bit until the next node can forward it.
        end_gap: uint32 [link direction], idle ticks after each packet; 0 if a switch sends.
        port_end: int32 [switch, port], link direction on which the port sends; `NONE` without a link.
        egress: uint8 [switch, host], port on the route to the host; `UNREACHABLE` without a route.
    """

    subnet: Subnet
    hardware: Hardware
    tick_ns: float
    host_port: npt.NDArray[np.int32]
    host_end: npt.NDArray[np.int32]
    host_leaf: npt.NDArray[np.uint32]
    end_to: npt.NDArray[np.uint32]
    end_byte_ticks: npt.NDArray[np.uint64]
    end_delay: npt.NDArray[np.uint32]
    end_gap: npt.NDArray[np.uint32]
    port_end: npt.NDArray[np.int32]
    egress: npt.NDArray[np.uint8]

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.host_port)

    @property
    def switches(self) -> int:
        """Number of switches."""
        return len(self.port_end)

    @property
    def host_names(self) -> list[str]:
        """Node descriptions of the hosts; they come from dumps and may contain any characters."""
        fabric = self.subnet.fabric
        return [fabric.node_name[fabric.port_node[port]] for port in self.host_port]

    def ticks(self, nanoseconds: float) -> int:
        """Return a time in ticks, rounded."""
        return round(nanoseconds / self.tick_ns)

    def to_ns(self, ticks: float) -> float:
        """Return a time in nanoseconds."""
        return ticks * self.tick_ns


def index_network(subnet: Subnet, hardware: Hardware) -> SimulatedNetwork:
    """Convert a fabric into arrays.

    Raises:
        InconsistentError: a link's speed is unknown, no host has a link to a switch, or a delay or a packet takes too
            many ticks.
    """
    fabric = subnet.fabric
    network = IndexedNetwork.index(fabric, subnet.tables)
    gbps = np.repeat(fabric.link_gbps if hardware.gbps is None else np.full(fabric.links, hardware.gbps), 2)
    if unknown := int((~(gbps > 0)).sum() // 2):
        raise InconsistentError(f"{fabric.name}: the speed of {unknown} links is unknown")
    ports = np.arange(len(fabric.port_node))
    end = network.end_at[fabric.port_node, fabric.port_number]
    is_machine = find_adapters(fabric)
    is_host = is_machine[fabric.port_node] & (end != NONE) & (fabric.port_lid > 0)
    leaf = network.switch_of[network.next_node[end]]
    host_port = ports[is_host & (leaf != NONE)]
    if not len(host_port):
        raise InconsistentError(f"{fabric.name}: no host has a link to a switch")
    host_of = np.full(len(ports) + 1, NONE, np.int64)
    host_of[host_port] = np.arange(len(host_port))
    hosts = len(host_port)
    ends = 2 * fabric.links
    switch = network.switch_of[network.next_node[:ends]].astype(np.int64)
    host = host_of[network.arrives_at[:ends]]
    # A port without a LID: no route uses the link direction to this port, so its receiver can have any value.
    end_to = np.where(switch != NONE, hosts + switch, np.maximum(host, 0))
    tick_ns = hardware.tick_ns or _BITS_A_TICK / float(gbps.max())
    # Round down: the engine rounds the ticks of a packet up. A value rounded up here could add a tick to a packet that
    # needs a whole number of ticks.
    byte_ticks = np.floor(8 / gbps / tick_ns * 2**32).astype(np.uint64)
    delay = np.where(switch != NONE, hardware.switch_ns, 0.0) + hardware.wire_ns
    longest = max(float(delay.max()), hardware.nic_gap_ns)
    if longest / tick_ns >= 2**32 or hardware.packet_bytes * float(byte_ticks.max()) >= 2**63:
        raise InconsistentError(
            f"{fabric.name}: a delay or a packet takes too many ticks; a tick is {tick_ns:g} ns, the time of 64 bits "
            "on the fastest link"
        )
    gap = np.zeros(ends, np.uint32)
    gap[end[host_port]] = round(hardware.nic_gap_ns / tick_ns)
    tables = subnet.tables.port
    lid = fabric.port_lid[host_port]
    known = (network.row != NONE)[:, None] & (lid < tables.shape[1])[None, :]
    column = np.minimum(lid, tables.shape[1] - 1)
    egress = np.where(known, tables[np.maximum(network.row, 0)[:, None], column], UNREACHABLE)
    return SimulatedNetwork(
        subnet=subnet,
        hardware=hardware,
        tick_ns=tick_ns,
        host_port=host_port.astype(np.int32),
        host_end=end[host_port].astype(np.int32),
        host_leaf=leaf[host_port].astype(np.uint32),
        end_to=end_to.astype(np.uint32),
        end_byte_ticks=byte_ticks,
        end_delay=np.maximum(np.rint(delay / tick_ns), 1).astype(np.uint32),
        end_gap=gap,
        port_end=np.ascontiguousarray(network.end_at[network.switch_node]),
        egress=np.ascontiguousarray(egress, np.uint8),
    )


def find_minimal_ports(network: SimulatedNetwork) -> npt.NDArray[np.uint64]:
    """Find the ports of each switch that are on shortest routes to each leaf switch.

    Returns:
        uint64 [switch, switch, word], one bit per port, 64 ports per word. All bits are 0 if the second switch is no
        leaf.
    """
    ends, switches, hosts = network.port_end, network.switches, network.hosts
    leads_to = np.where(ends != NONE, network.end_to[ends].astype(np.int64) - hosts, NONE)
    at, port = np.nonzero(leads_to >= 0)
    to = leads_to[at, port]
    leaves = np.unique(network.host_leaf)
    hops = count_hops(switches, np.column_stack([at, to]), leaves).T
    # [leaf, switch], hops from the switch to the leaf; nan without a path, so that the comparison below is False.
    distance = np.where(hops < 0, np.nan, hops)
    minimal = np.zeros((switches, switches, -(-ends.shape[1] // 64)), np.uint64)
    for here, by, there in zip(at.tolist(), port.tolist(), to.tolist(), strict=True):
        nearer = distance[:, here] == distance[:, there] + 1
        minimal[here, leaves[nearer], by // 64] |= np.uint64(1 << by % 64)
    return minimal
