# SPDX-License-Identifier: Apache-2.0
"""Find host names in NodeDescriptions, sort names in natural order, and read name maps.

A name map has the form that the option `--node-name-map` of OFED's tools expects:

# comment
0x0002c90200f00010 "leaf 1, rack 3"
S-0008f10500108c5c spine3                (NAME without quotes; GUID as ibnetdiscover writes it)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.damage import DamageLog, describe_damages
from ibprof_converter.fabric.dump_files import decode_name, read_dump
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import Listing

_SHOWN = 3
_DIGITS = re.compile(r"([0-9]+)")


USUAL_NAME = "ib-node-name-map"

USUAL_FOLDERS = (Path("/etc/opensm"), Path("/etc/infiniband-diags"), Path("/etc/rdma"))
"""Folders in which OFED's tools search for `USUAL_NAME`."""

_LINE = re.compile(
    rb"[ \t]{0,99}(?:0x|[SHR]-)([0-9A-Fa-f]{1,16})[ \t]{1,99}(?:\"([^\"\n]{1,256})\"|([^\"\s#]{1,256}))[ \t]*(?:#.*)?"
)

_COMMENT = re.compile(rb"\s*(?:#.*)?")

_SHORTEST_TAIL = 4


def host_name(description: str) -> str:
    """Return the host's name in an adapter's description, its first word (`host17` of `host17 HCA-1`); may be empty."""
    words = description.split(maxsplit=1)
    return words[0] if words else ""


def adapter_name(description: str, host: str) -> str:
    """Return an adapter's description without the host's name, such as `mlx5_0`; may be empty."""
    return description.replace(host, "", 1).strip(" -_.'")


def is_adapter_named(name: str, names: Collection[str]) -> bool:
    """Return true if an adapter's name, or a word of this name, is in `names`, which are in lower case."""
    own = name.casefold()
    return own in names or any(word in names for word in own.split())


def is_aggregation_node(description: str) -> bool:
    """Return true if a CA is an aggregation node (SHARP): a part of a switch, not of a host."""
    return "aggregation node" in description.lower()


def natural_key(name: str) -> str:
    """Return a sort key by which host9 comes before host10."""
    parts = _DIGITS.split(name)
    for place in range(1, len(parts), 2):
        number = parts[place].lstrip("0")
        # The number with more digits is larger. Numbers come before all other characters.
        parts[place] = f"\0{chr(len(number))}{number}"
    return "".join(parts) + "\0\0"


@lru_cache(maxsize=64)
def rank_names(names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """Return the position of each name in natural order: int64 [name], read-only. Equal names keep their order."""
    keys = [natural_key(name) for name in names]
    rank = np.empty(len(keys), np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    rank.flags.writeable = False
    return rank


def show_some(items: Sequence[str], most: int = _SHOWN) -> str:
    """Return the first items, separated by commas, and `...` in place of further items."""
    return ", ".join(items[:most]) + (", ..." if len(items) > most else "")


def looks_like_name_map(head: bytes) -> bool:
    """Return true if the first line that is not a comment is a line of a name map."""
    for line in head.split(b"\n", 50)[:50]:
        if not _COMMENT.fullmatch(line):
            match = _LINE.fullmatch(line)
            # A file with a hexadecimal number in the second column is OpenSM's guid2lid.
            return match is not None and (match[2] is not None or not match[3].startswith(b"0x"))
    return False


def find_name_map(name: str | PathLike[str]) -> Path:
    """Return the path of a name map: `name`, or, without such a file, the file `name` in `USUAL_FOLDERS`."""
    path = Path(name)
    if path.exists() or path.is_absolute():
        return path
    return next((folder / path for folder in USUAL_FOLDERS if (folder / path).exists()), path)


def read_name_map(path: str | PathLike[str]) -> tuple[dict[int, str], tuple[str, ...]]:
    """Read a name map.

    Returns:
        NODE GUID -> name; and sentences on lines that were left out.

    Raises:
        InputError: no line names a node.
    """
    names: dict[int, str] = {}
    log = DamageLog(path)
    for number, line in enumerate(read_dump(path).split(b"\n"), 1):
        if match := _LINE.fullmatch(line):
            names[int(match[1], 16)] = decode_name(match[2] or match[3])
        elif not _COMMENT.fullmatch(line):
            log.lose(number, InputError(path, number, '0x<NODE GUID> "name"', quote_found(line)))
    if not names:
        raise log.first_error or InputError(path, None, "names of nodes", "none")
    return names, tuple(f"{path}: {damage}" for damage in describe_damages(log.report()))


def rename_nodes(listing: Listing, names: Mapping[int, str]) -> Listing:
    """Return the listing with new node names from a map: NODE GUID -> name."""
    guids, of_end = np.unique(listing.node_guid, return_inverse=True)
    number = np.array([index if guid in names else -1 for index, guid in enumerate(guids.tolist())])
    changed = number[of_end].reshape(listing.name.shape)
    if not (changed >= 0).any():
        return listing
    added = tuple(names.get(guid, "") for guid in guids.tolist())
    name = np.where(changed >= 0, changed + len(listing.names), listing.name).astype(np.int32)
    return replace(listing, name=name, names=(*listing.names, *added))


def name_unnamed(listing: Listing) -> Listing:
    """Return the listing; the name of each node without a description is its NODE GUID."""
    if "" not in listing.names:
        return listing
    names = listing.node_names(np.ones(listing.name.shape, np.bool_))
    return rename_nodes(listing, {guid: f"0x{guid:016x}" for guid, name in names.items() if not name})


def distinguish_switches(listing: Listing) -> Listing:
    """Rename switches, so that each switch has a unique name.

    All unmanaged switches of one model have the same description. A repeated name becomes `NAME (..66fe)`, with the
    last digits of the switch's NODE GUID.
    """
    name_of = listing.node_names(listing.kind == NodeKind.SWITCH)
    sharing: dict[str, list[int]] = {}
    for guid, name in name_of.items():
        sharing.setdefault(name, []).append(guid)
    names: dict[int, str] = {}
    for name, guids in sharing.items():
        if len(guids) > 1:
            digits = [f"{guid:016x}" for guid in guids]
            length = next(n for n in range(_SHORTEST_TAIL, 17) if len({each[-n:] for each in digits}) == len(digits))
            names |= {guid: f"{name} (..{each[-length:]})".lstrip() for guid, each in zip(guids, digits, strict=True)}
    return rename_nodes(listing, names) if names else listing
