# SPDX-License-Identifier: Apache-2.0
"""Read forwarding tables as ibdiagnet (`ibdiagnet.fdbs`) and OpenSM (`opensm.fdbs`) write them.

The file has a stanza for each switch. Ports are decimal, LIDs hexadecimal:

    osm_ucast_mgr_dump_ucast_routes: Switch 0x0002c90200f00000
    LID    : Port : Hops : Optimal
    0x0001 : UNREACHABLE
    0x0002 : 001  : 02   : yes
    0x0018 : 032  : 05   : No 3 hop path possible via port 19!
    0x0003 : 000  : HOPS UNKNOWN

The first word of the header differs between tools. The text after the port is ignored. Tables may differ in length.
ibdiagnet 2 adds `#` lines and `PLFT_NUM: n`. Of a switch's private tables, only number 0 is read.
"""

from __future__ import annotations

import re
from os import PathLike

import numpy as np
import numpy.typing as npt

from ibprof.text.quantities import count_of
from ibprof_converter.fabric.listing import LAST_UNICAST_LID
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables
from ibprof_testing.reference.lines import Lines
from ibprof_testing.reference.stanzas import Entries, Stanzas, fill_tables

_HEAD = re.compile(rb"[ \t]{0,9}(?:\w+): Switch 0x([0-9A-Fa-f]{1,16})\s*")
_PLFT = re.compile(rb"PLFT_NUM:\s*(\d{1,3})\s*")
_COLUMNS = re.compile(rb"LID\s*:\s*Port\b.*")

_ENTRY_PREFIX = b"0x"
_PORT_AT = 9  # bytes before the port: `0x0002 : `
_UNREACHABLE_WORD = b"UNREACHABLE"


def parse_fdbs(path: str | PathLike[str], data: bytes) -> tuple[ForwardingTables, set[int]]:
    """Parse a `.fdbs`.

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
    # The first word of a header is arbitrary, so a header may begin like an entry.
    is_entry[[line for line in np.flatnonzero(is_entry).tolist() if _HEAD.fullmatch(lines[line])]] = False
    stanzas, strange = _read_stanzas(lines, np.flatnonzero(~is_entry))
    entries, invalid = _read_entries(lines, np.flatnonzero(is_entry))
    return fill_tables(path, stanzas, entries, strange | invalid)


def _read_stanzas(lines: Lines, others: npt.NDArray[np.int64]) -> tuple[Stanzas, set[int]]:
    """Read the headers from the lines that are not entries."""
    stanzas, strange = Stanzas(), set()
    for line in others.tolist():
        text = lines[line]
        if head := _HEAD.fullmatch(text):
            stanzas.begin(line, int(head[1], 16))
        elif (plft := _PLFT.fullmatch(text)) and stanzas.guid:
            headed = stanzas.headed[-1]
            stanzas.begin(line, stanzas.guid[-1], private=not headed or int(plft[1]) > 0)
            stanzas.headed[-1] = headed
        elif text.strip() and not text.startswith(b"#") and not _COLUMNS.fullmatch(text):
            strange.add(line + 1)
            stanzas.leave_out(line, text)
    kinds = zip(stanzas.guid, stanzas.private, stanzas.headed, strict=True)
    if count := len({guid for guid, private, headed in kinds if private and headed}):
        stanzas.warnings.append(f"{count_of(count, 'switch')} with private tables (PLFT); only table 0 is used")
    return stanzas, strange


def _read_entries(lines: Lines, entry: npt.NDArray[np.int64]) -> tuple[Entries, set[int]]:
    """Read the entries: lines that map a LID to a port."""
    start = lines.start[entry]
    lid, good = lines.number(start + len(_ENTRY_PREFIX), 4, 16)
    good &= lines.have(b" : ", start + 6)
    port, is_port = lines.number(start + _PORT_AT, 3, 10)
    after = lines.text[start + _PORT_AT + 3]
    is_port &= (after == ord(" ")) | (after == ord("\n"))
    is_port &= port < UNREACHABLE
    good &= is_port | lines.have(_UNREACHABLE_WORD, start + _PORT_AT)
    good &= lid <= LAST_UNICAST_LID
    return Entries(entry[good], lid[good], np.where(is_port, port, UNREACHABLE).astype(np.uint8)[good]), set(
        (entry[~good] + 1).tolist()
    )
