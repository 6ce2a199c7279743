# SPDX-License-Identifier: Apache-2.0
"""Each output begins with the source of the routes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ibprof.errors import UsageError
from ibprof_converter.api import load_links, read_fabric
from ibprof_converter.choices import parse_routes
from ibprof_converter.cli import layout, place, report, view
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample, read_sample_bytes

SAMPLE = "oversub-faulty"
SHIFT = "pattern:shift:20:1000"
MODELLED = "routes: modelled:min-hop (shortest routes as OpenSM's default engine chooses them, not the subnet's own)"


@pytest.fixture(name="links")
def write_links(tmp_path: Path) -> str:
    """Write a list of links to a folder without tables."""
    path = tmp_path / "site.lst"
    path.write_bytes(read_sample_bytes(SAMPLE, IBDIAGNET))
    return str(path)


@pytest.mark.parametrize("text", ["table", "opensm:", "opensm:fast", "modelled:updn", "tables:x", ""])
def test_an_unknown_source_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected tables, modelled\[.*\] or opensm\[:ENGINE\]"):
        parse_routes(text)


def test_layout_says_first_that_routes_are_modelled(links: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The modelled tables equal the tables of OpenSM's updn in the sample, so the loads are equal."""
    assert layout.main([links, SHIFT]) == 0
    modelled = capsys.readouterr()
    assert modelled.err.splitlines()[0] == f"ibprof-layout: {MODELLED}"
    assert "`most` assumes that a link carries all flows that can use it on a shortest path" in modelled.err
    assert layout.main([str(find_sample(SAMPLE, IBDIAGNET)), SHIFT]) == 0
    static = capsys.readouterr()
    assert "modelled:" not in static.err
    rows, listed = ([line.split(",") for line in each.out.splitlines()] for each in (modelled, static))
    # Another list in the sample's folder contains the speeds.
    speed = rows[0].index("gbps")
    of_model = [[*row[:speed], *row[speed + 1 : -6]] for row in rows]
    assert of_model == [[*row[:speed], *row[speed + 1 :]] for row in listed]
    assert rows[0][-6:] == ["a_shared", "b_shared", "a_most", "b_most", "a_estimate", "b_estimate"]
    a_bytes, a_most = rows[0].index("a_bytes"), rows[0].index("a_most")
    assert all(int(row[a_bytes]) <= int(row[a_most]) for row in rows[1:])


@pytest.mark.parametrize(
    ("extra", "routes"), [([], "modelled:min-hop"), (["--routes", "modelled:d-mod-k"], "modelled:min-hop")]
)
def test_json_names_the_source(links: str, extra: list[str], routes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([links, SHIFT, "--json", *extra]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["routes"] == document["coverage"]["routes"] == routes
    assert document["coverage"]["modelled"][0] == MODELLED
    assert document["load_basis"] == document["diagnosis"]["load_basis"] == "static"
    assert place.main([links, SHIFT, "--time", "0.1", "--json", *extra]) == 0
    assert json.loads(capsys.readouterr().out)["routes"] == routes
    assert layout.main(["--patterns", links, "--samples", "1", "--json", *extra]) == 0
    assert json.loads(capsys.readouterr().out)["routes"] == routes


def test_tables_are_named_as_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main([str(find_sample(SAMPLE, IBDIAGNET)), SHIFT, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["routes"] == "tables"


def test_text_begins_with_the_source(links: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = f"{MODELLED[:1].upper()}{MODELLED[1:]}."
    assert report.main([links, SHIFT, "--full"]) == 0
    text = capsys.readouterr().out
    assert " ".join(text.split()).startswith(first)
    assert f"Modelled routes\n  {MODELLED}" in text
    assert report.main([links, SHIFT]) == 0
    assert " ".join(capsys.readouterr().out.split()).startswith(first)
    assert place.main([links, SHIFT, "--time", "0.1"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == MODELLED  # the first line states the data that were left out
    assert layout.main(["--patterns", links, "--samples", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == MODELLED
    assert view.main([links, SHIFT, "-o", str(tmp_path / "view.html")]) == 0
    assert capsys.readouterr().err.splitlines()[0] == f"ibprof-view: {MODELLED}"


@pytest.mark.parametrize("extra", [["--strict"], ["--routes", "tables"]])
def test_missing_tables_are_an_error_where_they_are_asked_for(
    links: str, extra: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert layout.main([links, SHIFT, *extra]) == 3
    assert "expected forwarding tables of this fabric" in capsys.readouterr().err


def test_check_has_no_routes_to_choose(links: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert layout.main(["--check", links, "--routes", "modelled"]) == 2
    assert "--routes: not with --check" in capsys.readouterr().err


def test_counters_need_no_routes(links: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Loads that ports counted do not depend on routes, so no output mentions a model or bounds."""
    fabric = read_fabric(links)
    node, port = int(fabric.fabrics[0].link_node[0, 0]), int(fabric.fabrics[0].link_port[0, 0])
    counters = tmp_path / "counters.csv"
    counters.write_text(f"guid,port,bytes\n{int(fabric.fabrics[0].node_guid[node]):#018x},{port},4321\n")
    assert layout.main([links, str(counters), "--used"]) == 0
    shown = capsys.readouterr()
    assert "modelled" not in shown.err
    assert "a_most" not in shown.out
    assert len(shown.out.splitlines()) == 2
    assert "4321" in shown.out
    assert report.main([links, str(counters), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["routes"] is None


def test_the_api_takes_a_source_too() -> None:
    static, modelled = (
        load_links(read_fabric("xgft:2:4,4:1,2", routes=routes), "pattern:shift:5:1000")
        for routes in (None, "modelled")
    )
    assert (static.about()["routes"], modelled.about()["routes"]) == ("tables", "modelled:d-mod-k")
    assert np.array_equal(static.by_rail[0], modelled.by_rail[0])
