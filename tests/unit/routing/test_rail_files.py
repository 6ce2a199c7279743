# SPDX-License-Identifier: Apache-2.0
"""For each rail, ibprof reads the right files of a folder, and names the unused files."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import pytest

from ibprof.errors import InputError, UsageError
from ibprof_converter.cli import layout
from ibprof_converter.fabric.damage import DamageKind
from ibprof_converter.fabric.link_formats import find_link_format
from ibprof_converter.fabric.node_names import read_name_map
from ibprof_converter.routing.folder_dumps import identify_content
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import Subnet, read_rail
from ibprof_testing.lab.db_csv import write_db_csv
from ibprof_testing.lab.net_dump import write_net_dump
from ibprof_testing.samples.equality import check_tables
from ibprof_testing.samples.fabrics import (
    DUMP_FTS,
    IBDIAGNET,
    IBNETDISCOVER,
    LFTS_DUMP,
    OPENSM,
    load_sample,
    read_sample_bytes,
)  # fmt: skip


def put(path: Path, sample: str, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(read_sample_bytes(sample, name))
    return path


def write_ibroutes(folder: Path, sample: str) -> list[Path]:
    """Write the output of `ibroute LID` for each switch. Each file ends with an error message of the tool."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = re.split(r"(?=^Unicast lids )", read_sample_bytes(sample, DUMP_FTS).decode(), flags=re.MULTILINE)
    paths = []
    for number, table in enumerate(filter(None, tables)):
        body = re.sub(r"^\d+ valid lids dumped.*\n", "", table, flags=re.MULTILINE)
        paths.append(folder / f"ibroute-fe80:0000-{number}.txt")
        paths[-1].write_text(
            body + "/usr/sbin/ibroute: iberror: failed: dump tables: linear forwarding table get failed\n"
        )
    assert len(paths) > 1
    return paths


def read_one(*names: Path) -> Subnet:
    (files,) = find_rails(names)
    return read_rail(files)


@pytest.mark.parametrize("below", [".", "ibroutes-fe80:0000", "dumps/of/today"])
def test_a_list_with_a_table_file_for_each_switch_is_a_fabric_with_tables(tmp_path: Path, below: str) -> None:
    links = put(tmp_path / "ib-subnet.txt", "torus2d-5x4", IBNETDISCOVER)
    paths = write_ibroutes(tmp_path / below, "torus2d-5x4")
    deep = below.count("/") > 1
    expected = load_sample("torus2d-5x4", OPENSM).tables
    together = [[links, tmp_path / below]] if below != "." else []
    for names in ([tmp_path], [links], [links, *paths], *together):
        if deep and len(names) == 1:
            with pytest.raises(InputError, match="ibroute LID"):
                read_one(*names)
        else:
            check_tables(read_one(*names).tables, expected)


