# SPDX-License-Identifier: Apache-2.0
"""Outputs name bytes without a route first, and the exit status shows the loss, whichever stage loses them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibprof.profile.missing_data import StageAccount
from ibprof_converter.cli import layout, place, report, view
from ibprof_converter.fabric.fabric_parts import find_ends
from ibprof_converter.layout.node_levels import find_leaves
from ibprof_converter.routing.synthetic.spec import generate
from ibprof_converter.routing.tables import UNREACHABLE
from ibprof_lab.topology.outputs.inferred_fabric import write_fdbs, write_lst
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


def test_pairs_are_named_from_one_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one rail or two, ibprof names the lost pairs without following flows a second time."""
    calls = []
    monkeypatch.setattr("ibprof_converter.traffic.unrouted_bytes.spread", lambda *_: calls.append(1))
    shift = "pattern:shift:13:1000000"
    other = tmp_path / "other.txt"
    other.write_text(Path(ISLANDS).read_text().replace("S-0000000000e", "S-0000000000d"))
    for lists in ([ISLANDS], [ISLANDS, str(other)]):
        assert report.main([*lists, shift, "--rails", "split", "--json"]) == 5
        lost = json.loads(capsys.readouterr().out)["unrouted"]
        assert lost["bytes"] == sum(pair["bytes"] for pair in lost["pairs"]) == 22_000_000
        assert {pair["rail"] for pair in lost["pairs"]} == set(range(len(lists)))
    assert not calls


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
    """One leaf lacks entries for the four hosts of another leaf: 16 of 240 pairs of hosts."""
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


LEAF_WITHOUT_LID = str(DATA / "cases" / "leaf-lid0.txt")


def test_hosts_without_a_lid_are_named_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([LEAF_WITHOUT_LID, ALL_TO_ALL]) == 0
    first = " ".join(capsys.readouterr().out.split())
    assert first.startswith("6 of 24 hosts (25%) are left out: leaf2 has no LID (node13, node14, node15, ...).")


def test_the_accounts_of_all_stages_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    report.main([LEAF_WITHOUT_LID, ALL_TO_ALL, "--json"])
    accounts = json.loads(capsys.readouterr().out)["coverage"]["accounts"]
    assert [(each["stage"], each["noun"], each["total"], each["kept"]) for each in accounts] == [
        ("read", "links", 48, 36),
        ("read", "hosts", 24, 18),
        ("read", "bytes", 306_000_000, 306_000_000),
        ("place", "bytes", 306_000_000, 306_000_000),
        ("route", "bytes", 306_000_000, 306_000_000),
        ("report", "bytes", 306_000_000, 306_000_000),
    ]
    assert accounts[1]["left_out"] == {"leaf2 has no LID": 6}
    with pytest.raises(ArithmeticError, match="do not add up"):
        StageAccount("place", "bytes", 3, 1, {"host is not in the fabric": 1})


def test_a_check_names_hosts_without_a_lid(capsys: pytest.CaptureFixture[str]) -> None:
    layout.main(["--check", LEAF_WITHOUT_LID, "--json"])
    (finding,) = (each for each in json.loads(capsys.readouterr().out)["findings"] if each["name"] == "no-lid")
    assert finding["count"] == 6
    assert finding["places"][0] == "'node13 mlx5_0': leaf2 has no LID"


def test_a_plan_without_lids_is_routed_by_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a fabric without LIDs, outputs include all 24 hosts, with synthetic LIDs and modelled routes."""
    plan = tmp_path / "plan.txt"
    plan.write_text(re.sub(r"lid \d+", "lid 0", Path(LEAF_WITHOUT_LID).read_text()))
    assert report.main([str(plan), ALL_TO_ALL]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("No port of plan.txt has a LID: LIDs are synthetic. Routes: modelled:")
    assert "Nothing is left out" not in text  # the report states that LIDs are missing
    assert place.main([str(plan), "pattern:shift:1", "-o", str(tmp_path / "p.csv"), "--time", "0.1"]) == 0
    assert capsys.readouterr().out.startswith("No port of plan.txt has a LID")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 25


def test_bytes_by_lid_cannot_go_to_synthetic_lids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, table = tmp_path / "plan.txt", tmp_path / "t.csv"
    plan.write_text(re.sub(r"lid \d+", "lid 0", Path(LEAF_WITHOUT_LID).read_text()))
    table.write_text("src_lid,dst_lid,bytes\n1,2,3\n")
    assert report.main([str(plan), str(table)]) == 5
    assert "has bytes between LIDs, but no port of the fabric has a LID" in capsys.readouterr().err


@pytest.mark.parametrize("most", [None, "60"])
def test_layout_and_view_end_with_status_5_too(tmp_path: Path, most: str | None) -> None:
    option = ["--max-unrouted", most] if most else []
    expected = 0 if most else 5
    assert layout.main([ISLANDS, ALL_TO_ALL, "-o", str(tmp_path / "links.csv"), *option]) == expected
    assert view.main([ISLANDS, ALL_TO_ALL, "-o", str(tmp_path / "v.html"), *option]) == expected
    assert (tmp_path / "links.csv").exists()
    assert (tmp_path / "v.html").exists()


def test_ranks_that_cannot_reach_each_other_are_no_placement(capsys: pytest.CaptureFixture[str]) -> None:
    """24 ranks would need both islands; 8 ranks fit into one island."""
    assert place.main([ISLANDS, ALL_TO_ALL, "--time", "0.1"]) == 5
    out, err = capsys.readouterr()
    assert not out
    assert "the best one leaves 288 MB without a route: " in err
    assert "routes are missing between gh01, gh02, gh03, ... (12 hosts) and gh13, gh14, gh15, ... (12 hosts)" in err


def test_ranks_that_fit_into_one_part_are_placed_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "m.csv"
    rows = [f"{one},{other},1000000,1" for one in range(8) for other in range(8) if one != other]
    table.write_text("\n".join(["src,dst,bytes,messages", *rows]) + "\n")
    assert place.main([ISLANDS, str(table), "--time", "0.3", "--json", "-o", str(tmp_path / "p.csv")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lost_bytes"]["best"] == 0
    hosts = [int(line.split("gh")[1]) for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    assert max(hosts) <= 12 or min(hosts) > 12


def test_the_rails_that_nothing_joins_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two subnets have different hosts, as if a router joined them. So no host is on both rails."""
    text = re.sub("([SH]-000000000)0", r"\g<1>1", Path(ISLANDS).read_text())
    other = re.sub(r"(guid=0x|\(|\"gh|\"sw)", r"\g<1>1", text)
    (tmp_path / "other.txt").write_text(other)
    assert report.main([ISLANDS, str(tmp_path / "other.txt"), ALL_TO_ALL]) == 5
    first = " ".join(capsys.readouterr().out.split())[:700]
    assert "no rail joins the two hosts" in first
    assert "(rail 0: sw0, sw1, ... with 12 adapters; rail 1: sw10, sw11, ... with 12 adapters)" in first
