# SPDX-License-Identifier: Apache-2.0
"""Name locations in a program by source line, function or address. A separate process finds the locations.

Short names are `file.c:LINE` and `function+0x1f`.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_WHOLE = re.compile(
    r"\(anonymous namespace\)|\boperator ?(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|[<>]=?|(?:new|delete)(?:\[\])?)(?: (?=<))?"
)
"""Parts of C++ names in which brackets or blanks do not delimit parameters, template arguments or types."""

_QUALIFIERS = re.compile(r"(?: const| volatile| &&?)*(?=::)")


class Frame(NamedTuple):
    """A function, and a line of its file, counted from 1."""

    function: str
    file: str
    line: int


class Symbol(NamedTuple):
    """A function, and the offset of an address in it, in bytes."""

    function: str
    offset: int


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """A location in a program.

    Attributes:
        file, line: source file and line; empty and 0 if unknown.
        object: path of the program or library.
        function: the function that contains the location; empty if unknown.
        offset: offset in the function, or in the object if the function is unknown.
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
    """Return a name for each location: file and line, else function and offset, else object and offset.

    Locations in different files, functions or objects never have the same name. A file's name is the shortest unique
    end of its path. Parameters of C++ functions are left out, unless functions differ only in parameters. If several
    objects have a function with the same name, the object follows in brackets.
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
    """Return the index after the closing bracket and the qualifiers that follow it."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            qualifiers = _QUALIFIERS.match(text, place + 1)
            return qualifiers.end() if qualifiers else place + 1
    return len(text)


def shortest_tails(paths: Iterable[str]) -> dict[str, str]:
    """Return path -> shortest end of the path that is unique and has only whole components."""
    parts = {path: posixpath.normpath(path).split("/") for path in paths}
    ends = Counter(end for unique in {tuple(each) for each in parts.values()} for end in _ends(unique))
    return {
        path: _text(next((end for end in _ends(each) if ends[end] == 1), tuple(each))) for path, each in parts.items()
    }


def _ends(parts: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return (tuple(parts[-count:]) for count in range(1, len(parts) + 1))


def _text(end: tuple[str, ...]) -> str:
    return "/".join(end) or "/"


_CHILD = "import sys; sys.path[:] = {!r}; from ibprof.sites.debug_information import main; main()"
_AFTER_KILL_SECONDS = 5


@dataclass(frozen=True, slots=True)
class ObjectAddresses:
    """Addresses in a program or library.

    Attributes:
        object_path: path of the program or library.
        build_id: required build ID, as hex digits; empty if unknown.
        addresses: addresses in the file, as `nm` prints them; for a call, the return address minus one, still on the
            call's line.
        unchanged_since_ns: latest allowed change of a file without build ID, in Unix time; None to allow any change.
    """

    object_path: str
    build_id: str
    addresses: tuple[int, ...]
    unchanged_since_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ResolvedAddresses:
    """Functions and source lines at the addresses of an object.

    Attributes:
        frames: frames of each address, innermost first: a function, then the functions into which it was inlined; empty
            without debug information.
        symbols: symbol of each address; None if no symbol covers the address.
        note: reason for missing source lines; empty if all addresses have source lines.
    """

    frames: tuple[tuple[Frame, ...], ...]
    symbols: tuple[Symbol | None, ...]
    note: str


def _half_of_memory() -> int:
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, 16 << 30)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of reading debug information.

    Attributes:
        seconds: time limit for an object, not counting downloads.
        total_seconds: time limit for all objects.
        memory_bytes: memory limit of the reading process.
    """

    seconds: int = 60
    total_seconds: int = 300
    memory_bytes: int = field(default_factory=_half_of_memory)


def resolve_objects(objects: Sequence[ObjectAddresses], limits: Limits | None = None) -> list[ResolvedAddresses]:
    """Find functions and source lines at each object's addresses. A failure is stated in a note, and raises no error.

    A child process reads the files. If a damaged file ends the child, a new child continues with the next object.
    """
    limits = limits or Limits()
    deadline = time.monotonic() + limits.total_seconds
    done: list[ResolvedAddresses] = []
    while len(done) < len(objects):
        left = objects[len(done) :]
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            note = f"reading debug information took longer than {limits.total_seconds} s"
            return done + [_combine(each, [{"note": note}]) for each in left]
        answers, end = _run_child(left, limits, seconds)
        whole = min(len(answers) // 2, len(left))
        done += [_combine(each, answers[2 * i : 2 * i + 2]) for i, each in enumerate(left[:whole])]
        if whole < len(left):
            done.append(_combine(left[whole], [*answers[2 * whole :], {"note": end}]))
    return done


def _combine(of: ObjectAddresses, answers: Sequence[dict[str, Any]]) -> ResolvedAddresses:
    answer = {key: value for each in answers for key, value in each.items()}
    count = len(of.addresses)
    return ResolvedAddresses(
        tuple(tuple(Frame(*frame) for frame in frames) for frames in answer.get("frames", [()] * count)),
        tuple(symbol and Symbol(*symbol) for symbol in answer.get("symbols", [None] * count)),
        answer["note"],
    )


def _run_child(objects: Sequence[ObjectAddresses], limits: Limits, seconds: float) -> tuple[list[dict[str, Any]], str]:
    """Return the answers of a child process, and the reason for missing answers."""
    asked = {
        "memory_bytes": limits.memory_bytes,
        "seconds": limits.seconds,
        "objects": [(each.object_path, each.build_id, each.addresses, each.unchanged_since_ns) for each in objects],
    }
    try:
        child = subprocess.Popen(
            [sys.executable or "python3", "-c", _CHILD.format(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that a timeout also kills the child's debuginfod-find
        )
    except (OSError, ValueError) as error:
        return [], f"no process could be started to read it ({error})"
    written, end = b"", ""
    try:
        written, _ = child.communicate(json.dumps(asked).encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        end = f"reading debug information took longer than {limits.total_seconds} s"
        with suppress(subprocess.TimeoutExpired):
            written, _ = child.communicate(timeout=_AFTER_KILL_SECONDS)
    except BaseException:  # an interrupt
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        raise
    answers = [json.loads(line) for line in written.splitlines(keepends=True) if line.endswith(b"\n")]
    return answers, end or _describe_end(child.returncode, limits)


def _describe_end(status: int, limits: Limits) -> str:
    if status == -signal.SIGALRM:
        return f"reading its debug information took longer than {limits.seconds} s"
    how = f"signal {-status}" if status < 0 else f"status {status}"
    return f"its debug information could not be read: it is damaged, or needs too much memory ({how})"
