# SPDX-License-Identifier: Apache-2.0
r"""Parse the output of `ibnetdiscover`: a stanza per node, so each link is in two stanzas. GUIDs are hexadecimal.

    sysimgguid=0x2c90200f00010
    switchguid=0x2c90200f00010(2c90200f00010)
    Switch	8 "S-0002c90200f00010"		# "leaf 1" base port 0 lid 4 lmc 0
    [1]	"H-0002c90300fa0000"[1](2c90300fa0001) 		# "q01 HCA-1" lid 1 4xQDR
    (blank line)
    caguid=0x2c90300fa0000
    Ca	1 "H-0002c90300fa0000"		# "q01 HCA-1"
    [1](2c90300fa0001) 	"S-0002c90200f00010"[1]		# lid 1 lmc 0 "leaf 1" lid 4 4xQDR

A description may contain unescaped quotes; the fixed words after the description show its end. The format does not
state if a link is active. A link carries no data until both its ends have LIDs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.dump_files import decode_name
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import NOT_GIVEN, PORTS_NOT_GIVEN, End, LinkRow, Listing, list_rows
from ibprof_converter.fabric.rates import data_rate_gbps, speed_of_name

_KINDS = {b"S": NodeKind.SWITCH, b"H": NodeKind.CA, b"R": NodeKind.ROUTER}
_TEXT = rb'"(.{0,256})"'
_RATE = rb"([0-9]{1,2})x([A-Z?]{3}[0-9]{0,2})(?![A-Za-z0-9])"
# A copy from a terminal has no tabs, and editors replace a tab by any number of blanks.
_GAP = rb"[ \t]{0,99}"
# The LID may be missing: the port is not configured yet.
_LID = rb"lid(?: {1,9}([0-9]{1,5}))? {1,9}"

_HEAD = re.compile(
    _GAP + rb"(?:Switch|Ca|Rt)" + _GAP + rb'([0-9]{1,3})' + _GAP + rb'"([SHR])-([0-9a-f]{1,16})"' + _GAP + rb"#" + _GAP
    + _TEXT
    # Only a switch's line has this part. It describes port 0.
    + rb"(?: (?:base|enhanced) port 0 " + _LID + rb"lmc ([0-7]))?\s*"
)  # fmt: skip
_PORT = re.compile(
    # The node's own port; an adapter's PORT GUID follows. `[ext 3]` is the printed label; ibdiagnet writes `(3)`.
    _GAP + rb"\[([0-9]{1,3})\](?:\[ext [0-9]+\])?(?:\(([0-9a-f]{1,16})\))?" + _GAP
    # The port at the other end.
    + rb'"([SHR])-([0-9a-f]{1,16})"\[([0-9]{1,3})\](?:\[ext [0-9]+\])?(?:\(([0-9a-f]{1,16})\))?' + _GAP + rb"#" + _GAP
    # LID and LMC of an adapter's own port; description and LID of the other end.
    + rb"(?:" + _LID + rb"lmc ([0-7])" + _GAP + rb")?" + _TEXT + rb" {1,9}" + _LID + _RATE + rb".*"
)  # fmt: skip
_SYSTEM = re.compile(_GAP + rb"sysimgguid=0x([0-9a-f]{1,16})\s*")
# `ibnetdiscover -g` adds, after `#`, the chassis and slot of a switch.
_GUIDS = re.compile(
    _GAP + rb"(?:switchguid|caguid|rtguid)=0x([0-9a-f]{1,16})(?:\(([0-9a-f]{1,16})\))?\s*(?:#\s*(.{0,200}?))?\s*"
)
_OTHER = re.compile(_GAP + rb"(?:(?:vendid|devid)=.*|#.*|(?:Non-)?Chassis.*|(?:Spine|Line|Blade)\b.*|\s*)")
_CHASSIS = re.compile(_GAP + rb"Chassis ([0-9]{1,5})\b.*")
_IS_PORT = re.compile(_GAP + rb"\[[0-9]{1,3}\]")
_IS_HEAD = re.compile(_GAP + rb'(?:Switch|Ca|Rt)[^"\n]{0,200}"[SHR]-')
_IS_LINE = re.compile(
    _GAP + rb"(?:\[|#|\s*$|(?:Switch|Ca|Rt)" + _GAP + rb"[0-9]|[a-z]{1,10}(?:id|guid)=|(?:Non-)?Chassis)"
)
# The other end of a port. If a line has two other ends, a line break was lost: the first description contains the
# second line.
_PEER = re.compile(rb'"[SHR]-[0-9a-f]{1,16}"\[')
_PART = re.compile(rb'"[SHR]-[0-9a-f]{1,16}"|\blid [0-9]{1,5} [0-9]{1,2}x[A-Z]{3}')
_MOST_BREAKS = 2
_BEGINNINGS = (
    b"Switch",
    b"Ca\t",
    b"Rt\t",
    b"vendid=",
    b"devid=",
    b"sysimgguid=",
    b"switchguid=",
    b"caguid=",
    b"rtguid=",
)
_CUT_PORT = re.compile(rb"\[[0-9]{0,3}(?:\].*)?")
_SIGNS = re.compile(rb"^[ \t]{0,99}(?:switchguid|caguid|rtguid)=0x", re.MULTILINE)

_STANZA = 'Switch, Ca or Rt, number of ports, "S-GUID", # "description"'
_PORT_FORM = '[port] "S-GUID"[port] # "description" lid N WIDTHxSPEED'


def looks_like_ibnetdiscover(head: bytes) -> bool:
    """Return true if the beginning of a file has a stanza of `ibnetdiscover`."""
    return _SIGNS.search(head) is not None


def parse_ibnetdiscover(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the stanzas.

    Raises:
        InputError: no line lists a link. The error names the first line that is not used, if any.
    """
    log = DamageLog(path)
    nodes = _Reader(log).read(data)
    return replace(list_rows(list(_find_rows(nodes)), log), both_ends=True)


