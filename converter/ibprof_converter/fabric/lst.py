# SPDX-License-Identifier: Apache-2.0
"""Parse `ibdiagnet.lst` (ibdiagnet 1.x, 2.x) and OpenSM's `opensm-subnet.lst`.

    { CA-SM Ports:01 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {host01 HCA-1} LID:0001 PN:01 }
    { SW Ports:24 .. {sw-a} LID:0002 PN:16 } PHY=4x LOG=ACT SPD=10                        (all on one line)

ibdiagnet lists a link once, OpenSM once from each end. Ports, LID and PN are hexadecimal. The description may contain
blanks, quotes and brackets, so a line is split at the fixed words around it. Type `Rt` is a router. `-SM` marks where a
subnet manager answers. `PHY=` without a width is ibdiagnet 1.5.7's form of 2x. ibdiagnet 2 may begin with `#` lines and
prints some speeds by name. ibprof adds `GBPS=` after the speed where it was measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.damage import DamageLog
from ibprof_converter.fabric.dump_files import decode_name
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import NOT_GIVEN, Listing
from ibprof_converter.fabric.rates import data_rate_gbps

# A line's fields in order: (name in an error, pattern). A description has at most 64 bytes; the bound leaves space for
# escapes and limits the time for a hostile line.
_END = (
    ("an end, `{`", rb"\{ "),
    ("type CA, SW or Rt", rb"(CA|SW|Rt|RT|RTR)(?:-SM)? "),
    ("Ports:, 2 hex digits", rb"Ports:([0-9A-Fa-f]{2}) "),
    ("SystemGUID:, 16 hex digits", rb"SystemGUID:([0-9A-Fa-f]{16}) "),
    ("NodeGUID:, 16 hex digits", rb"NodeGUID:([0-9A-Fa-f]{16}) "),
    ("PortGUID:, 16 hex digits", rb"PortGUID:([0-9A-Fa-f]{16}) "),
    ("VenID:, 6 to 8 hex digits", rb"VenID:[0-9A-Fa-f]{6,8} "),
    ("DevID:, 4 to 8 hex digits", rb"DevID:[0-9A-Fa-f]{4,8} "),
    ("Rev:, 8 hex digits", rb"Rev:[0-9A-Fa-f]{8} "),
    ("{description} LID:", rb"\{(.{0,256}?)\} LID:"),
    ("a LID, 4 hex digits or none", rb"([0-9A-Fa-f]{4}|) "),
    ("PN:, 2 hex digits", rb"PN:([0-9A-Fa-f]{2}) \}"),
)
_FIELDS = (
    *_END,
    ("a second end", rb" "),
    *_END,
    ("PHY=, a width", rb" PHY=(?:(1|2|4|8|12)x)?"),
    ("LOG=, a state", rb" LOG=([A-Z]{3})"),
    ("SPD=, a speed", rb" SPD=([0-9]{1,4}(?:\.[0-9]{1,3})?|FDR10|EDR20)"),
    ("GBPS=, a measured rate, or the end of the line", rb"(?: GBPS=([0-9]{1,6}(?:\.[0-9]{1,9})?))?"),
)
_LINE = re.compile(b"".join(pattern for _, pattern in _FIELDS) + rb"\s*")
_KINDS = {b"CA": NodeKind.CA, b"SW": NodeKind.SWITCH} | dict.fromkeys((b"Rt", b"RT", b"RTR"), NodeKind.ROUTER)
# A link in any line, or the brace of one in the first that is no comment.
_SIGN = re.compile(rb"^\{ (?:CA|SW|RT|Rt)[^\n]*|\A(?:\s*#[^\n]*\n)*\s*\{ [^\n]*", re.MULTILINE)
_SWITCH = re.compile(rb"\{ SW(?:-SM)? [^{}]*?NodeGUID:([0-9A-Fa-f]{16}) ")
_END_FIELDS = 8
_ACTIVE = b"ACT"
_NO_LID = b"0000"
_UNPRINTED_WIDTH = 2
_OLD_TOP_SPEED = b"10"


def looks_like_lst(head: bytes) -> bool:
    """Return whether a file's beginning has the lines of a `.lst`."""
    return _SIGN.search(head) is not None


