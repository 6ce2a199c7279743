# SPDX-License-Identifier: Apache-2.0
"""Read OpenSM's `guid2lid`: the first and last LID of each port, which show the LMC that a `.lst` lacks.

A line per port, separated by blank lines: `0x0002c90300fa0091 0x001c 0x001d`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from os import PathLike, fspath

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.fabric.listing import LAST_UNICAST_LID

GUID2LID = "guid2lid"
_LINE = re.compile(rb"0x([0-9A-Fa-f]{1,16}) 0x([0-9A-Fa-f]{1,4}) 0x([0-9A-Fa-f]{1,4})\s*")
_SIZES = {1 << lmc: lmc for lmc in range(8)}
"""Number of a port's LIDs -> LMC. A port has 2**LMC LIDs; LMC has 3 bits."""


@dataclass(frozen=True, slots=True)
class LidRanges:
    """LIDs of ports.

    Attributes:
        base: PORT GUID -> first LID.
        lmc: PORT GUID -> LMC.
    """

    path: str
    base: dict[int, int]
    lmc: dict[int, int]


def looks_like_lid_ranges(head: bytes) -> bool:
    """Return true if the first line of a file has the form of a `guid2lid`."""
    return _LINE.fullmatch(head.lstrip().split(b"\n", 1)[0]) is not None


def read_lid_ranges(path: str | PathLike[str]) -> LidRanges:
    """Read a `guid2lid`.

    Raises:
        InputError: a line is invalid.
    """
    base = {}
    lmc = {}
    for number, line in enumerate(read_dump(path).split(b"\n"), 1):
        if not line or line.isspace():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise InputError(path, number, "0x<port GUID> 0x<first LID> 0x<last LID>", quote_found(line))
        guid, first, last = (int(field, 16) for field in match.groups())
        size = last - first + 1
        if size not in _SIZES or first % size or not 0 < first <= last <= LAST_UNICAST_LID:
            raise InputError(path, number, "an aligned block of 1, 2, 4 .. 128 unicast LIDs", quote_found(line))
        base[guid] = first
        lmc[guid] = _SIZES[size]
    return LidRanges(fspath(path), base, lmc)


def apply_lid_ranges(fabric: Fabric, ranges: LidRanges) -> Fabric:
    """Set the LMC of each port. If a port has different LIDs in file and fabric, only add a warning."""
    guids = [int(guid) for guid in fabric.port_guid]
    base = [ranges.base.get(guid) for guid in guids]
    known = [lid == expected for lid, expected in zip(fabric.port_lid.tolist(), base, strict=True)]
    if not all(known):
        warning = f"{ranges.path}: not used, since {known.count(False)} of {len(known)} ports have other LIDs in it"
        return replace(fabric, warnings=(*fabric.warnings, warning))
    lmc: npt.NDArray[np.int32] = np.array([ranges.lmc[guid] for guid in guids], np.int32)
    return replace(fabric, port_lmc=lmc, lmc_known=True)
