# SPDX-License-Identifier: Apache-2.0
"""Read a fabric from a file of any known format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from os import PathLike, fspath
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ibprof.errors import InconsistentError, InputError
from ibprof_converter.fabric.assemble import assemble
from ibprof_converter.fabric.db_csv import looks_like_db_csv, parse_db_csv
from ibprof_converter.fabric.dump_files import (
    DumpFormat,
    find_format,
    find_sibling,
    list_files,
    peek_dump,
    read_dump,
    unknown_format,
)
from ibprof_converter.fabric.fabric_graph import Fabric, Origin
from ibprof_converter.fabric.guid2lid import GUID2LID, apply_lid_ranges, read_lid_ranges
from ibprof_converter.fabric.iblinkinfo import looks_like_link_info, parse_link_info
from ibprof_converter.fabric.ibnetdiscover import looks_like_ibnetdiscover, parse_ibnetdiscover
from ibprof_converter.fabric.listing import Listing
from ibprof_converter.fabric.lldp import looks_like_lldp, parse_lldp, parse_lldp_files
from ibprof_converter.fabric.lst import looks_like_lst, looks_like_opensm_lst, parse_lst
from ibprof_converter.fabric.net_dump import looks_like_net_dump, parse_net_dump
from ibprof_converter.fabric.node_names import distinguish_switches, name_unnamed, read_name_map, rename_nodes
from ibprof_converter.fabric.planes import number_planes, take_plane
from ibprof_converter.fabric.port_list import looks_like_port_list, parse_port_list
from ibprof_converter.fabric.slurm_listing import looks_like_slurm, looks_like_slurm_yaml, parse_slurm, parse_slurm_yaml
from ibprof_converter.fabric.topograph import looks_like_topograph, parse_topograph

LLDP = DumpFormat("lldpcli's JSON", looks_like_lldp, parse_lldp)
"""Each file lists the neighbours of one node; a fabric is a folder of such files."""

LINK_FORMATS: tuple[DumpFormat[Listing], ...] = (
    DumpFormat("ibdiagnet 2's .db_csv", looks_like_db_csv, parse_db_csv),
    DumpFormat("OpenSM's .lst", looks_like_opensm_lst, parse_lst),
    DumpFormat("ibnetdiscover", looks_like_ibnetdiscover, parse_ibnetdiscover),
    DumpFormat("ibdiagnet's .lst", looks_like_lst, parse_lst),
    DumpFormat("ibnetdiscover -p", looks_like_port_list, parse_port_list),
    DumpFormat("iblinkinfo -l", looks_like_link_info, parse_link_info),
    DumpFormat("ibdiagnet 2's .net_dump", looks_like_net_dump, parse_net_dump),
    LLDP,
    DumpFormat("Slurm's topology.conf or scontrol show topology", looks_like_slurm, parse_slurm),
    DumpFormat("Slurm's topology.yaml", looks_like_slurm_yaml, parse_slurm_yaml),
    DumpFormat("topograph's graph", looks_like_topograph, parse_topograph),
)
"""Formats of links. Formats with more data (state, LMC, true speeds, GUIDs) come first."""


_XDR = re.compile(rb"1xXDR|1x XDR|PHY=1x LOG=[A-Z]{3} SPD=200\b|:\s*1x\s*:\s*200\s*:")
"""Matches the rate of an XDR link with one lane. `.db_csv` has codes instead, which do not match."""

_HEAD = 65536

_LOOKED_AT = 200
"""If a list lacks speeds, at most this number of files in its folder are searched for speeds."""

_SAME_SUBNET = 0.9
"""Two lists describe one subnet if the second list contains more than this share of the first list's links."""


def read_fabric(
    path: str | PathLike[str],
    ranges_path: str | PathLike[str] | None = None,
    names_path: str | PathLike[str] | None = None,
    parts: Sequence[Path] = (),
    plane: int | None = None,
) -> Fabric:
    """Read a fabric. The format is detected by the file's content.

    If several switches have one description, digits of their GUIDs are added to their names. If the file lacks LMCs,
    and OpenSM's `guid2lid` has the same LIDs, LMCs are read from `guid2lid`.

    Args:
        path: the file, or a folder of `LLDP` files.
        ranges_path: the path of `guid2lid`. If None: the `guid2lid` in the folder of the file, if any.
        names_path: the path of a name map in the form of OFED's tools, or None.
        parts: the `LLDP` files of one fabric, beginning with `path`; empty: the files of the folder `path`, if any.
        plane: index of the plane to read, from 0 to `count_planes` - 1. If None: the links of all planes.

    Raises:
        InputError: the format is unknown, or no line of the file is usable.
        InconsistentError: the file contradicts itself.
    """
    if files := parts or _find_lldp_files(Path(path)):
        return assemble(distinguish_switches(_name_nodes(parse_lldp_files(path, files), names_path)))
    if plane is None:
        fabric = assemble(distinguish_switches(_read_listing(path, read_dump(path), names_path)))
    else:
        listing, planes = _read_planes(Path(path), None if names_path is None else Path(names_path), _version_of(path))
        fabric = replace(assemble(distinguish_switches(take_plane(listing, plane, planes))), plane_of=fspath(path))
    if fabric.assumed_speeds and fabric.origin is Origin.SUBNET:
        fabric = _read_speeds(fabric, Path(path))
    ranges_path = ranges_path or find_sibling(path, GUID2LID)
    if fabric.lmc_known or ranges_path is None:
        return fabric
    return apply_lid_ranges(fabric, read_lid_ranges(ranges_path))


