# SPDX-License-Identifier: Apache-2.0
"""Parse forwarding tables as OpenSM loads and dumps them (`opensm-lfts.dump`) and as `dump_fts` prints them.

    Unicast lids [0-44] of switch Lid 2 guid 0x0002c90200400000 ('sw-a'):
    0x0001 001 # Channel Adapter portguid 0x0002c903000a0001: 'host01 HCA-1'

    Unicast lids [0x0-0x27] of switch DR path slid 0; dlid 0; 0,1,4,4 guid 0x0002c90200f00028 (leaf 4):
      Lid  Out   Destination
           Port     Info
    0x0002 004 : (Channel Adapter portguid 0x0002c90300fa0001: 'q01 [rack 1] HCA-1')
    20 valid lids dumped

LIDs are hexadecimal, ports decimal; LIDs without a way are left out. What follows the port is commentary. dump_fts of
infiniband-diags 44 also leaves out the last LID of a table when that is a multiple of 64, the size of a block: whatever
is routed there, the dump does not say: a note does.
"""

from __future__ import annotations

import re
from os import PathLike

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.listing import LAST_UNICAST_LID
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_testing.reference.lines import Lines
from ibprof_testing.reference.stanzas import Entries, Stanzas, fill_tables

_RANGE = rb"Unicast lids \[[0-9a-fx]{1,6}-([0-9a-fx]{1,6})\] of switch "
# A description is between the brackets behind the GUID; what stands before it holds none.
_HEAD = re.compile(_RANGE + rb"[^(]{0,500}?\bguid 0x([0-9A-Fa-f]{1,16}) \(.*\):?\s*")
_SIGN = re.compile(rb"^" + _RANGE, re.MULTILINE)
_OTHER = re.compile(rb"\s*Lid\s+Out\s+Destination\s*|\s*Port\s+Info\s*|\d+ (?:valid )?lids dumped\s*|#.*|\s*")

_FORM = "a header `Unicast lids [..] of switch .. guid 0x<NODE GUID> (..)` or `0x<LID> <port, 3 digits>`"
_ENTRY = "`0x<LID> <port, 3 digits>`"
_ENTRY_PREFIX = b"0x"
_BLOCK = 64
_PORT_AT = 7  # bytes before the port: `0x0002 `


def looks_like_lft_dump(data: bytes) -> bool:
    """Return whether `data` has the heads of such a dump."""
    return _SIGN.search(data[: 1 << 16]) is not None


def parse_lft_dump(path: str | PathLike[str], data: bytes) -> ForwardingTables:
    """Take such a dump apart.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: the file has no tables, or a line is not what it should be.
    """
    lines = Lines.split(data)
    is_entry = lines.starts_with(_ENTRY_PREFIX)
    stanzas = Stanzas()
    top = 0
    for line in np.flatnonzero(~is_entry).tolist():
        text = lines[line]
        if head := _HEAD.fullmatch(text):
            stanzas.begin(line, int(head[2], 16))
            top = max(top, _read_top(path, line, head[1]))
        elif not _OTHER.fullmatch(text):
            raise InputError(path, line + 1, _FORM, quote_found(text))
    entries = _read_entries(path, lines, np.flatnonzero(is_entry))
    if top and top % _BLOCK == 0 and not (entries.lid == top).any():
        stanzas.warnings.append(
            f"LID {top:#06x} is missing: dump_fts leaves out a table's last LID when it is a multiple of {_BLOCK}; "
            "OpenSM's dump and ibdiagnet's .fdbs have it"
        )
    return fill_tables(path, stanzas, entries)


def _read_top(path: str | PathLike[str], line: int, digits: bytes) -> int:
    """Read the last LID of a table's head, decimal or hexadecimal after `0x`."""
    try:
        return int(digits, 16 if digits.startswith(b"0x") else 10)
    except ValueError:
        raise InputError(path, line + 1, _FORM, quote_found(digits)) from None


def _read_entries(path: str | PathLike[str], lines: Lines, entry: npt.NDArray[np.int64]) -> Entries:
    start = lines.start[entry]
    lid, good = lines.number(start + len(_ENTRY_PREFIX), 4, 16)
    good &= lines.have(b" ", start + 6)
    port, is_port = lines.number(start + _PORT_AT, 3, 10)
    after = lines.text[start + _PORT_AT + 3]
    good &= is_port & ((after == ord(" ")) | (after == ord("\n")))
    good &= (lid <= LAST_UNICAST_LID) & (port <= UNREACHABLE)
    if not good.all():
        line = int(entry[np.flatnonzero(~good)[0]])
        raise InputError(path, line + 1, _ENTRY, quote_found(lines[line]))
    return Entries(entry, lid, port.astype(np.uint8))
