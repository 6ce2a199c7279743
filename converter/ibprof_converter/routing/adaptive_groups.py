# SPDX-License-Identifier: Apache-2.0
"""Parse ibdiagnet 2's `.ar` and `.far`: for which LIDs a switch chooses adaptively among a group of ports.

    dump_far: Switch 0x0002c90200f00010
    PLFT_NUM: 0
    LID    | StaticPort | LidState | Group
    0x0002 | 3          | Free     | 5
    Group  | SubGroup | WHBF | Ports
    5      | 0        | 0    | 3,4,7

Source: the column names of public parsers. No real file was available for testing. So unknown lines are no error: they
are counted and reported. Columns may be separated by `|` or `:`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike, fspath

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.fabric.listing import LAST_UNICAST_LID

NO_GROUP = -1

_HEAD = re.compile(rb"\bSwitch\s+0x([0-9A-Fa-f]{1,16})", re.IGNORECASE)
_PLFT = re.compile(rb"\s*PLFT_NUM:\s*(\d{1,3})\s*")
_LID_COLUMNS = re.compile(rb"^[ \t]*LID\s*[|:]\s*Static ?Port\s*[|:].*Group", re.IGNORECASE | re.MULTILINE)
_GROUP_COLUMNS = re.compile(rb"^[ \t]*Group\s*[|:].*Ports", re.IGNORECASE | re.MULTILINE)
_CUT = re.compile(rb"\s*[|:]\s*")
_STATIC = (b"static", b"s")


@dataclass(frozen=True, slots=True)
class AdaptiveRouting:
    """Adaptive routing of switches.

    Attributes:
        name: file it was read from, for messages.
        group: switch (NODE GUID) -> int32 [LID], group of ports for a LID, `NO_GROUP` where its route is static.
        ports: (switch, group) -> ports to choose from.
        warnings: what was not understood, a sentence each.
    """

    name: str
    group: dict[int, npt.NDArray[np.int32]]
    ports: dict[tuple[int, int], tuple[int, ...]]
    warnings: tuple[str, ...] = ()


def looks_like_adaptive(head: bytes) -> bool:
    """Return whether a file's beginning has the columns of a `.ar` or `.far`."""
    return bool(_LID_COLUMNS.search(head) or (_GROUP_COLUMNS.search(head) and _HEAD.search(head)))


def read_adaptive(path: str | PathLike[str]) -> AdaptiveRouting:
    """Read a `.ar` or `.far`.

    Raises:
        InputError: the file cannot be read, or no switch chooses among ports.
    """
    return parse_adaptive(path, read_dump(path))


def parse_adaptive(path: str | PathLike[str], data: bytes) -> AdaptiveRouting:
    """Parse a `.ar` or `.far`; of a switch's private tables only number 0 is used.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: no switch chooses among ports.
    """
    group: dict[int, npt.NDArray[np.int32]] = {}
    ports: dict[tuple[int, int], tuple[int, ...]] = {}
    switch, in_groups, private, strange = 0, False, False, 0
    for line in data.split(b"\n"):
        if not line.strip() or line.startswith(b"#"):
            continue
        if head := _HEAD.search(line):
            switch, in_groups, private = int(head[1], 16), False, False
        elif plft := _PLFT.fullmatch(line):
            private = int(plft[1]) > 0
        elif _LID_COLUMNS.match(line) or _GROUP_COLUMNS.match(line):
            in_groups = _GROUP_COLUMNS.match(line) is not None
        elif in_groups:
            strange += not _read_group(_CUT.split(line.strip()), switch, ports)
        elif not private:
            strange += not _read_lid(_CUT.split(line.strip()), switch, group)
    if not ports or not group:
        raise InputError(path, None, "LIDs that have groups of ports, and the ports of groups", "none")
    warnings = (f"{strange} lines were not understood",) if strange else ()
    return AdaptiveRouting(fspath(path), group, ports, warnings)


def _read_group(fields: list[bytes], switch: int, ports: dict[tuple[int, int], tuple[int, ...]]) -> bool:
    """Add a row of ports to a group, including its sub-groups; return False if the row is invalid."""
    numbers = [part.strip() for part in fields[-1].replace(b",", b" ").split()]
    if len(fields) < 2 or not fields[0].isdigit() or not all(part.isdigit() and int(part) < 255 for part in numbers):
        return False
    key = switch, int(fields[0])
    ports[key] = tuple(sorted({*ports.get(key, ()), *map(int, numbers)}))
    return True


def _read_lid(fields: list[bytes], switch: int, group: dict[int, npt.NDArray[np.int32]]) -> bool:
    """Store the group of a LID; return False if the row is invalid."""
    try:
        lid = int(fields[0], 0)
        number = int(fields[3]) if len(fields) > 3 and fields[3].isdigit() else NO_GROUP
    except ValueError:
        return False
    if not 0 < lid <= LAST_UNICAST_LID or len(fields) < 3:
        return False
    table = group.setdefault(switch, np.full(LAST_UNICAST_LID + 1, NO_GROUP, np.int32))
    table[lid] = NO_GROUP if fields[2].lower() in _STATIC else number
    return True
