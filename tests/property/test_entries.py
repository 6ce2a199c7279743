# SPDX-License-Identifier: Apache-2.0
"""The kernel and the numpy reference read the same entries from whole and damaged dumps of tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibprof.errors import InputError
from ibprof_converter.routing.lft_dump import parse_lft_dump
from ibprof_converter.routing.stanzas import parse_fdbs
from ibprof_converter.routing.tables import ForwardingTables
from ibprof_testing.reference import fdbs as fdbs_reference
from ibprof_testing.reference import lft_dump as lft_reference
from ibprof_testing.samples.fabrics import read_sample_bytes
from ibprof_testing.strategies import scale_examples

Parse = Callable[[str, bytes], ForwardingTables]
Reference = Callable[[str, bytes], tuple[ForwardingTables, set[int]]]

FORMS: dict[str, tuple[Parse, Reference, list[str]]] = {
    "fdbs": (parse_fdbs, fdbs_reference.parse_fdbs, ["ibdiagnet.fdbs", "opensm.fdbs"]),
    "lft": (parse_lft_dump, lft_reference.parse_lft_dump, ["opensm-lfts.dump", "dump_fts.out"]),
}

PIECES = {
    "fdbs": [
        *(b"dump_ucast_routes: Switch 0x%x\n" % guid for guid in (0x10, 0x20, 0x30)),
        b"LID    : Port : Hops : Optimal\n",
        b"PLFT_NUM: 0\n",
        b"PLFT_NUM: 1\n",
        b"# words\n",
        b"\n",
        b"0x0001 : UNREACHABLE\n",
        b"0x0001 : 001  : 00   : yes\n",
        b"0x0002 : 022\n",
        b"0x0002 : 254 ",
        b"0xBFFF : 000  : HOPS UNKNOWN\n",
        b"0x000a : 032  : 05   : No 3 hop path possible via port 19!\n",
        b"0x000a : UNREACHABLE0x000b : 001",
    ],
    "lft": [
        *(b"Unicast lids [0-44] of switch Lid 2 guid 0x%x ('sw'):\n" % guid for guid in (0x10, 0x20, 0x30)),
        b"  Lid  Out   Destination\n",
        b"# words\n",
        b"20 valid lids dumped \n",
        b"\n",
        b"0x0001 001 # Channel Adapter portguid 0x0002c903000a0001: 'host01 HCA-1'\n",
        b"0x0002 022\n",
        b"0x0002 255 : (x)\n",
        b"0xbfff 000 ",
    ],
}
# Endings of a dump: entries with the largest or smallest values, and entries that are cut off.
LAST = {
    "fdbs": [
        b"",
        b"0x0002 : 022",
        b"0x0002 : 255  : 00",
        b"0xc000 : 001 ",
        b"0x0003 : UNREACHABLE",
        b"0x0003 : UNREACH",
    ],
    "lft": [b"", b"0x0002 022", b"0x0002 255", b"0x0002 256 ", b"0xc000 001 ", b"0x0003 01"],
}
SPOTS = [b"0", b"x", b" ", b":", b"\n", b"f", b"9", b"255", b"256", b"c000", b"0x", b"UNREACHABLE", b"\xff"]


@cache
def sample(name: str) -> bytes:
    """Return the first lines of some tables in a real dump."""
    lines = read_sample_bytes("quirks-small", name).splitlines(keepends=True)
    return b"".join(lines[:60] + lines[-60:])


@st.composite
def dumps(draw: st.DrawFn, form: str) -> bytes:
    whole = draw(
        st.one_of(
            st.sampled_from(FORMS[form][2]).map(sample),
            st.lists(st.sampled_from(PIECES[form]), min_size=4, max_size=16).map(b"".join),
            st.lists(st.sampled_from(PIECES[form]), min_size=2, max_size=8).map(
                lambda pieces: PIECES[form][0] + b"".join(pieces)
            ),
        )
    )
    whole += draw(st.sampled_from(LAST[form]))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(whole)))
        gone = draw(st.integers(0, 4))
        whole = whole[:at] + draw(st.one_of(st.sampled_from(SPOTS), st.just(b""))) + whole[at + gone :]
    return whole


def outcome(parse: Parse, data: bytes) -> object:
    """Return the tables, warnings and unused lines that a parser finds in a dump."""
    try:
        tables = parse("dump", data)
    except InputError:
        return "refused"
    # Leave out damage by an early end of a dump or table, because the line of this damage is used.
    of_ends = ("the dump ends", "the table ends")
    unused = {line for damage in tables.damage if not damage.what.startswith(of_ends) for line in damage.lines}
    return tables.switch_guid.tolist(), tables.port.tolist(), tables.warnings, unused


def expect(reference: Reference, data: bytes) -> object:
    """Return the entries that the reference reads from a dump."""
    try:
        tables, unused = reference("dump", data)
    except InputError:
        return "refused"
    return tables.switch_guid.tolist(), tables.port.tolist(), tables.warnings, unused


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=scale_examples(600))
@given(data=st.data())
def test_the_kernel_reads_what_its_reference_reads(form: str, data: st.DataObject) -> None:
    parse, reference, _ = FORMS[form]
    dump = data.draw(dumps(form))
    assert outcome(parse, dump) == expect(reference, dump)


@pytest.mark.parametrize(("form", "name"), [(form, name) for form, (_, _, names) in FORMS.items() for name in names])
def test_whole_dumps_are_read_alike(form: str, name: str) -> None:
    parse, reference, _ = FORMS[form]
    data = read_sample_bytes("quirks-small", name)
    assert outcome(parse, data) == expect(reference, data)
    assert not parse("dump", data).damage
