# SPDX-License-Identifier: Apache-2.0
"""CSV traffic: the header determines the format, and errors name the path and the line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibprof.errors import InputError
from ibprof_converter.traffic import csv_tables
from ibprof_converter.traffic.csv_tables import read_traffic_table
from ibprof_converter.traffic.traffic_data import PortCounters, RankTraffic, Traffic


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_lid_pairs(tmp_path: Path) -> None:
    traffic = read_traffic_table(write(tmp_path, "src_lid,dst_lid,bytes\n1,0x6,10\n\n6,1,5\n"), 1)
    assert isinstance(traffic, Traffic)
    assert traffic.source_lid.tolist() == [1, 6]
    assert traffic.destination_lid.tolist() == [6, 1]
    assert traffic.bytes.tolist() == [10, 5]
    assert (traffic.rail_source, traffic.notes) == ("single rail", ())


def test_lid_pairs_with_a_rail_are_measured(tmp_path: Path) -> None:
    traffic = read_traffic_table(write(tmp_path, "src_lid, dst_lid, bytes, rail\r\n1,6,10,1\r\n"), 2)
    assert isinstance(traffic, Traffic)
    assert traffic.rail.tolist() == [1]
    assert traffic.rail_source == "measured"


def test_lid_pairs_without_a_rail_say_so_on_two(tmp_path: Path) -> None:
    traffic = read_traffic_table(write(tmp_path, "src_lid,dst_lid,bytes\n1,6,10\n"), 2)
    assert isinstance(traffic, Traffic)
    assert "first fabric" in traffic.notes[0]
    assert traffic.rail_source == "assumed (first fabric)"


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    traffic = read_traffic_table(write(tmp_path, b"\xef\xbb\xbfsrc_lid,dst_lid,bytes\n1,6,10\n"), 1)
    assert isinstance(traffic, Traffic)
    assert traffic.bytes.tolist() == [10]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(tmp_path: Path, end: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(end.join(["src_lid,dst_lid,bytes", "1,2,3", "4,5,6", ""]).encode())
    traffic = read_traffic_table(path, 1)
    assert isinstance(traffic, Traffic)
    assert traffic.bytes.tolist() == [3, 6]


def test_ports_that_come_twice_are_reported(tmp_path: Path) -> None:
    text = "guid,port,bytes\n0x1,22,1\n0x1,23,1\n{}"
    once = read_traffic_table(write(tmp_path, text.format("")), 1)
    twice = read_traffic_table(write(tmp_path, text.format("0x1,22,5\n")), 1)
    assert isinstance(once, PortCounters)
    assert isinstance(twice, PortCounters)
    assert once.notes == ()
    assert "1 row(s) repeat the port of another row" in twice.notes[0]


def test_port_counters(tmp_path: Path) -> None:
    counters = read_traffic_table(write(tmp_path, "guid,port,bytes\n0x0002c90200400000,22,18446744073709551\n"), 1)
    assert isinstance(counters, PortCounters)
    assert counters.node_guid.tolist() == [0x0002C90200400000]
    assert (counters.port.tolist(), counters.bytes.tolist()) == ([22], [18446744073709551])


def test_rank_matrix(tmp_path: Path) -> None:
    matrix = read_traffic_table(write(tmp_path, "src,dst,bytes,messages\n0,7,10,2\n"), 1)
    assert isinstance(matrix, RankTraffic)
    assert (matrix.ranks, matrix.messages.tolist()) == (8, [2])


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ":1: expected the header"),
        ("a,b,c\n", ":1: expected the header"),
        ("src,dst,bytes\n", ":1: expected the header"),
        ("src_lid,dst_lid,bytes\n1,2\n", ":2: expected 3 columns, found 2"),
        ("src_lid,dst_lid,bytes\n1,2,3\n1,2,x\n", ":3: expected a number of bytes, found 'x'"),
        ("src_lid,dst_lid,bytes\n1,2,-3\n", ":2: expected a number of bytes, found '-3'"),
        ("src_lid,dst_lid,bytes\n1,2,1_000\n", ":2: expected a number of bytes, found '1_000'"),
        ("src_lid,dst_lid,bytes\n1,2,1.5\n", ":2: expected a number of bytes"),
        ("src_lid,dst_lid,bytes\n1,2,\u0663\n", ":2: expected a number of bytes"),
        ("src_lid,dst_lid,bytes\n70000,2,3\n", ":2: expected a LID below 65536"),
        ("src_lid,dst_lid,bytes\n1,2,18446744073709551616\n", ":2: expected a number of bytes below"),
        ("src_lid,dst_lid,bytes\n1,2,18446744073709551615\n1,3,1\n", ": expected bytes that sum to less than"),
        ("src_lid,dst_lid,bytes,rail\n1,2,3,1\n", ":2: expected a rail index below 1"),
        ("guid,port,bytes\nswitch,1,2\n", ":2: expected a GUID, found 'switch'"),
        ("guid,port,bytes\n0x1,256,2\n", ":2: expected a port below 256"),
        ("src,dst,bytes,messages\n99999999999,0,1,1\n", ":2: expected a rank below"),
        ('src_lid,dst_lid,bytes\n1,"2,3\n', ":2: expected a row of a CSV file"),
        ("src_lid,dst_lid,bytes\n1,2,3\n" + "9" * 70000, ":3: expected lines of fewer"),
        (b"src_lid,dst_lid,bytes\n1,2,3\n\xff\xfe,2,3\n", ":3: expected UTF-8 text, found '\\\\xff"),
    ],
)
def test_what_is_wrong_is_reported_by_path_and_line(tmp_path: Path, text: str | bytes, where: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_traffic_table(path, 1)
    assert str(caught.value).startswith(f"{path}{where}")


HEADERS = st.sampled_from(
    ["src_lid,dst_lid,bytes", "src_lid,dst_lid,bytes,rail", "guid,port,bytes", "src,dst,bytes,messages"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HEADERS, st.one_of(st.text('0123456789,\n"x-\0 ', max_size=60).map(str.encode), st.binary(max_size=60)))
def test_whatever_stands_there_is_read_or_refused(tmp_path: Path, header: str, body: bytes) -> None:
    with suppress(InputError):
        read_traffic_table(write(tmp_path, header.encode() + b"\n" + body), 2)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_plain_numbers_are_read_in_blocks_as_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, last: str
) -> None:
    monkeypatch.setattr(csv_tables, "_BLOCK", 50)
    rows = [f"{i},{i * 7 % 48_000},{9_999_999_999_999_999 * (i % 3)},{i % 2}" for i in range(200)]
    plain = write(tmp_path, ending.join(["src_lid,dst_lid,bytes,rail", *rows]) + last)
    (tmp_path / "quoted").mkdir()
    quoted = write(
        tmp_path / "quoted", "\n".join(["src_lid,dst_lid,bytes,rail", *rows[:-1], f'"{rows[-1][:3]}"{rows[-1][3:]}'])
    )
    one, other = read_traffic_table(plain, 2), read_traffic_table(quoted, 2)
    assert isinstance(one, Traffic)
    assert isinstance(other, Traffic)
    for name in ("source_lid", "destination_lid", "bytes", "rail"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert len(one.bytes) == 200
