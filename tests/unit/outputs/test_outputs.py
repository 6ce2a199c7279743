# SPDX-License-Identifier: Apache-2.0
"""links.csv, nodes.csv, YAML and the picture contain the loads of the links, whatever the names of the nodes."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.image import imread

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind
from ibprof_converter.layout.positions import FabricLayout, lay_out
from ibprof_converter.outputs.fabric_picture import write_picture
from ibprof_converter.outputs.rows import LINK_COLUMNS, NODE_COLUMNS, link_rows, link_table, node_rows
from ibprof_converter.outputs.table_files import write_csv
from ibprof_converter.outputs.yaml_files import write_yaml
from ibprof_converter.traffic.hosts import find_hosts
from ibprof_converter.traffic.link_loads import Group, Loads
from ibprof_converter.traffic.traffic_data import ALL
from ibprof_testing.samples.fabrics import IBDIAGNET, load_sample

TESTBED = load_sample("testbed44", IBDIAGNET).fabric
WHOLE: tuple[Group, ...] = ((ALL, ALL),)


def make_loads(fabrics: Sequence[Fabric], groups: tuple[Group, ...] = WHOLE) -> Loads:
    by_rail = tuple(np.zeros((fabric.links, 2, len(groups)), np.uint64) for fabric in fabrics)
    return Loads(by_rail, groups, bytes_total=0, bytes_routed=0, bytes_on_host=0, bytes_unrouted={})


def links_csv(fabric: Fabric, loads: Loads, only_used: bool = False) -> list[dict[str, str]]:
    file = io.StringIO(newline="")
    write_csv(file, link_table([fabric], lay_out([fabric]), loads, only_used))
    return list(csv.DictReader(io.StringIO(file.getvalue(), newline="")))


def test_columns_are_those_that_scripts_rely_on() -> None:
    assert ",".join(LINK_COLUMNS) == (
        "rail,a_guid,a_name,a_port,a_level,a_x,a_y,b_guid,b_name,b_port,b_level,b_x,b_y,"
        "gbps,region,operation,a_bytes,b_bytes"
    )
    assert ",".join(NODE_COLUMNS) == "rail,guid,name,kind,level,x,y,lids,ranks,host"


@pytest.mark.parametrize("sample", ["testbed44", "quirks-small", "dualrail/rail2"])
def test_a_is_the_lower_end_and_has_its_own_bytes(sample: str) -> None:
    fabric = load_sample(sample, IBDIAGNET).fabric
    loads = make_loads([fabric])
    # The number of bytes encodes the sending end: 1000 * node + port.
    loads.by_rail[0][:, :, 0] = fabric.link_node * 1000 + fabric.link_port
    rows = links_csv(fabric, loads)
    assert len(rows) == fabric.links
    node_of_guid = {f"0x{guid:016x}": node for node, guid in enumerate(fabric.node_guid.tolist())}
    for row in rows:
        for end in "ab":
            node = node_of_guid[row[f"{end}_guid"]]
            assert int(row[f"{end}_bytes"]) == node * 1000 + int(row[f"{end}_port"])
            assert row[f"{end}_name"] == fabric.node_name[node]
        a, b = ((int(row[f"{end}_level"]), row[f"{end}_guid"], int(row[f"{end}_port"])) for end in "ab")
        assert a < b


def test_unused_links_have_a_row_unless_asked_otherwise() -> None:
    loads = make_loads([TESTBED])
    loads.by_rail[0][3, 1, 0] = 5
    assert [row["a_bytes"] + row["b_bytes"] for row in links_csv(TESTBED, loads)].count("00") == 56
    assert len(links_csv(TESTBED, loads, only_used=True)) == 1


def test_by_region_and_operation_gives_a_row_for_each_that_has_bytes() -> None:
    loads = make_loads([TESTBED], (("fft", "ALLTOALL"), ("halo", "SEND"), ("halo", "BCAST")))
    loads.by_rail[0][3, 0] = [10, 0, 2**63]
    rows = [row for row in links_csv(TESTBED, loads) if row["region"] != ALL]
    assert [(row["region"], row["operation"]) for row in rows] == [("fft", "ALLTOALL"), ("halo", "BCAST")]
    assert sorted(int(row["a_bytes"]) + int(row["b_bytes"]) for row in rows) == [10, 2**63]
    assert len(links_csv(TESTBED, loads)) == 56 + 2


def test_an_unknown_speed_is_an_empty_field() -> None:
    fabric = replace(TESTBED, link_gbps=np.full(TESTBED.links, np.nan))
    assert {row["gbps"] for row in links_csv(fabric, make_loads([fabric]))} == {""}


HOSTILE = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(HOSTILE, HOSTILE)
@example("a\0b\r", "\0")
def test_any_name_survives_csv_and_yaml(name: str, region: str) -> None:
    fabric = replace(TESTBED, node_name=(name, *TESTBED.node_name[1:]))
    loads = make_loads([fabric], ((region, "SEND"),))
    loads.by_rail[0][0, 0, 0] = 1
    rows = links_csv(fabric, loads)
    # A NUL is written as \\x00, since some readers of CSV reject it.
    assert name.replace("\0", r"\x00") in {row[f"{end}_name"] for row in rows for end in "ab"}
    assert region.replace("\0", r"\x00") in {row["region"] for row in rows}
    layouts = lay_out([fabric])
    file = io.StringIO()
    write_yaml(
        file,
        {},
        node_rows([fabric], layouts, find_hosts([fabric]), None),
        link_rows([fabric], layouts, loads, only_used=True),
    )
    document = yaml.load(file.getvalue(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert name in {node["name"] for node in document["nodes"]}
    assert [link["region"] for link in document["links"]] == [region]


def test_nodes_tell_lids_and_ranks() -> None:
    fabric = load_sample("quirks-small", IBDIAGNET).fabric
    hosts = [index for index, name in enumerate(fabric.node_name) if name.startswith("q0")]
    first = int(fabric.port_lid[fabric.port_node == hosts[0]][0])
    rank_lid = np.array([[first], [first + 1], [0]], np.int32)  # LMC 1: each port has two LIDs
    rows = {row["name"]: row for row in node_rows([fabric], lay_out([fabric]), find_hosts([fabric]), rank_lid)}
    host = rows[fabric.node_name[hosts[0]]]
    assert (host["kind"], host["level"], host["ranks"], host["lids"]) == ("CA", 0, [0, 1], [first, first + 1])
    assert rows["ibrouter A"]["kind"] == "router"
    assert rows["leaf 1"]["kind"] == "switch"
    assert sum(len(row["ranks"]) for row in rows.values() if isinstance(row["ranks"], list)) == 2


def test_the_picture_shows_each_end_in_its_own_colour(tmp_path: Path) -> None:
    loads = make_loads([TESTBED])
    hosts_end = TESTBED.node_kind[TESTBED.link_node] == NodeKind.CA
    loads.by_rail[0][:, :, 0] = np.where(hosts_end, 1000, 1)
    write_picture(tmp_path / "p.png", "t", "s", [TESTBED], lay_out([TESTBED]), loads)
    picture = imread(tmp_path / "p.png")[:, :, :3]
    height, width = picture.shape[:2]
    body = picture[:, : int(width * 0.9)]  # the picture without its colour bar
    # Hosts are at the bottom. The middle of the hosts' lines is a little below the middle of the picture.
    lower, upper = body[int(height * 0.7) : int(height * 0.9)], body[int(height * 0.1) : int(height * 0.5)]
    dark, light = (part[np.ptp(part, axis=2) > 0.15].mean() for part in (lower, upper))
    assert dark < 0.35 < 0.5 < light


def test_pictures_to_be_compared_have_one_scale(tmp_path: Path) -> None:
    """A load is drawn in a light colour if the scale ends at twenty times this load."""
    loads, shades = make_loads([TESTBED]), []
    loads.by_rail[0][:, :, 0] = 1000
    for full_scale in (None, 20_000):
        write_picture(tmp_path / "p.png", "t", "s", [TESTBED], lay_out([TESTBED]), loads, full_scale=full_scale)
        picture = imread(tmp_path / "p.png")[:, :, :3]
        body = picture[:, : int(picture.shape[1] * 0.9)]
        shades.append(body[np.ptp(body, axis=2) > 0.15].mean())
    assert shades[0] < 0.35 < 0.5 < shades[1]


@pytest.mark.parametrize("only_used", [False, True])
def test_a_direction_without_bytes_is_drawn_as_an_unused_link(tmp_path: Path, only_used: bool) -> None:
    loads = make_loads([TESTBED])
    of_host = TESTBED.node_kind[TESTBED.link_node] == NodeKind.CA
    loads.by_rail[0][:, :, 0] = np.where(of_host, 1000, 0)  # only hosts send, on the links between hosts and switches
    write_picture(tmp_path / "p.png", "t", "s", [TESTBED], lay_out([TESTBED]), loads, only_used=only_used)
    picture = imread(tmp_path / "p.png")[:, :, :3]
    height, width = picture.shape[:2]
    upper = picture[int(height * 0.1) : int(height * 0.5), : int(width * 0.9)]
    assert (np.ptp(upper, axis=2) < 0.15).all()  # grey: no load, no colour
    unused = np.all(np.abs(upper - np.array([0xDC, 0xDF, 0xE3]) / 255) < 0.01, axis=2)
    assert unused.any()


@pytest.mark.filterwarnings("error")
def test_a_picture_is_drawn_without_traffic_and_with_any_title(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    write_picture(path, "$\\frac{1}{0", "$$", [TESTBED], lay_out([TESTBED]), make_loads([TESTBED]))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_two_rails_have_levels_above_and_below_the_hosts(tmp_path: Path) -> None:
    fabrics = [load_sample(f"dualrail/rail{rail}", IBDIAGNET).fabric for rail in (1, 2)]
    layouts: list[FabricLayout] = lay_out(fabrics)
    write_picture(tmp_path / "p.png", "t", "s", fabrics, layouts, make_loads(fabrics))
    assert (layouts[0].y >= 0).all()
    assert (layouts[1].y <= 0).all()


def test_yaml_bears_a_path_that_is_not_utf8() -> None:
    file = io.StringIO()
    write_yaml(file, {"traffic": os.fsdecode(b"caf\xe9.csv"), "fabrics": [os.fsdecode(b"\xff.lst")]}, [], [])
    about = yaml.safe_load(file.getvalue())["about"]
    assert about == {"traffic": "caf\\udce9.csv", "fabrics": ["\\udcff.lst"]}
