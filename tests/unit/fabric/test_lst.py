# SPDX-License-Identifier: Apache-2.0
"""In `.lst` files, special cases are read. Damaged lines are left out and named, or the file is refused."""

from __future__ import annotations

import lzma
import re
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InconsistentError, InputError
from ibprof_converter.fabric.dump_files import read_dump
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.routing.folder_dumps import Content, identify_content

CA = "{ CA-SM Ports:02 SystemGUID:0002c90300000013 NodeGUID:0002c90300000010 PortGUID:000000000000ca01 VenID:000002C9 DevID:1003 Rev:000000A1 {host01 HCA-1} LID:000B PN:01 }"  # noqa: E501
SWITCH = "{ SW Ports:24 SystemGUID:0002c90200000020 NodeGUID:0002c90200000020 PortGUID:0002c90200000020 VenID:000002C9 DevID:BD36 Rev:000000A1 {sw-a} LID:0010 PN:16 }"  # noqa: E501
TAIL = "PHY=4x LOG=ACT SPD=10"
LINE = f"{CA} {SWITCH} {TAIL}"


def read(folder: Path, *lines: str | bytes) -> Fabric:
    path = folder / "a.lst"
    path.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + b"\n")
    return read_fabric(path)


def other_end(end: str, guid: str, lid: str, port: str) -> str:
    """Replace one end (CA or SWITCH) of a link by another port."""
    for old in ("0002c90300000010", "0002c90200000020", "000000000000ca01"):
        end = end.replace(f"NodeGUID:{old}", f"NodeGUID:{guid}").replace(f"PortGUID:{old}", f"PortGUID:{guid}")
    end = end.replace("LID:000B", f"LID:{lid}").replace("LID:0010", f"LID:{lid}")
    return end.replace("PN:01", f"PN:{port}").replace("PN:16", f"PN:{port}")


def test_a_line_is_read_in_full(tmp_path: Path) -> None:
    fabric = read(tmp_path, LINE)
    assert fabric.node_guid.tolist() == [0x0002C90200000020, 0x0002C90300000010]
    assert fabric.node_kind.tolist() == [NodeKind.SWITCH, NodeKind.CA]
    assert fabric.node_name == ("sw-a", "host01 HCA-1")
    assert fabric.system_guid.tolist() == [0x0002C90200000020, 0x0002C90300000013]
    assert fabric.link_node.tolist() == [[0, 1]]
    assert fabric.link_port.tolist() == [[0x16, 1]]  # PN is hexadecimal
    assert fabric.link_gbps.tolist() == [32]
    assert fabric.port_node.tolist() == [0, 1]
    assert fabric.port_number.tolist() == [0, 1]  # the LID of a switch is the LID of its port 0
    assert fabric.port_guid.tolist() == [0x0002C90200000020, 0xCA01]
    assert fabric.port_lid.tolist() == [0x10, 0x0B]
    assert fabric.lid_node[[0x10, 0x0B, 0x0C]].tolist() == [0, 1, -1]


def test_what_ibdiagnet_2_may_write_is_read(tmp_path: Path) -> None:
    """The list has comments, lower-case codes, names of speeds, speeds above QDR, and routers (`RTR`)."""
    lower = LINE.replace("000002C9", "000002c9").replace("BD36", "bd36").replace("000000A1", "000000a1")
    router = other_end(CA, "0002c90300000099", "0030", "02").replace("CA-SM", "RTR")
    fabric = read(
        tmp_path,
        "# This file was made by a tool",
        "#",
        lower.replace("SPD=10", "SPD=FDR10"),
        f"{router} {SWITCH.replace('PN:16', 'PN:17')} {TAIL.replace('10', '50')}",
    )
    assert fabric.node_kind.tolist() == [NodeKind.SWITCH, NodeKind.CA, NodeKind.ROUTER]
    assert fabric.link_gbps.round().tolist() == [40, 200]
    assert fabric.warnings == ()


def test_arrays_have_the_types_that_the_model_promises(tmp_path: Path) -> None:
    fabric = read(tmp_path, LINE)
    types = {
        np.uint64: ("node_guid", "system_guid", "port_guid"),
        np.uint8: ("node_kind",),
        np.float64: ("link_gbps",),
        np.int32: (
            "link_node",
            "link_port",
            "port_node",
            "port_number",
            "port_lid",
            "port_lmc",
            "lid_node",
            "lid_port",
        ),
    }
    for dtype, fields in types.items():
        assert {getattr(fabric, field).dtype for field in fields} == {np.dtype(dtype)}


