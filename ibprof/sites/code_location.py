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
"""Parts of C++ names with brackets and blanks outside parameters, templates and types."""

_QUALIFIERS = re.compile(r"(?: const| volatile| &&?)*(?=::)")


class Frame(NamedTuple):
    """A function, and a line in it, from 1."""

    function: str
    file: str
    line: int


class Symbol(NamedTuple):
    """A function, and the offset of an address in it, in bytes."""

    function: str
    offset: int


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """A place in a program, with all known facts.

    Attributes:
        file, line: source file and line; empty and 0 if unknown.
        object: path of the program or library.
        function: the function around the place; empty if unknown.
        offset: offset in the function; offset in the object if the function is unknown.
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

    A file name gets the shortest tail of its path that distinguishes it from equal names. A C++ function is named
    without parameters, unless only they distinguish it from another function. A function in several objects is
    followed by the object in brackets.
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
    """Return the qualified name of a C++ function without parameters and return type; other names unchanged.

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
    """Return the place after the closing bracket and the qualifiers that follow it."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            qualifiers = _QUALIFIERS.match(text, place + 1)
            return qualifiers.end() if qualifiers else place + 1
    return len(text)


def shortest_tails(paths: Iterable[str]) -> dict[str, str]:
    """Return a mapping from each path to its shortest tail that no other path ends with: at least the base name."""
    parts = {path: posixpath.normpath(path).split("/") for path in paths}
    ends = Counter(end for unique in {tuple(each) for each in parts.values()} for end in _ends(unique))
    return {
        path: _text(next((end for end in _ends(each) if ends[end] == 1), tuple(each))) for path, each in parts.items()
    }


def _ends(parts: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return (tuple(parts[-count:]) for count in range(1, len(parts) + 1))


def _text(end: tuple[str, ...]) -> str:
    return "/".join(end) or "/"