def test_one_damaged_table_of_many_leaves_the_others(tmp_path: Path) -> None:
    links = put(tmp_path / "ib-subnet.txt", "testbed44", IBNETDISCOVER)
    paths = write_ibroutes(tmp_path, "testbed44")
    text = paths[0].read_text()
    paths[0].write_text(text[: len(text) // 2] + "".join(f"0x0005 {port:03} : (x)\n" for port in range(1, 9)))
    subnet = read_one(links)
    assert len(subnet.tables.switch_guid) == len(paths)
    assert any("several ports" in warning and paths[0].name in warning for warning in subnet.warnings)
    assert layout.main(["--check", str(links)]) == 5


def test_the_check_names_the_switch_of_a_damaged_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / OPENSM, "testbed44", OPENSM)
    text = read_sample_bytes("testbed44", "opensm.fdbs").decode()
    second = text.index("Switch 0x", text.index("Switch 0x") + 1)
    (tmp_path / "opensm.fdbs").write_text(text[: second + 600] + "\n")
    assert layout.main(["--check", str(tmp_path)]) == 5
    printed = capsys.readouterr().out
    assert re.search(
        r"damaged-dump: .*'sw-[ab]' \(0x[0-9a-f]{16}\): its table ends at LID 0x00\w\w and lacks \d+ LIDs", printed
    )


def test_lists_of_two_rails_in_one_folder_are_rails(tmp_path: Path) -> None:
    for rail in (1, 2):
        put(tmp_path / f"rail{rail}.lst", f"dualrail/rail{rail}", OPENSM)
        put(tmp_path / f"rail{rail}.fdbs", f"dualrail/rail{rail}", "opensm.fdbs")
    rails = find_rails([tmp_path])
    assert [rail.links.name for rail in rails] == ["rail1.lst", "rail2.lst"]
    assert [read_rail(rail).fabric.nodes for rail in rails] == [420, 406]


def test_another_fabric_in_one_folder_is_passed_over_by_name(tmp_path: Path) -> None:
    put(tmp_path / "a.lst", "testbed44", OPENSM)
    put(tmp_path / "a.fdbs", "testbed44", "opensm.fdbs")
    put(tmp_path / "b.txt", "quirks-small", IBNETDISCOVER)
    subnet = read_one(tmp_path)
    assert subnet.fabric.name.endswith("a.lst")
    assert any("b.txt: skipped" in warning for warning in subnet.warnings)


def test_neighbours_by_lldp_next_to_a_list_are_passed_over_by_name(tmp_path: Path) -> None:
    put(tmp_path / "a.lst", "testbed44", OPENSM)
    put(tmp_path / "a.fdbs", "testbed44", "opensm.fdbs")
    for name in ("leaf1.json", "leaf2.json"):
        (tmp_path / name).write_text('{"lldp": {"interface": {}}}')
    subnet = read_one(tmp_path)
    assert subnet.fabric.name.endswith("a.lst")
    assert any("LLDP files are skipped" in each and "leaf1.json, leaf2.json" in each for each in subnet.warnings)


def test_a_db_csv_without_links_leaves_the_other_list_of_its_run(tmp_path: Path) -> None:
    fabric = load_sample("testbed44", OPENSM).fabric
    text = re.sub(r"START_LINKS.*END_LINKS", "", write_db_csv(fabric), flags=re.DOTALL)
    (tmp_path / "ibdiagnet2.db_csv").write_text(text)
    with pytest.raises(
        InputError, match=r"db_csv: expected a section LINKS, found none; use the \.lst, \.ibnetdiscover or"
    ):
        read_one(tmp_path)
    put(tmp_path / "t.fdbs", "testbed44", "opensm.fdbs")
    (tmp_path / "ibdiagnet2.net_dump").write_text(write_net_dump(fabric))
    subnet = read_one(tmp_path)
    assert subnet.fabric.name.endswith("ibdiagnet2.net_dump")
    assert subnet.fabric.links == fabric.links
    assert any(
        "ibdiagnet2.db_csv: not used as a list of links, since it has no section LINKS" in each
        for each in subnet.warnings
    )
    assert layout.main(["--check", str(tmp_path)]) == 0


def test_files_of_known_names_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    put(tmp_path / IBDIAGNET, "testbed44", IBDIAGNET)
    put(tmp_path / "ibdiagnet.fdbs", "testbed44", "ibdiagnet.fdbs")
    (tmp_path / "ibdiagnet2.far").write_text("nothing of interest\n")
    (tmp_path / "ibdiagnet2.lst").touch()
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    warnings = read_one(tmp_path).warnings
    assert any(each.endswith("ibdiagnet2.far: not used, nothing in it is recognised") for each in warnings)
    assert any(each.endswith("ibdiagnet2.lst: not used, it is empty") for each in warnings)
    assert not any("notes.txt" in each for each in warnings)


def test_tables_of_another_fabric_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "a.txt", "testbed44", IBNETDISCOVER)
    put(tmp_path / "b.fdbs", "quirks-small", "opensm.fdbs")
    note = "b.fdbs: not used, since its tables belong to no switch of "
    assert layout.main(["--check", str(tmp_path)]) == 5
    assert note in capsys.readouterr().out
    assert layout.main([str(tmp_path), "pattern:shift:1"]) == 0
    assert note in capsys.readouterr().err


@pytest.mark.parametrize("order", [(IBNETDISCOVER, DUMP_FTS), (DUMP_FTS, IBNETDISCOVER)])
def test_the_log_of_a_session_is_links_and_tables(tmp_path: Path, order: tuple[str, str]) -> None:
    parts = [f"[root@sm ~]# {name}\n".encode() + read_sample_bytes("testbed44", name) for name in order]
    (tmp_path / "session.log").write_bytes(b"".join(parts))
    for name in (tmp_path, tmp_path / "session.log"):
        subnet = read_one(name)
        check_tables(subnet.tables, load_sample("testbed44", OPENSM).tables)
        damages = (*subnet.fabric.damage, *subnet.tables.damage)
        assert {damage.kind for damage in damages} == {DamageKind.STRAY}


