# SPDX-License-Identifier: Apache-2.0
"""Find the dumps in a folder by their content."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from ibprof.errors import IbprofError
from ibprof_converter.fabric.db_csv import has_links_section, looks_like_db_csv
from ibprof_converter.fabric.dump_files import (
    find_sibling,
    head_of,
    is_archive,
    list_files,
    list_folders,
    peek_dump,
    read_dump,
    strip_compression,
)
from ibprof_converter.fabric.fabric_graph import NodeKind, Origin
from ibprof_converter.fabric.guid2lid import looks_like_lid_ranges
from ibprof_converter.fabric.link_formats import LINK_FORMATS, find_link_format, read_fabric
from ibprof_converter.fabric.node_names import (
    host_name,
    is_aggregation_node,
    looks_like_name_map,
    natural_key,
    show_some,
)
from ibprof_converter.fabric.partitions import looks_like_partitions
from ibprof_converter.routing.far import is_far_of, looks_like_far
from ibprof_converter.routing.table_formats import find_table_format

_LOOKED_AT = 1000
"""Largest number of files that are inspected in a folder: a fabric has fewer dumps, even with one file per switch."""

_LOOKED_AT_BELOW = 4000
"""Largest number of files that are inspected below a folder, over all its subfolders."""

_DEPTH = 2

_KNOWN_NAME = re.compile(
    r"ibdiagnet2?\.(?:lst|fdbs|db_csv|far|ar|net_dump|ibnetdiscover)|opensm-subnet\.lst|opensm\.fdbs|opensm-lfts\.dump|"
    r"guid2lid|ib-node-name-map|ibroutes?\b.*|ibnetdiscover\b.*|dump_fts\b.*|.*\.(?:fdbs|db_csv|far)",
    re.IGNORECASE,
)
"""Matches usual file names of dumps."""


class Content(Enum):
    """Kinds of a file's content."""

    LINKS = "links"
    TABLES = "forwarding tables"
    LID_RANGES = "LIDs of ports"
    ADAPTIVE = "adaptive routing"
    NAMES = "names of nodes"
    PARTITIONS = "partitions"


@dataclass(slots=True)
class FolderDumps:
    """Files in a folder, by kind of content; each kind is sorted by name.

    Attributes:
        links: lists of links, each with the index of its format in `LINK_FORMATS` (0: the best format).
        notes: sentences on files that have the usual name of a dump, but are unusable.
        archives: files that the user must unpack first.
    """

    links: list[tuple[int, Path]] = field(default_factory=list)
    tables: list[Path] = field(default_factory=list)
    lid_ranges: list[Path] = field(default_factory=list)
    adaptive: list[Path] = field(default_factory=list)
    names: list[Path] = field(default_factory=list)
    partitions: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    archives: list[Path] = field(default_factory=list)

    def of(self, content: Content) -> list[Path]:
        """Return the files of a kind; `content` is not `Content.LINKS`."""
        return {
            Content.TABLES: self.tables,
            Content.LID_RANGES: self.lid_ranges,
            Content.ADAPTIVE: self.adaptive,
            Content.NAMES: self.names,
            Content.PARTITIONS: self.partitions,
        }[content]


def identify_content(path: Path) -> Content | None:
    """Return the kind of a file's content by its first bytes; None if it is unknown, or the file cannot be read."""
    return _identify(peek_dump(path))


def is_adaptive(path: Path) -> bool:
    """Return true if a file's content is `ADAPTIVE`; this is faster than `identify_content`."""
    head = peek_dump(path)
    return looks_like_far(head) and _identify(head) is Content.ADAPTIVE


def _identify(head: bytes) -> Content | None:
    if b"\0" in head:  # ignore binary files, which can be large
        return None
    return next((content for content, looks_like in _LOOKS if looks_like(head)), None)


_LOOKS: tuple[tuple[Content, Callable[[bytes], object]], ...] = (
    (Content.LINKS, find_link_format),
    (Content.ADAPTIVE, looks_like_far),
    (Content.TABLES, find_table_format),
    (Content.LID_RANGES, looks_like_lid_ranges),
    (Content.PARTITIONS, looks_like_partitions),
    (Content.NAMES, looks_like_name_map),
)


def describe_unused(found: FolderDumps) -> str:
    """Describe, for an error message, the files in a folder that has no list of links."""
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
    """Return the dumps in the subfolders of a folder, and in the subfolders of these."""
    found = FolderDumps()
    left = _LOOKED_AT_BELOW
    level = [folder]
    for _ in range(_DEPTH):
        level = [each for parent in level for each in list_folders(parent) if not each.name.startswith(".")]
        for each in sorted(level, key=lambda path: natural_key(path.name)):
            left -= _sort_files(each, found, left)
    return found


def _sort_files(folder: Path, found: FolderDumps, limit: int) -> int:
    """Inspect at most `limit` files of a folder; add the dumps to `found`. Return the number of inspected files."""
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