@pytest.mark.parametrize(
    "name",
    [
        "",
        "two  blanks",
        '"quoted"',
        "a{b}c",
        "{",
        "}",
        "} LID:0001 PN:01 } {",
        "LID:0001 PN:01",
        "#",
        "\\",
        "äöü",
        "x" * 64,
    ],
)
def test_names_may_hold_what_separates_fields(tmp_path: Path, name: str) -> None:
    # A node without a description is named by its GUID.
    expected = name or "0x0002c90300000010"
    assert read(tmp_path, LINE.replace("host01 HCA-1", name)).node_name[1] == expected


def test_parts_of_two_lines_are_no_description(tmp_path: Path) -> None:
    other = f"{other_end(CA, '0002c90300000030', '0003', '01')} {other_end(SWITCH, '0002c90200000020', '0010', '17')}"
    for cut in (LINE.index("NodeGUID:", len(CA)), LINE.index("LOG="), LINE.index("PN:", len(CA))):
        fabric = read(tmp_path, f"{LINE[:cut]} {other[other.index('Rev:') :]} {TAIL}", LINE)
        assert fabric.links == 1
        assert fabric.damage[0].lines == (1,)


def test_names_that_are_not_utf8_stay_printable(tmp_path: Path) -> None:
    fabric = read(tmp_path, LINE.encode().replace(b"host01", b"h\xff\xfe"))
    assert fabric.node_name[1] == "h\\xff\\xfe HCA-1"


def test_lower_case_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    lower = LINE.replace("VenID:000002C9", "VenID:000002c9").replace("LID:000B", "LID:000b") + "\r"
    assert read(tmp_path, "", lower).port_lid.tolist() == [0x10, 0x0B]


@pytest.mark.parametrize(
    ("phy", "speed", "gbps"),
    [
        ("PHY=1x", "2.5", 2),  # SDR
        ("PHY=4x", "5", 16),  # DDR
        ("PHY=", "10", 16),  # ibdiagnet 1.5.7 prints no width for 2x
        ("PHY=2x", "50", 100),  # HDR100
        ("PHY=4x", "14", 54.545454),  # FDR
        ("PHY=4x", "25", 100),  # EDR
        ("PHY=4x", "100", 400),  # NDR
        ("PHY=12x", "10", 96),
    ],
)
def test_rates(tmp_path: Path, phy: str, speed: str, gbps: float) -> None:
    line = LINE.replace("PHY=4x", phy).replace("SPD=10", f"SPD={speed}")
    assert read(tmp_path, line).link_gbps == pytest.approx(gbps, rel=1e-6)


def test_a_speed_that_is_not_known_is_nan_and_told(tmp_path: Path) -> None:
    fabric = read(tmp_path, LINE.replace("SPD=10", "SPD=77"))
    assert np.isnan(fabric.link_gbps).all()
    assert "unknown speed" in fabric.warnings[0]


def test_the_lower_of_two_rates_is_taken(tmp_path: Path) -> None:
    fabric = read(tmp_path, LINE, f"{SWITCH} {CA} PHY=4x LOG=ACT SPD=5")
    assert fabric.link_gbps.tolist() == [16]
    assert "width or speed of the two ends differ" in fabric.warnings[0]
    assert fabric.unequal == ("'host01 HCA-1' port 1 has 4x 32 Gb/s, 'sw-a' port 22 has 4x 16 Gb/s",)


def test_a_link_listed_from_one_end_only_among_others_is_reported(tmp_path: Path) -> None:
    second = f"{other_end(CA, '00000000000000aa', '0077', '01')} {SWITCH.replace('PN:16', 'PN:17')} {TAIL}"
    assert "listed from one end only" in read(tmp_path, LINE, f"{SWITCH} {CA} {TAIL}", second).warnings[0]


