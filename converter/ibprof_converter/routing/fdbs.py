# SPDX-License-Identifier: Apache-2.0
"""Read forwarding tables as ibdiagnet (`ibdiagnet.fdbs`) and OpenSM (`opensm.fdbs`) write them.

A stanza per switch; ports are decimal, LIDs hexadecimal:

    osm_ucast_mgr_dump_ucast_routes: Switch 0x0002c90200f00000
    LID    : Port : Hops : Optimal
    0x0001 : UNREACHABLE
    0x0002 : 001  : 02   : yes
    0x0018 : 032  : 05   : No 3 hop path possible via port 19!
    0x0003 : 000  : HOPS UNKNOWN

The first word of a header differs between tools. Text after the port is ignored. Tables may differ in length. ibdiagnet
2 adds `#` lines and `PLFT_NUM: n`; only number 0 of a switch's private tables is read.
"""

from __future__ import annotations

import re
from os import PathLike

from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.routing.stanzas import Entries, EntryForm, Stanzas, fill_tables, note_cut_end
from ibprof_converter.routing.tables import ForwardingTables

_HEAD = re.compile(rb"[ \t]{0,9}(?:\w+): Switch 0x([0-9A-Fa-f]{1,16})\s*")
_SIGN = re.compile(rb"^\w+: Switch 0x[0-9A-Fa-f]{1,16}\s*$", re.MULTILINE)
_PLFT = re.compile(rb"PLFT_NUM:\s*(\d{1,3})\s*")
_OTHER = re.compile(rb"LID\s*:\s*Port\b.*|#.*|File version:.*|\s*")


def looks_like_fdbs(head: bytes) -> bool:
    """Return true if a file's beginning has the stanzas of a `.fdbs`."""
    return _SIGN.search(head) is not None


def parse_fdbs(path: str | PathLike[str], data: bytes) -> ForwardingTables:
    """Parse a `.fdbs`.

    Args:
        path: the file's path, for messages.
        data: contents of the file.

    Raises:
        InputError: the file has no tables.
    """
    entries = Entries.read(data, EntryForm.FDBS)
    stanzas = _read_stanzas(path, entries)
    note_cut_end(stanzas, entries)
    return fill_tables(stanzas, entries)


def _read_stanzas(path: str | PathLike[str], entries: Entries) -> Stanzas:
    """Return the stanzas that begin at lines other than entries."""
    stanzas = Stanzas(DamageLog(path))
    for line in entries.other_lines():
        if head := _HEAD.fullmatch(line.text):
            stanzas.begin(line.entries, int(head[1], 16))
        elif (plft := _PLFT.fullmatch(line.text)) and stanzas.guid:
            stanzas.begin_private(line.entries, int(plft[1]))
        elif not _OTHER.fullmatch(line.text):
            stanzas.leave_out(line, "a header `...: Switch 0x<NODE GUID>`", EntryForm.FDBS)
    private = {
        guid for number, guid in enumerate(stanzas.guid) if stanzas.private[number] and number not in stanzas.lost
    }
    if private:
        count = len(private)
        stanzas.warnings.append(f"{count} switches have private tables (PLFT); only table 0 is used")
    return stanzas
