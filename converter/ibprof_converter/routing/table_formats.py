# SPDX-License-Identifier: Apache-2.0
"""Read forwarding tables of any known format. Tables of large files are cached: they are parsed only once.

In the cache, half a gigabyte of text needs 20 MB. The cache identifies a file by path, size, inode and times, so that a
rewritten file is read again. Cached data may be deleted at any time. Damaged cached data is ignored.
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
"""Environment variable; its value `off` turns the cache off."""

SMALLEST = 4 << 20
"""Dumps of at least this number of bytes are cached; smaller dumps are read fast."""

LIMIT = 512 << 20
"""Largest size of the cache, in bytes; in a larger cache, the least recently used tables are deleted."""

_SETTLED_S = 2.0
"""A file is cached only if its last change is at least this old: a second change may have the same time stamp."""

_MAGIC = b"ibprof tables 1\n"

_SUFFIX = ".tables"


def read_tables(path: str | PathLike[str], is_kept: bool = True) -> ForwardingTables:
    """Read forwarding tables. The format is detected by the file's content. Tables of large files are cached.

    Args:
        is_kept: false for a temporary file, whose tables are not cached.

    Raises:
        InputError: the format is unknown, or the file does not have this format.
    """
    entry = CacheEntry.of(path) if is_kept else None
    cached = entry.load(path) if entry else None
    if cached is not None:
        return cached
    tables = _read_tables(path)
    # Do not store tables of a file that was rewritten while it was read: its identity differs. Damaged tables are not
    # cached, so that the damage is reported each time.
    if entry is not None and not tables.damage and CacheEntry.of(path) == entry:
        entry.store(tables)
    return tables


def _read_tables(path: str | PathLike[str]) -> ForwardingTables:
    data = read_dump(path)
    # If the first bytes show no format, search the whole file: the log of a session may have tables at its end.
    table_format = find_table_format(data) or _find_anywhere(data)
    if table_format is None:
        raise unknown_format(path, data, "forwarding tables", TABLE_FORMATS)
    return table_format.parse(path, data)


def has_tables(path: str | PathLike[str]) -> bool:
    """Return true if any part of a file has the form of forwarding tables; false if the file cannot be read."""
    try:
        return _find_anywhere(read_dump(path)) is not None
    except InputError:
        return False


def _find_anywhere(data: bytes) -> DumpFormat[ForwardingTables] | None:
    return next((each for each in TABLE_FORMATS if each.recognise(data)), None)


def find_table_format(data: bytes) -> DumpFormat[ForwardingTables] | None:
    """Return the table format of a file; None if it has no tables. `data` is the file, or its first bytes."""
    return find_format(TABLE_FORMATS, data)


def find_fdbs(lst_path: str | PathLike[str]) -> Path | None:
    """Return the `.fdbs` (plain, .gz or .xz) with the name and folder of a list of links, or None.

    For OpenSM's `opensm-subnet.lst`, return `opensm.fdbs`.
    """
    stem = strip_compression(lst_path)
    stem = stem.removesuffix(".lst").removesuffix(".db_csv")
    return find_sibling(lst_path, f"{'opensm' if stem == 'opensm-subnet' else stem}.fdbs")


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The cache file with the tables of one dump; the file is valid until the dump changes."""

    path: Path
    identity: str

    @classmethod
    def of(cls, dump: str | PathLike[str]) -> CacheEntry | None:
        """Return the cache file of a dump; None if the cache is off, or the dump is small, new or unreadable."""
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
        """Return the cached tables; None if the file is missing, damaged or another user's."""
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
            os.utime(self.path)  # the entry was used: `_evict` deletes the least recently used
        return tables

    def store(self, tables: ForwardingTables) -> None:
        """Store tables; errors, such as a full disk, are ignored. Other processes never see a half-written entry."""
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
    """Return the cache folder by the XDG Base Directory Specification."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()) / "ibprof"


def _evict(folder: Path) -> None:
    """Delete the least recently used entries, and temporary files of killed processes."""
    files = []
    for path in folder.iterdir():
        with suppress(OSError):  # another process may have deleted the file
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