def test_both_ports_of_a_ca_are_kept_apart(tmp_path: Path) -> None:
    second = CA.replace("ca01", "ca02").replace("LID:000B", "LID:000C").replace("PN:01", "PN:02")
    fabric = read(tmp_path, LINE, f"{second} {SWITCH.replace('PN:16', 'PN:17')} {TAIL}")
    assert fabric.nodes == 2
    assert fabric.port_guid.tolist() == [0x0002C90200000020, 0xCA01, 0xCA02]
    assert fabric.lid_node[[0x0B, 0x0C]].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("CA-SM", "XX", r"line 2: expected type CA, SW or Rt, found 'XX Ports"),
        ("Ports:24", "Ports:x4", r"line 2: expected Ports:, 2 hex digits, found 'Ports:x4"),
        ("NodeGUID:0002c90300000010", "NodeGUID:2c9", r"line 2: expected NodeGUID:, 16 hex digits, found"),
        ("VenID:000002C9 DevID:BD36", "VenID:x DevID:BD36", r"line 2: expected VenID:"),
        ("LID:0010", "LID:10", r"line 2: expected a LID, 4 hex digits or none, found '10 "),
        ("LID:000B", "LID:C000", r"line 2: expected LIDs up to 0xbfff, found a multicast LID"),
        ("PN:01", "PN:00", r"line 2: expected a port number from 1, found port 0"),
        ("PN:01", "PN:03", r"line 2: expected port numbers up to the node's number of ports"),
        ("PN:16 }", "PN:16", r"line 2: expected PN:, 2 hex digits, found"),
        ("PHY=4x", "PHY=3x", r"line 2: expected LOG=, a state, found '3x"),
        ("LOG=ACT", "LOG=", r"line 2: expected LOG=, a state"),
        ("SPD=10", "SPD=", r"line 2: expected SPD=, a speed, found ' SPD='"),
        ("SPD=10", "SPD=10 and more", r"line 2: expected the end of the line, found ' and more'"),
        (f" {TAIL}", "", r"line 2: expected PHY=, a width, found the end of the line"),
    ],
)
def test_a_line_with_a_bad_field_is_left_out_and_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    good = f"{other_end(CA, '00000000000000aa', '0077', '01')} {SWITCH.replace('PN:16', 'PN:17')} {TAIL}"
    assert old in LINE
    fabric = read(tmp_path, good, LINE.replace(old, new))
    assert fabric.links == 1
    (damage,) = fabric.damage
    assert damage.lines == (2,)
    assert re.search(message, damage.text)
    with pytest.raises(InputError, match=message.replace("line 2", "a.lst:1")):  # no other line is left
        read(tmp_path, LINE.replace(old, new))


def test_one_port_at_both_ends_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.lst:1: expected a link between two ports"):
        read(tmp_path, f"{SWITCH} {SWITCH} {TAIL}")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            f"{other_end(CA, '00000000000000aa', '0077', '01')} {SWITCH} {TAIL}",
            r"a\.lst:2: the link of a port differs from line 1",
        ),
        (f"{CA.replace('CA-SM', 'Rt')} {SWITCH} {TAIL}", r"a\.lst:2: the type of a node"),
        (f"{CA.replace('LID:000B', 'LID:000C')} {SWITCH} {TAIL}", r"a\.lst:2: the LID of a port"),
        (f"{CA.replace('ca01', 'ca02')} {SWITCH} {TAIL}", r"a\.lst:2: the PortGUID of a port"),
        (f"{CA.replace('0000013', '0000014')} {SWITCH} {TAIL}", r"a\.lst:2: the SystemGUID of a node"),
        (
            f"{other_end(CA, '00000000000000aa', '000B', '01')} {SWITCH.replace('PN:16', 'PN:17')} {TAIL}",
            r"a\.lst: LID 0x000b belongs to more than one port",
        ),
    ],
)
def test_lines_that_contradict_one_another_are_refused(tmp_path: Path, second: str, message: str) -> None:
    with pytest.raises(InconsistentError, match=message):
        read(tmp_path, LINE, second)


def test_links_of_a_fabric_without_an_active_one_count_as_active(tmp_path: Path) -> None:
    fabric = read(tmp_path, LINE.replace("LOG=ACT", "LOG=INI"))
    assert fabric.links == 1
    assert not fabric.synthetic_lids
    assert "no link is active: all links are assumed to become active" in fabric.warnings


def test_a_fabric_without_lids_gets_synthetic_ones(tmp_path: Path) -> None:
    fabric = read(tmp_path, re.sub("LID:[0-9A-F]{4}", "LID:0000", LINE.replace("LOG=ACT", "LOG=INI")))
    assert (fabric.links, fabric.port_lid.tolist()) == (1, [1, 2])
    assert fabric.synthetic_lids


def test_a_list_made_of_ufms_links_is_read(tmp_path: Path) -> None:
    """UFM's links have no numbers of ports, vendors, LIDs and speeds, so the list has 0 and ? instead."""
    line = re.sub("(Ports|VenID|DevID|Rev|LID):[0-9A-F]+", r"\1:0", LINE).replace("SPD=10", "SPD=?")
    fabric = read(tmp_path, line)
    assert fabric.node_name == read(tmp_path, LINE).node_name
    assert (fabric.links, fabric.link_lanes.tolist()) == (1, [4])
    assert np.isnan(fabric.link_gbps).all()


