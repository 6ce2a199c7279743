# SPDX-License-Identifier: Apache-2.0
"""Global heaps of HDF5 files, where texts lie: checked before the library reads them.

The library steps from object to object by the sizes that a heap states. A step of 0 keeps it there for good: a single
damaged byte can make an object free space, whose size includes its head and may be stated as 0 (seen with HDF5 2.2).

Source: HDF5 File Format Specification, version 3.0, section III.E, "Disk Format: Level 1E - Global Heap".
"""

from __future__ import annotations

import mmap
import re
import struct
from pathlib import Path

from ibprof.errors import InputError

_HEAP = re.compile(rb"GCOL\x01\0\0\0")
_HEAP_HEAD = struct.Struct("<8xQ")
"""Of a heap: its size, which includes this head."""
_OBJECT_HEAD = struct.Struct("<HHxxxxQ")
"""Of an object: its number, its references, its size."""
_FREE = 0
"""The number of what is no object but free space, whose size includes its head."""


def check_heaps(path: Path) -> None:
    """Refuse a file with a heap that the library would never leave.

    Raises:
        InputError: there is one.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for heap in _HEAP.finditer(data):
            if len(data) - heap.start() < _HEAP_HEAD.size or not _has_end(data, heap.start()):
                raise InputError(path, None, "delays as NetCDF-4", f"a damaged heap at byte {heap.start()}")


def _has_end(data: mmap.mmap, start: int) -> bool:
    """Return whether the steps from object to object leave a heap, or the file."""
    (size,) = _HEAP_HEAD.unpack_from(data, start)
    end, place = min(start + size, len(data)), start + _HEAP_HEAD.size
    while place + _OBJECT_HEAD.size <= end:
        number, _, length = _OBJECT_HEAD.unpack_from(data, place)
        step = length if number == _FREE else _OBJECT_HEAD.size + -(-length // 8) * 8
        if step % (1 << 64) == 0:
            return False
        place += step
    return True
