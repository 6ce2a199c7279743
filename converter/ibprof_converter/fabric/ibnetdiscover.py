# SPDX-License-Identifier: Apache-2.0
r"""Parse the output of `ibnetdiscover`: a stanza per node, each link from both ends, all numbers but GUIDs decimal.

    sysimgguid=0x2c90200f00010
    switchguid=0x2c90200f00010(2c90200f00010)
    Switch	8 "S-0002c90200f00010"		# "leaf 1" base port 0 lid 4 lmc 0
    [1]	"H-0002c90300fa0000"[1](2c90300fa0001) 		# "q01 HCA-1" lid 1 4xQDR
    (blank line)
    caguid=0x2c90300fa0000
    Ca	1 "H-0002c90300fa0000"		# "q01 HCA-1"
    [1](2c90300fa0001) 	"S-0002c90200f00010"[1]		# lid 1 lmc 0 "leaf 1" lid 4 4xQDR

A description may contain an unescaped quote, so it ends where the fixed words after it begin. The state of a link is
not given. A link with an end that has no LID yet carries nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.dump_files import decode_name
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import NOT_GIVEN, Listing
from ibprof_converter.fabric.listing_rows import PORTS_NOT_GIVEN, End, LinkRow, list_rows
from ibprof_converter.fabric.rates import data_rate_gbps, speed_of_name

_KINDS = {b"S": NodeKind.SWITCH, b"H": NodeKind.CA, b"R": NodeKind.ROUTER}
_TEXT = rb'"(.{0,256})"'
_RATE = rb"([0-9]{1,2})x([A-Z]{3}[0-9]{0,2})"

_HEAD = re.compile(
    rb'(?:Switch|Ca|Rt)\s+([0-9]{1,3}) "([SHR])-([0-9a-f]{1,16})"\s+# ' + _TEXT
    # Only a switch has this part, for its port 0.
    + rb"(?: (?:base|enhanced) port 0 lid ([0-9]{1,5}) lmc ([0-7]))?\s*"
)  # fmt: skip
_PORT = re.compile(
    # Own port; that of a CA with its GUID. `[ext 3]` is the number on the outside of a chassis.
    rb"\[([0-9]{1,3})\](?:\[ext [0-9]+\])?(?:\(([0-9a-f]{1,16})\))?\s+"
    # The port at the other end.
    rb'"([SHR])-([0-9a-f]{1,16})"\[([0-9]{1,3})\](?:\[ext [0-9]+\])?(?:\(([0-9a-f]{1,16})\))?\s+# '
    # LID and LMC of a CA's own port; name and LID of the other end.
    rb"(?:lid ([0-9]{1,5}) lmc ([0-7]) )?" + _TEXT + rb" lid ([0-9]{1,5}) " + _RATE + rb"\b.*"
)
_SYSTEM = re.compile(rb"sysimgguid=0x([0-9a-f]{1,16})\s*")
_GUIDS = re.compile(rb"(?:switchguid|caguid|rtguid)=0x([0-9a-f]{1,16})(?:\(([0-9a-f]{1,16})\))?\s*")
_OTHER = re.compile(rb"(?:vendid|devid)=.*|#.*|(?:Non-)?Chassis\b.*|(?:Spine|Line|Blade)\b.*|\s*")
_SIGNS = re.compile(rb"^(?:switchguid|caguid|rtguid)=0x", re.MULTILINE)

_STANZA = 'Switch, Ca or Rt, number of ports, "S-GUID", # "description"'
_PORT_FORM = '[port] "S-GUID"[port] # "description" lid N WIDTHxSPEED'


def looks_like_ibnetdiscover(head: bytes) -> bool:
    """Return whether a file's beginning has the stanzas of `ibnetdiscover`."""
    return _SIGNS.search(head) is not None


