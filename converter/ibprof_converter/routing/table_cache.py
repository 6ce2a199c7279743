# SPDX-License-Identifier: Apache-2.0
"""Forwarding tables read before, in the user's cache: half a gigabyte of text becomes 20 MB of tables.

A file is identified by its path, size, inode and times, so a file that was rewritten is read again. Cached data may be
deleted at any time; damaged or foreign data is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from ibprof_converter.routing.tables import ForwardingTables

SWITCH = "IBPROF_CACHE"
"""Environment: `off` reads every file again and stores nothing."""

SMALLEST = 4 << 20
"""Size in bytes from which a dump is cached; smaller ones are read quickly."""

LIMIT = 512 << 20
"""Total bytes in the cache; the least recently used entry is deleted first."""

_SETTLED_S = 2.0
"""A file changed more recently than this may change again without a new time stamp."""

_MAGIC = b"ibprof tables 1\n"
_SUFFIX = ".tables"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The place of one file's tables in the cache, for the file's current content."""

    path: Path
    identity: str

    @classmethod
    def of(cls, dump: str | PathLike[str]) -> CacheEntry | None:
        """Return the entry of a dump; None if it is not to be cached."""
        if os.environ.get(SWITCH, "").lower() in ("off", "0", "no"):
            return None
        try:
            full = os.path.realpath(dump)
            status = Path(full).stat()
        except OSError:
            return None
        if not Path(full).is_file() or status.st_size < SMALLEST or time.time() - status.st_mtime < _SETTLED_S:
            return None
        times = status.st_mtime_ns, status.st_ctime_ns
        identity = json.dumps([full, status.st_size, status.st_dev, status.st_ino, *times])
        name = hashlib.sha256(os.fsencode(identity)).hexdigest()[:32] + _SUFFIX
        return cls(_folder() / name, identity)

    def load(self, dump: str | PathLike[str]) -> ForwardingTables | None:
        """Return the cached tables; None if there are none, or they are damaged."""
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_uid != os.geteuid() or file.read(len(_MAGIC)) != _MAGIC:
                    return None
                head = json.loads(file.readline())
                body = file.read()
            if head["identity"] != self.identity or head["checksum"] != zlib.crc32(body):
                return None
            rows, width = head["shape"]
            guid = np.frombuffer(body, np.uint64, rows)
            port = np.frombuffer(body, np.uint8, offset=guid.nbytes).reshape(rows, width)
            tables = ForwardingTables(fspath(dump), guid, port, tuple(map(str, head["warnings"])))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        with suppress(OSError):
            os.utime(self.path)  # time of its last use
        return tables

    def store(self, tables: ForwardingTables) -> None:
        """Store tables, unless the disk is full. Concurrent readers and writers see all or nothing."""
        body = tables.switch_guid.tobytes() + tables.port.tobytes()
        head = {
            "identity": self.identity,
            "shape": tables.port.shape,
            "warnings": tables.warnings,
            "checksum": zlib.crc32(body),
        }
        with suppress(OSError):
            folder = self.path.parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid != os.geteuid():
                return
            descriptor, name = tempfile.mkstemp(dir=folder, suffix=".part")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_MAGIC + json.dumps(head).encode() + b"\n" + body)
                Path(name).replace(self.path)
            finally:
                Path(name).unlink(missing_ok=True)
            _evict(folder)


def _folder() -> Path:
    """Return the folder that the XDG Base Directory Specification assigns to a cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()) / "ibprof"


def _evict(folder: Path) -> None:
    """Delete the least recently used entries, and files that killed writers left."""
    files = []
    for path in folder.iterdir():
        with suppress(OSError):  # another process may have deleted it
            status = path.stat()
            if path.suffix == _SUFFIX:
                files.append((status.st_mtime, status.st_size, path))
            elif path.suffix == ".part" and time.time() - status.st_mtime > 3600:
                path.unlink()
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            break
        with suppress(OSError):
            path.unlink()
        total -= size