_SWITCH = re.compile(
    rb"\bswitchguid=0x([0-9A-Fa-f]{1,16})"  # ibnetdiscover
    rb"|\{ SW(?:-SM)? [^{}\n]{0,99}NodeGUID:([0-9A-Fa-f]{16})"  # .lst
    rb"|\bSW[ \t0-9]{1,30}0x([0-9A-Fa-f]{16})"  # ibnetdiscover -p
    rb'|^[ \t]{0,9}"[^\n]{0,256}", [^,\n]{0,99}, 0x([0-9A-Fa-f]{1,16}), LID [0-9]{1,5}\s*$'  # .net_dump
    rb"|^\"?[^\n]{0,256},[0-9]{1,3},2,[0-9]{1,3},[0-9]{1,3},0x[0-9A-Fa-f]{1,16},0x([0-9A-Fa-f]{1,16}),",  # NODES
    re.MULTILINE,
)
"""Matches GUIDs of switches in those formats whose files are large; files of other formats are parsed."""


def choose_lists(lists: Sequence[tuple[int, Path]]) -> tuple[list[Path], list[str]]:
    """Choose the lists of links to read, one for each rail.

    Lists with a common switch are dumps of one subnet: choose the list with the best format. Several subnets with
    the same hosts are several rails.

    Args:
        lists: (index of the format, path) of each list; format 0 is the best.

    Returns:
        The chosen lists, in natural order of names; and sentences on lists that are unreadable, without links, or of
        other fabrics.
    """
    subnets: list[tuple[set[int], list[tuple[bool, int, Path]]]] = []
    if len(lists) < 2:
        return [path for _, path in lists], []
    notes = []
    for rank, path in lists:
        switches, is_usable = _look_through(path)
        if not is_usable:
            notes.append(f"{path}: not used as a list of links, since it has no section LINKS")
        same = [subnet for subnet in subnets if not switches or not subnet[0] or subnet[0] & switches]
        joined = (
            switches.union(*(subnet[0] for subnet in same)),
            [(not switches or not is_usable, rank, path), *(each for subnet in same for each in subnet[1])],
        )
        subnets = [subnet for subnet in subnets if subnet not in same] + [joined]
    # Sort files without a switch last: they may be other text.
    best = [min(found)[-1] for _, found in subnets]
    if len(best) < 2:
        return best, notes
    chosen, passed_over = _choose_rails(best)
    return chosen, notes + passed_over


def _choose_rails(lists: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Choose the lists of links that become rails.

    The list with the most hosts becomes a rail. Another list becomes a rail if at least half of its hosts are in the
    list with the most hosts.
    """
    hosts: dict[Path, set[str]] = {}
    notes = []
    for path in lists:
        try:
            hosts[path] = _find_host_names(path)
        except IbprofError as error:
            notes.append(f"skipped: {error}")
    if not hosts:
        return [lists[0]], []
    main = max(sorted(hosts), key=lambda path: len(hosts[path]))
    chosen = []
    for path, names in hosts.items():
        if path == main or 2 * len(names & hosts[main]) >= max(len(names), 1):
            chosen.append(path)
        else:
            notes.append(
                f"{path}: skipped, since it lists another fabric than {main.name}; to use it, name only this file"
            )
    return sorted(chosen, key=lambda path: natural_key(path.name)), notes


def _look_through(path: Path) -> tuple[set[int], bool]:
    """Return the GUIDs of a list's switches; and true if the list has links or cannot be read."""
    try:
        data = read_dump(path)
    except IbprofError:
        return set(), True
    found = {int(next(filter(None, groups)), 16) for groups in _SWITCH.findall(data)}
    if not found:
        with suppress(IbprofError):
            fabric = read_fabric(path)
            if fabric.origin is Origin.SUBNET:
                found = set(fabric.node_guid[fabric.node_kind == NodeKind.SWITCH].tolist())
    return found, not looks_like_db_csv(head_of(data)) or has_links_section(data)


def _find_host_names(path: Path) -> set[str]:
    fabric = read_fabric(path)
    is_adapter = (fabric.node_kind == NodeKind.CA).tolist()
    named = (name for name, adapter in zip(fabric.node_name, is_adapter, strict=True) if adapter)
    return {host_name(name) for name in named if not is_aggregation_node(name)}


def find_far(lst_path: Path, candidates: Sequence[Path]) -> Path | None:
    """Return the `.far` of a list of links; None without a `.far`.

    For a list `NAME.SUFFIX`, `NAME.far` is preferred to other files that contain the list's switches.

    Args:
        candidates: other `.far` files, which may contain the list's switches.
    """
    stem = strip_compression(lst_path).rpartition(".")[0] or strip_compression(lst_path)
    sibling = find_sibling(lst_path, f"{stem}.far")
    if sibling is not None and looks_like_far(peek_dump(sibling)):
        return sibling
    if not candidates:
        return None
    switches, _ = _look_through(lst_path)
    return next((each for each in candidates if not switches or is_far_of(each, switches)), None)
