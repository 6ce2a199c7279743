# SPDX-License-Identifier: Apache-2.0
"""In output of ibnetdiscover, dump_fts and ibdiagnet 2, special cases are read, and damage is reported."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.damage import Damage, DamageKind
from ibprof_converter.fabric.dump_files import peek_dump
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.link_formats import find_link_format, read_fabric
from ibprof_converter.routing.table_formats import read_tables
from ibprof_converter.routing.tables import UNREACHABLE

SWITCH = """vendid=0x2c9
sysimgguid=0x2c90200f00010
switchguid=0x2c90200f00010(2c90200f00010)
Switch\t36 "S-0002c90200f00010"\t\t# "leaf "1" base port 0 lid 9 lmc 0" enhanced port 0 lid 4 lmc 2
[1][ext 7]\t"H-0002c90300fa0000"[2](2c90300fa0002) \t\t# "q01 "x" lid 3" lid 16 4xHDR
[30]\t"R-0002c90300fa0100"[1](2c90300fa0101) \t\t# "router" lid 32 4xNDR
"""
ADAPTER = """
sysimgguid=0x2c90300fa0003
caguid=0x2c90300fa0000
Ca\t2 "H-0002c90300fa0000"\t\t# "q01 "x" lid 3"
[2](2c90300fa0002) \t"S-0002c90200f00010"[1][ext 7]\t\t# lid 16 lmc 1 "leaf "1" base port 0 lid 9 lmc 0" lid 4 4xHDR
"""
ROUTER = """
rtguid=0x2c90300fa0100
Rt\t1 "R-0002c90300fa0100"\t\t# "router"
[1](2c90300fa0101) \t"S-0002c90200f00010"[30]\t\t# lid 32 lmc 1 "leaf" lid 4 4xNDR
"""


def fabric_of(folder: Path, text: str) -> Fabric:
    path = folder / "a"
    path.write_text(text, newline="")
    return read_fabric(path)


def test_quotes_enhanced_port_0_external_ports_and_routers(tmp_path: Path) -> None:
    fabric = fabric_of(tmp_path, SWITCH + ADAPTER + ROUTER)
    assert fabric.node_name == ('leaf "1" base port 0 lid 9 lmc 0', 'q01 "x" lid 3', "router")
    assert fabric.node_kind.tolist() == [NodeKind.SWITCH, NodeKind.CA, NodeKind.ROUTER]
    assert fabric.link_port.tolist() == [[1, 2], [30, 1]]
    assert fabric.port_lid.tolist() == [4, 16, 32]
    assert fabric.port_lmc.tolist() == [2, 1, 1]  # an enhanced port 0 has another LMC than the other ports
    assert np.flatnonzero(fabric.lid_node == 0).tolist() == [4, 5, 6, 7]
    assert fabric.link_gbps.round().tolist() == [200, 400]


HEAD = "Unicast lids [0x0-0x6] of switch DR path slid 0; dlid 0; 0,1 guid 0x0002c90200f00028 (a (guid 0x1) b):\n"
DB = """START_NODES
NodeDesc,NumPorts,NodeType,SystemImageGUID,NodeGUID,PortGUID
"a, b "c"",36,2,0x10,0x10,0x10
"host01 mlx5_0",1,1,0x20,0x20,0x21
END_NODES
START_PORTS
NodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkSpeedActv,LMC,PortState,New
0x10,0x10,0,7,0,0,0,0,N/A
0x10,0x10,5,0,2,1024,0,4,N/A
0x20,0x21,1,8,2,1024,1,4,N/A
END_PORTS
START_LINKS
NodeGuid1,PortNum1,NodeGuid2,PortNum2
0x10,5,0x20,1
END_LINKS
"""


def test_db_csv_is_read_by_the_names_of_columns(tmp_path: Path) -> None:
    fabric = fabric_of(tmp_path, DB)
    assert fabric.node_name == ('a, b "c"', "host01 mlx5_0")
    assert fabric.port_lid.tolist() == [7, 8]
    assert fabric.port_lmc.tolist() == [0, 1]
    assert fabric.port_guid.tolist() == [0x10, 0x21]
    assert fabric.link_gbps.round().tolist() == [200]


def test_a_link_that_is_not_active_in_db_csv_is_one_of_a_plan_where_none_is(tmp_path: Path) -> None:
    fabric = fabric_of(tmp_path, DB.replace("0x20,0x21,1,8,2,1024,1,4", "0x20,0x21,1,8,2,1024,1,2"))
    assert "no link is active: all links are assumed to become active" in fabric.warnings


def test_an_active_port_in_db_csv_without_a_link_is_lost(tmp_path: Path) -> None:
    """Port 6 is active, port 7 is inactive; the section LINKS lists neither port."""
    more = "0x10,0x10,6,0,2,1024,0,4,N/A\n0x10,0x10,7,0,2,1024,0,1,N/A\nEND_PORTS\n"
    (damage,) = fabric_of(tmp_path, DB.replace("END_PORTS\n", more)).damage
    assert damage == Damage(DamageKind.LOST, "an active port has no link in LINKS", (11,), 0x10)
    assert fabric_of(tmp_path, DB).damage == ()
    (damage,) = fabric_of(tmp_path, DB.replace("END_PORTS\n", more.replace("0,4,N/A", "0,9,N/A"))).damage
    assert "expected PortState, a number below 8" in damage.what


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_fabric, "switchguid=0x1(1)\n", r"a: expected at least one link, found none"),
        (read_fabric, "CA 1 1 0x0002c90300fa00b1 4x QDR - nothing\n", r"a:1: expected TYPE LID PORT"),
        (read_tables, HEAD + "0x0001 256 : (x)\n", r"a:2: expected"),
        (read_tables, HEAD + "what is this\n", r"a:2: expected a header `Unicast lids"),
        (read_fabric, DB.replace("0x10,5,0x20,1", "0x10,5,0x30,1"), r"a:14: expected a port that is in NODES"),
        (read_fabric, DB.replace("0x10,5,0x20,1", "0x10,5,0x20,2"), r"a:14: expected a port that is in PORTS"),
        (read_fabric, DB.replace(",36,2,", ",36,9,"), r"a:3: expected NodeType 1, 2 or 3"),
        (
            read_fabric,
            DB.replace("0x10,5,0x20,1", "0x10,x,0x20,1"),
            r"a:14: expected PortNum1",
        ),
        (read_fabric, DB.replace("1,4,N/A", "1,4"), r"a:10: expected 9 fields, as in the header of PORTS"),
    ],
)
def test_a_file_without_any_good_line_is_refused_by_its_first_bad_one(
    tmp_path: Path, read: Callable[[Path], object], text: str, message: str
) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path)


def damage_of(folder: Path, text: str) -> list[tuple[DamageKind, tuple[int, ...], int | None]]:
    return [(damage.kind, damage.lines, damage.node_guid) for damage in fabric_of(folder, text).damage]


LEAF = 0x0002C90200F00010
LOST = DamageKind.LOST


@pytest.mark.parametrize(
    ("text", "damage"),
    [
        (SWITCH + "[2]\t\"S-1\"[1] # 'x'\n" + ADAPTER, [(LOST, (7,), LEAF)]),
        (SWITCH + "hello\n" + ADAPTER, [(DamageKind.STRAY, (7,), None)]),
        (SWITCH + SWITCH + ADAPTER, []),
        (
            SWITCH + SWITCH.replace("[2](2c90300fa0002)", "[1](2c90300fa0001)") + ADAPTER + ROUTER,
            [(LOST, (5, 11), LEAF)],
        ),
        (SWITCH.replace("Switch\t36", "Switch\tx") + ADAPTER + ROUTER, [(LOST, (4, 5, 6), LEAF)]),
        (DB.replace("END_LINKS", ""), [(LOST, (12,), None)]),
        (DB.replace("0x10,5,0x20,1", "0x10,5,0x20,1\n0x10,6,0x30,1"), [(LOST, (15,), None)]),
    ],
)
def test_damaged_lines_are_left_out_and_their_switch_is_named(
    tmp_path: Path, text: str, damage: list[tuple[DamageKind, tuple[int, ...], int | None]]
) -> None:
    assert damage_of(tmp_path, text) == damage
    assert fabric_of(tmp_path, text).links >= 1


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: "\ufeff[root@ufm01 dumps]# ibnetdiscover \r\n" + text.replace("\n", "\r\n"),
        lambda text: (
            "=~=~=~=~= PuTTY log 2021.06.15 12:06:05 =~=~=~=~=\r\r\n"
            + text.replace("\t", "").rstrip()
            + "\r\n\rsm01 > "
        ),
        lambda text: (
            "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1 Attr 0x11:0) bad status 110; timed out\n" + text
        ),
        lambda text: (
            'DR path slid 0; dlid 0; 0,1 -> new Switch {0002c90200f00010} portnum 0 lid 0-0 ""\n' * 20_000 + text
        ),
        lambda text: text.replace("\t", "      ").replace("# Topo", "#  Topo"),
        lambda text: text.replace("\n", "\r"),
        lambda text: re.sub("(?m)^", "> ", text),
        lambda text: "Last week N. N. wrote:\n" + re.sub("(?m)^", "> > ", text),
        lambda text: re.sub("(.{60})(?=.)", r"\1\n", text),
        lambda text: text.replace('2) \t\t# "q01 "x" lid 3" lid 16 ', '2) \t\t# "q01\n"x" lid 3" lid 16\n'),
        lambda text: re.sub(r"(?m)^(\[.{40,60}) (.*)$", r"\1\n\2", text),
        lambda text: re.sub(r"(?m)^(\[.{40,60} )(.*)$", r"\1\n\2", text),
    ],
    ids=[
        "byte order mark and prompt",
        "log of a terminal without tabs",
        "timeout",
        "progress",
        "blanks",
        "old Mac",
        "quoted in a mail",
        "quoted twice, with an answer above",
        "broken at 60 columns",
        "broken within a name",
        "broken at a blank",
        "broken after a blank",
    ],
)
def test_what_terminals_and_tools_add_changes_no_link(tmp_path: Path, edit: Callable[[str], str]) -> None:
    expected = fabric_of(tmp_path, SWITCH + ADAPTER + ROUTER)
    found = fabric_of(tmp_path, edit(SWITCH + ADAPTER + ROUTER))
    for name in ("node_guid", "node_name", "link_node", "link_port", "link_gbps", "port_lid", "port_lmc"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert all(damage.kind is not LOST for damage in found.damage)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_what_powershell_redirects_is_read(tmp_path: Path, encoding: str) -> None:
    expected = fabric_of(tmp_path, SWITCH + ADAPTER + ROUTER)
    mark = "" if encoding == "utf-16" else "\ufeff"
    (tmp_path / "b").write_bytes((mark + (SWITCH + ADAPTER + ROUTER).replace("\n", "\r\n")).encode(encoding))
    found = read_fabric(tmp_path / "b")
    assert found.node_name == expected.node_name
    assert found.links == expected.links
    assert not found.damage
    assert find_link_format(peek_dump(tmp_path / "b")) is not None


PORT_LINES = (
    "CA    16  2 0x0002c90300fa0002 4x HDR - SW     4  1 0x0002c90200f00010 ( 'q01 HCA-1' - 'leaf' )\n"
    "CA    17  1 0x0002c90300fa0012 4x HDR - SW     4  2 0x0002c90200f00010 ( 'q02 HCA-1' - 'leaf' )\n"
)


@pytest.mark.parametrize(
    "text", [SWITCH + ADAPTER + ROUTER, SWITCH + ADAPTER, PORT_LINES], ids=["three", "two", "ports"]
)
def test_a_list_that_ends_within_a_line_is_damaged(tmp_path: Path, text: str) -> None:
    """The text is cut after each byte: the last line is complete, or reported as damaged, or there is no line."""
    whole = {line for line in text.split("\n") if line.startswith(("[", "CA ", "\n"))}
    for length in range(1, len(text)):
        part = text[:length]
        last = part.rsplit("\n", 1)[-1]
        try:
            fabric = fabric_of(tmp_path, part)
        except InputError:
            continue
        is_reported = any(damage.kind is LOST for damage in fabric.damage) or bool(fabric.link_half.any())
        assert is_reported or not last.strip() or last in whole, part[-60:]


def test_a_port_with_two_links_loses_both_and_the_rest_is_used(tmp_path: Path) -> None:
    other = PORT_LINES.split("\n")[1].replace("fa0012", "fa0022").replace("q02", "q03").replace("17", "18")
    fabric = fabric_of(tmp_path, PORT_LINES + other + "\n")
    assert fabric.link_port.tolist() == [[1, 2]]
    (damage,) = fabric.damage
    assert (damage.kind, damage.lines, damage.node_guid) == (LOST, (2, 3), LEAF)
    assert "port 2 has 2 different links" in damage.what


@pytest.mark.parametrize("lid", ["lid 65535", "lid 0", "lid "])
def test_a_port_that_is_not_configured_yet_has_an_inactive_link(tmp_path: Path, lid: str) -> None:
    fabric = fabric_of(tmp_path, (SWITCH + ADAPTER + ROUTER).replace("lid 16", lid))
    assert fabric.links == 1
    assert len(fabric.inactive) == 1
    assert "q01" in fabric.inactive[0]
    assert not fabric.damage


def test_a_port_list_may_lack_lids_and_begin_with_progress(tmp_path: Path) -> None:
    lines = (
        "CA    16  2 0x0002c90300fa0002 4x HDR - SW     4  1 0x0002c90200f00010 ( 'q01 HCA-1' - 'leaf' )\n"
        "CA        1 0x0002c90300fa0012 4x HDR - SW     4  2 0x0002c90200f00010 ( 'q02 HCA-1' - 'leaf' )\n"
    )
    fabric = fabric_of(tmp_path, 'DR path slid 0; dlid 0; 0 -> new Channel Adapter {1} portnum 1 lid 0-0 ""\n' + lines)
    assert fabric.port_lid.tolist() == [4, 16]
    assert len(fabric.inactive) == 1
    assert [damage.kind for damage in fabric.damage] == [DamageKind.STRAY]


@pytest.mark.parametrize(
    ("code", "gbps"),
    [(1, 8), (2, 16), (4, 32), (256, 54.5), (512 + 4, 100), (1024, 200), (2048, 400), (2052, 400), (4096, 800),
     (1 << 24, 800), (0x10004, 40), (0x20000, 80)],
)  # fmt: skip
def test_all_codes_of_ibdiagnets_speeds(tmp_path: Path, code: int, gbps: float) -> None:
    fabric = fabric_of(tmp_path, DB.replace(",1024,", f",{code},"))
    assert fabric.link_gbps == pytest.approx([gbps], rel=0.01)
    assert not fabric.unequal


def test_ends_of_different_widths_and_speeds_are_reported_as_that(tmp_path: Path) -> None:
    fabric = fabric_of(tmp_path, DB.replace("0x20,0x21,1,8,2,1024", "0x20,0x21,1,8,1,512"))
    assert fabric.link_gbps == pytest.approx([25], rel=0.01)
    assert fabric.link_lanes.tolist() == [1]
    assert fabric.unequal == ("'a, b \"c\"' port 5 has 4x 200 Gb/s, 'host01 mlx5_0' port 1 has 1x 25 Gb/s",)


def test_switches_that_share_a_description_get_the_ends_of_their_guids(tmp_path: Path) -> None:
    other = (
        SWITCH.replace("f00010", "f1abcd")
        .replace("fa0000", "fb0000")
        .replace("fa0002", "fb0002")
        .replace("lid 4 ", "lid 5 ")
    )
    fabric = fabric_of(
        tmp_path, SWITCH + other.replace("lid 16", "lid 20").replace("fa0100", "fb0100").replace("lid 32", "lid 33")
    )
    leaf = 'leaf "1" base port 0 lid 9 lmc 0'
    assert fabric.node_name[:2] == (f"{leaf} (..0010)", f"{leaf} (..abcd)")


def test_the_slots_of_a_chassis_distinguish_its_switches(tmp_path: Path) -> None:
    text = "Chassis 2 (guid 0x1)\n" + SWITCH.replace("(2c90200f00010)\n", "(2c90200f00010)\t# ISR9024 Line 1 Chip 2\n")
    other = (
        text.replace("f00010", "f00020").replace("Chip 2", "Chip 3").replace("fa0", "fb0").replace("lid 4 ", "lid 5 ")
    )
    fabric = fabric_of(tmp_path, text + other.replace("lid 16", "lid 20").replace("lid 32", "lid 33"))
    for name, chip in zip(fabric.node_name[:2], (2, 3), strict=True):
        assert name.endswith(f"0 (chassis 2, ISR9024 Line 1 Chip {chip})")


TABLE = HEAD + "0x0001 001 :\n0x0002 002 :\n"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TABLE + "0x0003 003 :\n0x0006 003 :\n4 valid lids dumped \n", []),
        (TABLE + "3 valid lids dumped \n", ["2 entries, but the dump states 3"]),
        (TABLE, ["the table ends at LID 0x0002, but its header states LIDs up to 0x0006"]),
        (
            TABLE + "0x0006 003 :\n/usr/sbin/ibroute: iberror: failed: dump tables: get failed\n",
            ["1 message of the tool"],
        ),
    ],
)
def test_tables_that_end_early_are_reported(tmp_path: Path, text: str, what: list[str]) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    tables = read_tables(path)
    assert tables.port[0, 1] == 1
    assert [damage.what.startswith(start) for damage, start in zip(tables.damage, what, strict=True)] == [True] * len(
        what
    )
    assert all(damage.node_guid == 0x0002C90200F00028 for damage in tables.damage)


def test_a_description_may_hold_what_a_head_has(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(HEAD + "0x0001 001 : (Switch portguid 0x1: 'guid 0x3 (x)')\n0x0003 255 : \n2 valid lids dumped \n")
    tables = read_tables(path)
    assert tables.switch_guid.tolist() == [0x0002C90200F00028]
    assert tables.port.tolist() == [[UNREACHABLE, 1, UNREACHABLE, UNREACHABLE]]
