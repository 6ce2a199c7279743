# SPDX-License-Identifier: Apache-2.0
"""Parse lines of a `.lst` with one regular expression for each field."""

from __future__ import annotations

import re

# The fields of a line, in order: (name in error messages, pattern).
_END = (
    ("an end, `{`", rb"\{ "),
    ("type CA, SW or Rt", rb"(CA|SW|Rt|RT|RTR)(?:-SM)? "),
    ("Ports:, 2 hex digits", rb"Ports:([0-9A-Fa-f]{1,2}) "),
    ("SystemGUID:, 16 hex digits", rb"SystemGUID:([0-9A-Fa-f]{16}) "),
    ("NodeGUID:, 16 hex digits", rb"NodeGUID:([0-9A-Fa-f]{16}) "),
    ("PortGUID:, 16 hex digits", rb"PortGUID:([0-9A-Fa-f]{16}) "),
    ("VenID:, up to 8 hex digits", rb"VenID:[0-9A-Fa-f]{1,8} "),
    ("DevID:, up to 8 hex digits", rb"DevID:[0-9A-Fa-f]{1,8} "),
    ("Rev:, up to 8 hex digits", rb"Rev:[0-9A-Fa-f]{1,8} "),
    ("{description} LID:", rb"(?:\{(.{0,256}?)\} )?LID:"),
    ("a LID, 4 hex digits or none", rb"([0-9A-Fa-f]{4}|0|) "),
    ("PN:, 2 hex digits", rb"PN:([0-9A-Fa-f]{1,2}) \}"),
)
_FIELDS = (
    *_END,
    ("a second end", rb" "),
    *_END,
    ("PHY=, a width", rb" PHY=(?:((?:1|2|4|8|12)(?=x)|\?)x?)?"),
    ("LOG=, a state", rb" LOG=([A-Z]{3})"),
    ("SPD=, a speed", rb" SPD=([0-9]{1,4}(?:\.[0-9]{1,3})?|FDR10|EDR20|\?)"),
    ("GBPS=, a measured rate, or the end of the line", rb"(?: GBPS=([0-9]{1,6}(?:\.[0-9]{1,9})?))?"),
)
_LINE = re.compile(b"".join(pattern for _, pattern in _FIELDS) + rb"\s*")


def read_line(line: bytes) -> tuple[bytes | None, ...] | None:
    """Return the fields of a line as text; None for a missing field. Return None for an invalid line."""
    match = _LINE.fullmatch(line)
    return match.groups() if match else None


def explain(line: bytes) -> tuple[str, int]:
    """Return the expected content of a line's first invalid field, and the byte at which this field begins."""
    fitting = 0
    for expected, field in _FIELDS:
        match = re.compile(field).match(line, fitting)
        if match is None:
            return expected, fitting
        fitting = match.end()
    return "the end of the line", fitting
