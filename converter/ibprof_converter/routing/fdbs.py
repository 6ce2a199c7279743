# SPDX-License-Identifier: Apache-2.0
"""Read forwarding tables as ibdiagnet (`ibdiagnet.fdbs`) and OpenSM (`opensm.fdbs`) write them.

A stanza per switch; ports are decimal, LIDs hexadecimal:

    osm_ucast_mgr_dump_ucast_routes: Switch 0x0002c90200f00000
    LID    : Port : Hops : Optimal
    0x0001 : UNREACHABLE
    0x0002 : 001  : 02   : yes
    0x0018 : 032  : 05   : No 3 hop path possible via port 19!
    0x0003 : 000  : HOPS UNKNOWN

The first word of a header differs between tools. Text after the port is commentary. Tables may differ in length.
ibdiagnet 2 adds `#` lines and `PLFT_NUM: n`; of a switch's private tables only number 0 is read.
"""

from __future__ import annotations

import re
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.routing.entries import Entries, EntryForm
from ibprof_converter.routing.stanzas import Stanzas, fill_tables
from ibprof_converter.routing.tables import ForwardingTables

_HEAD = re.compile(rb"(?:\w+): Switch 0x([0-9A-Fa-f]{1,16})\s*")
_SIGN = re.compile(rb"^\w+: Switch 0x[0-9A-Fa-f]{1,16}\s*$", re.MULTILINE)
_PLFT = re.compile(rb"PLFT_NUM:\s*(\d{1,3})\s*")
_OTHER = re.compile(rb"LID\s*:\s*Port\b.*|#.*|File version:.*|\s*")


def looks_like_fdbs(head: bytes) -> bool:
    """Return whether a file's beginning has the stanzas of a `.fdbs`."""
    return _SIGN.search(head) is not None


def parse_fdbs(path: str | PathLike[str], data: bytes) -> ForwardingTables:
    """Parse a `.fdbs`.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: the file has no tables, or a line is invalid.
    """
    entries = Entries.read(data, EntryForm.FDBS)
    return fill_tables(path, _read_stanzas(path, entries), entries)


def _read_stanzas(path: str | PathLike[str], entries: Entries) -> Stanzas:
    """Return the stanzas that the lines other than entries begin."""
    stanzas = Stanzas()
    for line in entries.other_lines():
        if head := _HEAD.fullmatch(line.text):
            stanzas.begin(line.entries, int(head[1], 16))
        elif (plft := _PLFT.fullmatch(line.text)) and stanzas.guid:
            stanzas.begin(line.entries, stanzas.guid[-1], private=int(plft[1]) > 0)
        elif not _OTHER.fullmatch(line.text):
            expected = f"a header `...: Switch 0x<NODE GUID>` or {EntryForm.FDBS.shown}"
            raise InputError(path, line.number, expected, quote_found(line.text))
    if any(stanzas.private):
        count = len({guid for guid, private in zip(stanzas.guid, stanzas.private, strict=True) if private})
        stanzas.warnings.append(f"{count} switches have private tables (PLFT); only table 0 is used")
    return stanzas
