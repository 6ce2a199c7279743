# SPDX-License-Identifier: Apache-2.0
r"""Parse `ibdiagnet2.net_dump` of ibdiagnet 2: a stanza for each switch, a line for each port. GUIDs are hexadecimal.

    "MF0;leaf1:MQM8700/U1", Mellanox, 0x1070fd03001adeb4, LID 24
      # : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID : Neighbor Description
      1 : 1   : ACT : LINK UP : 5   : 4x  : 50  : NO-FEC   : NO-RTR : 0xc42a10300dbfb92 : 40 : 25 : "MF0;leaf2:.."
      2 : 2   : DOWN : POLLING : ...

`#` and `N#` are the port labels that are printed on the switches, such as `1/1/1`. A label can differ from InfiniBand's
port number (`IB#`). The line with label `N#` in the neighbour's stanza has the port number of the other end. Adapters
have no stanza: the GUIDs in other stanzas are used as their NODE GUIDs. The format lacks number of ports, SystemGUID,
LMC and routers.

Source: a public excerpt of a dump by ibdiagnet 2.10, and two public parsers. No complete dump was available.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.damage import DamageLog, show_lines
from ibprof_converter.fabric.dump_files import decode_name
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import PORTS_NOT_GIVEN, End, LinkRow, Listing, list_rows
from ibprof_converter.fabric.rates import data_rate_gbps

_HEAD = re.compile(rb'[ \t]{0,9}"(.{0,256})", [^,\n]{0,99}, 0x([0-9A-Fa-f]{1,16}), LID ([0-9]{1,5})\s*')
_COLUMNS = re.compile(rb"[ \t]{0,99}#[ \t]{0,99}:[ \t]{0,99}IB#[ \t]{0,99}:.*:[ \t]{0,99}Neighbor Description\s*")
_SIGN = re.compile(_COLUMNS.pattern, re.MULTILINE)
_PORT = re.compile(rb"[ \t]{0,99}[^:\n]{1,40}:[ \t]{0,99}[0-9]{1,3}[ \t]{0,99}:.*")
# An incomplete line: the beginning of a port's line or of a stanza, or a port's line without the closing quote.
_CUT = re.compile(rb'[ \t]{1,99}|[ \t]{0,99}(?:[0-9][0-9/ \t]{0,99}(?::.*[^"\r])?:?|".*)')
# A comment. The line with column names also begins with `#`, but a colon follows.
_IGNORED = re.compile(rb"\s*(?:#(?![ \t]*:).*)?")
# `_FIELDS` matches a part of a port's line. `_NEXT` matches the beginning of another port's line within a line.
_FIELDS = re.compile(rb".*[ \t]:.*[ \t]:.*[ \t]:.*")
_NEXT = re.compile(rb'"[ \t]+[0-9][0-9/]{0,20}[ \t]*:[ \t]*[0-9]{1,3}[ \t]*:[ \t]*[A-Z]{2,5}[ \t]*:')
_GUID = re.compile(r"0x([0-9A-Fa-f]{1,16})")
_LID = re.compile(r"[0-9]{0,5}")
_LANES = {"1x": 1, "2x": 2, "4x": 4, "8x": 8, "12x": 12}
_ADAPTER_PORTS = ("1", "2")
_PLANE_PORTS = ("1", "2", "3", "4")
_PLANE_GBPS = 250.0
"""Largest rate, in Gb/s, of an XDR link with one lane. An XDR adapter has such a link to each of four planes."""
_IS_UP = "ACT"
_NEEDED = ("#", "ib#", "sta", "lwa", "lsa", "neighbor guid", "n#", "nlid")

_HEAD_FORM = '"description", VENDOR, 0xGUID, LID N'
_PORT_FORM = "# : IB# : Sta : ... : Neighbor Guid : N# : NLID : Neighbor Description, as in the line with column names"
_REMARK = "a .net_dump has no NODE GUIDs of adapters and no LMC; GUIDs of neighbours are used instead"


def looks_like_net_dump(head: bytes) -> bool:
    """Return true if the beginning of a file contains the column names of a `.net_dump`."""
    return _SIGN.search(head) is not None


@dataclass(frozen=True, slots=True)
class _Port:
    """A port with a cable.

    Attributes:
        number: InfiniBand's number of the port.
        active: true if the link's logical state is active.
        lanes: width of the link.
        gbps: data rate in Gb/s, nan if unknown.
        guid, label, lid, name: GUID, printed port label, LID and description of the neighbour.
    """

    line: int
    number: int
    active: bool
    lanes: int
    gbps: float
    guid: int
    label: str
    lid: int
    name: str


@dataclass(slots=True)
class _Switch:
    """A stanza: description, GUID and LID of a switch, and label -> port."""

    name: str
    guid: int
    lid: int
    numbers: dict[str, int] = field(default_factory=dict)
    ports: list[_Port] = field(default_factory=list)


def parse_net_dump(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the stanzas; ports without a neighbour are left out.

    Raises:
        InputError: no line lists a link. The error names the first unused line, if any.
    """
    log = DamageLog(path)
    switches: dict[int, _Switch] = {}
    switch: _Switch | None = None
    columns: list[str] = []
    lines = data.split(b"\n")
    if _CUT.fullmatch(lines[-1]):
        log.end_within(len(lines), lines.pop())
    for number, line in enumerate(lines, 1):
        if head := _HEAD.fullmatch(line):
            # The file may contain two dumps: add the ports in a switch's second stanza to its first stanza.
            switch = switches.setdefault(
                int(head[2], 16), _Switch(decode_name(head[1]), int(head[2], 16), int(head[3]))
            )
        elif _COLUMNS.fullmatch(line):
            columns = [column.strip().lower() for column in line.decode("utf-8", "replace").split(":")]
            if missing := [name for name in _NEEDED if name not in columns]:
                raise InputError(path, number, f"a column {missing[0]!r}", quote_found(line))
        elif behind := _NEXT.search(line):
            error = InputError(path, number, "the end of the line", quote_found(line[behind.start() + 1 :].strip()))
            log.lose(number, error, switch.guid if switch else None)
        elif _PORT.fullmatch(line):
            _read_port(log, number, line, switch, columns)
        elif line.lstrip().startswith(b'"'):
            log.lose(number, InputError(path, number, _HEAD_FORM, quote_found(line)))
            switch = None
        elif _FIELDS.fullmatch(line):
            log.lose(number, InputError(path, number, _PORT_FORM, quote_found(line)), switch.guid if switch else None)
        elif not _IGNORED.fullmatch(line):
            log.skip(number, line, _PORT_FORM, switch.guid if switch else None)
    _miss_ports(switches.values(), log)
    return replace(list_rows(list(_find_rows(switches, log)), log), remarks=(_REMARK,))


