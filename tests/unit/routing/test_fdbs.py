# SPDX-License-Identifier: Apache-2.0
"""In `.fdbs` files, special cases are read, and damage is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.damage import DamageKind
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.routing.stanzas import parse_fdbs
from ibprof_converter.routing.table_formats import find_fdbs, read_tables
from ibprof_converter.routing.tables import UNREACHABLE, ForwardingTables

HEAD = "osm_ucast_mgr_dump_ucast_routes: Switch 0x0002c90200000020\nLID    : Port : Hops : Optimal\n"
SECOND = "__osm_ucast_mgr_dump_ucast_routes: Switch 0x0002c90200000010\nLID    : Port : Hops : Optimal\n"


def read(folder: Path, text: str) -> ForwardingTables:
    path = folder / "a.fdbs"
    path.write_text(text)
    return parse_fdbs(path, read_dump(path))


def test_every_kind_of_line_is_read(tmp_path: Path) -> None:
    tables = read(
        tmp_path,
        "# a comment\n"
        "File version: 2\n"
        f"{HEAD}"
        "0x0001 : UNREACHABLE\n"
        "0x0002 : 022  : 00   : yes\n"  # the port is decimal
        "0x000A : 032  : 05   : No 3 hop path possible via port 19!\n"
        "0x000b : 000  : HOPS UNKNOWN\n"
        "\n"
        f"{SECOND}"
        "0x0001 : 254  : 02   : yes (link to switch 0x0002c90200000020)\n"
        "dump_ucast_routes: Switch 0x30\r\n"
        "0x0002 : 001",
    )
    assert tables.switch_guid.tolist() == [0x30, 0x0002C90200000010, 0x0002C90200000020]
    assert tables.port.shape == (3, 12)  # as many columns as the longest table
    filled = {
        (row, lid): int(tables.port[row, lid]) for row, lid in zip(*(tables.port != UNREACHABLE).nonzero(), strict=True)
    }
    assert filled == {(0, 2): 1, (1, 1): 254, (2, 2): 22, (2, 10): 32, (2, 11): 0}
    assert tables.warnings == ()


def test_private_tables_but_the_first_are_left_out_and_told(tmp_path: Path) -> None:
    tables = read(tmp_path, f"{HEAD}PLFT_NUM: 0\n0x0001 : 003  : 00   : yes\nPLFT_NUM: 1\n0x0001 : 004  : 00   : yes\n")
    assert tables.port[0, 1] == 3
    assert "private tables" in tables.warnings[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0x0001 : 001  : 00   : yes\n", r"a\.fdbs:1: expected a header that names a switch, found an entry"),
        ("hello\n", r"a\.fdbs:1: expected a header .*, found 'hello'"),
        ("# nothing but this\n", r"a\.fdbs: expected forwarding tables, found none"),
        (f"{HEAD}0x0001 : 0", r"a\.fdbs:3: expected `0x<LID> : <port, 3 digits>`"),
        (f"{HEAD}0x0001 : 00x  : 00   : yes\n", r"a\.fdbs:3: expected"),
        (f"{HEAD}0x0001 : 0011 : 00   : yes\n", r"a\.fdbs:3: expected"),
        (f"{HEAD}0x0001 : 255  : 00   : yes\n", r"a\.fdbs:3: expected"),
        (f"{HEAD}0x0001 : UNREACH\n", r"a\.fdbs:3: expected"),
        (f"{HEAD}0x0001\n", r"a\.fdbs:3: expected"),
        (f"{HEAD}0x\n", r"a\.fdbs:3: expected"),
        (f"{HEAD}0xzzzz : 001  : 00   : yes\n", r"a\.fdbs:3: expected"),
        (f"{HEAD}0x0001 = 001  : 00   : yes\n", r"a\.fdbs:3: expected"),
        (f"{HEAD}0xc000 : 001  : 00   : yes\n", r"a\.fdbs:3: expected"),
        ("{ CA Ports:01 }\n", r"a\.fdbs:1: expected a head"),
    ],
)
def test_a_dump_without_any_good_line_is_refused_by_its_first_bad_one(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_a_few_lines_cannot_ask_for_all_memory(tmp_path: Path) -> None:
    heads = "".join(f"dump_ucast_routes: Switch {guid:#x}\n" for guid in range(1, 2000))
    with pytest.raises(InputError, match="found almost empty tables"):
        read(tmp_path, f"{heads}0xBFFF : 001  : 00   : yes\n")


@pytest.mark.parametrize(
    ("lst", "fdbs"),
    [
        ("ibdiagnet.lst", "ibdiagnet.fdbs"),
        ("ibdiagnet2.lst.gz", "ibdiagnet2.fdbs"),
        ("ibdiagnet.lst", "ibdiagnet.fdbs.xz"),
        ("opensm-subnet.lst", "opensm.fdbs"),
        ("opensm-subnet.lst.xz", "opensm.fdbs.gz"),
        ("rail 2.lst", "rail 2.fdbs"),
    ],
)
def test_tables_are_found_next_to_their_fabric(tmp_path: Path, lst: str, fdbs: str) -> None:
    assert find_fdbs(tmp_path / lst) is None
    (tmp_path / "other.fdbs").touch()
    (tmp_path / fdbs).touch()
    assert find_fdbs(tmp_path / lst) == tmp_path / fdbs


@pytest.mark.parametrize(
    ("last", "whole"),
    [
        ("0x0002 : 001  : 00   : yes", True),
        ("0x0002 : 000  : HOPS UNKNOWN", True),
        ("0x0002 : UNREACHABLE", True),
        ("0x0002 : 001  : 00   : ye", False),
        ("0x0002 : 001  : 0", False),
        ("0x0002 : 001", False),
    ],
)
def test_a_dump_that_was_cut_within_a_line_is_used_and_reported(tmp_path: Path, last: str, whole: bool) -> None:
    path = tmp_path / "a.fdbs"
    path.write_text(f"{HEAD}0x0001 : 003  : 00   : yes\n{last}")
    tables = read_tables(path)
    assert tables.port[0, 1] == 3
    assert bool(tables.damage) is not whole
    if not whole:
        assert tables.damage[0].lines == (4,)
        assert tables.damage[0].node_guid == 0x0002C90200000020
        assert "later tables may be missing" in tables.damage[0].what


def test_damaged_lines_are_left_out_and_all_others_used(tmp_path: Path) -> None:
    tables = read(
        tmp_path,
        "[admin@sm ~]$ cat opensm.fdbs\n"
        f"{HEAD}0x0001 : 0x1  : 00   : yes\n0x0002 : 002  : 00   : yes\n"
        "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x19:0) bad status 110; Connection timed out\n"
        f"{SECOND}0x0002 : 003  : 00   : yes\n"
        "[admin@sm ~]$\n",
    )
    assert tables.port[:, 1:].tolist() == [[UNREACHABLE, 3], [UNREACHABLE, 2]]
    lost, silent, stray = tables.damage
    assert (lost.kind, lost.lines, lost.node_guid) == (DamageKind.LOST, (4,), 0x0002C90200000020)
    assert "line 4: expected `0x<LID> : <port, 3 digits>`" in lost.what
    assert (silent.kind, silent.lines, silent.node_guid) == (DamageKind.NO_ANSWER, (6,), 0x0002C90200000020)
    assert (stray.kind, stray.lines) == (DamageKind.STRAY, (1, 10))


def test_a_lid_with_several_ports_has_none(tmp_path: Path) -> None:
    """A LID with several ports is assigned no port, since a row may be a copy by mistake."""
    rows = "".join(f"0x0005 : {port:03}  : 00   : yes\n" for port in range(1, 9))
    tables = read(tmp_path, f"{HEAD}0x0001 : 001  : 00   : yes\n{rows}{SECOND}0x0005 : 004  : 00   : yes\n")
    assert tables.port[:, [1, 5]].tolist() == [[UNREACHABLE, 4], [1, UNREACHABLE]]
    (damage,) = tables.damage
    assert damage.node_guid == 0x0002C90200000020
    assert damage.lines == tuple(range(4, 12))
    assert "1 LID has entries with several ports (up to 8), which are not used: 0x0005" in damage.what


def test_a_row_that_is_repeated_is_one(tmp_path: Path) -> None:
    tables = read(tmp_path, f"{HEAD}{'0x0005 : 004  : 00   : yes' + chr(10)}" * 2)
    assert tables.port[0, 5] == 4
    assert not tables.damage


def test_entries_after_a_damaged_header_are_of_no_switch(tmp_path: Path) -> None:
    damaged = SECOND.replace("0x0002c902", "0x0002c9Z2")
    tables = read(tmp_path, f"{HEAD}0x0001 : 001  : 00   : yes\n{damaged}PLFT_NUM: 0\n0x0001 : 002  : 00   : yes\n")
    assert tables.switch_guid.tolist() == [0x0002C90200000020]
    assert tables.port[0, 1] == 1
    assert "0x0002c9Z2" in tables.damage[0].what
    assert any("the switch of 1 entry after a damaged header is unknown" in each.what for each in tables.damage)
