# SPDX-License-Identifier: Apache-2.0
"""Parse forwarding tables in the formats of OpenSM (`opensm-lfts.dump`) and `dump_fts`.

    Unicast lids [0-44] of switch Lid 2 guid 0x0002c90200400000 ('sw-a'):
    0x0001 001 # Channel Adapter portguid 0x0002c903000a0001: 'host01 HCA-1'

    Unicast lids [0x0-0x27] of switch DR path slid 0; dlid 0; 0,1,4,4 guid 0x0002c90200f00028 (leaf 4):
      Lid  Out   Destination
           Port     Info
    0x0002 004 : (Channel Adapter portguid 0x0002c90300fa0001: 'q01 [rack 1] HCA-1')
    20 valid lids dumped

LIDs are hexadecimal, ports decimal. LIDs without a route are not listed. Text after the port is ignored. dump_fts of
infiniband-diags 44 also omits a table's last LID if this LID is a multiple of 64. A note then reports that the route
to this LID is unknown.
"""

from __future__ import annotations

import re
from os import PathLike

import numpy as np
import numpy.typing as npt

from ibprof_converter.fabric.listing import LAST_UNICAST_LID
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_testing.reference.lines import Lines
from ibprof_testing.reference.stanzas import Entries, Stanzas, fill_tables

_RANGE = rb"Unicast lids \[[0-9a-fx]{1,6}-([0-9a-fx]{1,6})\] of switch "
# The brackets after the GUID contain the description. The text before the description has no brackets.
_HEAD = re.compile(rb"[ \t]{0,9}" + _RANGE + rb"[^(]{0,500}?\bguid 0x([0-9A-Fa-f]{1,16}) \(.*\):?\s*")
_OTHER = re.compile(rb"\s*Lid\s+Out\s+Destination\s*|\s*Port\s+Info\s*|\d+ (?:valid )?lids dumped\s*|#.*|\s*")

_ENTRY_PREFIX = b"0x"
_BLOCK = 64
_PORT_AT = 7  # bytes before the port: `0x0002 `


def parse_lft_dump(path: str | PathLike[str], data: bytes) -> tuple[ForwardingTables, set[int]]:
    """Parse a dump.

    Args:
        path: path of the file, for messages.
        data: contents of the file.

    Returns:
        The tables, and the numbers (from 1) of unused lines.

    Raises:
        InputError: the file has no tables.
    """
    lines = Lines.split(data)
    is_entry = lines.starts_with(_ENTRY_PREFIX)
    stanzas, strange = Stanzas(), set()
    top = 0
    for line in np.flatnonzero(~is_entry).tolist():
        text = lines[line]
        if head := _HEAD.fullmatch(text):
            stanzas.begin(line, int(head[2], 16))
            top = max(top, _read_top(head[1]))
        elif not _OTHER.fullmatch(text):
            strange.add(line + 1)
            stanzas.leave_out(line, text)
    entries, invalid = _read_entries(lines, np.flatnonzero(is_entry))
    if top and top % _BLOCK == 0 and not (entries.lid == top).any():
        stanzas.warnings.append(
            f"LID {top:#06x} is missing: dump_fts leaves out a table's last LID when it is a multiple of {_BLOCK}; "
            "OpenSM's dump and ibdiagnet's .fdbs have it"
        )
    return fill_tables(path, stanzas, entries, strange | invalid)


def _read_top(digits: bytes) -> int:
    """Return a table's last LID from the header: decimal, or hexadecimal with `0x`; 0 for no number."""
    try:
        return int(digits, 16 if digits.startswith(b"0x") else 10)
    except ValueError:
        return 0


def _read_entries(lines: Lines, entry: npt.NDArray[np.int64]) -> tuple[Entries, set[int]]:
    start = lines.start[entry]
    lid, good = lines.number(start + len(_ENTRY_PREFIX), 4, 16)
    good &= lines.have(b" ", start + 6)
    port, is_port = lines.number(start + _PORT_AT, 3, 10)
    after = lines.text[start + _PORT_AT + 3]
    good &= is_port & ((after == ord(" ")) | (after == ord("\n")))
    good &= (lid <= LAST_UNICAST_LID) & (port <= UNREACHABLE)
    return Entries(entry[good], lid[good], port.astype(np.uint8)[good]), set((entry[~good] + 1).tolist())
