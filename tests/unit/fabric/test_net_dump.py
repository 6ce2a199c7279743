# SPDX-License-Identifier: Apache-2.0
"""In `.net_dump` files, special cases are read, and damage is reported.

The lines have the format of a public excerpt of ibdiagnet 2.10.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.damage import DamageKind
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.link_formats import find_link_format, read_fabric

COLUMNS = (
    "  #          : IB# : Sta  : PhysSta    : MTU : LWA     : LSA     : FEC mode            : Retran : "
    "Neighbor Guid      : N#         : NLID : Neighbor Description\n"
)


def row(label: str, number: int, guid: str, far: str, lid: int | str, name: str, state: str = "ACT") -> str:
    up = "LINK UP    : 5   : 4x      : 50      : MLNX_RS_271_257_PLR : NO-RTR"
    return f"  {label:10} : {number:3} : {state:4} : {up} : {guid:18} : {far:10} : {lid} : {name}\n"


LEAF = (
    '"MF0;leaf1:MQM8700/U1", Mellanox, 0x1070fd03001adeb4, LID 24328\n'
    + COLUMNS
    + row("1/2", 40, "0xc42a10300dbfb92", "1/7", 25697, '"MF0;top:MQM8700/U1"')
    + row("1/3", 3, "0x248a0703008a850a", "1", 2566, '"pg21a: 1 mlx5_0"')
)
TOP = (
    '"MF0;top:MQM8700/U1", Mellanox, 0x0c42a10300dbfb92, LID 25697\n'
    + COLUMNS
    + row("1/7", 21, "0x1070fd03001adeb4", "1/2", 24328, '"MF0;leaf1:MQM8700/U1"')
)


def fabric_of(folder: Path, text: str) -> Fabric:
    (folder / "a").write_text(text)
    return read_fabric(folder / "a")


def test_ports_on_the_outside_are_those_of_the_other_switch(tmp_path: Path) -> None:
    fabric = fabric_of(tmp_path, LEAF + TOP)
    assert fabric.node_name == ("MF0;top:MQM8700/U1", "MF0;leaf1:MQM8700/U1", "pg21a: 1 mlx5_0")
    assert fabric.node_kind.tolist() == [NodeKind.SWITCH, NodeKind.SWITCH, NodeKind.CA]
    assert fabric.link_port.tolist() == [[21, 40], [3, 1]]
    assert fabric.port_lid.tolist() == [25697, 24328, 2566]
    assert fabric.link_gbps.round().tolist() == [200, 200]
    assert not fabric.damage
    assert any("no NODE GUIDs of adapters" in each for each in fabric.warnings)


def test_links_of_adapters_are_whole_and_those_of_missing_switches_are_half(tmp_path: Path) -> None:
    """The file lacks the section of a switch. Sections of other switches have the missing switch's links and LID."""
    assert not fabric_of(tmp_path, LEAF + TOP).link_half.any()
    cut = LEAF.replace("1/7        :", "7          :") + row(
        "1/4", 4, "0xc42a10300dbfb92", "8", 25697, '"MF0;top:x/U1"'
    )
    fabric = fabric_of(tmp_path, cut)
    assert fabric.node_kind.tolist() == [NodeKind.SWITCH, NodeKind.SWITCH, NodeKind.CA]
    assert fabric.link_half.tolist() == [True, True, False]
    assert fabric.link_port.tolist() == [[7, 40], [8, 4], [3, 1]]


def test_ports_that_are_down_have_no_link(tmp_path: Path) -> None:
    down = (
        "  4          : 4   : DOWN : POLLING    : N/A : N/A     : N/A     : N/A : N/A : " + " : ".join([""] * 4) + "\n"
    )
    waiting = row("5", 5, "0x248a0703008a860a", "1", "", '"pg21b mlx5_0"', "INI")
    fabric = fabric_of(tmp_path, LEAF + down + waiting + TOP)
    assert fabric.links == 2
    assert len(fabric.inactive) == 1
    assert "pg21b" in fabric.inactive[0]


@pytest.mark.parametrize(
    ("old", "new", "lines", "what"),
    [
        (
            "1/7        : 25697",
            "1/9        : 25697",
            (3,),
            "port 40: its neighbour 'MF0;top:MQM8700/U1' has no port '1/9'",
        ),
        ("0x248a0703008a850a", "0x248a0703008a85zz", (4,), "expected # : IB# : Sta"),
        (': 2566 : "pg21a: 1 mlx5_0"', "", (4,), "expected # : IB# : Sta"),
        (
            '"MF0;top:MQM8700/U1", Mellanox, 0x',
            '"MF0;top:MQM8700/U1", Mellanox 0x',
            (3, 5, 7),
            'expected "description", VENDOR',
        ),
    ],
)
def test_damaged_lines_are_left_out(tmp_path: Path, old: str, new: str, lines: tuple[int, ...], what: str) -> None:
    fabric = fabric_of(tmp_path, (LEAF + TOP).replace(old, new, 1))
    assert fabric.links >= 1
    lost = [damage for damage in fabric.damage if damage.kind is DamageKind.LOST]
    assert sorted(line for damage in lost for line in damage.lines) == list(lines)
    assert any(what in damage.what for damage in lost)


@pytest.mark.parametrize("last", ["  ", "  1/3 ", LEAF.splitlines()[-1][:60], LEAF.splitlines()[-1][:-1], '"MF0;to'])
def test_a_file_that_ends_within_a_line_is_cut(tmp_path: Path, last: str) -> None:
    fabric = fabric_of(tmp_path, LEAF + TOP + last)
    (damage,) = fabric.damage
    assert damage.kind is DamageKind.LOST
    assert damage.lines == (8,)
    assert "the dump ends within a line" in damage.what


@pytest.mark.parametrize("text", [LEAF + TOP, (LEAF + TOP)[:-1], LEAF + TOP + "# end"])
def test_a_file_whose_last_line_is_whole_is_not_cut(tmp_path: Path, text: str) -> None:
    assert fabric_of(tmp_path, text).damage == ()


def test_a_file_without_needed_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a:2: expected a column 'nlid', found"):
        fabric_of(tmp_path, LEAF.replace("NLID", "N LID"))
    with pytest.raises(InputError, match=r"a: expected at least one link, found none"):
        fabric_of(tmp_path, COLUMNS)


def test_the_format_is_recognised_by_its_columns() -> None:
    found = find_link_format(b"# Running version\n" + COLUMNS.encode())
    assert found is not None
    assert found.name == "ibdiagnet 2's .net_dump"


def test_lost_lines_between_others_are_reported(tmp_path: Path) -> None:
    """ibdiagnet writes a line for each port of a switch, so a missing port number means a lost line."""
    host = row("1/8", 2, "0x1070fd03001adeb5", "1", 7, '"a"')
    top = TOP.replace(" :  21 :", " :   1 :") + host + row("1/9", 3, "0x1070fd03001adec5", "1", 8, '"b"')
    whole = LEAF.replace(" :  40 :", " :   1 :").replace(" :   3 :", " :   2 :") + top
    assert not fabric_of(tmp_path, whole).damage
    for lost, what in (
        (whole.replace(' "a"\n', ' "a"'), "expected the end of the line"),
        (whole.replace(host, ""), "no line for port 2"),
        (whole.replace("  1/8        :   2 :", ""), "1 line could not be used"),
    ):
        assert any(what in each.what for each in fabric_of(tmp_path, lost).damage)
