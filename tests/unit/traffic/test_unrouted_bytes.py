# SPDX-License-Identifier: Apache-2.0
"""Bytes without a route are named first, wherever they are lost, and change the exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof_converter.cli import layout, report
from ibprof_converter.fabric.fabric_parts import find_ends
from ibprof_converter.layout.node_levels import find_leaves
from ibprof_converter.outputs.ibdiagnet_files import write_fdbs, write_lst
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_testing.paths import DATA

ISLANDS = str(DATA / "cases" / "two-islands.txt")
ALL_TO_ALL = "pattern:all-to-all:1000000"


def test_the_first_lines_say_what_has_no_route(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([ISLANDS, ALL_TO_ALL]) == 5
    out, err = capsys.readouterr()
    first = " ".join(out.splitlines()[:4])
    assert first.startswith("52% of the bytes (288 MB of 552 MB) have no route: 2 parts that no cable joins (sw0, sw1")
    assert "have no route (--max-unrouted)" in err


def test_the_verdict_has_the_share_and_the_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([ISLANDS, ALL_TO_ALL, "--json", "--max-unrouted", "60"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"]["unrouted_share"] == 288 / 552
    assert found["verdict"]["text"].startswith("52% of the bytes")
    lost = found["unrouted"]
    assert lost["bytes"] == sum(found["bytes_unrouted"].values()) == 288_000_000
    assert sum(pair["bytes"] for pair in lost["pairs"]) == lost["bytes"]
    assert len(lost["parts"][0]) == 2


def test_the_page_says_it_in_its_head(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert report.main([ISLANDS, ALL_TO_ALL, "--html", str(page)]) == 5
    text = page.read_text()
    assert "52% of the bytes (288 MB of 552 MB) have no route" in text[text.index('id="verdict"') :][:600]


def test_a_check_says_that_parts_are_not_joined(capsys: pytest.CaptureFixture[str]) -> None:
    layout.main(["--check", ISLANDS, "--json"])
    (finding,) = (each for each in json.loads(capsys.readouterr().out)["findings"] if each["name"] == "separate-parts")
    assert finding["what"] == "2 parts that no cable joins"
    assert len(finding["places"]) == 2


def test_leaves_that_lost_each_other_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One leaf has no entries for the four hosts of another: 16 of 240 pairs of hosts."""
    made = generate("xgft:2:4,4:1,2")
    fabric, tables = made.fabric, made.tables
    leaf, other = (number for number in find_leaves(fabric)[:2])
    ends = find_ends(fabric)
    lids = fabric.port_lid[(ends == other) & (fabric.port_node != other)]
    port = tables.port.copy()
    port[np.ix_(tables.switch_guid == fabric.node_guid[leaf], lids)] = UNREACHABLE
    with (tmp_path / "ibdiagnet.lst").open("w") as file:
        write_lst(file, fabric, "synthetic")
    with (tmp_path / "ibdiagnet.fdbs").open("w") as file:
        write_fdbs(file, replace(tables, port=port))
    assert report.main([str(tmp_path / "ibdiagnet.lst"), ALL_TO_ALL]) == 5
    first = " ".join(capsys.readouterr().out.splitlines()[:3])
    pair = f"unreachable LID from {fabric.node_name[leaf]} to {fabric.node_name[other]}."
    assert first.startswith(f"7% of the bytes (16 MB of 240 MB) have no route: {pair}")
    assert report.main([str(tmp_path / "ibdiagnet.lst"), ALL_TO_ALL, "--max-unrouted", "6.7"]) == 0
