# SPDX-License-Identifier: Apache-2.0
"""A place in a program: by source line, by function, or by address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Frame(NamedTuple):
    """A function, and the line in it; lines count from 1."""

    function: str
    file: str
    line: int


class Symbol(NamedTuple):
    """A function, and how many bytes after its begin an address is."""

    function: str
    offset: int


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """A place in a program, as far as it is known.

    Attributes:
        file, line: of the source; empty and 0 where unknown.
        object: path of the program or library.
        function: that contains it; empty where unknown.
        offset: of the place in the function; in the object where the function is unknown.
    """

    file: str = ""
    line: int = 0
    object: str = ""
    function: str = ""
    offset: int = 0

    @property
    def has_line(self) -> bool:
        """True if the line is known."""
        return bool(self.file and self.line)