@dataclass(slots=True)
class _Port:
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
    """A node, read from one or more stanzas. For a switch, `lid` and `lmc` are port 0's."""

    kind: NodeKind
    ports: int
    system_guid: int
    node_guid: int
    port_guid: int
    name: str
    lid: int
    lmc: int
    slot: str
    links: dict[int, _Port] = field(default_factory=dict)
    text: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    stanzas: int = 0


@dataclass(slots=True)
class _Reader:
    """Reads stanzas line by line.

    Attributes:
        nodes: NODE GUID -> stanza.
        node: the current stanza; None before a line that begins with Switch, Ca or Rt.
        system_guid, guid, port_guid, slot: values from the lines before such a line.
        chassis: number of the chassis of the next nodes; empty without a chassis.
    """

    log: DamageLog
    nodes: dict[int, _Node] = field(default_factory=dict)
    node: _Node | None = None
    system_guid: int = 0
    guid: int | None = None
    port_guid: int = 0
    slot: str = ""
    chassis: str = ""

    def read(self, data: bytes) -> dict[int, _Node]:
        lines = data.split(b"\n")
        if _is_cut(lines[-1]):
            self.log.end_within(len(lines), lines.pop())
        for number, line in _join_broken(lines, self.log):
            if _IS_PORT.match(line):
                self._read_port(number, line)
            elif match := _SYSTEM.fullmatch(line):
                self.system_guid, self.guid, self.node = int(match[1], 16), None, None
            elif match := _GUIDS.fullmatch(line):
                self.guid, self.port_guid, self.node = int(match[1], 16), int(match[2] or b"0", 16), None
                place = decode_name(match[3] or b"")
                self.slot = f"chassis {self.chassis}, {place}" if self.chassis and place else place
            elif _IS_HEAD.match(line):
                self._read_head(number, line)
            elif match := _CHASSIS.fullmatch(line):
                self.chassis = decode_name(match[1])
            elif line.startswith(b"Non-Chassis"):
                self.chassis = ""
            elif _PART.search(line):
                error = InputError(self.log.path, number, _PORT_FORM, quote_found(line))
                self.log.lose(number, error, self.guid)
            elif not _OTHER.fullmatch(line):
                self.log.skip(number, line, "a line of ibnetdiscover")
        for node in self.nodes.values():
            _drop_contradictions(node, self.log)
            _compare_stanzas(node, self.log)
        _add_slots(self.nodes.values())
        return self.nodes

    def _read_head(self, number: int, line: bytes) -> None:
        match = _HEAD.fullmatch(line)
        if match is None:
            self.log.lose(number, InputError(self.log.path, number, _STANZA, quote_found(line)), self.guid)
            self.node = None
            return
        ports, kind, guid, name, lid, lmc = match.groups()
        node = _Node(
            kind=_KINDS[kind],
            ports=min(int(ports), PORTS_NOT_GIVEN),
            system_guid=self.system_guid,
            node_guid=int(guid, 16),
            port_guid=self.port_guid,
            name=decode_name(name),
            lid=int(lid or 0),
            lmc=int(lmc) if lmc else NOT_GIVEN,
            slot=self.slot,
        )
        # The file may contain two dumps: add the ports in a node's second stanza to its first stanza.
        self.node = self.nodes.setdefault(node.node_guid, node)
        self.node.stanzas += 1
        if self.node.name != node.name:
            self.log.miss(f"{self.node.name!r} and {node.name!r} have the same GUID", node.node_guid, [number])
        self.system_guid, self.guid, self.port_guid, self.slot = 0, node.node_guid, 0, ""

    def _read_port(self, number: int, line: bytes) -> None:
        port = _parse_port(number, line, self.node)
        if port is None or self.node is None:
            expected = _PORT_FORM if port is None else "the first line of a stanza"
            self.log.lose(number, InputError(self.log.path, number, expected, quote_found(line)), self.guid)
            return
        self.node.text.setdefault(port.number, []).append((number, line.strip()))
        self.node.links.setdefault(port.number, port)


