# SPDX-License-Identifier: Apache-2.0
"""A fabric and its forwarding tables in ibdiagnet's form: `.lst` and `.fdbs`, which every command here reads."""

from __future__ import annotations

from typing import TextIO

import numpy as np

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.rates import data_rate_gbps
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

_SPEEDS = {8: "2.5", 16: "5", 32: "10", 55: "14", 100: "25", 200: "50", 400: "100", 800: "200"}
"""Data rate of four lanes in Gbit/s -> speed of one lane as tools print it."""

_LANES = 4
_ROUNDING = 1e-6
_NOT_KNOWN = "0"
_DESCRIPTION = 64


def write_lst(file: TextIO, fabric: Fabric, remark: str) -> None:
    """Write links, each from one end only.

    Args:
        file: the output file.
        fabric: the fabric, with links of four lanes. If no such link has a rate, the speed is written as 0 (unknown to
            readers), followed by the rate.
        remark: a line on the fabric's source.
    """
    file.write(f"# {_clean(remark, 1000)}\n")
    ports = np.bincount(fabric.link_node.ravel(), minlength=fabric.nodes)
    # Ports without a cable may precede others.
    np.maximum.at(ports, fabric.link_node, fabric.link_port)
    lid = np.zeros(fabric.nodes, np.int64)
    lid[fabric.port_node] = fabric.port_lid
    port_guid = fabric.node_guid.copy()
    port_guid[fabric.port_node] = fabric.port_guid
    ends = [
        f"{{ {'SW' if fabric.node_kind[node] == NodeKind.SWITCH else 'CA'} Ports:{ports[node]:02x} "
        f"SystemGUID:{int(fabric.system_guid[node]):016x} NodeGUID:{int(fabric.node_guid[node]):016x} "
        f"PortGUID:{int(port_guid[node]):016x} VenID:000002C9 DevID:00000000 Rev:00000000 "
        f"{{{_clean(fabric.node_name[node], _DESCRIPTION)}}} LID:{lid[node]:04x} PN:"
        for node in range(fabric.nodes)
    ]
    for (a, b), (a_port, b_port), gbps in zip(
        fabric.link_node.tolist(), fabric.link_port.tolist(), fabric.link_gbps.tolist(), strict=True
    ):
        file.write(f"{ends[a]}{a_port:02x} }} {ends[b]}{b_port:02x} }} PHY=4x LOG=ACT SPD={_show_speed(gbps)}\n")


def _show_speed(gbps: float) -> str:
    if np.isnan(gbps):
        return _NOT_KNOWN
    speed = _SPEEDS.get(round(gbps), _NOT_KNOWN)
    if speed != _NOT_KNOWN and abs(data_rate_gbps(_LANES, speed) - gbps) < _ROUNDING:
        return speed
    return f"{_NOT_KNOWN} GBPS={gbps:.9f}".rstrip("0").rstrip(".")


def write_fdbs(file: TextIO, tables: ForwardingTables) -> None:
    """Write forwarding tables, one stanza per switch."""
    for guid, row in zip(tables.switch_guid.tolist(), tables.port, strict=True):
        file.write(f"dump_ucast_routes: Switch 0x{guid:016x}\nLID    : Port : Hops : Optimal\n")
        lids = np.flatnonzero(row != UNREACHABLE)
        ports = row[lids].tolist()
        file.writelines(f"0x{lid:04x} : {port:03d}  :\n" for lid, port in zip(lids.tolist(), ports, strict=True))


def _clean(text: str, most: int) -> str:
    """Return text that fits in a line and in the place of a description, without unprintable characters."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[:most]
