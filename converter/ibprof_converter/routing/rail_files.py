# SPDX-License-Identifier: Apache-2.0
"""The files of each rail, from files or folders that the user names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike, fspath
from pathlib import Path

from ibprof.errors import InputError, UsageError
from ibprof_converter.fabric.dump_files import peek_dump
from ibprof_converter.fabric.guid2lid import looks_like_lid_ranges
from ibprof_converter.fabric.link_reader import LINK_FORMATS, find_link_format
from ibprof_converter.fabric.node_names import natural_key
from ibprof_converter.routing.adaptive_groups import looks_like_adaptive
from ibprof_converter.routing.synthetic.spec import is_synthetic
from ibprof_converter.routing.table_reader import find_fdbs, find_table_format

_LOOKED_AT = 1000
"""Files of a folder that are inspected; a folder of dumps holds a few dozen."""


class Content(Enum):
    """The kinds of contents of a file."""

    LINKS = "links"
    TABLES = "forwarding tables"
    LID_RANGES = "LIDs of ports"
    ADAPTIVE = "adaptive routing"


@dataclass(frozen=True, slots=True)
class RailFiles:
    """The files of one rail.

    Attributes:
        links: the list of links.
        tables: forwarding tables of its switches; None where they are still to be found among `candidates`.
        candidates: files next to it that have tables, of any fabric.
        lid_ranges: OpenSM's `guid2lid`; None: the one next to the list of links, if any.
        adaptive: ibdiagnet 2's `.ar` or `.far`, if any.
        synthetic: the name of a synthetic fabric; it has no files.
    """

    links: Path
    tables: Path | None = None
    candidates: tuple[Path, ...] = ()
    lid_ranges: Path | None = None
    adaptive: Path | None = None
    synthetic: str | None = None

    def all(self) -> Iterator[Path]:
        """Yield every file that may be read."""
        if self.synthetic:
            return
        for path in (self.links, self.tables, *self.candidates, self.lid_ranges, self.adaptive):
            if path is not None:
                yield path


def find_rails(names: Sequence[str | PathLike[str]], tables: Sequence[str | PathLike[str]] = ()) -> list[RailFiles]:
    """Assign files and folders to rails by their contents, one rail per list of links.

    A folder is one rail: its best list of links, with its tables and other files. A folder that holds only folders of
    dumps is one rail per folder. Of single files the first with tables belongs to the first with links, and so on.
    Without any, tables are looked for next to the links. A name such as `xgft:..` is a synthetic fabric.

    Args:
        names: as the user gave them.
        tables: those named separately, one per rail; none: as described.

    Raises:
        UsageError: the number of table files differs from the number of rails.
        InputError: a folder has no list of links.
    """
    rails: list[RailFiles] = []
    named = _Named(tables=[Path(name) for name in tables])
    for name in names:
        path = Path(name)
        if is_synthetic(name):
            rails.append(RailFiles(path, synthetic=fspath(name)))
            continue
        if path.is_dir():
            rails.extend(_read_folder(path))
            continue
        content = identify_content(path)
        if content in (None, Content.LINKS):
            rails.append(RailFiles(path))
        else:
            named.of(content).append(path)
    for what, files in (("tables", named.tables), ("guid2lid", named.lid_ranges), ("adaptive routing", named.adaptive)):
        if files and len(files) != len(rails):
            raise UsageError(f"expected one file for each of {len(rails)} LST ({what}), found {len(files)}")
    return [_complete(rail, named, number) for number, rail in enumerate(rails)]


def identify_content(path: Path) -> Content | None:
    """Return the kind of a file, from its beginning; None for any other and for an unreadable file."""
    head = peek_dump(path)
    if find_link_format(head):
        return Content.LINKS
    if looks_like_adaptive(head):
        return Content.ADAPTIVE
    if find_table_format(head):
        return Content.TABLES
    return Content.LID_RANGES if looks_like_lid_ranges(head) else None


def has_links(path: Path) -> bool:
    """Return whether a file is a list of links, or a folder holds one."""
    return bool(_sort_folder(path).links) if path.is_dir() else identify_content(path) is Content.LINKS


@dataclass(slots=True)
class _Named:
    """Files that the user named, in order."""

    tables: list[Path] = field(default_factory=list)
    lid_ranges: list[Path] = field(default_factory=list)
    adaptive: list[Path] = field(default_factory=list)

    def of(self, content: Content | None) -> list[Path]:
        if content is Content.TABLES:
            return self.tables
        return self.lid_ranges if content is Content.LID_RANGES else self.adaptive


def _complete(rail: RailFiles, named: _Named, number: int) -> RailFiles:
    """Return a rail with the files named for it; without named tables, with those next to its links."""
    if rail.synthetic:
        return rail
    tables = named.tables[number] if named.tables else rail.tables or find_fdbs(rail.links)
    candidates = () if tables or rail.candidates else tuple(_sort_folder(rail.links.parent).tables)
    return RailFiles(
        links=rail.links,
        tables=tables,
        candidates=rail.candidates or candidates,
        lid_ranges=named.lid_ranges[number] if named.lid_ranges else rail.lid_ranges,
        adaptive=named.adaptive[number] if named.adaptive else rail.adaptive,
    )


def _read_folder(folder: Path) -> list[RailFiles]:
    rail = _rail_of(folder)
    if rail is not None:
        return [rail]
    below = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: natural_key(path.name))
    rails = [rail for path in below if (rail := _rail_of(path))]
    if not rails:
        raise InputError(folder, None, "a folder with dumps of a fabric, or with folders of them", "none")
    return rails


@dataclass(slots=True)
class _Folder(_Named):
    """The dumps of a folder, in the order of their names; links with the rank of their format, the best first."""

    links: list[tuple[int, Path]] = field(default_factory=list)


def _sort_folder(folder: Path) -> _Folder:
    found = _Folder()
    files = (path for path in sorted(folder.iterdir()) if path.is_file())
    for _, path in zip(range(_LOOKED_AT), files, strict=False):
        content = identify_content(path)
        if content is Content.LINKS:
            link_format = find_link_format(peek_dump(path))
            found.links.append((LINK_FORMATS.index(link_format) if link_format else len(LINK_FORMATS), path))
        elif content is not None:
            found.of(content).append(path)
    return found


def _rail_of(folder: Path) -> RailFiles | None:
    found = _sort_folder(folder)
    if not found.links:
        return None
    _, links = min(found.links)
    return RailFiles(
        links=links,
        tables=find_fdbs(links),
        candidates=tuple(found.tables),
        lid_ranges=next(iter(found.lid_ranges), None),
        adaptive=next(iter(found.adaptive), None),
    )
