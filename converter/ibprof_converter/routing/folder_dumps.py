# SPDX-License-Identifier: Apache-2.0
"""Dumps in a folder, sorted by their contents."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from ibprof_converter.fabric.dump_files import is_archive, peek_dump, strip_compression
from ibprof_converter.fabric.folder_files import list_files, list_folders
from ibprof_converter.fabric.guid2lid import looks_like_lid_ranges
from ibprof_converter.fabric.link_reader import LINK_FORMATS, find_link_format
from ibprof_converter.fabric.node_name_map import looks_like_name_map
from ibprof_converter.fabric.node_names import natural_key, show_some
from ibprof_converter.routing.far import looks_like_far
from ibprof_converter.routing.table_reader import find_table_format

_LOOKED_AT = 1000
"""Files of a folder that are inspected; a folder of dumps holds a few dozen, or one for each switch."""

_LOOKED_AT_BELOW = 4000
"""Files of all folders below it."""

_DEPTH = 2

_KNOWN_NAME = re.compile(
    r"ibdiagnet2?\.(?:lst|fdbs|db_csv|far|ar|net_dump|ibnetdiscover)|opensm-subnet\.lst|opensm\.fdbs|opensm-lfts\.dump|"
    r"guid2lid|ib-node-name-map|ibroutes?\b.*|ibnetdiscover\b.*|dump_fts\b.*|.*\.(?:fdbs|db_csv|far)",
    re.IGNORECASE,
)
"""Names that the tools, and how-tos of them, give to files with links or tables."""


class Content(Enum):
    """The kinds of contents of a file."""

    LINKS = "links"
    TABLES = "forwarding tables"
    LID_RANGES = "LIDs of ports"
    ADAPTIVE = "adaptive routing"
    NAMES = "names of nodes"


@dataclass(slots=True)
class FolderDumps:
    """Dumps by their contents, in the order of their names.

    Attributes:
        links: with the rank of each format, the best first.
        tables, lid_ranges, adaptive, names: files.
        notes: files of a known name that cannot be used, a sentence each.
        archives: files that other programs have to unpack first.
    """

    links: list[tuple[int, Path]] = field(default_factory=list)
    tables: list[Path] = field(default_factory=list)
    lid_ranges: list[Path] = field(default_factory=list)
    adaptive: list[Path] = field(default_factory=list)
    names: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    archives: list[Path] = field(default_factory=list)

    def of(self, content: Content) -> list[Path]:
        """Return the files of a kind other than links."""
        return {
            Content.TABLES: self.tables,
            Content.LID_RANGES: self.lid_ranges,
            Content.ADAPTIVE: self.adaptive,
            Content.NAMES: self.names,
        }[content]


def identify_content(path: Path) -> Content | None:
    """Return the kind of a file, from its beginning; None for any other and for an unreadable file."""
    return _identify(peek_dump(path))


def _identify(head: bytes) -> Content | None:
    if b"\0" in head:  # a folder of data can hold large files that are no text
        return None
    if find_link_format(head):
        return Content.LINKS
    if looks_like_far(head):
        return Content.ADAPTIVE
    if find_table_format(head):
        return Content.TABLES
    if looks_like_lid_ranges(head):
        return Content.LID_RANGES
    return Content.NAMES if looks_like_name_map(head) else None


def describe_unused(found: FolderDumps) -> str:
    """Return what a folder without a list of links has instead."""
    parts = list(found.notes)
    for paths, what in (
        ([*found.tables, *found.adaptive], "forwarding tables without a list of links"),
        (found.archives, "an archive, which has to be unpacked first"),
    ):
        parts += [f"{what} ({show_some([path.name for path in paths])})"] if paths else []
    return "; ".join(parts) or "none"


def sort_folder(folder: Path) -> FolderDumps:
    """Return the dumps of a folder."""
    found = FolderDumps()
    _sort_files(folder, found, _LOOKED_AT)
    return found


def sort_below(folder: Path) -> FolderDumps:
    """Return the dumps of the folders below a folder, two levels deep."""
    found = FolderDumps()
    left = _LOOKED_AT_BELOW
    level = [folder]
    for _ in range(_DEPTH):
        level = [each for parent in level for each in list_folders(parent) if not each.name.startswith(".")]
        for each in sorted(level, key=lambda path: natural_key(path.name)):
            left -= _sort_files(each, found, left)
    return found


def _sort_files(folder: Path, found: FolderDumps, limit: int) -> int:
    """Sort up to a number of files of a folder, and return their number."""
    looked_at = 0
    for looked_at, (path, size) in enumerate(list_files(folder), 1):
        if looked_at > limit:
            break
        head = peek_dump(path) if size else b""
        content = _identify(head) if head else None
        if content is Content.LINKS:
            link_format = find_link_format(head)
            found.links.append((LINK_FORMATS.index(link_format) if link_format else len(LINK_FORMATS), path))
        elif content is not None:
            found.of(content).append(path)
        elif is_archive(head):
            found.archives.append(path)
        elif _KNOWN_NAME.fullmatch(strip_compression(path)):
            found.notes.append(f"{path}: not used, {'nothing in it is recognised' if size else 'it is empty'}")
    return looked_at
