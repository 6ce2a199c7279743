# SPDX-License-Identifier: Apache-2.0
"""Read parts of an ELF file: machine, dynamic linker, build ID, symbols, and the link to debug information."""

from __future__ import annotations

import os
import stat
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ibprof.sites.code_location import Symbol

MAGIC = b"\x7fELF"

_SYMTAB, _NOTE, _NOBITS, _DYNSYM = 2, 7, 8, 11
"""Section types."""
_LOAD_SEGMENT, _DYNAMIC_SEGMENT, _LINKER_SEGMENT, _NOTE_SEGMENT = 1, 2, 3, 4
_BUILD_ID = 3
"""Note type of a build ID."""
_FUNCTIONS = (2, 10)
"""Types of function symbols: STT_FUNC and STT_GNU_IFUNC (a function that selects its code at load time)."""

_MACHINES = {3: "i386", 21: "powerpc64", 22: "s390", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}
_LONGEST_PATH = 4096
_LARGEST_READ = 1 << 30
_DEBUG_SECTIONS = ({".debug_info", ".debug_line"}, {".zdebug_info", ".zdebug_line"})


class ElfSection(NamedTuple):
    """An entry of the section table."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Layout(NamedTuple):
    """Formats of the file header (after its 16 bytes of identification), and of table entries."""

    header: str
    section: str
    segment: str
    symbol: str


_WIDE = _Layout("HHIQQQIHHHHHH", "IIQQQQIIQQ", "IIQQQQQQ", "IBBHQQ")
_NARROW = _Layout("HHIIIIIHHHHHH", "IIIIIIIIII", "IIIIIIII", "IIIBBH")


class ElfFile:
    """An open ELF file. Errors: OSError; ValueError for a damaged file or another format.

    Attributes:
        machine: architecture and word size.
        dynamic: true if a dynamic linker loads the file.
        interpreter: the dynamic linker that starts the program; empty for libraries and static programs.
        build_id: hex digits; empty if the file has none.
        sections: sections by name.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        # Do not wait: the path may be a FIFO.
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._read_tables()
        except BaseException:
            self.close()
            raise

    def _read_tables(self) -> None:
        status = os.fstat(self._file)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a regular file")
        self._size = status.st_size
        identification = self._read(0, 16)
        if not identification.startswith(MAGIC) or len(identification) < 16:
            raise ValueError("not an ELF file")
        self._order = "<" if identification[5] == 1 else ">"
        self._is_wide = identification[4] == 2
        self._layout = _WIDE if self._is_wide else _NARROW
        header = next(self._unpack(self._layout.header, self._read(16, 48)), None)
        if not header:
            raise ValueError("a truncated ELF file")
        segments, sections, (segment_count, _, section_count, names) = header[4], header[5], header[9:13]
        self._segments = list(self._table(self._layout.segment, segments, segment_count))
        all_sections = [ElfSection(*entry) for entry in self._table(self._layout.section, sections, section_count)]
        texts = self.read(all_sections[names]) if names < len(all_sections) else b""
        self._sections = all_sections
        self.sections = {_text(texts, section.name): section for section in all_sections}
        self.machine = f"{_MACHINES.get(header[1], f'machine {header[1]}')}, {64 if self._is_wide else 32} bits"
        self.dynamic = any(segment[0] == _DYNAMIC_SEGMENT for segment in self._segments)
        linkers = self._segment_contents(_LINKER_SEGMENT, _LONGEST_PATH)
        self.interpreter = next(linkers, b"").rstrip(b"\0").decode("utf-8", "backslashreplace")
        self.build_id = next(self._build_ids(), "")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    @property
    def has_lines(self) -> bool:
        """True if the file has tables of source lines."""
        filled = {name for name, section in self.sections.items() if section.size and section.kind != _NOBITS}
        return any(names <= filled for names in _DEBUG_SECTIONS)

    @property
    def has_all_symbols(self) -> bool:
        """True if the file has the symbols of all functions, not only of exported functions."""
        return any(section.kind == _SYMTAB for section in self._sections)

    @property
    def debug_link(self) -> tuple[str, int] | None:
        """Base name and CRC-32 of the separate file with the debug information; None if no such file is named."""
        content = self.read(self.sections[".gnu_debuglink"]) if ".gnu_debuglink" in self.sections else b""
        name = content.partition(b"\0")[0]
        if not name or b"/" in name or len(content) < 4:
            return None
        return os.fsdecode(name), struct.unpack(f"{self._order}I", content[-4:])[0]

    def read(self, section: ElfSection) -> bytes:
        """Return the content of a section; empty if the file does not contain the content (SHT_NOBITS)."""
        return b"" if section.kind == _NOBITS else self._read(section.offset, section.size)

    def find_symbols(self, addresses: Sequence[int]) -> list[Symbol | None]:
        """Return the function that contains each address; None where no symbol covers the address."""
        functions = sorted(self._functions())
        begins = [begin for begin, _, _ in functions]
        found: list[Symbol | None] = []
        for address in addresses:
            place = bisect_right(begins, address) - 1
            begin, end, name = functions[place] if place >= 0 else (0, 0, "")
            # A function without a size (in assembler code) extends to the next function.
            covers = name and (address < end or begin == end)
            found.append(Symbol(name, address - begin) if covers else None)
        return found

    def _functions(self) -> Iterator[tuple[int, int, str]]:
        """Yield begin, end and name of functions."""
        wanted = _SYMTAB if self.has_all_symbols else _DYNSYM
        for table in (section for section in self._sections if section.kind == wanted):
            names = self.read(self._sections[table.link]) if table.link < len(self._sections) else b""
            for symbol in self._unpack(self._layout.symbol, self.read(table)):
                if self._is_wide:
                    name, info, _, where, begin, size = symbol
                else:
                    name, begin, size, info, _, where = symbol
                if info & 15 in _FUNCTIONS and where:
                    yield begin, begin + size, _text(names, name)

    def _segment_contents(self, kind: int, longest: int = _LARGEST_READ) -> Iterator[bytes]:
        """Yield the contents of all segments of a type, each cut after `longest` bytes."""
        offset, size = (2, 5) if self._is_wide else (1, 4)
        for segment in self._segments:
            if segment[0] == kind:
                yield self._read(segment[offset], min(segment[size], longest))

    def _build_ids(self) -> Iterator[str]:
        noted = [self._read(section.offset, section.size) for section in self._sections if section.kind == _NOTE]
        for block in [*noted, *self._segment_contents(_NOTE_SEGMENT)]:
            notes = block
            while len(notes) >= 12:
                name_size, content_size, kind = struct.unpack_from(f"{self._order}III", notes)
                content = 12 + _aligned(name_size)
                if kind == _BUILD_ID and notes[12 : 12 + name_size] == b"GNU\0":
                    yield notes[content : content + content_size].hex()
                notes = notes[content + _aligned(content_size) :]

    def _table(self, form: str, offset: int, count: int) -> Iterator[tuple[int, ...]]:
        return self._unpack(form, self._read(offset, count * struct.calcsize(f"={form}")))

    def _unpack(self, form: str, content: bytes) -> Iterator[tuple[int, ...]]:
        """Yield the complete entries of a table."""
        entry = struct.Struct(self._order + form)
        return entry.iter_unpack(content[: len(content) // entry.size * entry.size])

    def _read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file; fewer if the file ends earlier."""
        size = min(size, self._size - offset)
        if size > _LARGEST_READ:
            raise ValueError(f"a table of {size} bytes")
        return os.pread(self._file, size, offset) if size > 0 else b""


def read_elf(path: Path) -> ElfFile | None:
    """Read the tables of a file, and close the file; None if the file is unreadable, damaged or of another format."""
    try:
        with closing(ElfFile(str(path))) as file:
            return file
    except (OSError, ValueError):
        return None


def _text(texts: bytes, offset: int) -> str:
    """Return a text from a table of texts that end with zero bytes."""
    end = texts.find(b"\0", offset)
    return texts[offset : end if end >= 0 else None].decode("utf-8", "backslashreplace")


def _aligned(size: int) -> int:
    return (size + 3) & ~3
