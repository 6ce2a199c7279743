# SPDX-License-Identifier: Apache-2.0
"""The files that may hold the debug information of a program: itself, split debug files, and those of a debuginfod."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ibprof.sites.elf_file import ElfFile

DEBUG_FOLDERS = ("/usr/lib/debug",)
"""Where distributions install debug files."""

DEBUGINFOD_SECONDS = 90

_CHUNK_BYTES = 1 << 20


def open_program(path: str, build_id: str, unchanged_since_ns: int | None = None) -> tuple[ElfFile | None, str]:
    """Return the file of a program, or None and the reason.

    Args:
        path: of the file.
        build_id: that it must have; empty where it is unknown.
        unchanged_since_ns: Unix time after which it must not have changed if its build ID is unknown; None for any.
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
    """Return when a file was last written, or got its name."""
    status = os.stat(path)  # noqa: PTH116
    return max(status.st_mtime_ns, status.st_ctime_ns)


def find_debug_files(
    program: ElfFile | None, build_id: str, folders: Sequence[str] = DEBUG_FOLDERS
) -> Iterator[ElfFile]:
    """Yield the separate debug files of a program, local ones first. Others of that name are left out.

    Args:
        program: the file itself, if it is there.
        build_id: of the program; empty where it has none.
        folders: of installed debug files.
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
    """Return the path of a debug file from the servers in DEBUGINFOD_URLS; empty without them."""
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
        os.environ["DEBUGINFOD_URLS"] = ""  # no further program waits for it
        return ""
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(asked.stdout.strip()) if asked.returncode == 0 else ""
