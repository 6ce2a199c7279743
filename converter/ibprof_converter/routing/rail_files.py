# SPDX-License-Identifier: Apache-2.0
"""Find the files of each rail in the files and folders that the user names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path

from ibprof.errors import InconsistentError, InputError, UsageError
from ibprof_converter.fabric.dump_files import find_sibling, list_folders, peek_dump, strip_compression
from ibprof_converter.fabric.link_formats import LINK_FORMATS, LLDP, count_planes, find_link_format, read_fabric
from ibprof_converter.fabric.node_names import find_name_map, natural_key, show_some
from ibprof_converter.fabric.partitions import PARTITIONS_CONF, looks_like_partitions
from ibprof_converter.routing.folder_dumps import (
    Content,
    FolderDumps,
    choose_lists,
    describe_unused,
    find_far,
    identify_content,
    is_adaptive,
    sort_below,
    sort_folder,
)
from ibprof_converter.routing.synthetic.spec import count_subnets, is_synthetic
from ibprof_converter.routing.table_formats import find_fdbs


@dataclass(frozen=True, slots=True)
class RailFiles:
    """The files of one rail.

    Attributes:
        links: the list of links, or the first of `parts`.
        parts: the LLDP files, one for each node, of an Ethernet fabric.
        tables: file with the forwarding tables of the rail; None if the tables must be searched in `candidates`.
        candidates: files that may contain this rail's tables, each of all switches or of one switch.
        lid_ranges: a `guid2lid` of OpenSM; None: the `guid2lid` in the folder of the list of links, if any.
        adaptive: ibdiagnet 2's `.far`, if any; it may also be one of `candidates`.
        synthetic: the name of a synthetic fabric; None for files.
        notes: sentences on files that are not used.
        plane: index of the plane in the list, or of the subnet in the synthetic fabric; None if there is only one.
    """

    links: Path
    parts: tuple[Path, ...] = ()
    tables: Path | None = None
    candidates: tuple[Path, ...] = ()
    lid_ranges: Path | None = None
    adaptive: Path | None = None
    names: Path | None = None
    partitions: tuple[Path, ...] = ()
    synthetic: str | None = None
    notes: tuple[str, ...] = ()
    plane: int | None = None

    def all(self) -> Iterator[Path]:
        """Yield all files that may be read."""
        if self.synthetic:
            return
        for path in (
            self.links,
            *self.parts[1:],
            self.tables,
            *self.candidates,
            self.lid_ranges,
            self.adaptive,
            self.names,
            *self.partitions,
        ):
            if path is not None:
                yield path


def find_rails(
    names: Sequence[str | PathLike[str]],
    tables: Sequence[str | PathLike[str]] = (),
    name_map: str | PathLike[str] | None = None,
) -> list[RailFiles]:
    """Assign files and folders to rails by their content. Each list of links is one rail.

    In a folder, the list of links in the best format is a rail; all other files in the folder or below belong to this
    rail. Lists of other subnets with the same hosts are further rails. A list of other hosts is skipped with a note. If
    a folder contains only folders of dumps, each of these folders is a rail. Each plane of a list is a rail
    (`count_planes`).

    If the user names single files, file i with tables belongs to list i of links. If there are more files with tables
    than lists, each file belongs to the list that contains its switches. Without files with tables, tables are searched
    in the folder of the list and below. A name such as `xgft:..` is a synthetic fabric.

    Args:
        names: files, folders and synthetic fabrics.
        tables: files with tables, one for each rail; if empty, tables are searched.
        name_map: name map for all rails. If None: the name map in the folder of each list, if any.

    Raises:
        UsageError: files with tables and rails differ in number, or a synthetic fabric has files.
        InputError: a folder, or the list of files, has no list of links.
    """
    rails: list[RailFiles] = []
    named = FolderDumps(tables=[Path(name) for name in tables])
    for name in names:
        path = Path(name)
        if is_synthetic(name):
            rails.append(RailFiles(path, synthetic=fspath(name)))
            continue
        if path.is_dir():
            found = sort_folder(path)
            # A folder with tables, but without links, belongs to a list of links that the user named separately.
            if not found.links and (found.tables or found.adaptive) and len(names) > 1:
                named.tables += found.tables
                named.adaptive += found.adaptive
            else:
                rails.extend(_read_folder(path, found))
            continue
        content = identify_content(path)
        if content is Content.LINKS and find_link_format(peek_dump(path)) is LLDP:
            _add_part(rails, path)
        elif content is None or content is Content.LINKS:
            rails.append(RailFiles(path))
        else:
            named.of(content).append(path)
    _refuse_tables_alone(rails, named)
    given = [*named.tables, *named.adaptive, *named.lid_ranges, *named.partitions]
    made = next((rail.synthetic for rail in rails if rail.synthetic), None)
    if given and made:
        raise UsageError(f"{made} is a synthetic fabric: {given[0]} cannot replace its tables or LIDs")
    for what, files in (("guid2lid", named.lid_ranges), ("adaptive routing", named.adaptive)):
        if files and len(files) != len(rails):
            raise UsageError(f"{what}: expected one file for each of {len(rails)} LST, found {len(files)}")
    if named.tables and (len(named.tables) < len(rails) or (tables and len(named.tables) != len(rails))):
        raise UsageError(f"tables: expected one file for each of {len(rails)} LST, found {len(named.tables)}")
    completed = [_complete(rail, named, number, len(rails)) for number, rail in enumerate(rails)]
    chosen = find_name_map(name_map) if name_map is not None else next(iter(named.names), None)
    return [plane for rail in completed for plane in _split_planes(replace(rail, names=chosen or rail.names))]


def _split_planes(rail: RailFiles) -> list[RailFiles]:
    """Divide a rail: return one rail for each plane of its list, or for each subnet of its synthetic fabric."""
    count = count_subnets(rail.synthetic) if rail.synthetic else 1 if rail.parts else count_planes(rail.links)
    return [rail] if count == 1 else [replace(rail, plane=plane) for plane in range(count)]


def _refuse_tables_alone(rails: Sequence[RailFiles], named: FolderDumps) -> None:
    for content in (Content.TABLES, Content.ADAPTIVE, Content.LID_RANGES, Content.NAMES, Content.PARTITIONS):
        if not rails and (left := named.of(content)):
            raise InputError(left[0], None, "a list of links", f"only {content.value}")


def _add_part(rails: list[RailFiles], path: Path) -> None:
    """Add an LLDP file to the rail of the earlier LLDP files."""
    for number, rail in enumerate(rails):
        if rail.parts:
            rails[number] = replace(rail, parts=(*rail.parts, path))
            return
    rails.append(RailFiles(path, parts=(path,)))


def has_links(path: Path) -> bool:
    """Return true if a file is a list of links, or if a folder contains one."""
    return bool(sort_folder(path).links) if path.is_dir() else identify_content(path) is Content.LINKS


def _complete(rail: RailFiles, named: FolderDumps, number: int, rails: int) -> RailFiles:
    """Add the files that the user named to a rail.

    If the user named no tables, use the tables in the folder of the rail's list or below.
    """
    if rail.synthetic:
        return rail
    tables, candidates, notes = rail.tables, rail.candidates, rail.notes
    if named.tables:
        is_one_each = len(named.tables) == rails
        tables = named.tables[number] if is_one_each else None
        candidates = () if is_one_each else tuple(named.tables)
    elif tables is None:
        tables = find_fdbs(rail.links)
        if tables is None and not candidates:
            found = sort_folder(rail.links.parent)
            candidates = tuple(_find_candidates(rail.links.parent, found))
            # Notes on unusable files may explain why there are no candidates.
            notes = (*notes, *(note for note in found.notes if not candidates and note not in notes))
    adaptive = named.adaptive[number] if named.adaptive else rail.adaptive
    if adaptive is None:
        adaptive = _find_adaptive(rail.links, tables, candidates)
    partitions = rail.partitions or _find_partitions(rail.links)
    if named.partitions:
        partitions = (named.partitions[number],) if len(named.partitions) == rails else tuple(named.partitions)
    return replace(
        rail,
        tables=tables,
        candidates=candidates if tables or adaptive is None else (*_without(candidates, adaptive), adaptive),
        lid_ranges=named.lid_ranges[number] if named.lid_ranges else rail.lid_ranges,
        adaptive=adaptive,
        partitions=partitions,
        notes=notes,
    )


def _find_partitions(links: Path) -> tuple[Path, ...]:
    """Return ibdiagnet's `.pkey` file with the list's name, or else `partitions.conf` in the list's folder."""
    stem = strip_compression(links).rpartition(".")[0] or strip_compression(links)
    found = (find_sibling(links, name) for name in (f"{stem}.pkey", PARTITIONS_CONF))
    return tuple(path for path in found if path and looks_like_partitions(peek_dump(path)))[:1]


