# SPDX-License-Identifier: Apache-2.0
"""Read a fabric in whichever format a file has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.assemble import assemble
from ibprof_converter.fabric.files import find_sibling, read_dump
from ibprof_converter.fabric.guid2lid import GUID2LID, apply_lid_ranges, read_lid_ranges
from ibprof_converter.fabric.listing import Listing
from ibprof_converter.fabric.lst import looks_like_lst, parse_lst
from ibprof_converter.fabric.model import Fabric


@dataclass(frozen=True, slots=True)
class _Format:
    """A format that lists links: its name, how it is told from others, how its links are read."""

    name: str
    recognise: Callable[[bytes], bool]
    parse: Callable[[str | PathLike[str], bytes], Listing]


_FORMATS = (_Format("an ibdiagnet .lst or OpenSM's opensm-subnet.lst", looks_like_lst, parse_lst),)


def read_fabric(path: str | PathLike[str]) -> Fabric:
    """Read a fabric; its format is told by the content of the file, not by its name.

    A `guid2lid` beside it, as OpenSM leaves one, gives the LMC of the ports where it agrees with the fabric.

    Raises:
        InputError: the file is in no known format, or not what its format asks for.
        InconsistentError: it contradicts itself.
    """
    data = read_dump(path)
    for candidate in _FORMATS:
        if candidate.recognise(data):
            fabric = assemble(candidate.parse(path, data))
            break
    else:
        known = " or ".join(candidate.name for candidate in _FORMATS)
        raise InputError(path, 1, known, quote_found(data.split(b"\n", 1)[0]))
    ranges_path = find_sibling(path, GUID2LID)
    return fabric if ranges_path is None else apply_lid_ranges(fabric, read_lid_ranges(ranges_path))