def looks_like_opensm_lst(head: bytes) -> bool:
    """Return whether a file's beginning is like OpenSM's `.lst`, which prints fewer digits of the first end's VenID."""
    first = _SIGN.search(head)
    return first is not None and re.search(rb" VenID:[0-9A-Fa-f]{6} ", first[0].split(b"}", 1)[0]) is not None


def parse_lst(path: str | PathLike[str], data: bytes) -> Listing:
    """Parse the lines of a `.lst`.

    Args:
        path: for messages.
        data: contents of the file.

    Raises:
        InputError: no line is valid. The error names the first one.
    """
    rows = []
    lines = []
    log = DamageLog(path)
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line or line.isspace() or line.startswith(b"#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            _leave_out(log, number, line)
            continue
        rows.append(match.groups())
        lines.append(number)
    if not rows:
        raise log.first_error or InputError(path, None, "at least one link", "none")
    columns = list(zip(*rows, strict=True))
    ends = zip(columns[:_END_FIELDS], columns[_END_FIELDS : 2 * _END_FIELDS], strict=True)
    kind, ports, system_guid, node_guid, port_guid, name, lid, port = (list(zip(*pair, strict=True)) for pair in ends)
    width, state, speed, measured = columns[2 * _END_FIELDS :]
    rates = {
        kind: float(kind[2] or data_rate_gbps(int(kind[0] or _UNPRINTED_WIDTH), kind[1].decode()))
        for kind in set(zip(width, speed, measured, strict=True))
    }
    return Listing(
        path=fspath(path),
        line=np.array(lines),
        kind=np.array([(_KINDS[a], _KINDS[b]) for a, b in kind], np.uint8),
        ports=_from_hex(ports, np.uint8),
        system_guid=_from_hex(system_guid, np.uint64),
        node_guid=_from_hex(node_guid, np.uint64),
        port_guid=_from_hex(port_guid, np.uint64),
        name=[(decode_name(a), decode_name(b)) for a, b in name],
        lid=_from_hex([(a or _NO_LID, b or _NO_LID) for a, b in lid], np.uint16),
        port=_from_hex(port, np.uint8),
        active=np.array([word == _ACTIVE for word in state]),
        lanes=np.array([int(lanes or _UNPRINTED_WIDTH) for lanes in width], np.uint8),
        gbps=np.array([rates[kind] for kind in zip(width, speed, measured, strict=True)]),
        lmc=np.full((len(rows), 2), NOT_GIVEN),
        top_speed=max(set(speed), key=lambda each: np.nan_to_num(data_rate_gbps(1, each.decode()))).decode(),
        damage=log.report(),
    )


def _leave_out(log: DamageLog, number: int, line: bytes) -> None:
    """Note a line that cannot be used: a link, if it begins like one."""
    error = _explain(log.path, number, line)
    if b"{" in line:
        switch = _SWITCH.search(line)
        log.lose(number, error, int(switch[1], 16) if switch else None)
    else:
        log.skip(number, line, _FIELDS[0][0])


def _from_hex(pairs: Iterable[tuple[bytes, bytes]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return pairs of hex numbers, as wide as `dtype`, as an array [row, 2]."""
    digits = b"".join(chain.from_iterable(pairs)).decode()
    written = np.frombuffer(bytes.fromhex(digits), np.dtype(dtype).newbyteorder(">"))
    return written.astype(dtype).reshape(-1, 2)


def _explain(path: str | PathLike[str], number: int, line: bytes) -> InputError:
    """Return an error that names the first invalid field of a line."""
    fitting = 0
    for expected, field in _FIELDS:
        match = re.compile(field).match(line, fitting)
        if match is None:
            found = quote_found(line[fitting:]) if line[fitting:] else "the end of the line"
            return InputError(path, number, expected, found)
        fitting = match.end()
    return InputError(path, number, "the end of the line", quote_found(line[fitting:]))