def _find_adaptive(links: Path, tables: Path | None, candidates: Sequence[Path]) -> Path | None:
    """Return a list's `.far`, from the list's folder or from the files with tables; None without a `.far`."""
    named = [tables] if tables is not None else list(candidates)
    return find_far(links, [path for path in named if is_adaptive(path)])


def _without(paths: Sequence[Path], path: Path) -> tuple[Path, ...]:
    return tuple(each for each in paths if each != path)


def _find_candidates(folder: Path, found: FolderDumps) -> list[Path]:
    """Return the files with tables in a folder; without such files, those in its subfolders. `.far` files come last."""
    if found.tables or found.adaptive:
        return [*found.tables, *found.adaptive]
    below = sort_below(folder)
    return [*below.tables, *below.adaptive]


def _read_folder(folder: Path, found: FolderDumps) -> list[RailFiles]:
    rails = _rails_of(folder, found)
    if not rails:
        for path in sorted(list_folders(folder), key=lambda path: natural_key(path.name)):
            rails += _rails_of(path, sort_folder(path))
        rails, found.notes = _pass_over_unusable(rails, found.notes)
    if not rails:
        expected = "a folder with dumps of a fabric, or with folders of such dumps"
        raise InputError(folder, None, expected, describe_unused(found))
    return rails