def _read_port(log: DamageLog, number: int, line: bytes, switch: _Switch | None, columns: list[str]) -> None:
    # The rest of the line is the description, which may contain colons.
    parts = [decode_name(part).strip() for part in line.split(b":", max(len(columns) - 1, 1))]
    fields = dict(zip(columns, parts, strict=False))
    expected = _PORT_FORM if switch else f"a stanza's first line, {_HEAD_FORM},"
    if switch is None or not columns or len(parts) < len(columns):
        log.lose(number, InputError(log.path, number, expected, quote_found(line)), switch.guid if switch else None)
        return
    switch.numbers.setdefault(fields["#"], int(fields["ib#"]))
    if not fields["neighbor guid"]:
        return
    guid, lid = _GUID.fullmatch(fields["neighbor guid"]), _LID.fullmatch(fields["nlid"])
    if guid is None or lid is None:
        log.lose(number, InputError(log.path, number, expected, quote_found(line)), switch.guid)
        return
    name = fields["neighbor description"].removeprefix('"').removesuffix('"')
    active = fields["sta"] == _IS_UP
    lanes = _LANES.get(fields["lwa"], 0)
    gbps = data_rate_gbps(lanes, fields["lsa"])
    link = int(guid[1], 16), fields["n#"], int(lid[0] or 0), name
    switch.ports.append(_Port(number, int(fields["ib#"]), active, lanes, gbps, *link))


def _miss_ports(switches: Collection[_Switch], log: DamageLog) -> None:
    """Note ports without a line as missing, unless most switches lack lines: then the tool did not list all ports."""
    gaps = {}
    for switch in switches:
        numbers = {*switch.numbers.values()}
        gaps[switch.guid] = sorted({*range(1, max(numbers, default=0))} - numbers)
    if 2 * sum(map(bool, gaps.values())) > len(gaps):
        return
    for guid, missing in gaps.items():
        if missing:
            log.miss(f"no line for {show_lines(missing).replace('line', 'port', 1)}", guid)


def _find_rows(switches: Mapping[int, _Switch], log: DamageLog) -> Iterator[LinkRow]:
    """Yield two rows of each link. A switch's line yields both rows of a link to an adapter, which has no stanza."""
    missing = _find_missing(switches)
    for switch in switches.values():
        for port in switch.ports:
            near = End(
                NodeKind.SWITCH, PORTS_NOT_GIVEN, 0, switch.guid, switch.guid, switch.name, switch.lid, port.number
            )
            other = switches.get(port.guid)
            number = other.numbers.get(port.label) if other else _parse_number(port.label)
            if number is None:
                what = f"port {port.number}: its neighbour {port.name!r} has no port {quote_found(port.label.encode())}"
                log.miss(what, switch.guid, [port.line])
                continue
            is_switch = other is not None or port.guid in missing
            kind = NodeKind.SWITCH if is_switch else NodeKind.CA
            lid, name = (other.lid, other.name) if other else (port.lid, port.name)
            far = End(kind, PORTS_NOT_GIVEN, 0, port.guid, port.guid, name, lid, number)
            row = LinkRow(port.line, near, far, port.active and near.lid > 0 and lid > 0, port.lanes, port.gbps)
            yield row
            if not is_switch:
                yield row._replace(a=far, b=near)


def _find_missing(switches: Mapping[int, _Switch]) -> set[int]:
    """Return the GUIDs of neighbours that are switches, but have no stanza: the file may be truncated.

    A neighbour without a stanza is a switch if its ports share a LID, or have other labels than 1 and 2. An XDR adapter
    is no switch, although its four ports may share a LID.
    """
    ports: dict[int, list[_Port]] = {}
    for switch in switches.values():
        for port in switch.ports:
            if port.guid not in switches:
                ports.setdefault(port.guid, []).append(port)
    return {
        guid
        for guid, some in ports.items()
        if not _has_planes(some)
        and (any(port.label not in _ADAPTER_PORTS for port in some) or len({port.lid for port in some}) < len(some))
    }


def _has_planes(some: list[_Port]) -> bool:
    labels = {port.label for port in some}
    is_lane = all(port.lanes == 1 and 150 < port.gbps <= _PLANE_GBPS for port in some)
    return is_lane and len(labels) == len(some) and labels <= set(_PLANE_PORTS)


def _parse_number(label: str) -> int | None:
    """Return the port number in the label of an adapter's port; None if the label has another form."""
    return (
        int(label) if label.isascii() and label.isdigit() and len(label) <= 3 and int(label) < PORTS_NOT_GIVEN else None
    )
