# SPDX-License-Identifier: Apache-2.0
"""Build forwarding tables from stanzas of entries, one stanza for each switch. All table readers use this module."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from os import PathLike, fspath

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

# A table has a cell for each LID up to the largest, and valid files fill most of the cells. Files with more cells than
# these limits allow are refused: a few lines with huge LIDs would use up the memory.
_CELLS_PER_ENTRY = 64
_CELLS_ALWAYS = 1 << 24


@dataclass(slots=True)
class Stanzas:
    """Headers of tables: line (from 0), GUID of the switch, and true for private tables, except the first."""

    line: list[int] = field(default_factory=list)
    guid: list[int] = field(default_factory=list)
    private: list[bool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    headed: list[bool] = field(default_factory=list)

    def leave_out(self, line: int, text: bytes) -> None:
        """Ignore the entries after a line that looks like a header but is invalid."""
        if (self.line and any(word in text for word in (b"Unicast lids", b"of switch", b"lids ["))) or (
            self.line and re.search(rb"\bSwitch\b", text)
        ):
            self.begin(line, self.guid[-1], private=True)
            self.headed[-1] = False

    def begin(self, line: int, guid: int, private: bool = False) -> None:
        """Begin a table."""
        self.line.append(line)
        self.guid.append(guid)
        self.private.append(private)
        self.headed.append(True)


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of all tables of a file, as arrays of equal length.

    Attributes:
        line: int [entry], line of the file, from 0, ascending.
        lid: int32 [entry].
        port: uint8 [entry]; `UNREACHABLE` for no port.
    """

    line: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int32]
    port: npt.NDArray[np.uint8]


def fill_tables(
    path: str | PathLike[str], stanzas: Stanzas, entries: Entries, left_out: set[int]
) -> tuple[ForwardingTables, set[int]]:
    """Put each entry into its table. Entries of private tables after the first private table are left out.

    Args:
        path: path of the file, for messages.
        stanzas: headers of the tables.
        left_out: numbers (from 1) of other unused lines.

    Returns:
        The tables, and the numbers of all unused lines. Entries before the first header, and entries that contradict
        each other, are unused too.

    Raises:
        InputError: there are no tables or no usable entries, or the tables are nearly empty.
    """
    if not stanzas.line or (left_out and not len(entries.line)):
        raise InputError(path, None, "forwarding tables", "none")
    headless = entries.line < stanzas.line[0]
    stanza = np.searchsorted(stanzas.line, entries.line, side="right") - 1
    switch_guid, row_of_stanza = np.unique(np.array(stanzas.guid, np.uint64), return_inverse=True)
    kept = ~np.array(stanzas.private)[stanza] & ~headless
    line, lid, port = entries.line[kept], entries.lid[kept], entries.port[kept]
    row = row_of_stanza[stanza[kept]]
    width = int(lid.max(initial=0)) + 1
    if len(switch_guid) * width > _CELLS_PER_ENTRY * len(line) + _CELLS_ALWAYS:
        raise InputError(path, None, "tables with entries for most LIDs", "almost empty tables")
    ports: dict[tuple[int, int], set[int]] = {}
    for key in zip(row.tolist(), lid.tolist(), port.tolist(), strict=True):
        ports.setdefault(key[:2], set()).add(key[2])
    table = np.full((len(switch_guid), width), UNREACHABLE, np.uint8)
    for cell, found in ports.items():
        table[cell] = found.pop() if len(found) == 1 else UNREACHABLE
    unsure = [len(ports[key]) != 0 for key in zip(row.tolist(), lid.tolist(), strict=True)]
    unused = {*(entries.line[headless] + 1).tolist(), *(line[np.array(unsure, np.bool_)] + 1).tolist()}
    return ForwardingTables(fspath(path), switch_guid, table, tuple(stanzas.warnings)), left_out | unused
