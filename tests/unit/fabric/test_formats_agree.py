# SPDX-License-Identifier: Apache-2.0
"""Two formats give the same fabric and the same routes, except for data that a format lacks."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import InputError, UsageError
from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.fabric.link_formats import read_fabric
from ibprof_converter.routing.rail_files import find_rails
from ibprof_converter.routing.subnet import infer_lmc, read_rail
from ibprof_converter.routing.table_formats import read_tables
from ibprof_testing.lab.db_csv import write_db_csv
from ibprof_testing.lab.net_dump import label_as_cage, write_net_dump
from ibprof_testing.samples.equality import LINKS, NODES, PORTS, check_equal, check_tables
from ibprof_testing.samples.fabrics import (
    BY_BOTH_TOOLS,
    DUMP_FTS,
    IBDIAGNET,
    IBNETDISCOVER,
    LFTS_DUMP,
    OPENSM,
    PORT_LIST,
    TRACED,
    find_sample,
    load_sample,
    read_sample_bytes,
    read_subnet,
)

NOT_SAID = {
    (OPENSM, IBNETDISCOVER): (),
    (OPENSM, "db_csv"): (),
    (OPENSM, PORT_LIST): ("system_guid", "port_lmc", "lid_node", "lid_port"),
    (OPENSM, "net_dump"): ("system_guid", "port_guid", "port_lmc", "lid_node", "lid_port"),
    (OPENSM, "net_dump of cages"): ("system_guid", "port_guid", "port_lmc", "lid_node", "lid_port"),
    (OPENSM, IBDIAGNET): ("link_gbps",),  # ibdiagnet 1.5.7 prints QDR for each faster speed
}


WRITERS: dict[str, Callable[[Fabric], str]] = {
    "db_csv": write_db_csv,
    "net_dump": write_net_dump,
    "net_dump of cages": partial(write_net_dump, label=label_as_cage),
}


@pytest.mark.parametrize("other", [IBNETDISCOVER, "db_csv", "net_dump", "net_dump of cages", PORT_LIST, IBDIAGNET])
@pytest.mark.parametrize("sample", TRACED)
def test_every_format_gives_the_same_fabric(sample: str, other: str, tmp_path: Path) -> None:
    expected = load_sample(sample, OPENSM).fabric
    if other in WRITERS:
        path = tmp_path / "fabric"
        path.write_text(WRITERS[other](expected))
        found = read_fabric(path)
        if "net_dump" in other:  # routers look like adapters
            is_router = expected.node_kind == NodeKind.ROUTER
            expected = replace(expected, node_kind=np.where(is_router, NodeKind.CA, expected.node_kind))
    else:
        found = infer_lmc(read_fabric(find_sample(sample, other)), load_sample(sample, OPENSM).tables)
    check_equal(found, expected, set(NODES + LINKS + PORTS) - set(NOT_SAID[OPENSM, other]))


def test_a_link_that_is_not_active_is_hidden_by_ibnetdiscover() -> None:
    """ibnetdiscover prints no states. ibprof recognises one of two inactive links, by a port without a LID."""
    told = load_sample("quirks-init", IBDIAGNET).fabric
    shown = read_fabric(find_sample("quirks-init", IBNETDISCOVER))
    check_equal(shown, told, set(NODES))
    assert shown.links == told.links + 1
    assert any("'lid 6 x'" in warning for warning in shown.warnings)


def test_a_second_dump_in_the_file_is_named_where_it_differs(tmp_path: Path) -> None:
    """The second dump lacks cables that were pulled after the first dump. No damage is reported for two equal dumps."""
    text = read_sample_bytes("testbed44", IBNETDISCOVER).decode()
    (path := tmp_path / "links.txt").write_text(text + text)
    assert read_fabric(path).damage == read_fabric(find_sample("testbed44", IBNETDISCOVER)).damage
    lines = text.splitlines(keepends=True)
    cable = next(number for number, line in enumerate(lines) if line.startswith("[") and '"S-' in line)
    path.write_text(text + "".join(lines[:cable] + lines[cable + 1 :]))
    (damage,) = read_fabric(path).damage
    assert damage.what == "its 2 lists of links differ: a list is cut, or was made at another time"
    assert damage.lines == (cable + 1,)


@pytest.mark.parametrize("name", [LFTS_DUMP, DUMP_FTS, "ibdiagnet.fdbs"])
@pytest.mark.parametrize("sample", [sample for sample in BY_BOTH_TOOLS if sample != "quirks-init"])
def test_every_format_gives_the_same_tables(sample: str, name: str) -> None:
    check_tables(read_tables(find_sample(sample, name)), read_tables(find_sample(sample, "opensm.fdbs")))


@pytest.mark.parametrize(("sample", "top"), [("hypercube-4", 64), ("xgft3-512", 704)])
def test_the_lid_that_dump_fts_forgets_is_named(sample: str, top: int) -> None:
    tables = read_tables(find_sample(sample, DUMP_FTS))
    assert tables.port.shape[1] == top
    assert f"LID {top:#06x} is missing" in tables.warnings[0]


def test_both_lft_dumps_of_one_moment_agree() -> None:
    """In `quirks-init`, OpenSM and dump_lfts ran at the same time, but ibdiagnet ran later."""
    one, other = (read_tables(find_sample("quirks-init", name)) for name in (LFTS_DUMP, "opensm.fdbs"))
    check_tables(one, other)


def put(folder: Path, sample: str, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(read_sample_bytes(sample, name))
    return folder


@pytest.mark.parametrize("links", [IBDIAGNET, OPENSM, IBNETDISCOVER, PORT_LIST])
@pytest.mark.parametrize("tables", [LFTS_DUMP, DUMP_FTS, "opensm.fdbs", "ibdiagnet.fdbs"])
def test_links_and_tables_may_come_from_different_tools(tmp_path: Path, links: str, tables: str) -> None:
    """Tables next to the links, and files in a folder, are recognised by their contents, not by their names."""
    (tmp_path / "a.txt").write_bytes(read_sample_bytes("quirks-small", links))
    (tmp_path / "b.log").write_bytes(lzma.compress(read_sample_bytes("quirks-small", tables)))
    (tmp_path / "c").write_bytes(gzip.compress(read_sample_bytes("quirks-small", "guid2lid")))
    (tmp_path / "z").write_bytes(read_sample_bytes("testbed44", tables))  # tables of another fabric
    expected = load_sample("quirks-small", OPENSM)
    named = [tmp_path / "a.txt", tmp_path / "b.log"]
    for names in ([tmp_path], [named[0]], named, named[::-1]):
        (files,) = find_rails(names)
        subnet = read_rail(files)
        check_equal(subnet.fabric, expected.fabric, set(PORTS) | {"link_node", "link_port"})
        check_tables(subnet.tables, expected.tables)


def test_a_folder_of_folders_is_several_rails(tmp_path: Path) -> None:
    for rail in ("rail10", "rail9"):
        put(
            tmp_path / rail, "dualrail/rail1" if rail == "rail9" else "dualrail/rail2", OPENSM, "opensm.fdbs", IBDIAGNET
        )
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    rails = [read_rail(files) for files in find_rails([tmp_path])]
    assert [subnet.fabric.nodes for subnet in rails] == [420, 406]
    # ibprof reads OpenSM's list: ibdiagnet's list would lead to warnings about speeds.
    assert [subnet.warnings for subnet in rails] == [(), ()]


def test_tables_are_given_to_rails_in_order(tmp_path: Path) -> None:
    for number in (1, 2):
        put(tmp_path / str(number), f"dualrail/rail{number}", IBNETDISCOVER, DUMP_FTS)
    paths = [tmp_path / str(number) / name for name in (IBNETDISCOVER, DUMP_FTS) for number in (1, 2)]
    assert [read_rail(files).fabric.nodes for files in find_rails(paths)] == [420, 406]
    with pytest.raises(UsageError, match="one file for each of 2 LST"):
        find_rails(paths[:3])


def test_a_partial_dump_is_not_completed_by_its_neighbour(tmp_path: Path) -> None:
    """ibprof reads the tables of the tool that wrote the links, not OpenSM's complete tables."""
    put(tmp_path, "xgft3-1296-partial", IBDIAGNET, "ibdiagnet.fdbs", "opensm.fdbs")
    (files,) = find_rails([tmp_path])
    assert len(read_rail(files).tables.switch_guid) == 122