def _version_of(path: str | PathLike[str]) -> tuple[int, ...]:
    """Return numbers that change when the file changes."""
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=1)
def _read_planes(
    path: Path, names_path: Path | None, _version: tuple[int, ...]
) -> tuple[Listing, npt.NDArray[np.int64] | None]:
    """Return the list of a file, and the plane of each row: int64 [row], None if the list has no planes.

    The result is cached: callers read one plane after the other.
    """
    listing = _read_listing(path, read_dump(path), names_path)
    return listing, number_planes(listing)


def _read_listing(path: str | PathLike[str], data: bytes, names_path: str | PathLike[str] | None) -> Listing:
    # If the first bytes show no format, search the whole file: messages before the list can be long.
    link_format = find_link_format(data) or next((each for each in LINK_FORMATS if each.recognise(data)), None)
    if link_format is None:
        raise unknown_format(path, data, "links", LINK_FORMATS)
    return _name_nodes(link_format.parse(path, data), names_path)


def _read_speeds(fabric: Fabric, path: Path) -> Fabric:
    """Read the speeds from another list of links in the folder; without such a list, warn that speeds are assumed."""
    known = LINK_FORMATS[: LINK_FORMATS.index(LLDP)]
    others = [each for each, size in islice(list_files(path.parent), _LOOKED_AT) if size and each.name != path.name]
    found = [(known.index(kind), each) for each in others if (kind := find_link_format(peek_dump(each))) in known]
    for _, other in sorted(found, key=lambda each: each[0]):
        with suppress(InputError, InconsistentError):
            speeds = assemble(_read_listing(other, read_dump(other), None))
            row_of = {ends: row for row, ends in enumerate(_list_ends(speeds))}
            rows = np.array([row_of.get(ends, -1) for ends in _list_ends(fabric)])
            same = rows >= 0
            if same.mean() > _SAME_SUBNET and not speeds.assumed_speeds:
                gbps, lanes = fabric.link_gbps.copy(), fabric.link_lanes.copy()
                gbps[same], lanes[same] = speeds.link_gbps[rows[same]], speeds.link_lanes[rows[same]]
                note = f"speeds are those of {other.name}, since {fabric.assumed_speeds}"
                return replace(
                    fabric, link_gbps=gbps, link_lanes=lanes, assumed_speeds="", warnings=(*fabric.warnings, note)
                )
    return replace(fabric, warnings=(*fabric.warnings, f"speeds are assumed, since {fabric.assumed_speeds}"))


def _list_ends(fabric: Fabric) -> list[tuple[int, ...]]:
    """Return NODE GUID and port of both ends of each link, in the order of `link_node`."""
    guid = fabric.node_guid[fabric.link_node].T.tolist()
    port = fabric.link_port.T.tolist()
    return [*zip(guid[0], port[0], guid[1], port[1], strict=True)]


def count_planes(path: Path) -> int:
    """Return the number of planes in a file; 1 for a file without planes or without links."""
    return _count_planes(path, _version_of(path)) if path.is_file() else 1


@lru_cache(maxsize=256)
def _count_planes(path: Path, _version: tuple[int, ...]) -> int:
    try:
        data = read_dump(path)
        if not (_XDR.search(data) or looks_like_db_csv(data[:_HEAD])):
            return 1
        planes = number_planes(_read_listing(path, data, None))
    except (InputError, InconsistentError):
        return 1  # the error is reported when the file is read
    return 1 if planes is None else int(planes.max()) + 1


def _find_lldp_files(folder: Path) -> list[Path]:
    return [path for path, size in list_files(folder) if size and find_link_format(peek_dump(path)) is LLDP]


def _name_nodes(listing: Listing, names_path: str | PathLike[str] | None) -> Listing:
    if names_path is not None:
        names, remarks = read_name_map(names_path)
        listing = replace(rename_nodes(listing, names), remarks=(*listing.remarks, *remarks))
    return name_unnamed(listing)


def find_link_format(data: bytes) -> DumpFormat[Listing] | None:
    """Return the link format of a file; None if it lists no links. `data` is the file, or its first bytes."""
    return find_format(LINK_FORMATS, data)
