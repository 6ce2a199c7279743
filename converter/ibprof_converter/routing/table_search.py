# SPDX-License-Identifier: Apache-2.0
"""The forwarding tables of a fabric among files with tables of any fabric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

import numpy as np

from ibprof.errors import InputError
from ibprof_converter.fabric.fabric_graph import Fabric, switch_guids
from ibprof_converter.routing.adaptive_groups import AdaptiveRouting
from ibprof_converter.routing.rail_files import RailFiles
from ibprof_converter.routing.table_reader import has_tables, read_tables
from ibprof_converter.routing.tables import ForwardingTables, merge_tables

_WANTED = (
    "forwarding tables of this fabric in its folder, below it, or named too: "
    "`dump_fts > FILE`, `ibroute LID > FILE` for each switch, `ibdiagnet -r`, or those that OpenSM writes "
    "(`opensm -D 0x43 --dump_files_dir DIR`)"
)


class MissingTablesError(InputError):
    """No tables were found for a list of links.

    Attributes:
        unused: files with tables of other fabrics, a sentence each.
    """

    def __init__(self, path: str | PathLike[str], unused: Sequence[str] = ()) -> None:
        super().__init__(path, None, _WANTED, "; ".join(unused) or "none")
        self.unused = tuple(unused)


def find_tables(fabric: Fabric, files: RailFiles, adaptive: AdaptiveRouting | None) -> ForwardingTables:
    """Return the tables of this fabric among the candidates: the first whole file, else the most complete.

    Files with the table of one switch each, as `ibroute` writes them, are taken together. The log of a session can have
    the tables after the list of links, in one file.

    Raises:
        MissingTablesError: no candidate has a table of this fabric.
        InputError: nothing can be read of the only candidates.
    """
    switches = switch_guids(fabric)
    best, covered, single = None, 0, []
    error: InputError | None = None
    unused = []
    candidates = files.candidates or ((files.links,) if has_tables(files.links) else ())
    for path in candidates:
        try:
            tables = adaptive.tables if adaptive and path == files.adaptive else read_tables(path)
        except InputError as found:
            error = error or found
            continue
        here = int(np.isin(switches, tables.switch_guid).sum())
        if not here:
            unused.append(f"{path}: not used, its tables belong to no switch of {fabric.name}")
        if len(tables.switch_guid) == 1 and here:
            single.append(tables)
        if here > covered:
            best, covered = tables, here
        if here == len(switches):
            break
    if len(single) > covered or (best is not None and len(single) > 1 and covered == 1):
        best = merge_tables(single)
    if best is not None:
        return best if error is None else replace(best, warnings=(*best.warnings, f"passed over: {error}"))
    if error is not None:
        raise error
    raise MissingTablesError(files.links, unused)
