# SPDX-License-Identifier: Apache-2.0
"""A fabric with forwarding tables in the packet engine's form: numbered hosts and switches, times in ticks."""

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
"""Default bits per tick: a tick is the time of 8 bytes on the fastest link."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Properties of a network that dumps of a fabric do not state.

    Attributes:
        packet_bytes: largest packet size.
        lane_bytes: buffer of each virtual lane at each link direction, bytes.
        switch_ns: delay of a switch, from a packet's last bit to the start on the next link.
        wire_ns: delay of a link's wire.
        nic_gap_ns: pause of a host's adapter between two packets.
        gbps: speed of all links, Gb/s; None for each link's speed in the fabric.
        tick_ns: duration of a tick; None for the time of 8 bytes on the fastest link.
    """

    packet_bytes: int = 4096
    lane_bytes: int = 65536
    switch_ns: float = 90.0
    wire_ns: float = 0.0
    nic_gap_ns: float = 0.0
    gbps: float | None = None
    tick_ns: float | None = None


@dataclass(frozen=True, slots=True)
class SimulatedNetwork:
    """A numbered network.

    Hosts are ports of machines with a LID and a link, in the order of the fabric's ports. Switches are as in `Network`.

    Attributes:
        subnet: fabric and tables.
        hardware: assumed properties.
        tick_ns: duration of a tick.
        host_port: int32 [host], index into the fabric's ports.
        host_end: int32 [host], the host's outgoing link direction.
        host_leaf: uint32 [host], switch at the host's link.
        end_to: uint32 [link direction], destination: the number of a host, or the number of hosts + the number of a
            switch.
        end_byte_ticks: uint64 [link direction], ticks per byte times 2**32, rounded down.
        end_delay: uint32 [link direction], ticks.
        end_gap: uint32 [link direction], ticks between two packets; 0 for a sending switch.
        port_end: int32 [switch, port], the port's outgoing link direction.
        egress: uint8 [switch, host], port towards the host; `UNREACHABLE` without a route.
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
        """Node descriptions of the hosts: untrusted text."""
        fabric = self.subnet.fabric
        return [fabric.node_name[fabric.port_node[port]] for port in self.host_port]

    def ticks(self, nanoseconds: float) -> int:
        """Return a time in ticks, rounded."""
        return round(nanoseconds / self.tick_ns)

    def to_ns(self, ticks: float) -> float:
        """Return a time in nanoseconds."""
        return ticks * self.tick_ns


def index_network(subnet: Subnet, hardware: Hardware) -> SimulatedNetwork:
    """Number a fabric's hosts and switches.

    Raises:
        InconsistentError: a link's speed is neither known nor given, there are no hosts, or the slowest and the fastest
            link differ too much.
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
    # A link direction to a port without a LID is never used: any destination will do.
    end_to = np.where(switch != NONE, hosts + switch, np.maximum(host, 0))
    tick_ns = hardware.tick_ns or _BITS_A_TICK / float(gbps.max())
    # Round down: a packet's ticks are rounded up, and whole ticks must not become one more.
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
    """Find the ports of each switch that lie on shortest routes to each switch.

    Returns:
        uint64 [switch, switch, word], one bit per port, 64 ports per word.
    """
    ends, switches, hosts = network.port_end, network.switches, network.hosts
    leads_to = np.where(ends != NONE, network.end_to[ends].astype(np.int64) - hosts, NONE)
    at, port = np.nonzero(leads_to >= 0)
    to = leads_to[at, port]
    leaves = np.unique(network.host_leaf)
    hops = count_hops(switches, np.column_stack([at, to]), leaves).T
    # [leaf, switch]: hops from the switch to the leaf. nan, for no path, equals no other distance.
    distance = np.where(hops < 0, np.nan, hops)
    minimal = np.zeros((switches, switches, -(-ends.shape[1] // 64)), np.uint64)
    for here, by, there in zip(at.tolist(), port.tolist(), to.tolist(), strict=True):
        nearer = distance[:, here] == distance[:, there] + 1
        minimal[here, leaves[nearer], by // 64] |= np.uint64(1 << by % 64)
    return minimal
