# SPDX-License-Identifier: Apache-2.0
"""From stanzas of entries, a stanza a switch, to tables: what all formats of tables have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

# A table is dense: an honest file fills most of its cells. So a few lines cannot ask for all the memory.
_CELLS_PER_ENTRY = 64
_CELLS_ALWAYS = 1 << 24


@dataclass(slots=True)
class Stanzas:
    """Where tables begin: line (from 0), switch, whether it is a private table other than the first."""

    line: list[int] = field(default_factory=list)
    guid: list[int] = field(default_factory=list)
    private: list[bool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def begin(self, line: int, guid: int, private: bool = False) -> None:
        """Begin a table."""
        self.line.append(line)
        self.guid.append(guid)
        self.private.append(private)


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of all tables of a file, arrays of one length.

    Attributes:
        line: int [entry], from 0, ascending.
        lid: int32 [entry].
        port: uint8 [entry], `UNREACHABLE` for none.
    """

    line: npt.NDArray[np.int64]
    lid: npt.NDArray[np.int32]
    port: npt.NDArray[np.uint8]


def fill_tables(path: str | PathLike[str], stanzas: Stanzas, entries: Entries) -> ForwardingTables:
    """Put entries into the tables that they stand in; those of private tables other than the first are left out.

    Raises:
        InputError: there are no tables, a table says two things of a LID, or the tables are nearly empty.
    """
    if len(entries.line) and (not stanzas.line or entries.line[0] < stanzas.line[0]):
        raise InputError(path, int(entries.line[0]) + 1, "a header that names a switch", "an entry")
    if not stanzas.line:
        raise InputError(path, None, "forwarding tables", "none")
    stanza = np.searchsorted(stanzas.line, entries.line, side="right") - 1
    switch_guid, row_of_stanza = np.unique(np.array(stanzas.guid, np.uint64), return_inverse=True)
    kept = ~np.array(stanzas.private)[stanza]
    line, lid, port = entries.line[kept], entries.lid[kept], entries.port[kept]
    row = row_of_stanza[stanza[kept]]
    width = int(lid.max(initial=0)) + 1
    if len(switch_guid) * width > _CELLS_PER_ENTRY * len(line) + _CELLS_ALWAYS:
        raise InputError(path, None, "tables of about the length of their highest LID", "almost empty ones")
    table = np.full((len(switch_guid), width), UNREACHABLE, np.uint8)
    table[row, lid] = port
    differing = np.flatnonzero(table[row, lid] != port)
    if len(differing):
        raise InputError(path, int(line[differing[0]]) + 1, "one port for a LID", "a different one later")
    return ForwardingTables(fspath(path), switch_guid, table, tuple(stanzas.warnings))
