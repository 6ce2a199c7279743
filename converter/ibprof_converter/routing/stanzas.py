# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables from stanzas of entries, one per switch, for all table formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath

import numpy as np

from ibprof.errors import InputError
from ibprof_converter.routing.entries import Entries
from ibprof_converter.routing.tables import ForwardingTables

# A table is dense, and a valid file fills most of its cells. This keeps a few lines from asking for all the memory.
_CELLS_PER_ENTRY = 64
_CELLS_ALWAYS = 1 << 24

_NOWHERE = -1


@dataclass(slots=True)
class Stanzas:
    """The begin of each table: its first entry, its switch, and whether it is a private table other than number 0."""

    entry: list[int] = field(default_factory=list)
    guid: list[int] = field(default_factory=list)
    private: list[bool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def begin(self, entry: int, guid: int, private: bool = False) -> None:
        """Begin a table."""
        self.entry.append(entry)
        self.guid.append(guid)
        self.private.append(private)


def fill_tables(path: str | PathLike[str], stanzas: Stanzas, entries: Entries) -> ForwardingTables:
    """Return the tables that entries form; private tables other than number 0 are left out.

    Raises:
        InputError: there are no tables, a table contradicts itself, or the tables are nearly empty.
    """
    entries.check(path)
    count = len(entries.lid)
    if count and (not stanzas.entry or stanzas.entry[0] > 0):
        raise InputError(path, entries.line_of(0), "a header that names a switch", "an entry")
    if not stanzas.entry:
        raise InputError(path, None, "forwarding tables", "none")
    begin = np.array([*stanzas.entry, count])
    private = np.array(stanzas.private)
    lid = entries.lid[np.repeat(~private, np.diff(begin))] if private.any() else entries.lid
    switch_guid, row = np.unique(np.array(stanzas.guid, np.uint64), return_inverse=True)
    width = int(lid.max(initial=0)) + 1
    if len(switch_guid) * width > _CELLS_PER_ENTRY * len(lid) + _CELLS_ALWAYS:
        raise InputError(path, None, "tables of about the length of their highest LID", "almost empty ones")
    rows = np.where(private, _NOWHERE, row).astype(np.int32)
    table, differing = entries.fill(begin.astype(np.uint64), rows, (len(switch_guid), width))
    if differing is not None:
        raise InputError(path, entries.line_of(differing), "one port for a LID", "a different one later")
    return ForwardingTables(fspath(path), switch_guid, table, tuple(stanzas.warnings))
