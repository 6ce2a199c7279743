# SPDX-License-Identifier: Apache-2.0
"""Read forwarding tables as ibdiagnet (`ibdiagnet.fdbs`) and OpenSM (`opensm.fdbs`) write them.

A stanza a switch; ports are decimal, LIDs hexadecimal:

    osm_ucast_mgr_dump_ucast_routes: Switch 0x0002c90200f00000
    LID    : Port : Hops : Optimal
    0x0001 : UNREACHABLE
    0x0002 : 001  : 02   : yes
    0x0018 : 032  : 05   : No 3 hop path possible via port 19!
    0x0003 : 000  : HOPS UNKNOWN

The head's first word differs between tools. What follows the port is commentary. Tables may be of different lengths.
ibdiagnet 2 adds `#` lines and `PLFT_NUM: n`; only the first of a switch's private tables, number 0, is read.
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

_HEAD = re.compile(rb"(?:\w+): Switch 0x([0-9A-Fa-f]{1,16})\s*")
_SIGN = re.compile(rb"^\w+: Switch 0x[0-9A-Fa-f]{1,16}\s*$", re.MULTILINE)
_PLFT = re.compile(rb"PLFT_NUM:\s*(\d{1,3})\s*")
_COLUMNS = re.compile(rb"LID\s*:\s*Port\b.*")

_ENTRY = "`0x<LID> : <port, 3 digits>` or `0x<LID> : UNREACHABLE`"
_ENTRY_PREFIX = b"0x"
_PORT_AT = 9  # bytes before the port: `0x0002 : `
_UNREACHABLE_WORD = b"UNREACHABLE"


def looks_like_fdbs(data: bytes) -> bool:
    """Return whether `data` has the stanzas of a `.fdbs`."""
    return _SIGN.search(data[: 1 << 16]) is not None


def parse_fdbs(path: str | PathLike[str], data: bytes) -> ForwardingTables:
    """Take a `.fdbs` apart.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: the file has no tables, or a line is not what it should be.
    """
    lines = Lines.split(data)
    is_entry = lines.starts_with(_ENTRY_PREFIX)
    stanzas = _read_stanzas(path, lines, np.flatnonzero(~is_entry))
    return fill_tables(path, stanzas, _read_entries(path, lines, np.flatnonzero(is_entry)))


def _read_stanzas(path: str | PathLike[str], lines: Lines, others: npt.NDArray[np.int64]) -> Stanzas:
    """Read the lines that are no entries."""
    stanzas = Stanzas()
    for line in others.tolist():
        text = lines[line]
        if head := _HEAD.fullmatch(text):
            stanzas.begin(line, int(head[1], 16))
        elif (plft := _PLFT.fullmatch(text)) and stanzas.guid:
            stanzas.begin(line, stanzas.guid[-1], private=int(plft[1]) > 0)
        elif text.strip() and not text.startswith(b"#") and not _COLUMNS.fullmatch(text):
            raise InputError(path, line + 1, f"a header `...: Switch 0x<NODE GUID>` or {_ENTRY}", quote_found(text))
    if any(stanzas.private):
        count = len({guid for guid, private in zip(stanzas.guid, stanzas.private, strict=True) if private})
        stanzas.warnings.append(f"{count} switches have private tables (PLFT); only table 0 is used")
    return stanzas


def _read_entries(path: str | PathLike[str], lines: Lines, entry: npt.NDArray[np.int64]) -> Entries:
    """Read the lines that map a LID to a port."""
    start = lines.start[entry]
    lid, good = lines.number(start + len(_ENTRY_PREFIX), 4, 16)
    good &= lines.have(b" : ", start + 6)
    port, is_port = lines.number(start + _PORT_AT, 3, 10)
    after = lines.text[start + _PORT_AT + 3]
    is_port &= (after == ord(" ")) | (after == ord("\n"))
    is_port &= port < UNREACHABLE
    good &= is_port | lines.have(_UNREACHABLE_WORD, start + _PORT_AT)
    good &= lid <= LAST_UNICAST_LID
    if not good.all():
        line = int(entry[np.flatnonzero(~good)[0]])
        raise InputError(path, line + 1, _ENTRY, quote_found(lines[line]))
    return Entries(entry, lid, np.where(is_port, port, UNREACHABLE).astype(np.uint8))
