#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check csrc: includes keep to the order of rooms, and modules form no cycle. Exit status 1: a violation.

A room is a folder, or a group of files in a folder. Each file must be in a room. A file may include files of its room,
and of rooms further left in `ORDERS`. A module is a header and the source of the same name. Module A needs module B if
A includes B's header, or uses a function or variable that B's source defines. Two modules must not need each other,
directly or through other modules.
"""

from __future__ import annotations

import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

CSRC = Path(__file__).resolve().parent.parent / "csrc"
FOLDERS = (CSRC, CSRC / "include", CSRC / "preload", CSRC / "kernels", CSRC / "tests")
# A room's name is the beginning of its files' paths. In a < b | c, rooms b and c may use only room a.
RECORDER = """include < preload/mpi.def < preload/platform < preload/python < preload/recording < preload/libmpi
    < preload/counting < preload/sources/source
    < preload/sources/openmpi | preload/sources/mpich | preload/sources/verbs
    < preload/calls | nccl | spank < tests"""
KERNELS = """include < kernels/support
    < kernels/sums | kernels/text | kernels/routes | kernels/archive | kernels/topology
    < kernels/spread | kernels/placement
    < kernels/simulation/state < kernels/simulation/adaptive < kernels/simulation/agenda < kernels/simulation/queues
    < kernels/simulation/clear_paths
    < kernels/simulation/clients
    < kernels/simulation/run | kernels/simulation/setup | kernels/simulation/observation
    < tests"""
ORDERS = [
    [place.split(" | ") for place in " ".join(text.split()).split(" < ")] for text in (RECORDER, KERNELS, "lines")
]

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')
# Text to ignore in the search for used names: comments, strings and names of types.
NO_USE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\b(?:struct|union|enum)\s+\w+', re.DOTALL)
# Definition of a public function or variable, at the beginning of a line; not static, and not only a declaration.
DEFINED = re.compile(
    r"^(?!static\b|extern\b|typedef\b)[A-Za-z_][\w ,*()]*?\b(ibp_\w+)"
    r"(?:\((?:[^;{}()]|\([^()]*\))*\)\s*\{|(?:\[[^\]]*\])*\s*(?:=|;))",
    re.MULTILINE,
)

Include = tuple[Path, int, Path]


def sources() -> list[Path]:
    return sorted(path for path in CSRC.rglob("*") if path.suffix in (".c", ".h", ".def"))


def unpacked(folder: Path) -> set[str]:
    """Return the names of files that the build unpacks from a folder's archives."""
    names = set()
    for path in folder.glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            names |= {Path(name).name for name in archive.getnames()}
    return names


def includes() -> Iterator[Include]:
    """Yield each include of a file of csrc as (file, line, included file)."""
    for file in sources():
        others = unpacked(file.parent)
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if found := INCLUDE.match(line):
                quoted = found[1] == '"'
                folders = (file.parent, *FOLDERS) if quoted else FOLDERS
                candidates = [(folder / found[2]).resolve() for folder in folders if (folder / found[2]).is_file()]
                if candidates or (quoted and found[2] not in others):
                    yield file, number, candidates[0] if candidates else CSRC / found[2]


def uses() -> Iterator[Include]:
    """Yield each use of a name that another file defines, as (file, line, defining file)."""
    written = {
        file: file.read_text() for file in sources() if file.suffix == ".c" and CSRC / "tests" not in file.parents
    }
    defined = {name: file for file, text in written.items() for name in DEFINED.findall(text)}
    for file, text in written.items():
        code = NO_USE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        for number, line in enumerate(code.splitlines(), 1):
            yield from ((file, number, defined[name]) for name in re.findall(r"\bibp_\w+", line) if name in defined)


def place_of(file: Path, order: list[list[str]]) -> tuple[int, str]:
    """Return the position and the name of a file's room; the position is -1 if the file has no room."""
    name = file.relative_to(CSRC).as_posix()
    begins = (name, *(name[:end] for end, letter in enumerate(name) if letter in "/."))
    found = [(i, room) for i, rooms in enumerate(order) for room in rooms if room in begins]
    return found[0] if found else (-1, "")


def points_right(file: Path, included: Path) -> bool:
    """Return true if no list of `ORDERS` allows an include."""
    for order in ORDERS:
        (own, room), (other, other_room) = place_of(file, order), place_of(included, order)
        if 0 <= other < own or (room and room == other_room):
            return False
    return True


def find_cycles(found: list[Include]) -> Iterator[Include]:
    """Yield each include or use that closes a cycle of modules."""
    edges: dict[Path, list[Include]] = {}
    for include in found:
        edges.setdefault(include[0].with_suffix(""), []).append(include)
    entered: list[Path] = []
    done: set[Path] = set()

    def visit(module: Path) -> Iterator[Include]:
        entered.append(module)
        for include in edges.get(module, []):
            next_module = include[2].with_suffix("")
            if next_module in entered and next_module != module:
                yield include
            elif next_module not in done and next_module != module:
                yield from visit(next_module)
        done.add(entered.pop())

    for module in edges:
        if module not in done:
            yield from visit(module)


def main() -> int:
    found = list(includes())
    problems = [(include, "stands to the right") for include in found if points_right(include[0], include[2])]
    problems += [(include, "closes a cycle") for include in find_cycles([*found, *uses()])]
    for (file, line, included), problem in problems:
        print(f"{file.relative_to(CSRC.parent)}:{line}: {included.relative_to(CSRC)} {problem}", file=sys.stderr)
    strays = [file for file in sources() if all(place_of(file, order)[0] < 0 for order in ORDERS)]
    for file in strays:
        print(f"{file.relative_to(CSRC.parent)}: its folder is missing in RECORDER and KERNELS", file=sys.stderr)
    return 1 if problems or strays else 0


if __name__ == "__main__":
    sys.exit(main())
