# SPDX-License-Identifier: Apache-2.0
"""Read a fabric in whichever format a file has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.assemble import assemble
from ibprof_converter.fabric.db_csv import looks_like_db_csv, parse_db_csv
from ibprof_converter.fabric.dump_files import find_sibling, read_dump
from ibprof_converter.fabric.fabric_graph import Fabric
from ibprof_converter.fabric.guid2lid import GUID2LID, apply_lid_ranges, read_lid_ranges
from ibprof_converter.fabric.ibnetdiscover import looks_like_ibnetdiscover, parse_ibnetdiscover
from ibprof_converter.fabric.listing import Listing
from ibprof_converter.fabric.lst import looks_like_lst, looks_like_opensm_lst, parse_lst
from ibprof_converter.fabric.port_list import looks_like_port_list, parse_port_list


@dataclass(frozen=True, slots=True)
class LinkFormat:
    """A format that lists links: its name, how it is told from others, how its links are read."""

    name: str
    recognise: Callable[[bytes], bool]
    parse: Callable[[str | PathLike[str], bytes], Listing]


LINK_FORMATS = (
    LinkFormat("ibdiagnet 2's .db_csv", looks_like_db_csv, parse_db_csv),
    LinkFormat("OpenSM's .lst", looks_like_opensm_lst, parse_lst),
    LinkFormat("ibnetdiscover", looks_like_ibnetdiscover, parse_ibnetdiscover),
    LinkFormat("ibdiagnet's .lst", looks_like_lst, parse_lst),
    LinkFormat("ibnetdiscover -p", looks_like_port_list, parse_port_list),
)
"""Where several are at hand, the first says most: state, LMC, true speeds, GUIDs."""


def read_fabric(path: str | PathLike[str], ranges_path: str | PathLike[str] | None = None) -> Fabric:
    """Read a fabric; its format is told by the content of the file, not by its name.

    A `guid2lid`, as OpenSM leaves one, gives the LMC of the ports where the file does not tell it and agrees with it.

    Args:
        path: the file.
        ranges_path: the `guid2lid`; None: the one beside the file, if any.

    Raises:
        InputError: the file is in no known format, or not what its format asks for.
        InconsistentError: it contradicts itself.
    """
    data = read_dump(path)
    link_format = find_link_format(data)
    if link_format is None:
        known = ", ".join(each.name for each in LINK_FORMATS)
        raise InputError(path, 1, f"links in one of the forms {known}", quote_found(data.split(b"\n", 1)[0]))
    fabric = assemble(link_format.parse(path, data))
    ranges_path = ranges_path or find_sibling(path, GUID2LID)
    if fabric.lmc_told or ranges_path is None:
        return fabric
    return apply_lid_ranges(fabric, read_lid_ranges(ranges_path))


def find_link_format(data: bytes) -> LinkFormat | None:
    """Tell by the beginning of a file in which format it lists links; None when it does not."""
    return next((each for each in LINK_FORMATS if each.recognise(data)), None)
