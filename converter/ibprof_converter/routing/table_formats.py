# SPDX-License-Identifier: Apache-2.0
"""Read forwarding tables of any known format, from the user's cache if they were read before.

The cache turns half a gigabyte of text into 20 MB of tables. A file is identified by its path, size, inode and times,
so a file that was rewritten is read again. Cached data may be deleted at any time; damaged data is ignored.
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

from ibprof.errors import InputError
from ibprof_converter.fabric.dump_files import (
    DumpFormat,
    find_format,
    find_sibling,
    read_dump,
    strip_compression,
    unknown_format,
)
from ibprof_converter.routing.far import looks_like_far, parse_far_tables
from ibprof_converter.routing.lft_dump import looks_like_lft_dump, parse_lft_dump
from ibprof_converter.routing.stanzas import looks_like_fdbs, parse_fdbs
from ibprof_converter.routing.tables import ForwardingTables

TABLE_FORMATS: tuple[DumpFormat[ForwardingTables], ...] = (
    DumpFormat("ibdiagnet 2's .far", looks_like_far, parse_far_tables),
    DumpFormat("ibdiagnet's or OpenSM's .fdbs", looks_like_fdbs, parse_fdbs),
    DumpFormat("OpenSM's lfts.dump or dump_fts", looks_like_lft_dump, parse_lft_dump),
)


SWITCH = "IBPROF_CACHE"
"""Environment variable; `off` reads every file again and stores nothing."""

SMALLEST = 4 << 20
"""Least size in bytes of a cached dump; smaller dumps are read quickly."""

LIMIT = 512 << 20
"""Total bytes in the cache; the least recently used entry is deleted first."""

_SETTLED_S = 2.0
"""Seconds after a file's change in which another change may leave its time stamp equal."""

_MAGIC = b"ibprof tables 1\n"

_SUFFIX = ".tables"


def read_tables(path: str | PathLike[str], is_kept: bool = True) -> ForwardingTables:
    """Read forwarding tables. The content of the file decides its format. Big tables are cached.

    Args:
        is_kept: true if the file will still exist later; otherwise it is not cached.

    Raises:
        InputError: the format is unknown, or the file does not follow it.
    """
    entry = CacheEntry.of(path) if is_kept else None
    cached = entry.load(path) if entry else None
    if cached is not None:
        return cached
    tables = _read_tables(path)
    # A file that was rewritten meanwhile now has another cache entry.
    # Damaged tables are not cached, so that their damage is reported each time.
    if entry is not None and not tables.damage and CacheEntry.of(path) == entry:
        entry.store(tables)
    return tables


def _read_tables(path: str | PathLike[str]) -> ForwardingTables:
    data = read_dump(path)
    # The whole file decides, as for lists of links: a session's log may be long before its tables.
    table_format = find_table_format(data) or _find_anywhere(data)
    if table_format is None:
        raise unknown_format(path, data, "forwarding tables", TABLE_FORMATS)
    return table_format.parse(path, data)


def has_tables(path: str | PathLike[str]) -> bool:
    """Return true if any part of a file is like forwarding tables; false if the file is unreadable."""
    try:
        return _find_anywhere(read_dump(path)) is not None
    except InputError:
        return False


def _find_anywhere(data: bytes) -> DumpFormat[ForwardingTables] | None:
    return next((each for each in TABLE_FORMATS if each.recognise(data)), None)


def find_table_format(data: bytes) -> DumpFormat[ForwardingTables] | None:
    """Return the table format of a file, from its contents or their beginning; None if it has no tables."""
    return find_format(TABLE_FORMATS, data)


def find_fdbs(lst_path: str | PathLike[str]) -> Path | None:
    """Return the tables next to a list of links: the file with the same stem, plain, .gz or .xz.

    OpenSM's `opensm-subnet.lst` has its tables in `opensm.fdbs`.
    """
    stem = strip_compression(lst_path)
    stem = stem.removesuffix(".lst").removesuffix(".db_csv")
    return find_sibling(lst_path, f"{'opensm' if stem == 'opensm-subnet' else stem}.fdbs")


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The place of one file's tables in the cache, for the file's current content."""

    path: Path
    identity: str

    @classmethod
    def of(cls, dump: str | PathLike[str]) -> CacheEntry | None:
        """Return the entry of a dump; None if the dump is not to be cached."""
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
        """Return the cached tables; None if they are missing or damaged."""
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
