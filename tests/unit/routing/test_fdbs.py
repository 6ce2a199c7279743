# SPDX-License-Identifier: Apache-2.0
"""Traps and damage in `.fdbs` files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.routing.fdbs import parse_fdbs
from ibprof_converter.routing.table_reader import find_fdbs, read_tables
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
    assert tables.port.shape == (3, 12)  # as long as the longest table
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
        (
            f"{HEAD}0x0001 : 001  : 00   : yes\n" * 2 + "0x0001 : 002  : 00   : yes\n",
            r"a\.fdbs:\d: expected one port for a LID",
        ),
        (f"{HEAD}0x0001 : UNREACHABLE\nSwitch\n", r"a\.fdbs:4: expected a head"),
        ("{ CA Ports:01 }\n", r"a\.fdbs:1: expected a head"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_a_few_lines_cannot_ask_for_all_memory(tmp_path: Path) -> None:
    heads = "".join(f"dump_ucast_routes: Switch {guid:#x}\n" for guid in range(1, 2000))
    with pytest.raises(InputError, match="found almost empty ones"):
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
        ("0x0001 : 001  : 00   : yes", True),
        ("0x0001 : 000  : HOPS UNKNOWN", True),
        ("0x0001 : UNREACHABLE", True),
        ("0x0001 : 001  : 00   : ye", False),
        ("0x0001 : 001  : 0", False),
        ("0x0001 : 001", False),
    ],
)
def test_a_dump_that_was_cut_within_a_line_is_refused(tmp_path: Path, last: str, whole: bool) -> None:
    path = tmp_path / "a.fdbs"
    path.write_text(HEAD + last)
    if whole:
        assert read_tables(path).port[0, 1] in {0, 1, UNREACHABLE}
    else:
        with pytest.raises(InputError, match=r"a\.fdbs:3: expected a whole line at the end of the dump, found '0x0001"):
            read_tables(path)
