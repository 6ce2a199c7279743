# SPDX-License-Identifier: Apache-2.0
"""The lines of a dump of forwarding tables: entries, which are millions and left to a kernel, and other lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto

import numpy as np
import numpy.typing as npt

from ibprof.native.headers import kernels_headers
from ibprof.native.kernel_library import load_kernels
from ibprof_converter.routing.tables import UNREACHABLE

_OTHER = kernels_headers().types["ibp_other_line"]


class EntryForm(IntEnum):
    """Form of a line that maps a LID to a port, after `0x` and the LID in four hexadecimal digits."""

    _generate_next_value_ = kernels_headers().numbers_of("ibp_entry_form", "IBP_ENTRY_")
    FDBS = auto()
    LFT = auto()

    @property
    def shown(self) -> str:
        """The form as shown in an error."""
        if self is EntryForm.FDBS:
            return "`0x<LID> : <port, 3 digits>` or `0x<LID> : UNREACHABLE`"
        return "`0x<LID> <port, 3 digits>`"


@dataclass(frozen=True, slots=True)
class OtherLine:
    """A line that is no valid entry: its number in the file, from 1, the number of entries before it, and its text."""

    number: int
    entries: int
    text: bytes

    @property
    def is_entry(self) -> bool:
        """True where the line is meant to be an entry."""
        return self.text.startswith(b"0x")


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of all tables of a dump, in its order.

    Attributes:
        lid: uint16 [entry].
        port: uint8 [entry], `UNREACHABLE` for none.
        others: structured [line], begin and end of all other lines, invalid entries among them, and the number of
            entries before them.
        data: the dump.
        form: form of its entries.
    """

    lid: npt.NDArray[np.uint16]
    port: npt.NDArray[np.uint8]
    others: npt.NDArray[np.void]
    data: bytes
    form: EntryForm

    @classmethod
    def read(cls, data: bytes, form: EntryForm) -> Entries:
        """Split a dump into lines and read those that are entries."""
        kernels = load_kernels()
        text = np.frombuffer(data, np.uint8)
        lines = kernels.lib.ibp_count_line_breaks(kernels.pointer(text), len(text)) + 1
        # Allocated memory that is never written costs nothing.
        lid, port, others = np.empty(lines, np.uint16), np.empty(lines, np.uint8), np.empty(lines, _OTHER)
        read = kernels.ffi.new("struct ibp_entries *")
        read.lid, read.port = kernels.pointer(lid), kernels.pointer(port)
        read.other = kernels.ffi.cast("struct ibp_other_line *", others.ctypes.data)
        kernels.lib.ibp_read_entries(kernels.pointer(text), len(text), int(form), read)
        return cls(lid[: read.count], port[: read.count], others[: read.others].copy(), data, form)

    def other_lines(self) -> Iterator[OtherLine]:
        """Yield the lines that are no valid entries."""
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
            stanza_begin: uint64 [stanza + 1], the first entry of each, then the number of entries.
            row: int32 [stanza], -1 for a stanza to leave out.
            shape: of the table, beyond the highest row and LID.

        Returns:
            uint8 [row, LID], `UNREACHABLE` without an entry and where entries contradict each other; and the first
            entry that another one contradicts.
        """
        kernels = load_kernels()
        table = np.full(shape, UNREACHABLE, np.uint8)
        given = kernels.ffi.new("struct ibp_entries *")
        given.lid, given.port = kernels.pointer(self.lid), kernels.pointer(self.port)
        arrays = kernels.pointer(stanza_begin), kernels.pointer(row), len(row), kernels.pointer(table), shape[1]
        differing = kernels.lib.ibp_fill_tables(given, *arrays)
        return table, None if differing < 0 else int(differing)
