# SPDX-License-Identifier: Apache-2.0
"""Read and write forwarding tables in the form of OpenSM (`opensm-lfts.dump`) and of `dump_fts`.

    Unicast lids [0-44] of switch Lid 2 guid 0x0002c90200400000 ('sw-a'):
    0x0001 001 # Channel Adapter portguid 0x0002c903000a0001: 'host01 HCA-1'

    Unicast lids [0x0-0x27] of switch DR path slid 0; dlid 0; 0,1,4,4 guid 0x0002c90200f00028 (leaf 4):
      Lid  Out   Destination
           Port     Info
     0x0002 004 : (Channel Adapter portguid 0x0002c90300fa0001: 'q01 [rack 1] HCA-1')
     20 valid lids dumped

LIDs are hexadecimal, ports decimal. LIDs without a route are left out. Text after the port is ignored.

If the last LID of a table is a multiple of 64 (the block size), `dump_fts` of infiniband-diags 44 omits its route too.
A warning reports the missing route.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from os import PathLike

import numpy as np

from ibprof.text.quantities import printable
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.routing.stanzas import Entries, EntryForm, Stanzas, fill_tables, note_cut_end
from ibprof_converter.routing.subnet_routes import NONE
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

_RANGE = rb"Unicast lids \[[0-9a-fx]{1,6}-([0-9a-fx]{1,6})\] of switch "
# The description is in brackets after the GUID. The text before the GUID has no brackets.
_HEAD = re.compile(rb"[ \t]{0,9}" + _RANGE + rb"[^(]{0,500}?\bguid 0x([0-9A-Fa-f]{1,16}) \(.*\):?\s*")
_SIGN = re.compile(rb"^[ \t]{0,9}" + _RANGE, re.MULTILINE)
# The tools print only valid LIDs, but OpenSM's number also counts invalid LIDs.
_COUNT = re.compile(rb"\s*(\d{1,6}) (valid )?lids dumped\s*")
_OTHER = re.compile(rb"\s*Lid\s+Out\s+Destination\s*|\s*Port\s+Info\s*|#.*|\s*")

_HEADER = "a header `Unicast lids [..] of switch .. guid 0x<NODE GUID> (..)`"
_BLOCK = 64


def looks_like_lft_dump(head: bytes) -> bool:
    """Return true if the beginning of a file has a header of a dump of forwarding tables."""
    return _SIGN.search(head) is not None


def parse_lft_dump(path: str | PathLike[str], data: bytes) -> ForwardingTables:
    """Parse a dump of forwarding tables.

    Raises:
        InputError: the file has no tables.
    """
    entries = Entries.read(data, EntryForm.LFT)
    stanzas = Stanzas(DamageLog(path))
    tops: dict[int, int] = {}
    written: dict[int, int | None] = {}
    for line in entries.other_lines():
        if head := _HEAD.fullmatch(line.text):
            stanzas.begin(line.entries, int(head[2], 16))
            tops[len(stanzas.entry) - 1] = _read_top(head[1])
        elif count := _COUNT.fullmatch(line.text):
            written[len(stanzas.entry) - 1] = int(count[1]) if count[2] else None
        elif not _OTHER.fullmatch(line.text):
            stanzas.leave_out(line, _HEADER, EntryForm.LFT)
    top = max(tops.values(), default=0)
    if top and top % _BLOCK == 0 and not (entries.lid == top).any():
        stanzas.warnings.append(
            f"LID {top:#06x} is missing: dump_fts leaves out a table's last LID if this LID is a multiple of {_BLOCK}; "
            "OpenSM's dump and ibdiagnet's .fdbs have this LID"
        )
    _note_short_tables(stanzas, entries, tops, written)
    note_cut_end(stanzas, entries)
    return fill_tables(stanzas, entries)


def _note_short_tables(
    stanzas: Stanzas, entries: Entries, tops: dict[int, int], written: dict[int, int | None]
) -> None:
    """Note incomplete tables.

    The tools write the number of entries after each table: a table with another number is incomplete.
    If this number is missing, a table without entries at its end is incomplete.
    """
    bounds = [*stanzas.entry, len(entries.lid)]
    for table, (begin, end) in enumerate(pairwise(bounds)):
        found = end - begin
        if table in stanzas.lost:
            continue
        if written.get(table) not in (None, found):
            stanzas.log.miss(f"{found} entries, but the dump states {written[table]}", stanzas.guid[table])
        elif table not in written and found and (last := int(entries.lid[end - 1])) < tops[table] - 1:
            what = f"the table ends at LID {last:#06x}, but its header states LIDs up to {tops[table]:#06x}"
            stanzas.log.miss(what, stanzas.guid[table], [entries.line_of(end - 1)])


def _read_top(digits: bytes) -> int:
    """Return the last LID in a table's header, decimal or hexadecimal after `0x`; 0 without a number."""
    try:
        return int(digits, 16 if digits.startswith(b"0x") else 10)
    except ValueError:
        return 0


def write_lft_text(fabric: Fabric, tables: ForwardingTables) -> Iterator[str]:
    """Yield the lines of tables, switch by switch.

    Each entry has the PORT GUID, so that OpenSM finds the port even if its LID has changed.
    """
    lid_of = {
        int(node): int(lid)
        for node, lid in zip(fabric.port_node, fabric.port_lid, strict=True)
        if fabric.node_kind[node] == NodeKind.SWITCH
    }
    node_of = {int(guid): node for node, guid in enumerate(fabric.node_guid)}
    for guid, row in zip(tables.switch_guid.tolist(), tables.port, strict=True):
        node = node_of.get(guid)
        if node is None:
            continue
        name = printable(fabric.node_name[node]).replace("'", "")
        yield (f"Unicast lids [0-{len(row) - 1}] of switch Lid {lid_of.get(node, 0)} guid {guid:#018x} ('{name}'):\n")
        for lid in np.flatnonzero(row != UNREACHABLE).tolist():
            port = int(fabric.lid_port[lid])
            if port != NONE:
                yield f"{lid:#06x} {row[lid]:03} # portguid {int(fabric.port_guid[port]):#018x}\n"
