# SPDX-License-Identifier: Apache-2.0
"""Model of one subnet (rail): nodes, links and LIDs, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import kernels_headers
from ibprof_converter.fabric.damage import Damage

LIDS = kernels_headers().constants["IBP_LIDS"]
"""Number of possible LIDs: a LID has 16 bits. The last unicast LID is 0xBFFF."""

NO_NODE = -1


class NodeKind(IntEnum):
    """The kind of a node, in InfiniBand's terms."""

    _generate_next_value_ = kernels_headers().numbers_of("ibp_node_kind", "IBP_NODE_")
    CA = auto()
    SWITCH = auto()
    ROUTER = auto()


class Origin(Enum):
    """Source of a fabric's list of links, which decides if switches have forwarding tables."""

    SUBNET = "a subnet"
    """An InfiniBand subnet: switches have forwarding tables."""
    ETHERNET = "an Ethernet network"
    """LLDP neighbours in an Ethernet network: switches have no forwarding tables."""
    NAMES = "a scheduler's topology"
    """Names of switches and hosts: without forwarding tables; cables and rates are assumed."""


@dataclass(frozen=True, slots=True)
class InterfaceChoice:
    """The choice among the adapters of hosts on several networks.

    Attributes:
        choice: `compute`, `storage`, or names that the user typed.
        is_default: true if the user did not choose.
        by: the evidence: `name`, `partition`, `speed`, `wiring`, or several of these joined by `and`.
        adapters, left_out: numbers of chosen and of left-out adapters.
        left_out_names: text with the left-out adapters' names (without host names), and the number of hosts without
            chosen adapters.
    """

    choice: str
    is_default: bool
    by: str
    adapters: int
    left_out: int
    left_out_names: str

    @property
    def text(self) -> str:
        """The choice in words."""
        chosen = f"{self.choice}, the default" if self.is_default else self.choice
        total = self.adapters + self.left_out
        return f"{chosen}: {self.adapters} of {total} adapters, chosen by {self.by}; left out: {self.left_out_names}"


@dataclass(frozen=True, slots=True)
class Partitions:
    """Partitions of a subnet.

    Attributes:
        names: P_Key without the bit that marks full members -> name of the partition. If the P_Key is unknown, the key
            is a negative number.
        of_node: node -> P_Key -> true if any port of the node is a full member, false if all are limited members.
    """

    names: Mapping[int, str]
    of_node: Mapping[int, Mapping[int, bool]]


