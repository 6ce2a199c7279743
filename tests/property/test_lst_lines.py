# SPDX-License-Identifier: Apache-2.0
"""The kernel and the reference read the same fields from whole and damaged lines of a `.lst`."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from ibprof.errors import InputError, quote_found
from ibprof_converter.fabric.fabric_graph import NodeKind
from ibprof_converter.fabric.listing import Listing
from ibprof_converter.fabric.lst import parse_lst
from ibprof_converter.fabric.rates import data_rate_gbps
from ibprof_testing.reference import lst as reference
from ibprof_testing.samples.fabrics import read_sample_bytes
from ibprof_testing.strategies import scale_examples

KINDS = {b"CA": NodeKind.CA, b"SW": NodeKind.SWITCH, b"Rt": NodeKind.ROUTER, b"RT": NodeKind.ROUTER}
END_FIELDS = 8

# Parts of lines: beginnings and contents of fields, and characters that only some fields allow.
PIECES = [
    *(b"{ ", b" }", b"{", b"} LID:", b"} LID:0001 PN:01 } ", b"LID: PN", b" ", b"\t", b"\r", b"\x0b", b"#", b"\xff"),
    *(b"CA ", b"SW-SM ", b"Rt ", b"RTR ", b"RT-SM ", b"Ports:", b"NodeGUID:", b"VenID:", b"Rev:", b"PN:", b"LID:"),
    *(b" PHY=", b" PHY=12x", b" PHY=3x", b" LOG=INI", b" LOG=", b" SPD=FDR10", b" SPD=2.5", b" SPD=12345", b" SPD="),
    *(b" PHY=?", b" PHY=?x", b" SPD=?", b"VenID:0 ", b"Rev:0 LID:0 "),
    *(b" GBPS=1.5", b" GBPS=123456.123456789", b" GBPS=1234567", b" GBPS=", b"x" * 260, b"0", b"f", b"G", b"."),
]


@cache
def sample() -> list[bytes]:
    """Return some lines of real dumps."""
    names = ("quirks-small", "ibdiagnet.lst"), ("quirks-small", "opensm-subnet.lst")
    return [line for name in names for line in read_sample_bytes(*name).splitlines()[:30]]


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    line = draw(st.sampled_from(sample()))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        piece = draw(st.sampled_from([*PIECES, b""]))
        gone = draw(st.sampled_from([0, 1, 4, len(piece)]))
        line = line[:at] + piece + line[at + gone :]
    return line.replace(b"\n", b"")


def expect(line: bytes) -> object:
    """Return the columns that the reference reads from a line, or its error."""
    fields = reference.read_line(line)
    if fields is None:
        expected, at = reference.explain(line)
        return f"a.lst:1: expected {expected}, found {quote_found(line[at:]) if line[at:] else 'the end of the line'}"
    ends = []
    for end in (fields[:END_FIELDS], fields[END_FIELDS : 2 * END_FIELDS]):
        kind, ports, system, node, port_guid, name, lid, port = (field or b"" for field in end)
        numbers = (int(each or b"0", 16) for each in (ports, system, node, port_guid, lid, port))
        ends.append((KINDS[kind[:2]], *numbers, name.decode(errors="backslashreplace")))
    width, state, speed, measured = fields[2 * END_FIELDS :]
    lanes = 0 if width == b"?" else int(width or b"2")
    gbps = float(measured) if measured else data_rate_gbps(lanes, (speed or b"").decode())
    return ends, lanes, state == b"ACT", repr(gbps)


def outcome(line: bytes) -> object:
    """Return the columns that the kernel reads from a line, or its error."""
    try:
        listing = parse_lst("a.lst", line)
    except InputError as error:
        return str(error)
    ends = [
        (
            NodeKind(listing.kind[0, end]),
            *(int(column[0, end]) for column in _numbers(listing)),
            listing.names[listing.name[0, end]],
        )
        for end in (0, 1)
    ]
    return ends, int(listing.lanes[0]), bool(listing.active[0]), repr(float(listing.gbps[0]))


def _numbers(listing: Listing) -> tuple:  # type: ignore[type-arg]
    return listing.ports, listing.system_guid, listing.node_guid, listing.port_guid, listing.lid, listing.port


@settings(max_examples=scale_examples(2000))
@given(line=lines())
def test_the_kernel_reads_a_line_as_its_reference_does(line: bytes) -> None:
    if not line or line.isspace() or line.startswith(b"#"):
        assert outcome(line) == "a.lst: expected at least one link, found none"
    else:
        assert outcome(line) == expect(line)


def test_all_sample_lines_are_valid() -> None:
    assert all(reference.read_line(line) or line.startswith(b"#") for line in sample())