def _join_broken(lines: list[bytes], log: DamageLog) -> Iterator[tuple[int, bytes]]:
    """Yield lines with their numbers; join broken lines of ports and switches.

    A terminal breaks lines at its width, even within a word. A mail breaks lines at a blank, and may drop the blank.
    """
    widths = {len(line.expandtabs()) for line, rest in pairwise(lines) if _find_form(line, rest)}
    blanks = (b"", b" ") if len(widths) == 1 else (b" ", b"")
    number = 0
    while number < len(lines):
        parts, whole = _make_whole(lines[number : number + 1 + _MOST_BREAKS], blanks)
        if parts:
            log.join(number + 1)
        yield number + 1, whole
        number += 1 + parts


def _make_whole(lines: list[bytes], blanks: Sequence[bytes]) -> tuple[int, bytes]:
    """Join a broken line; return the number of lines that continue it, and the joined line.

    Args:
        lines: the first line and the following lines.
        blanks: possible texts at a line break, the most likely first.
    """
    is_whole = _find_form(*lines[:2]) if len(lines) > 1 else None
    if is_whole is None:
        return 0, lines[0]
    found = [lines[0]]
    for parts, part in enumerate(lines[1:], 1):
        if _IS_LINE.match(part):
            break
        found = [begin + blank + part for begin in found for blank in ((b"",) if begin[-1:].isspace() else blanks)]
        if whole := next(filter(is_whole, found), None):
            return parts, whole
    return 0, lines[0]


def _find_form(line: bytes, rest: bytes) -> Callable[[bytes], bool] | None:
    """If `line` may be a port's or switch's line that `rest` continues, return a test for the whole line; else None."""
    if _IS_LINE.match(rest):
        return None
    is_whole = _is_port if _IS_PORT.match(line) else _is_switch if _IS_HEAD.match(line) else None
    return None if is_whole is None or is_whole(line) else is_whole


def _is_port(line: bytes) -> bool:
    return _PORT.fullmatch(line) is not None


def _is_switch(line: bytes) -> bool:
    match = _HEAD.fullmatch(line)
    return match is not None and match[6] is not None


def _is_cut(last: bytes) -> bool:
    """Return true if the last line of a file has no line break, and is only the beginning of a line."""
    text = last.strip()
    if not text or _PORT.fullmatch(last):
        return False
    begins = any(text.startswith(each) or each.startswith(text) for each in _BEGINNINGS)
    return begins or _CUT_PORT.fullmatch(text) is not None


def _add_slots(nodes: Collection[_Node]) -> None:
    """If several switches have one name, add chassis and slot (from `ibnetdiscover -g`) to their names."""
    count = Counter(node.name for node in nodes if node.kind == NodeKind.SWITCH)
    for node in nodes:
        if node.slot and node.kind == NodeKind.SWITCH and count[node.name] > 1:
            node.name = f"{node.name} ({node.slot})"


def _drop_contradictions(node: _Node, log: DamageLog) -> None:
    """Drop ports that have two different lines in the stanzas of a node: both lines may be wrong."""
    for number, lines in node.text.items():
        if len({text for _, text in lines}) > 1:
            del node.links[number]
            what = f"port {number} has {len(lines)} different links, and none of these links is used"
            log.miss(what, node.node_guid, [line for line, _ in lines])


def _compare_stanzas(node: _Node, log: DamageLog) -> None:
    """Note links that are not in all stanzas of a node: the file may contain two dumps, for example."""
    lines = [line for port in node.links for line, _ in node.text[port] if len(node.text[port]) < node.stanzas]
    if lines:
        log.miss(
            f"its {node.stanzas} lists of links differ: a list is cut, or was made at another time",
            node.node_guid,
            lines,
        )


def _parse_port(number: int, line: bytes, node: _Node | None) -> _Port | None:
    match = _PORT.fullmatch(line)
    if match is None or len(_PEER.findall(line)) > 1:
        return None
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
        peer_lid=int(peer_lid or 0),
        lanes=int(width),
        speed=speed.decode(),
    )


def _find_rows(nodes: dict[int, _Node]) -> Iterator[LinkRow]:
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
    """Return the other end of the link that a port's line describes.

    Its data are from the line of the other port, or else from the stanza of the other node, or else from `port`.
    """
    if peer is not None and port.peer_port in peer.links:
        return _describe(peer, peer.links[port.peer_port])
    if peer is not None and peer.kind == NodeKind.SWITCH:
        guid, lid, lmc = peer.port_guid, peer.lid, peer.lmc
    else:
        guid, lid, lmc = port.peer_guid or port.peer_node, port.peer_lid, NOT_GIVEN
    if peer is None:
        return End(port.peer_kind, PORTS_NOT_GIVEN, 0, port.peer_node, guid, port.peer_name, lid, port.peer_port, lmc)
    return End(peer.kind, peer.ports, peer.system_guid, peer.node_guid, guid, peer.name, lid, port.peer_port, lmc)
