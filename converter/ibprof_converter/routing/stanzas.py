# SPDX-License-Identifier: Apache-2.0
"""Read forwarding tables from dumps with a stanza for each switch. A C kernel reads the entries.

ibdiagnet (`ibdiagnet.fdbs`) and OpenSM (`opensm.fdbs`) write such stanzas. Ports are decimal, LIDs hexadecimal:

    osm_ucast_mgr_dump_ucast_routes: Switch 0x0002c90200f00000
    LID    : Port : Hops : Optimal
    0x0001 : UNREACHABLE
    0x0002 : 001  : 02   : yes
    0x0018 : 032  : 05   : No 3 hop path possible via port 19!
    0x0003 : 000  : HOPS UNKNOWN

The first word of a header differs between tools. Text after the port is ignored. Tables may differ in length. ibdiagnet
2 adds `#` lines and `PLFT_NUM: n`. If a switch has private tables, only table 0 is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum, auto
from os import PathLike, fspath

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.native.headers import kernels_headers
from ibprof.native.libraries import load_kernels
from ibprof.text.quantities import count_of
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.node_names import show_some
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

# Largest size of the tables. A table has a cell for each LID: without a limit, a high LID in a damaged file could
# exhaust the memory.
_CELLS_PER_ENTRY = 64
_CELLS_ALWAYS = 1 << 24

_NOWHERE = -1

_HEADLESS_LINES = 1000

# Matches a header, but not the first line of an ibnetdiscover stanza in the same log.
_HEADER_WORDS = re.compile(rb"\bSwitch\b(?!\s*[0-9]{1,3}\s*\"[SHR]-)|Unicast lids|of switch|lids \[")


# Matches the end of the line of a complete entry.
_WHOLE = re.compile(rb"(?:yes|!|\)|'|UNKNOWN|UNREACHABLE)\s*\Z")

_OTHER = kernels_headers().types["ibp_other_line"]


@dataclass(slots=True)
class Stanzas:
    """Tables of a dump: first entry and switch GUID of each table; true for private tables except table 0.

    Attributes:
        log: unused lines.
        lost: indices of tables with a damaged header, whose switch is unknown.
    """

    log: DamageLog
    entry: list[int] = field(default_factory=list)
    guid: list[int] = field(default_factory=list)
    private: list[bool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)

    def begin(self, entry: int, guid: int, private: bool = False) -> None:
        """Begin a table."""
        self.entry.append(entry)
        self.guid.append(guid)
        self.private.append(private)

    def begin_private(self, entry: int, number: int) -> None:
        """Begin table `number` of the switch in the last header; tables with numbers above 0 are private."""
        if len(self.entry) - 1 in self.lost:  # the switch's header is damaged
            self.lost.add(len(self.entry))
            self.begin(entry, self.guid[-1], private=True)
        else:
            self.begin(entry, self.guid[-1], private=number > 0)

    def leave_out(self, line: OtherLine, header: str, form: EntryForm) -> None:
        """Note a line that is neither a header nor a valid entry."""
        switch = self.guid[-1] if self.guid else None
        if line.is_entry:
            error = InputError(self.log.path, line.number, form.shown, quote_found(line.text))
            self.log.lose(line.number, error, switch)
        elif switch is not None and _HEADER_WORDS.search(line.text):
            error = InputError(self.log.path, line.number, header, quote_found(line.text))
            self.log.lose(line.number, error)
            self.lost.add(len(self.entry))
            self.begin(line.entries, switch, private=True)
        else:
            self.log.skip(line.number, line.text, f"{header} or {form.shown}", switch)


def note_cut_end(stanzas: Stanzas, entries: Entries) -> None:
    """If the dump ends within the line of an entry, note that further entries and tables may be missing."""
    data = entries.data
    begin = data.rfind(b"\n") + 1
    last = data[begin:]
    if last.startswith(b"0x") and not _WHOLE.search(last) and stanzas.guid:
        lost = "entries of this switch and all later tables may be missing"
        what = f"the dump ends within a line, so {lost}: {quote_found(last)}"
        stanzas.log.miss(what, stanzas.guid[-1], [data.count(b"\n", 0, begin) + 1])


def fill_tables(stanzas: Stanzas, entries: Entries) -> ForwardingTables:
    """Return the tables with the entries. Private tables other than number 0 are left out.

    A LID with several ports in a table gets no port: any of the ports may be wrong.

    Raises:
        InputError: there are no tables, or the tables are nearly empty.
    """
    path, count = stanzas.log.path, len(entries.lid)
    if not stanzas.entry and count:
        raise InputError(path, entries.line_of(0), "a header that names a switch", "an entry")
    if not stanzas.entry:
        raise stanzas.log.first_error or InputError(path, None, "forwarding tables", "none")
    if not count and stanzas.log.first_error:
        raise stanzas.log.first_error
    _lose_headless(stanzas, entries)
    for number in stanzas.lost:
        end = stanzas.entry[number + 1] if number + 1 < len(stanzas.entry) else count
        lost = count_of(end - stanzas.entry[number], "entry")
        stanzas.log.miss(f"the switch of {lost} after a damaged header is unknown")
    begin = np.array([*stanzas.entry, count])
    private = np.array(stanzas.private)
    lid = entries.lid[begin[0] :]
    lid = lid[np.repeat(~private, np.diff(begin))] if private.any() else lid
    switch_guid, row = np.unique(np.array(stanzas.guid, np.uint64), return_inverse=True)
    width = int(lid.max(initial=0)) + 1
    if len(switch_guid) * width > _CELLS_PER_ENTRY * len(lid) + _CELLS_ALWAYS:
        raise InputError(path, None, "tables with entries for most LIDs", "almost empty tables")
    rows = np.where(private, _NOWHERE, row).astype(np.int32)
    table, differing = entries.fill(begin.astype(np.uint64), rows, (len(switch_guid), width))
    if differing is not None:
        _report_contradictions(stanzas, entries, begin, rows, switch_guid)
    return ForwardingTables(fspath(path), switch_guid, table, tuple(stanzas.warnings), stanzas.log.report())


def _lose_headless(stanzas: Stanzas, entries: Entries) -> None:
    """Note entries before the first header as lost: their switch is unknown."""
    for entry in range(min(stanzas.entry[0], _HEADLESS_LINES)):
        line = entries.line_of(entry)
        stanzas.log.lose(line, InputError(stanzas.log.path, line, "a header that names a switch", "an entry"))
    if stanzas.entry[0] > _HEADLESS_LINES:
        stanzas.log.miss(f"{stanzas.entry[0]} entries come before the first header that names a switch")


def _report_contradictions(
    stanzas: Stanzas,
    entries: Entries,
    begin: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
    switch_guid: npt.NDArray[np.uint64],
) -> None:
    row = np.repeat(rows, np.diff(begin))
    first = int(begin[0])
    kept = np.flatnonzero(row != _NOWHERE)
    cell = row[kept].astype(np.int64) << 16 | entries.lid[first:][kept]
    # Encode each (row, LID, port) as one number.
    pairs = np.unique(cell << 8 | entries.port[first:][kept])
    twice, ports = np.unique(pairs >> 8, return_counts=True)
    twice, ports = twice[ports > 1], ports[ports > 1]
    for switch in np.unique(twice >> 16).tolist():
        of = twice >> 16 == switch
        lids = [f"{lid:#06x}" for lid in (twice[of] & 0xFFFF).tolist()]
        lines = [entries.line_of(first + int(entry)) for entry in kept[np.isin(cell, twice[of])]]
        what = (
            f"{len(lids)} LID{'s have' if len(lids) > 1 else ' has'} entries with several ports (up to "
            f"{int(ports[of].max())}), which are not used: {show_some(lids)}"
        )
        stanzas.log.miss(what, int(switch_guid[switch]), lines)


class EntryForm(IntEnum):
    """Form of an entry: the text in its line after the LID (`0x` and four hexadecimal digits)."""

    _generate_next_value_ = kernels_headers().numbers_of("ibp_entry_form", "IBP_ENTRY_")
    FDBS = auto()
    LFT = auto()

    @property
    def shown(self) -> str:
        """Text with the form of a line, for error messages."""
        if self is EntryForm.FDBS:
            return "`0x<LID> : <port, 3 digits>` or `0x<LID> : UNREACHABLE`"
        return "`0x<LID> <port, 3 digits>`"


@dataclass(frozen=True, slots=True)
class OtherLine:
    """A line that is no valid entry: line number from 1, number of entries before the line, and text."""

    number: int
    entries: int
    text: bytes

    @property
    def is_entry(self) -> bool:
        """True if the beginning of the line is that of an entry."""
        return self.text.startswith(b"0x")


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of all tables of a dump, in the dump's order.

    Attributes:
        lid: uint16 [entry].
        port: uint8 [entry], egress port, or `UNREACHABLE`.
        others: structured [line], lines that are no valid entries: begin and end in `data`, number of entries before
            the line.
    """

    lid: npt.NDArray[np.uint16]
    port: npt.NDArray[np.uint8]
    others: npt.NDArray[np.void]
    data: bytes
    form: EntryForm

    @classmethod
    def read(cls, data: bytes, form: EntryForm) -> Entries:
        """Split a dump into lines, and read the entries."""
        kernels = load_kernels()
        text = np.frombuffer(data, np.uint8)
        lines = kernels.lib.ibp_count_line_breaks(kernels.pointer(text), len(text)) + 1
        # These arrays are larger than needed, but pages that are never written use no memory.
        lid, port, others = np.empty(lines, np.uint16), np.empty(lines, np.uint8), np.empty(lines, _OTHER)
        read = kernels.ffi.new("struct ibp_entries *")
        read.lid, read.port = kernels.pointer(lid), kernels.pointer(port)
        read.other = kernels.ffi.cast("struct ibp_other_line *", others.ctypes.data)
        kernels.lib.ibp_read_entries(kernels.pointer(text), len(text), int(form), read)
        return cls(lid[: read.count], port[: read.count], others[: read.others].copy(), data, form)

    def other_lines(self) -> Iterator[OtherLine]:
        """Yield the lines that are not valid entries."""
        for before, (begin, end, entries) in enumerate(self.others.tolist()):
            yield OtherLine(entries + before + 1, entries, self.data[begin:end])

    def line_of(self, entry: int) -> int:
        """Return the line number of an entry, from 1."""
        return entry + int(np.searchsorted(self.others["entries"], entry, side="right")) + 1

    def fill(
        self, stanza_begin: npt.NDArray[np.uint64], row: npt.NDArray[np.int32], shape: tuple[int, int]
    ) -> tuple[npt.NDArray[np.uint8], int | None]:
        """Fill the rows of a table with the entries of stanzas.

        Args:
            stanza_begin: uint64 [stanza + 1], first entry of each stanza, then the number of entries.
            row: int32 [stanza], row of each stanza in the table; -1 to leave the stanza out.
            shape: shape of the table; larger than the highest row and the highest LID.

        Returns:
            Two values. Ports: uint8 [row, LID], `UNREACHABLE` for LIDs without an entry or with different entries.
            Index of the first differing entry, or None.
        """
        kernels = load_kernels()
        table = np.full(shape, UNREACHABLE, np.uint8)
        given = kernels.ffi.new("struct ibp_entries *")
        given.lid, given.port = kernels.pointer(self.lid), kernels.pointer(self.port)
        arrays = kernels.pointer(stanza_begin), kernels.pointer(row), len(row), kernels.pointer(table), shape[1]
        differing = kernels.lib.ibp_fill_tables(given, *arrays)
        return table, None if differing < 0 else int(differing)


