# SPDX-License-Identifier: Apache-2.0
"""Parse `ibdiagnet.lst` (ibdiagnet 1.x, 2.x) and OpenSM's `opensm-subnet.lst`.

    { CA-SM Ports:01 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {host01 HCA-1} LID:0001 PN:01 }
    { SW Ports:24 .. {sw-a} LID:0002 PN:16 } PHY=4x LOG=ACT SPD=10                        (all on one line)

ibdiagnet lists a link once, OpenSM once from each end. Ports, LID and PN are hexadecimal. The description may contain
blanks, quotes and brackets. Type `Rt` is a router. `-SM` marks a port on which a subnet manager runs.

For a 2x link, version 1.5.7 of ibdiagnet prints `PHY=` without a width. Files of version 2 may begin with `#` lines,
and have some speeds as names. ibprof-topology adds `GBPS=` with a measured speed.
"""

from __future__ import annotations

import re
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof.native.headers import kernels_headers
from ibprof.native.libraries import load_kernels
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.dump_files import decode_name, head_of
from ibprof_converter.fabric.listing import NOT_GIVEN, Listing
from ibprof_converter.fabric.rates import data_rate_gbps

_SHORTEST_LINE = kernels_headers().constants["IBP_LST_LINE"]
_SPAN = kernels_headers().types["ibp_span"]
_LINK_COLUMNS: dict[str, npt.DTypeLike] = {
    "line": np.uint64,
    "speed": "S8",
    "gbps": np.float64,
    "lanes": np.uint8,
    "active": np.bool_,
}
_END_COLUMNS: dict[str, npt.DTypeLike] = {
    "system_guid": np.uint64,
    "node_guid": np.uint64,
    "port_guid": np.uint64,
    "name": np.int32,
    "lid": np.uint16,
    "kind": np.uint8,
    "ports": np.uint8,
    "port": np.uint8,
}
# Matches a line with a link, or an opening brace in the first line that is not a comment.
_SIGN = re.compile(rb"^\{ (?:CA|SW|RT|Rt)[^\n]*|\A(?:\s*#[^\n]*\n)*\s*\{ [^\n]*", re.MULTILINE)
_SWITCH = re.compile(rb"\{ SW(?:-SM)? [^{}]*?NodeGUID:([0-9A-Fa-f]{16}) ")


def looks_like_lst(head: bytes) -> bool:
    """Return true if the beginning of a file has a line of a `.lst`."""
    return _SIGN.search(head) is not None


def looks_like_opensm_lst(head: bytes) -> bool:
    """Return true if the first end's VenID has only 6 digits, as in a `.lst` of OpenSM."""
    first = _SIGN.search(head)
    return first is not None and re.search(rb" VenID:[0-9A-Fa-f]{6} ", first[0].split(b"}", 1)[0]) is not None


def parse_lst(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the lines of a `.lst` by a C kernel.

    Raises:
        InputError: no line is valid. The error names the first invalid line.
    """
    log = DamageLog(path)
    column, names = _read_columns(log, data)
    if not len(column["line"]):
        raise log.first_error or InputError(path, None, "at least one link", "none")
    speed, of_row = np.unique(column["speed"], return_inverse=True)
    lane_gbps = np.array([data_rate_gbps(1, each.decode()) for each in speed.tolist()])
    lanes = np.where(column["lanes"] == 0, np.nan, column["lanes"])  # 0 is an unknown width
    return Listing(
        path=fspath(path),
        line=column["line"],
        kind=column["kind"],
        ports=column["ports"],
        system_guid=column["system_guid"],
        node_guid=column["node_guid"],
        port_guid=column["port_guid"],
        name=column["name"],
        lid=column["lid"],
        port=column["port"],
        active=column["active"],
        lanes=column["lanes"],
        gbps=np.where(np.isnan(column["gbps"]), lanes * lane_gbps[of_row], column["gbps"]),
        lmc=np.full_like(column["name"], NOT_GIVEN),
        names=names,
        top_speed=speed[np.argmax(np.nan_to_num(lane_gbps))].decode(),
        damage=log.report(),
        both_ends=looks_like_opensm_lst(head_of(data)),
    )


def _read_columns(log: DamageLog, data: bytes) -> tuple[dict[str, npt.NDArray[Any]], tuple[str, ...]]:
    """Return the columns of `Listing` (lane speeds as text), and the names to which column `name` refers."""
    kernels = load_kernels()
    text = np.frombuffer(data, np.uint8)
    most = len(text) // _SHORTEST_LINE + 1
    # These arrays are larger than needed, but pages that are never written use no memory.
    column: dict[str, npt.NDArray[Any]] = {name: np.empty(most, dtype) for name, dtype in _LINK_COLUMNS.items()}
    column |= {name: np.empty((most, 2), dtype) for name, dtype in _END_COLUMNS.items()}
    spans, slots = np.empty(2 * most, _SPAN), np.zeros(1 << (2 * most).bit_length(), np.uint32)
    lst = kernels.ffi.new("struct ibp_lst *")
    for name, array in column.items():
        setattr(lst, name, kernels.pointer(array))
    lst.names, lst.slot, lst.slots = kernels.pointer(spans), kernels.pointer(slots), len(slots)
    while kernels.lib.ibp_read_lst(kernels.pointer(text), len(text), lst):
        found = quote_found(data[lst.mismatch : lst.end]) if lst.mismatch < lst.end else "the end of the line"
        _leave_out(log, lst.lines, data[lst.begin : lst.end], kernels.ffi.string(lst.expected).decode(), found)
    names = tuple(decode_name(data[begin:end]) for begin, end in spans[: lst.name_count].tolist())
    return {name: array[: lst.links].copy() for name, array in column.items()}, names


def _leave_out(log: DamageLog, number: int, line: bytes, expected: str, found: str) -> None:
    """Note a line with parts of a link as a lost link, all other lines as stray lines."""
    if re.search(rb"[{}]| (?:PN:|PHY=|LOG=|SPD=)", line):
        switch = _SWITCH.search(line)
        log.lose(number, InputError(log.path, number, expected, found), int(switch[1], 16) if switch else None)
    else:
        log.skip(number, line, expected)