def test_tables_that_cannot_be_used_leave_the_links_to_be_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / OPENSM, "testbed44", OPENSM)
    (tmp_path / "opensm.fdbs").write_text("ucast: Switch 0x0002c90200f00000\nwhat is this\n")
    assert layout.main(["--check", str(tmp_path)]) == 5
    printed = capsys.readouterr().out
    assert "damaged-dump: forwarding tables cannot be used: " in printed
    assert "opensm.fdbs:2: expected" in printed
    assert "no-tables: " in printed
    assert layout.main([str(tmp_path), "pattern:shift:1"]) == 3


def test_what_a_folder_without_links_has_is_named(tmp_path: Path) -> None:
    (tmp_path / "dumps.tar").write_bytes(b"x" * 257 + b"ustar\0" + bytes(300))
    put(tmp_path / DUMP_FTS, "testbed44", DUMP_FTS)
    (tmp_path / "ibnetdiscover.log").write_text("ibnetdiscover: iberror: failed: discover failed\n")
    with pytest.raises(InputError) as error:
        find_rails([tmp_path])
    for part in (
        "found ",
        "ibnetdiscover.log: not used, nothing in it is recognised",
        "forwarding tables without a list of links (dump_fts.out)",
        "an archive, which has to be unpacked first (dumps.tar)",
    ):
        assert part in str(error.value)
    with pytest.raises(InputError, match=r"dumps.tar: expected a text file.*, found an archive"):
        read_one(tmp_path / "dumps.tar")


def test_special_files_are_not_read(tmp_path: Path) -> None:
    """Reading a pipe without a writer, or a kernel file such as /proc/kmsg, would never end."""
    put(tmp_path / IBDIAGNET, "testbed44", IBDIAGNET)
    put(tmp_path / "ibdiagnet.fdbs", "testbed44", "ibdiagnet.fdbs")
    os.mkfifo(tmp_path / "a-pipe.lst")
    ended = threading.Event()

    def run() -> None:
        for folder in (tmp_path, Path("/proc"), Path("/sys/kernel")):
            try:
                find_rails([folder])
            except InputError:
                continue
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    assert ended.wait(60)


@pytest.mark.parametrize("body", [b"\n", b" ", b"\t\n", b"{ ", b"SW ", b"LID "])
def test_recognising_a_file_costs_no_time_whatever_it_holds(tmp_path: Path, body: bytes) -> None:
    """A regular expression that begins with a run of blanks would take minutes on these files."""
    (tmp_path / "a").write_bytes(body * ((1 << 20) // len(body)))
    begin = time.process_time()
    assert identify_content(tmp_path / "a") is None or body == b"{ "
    assert time.process_time() - begin < 5


def test_tables_for_a_synthetic_fabric_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"xgft:2:4,4:1,2 is a synthetic fabric: .*other\.fdbs cannot replace"):
        find_rails(["xgft:2:4,4:1,2"], [tmp_path / "other.fdbs"])


def test_fewer_table_files_than_lists_are_refused(tmp_path: Path) -> None:
    lists = [put(tmp_path / str(rail) / IBNETDISCOVER, f"dualrail/rail{rail}", IBNETDISCOVER) for rail in (1, 2)]
    tables = put(tmp_path / "1" / LFTS_DUMP, "dualrail/rail1", LFTS_DUMP)
    with pytest.raises(UsageError, match="expected one file for each of 2 LST"):
        find_rails([*lists, tables])


MAP = '# ours\n0x0002c90200000010 "leaf, rack 1"\nS-0002c90200000020 spine1 # top\n'


def test_a_name_map_is_read_in_both_forms(tmp_path: Path) -> None:
    (tmp_path / "map").write_text(MAP + "what is this\n")
    names, remarks = read_name_map(tmp_path / "map")
    assert names == {0x0002C90200000010: "leaf, rack 1", 0x0002C90200000020: "spine1"}
    assert "line 4: expected" in remarks[0]
    (tmp_path / "map").write_text("nothing\n")
    with pytest.raises(InputError, match=r'map:1: expected 0x<NODE GUID> "name", found'):
        read_name_map(tmp_path / "map")


def test_a_name_map_names_nodes_by_option_and_next_to_the_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    links = put(tmp_path / "dumps" / OPENSM, "testbed44", OPENSM)
    put(links.with_name("opensm.fdbs"), "testbed44", "opensm.fdbs")
    guid = int(load_sample("testbed44", OPENSM).fabric.node_guid[0])
    (tmp_path / "ib-node-name-map").write_text(f'{guid:#018x} "rack 7 top"\n')

    def names(*arguments: str) -> bool:
        assert layout.main([*arguments, "pattern:shift:1"]) == 0
        return "rack 7 top" in capsys.readouterr().out

    assert not names(str(links))
    assert names("--node-name-map", str(tmp_path / "ib-node-name-map"), str(links))
    monkeypatch.setattr("ibprof_converter.fabric.node_names.USUAL_FOLDERS", (tmp_path,))
    assert names("--node-name-map", "ib-node-name-map", str(links))  # at its default path
    (tmp_path / "ib-node-name-map").rename(links.with_name("ib-node-name-map"))
    assert names(str(links.parent))


BOGUS = "sub x {\n  print <<'END';\nSTART_LINKS\nthat is no dump\nEND\n"


def test_a_search_passes_over_lists_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "b" / OPENSM, "testbed44", OPENSM)
    put(tmp_path / "b" / "opensm.fdbs", "testbed44", "opensm.fdbs")
    (tmp_path / "b" / "script.pl").write_text(BOGUS)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "h2xs").write_text(BOGUS)
    (rail,) = find_rails([tmp_path])
    assert rail.links.name == OPENSM
    assert any("skipped: " in note and "h2xs: expected a section NODES" in note for note in rail.notes)
    assert layout.main(["--check", str(tmp_path)]) == 0
    assert "h2xs" in capsys.readouterr().out


