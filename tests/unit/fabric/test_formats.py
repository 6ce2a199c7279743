# SPDX-License-Identifier: Apache-2.0
"""Traps and damage in what ibnetdiscover, dump_fts and ibdiagnet 2 write; the big picture is in tests/fabric."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.link_reader import read_fabric
from ibprof_converter.routing.adaptive_groups import NO_GROUP, read_adaptive
from ibprof_converter.routing.table_reader import read_tables
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
    path.write_text(text)
    return read_fabric(path)


def test_quotes_enhanced_port_0_external_ports_and_routers(tmp_path: Path) -> None:
    fabric = fabric_of(tmp_path, SWITCH + ADAPTER + ROUTER)
    assert fabric.node_name == ('leaf "1" base port 0 lid 9 lmc 0', 'q01 "x" lid 3', "router")
    assert fabric.node_kind.tolist() == [NodeKind.SWITCH, NodeKind.CA, NodeKind.ROUTER]
    assert fabric.link_port.tolist() == [[1, 2], [30, 1]]
    assert fabric.port_lid.tolist() == [4, 16, 32]
    assert fabric.port_lmc.tolist() == [2, 1, 1]  # an enhanced port 0 has an LMC of its own
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


def test_a_link_that_is_down_in_db_csv_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one active link"):
        fabric_of(tmp_path, DB.replace("0x20,0x21,1,8,2,1024,1,4", "0x20,0x21,1,8,2,1024,1,2"))


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_fabric, SWITCH + "[2]\t\"S-1\"[1] # 'x'\n", r"a:7: expected \[port\] \"S-GUID\"\[port\]"),
        (read_fabric, SWITCH + "hello\n", r"a:7: expected a line of ibnetdiscover, found 'hello'"),
        (read_fabric, SWITCH + SWITCH, r"a:10: expected one stanza a node, found a second one"),
        (read_fabric, SWITCH.replace("[30]", "[1]"), r"a:6: expected each port once"),
        (read_fabric, "switchguid=0x1(1)\n", r"a: expected at least one link, found none"),
        (read_fabric, "CA 1 1 0x0002c90300fa00b1 4x QDR - nothing\n", r"a:1: expected TYPE LID PORT"),
        (read_tables, HEAD + "0x0001 001 :\n0x0002 01 : (x)\n", r"a:3: expected `0x<LID> <port, 3 digits>`"),
        (read_tables, HEAD + "0x0001 256 : (x)\n", r"a:2: expected"),
        (read_tables, HEAD + "what is this\n", r"a:2: expected a header `Unicast lids"),
        (read_tables, HEAD + "0x0001 001 :\n0x0001 002 :\n", r"a:\d: expected one port for a LID"),
        (read_fabric, DB.replace("0x10,5,0x20,1", "0x10,5,0x30,1"), r"a:14: expected a port that is in NODES"),
        (read_fabric, DB.replace("0x10,5,0x20,1", "0x10,5,0x20,2"), r"a:14: expected a port that is in PORTS"),
        (read_fabric, DB.replace(",36,2,", ",36,9,"), r"a:3: expected NodeType 1, 2 or 3"),
        (
            read_fabric,
            DB.replace("0x10,5,0x20,1", "0x10,x,0x20,1"),
            r"a:14: expected PortNum1",
        ),
        (read_fabric, DB.replace("END_LINKS", ""), r"a:12: expected END_LINKS after it, found none"),
        (read_fabric, DB.replace("1,4,N/A", "1,4"), r"a:10: expected 9 fields, as in the header of PORTS"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, read: Callable[[Path], object], text: str, message: str) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path)


FAR = """# a comment
dump_far: Switch 0x10
PLFT_NUM: 0
LID    | StaticPort | LidState | Group
0x0002 | 3          | Free     | 5
0x0003 | 4          | Static   | 0
PLFT_NUM: 1
LID    | StaticPort | LidState | Group
0x0002 | 3          | Free     | 6
Group  | SubGroup | WHBF | Ports
5      | 0        | 0    | 3,4
5      | 1        | 0    | 7
something else
"""


def test_adaptive_groups_are_read_and_what_is_not_understood_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(FAR)
    adaptive = read_adaptive(path)
    assert adaptive.ports == {(0x10, 5): (3, 4, 7)}
    assert adaptive.group[0x10][[1, 2, 3]].tolist() == [NO_GROUP, 5, NO_GROUP]
    assert adaptive.warnings == ("1 lines were not understood",)
    with pytest.raises(InputError, match="expected forwarding tables"):
        read_tables(path)


def test_a_description_may_hold_what_a_head_has(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(HEAD + "0x0001 001 : (Switch portguid 0x1: 'guid 0x3 (x)')\n0x0003 255 : \n2 valid lids dumped \n")
    tables = read_tables(path)
    assert tables.switch_guid.tolist() == [0x0002C90200F00028]
    assert tables.port.tolist() == [[UNREACHABLE, 1, UNREACHABLE, UNREACHABLE]]
