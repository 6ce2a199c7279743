# SPDX-License-Identifier: Apache-2.0
"""Read forwarding tables of any known format, and find the file that belongs to a list of links."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from ibprof.errors import InputError
from ibprof_converter.fabric.dump_files import find_sibling, read_dump, strip_compression
from ibprof_converter.fabric.dump_formats import DumpFormat, find_format, unknown_format
from ibprof_converter.routing.far import looks_like_far, parse_far_tables
from ibprof_converter.routing.fdbs import looks_like_fdbs, parse_fdbs
from ibprof_converter.routing.lft_dump import looks_like_lft_dump, parse_lft_dump
from ibprof_converter.routing.table_cache import CacheEntry
from ibprof_converter.routing.tables import ForwardingTables

TABLE_FORMATS: tuple[DumpFormat[ForwardingTables], ...] = (
    DumpFormat("ibdiagnet 2's .far", looks_like_far, parse_far_tables),
    DumpFormat("ibdiagnet's or OpenSM's .fdbs", looks_like_fdbs, parse_fdbs),
    DumpFormat("OpenSM's lfts.dump or dump_fts", looks_like_lft_dump, parse_lft_dump),
)


def read_tables(path: str | PathLike[str], is_kept: bool = True) -> ForwardingTables:
    """Read forwarding tables, in the format that the content of the file shows. Big tables are cached.

    Args:
        path: the file.
        is_kept: whether the file will be there again; otherwise it is not cached.

    Raises:
        InputError: the format is unknown, or the file does not follow it.
    """
    entry = CacheEntry.of(path) if is_kept else None
    cached = entry.load(path) if entry else None
    if cached is not None:
        return cached
    tables = _read_tables(path)
    # A file that was written to meanwhile has another cache entry by now.
    # A damaged one is read again each time, so that its damage is reported each time.
    if entry is not None and not tables.damage and CacheEntry.of(path) == entry:
        entry.store(tables)
    return tables


def _read_tables(path: str | PathLike[str]) -> ForwardingTables:
    data = read_dump(path)
    # As for lists of links, the whole decides: a session's log may be long before its tables.
    table_format = find_table_format(data) or _find_anywhere(data)
    if table_format is None:
        raise unknown_format(path, data, "forwarding tables", TABLE_FORMATS)
    return table_format.parse(path, data)


def has_tables(path: str | PathLike[str]) -> bool:
    """Return whether any part of a file is like forwarding tables; false for what cannot be read."""
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
    """Return the tables next to a list of links: the file of the same stem, plain, .gz or .xz.

    OpenSM's `opensm-subnet.lst` has its tables in `opensm.fdbs`.
    """
    stem = strip_compression(lst_path)
    stem = stem.removesuffix(".lst").removesuffix(".db_csv")
    return find_sibling(lst_path, f"{'opensm' if stem == 'opensm-subnet' else stem}.fdbs")
