# SPDX-License-Identifier: Apache-2.0
r"""Parse the output of `iblinkinfo -l`: a line per port, so two lines per link. GUIDs are hexadecimal numbers.

    0x0002c90200404ad8 "leaf 1"  4  3[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==>  0x0002c903000e0b72 15 1[ ] "h" ( )

The GUIDs are PORT GUIDs. A GUID with several ports is both the PORT GUID and the NODE GUID of a switch. The NODE GUID
of an adapter is assumed to be PORT GUID minus port number. The format lacks number of ports, SystemGUID and LMC.
"""

from __future__ import annotations

import re
from dataclasses import replace
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.dump_files import decode_name
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import PORTS_NOT_GIVEN, End, LinkRow, Listing, list_rows
from ibprof_converter.fabric.port_list import GUESSED
from ibprof_converter.fabric.rates import data_rate_gbps

_NEAR = rb'[ \t]{0,9}0x([0-9a-f]{16})[ \t]{1,9}"(.{0,128}?)"[ \t]{1,9}([0-9]{1,5})[ \t]{1,9}([0-9]{1,3})\[.{0,9}?\]'
_RATE = rb"(?:([0-9]{1,2})X[ \t]{1,40}([0-9.]{1,9}) Gbps[ \t]{1,40})?"
_STATE = rb"[ \t]{1,9}==\([ \t]{0,40}" + _RATE + rb"([A-Za-z]{1,20})/[^)]{1,40}\)==>"
_FAR = rb'[ \t]{1,40}0x([0-9a-f]{16})[ \t]{1,9}([0-9]{1,5})[ \t]{1,9}([0-9]{1,3})\[.{0,9}?\] "(.{0,128})" \(.{0,200}\)'
_LINE = re.compile(_NEAR + _STATE + _FAR + rb"\s*")
_UNLINKED = re.compile(_NEAR + rb"[ \t]{1,9}==\(.{0,80}\)==>[ \t]{1,40}\[.{0,9}?\] \"\" \(.{0,200}\)\s*")
_SIGN = re.compile(rb"^" + _NEAR + rb"[ \t]{1,9}==\(", re.MULTILINE)
_FORM = (
    '0xGUID "description" LID PORT[ ] ==( WIDTHX SPEED Gbps STATE/ PHYSICAL)==> 0xGUID LID PORT[ ] "description" ( )'
)

_SPEEDS = {2.5: "2.5", 5: "5", 10: "10", 10.3125: "FDR10", 14.0625: "14", 20.625: "EDR20", 25.78125: "25", 53.125: "50"}
_SPEEDS |= {106.25: "100", 212.5: "200"}
"""Signalling rate of a lane, in Gb/s -> lane speed, as the argument of `data_rate_gbps`."""


def looks_like_link_info(head: bytes) -> bool:
    """Return true if the beginning of a file has a line of `iblinkinfo -l`."""
    return _SIGN.search(head) is not None


def parse_link_info(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the lines; ports without a link are left out.

    Raises:
        InputError: no line lists a link. The error names the first unused line, if any.
    """
    log = DamageLog(path)
    matches = []
    ports: dict[int, set[int]] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        arrows = line.count(b")==>")  # two arrows: the line break between two lines was lost
        if arrows == 1 and (match := _LINE.fullmatch(line)):
            matches.append((number, match))
            ports.setdefault(int(match[1], 16), set()).add(int(match[4]))
            ports.setdefault(int(match[8], 16), set()).add(int(match[10]))
        elif arrows == 1 and (match := _UNLINKED.fullmatch(line)):
            ports.setdefault(int(match[1], 16), set()).add(int(match[4]))
        elif arrows or b"==(" in line:
            log.lose(number, InputError(path, number, _FORM, quote_found(line)))
        elif line.strip():
            log.skip(number, line, _FORM)

    def describe(guid: bytes, lid: bytes, port: bytes, name: bytes) -> End:
        value, number = int(guid, 16), int(port)
        is_switch = len(ports[value]) > 1
        node_guid = value if is_switch else max(value - number, 0)
        kind = NodeKind.SWITCH if is_switch else NodeKind.CA
        return End(kind, PORTS_NOT_GIVEN, 0, node_guid, value, decode_name(name.strip()), int(lid), number)

    rows = []
    for number, match in matches:
        near, far = describe(match[1], match[3], match[4], match[2]), describe(match[8], match[9], match[10], match[11])
        lanes = int(match[5] or 0)
        gbps = data_rate_gbps(lanes, _find_speed(match[6]))
        active = match[7] == b"Active" and near.lid > 0 and far.lid > 0
        rows.append(LinkRow(number, near, far, active, lanes, gbps))
    return replace(list_rows(rows, log), remarks=(GUESSED,))


def _find_speed(text: bytes | None) -> str:
    """Return the lane speed for a printed signalling rate, which may be rounded; empty for an unknown rate."""
    try:
        rate = float(text or b"")
    except ValueError:
        return ""
    nearest = min(_SPEEDS, key=lambda each: abs(each - rate))
    return _SPEEDS[nearest] if abs(nearest - rate) < 0.02 * nearest else ""