def test_no_tables_anywhere_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "testbed44", IBNETDISCOVER)
    put(tmp_path, "quirks-small", DUMP_FTS)
    with pytest.raises(
        InputError,
        match=r"expected forwarding tables of this fabric .*ibroute .*, found .*dump_fts\.out: not used, since its",
    ):
        read_subnet(tmp_path / IBNETDISCOVER)


def test_a_stanza_that_is_cut_off_leaves_a_half_link(tmp_path: Path) -> None:
    text = read_sample_bytes("testbed44", IBNETDISCOVER)
    path = tmp_path / "cut"
    path.write_bytes(text[: text.rindex(b"vendid")])
    fabric = read_fabric(path)
    whole = load_sample("testbed44", OPENSM).fabric
    check_equal(
        fabric, whole, {"node_guid", "node_kind", "node_name", "link_node", "link_port", "port_guid", "port_lid"}
    )
    assert any("listed from one end only" in warning for warning in fabric.warnings)


@pytest.mark.parametrize("name", [OPENSM, IBNETDISCOVER, PORT_LIST])
def test_a_list_cut_where_no_link_is_listed_twice_has_half_links_alone(tmp_path: Path, name: str) -> None:
    lines = read_sample_bytes("testbed44", name).split(b"\n")
    (tmp_path / name).write_bytes(b"\n".join(lines[1:18]) + b"\n")
    assert read_fabric(tmp_path / name).link_half.all()


def test_a_list_that_names_each_link_once_may_be_written_twice(tmp_path: Path) -> None:
    text = read_sample_bytes("testbed44", IBDIAGNET)
    for times in (1, 2):
        (tmp_path / IBDIAGNET).write_bytes(text * times)
        fabric = read_fabric(tmp_path / IBDIAGNET)
        assert not fabric.link_half.any()
        assert "speeds are assumed" in fabric.warnings[-1]


def test_two_adapters_with_one_guid_are_named(tmp_path: Path) -> None:
    text = read_sample_bytes("testbed44", IBNETDISCOVER).replace(b"2c903000a0010", b"2c903000a0000")
    (tmp_path / IBNETDISCOVER).write_bytes(text.replace(b"2c903000a0011", b"2c903000a0001"))
    damage = [each.text for each in read_fabric(tmp_path / IBNETDISCOVER).damage]
    assert any("'host02 HCA-1' and 'host01 HCA-1' have the same GUID" in text for text in damage)


def test_a_description_that_looks_like_two_is_cut_where_both_are_known(tmp_path: Path) -> None:
    text = read_sample_bytes("quirks-small", PORT_LIST)
    path = tmp_path / "p"
    path.write_bytes(text.replace(b"'leaf 4'", b"'leaf' - '4'").replace(b"( 'leaf 4'", b"( 'leaf' - '4'"))
    assert "leaf' - '4" in read_fabric(path).node_name
