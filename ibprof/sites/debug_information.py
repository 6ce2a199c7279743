# SPDX-License-Identifier: Apache-2.0
"""Read symbols and source lines of programs in a separate process, because a damaged file may crash the reader.

The process reads requests as JSON from stdin: limits, and an `ObjectAddresses` for each object. For each object, the
process writes a line with symbols to stdout, then reads debug information and writes a line with frames. A note in the
line states the reason for missing symbols or frames. Debug information is in the program itself, in split debug files,
or on a debuginfod server. libibprof_lines.so reads source lines.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ibprof.errors import MissingToolError
from ibprof.native.installed_files import find_lines_library
from ibprof.sites.code_location import Frame, Symbol
from ibprof.sites.elf_file import ElfFile

DEBUG_FOLDERS = ("/usr/lib/debug",)
"""Folders of distributions' debug files."""

DEBUGINFOD_SECONDS = 90

_CHUNK_BYTES = 1 << 20

_MESSAGE_BYTES = 256


def open_program(path: str, build_id: str, unchanged_since_ns: int | None = None) -> tuple[ElfFile | None, str]:
    """Open the file of a program, or return None and the reason.

    Args:
        build_id: required build ID; empty if unknown.
        unchanged_since_ns: if the build ID is unknown, latest allowed change in Unix time; None to allow any change.
    """
    try:
        program = ElfFile(path)
    except OSError as error:
        return None, f"it cannot be read: {(error.strerror or str(error)).lower()}"
    except (ValueError, MemoryError) as error:
        return None, f"it cannot be read: {error or 'out of memory'}"
    if build_id and program.build_id != build_id:
        found = program.build_id or "none"
        program.close()
        return None, f"the file has another build ID than the recorded one: {found}, not {build_id}"
    if not build_id and unchanged_since_ns is not None and _changed_ns(path) > unchanged_since_ns:
        program.close()
        return None, "it has no build ID, and was changed after the run began: link it with -Wl,--build-id"
    return program, ""


def _changed_ns(path: str) -> int:
    """Return the time of a file's last change in ns. A change of metadata, such as the name, counts too."""
    status = os.stat(path)  # noqa: PTH116
    return max(status.st_mtime_ns, status.st_ctime_ns)


def find_debug_files(
    program: ElfFile | None, build_id: str, folders: Sequence[str] = DEBUG_FOLDERS
) -> Iterator[ElfFile]:
    """Yield a program's separate debug files that have the program's build ID (or checksum), local files first.

    Args:
        program: the program's file, if it exists.
        build_id: build ID of the program; empty if it has none.
        folders: folders of installed debug files.
    """
    link = program.debug_link if program else None
    paths = [f"{folder}/.build-id/{build_id[:2]}/{build_id[2:]}.debug" for folder in folders if len(build_id) > 2]
    if program and link:
        near = os.path.dirname(os.path.realpath(program.path))  # noqa: PTH120
        paths += [f"{near}/{link[0]}", f"{near}/.debug/{link[0]}", *(f"{each}{near}/{link[0]}" for each in folders)]
    for path in paths:
        if file := _open(path):
            if file.build_id == build_id if build_id else link and _checksum(path) == link[1]:
                yield file
            else:
                file.close()
    if (path := _ask_debuginfod(build_id)) and (file := _open(path)):
        yield file


def _open(path: str) -> ElfFile | None:
    try:
        return ElfFile(path)
    except (OSError, ValueError):
        return None


