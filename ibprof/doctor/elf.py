# SPDX-License-Identifier: Apache-2.0
"""Read the ELF header of a program, which shows whether the program can be preloaded."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"\x7fELF"
_INTERPRETER, _DYNAMIC = 3, 2
"""Types of program headers: the dynamic linker's path, and the dynamic table."""

_MACHINES = {3: "i386", 21: "powerpc64", 22: "s390", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}


@dataclass(frozen=True, slots=True)
class Elf:
    """A program or library.

    Attributes:
        machine: architecture and word size.
        interpreter: the dynamic linker that starts the program; empty for a library and for a static program.
        dynamic: true if a dynamic linker loads the file.
    """

    machine: str
    interpreter: str
    dynamic: bool


class _HeaderOffsets(NamedTuple):
    """Offsets in a file's header (table of program headers, entry size) and in an entry (offset, length)."""

    table: int
    entry_size: int
    offset: int
    length: int


_WIDE, _NARROW = _HeaderOffsets(32, 54, 8, 32), _HeaderOffsets(28, 42, 4, 16)


def read_elf(path: Path) -> Elf | None:
    """Read the header of a file; return None for a damaged file or another format."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
            if len(head) < 52 or not head.startswith(_MAGIC):
                return None
            wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
            word, places = (f"{order}Q", _WIDE) if wide else (f"{order}I", _NARROW)
            machine = struct.unpack_from(f"{order}H", head, 18)[0]
            size, count = struct.unpack_from(f"{order}HH", head, places.entry_size)
            file.seek(struct.unpack_from(word, head, places.table)[0])
            table = file.read(size * count)
            kinds = {}
            for entry in range(0, len(table) - size + 1, max(size, 1)):
                where = struct.unpack_from(word, table, entry + places.offset)[0]
                length = struct.unpack_from(word, table, entry + places.length)[0]
                kinds[struct.unpack_from(f"{order}I", table, entry)[0]] = (where, length)
            interpreter = b""
            if _INTERPRETER in kinds:
                file.seek(kinds[_INTERPRETER][0])
                interpreter = file.read(min(kinds[_INTERPRETER][1], 4096)).rstrip(b"\0")
    except (OSError, struct.error):
        return None
    name = f"{_MACHINES.get(machine, f'machine {machine}')}, {64 if wide else 32} bits"
    return Elf(name, interpreter.decode("utf-8", "backslashreplace"), _DYNAMIC in kinds)