def parse_ibnetdiscover(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the stanzas.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: a line is invalid.
    """
    nodes = _read_nodes(path, data)
    return list_rows(path, list(_find_rows(nodes)))


@dataclass(slots=True)
class _Port:
    """A line of a stanza."""

    line: int
    number: int
    guid: int
    lid: int
    lmc: int
    peer_kind: NodeKind
    peer_node: int
    peer_port: int
    peer_guid: int
    peer_name: str
    peer_lid: int
    lanes: int
    speed: str


@dataclass(slots=True)
class _Node:
    """A stanza; LID and LMC are those of a switch's port 0."""

    kind: NodeKind
    ports: int
    system_guid: int
    node_guid: int
    port_guid: int
    name: str
    lid: int
    lmc: int
    links: dict[int, _Port] = field(default_factory=dict)


def _read_nodes(path: str | PathLike[str], data: bytes) -> dict[int, _Node]:
    nodes: dict[int, _Node] = {}
    node: _Node | None = None
    system_guid = port_guid = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.startswith(b"["):
            port = _read_port(path, number, line, node)
            if node is None or port.number in node.links:
                what = "the first line of a stanza" if node is None else "each port once"
                raise InputError(path, number, what, quote_found(line))
            node.links[port.number] = port
        elif match := _SYSTEM.fullmatch(line):
            system_guid, node = int(match[1], 16), None
        elif match := _GUIDS.fullmatch(line):
            port_guid, node = int(match[2] or b"0", 16), None
        elif match := _HEAD.fullmatch(line):
            ports, kind, guid, name, lid, lmc = match.groups()
            node = _Node(
                kind=_KINDS[kind],
                ports=min(int(ports), PORTS_NOT_GIVEN),
                system_guid=system_guid,
                node_guid=int(guid, 16),
                port_guid=port_guid,
                name=decode_name(name),
                lid=int(lid or 0),
                lmc=int(lmc) if lmc else NOT_GIVEN,
            )
            if node.node_guid in nodes:
                raise InputError(path, number, "one stanza a node", f"a second one of {node.node_guid:#018x}")
            nodes[node.node_guid] = node
            system_guid = port_guid = 0
        elif not _OTHER.fullmatch(line):
            expected = _STANZA if line[:1] in b"SCR" else "a line of ibnetdiscover"
            raise InputError(path, number, expected, quote_found(line))
    return nodes


def _read_port(path: str | PathLike[str], number: int, line: bytes, node: _Node | None) -> _Port:
    match = _PORT.fullmatch(line)
    if match is None:
        raise InputError(path, number, _PORT_FORM, quote_found(line))
    own, guid, kind, peer, peer_port, peer_guid, lid, lmc, name, peer_lid, width, speed = match.groups()
    is_switch = node is not None and node.kind == NodeKind.SWITCH
    return _Port(
        line=number,
        number=int(own),
        guid=node.port_guid if node and is_switch else int(guid or b"0", 16),
        lid=node.lid if node and is_switch else int(lid or 0),
        lmc=node.lmc if node and is_switch else int(lmc) if lmc else NOT_GIVEN,
        peer_kind=_KINDS[kind],
        peer_node=int(peer, 16),
        peer_port=int(peer_port),
        peer_guid=int(peer_guid or b"0", 16),
        peer_name=decode_name(name),
        peer_lid=int(peer_lid),
        lanes=int(width),
        speed=speed.decode(),
    )


def _find_rows(nodes: dict[int, _Node]) -> Iterator[LinkRow]:
    """Yield each line with what is known of both ends; the other end is best described by its own stanza."""
    for node in nodes.values():
        for port in node.links.values():
            near = _describe(node, port)
            far = _describe_peer(nodes.get(port.peer_node), port)
            yield LinkRow(
                line=port.line,
                a=near,
                b=far,
                active=near.lid > 0 and far.lid > 0,
                lanes=port.lanes,
                gbps=data_rate_gbps(port.lanes, speed_of_name(port.speed)),
            )


def _describe(node: _Node, port: _Port) -> End:
    return End(
        node.kind, node.ports, node.system_guid, node.node_guid, port.guid, node.name, port.lid, port.number, port.lmc
    )


def _describe_peer(peer: _Node | None, port: _Port) -> End:
    """Describe the other end of a line: by its own line, else by its stanza, else by this line."""
    if peer is not None and port.peer_port in peer.links:
        return _describe(peer, peer.links[port.peer_port])
    if peer is not None and peer.kind == NodeKind.SWITCH:
        guid, lid, lmc = peer.port_guid, peer.lid, peer.lmc
    else:
        guid, lid, lmc = port.peer_guid or port.peer_node, port.peer_lid, NOT_GIVEN
    if peer is None:
        return End(port.peer_kind, PORTS_NOT_GIVEN, 0, port.peer_node, guid, port.peer_name, lid, port.peer_port, lmc)
    return End(peer.kind, peer.ports, peer.system_guid, peer.node_guid, guid, peer.name, lid, port.peer_port, lmc)