def _checksum(path: str) -> int:
    checksum = 0
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def _ask_debuginfod(build_id: str) -> str:
    """Return the path of a debug file from a server in DEBUGINFOD_URLS; empty if no server provides the file."""
    if not build_id or not os.environ.get("DEBUGINFOD_URLS", "").strip():
        return ""
    try:
        asked = subprocess.run(
            ["debuginfod-find", "debuginfo", build_id],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=DEBUGINFOD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        os.environ["DEBUGINFOD_URLS"] = ""  # do not ask the servers for further programs
        return ""
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(asked.stdout.strip()) if asked.returncode == 0 else ""


def read_lines(file: ElfFile, addresses: Sequence[int], symbols: Sequence[Symbol | None]) -> list[list[Frame]]:
    """Return the frames at each address, innermost first: a function, then the functions into which it was inlined.

    Code that was compiled without debug information has no frames. A function without a name gets the name of its
    symbol.

    Raises:
        MissingToolError: the library that reads source lines is not built, or cannot be loaded.
        ValueError: the debug information is damaged.
    """
    frames: list[list[Frame]] = [[] for _ in addresses]
    readable = SourceNames()

    def keep(index: int, function: bytes | None, folder: bytes | None, name: bytes | None, line: int) -> None:
        symbol = symbols[index]
        text = readable(_text(function)) if function else symbol.function if symbol else ""
        path = os.path.normpath(os.path.join(_text(folder or b""), _text(name))) if name else ""  # noqa: PTH118
        frames[index].append(Frame(text, path, max(line, 0)))  # damaged files may have negative line numbers

    found = ctypes.CFUNCTYPE(None, ctypes.c_size_t, *[ctypes.c_char_p] * 3, ctypes.c_int)(keep)
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    given = (ctypes.c_uint64 * len(addresses))(*addresses)
    try:
        find_lines = ctypes.CDLL(str(find_lines_library())).ibp_find_lines
    except OSError as error:
        raise MissingToolError(f"the library that reads source lines cannot be loaded: {error}") from error
    if find_lines(os.fsencode(os.path.realpath(file.path)), given, ctypes.c_size_t(len(addresses)), found, message):
        raise ValueError(_text(message.value))
    # Return no frames for an address with line 0: the compiler stated no line for this code.
    return [each if each and each[0].line else [] for each in frames]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


class SourceNames:
    """Convert linkers' names of functions to names in the source code; C++ names need the machine's C++ library."""

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
        """Return the name that a symbol's function has in the source code."""
        # Remove compilers' suffixes for parts and variants of functions, such as `.isra.0` and `.cold`.
        name = name.partition(".")[0] or name
        if not self._demangle or not name.startswith("_Z"):
            return name
        made = self._demangle(name.encode("utf-8", "surrogateescape"), None, None, None)
        if not made:
            return name
        text = ctypes.string_at(made).decode("utf-8", "backslashreplace")
        self._free(made)
        return text


def main() -> None:
    """Answer the requests on stdin."""
    given = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(given["memory_bytes"])
    for path, build_id, addresses, unchanged_since_ns in given["objects"]:
        # If reading takes too long, SIGALRM ends this process, which has no handler for this signal.
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
    """Yield the symbols of addresses, then the frames. A note with each answer states the reason for missing lines."""
    program, note = open_program(path, build_id, unchanged_since_ns)
    files = [program] if program else []
    symbols: list[Symbol | None] = [None] * len(addresses)
    frames: list[list[Frame]] = [[] for _ in addresses]
    build_id = build_id or (program.build_id if program else "")
    if not program or not program.has_lines:
        for file in find_debug_files(program, build_id):
            files.append(file)
            if file.has_lines:
                break  # prefer local files to a server
    signal.alarm(seconds)
    try:
        # Use the first file with all symbols, else the program itself.
        named = next((file for file in files if file.has_all_symbols), program)
        if named:
            readable = SourceNames()
            found = named.find_symbols(addresses)
            symbols = [each and Symbol(readable(each.function), each.offset) for each in found]
    except (OSError, ValueError, MemoryError) as error:
        note = note or f"its symbols are damaged ({error})"
    yield {"symbols": symbols, "note": note}
    if lined := next((file for file in files if file.has_lines), None):
        frames, note = _try_lines(lined, addresses, symbols)
    elif not note:
        note = "it has no debug information: compile it with -g, or install its debug file"
    for file in files:
        file.close()
    yield {"frames": frames, "note": note}


def _try_lines(
    file: ElfFile, addresses: Sequence[int], symbols: Sequence[Symbol | None]
) -> tuple[list[list[Frame]], str]:
    try:
        frames = read_lines(file, addresses, symbols)
    except MissingToolError as error:
        return [[] for _ in addresses], str(error)
    except (OSError, ValueError) as error:
        return [[] for _ in addresses], f"its debug information is damaged ({error})"
    if bare := sum(not each for each in frames):
        return frames, (
            f"{bare} of {len(frames)} call sites have no line that ibprof can read: compile their code with -g, "
            "without -gsplit-dwarf or -gz=zstd"
        )
    return frames, ""


if __name__ == "__main__":
    main()
