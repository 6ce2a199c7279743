# SPDX-License-Identifier: Apache-2.0
r"""Parse the output of `ibnetdiscover -p`: a line per port, so two lines per link. GUIDs are hexadecimal numbers.

    CA    32  1 0x0002c90300fa00b1 4x QDR - SW    14  3 0x0002c90200f00028 ( 'q12 HCA-1' - 'leaf 4' )
    SW    14  8 0x0002c90200f00028 4x SDR                                    'leaf 4'

The GUIDs are PORT GUIDs. The PORT GUID of a switch is also the NODE GUID. The NODE GUID of an adapter is assumed to be
PORT GUID minus port number, as for many adapters. A remark reports this assumption. The format lacks link state, number
of ports, SystemGUID and LMC.
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
from ibprof_converter.fabric.rates import data_rate_gbps, speed_of_name

_KINDS = {b"CA": NodeKind.CA, b"SW": NodeKind.SWITCH, b"RT": NodeKind.ROUTER}

# A port that is not configured yet may have no LID.
_END = rb"(CA|SW|RT)(?:[ \t]{0,9}([0-9]{1,5}))?[ \t]{1,9}([0-9]{1,3}) 0x([0-9a-f]{16})"
_LINE = re.compile(
    rb"[ \t]{0,9}"
    + _END
    + rb" ([0-9?]{1,2})x ([A-Z0-9?]{3,5})(?: - "
    + _END
    + rb" \( '(.{0,600})' \)|\s+'(.{0,300})')\s*"
)
_SIGN = re.compile(rb"^[ \t]{0,9}" + _END + rb" [0-9?]{1,2}x ", re.MULTILINE)
# Matches twice if a line break was lost; the first description would contain the second line.
_RATED = re.compile(rb"0x[0-9a-f]{16} [0-9?]{1,2}x ")
_PART = re.compile(rb"0x[0-9a-f]{16} (?:[0-9?]{1,2}x |\()|' - '")
_BEGIN = re.compile(rb"[ \t]{0,9}(?:CA|SW|RT)\b.*\b0x([0-9a-f]{16}) [0-9?]{1,2}x ")
_CUT = re.compile(rb"[ \t]{0,9}(?:[CSR]|(?:CA|SW|RT)(?:[ \t].*)?)")
_FORM = "TYPE LID PORT 0xGUID 4x SPEED - TYPE LID PORT 0xGUID ( 'description' - 'description' )"
GUESSED = "NODE GUIDs of adapters are not in this format; PORT GUID minus port number is used instead"
_BETWEEN_NAMES = b"' - '"


def looks_like_port_list(head: bytes) -> bool:
    """Return true if the beginning of a file has a line of `ibnetdiscover -p`."""
    return _SIGN.search(head) is not None


def parse_port_list(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the lines; ports without a link are left out.

    Raises:
        InputError: no line lists a link. The error names the first unused line, if any.
    """
    log = DamageLog(path)
    matches = []
    names: set[bytes] = set()
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        match = _LINE.fullmatch(line) if len(_RATED.findall(line)) < 2 else None
        if match is None and number == len(lines) and _CUT.fullmatch(line):
            log.end_within(number, line)
            continue
        if match is None:
            _leave_out(log, number, line)
            continue
        matches.append((number, match))
        if match[12] is not None:
            names.add(match[12])
    rows = []
    for number, match in matches:
        if match[7] is None:
            continue
        a_name, b_name = _split_names(match[11], names)
        a, b = _describe(match.groups()[:4], a_name), _describe(match.groups()[6:10], b_name)
        width = match[5].decode()
        lanes = int(width) if width.isdigit() else 0
        gbps = data_rate_gbps(lanes, speed_of_name(match[6].decode()))
        rows.append(LinkRow(number, a, b, a.lid > 0 and b.lid > 0, lanes, gbps))
    return replace(list_rows(rows, log), remarks=(GUESSED,), both_ends=True)


def _leave_out(log: DamageLog, number: int, line: bytes) -> None:
    """Note a line with parts of a port's line as a lost link, all other lines as stray lines."""
    if _PART.search(line):
        begin = _BEGIN.match(line) if line.lstrip().startswith(b"SW") else None
        error = InputError(log.path, number, _FORM, quote_found(line))
        log.lose(number, error, int(begin[1], 16) if begin else None)
    else:
        log.skip(number, line, _FORM)


def _split_names(text: bytes, names: set[bytes]) -> tuple[str, str]:
    """Split a text at a `' - '` into two descriptions; if possible, both are known descriptions."""
    cuts = [at for at in range(len(text)) if text.startswith(_BETWEEN_NAMES, at)]
    pairs = [(text[:at], text[at + len(_BETWEEN_NAMES) :]) for at in cuts] or [(text, b"")]
    best = max(pairs, key=lambda pair: (pair[0] in names) + (pair[1] in names))
    return decode_name(best[0]), decode_name(best[1])


def _describe(fields: tuple[bytes, ...], name: str) -> End:
    kind, lid, port = _KINDS[fields[0]], int(fields[1] or 0), int(fields[2])
    guid = int(fields[3], 16)
    node_guid = guid if kind == NodeKind.SWITCH else max(guid - port, 0)
    return End(kind, PORTS_NOT_GIVEN, 0, node_guid, guid, name, lid, port)
