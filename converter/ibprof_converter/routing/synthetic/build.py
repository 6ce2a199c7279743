# SPDX-License-Identifier: Apache-2.0
"""Build a Fabric and its tables from switches, hosts and cables, for all generators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ibprof.errors import UsageError
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.listing import LAST_UNICAST_LID
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

SWITCH_GUID = 0x0002_C902_0000_0000
HOST_GUID = 0x0002_C903_0000_0000
_GUID_STEP = 16
_RAIL_STEP = 1 << 28
_PART_STEP = 1 << 24

LARGEST_PORT = 254

Cables = npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class SyntheticSubnet:
    """A synthetic fabric and its tables."""

    fabric: Fabric
    tables: ForwardingTables


@dataclass(frozen=True, slots=True)
class SyntheticPlan:
    """Description of a synthetic subnet, from which `build` makes a fabric with tables.

    Attributes:
        name: the fabric's name, as the user wrote it.
        host_switch, host_port: int [host], switch of each host, and the switch port to which the host is cabled.
        cable: int [cable, 4], switch, port, switch, port.
        egress: uint8 [switch, host], egress port of a switch for packets to a host.
        adapter_name: description of each adapter; empty for `hostN HCA-R`, where R is the rail's index + 1.
        part: index of the subnet in its fabric.
        plane, plane_of: index of the plane; name that all planes with the same adapters share.
        first_adapter: index of the first adapter among the adapters of the whole fabric.
    """

    name: str
    switch_name: list[str]
    host_switch: npt.NDArray[np.integer]
    host_port: npt.NDArray[np.integer]
    cable: Cables
    egress: npt.NDArray[np.uint8]
    adapter_name: Sequence[str] = ()
    part: int = 0
    plane: int = 0
    plane_of: str = ""
    first_adapter: int = 0


def build(plan: SyntheticPlan, gbps: float | npt.NDArray[np.float64], rail: int) -> SyntheticSubnet:
    """Return the fabric and the tables of a plan.

    Hosts have LIDs 1, 2, ... in order. Switches have the next LIDs, until there are no more unicast LIDs. The table of
    a switch has routes to hosts and to the switch itself only. All rails have the same hosts, but different GUIDs.

    Args:
        gbps: data rate of all links, in Gbit/s; or float64 [cable + host], the rates of all cables, then of all host
            links.
        rail: index of the subnet.

    Raises:
        UsageError: there are more hosts than LIDs, or a switch has too many ports.
    """
    switches, hosts = len(plan.switch_name), len(plan.host_switch)
    if hosts > LAST_UNICAST_LID:
        raise UsageError(f"{plan.name}: expected at most {LAST_UNICAST_LID} hosts, one for each LID, found {hosts}")
    host_nodes = switches + np.arange(hosts)
    node = np.concatenate([plan.cable[:, [0, 2]], np.stack([plan.host_switch, host_nodes], axis=1)])
    port = np.concatenate([plan.cable[:, [1, 3]], np.stack([plan.host_port, np.full(hosts, 1 + plan.plane)], axis=1)])
    if port.max(initial=0) > LARGEST_PORT:
        raise UsageError(f"{plan.name}: a switch needs {port.max()} ports; the limit is {LARGEST_PORT}")
    swapped = (node[:, 0] > node[:, 1]) | ((node[:, 0] == node[:, 1]) & (port[:, 0] > port[:, 1]))
    node[swapped], port[swapped] = node[swapped, ::-1], port[swapped, ::-1]
    order = np.lexsort((port[:, 0], node[:, 0]))
    first_switch = SWITCH_GUID + rail * _RAIL_STEP + plan.part * _PART_STEP
    first_host = HOST_GUID + rail * _RAIL_STEP + plan.first_adapter * _GUID_STEP
    guid = np.concatenate(
        [
            first_switch + _GUID_STEP * np.arange(switches, dtype=np.uint64),
            first_host + _GUID_STEP * np.arange(hosts, dtype=np.uint64),
        ]
    ).astype(np.uint64)
    lid = np.concatenate([hosts + 1 + plan.plane * switches + np.arange(switches), 1 + np.arange(hosts)])
    addressed = np.flatnonzero(lid <= LAST_UNICAST_LID)
    is_switch = np.arange(switches + hosts) < switches
    digits = len(str(hosts))
    fabric = Fabric(
        name=plan.name,
        node_guid=guid,
        node_kind=np.where(is_switch, NodeKind.SWITCH, NodeKind.CA).astype(np.uint8),
        node_name=(
            *plan.switch_name,
            *(plan.adapter_name or (f"host{host + 1:0{digits}} HCA-{rail + 1}" for host in range(hosts))),
        ),
        system_guid=guid,
        link_node=node[order].astype(np.int32),
        link_port=port[order].astype(np.int32),
        link_gbps=np.broadcast_to(np.asarray(gbps, np.float64), len(order))[order],
        port_node=addressed.astype(np.int32),
        port_number=np.where(is_switch, 0, 1 + plan.plane)[addressed].astype(np.int32),
        port_guid=np.where(is_switch, guid, guid + np.uint64(1 + plan.plane))[addressed],
        port_lid=lid[addressed].astype(np.int32),
        port_lmc=np.zeros(len(addressed), np.int32),
        lmc_known=True,
        plane_of=plan.plane_of,
    )
    table = np.full((switches, min(int(lid.max()), LAST_UNICAST_LID) + 1), UNREACHABLE, np.uint8)
    table[:, 1 : hosts + 1] = plan.egress
    own = lid[:switches]
    known = own < table.shape[1]
    table[np.flatnonzero(known), own[known]] = 0
    return SyntheticSubnet(fabric, ForwardingTables(plan.name, guid[:switches], table))
