# SPDX-License-Identifier: Apache-2.0
"""A place in a program by source line, function or address, and its short name: `file.c:LINE`, `function+0x1f`."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_WHOLE = re.compile(
    r"\(anonymous namespace\)|\boperator ?(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|[<>]=?|(?:new|delete)(?:\[\])?)(?: (?=<))?"
)
"""Parts of C++ names whose brackets and blanks are no parameters, templates or types."""

_QUALIFIERS = re.compile(r"(?: const| volatile| &&?)*(?=::)")


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


def site_names(locations: Sequence[CodeLocation]) -> list[str]:
    """Return a name for each location; locations that differ in file, function, object or offset have different names.

    Files with the same base name have the shortest tail of their paths that distinguishes them. A function of C++ is
    named without parameters, unless these distinguish it from another one. A function that is in several objects has
    the object after it, in brackets.
    """
    files = shortest_tails({location.file for location in locations if location.has_line})
    objects = shortest_tails({location.object for location in locations if not location.has_line})
    homes = Counter(function for _, function in {(location.object, location.function) for location in locations})
    short = {function: drop_parameters(function) for function in {location.function for location in locations}}
    alike = Counter(short.values())
    names = []
    for location in locations:
        if location.has_line:
            names.append(f"{files[location.file]}:{location.line}")
        elif not location.function:
            names.append(f"{objects[location.object]}+{location.offset:#x}")
        else:
            where = f" ({objects[location.object]})" if homes[location.function] > 1 else ""
            function = short[location.function] if alike[short[location.function]] == 1 else location.function
            names.append(f"{function}+{location.offset:#x}{where}")
    return names


def drop_parameters(function: str) -> str:
    """Return the qualified name of a C++ function without parameters and return type; other names as they are.

    >>> drop_parameters("void gmx::(anonymous namespace)::sum<float>(float const*, std::vector<int>&) const")
    'gmx::(anonymous namespace)::sum<float>'
    """
    kept, depth, at = "", 0, 0
    while at < len(function):
        if fixed := _WHOLE.match(function, at):
            kept, at = kept + fixed[0], fixed.end()
            continue
        character = function[at]
        if character == "(" and not depth:
            at = _closing(function, at)
            if kept != "decltype" and not function.startswith("::", at):
                break
            continue
        depth += (character in "<{[(") - (character in ">}])")
        if character == " " and not depth and not kept.endswith("operator"):
            kept = ""  # a return type
        else:
            kept += character
        at += 1
    return kept or function


def _closing(text: str, at: int) -> int:
    """Return the place after the bracket that closes the one at a place, and after the qualifiers behind it."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            qualifiers = _QUALIFIERS.match(text, place + 1)
            return qualifiers.end() if qualifiers else place + 1
    return len(text)


def shortest_tails(paths: Iterable[str]) -> dict[str, str]:
    """Return for each path its base name, or as many components of its end as no other path ends with."""
    parts = {path: posixpath.normpath(path).split("/") for path in paths}
    ends = Counter(end for unique in {tuple(each) for each in parts.values()} for end in _ends(unique))
    return {
        path: _text(next((end for end in _ends(each) if ends[end] == 1), tuple(each))) for path, each in parts.items()
    }


def _ends(parts: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return (tuple(parts[-count:]) for count in range(1, len(parts) + 1))


def _text(end: tuple[str, ...]) -> str:
    return "/".join(end) or "/"