def test_a_list_without_descriptions_is_read(tmp_path: Path) -> None:
    fabric = read(tmp_path, re.sub(r" \{[^{}]*\} LID", " LID", LINE))
    assert fabric.node_name == ("0x0002c90200000020", "0x0002c90300000010")
    assert fabric.port_lid.tolist() == read(tmp_path, LINE).port_lid.tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected text, found an empty file"),
        (b" \n\n", "expected text, found an empty file"),
        (b"\x7fELF\0\0\0", "expected a text file, found binary data"),
        (b"\x1f\x8b\x08\0 cut", r"expected a readable file, found damaged data"),
        (b"\xfd7zXZ\0 cut", r"expected a readable file, found damaged data"),
        (
            b"guid,port,bytes\n",
            r"a\.lst:1: expected links in one of the forms .*ibnetdiscover -p, .*, found 'guid,port",
        ),
        (LINE[:300].encode(), r"a\.lst:1: expected "),
        (b"{ " + b"\xff" * 10_000, r"a\.lst:1: expected type CA, SW or Rt"),
    ],
)
def test_what_is_no_lst_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.lst").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_fabric(tmp_path / "a.lst")


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a readable file, found no such file"):
        read_fabric(tmp_path / "a.lst")
    with pytest.raises(InputError, match="found is a directory"):
        read_fabric(tmp_path)


def test_a_hostile_line_costs_no_time(tmp_path: Path) -> None:
    """ibprof must not match the two names by a quadratic regular expression: this line would take minutes."""
    end = CA[: CA.index("{host01")]
    with pytest.raises(InputError, match=r"a\.lst:1: expected "):
        read(tmp_path, (end + "{" + "} LID:0001 PN:01 } " * 20_000) * 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0x000000000000ca01 0x000b", r"guid2lid:2: expected 0x<port GUID> 0x<first LID> 0x<last LID>"),
        ("0x000000000000ca01 0x000b 0x000c", r"guid2lid:2: expected an aligned block"),
        ("0x000000000000ca01 0x000b 0x0001", r"guid2lid:2: expected an aligned block"),
        ("0x000000000000ca01 0x0000 0x0000", r"guid2lid:2: expected an aligned block"),
    ],
)
def test_a_bad_guid2lid_is_refused(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "guid2lid").write_text(f"0x0002c90200000020 0x0010 0x0010\n{line}\n")
    with pytest.raises(InputError, match=message):
        read(tmp_path, LINE)


def test_a_small_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ibprof_converter.fabric.dump_files.EXPANDED_LIMIT", 1 << 20)
    (tmp_path / "a.lst.xz").write_bytes(lzma.compress(b"{ " * (1 << 20)))
    with pytest.raises(InputError, match="expected at most 1,048,576 bytes, found more"):
        read_fabric(tmp_path / "a.lst.xz")


def test_a_file_that_expands_far_more_than_tables_do_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ibprof_converter.fabric.dump_files._SMALL", 1 << 21)
    (tmp_path / "small.lst.xz").write_bytes(lzma.compress(LINE.encode() + b"\n" * (1 << 20)))
    assert len(read_dump(tmp_path / "small.lst.xz")) == len(LINE) + (1 << 20)
    (tmp_path / "a.lst.xz").write_bytes(lzma.compress(LINE.encode() + b"\n" * (1 << 23)))
    with pytest.raises(InputError, match="expected compressed data that expands to at most 400 times its size"):
        read_fabric(tmp_path / "a.lst.xz")


def test_formats_are_recognised_in_time_proportional_to_the_text(tmp_path: Path) -> None:
    """The head of a table is followed by 65,536 blank lines, which even a small compressed file can contain."""
    path = tmp_path / "a.fdbs"
    path.write_bytes(b"osm: Switch 0x0002c90200f00000\n" + b"\n" * (1 << 16))
    begun = time.process_time()
    assert identify_content(path) is Content.TABLES
    assert time.process_time() - begun < 2  # a quadratic search took 16 s


def test_a_file_takes_the_memory_of_its_text_not_of_the_largest_one(tmp_path: Path) -> None:
    path = tmp_path / "a.lst"
    path.write_text("a line\n" * 1000)
    tracemalloc.start()
    try:
        read_dump(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
