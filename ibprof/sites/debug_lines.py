# SPDX-License-Identifier: Apache-2.0
"""Source lines of addresses, read from debug information by the library symbolic, which is optional."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ibprof.sites.code_location import Frame
from ibprof.sites.elf_file import ElfFile


def read_lines(file: ElfFile, addresses: Sequence[int]) -> list[list[Frame]]:
    """Return the frames at each address, innermost first: a function, and those that it was inlined into.

    An address has no frames where its code was compiled without debug information.

    Raises:
        ImportError: symbolic is not installed.
        Exception: the debug information is damaged.
    """
    from symbolic.debuginfo import Archive  # noqa: PLC0415  (optional)

    lines: Any = next(Archive.open(file.path).iter_objects()).make_symcache()
    readable = SourceNames()
    return [_frames(lines.lookup(address - file.load_address), readable) for address in addresses]


def _frames(found: Sequence[Any], readable: Callable[[str], str]) -> list[Frame]:
    frames = [Frame(readable(each.symbol), each.full_path or "", each.line) for each in found]
    # Line 0: the compiler names no line for this code.
    return frames if frames and frames[0].file and frames[0].line else []


class SourceNames:
    """Turns names of functions as linkers see them into those of the source; C++ needs its library on the machine."""

    def __init__(self) -> None:
        try:
            self._free = ctypes.CDLL(None).free
            self._demangle: Any = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
        except (OSError, AttributeError):
            self._demangle = None
            return
        self._free.argtypes = [ctypes.c_void_p]
        self._demangle.restype = ctypes.c_void_p

    def __call__(self, name: str) -> str:
        """Return the name in the source."""
        # Compilers append `.isra.0`, `.cold` and the like to the names of parts, variants and inner functions.
        name = name.partition(".")[0] or name
        if not self._demangle or not name.startswith("_Z"):
            return name
        made = self._demangle(name.encode("utf-8", "surrogateescape"), None, None, None)
        if not made:
            return name
        text = ctypes.string_at(made).decode("utf-8", "backslashreplace")
        self._free(made)
        return text
