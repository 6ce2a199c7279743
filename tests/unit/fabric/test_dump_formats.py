# SPDX-License-Identifier: Apache-2.0
"""The beginning of a file determines the file's format, even if more of the file was read."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from ibprof.errors import InputError
from ibprof_converter.fabric.dump_files import head_of, peek_dump, read_dump
from ibprof_converter.fabric.link_formats import find_link_format
from ibprof_converter.routing.far import looks_like_far
from ibprof_converter.routing.table_formats import TABLE_FORMATS, find_table_format
from ibprof_testing.samples.fabrics import FABRICS

HEAD = 1 << 20

SIGNS = {
    "ibdiagnet 2's .db_csv": b"START_NODES\n",
    "OpenSM's .lst": b"{ CA Ports:01 VenID:0002c9 }\n",
    "ibnetdiscover": b"switchguid=0x2c90200f00010\n",
    "ibdiagnet's or OpenSM's .fdbs": b"ucast: Switch 0x0002c90200f00000\n",
    "OpenSM's lfts.dump or dump_fts": b"Unicast lids [0-44] of switch Lid 2 guid 0x0002c90200400000 ('sw-a'):\n",
}
"""Format that may begin with other lines -> line by which ibprof recognises the format."""


def find_name(data: bytes) -> str | None:
    found = find_link_format(data) or find_table_format(data)
    return found.name if found else None


@pytest.mark.parametrize(("name", "sign"), SIGNS.items())
def test_a_format_is_recognised_by_the_beginning_alone(name: str, sign: bytes, tmp_path: Path) -> None:
    for lines, is_seen in ((1, True), ((HEAD - len(sign)) // 2, True), (HEAD // 2, False)):
        data = b"#\n" * lines + sign
        (tmp_path / "dump").write_bytes(data)
        assert read_dump(tmp_path / "dump") == data
        found = {find_name(each) for each in (data, peek_dump(tmp_path / "dump"))}
        assert found == {name if is_seen else None}


def test_what_is_read_and_what_is_peeked_have_one_beginning(tmp_path: Path) -> None:
    data = bytes(range(1, 10)) * HEAD
    (tmp_path / "dump").write_bytes(data)
    assert head_of(data) == peek_dump(tmp_path / "dump") == data[:HEAD]


def test_a_far_is_not_taken_for_tables_alone() -> None:
    stanza = b"ar: Switch 0x0002c90200f00000\n"
    columns = b"LID : Static Port : Group\n"
    assert looks_like_far(stanza + columns)
    assert find_table_format(stanza + columns) is TABLE_FORMATS[0]
    # ibprof does not search for columns after the first HEAD bytes.
    assert find_table_format(stanza + b"#\n" * HEAD + columns) is TABLE_FORMATS[1]


def test_a_packed_file_is_read_under_the_name_of_the_plain_one(tmp_path: Path) -> None:
    plain = (FABRICS / "testbed44" / "ibdiagnet.lst").read_bytes()
    (tmp_path / "ibdiagnet.lst.xz").write_bytes(lzma.compress(plain))
    assert read_dump(tmp_path / "ibdiagnet.lst") == plain
    assert peek_dump(tmp_path / "ibdiagnet.lst")
    with pytest.raises(InputError, match="no such file"):
        read_dump(tmp_path / "other.lst")
