# SPDX-License-Identifier: Apache-2.0
"""The process that reads programs: a damaged file may end it, or exhaust its time or memory, but not its parent's.

It reads requests as JSON from stdin: limits, and what ObjectAddresses has of each object. To stdout it writes two lines
an object: symbols before debug information is read, then frames. Each has a note: why there are no frames.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ibprof.sites.code_location import Frame, Symbol
from ibprof.sites.debug_files import DEBUGINFOD_SECONDS, find_debug_files, open_program
from ibprof.sites.debug_lines import SourceNames, read_lines
from ibprof.sites.elf_file import ElfFile

INSTALL = "the Python package symbolic is missing: pip install 'ibprof[sites]'"


def main() -> None:
    """Answer the requests on stdin."""
    given = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(given["memory_bytes"])
    for path, build_id, addresses, unchanged_since_ns in given["objects"]:
        # The default action of SIGALRM ends the process, wherever it is.
        signal.alarm(given["seconds"] + DEBUGINFOD_SECONDS)
        for answer in resolve(path, build_id, addresses, given["seconds"], unchanged_since_ns):
            print(json.dumps(answer), flush=True)


def _limit_memory(size: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    size = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_DATA, (size, most))


def resolve(
    path: str, build_id: str, addresses: Sequence[int], seconds: int, unchanged_since_ns: int | None
) -> Iterator[dict[str, Any]]:
    """Yield the symbols of addresses, then their frames; each with a note why there are no lines."""
    program, note = open_program(path, build_id, unchanged_since_ns)
    files = [program] if program else []
    symbols: list[Symbol | None] = [None] * len(addresses)
    frames: list[list[Frame]] = [[] for _ in addresses]
    build_id = build_id or (program.build_id if program else "")
    if not program or not program.has_lines:
        for file in find_debug_files(program, build_id):
            files.append(file)
            if file.has_lines:
                break  # no server is asked for what is on this machine
    signal.alarm(seconds)
    try:
        # The first file with all symbols, else the program itself.
        named = next((file for file in files if file.has_all_symbols), program)
        if named:
            readable = SourceNames()
            found = named.find_symbols(addresses)
            symbols = [each and Symbol(readable(each.function), each.offset) for each in found]
    except (OSError, ValueError, MemoryError) as error:
        note = note or f"its symbols are damaged ({error})"
    yield {"symbols": symbols, "note": note}
    if lined := next((file for file in files if file.has_lines), None):
        frames, note = _try_lines(lined, addresses)
    elif not note:
        note = "it has no debug information: compile it with -g, or install its debug file"
    for file in files:
        file.close()
    yield {"frames": frames, "note": note}


def _try_lines(file: ElfFile, addresses: Sequence[int]) -> tuple[list[list[Frame]], str]:
    try:
        frames = read_lines(file, addresses)
    except ImportError:
        return [[] for _ in addresses], INSTALL
    except Exception as error:  # symbolic has many; damage must never be an error of ibprof's
        return [[] for _ in addresses], f"its debug information is damaged ({error})"
    if bare := sum(not each for each in frames):
        return frames, f"{bare} of {len(frames)} places are in code compiled without -g, or with -gsplit-dwarf"
    return frames, ""


if __name__ == "__main__":
    main()