@dataclass(frozen=True, slots=True, eq=False)
class Fabric:
    """One subnet: nodes sorted by NODE GUID, links sorted by (node, port) of the first end.

    Attributes:
        name: name of the fabric's file, for messages.
        node_guid: uint64 [node], ascending.
        node_kind: uint8 [node], values of `NodeKind`.
        node_name: NodeDescription of each node: untrusted text.
        system_guid: uint64 [node], equal on all chips of one chassis; 0 if unknown.
        link_node: int32 [link, 2], the nodes at the two ends.
        link_port: int32 [link, 2], the port numbers at the two ends.
        link_gbps: float64 [link], data rate of one direction in Gb/s (width x lane speed x coding); nan where unknown.
        port_node: int32 [p], node of each port that has a LID (port 0 of a switch).
        port_number: int32 [p], port number in the node.
        port_guid: uint64 [p], PORT GUID.
        port_lid: int32 [p], base LID.
        port_lmc: int32 [p], LMC. The port has the LIDs lid .. lid + 2**lmc - 1.
        warnings: sentences on anomalies of the file.
        link_lanes: uint8 [link], width, 0 where unknown.
        link_half: bool [link], true if the file lists this link from one end only, although its format lists links from
            both ends.
        inactive: descriptions of inactive links, which are left out.
        link_unequal: bool [link], true if the two ends have different widths or speeds; `link_gbps` is the lower rate.
        unequal: descriptions of these links, with both rates.
        damage: unused lines of the file, with the loss that they cause.
        origin: the kind of the fabric's list of links.
        left_out: description and reason of each adapter that is left out.
        synthetic_lids: true if no port had a LID, so all LIDs of the fabric are synthetic.
        plane_of: the file with all planes, if this fabric is a plane; else empty.
        assumed_speeds: the reason why speeds are assumed; empty if the file has speeds.
        node_ports: uint8 [node], number of ports of each switch or adapter, 0 if unknown.
        lmc_known: true if the LMCs are known; if not, all LMCs are 0 until `infer_lmc` has read the tables.
        is_left_out: bool [node], true for adapters that `interfaces` leaves out.
        interfaces: the choice of interfaces; None if all adapters are used.
        partitions: partitions of the ports; None if unknown.
        lid_node: int32 [LIDS], the node of each LID, `NO_NODE` for an unused LID; computed from the ports.
        lid_port: int32 [LIDS], index into the ports, -1 for an unused LID; computed from the ports.
    """

    name: str
    node_guid: npt.NDArray[np.uint64]
    node_kind: npt.NDArray[np.uint8]
    node_name: tuple[str, ...]
    system_guid: npt.NDArray[np.uint64]
    link_node: npt.NDArray[np.int32]
    link_port: npt.NDArray[np.int32]
    link_gbps: npt.NDArray[np.float64]
    port_node: npt.NDArray[np.int32]
    port_number: npt.NDArray[np.int32]
    port_guid: npt.NDArray[np.uint64]
    port_lid: npt.NDArray[np.int32]
    port_lmc: npt.NDArray[np.int32]
    warnings: tuple[str, ...] = ()
    link_lanes: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    link_half: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    inactive: tuple[str, ...] = ()
    lmc_known: bool = False
    damage: tuple[Damage, ...] = ()
    link_unequal: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    unequal: tuple[str, ...] = ()
    origin: Origin = Origin.SUBNET
    left_out: tuple[tuple[str, str], ...] = ()
    synthetic_lids: bool = False
    plane_of: str = ""
    assumed_speeds: str = ""
    node_ports: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    is_left_out: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    interfaces: InterfaceChoice | None = None
    partitions: Partitions | None = None
    lid_node: npt.NDArray[np.int32] = field(init=False, repr=False)
    lid_port: npt.NDArray[np.int32] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, dtype in (("link_lanes", np.uint8), ("link_half", np.bool_), ("link_unequal", np.bool_)):
            if len(getattr(self, name)) != len(self.link_node):
                object.__setattr__(self, name, np.zeros(len(self.link_node), dtype))
        if len(self.node_ports) != len(self.node_guid):
            object.__setattr__(self, "node_ports", np.zeros(len(self.node_guid), np.uint8))
        if len(self.is_left_out) != len(self.node_guid):
            object.__setattr__(self, "is_left_out", np.zeros(len(self.node_guid), np.bool_))
        lid_port = np.full(LIDS, -1, np.int32)
        block = 1 << self.port_lmc
        lid = np.repeat(self.port_lid - np.cumsum(block) + block, block) + np.arange(block.sum())
        lid_port[lid[lid < LIDS]] = np.repeat(np.arange(len(block)), block)[lid < LIDS]
        lid_port[0] = -1
        lid_node = np.where(lid_port >= 0, self.port_node[lid_port] if len(self.port_node) else NO_NODE, NO_NODE)
        object.__setattr__(self, "lid_port", lid_port)
        object.__setattr__(self, "lid_node", lid_node.astype(np.int32))

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_guid)

    @property
    def links(self) -> int:
        """Number of links."""
        return len(self.link_node)


def switch_guids(fabric: Fabric) -> npt.NDArray[np.uint64]:
    """Return the NODE GUIDs of the switches: uint64 [switch]."""
    guids: npt.NDArray[np.uint64] = fabric.node_guid[fabric.node_kind == NodeKind.SWITCH]
    return guids