_HEAD = re.compile(rb"[ \t]{0,9}(?:\w+): Switch 0x([0-9A-Fa-f]{1,16})\s*")
_SIGN = re.compile(rb"^\w+: Switch 0x[0-9A-Fa-f]{1,16}\s*$", re.MULTILINE)
_PLFT = re.compile(rb"PLFT_NUM:\s*(\d{1,3})\s*")
_OTHER_LINE = re.compile(rb"LID\s*:\s*Port\b.*|#.*|File version:.*|\s*")


def looks_like_fdbs(head: bytes) -> bool:
    """Return true if the beginning of a file has a stanza of a `.fdbs`."""
    return _SIGN.search(head) is not None


def parse_fdbs(path: str | PathLike[str], data: bytes) -> ForwardingTables:
    """Parse a `.fdbs`.

    Raises:
        InputError: the file has no tables.
    """
    entries = Entries.read(data, EntryForm.FDBS)
    stanzas = _read_stanzas(path, entries)
    note_cut_end(stanzas, entries)
    return fill_tables(stanzas, entries)


def _read_stanzas(path: str | PathLike[str], entries: Entries) -> Stanzas:
    """Return the stanzas of a dump, with the switch that each stanza's header names."""
    stanzas = Stanzas(DamageLog(path))
    for line in entries.other_lines():
        if head := _HEAD.fullmatch(line.text):
            stanzas.begin(line.entries, int(head[1], 16))
        elif (plft := _PLFT.fullmatch(line.text)) and stanzas.guid:
            stanzas.begin_private(line.entries, int(plft[1]))
        elif not _OTHER_LINE.fullmatch(line.text):
            stanzas.leave_out(line, "a header `...: Switch 0x<NODE GUID>`", EntryForm.FDBS)
    private = {
        guid for number, guid in enumerate(stanzas.guid) if stanzas.private[number] and number not in stanzas.lost
    }
    if private:
        having = count_of(len(private), "switch")
        stanzas.warnings.append(f"{having} with private tables (PLFT); only table 0 is used")
    return stanzas