def _pass_over_unusable(rails: list[RailFiles], notes: list[str]) -> tuple[list[RailFiles], list[str]]:
    """Return the rails with readable lists; and `notes`, with a note on each unreadable list.

    The notes of the first rail also contain these notes. An unreadable list is no error: it may be other text. A
    single list is returned unread.
    """
    if len(rails) < 2:
        return rails, notes
    usable, notes = [], list(notes)
    for rail in rails:
        try:
            read_fabric(rail.links, rail.lid_ranges)
        except InputError as error:
            notes.append(f"skipped: {error}")
        except InconsistentError:
            usable.append(rail)  # keep the list: `--check` reports its contradiction as a finding
        else:
            usable.append(rail)
    if usable:
        usable[0] = replace(usable[0], notes=(*usable[0].notes, *notes))
    return usable, notes


def _rails_of(folder: Path, found: FolderDumps) -> list[RailFiles]:
    neighbours = [path for rank, path in found.links if LINK_FORMATS[rank] is LLDP]
    others = [each for each in found.links if each[1] not in neighbours]
    if len(neighbours) > 1 and not others:
        return [RailFiles(links=folder, names=next(iter(found.names), None), notes=tuple(found.notes))]
    lists, notes = choose_lists(others or found.links)
    if neighbours and others:
        names = show_some([path.name for path in neighbours])
        notes.append(
            f"{folder}: LLDP files are skipped ({names}), since there are other lists of links; "
            "to use the LLDP files, name only these"
        )
    is_alone = len(lists) == 1
    adaptive = [find_far(links, found.adaptive) for links in lists]
    notes += [f"{path}: not used, since no list has its switches" for path in found.adaptive if path not in adaptive]
    return [
        RailFiles(
            links=links,
            tables=find_fdbs(links),
            candidates=tuple(_find_candidates(folder, found)),
            lid_ranges=next(iter(found.lid_ranges), None) if is_alone else None,
            adaptive=adaptive[number],
            names=next(iter(found.names), None),
            partitions=tuple(found.partitions) if is_alone else (),
            notes=(*found.notes, *notes) if number == 0 else (),
        )
        for number, links in enumerate(lists)
    ]