def test_a_search_that_finds_no_usable_list_names_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "h2xs").write_text(BOGUS)
    assert layout.main(["--check", str(tmp_path)]) == 3
    said = capsys.readouterr().err
    assert "expected a folder with dumps of a fabric" in said
    assert all(f"skipped: {tmp_path / folder / 'h2xs'}: expected a section NODES" in said for folder in "ab")


def test_words_of_programs_are_no_list_of_links() -> None:
    assert find_link_format(BOGUS.replace("LINKS", "VERSION").encode()) is None
    assert find_link_format(b"#\nSTART_GENERAL_INFO\nName,Value\n") is not None


@pytest.mark.parametrize("name", [DUMP_FTS, LFTS_DUMP])
def test_tables_without_a_list_of_links_are_no_fabric(tmp_path: Path, name: str) -> None:
    """The user named tables instead of links: no command may read them as an empty fabric without faults."""
    path = put(tmp_path / name, "xgft3-512", name)
    with pytest.raises(InputError, match=rf"{name}: expected a list of links, found only forwarding tables"):
        find_rails([path])


@pytest.mark.parametrize("data", [b"", bytes(200)])
def test_a_file_that_should_have_the_tables_is_named_next_to_a_list(tmp_path: Path, data: bytes) -> None:
    links = put(tmp_path / IBNETDISCOVER, "testbed44", IBNETDISCOVER)
    (tmp_path / LFTS_DUMP).write_bytes(data)
    (rail,) = find_rails([links])
    why = "nothing in it is recognised" if data else "it is empty"
    assert rail.notes == (f"{tmp_path / LFTS_DUMP}: not used, {why}",)
    put(tmp_path / DUMP_FTS, "testbed44", DUMP_FTS)
    assert not find_rails([links])[0].notes


def test_rails_listed_by_iblinkinfo_in_one_folder_are_two(tmp_path: Path) -> None:
    """Without the switches' GUIDs in iblinkinfo's format, ibprof would take the two lists for one subnet."""
    rate = "( 4X 25.78125 Gbps Active/  LinkUp)"
    for rail in (1, 2):
        switch, hosts = (
            f'0x{rail:02x}00000000000010 "leaf{rail}"',
            (f"0x{rail:02x}0000000000010{host}" for host in (1, 2)),
        )
        (tmp_path / f"rail{rail}.txt").write_text(
            "".join(
                f'{switch} 1 {port}[  ] =={rate}==>  {guid} {port + 1} 1[  ] "node{port} mlx5_{rail}" ( )\n'
                for port, guid in enumerate(hosts, 1)
            )
        )
    assert len(find_rails([tmp_path])) == 2
