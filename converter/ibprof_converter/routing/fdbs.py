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
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.files import find_sibling, read_dump, strip_packing
from ibprof_converter.fabric.listing import LAST_UNICAST_LID
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

_HEAD = re.compile(rb"(?:\w+): Switch 0x([0-9A-Fa-f]{1,16})\s*")
_PLFT = re.compile(rb"PLFT_NUM:\s*(\d{1,3})\s*")
_COLUMNS = re.compile(rb"LID\s*:\s*Port\b.*")

_ENTRY = "`0x<LID> : <port, 3 digits>` or `0x<LID> : UNREACHABLE`"
_ENTRY_PREFIX = b"0x"
_PORT_AT = 9  # bytes before the port: `0x0002 : `
_UNREACHABLE_WORD = b"UNREACHABLE"
_LONGEST_READ = _PORT_AT + len(_UNREACHABLE_WORD)

# A table is dense: an honest file fills most of its cells. So a few lines cannot ask for all the memory.
_CELLS_PER_ENTRY = 64
_CELLS_ALWAYS = 1 << 24


def find_fdbs(lst_path: str | PathLike[str]) -> Path | None:
    """Find the tables that belong to a `.lst`: the file of the same stem beside it, plain, .gz or .xz.

    OpenSM's `opensm-subnet.lst` has its tables in `opensm.fdbs`.
    """
    stem = strip_packing(lst_path).removesuffix(".lst")
    return find_sibling(lst_path, f"{'opensm' if stem == 'opensm-subnet' else stem}.fdbs")


def read_fdbs(path: str | PathLike[str]) -> ForwardingTables:
    """Read a `.fdbs`.

    Raises:
        InputError: the file has no tables, or a line is not what it should be.
    """
    lines = _Lines.split(read_dump(path))
    is_entry = lines.starts_with(_ENTRY_PREFIX)
    stanzas = _read_stanzas(path, lines, np.flatnonzero(~is_entry))
    entry = np.flatnonzero(is_entry)
    if len(entry) and (not stanzas.line or entry[0] < stanzas.line[0]):
        raise InputError(path, int(entry[0]) + 1, "a head `...: Switch 0x<NODE GUID>`", "an entry")
    if not stanzas.line:
        raise InputError(path, None, "forwarding tables", "none")
    lid, port = _read_entries(path, lines, entry)
    stanza = np.searchsorted(stanzas.line, entry, side="right") - 1
    switch_guid, row_of_stanza = np.unique(np.array(stanzas.guid, np.uint64), return_inverse=True)
    kept = ~np.array(stanzas.private)[stanza]
    entry, lid, port, row = entry[kept], lid[kept], port[kept], row_of_stanza[stanza[kept]]
    width = int(lid.max(initial=0)) + 1
    if len(switch_guid) * width > _CELLS_PER_ENTRY * len(entry) + _CELLS_ALWAYS:
        raise InputError(path, None, "tables of about the length of their highest LID", "almost empty ones")
    table = np.full((len(switch_guid), width), UNREACHABLE, np.uint8)
    table[row, lid] = port
    differing = np.flatnonzero(table[row, lid] != port)
    if len(differing):
        raise InputError(path, int(entry[differing[0]]) + 1, "one port for a LID", "another one further on")
    return ForwardingTables(fspath(path), switch_guid, table, tuple(stanzas.warnings))


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a file as arrays, so that millions are looked at in a few steps.

    Attributes:
        text: uint8 [byte], the file and some room behind it.
        start, end: int64 [line], where each line begins, and its line break.
    """

    text: npt.NDArray[np.uint8]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]

    @classmethod
    def split(cls, data: bytes) -> _Lines:
        text = np.frombuffer(data + b"\n" * (_LONGEST_READ + 1), np.uint8)
        end = np.flatnonzero(text[: len(data) + 1] == ord("\n"))
        start = np.concatenate([[0], end[:-1] + 1])
        return cls(text, start, end)

    def __getitem__(self, line: int) -> bytes:
        return self.text[self.start[line] : self.end[line]].tobytes()

    def starts_with(self, word: bytes) -> npt.NDArray[np.bool_]:
        return self.have(word, self.start)

    def have(self, word: bytes, at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether `word` stands at each of some positions; having no line break, it cannot reach beyond its line."""
        found = np.ones(len(at), np.bool_)
        for offset, byte in enumerate(word):
            found &= self.text[at + offset] == byte
        return found


@dataclass(slots=True)
class _Stanzas:
    """Where tables begin: line (from 0), switch, whether it is a private table other than the first."""

    line: list[int] = field(default_factory=list)
    guid: list[int] = field(default_factory=list)
    private: list[bool] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def begin(self, line: int, guid: int, private: bool) -> None:
        self.line.append(line)
        self.guid.append(guid)
        self.private.append(private)


def _read_stanzas(path: str | PathLike[str], lines: _Lines, others: npt.NDArray[np.int64]) -> _Stanzas:
    """Read the lines that are no entries."""
    stanzas = _Stanzas()
    for line in others.tolist():
        text = lines[line]
        if head := _HEAD.fullmatch(text):
            stanzas.begin(line, int(head[1], 16), private=False)
        elif (plft := _PLFT.fullmatch(text)) and stanzas.guid:
            stanzas.begin(line, stanzas.guid[-1], private=int(plft[1]) > 0)
        elif text.strip() and not text.startswith(b"#") and not _COLUMNS.fullmatch(text):
            raise InputError(path, line + 1, f"a head `...: Switch 0x<NODE GUID>` or {_ENTRY}", quote_found(text))
    if any(stanzas.private):
        count = len({guid for guid, private in zip(stanzas.guid, stanzas.private, strict=True) if private})
        stanzas.warnings.append(f"{count} switches have private tables (PLFT); only table 0 is used")
    return stanzas


def _read_entries(
    path: str | PathLike[str], lines: _Lines, entry: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Read the lines that map a LID to a port: LID and port of each."""
    start = lines.start[entry]
    digits = [_HEX_VALUE[lines.text[start + offset]] for offset in range(2, 6)]
    good = lines.have(b" : ", start + 6)
    lid = np.zeros(len(entry), np.int32)
    for digit in digits:
        good &= digit < 16
        lid = lid << 4 | digit
    port = np.zeros(len(entry), np.int32)
    is_port = np.ones(len(entry), np.bool_)
    for offset in range(_PORT_AT, _PORT_AT + 3):
        digit = _HEX_VALUE[lines.text[start + offset]]
        is_port &= digit < 10
        port = port * 10 + digit
    after = lines.text[start + _PORT_AT + 3]
    is_port &= (after == ord(" ")) | (after == ord("\n"))
    is_port &= port < UNREACHABLE
    good &= is_port | lines.have(_UNREACHABLE_WORD, start + _PORT_AT)
    good &= lid <= LAST_UNICAST_LID
    if not good.all():
        line = int(entry[np.flatnonzero(~good)[0]])
        raise InputError(path, line + 1, _ENTRY, quote_found(lines[line]))
    return lid, np.where(is_port, port, UNREACHABLE).astype(np.uint8)


def _make_hex_values() -> npt.NDArray[np.int32]:
    values = np.full(256, 16, np.int32)
    for value, digit in enumerate("0123456789abcdef"):
        values[[ord(digit), ord(digit.upper())]] = value
    return values


_HEX_VALUE = _make_hex_values()
"""int32 [byte], the value of a hex digit, 16 for what is none."""
