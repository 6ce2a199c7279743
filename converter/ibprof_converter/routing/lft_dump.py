# SPDX-License-Identifier: Apache-2.0
"""Parse forwarding tables as OpenSM loads and dumps them (`opensm-lfts.dump`) and as `dump_fts` prints them.

    Unicast lids [0-44] of switch Lid 2 guid 0x0002c90200400000 ('sw-a'):
    0x0001 001 # Channel Adapter portguid 0x0002c903000a0001: 'host01 HCA-1'

    Unicast lids [0x0-0x27] of switch DR path slid 0; dlid 0; 0,1,4,4 guid 0x0002c90200f00028 (leaf 4):
      Lid  Out   Destination
           Port     Info
     0x0002 004 : (Channel Adapter portguid 0x0002c90300fa0001: 'q01 [rack 1] HCA-1')
     20 valid lids dumped

LIDs are hexadecimal, ports decimal; LIDs without a route are left out. Text after the port is commentary. dump_fts of
infiniband-diags 44 also leaves out the last LID of a table when it is a multiple of 64, the block size. The dump does
not show its route, so a warning reports this.
"""

from __future__ import annotations

import re
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.routing.entries import Entries, EntryForm
from ibprof_converter.routing.stanzas import Stanzas, fill_tables
from ibprof_converter.routing.tables import ForwardingTables

_RANGE = rb"Unicast lids \[[0-9a-fx]{1,6}-([0-9a-fx]{1,6})\] of switch "
# The description is in brackets after the GUID; the text before it contains none.
_HEAD = re.compile(_RANGE + rb"[^(]{0,500}?\bguid 0x([0-9A-Fa-f]{1,16}) \(.*\):?\s*")
_SIGN = re.compile(rb"^" + _RANGE, re.MULTILINE)
_OTHER = re.compile(rb"\s*Lid\s+Out\s+Destination\s*|\s*Port\s+Info\s*|\d+ (?:valid )?lids dumped\s*|#.*|\s*")

_FORM = "a header `Unicast lids [..] of switch .. guid 0x<NODE GUID> (..)` or `0x<LID> <port, 3 digits>`"
_BLOCK = 64


def looks_like_lft_dump(head: bytes) -> bool:
    """Return whether a file's beginning has the headers of such a dump."""
    return _SIGN.search(head) is not None


def parse_lft_dump(path: str | PathLike[str], data: bytes) -> ForwardingTables:
    """Parse such a dump.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: the file has no tables, or a line is invalid.
    """
    entries = Entries.read(data, EntryForm.LFT)
    stanzas = Stanzas()
    top = 0
    for line in entries.other_lines():
        if head := _HEAD.fullmatch(line.text):
            stanzas.begin(line.entries, int(head[2], 16))
            top = max(top, _read_top(path, line.number, head[1]))
        elif not _OTHER.fullmatch(line.text):
            raise InputError(path, line.number, _FORM, quote_found(line.text))
    if top and top % _BLOCK == 0 and not (entries.lid == top).any():
        stanzas.warnings.append(
            f"LID {top:#06x} is missing: dump_fts leaves out a table's last LID when it is a multiple of {_BLOCK}; "
            "OpenSM's dump and ibdiagnet's .fdbs have it"
        )
    return fill_tables(path, stanzas, entries)


def _read_top(path: str | PathLike[str], line: int, digits: bytes) -> int:
    """Return the last LID of a table's header, decimal or hexadecimal after `0x`."""
    try:
        return int(digits, 16 if digits.startswith(b"0x") else 10)
    except ValueError:
        raise InputError(path, line, _FORM, quote_found(digits)) from None
