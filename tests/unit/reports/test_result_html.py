# SPDX-License-Identifier: Apache-2.0
"""A notebook shows profiles and link loads as tables, and names as text. IPython's formatter asks for the HTML."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from ibprof.archive.otf2_archive import write_archive
from ibprof.text.notebook_html import escape
from ibprof.text.quantities import format_bytes
from ibprof_converter import FabricLoads, load_links, place, read_fabric
from ibprof_converter import report as report_on
from ibprof_converter.cli import layout, report
from ibprof_testing.samples.fabrics import FABRICS, IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

LST = str(FABRICS / "testbed44" / "ibdiagnet.lst")
DUAL_RAIL = [str(FABRICS / "dualrail" / rail / "ibdiagnet.lst.xz") for rail in ("rail1", "rail2")]
HOSTILE = "<script>alert(1)</script>"
RUN = make_profile(
    [Count(0, 1, 5000, operation=0), Count(1, 0, 70, region=1, operation=1)],
    [make_rank(0, 0), make_rank(1, 1)],
    [make_host("host01"), make_host("host42")],
    regions=(HOSTILE, "halo"),
    operations=("BCAST", "SEND"),
)


def show(shown: object) -> str:
    """Return the HTML that a notebook's kernel sends to show an object."""
    formatter = InteractiveShell.instance().display_formatter
    assert formatter is not None
    data, _ = formatter.format(shown)  # type: ignore[no-untyped-call]
    assert "<script>" not in data["text/html"]
    return str(data["text/html"])


def test_a_profile_shows_what_ran_and_what_sent_most() -> None:
    page = show(RUN)
    for text in ("Profile made by hand", "2 of 2 recorded, on 2 host(s)", "5.07 kB in 2 messages", "MPI_Bcast", "halo"):
        assert text in page
    assert "&lt;script&gt;" in page


def test_link_loads_show_the_most_loaded_links(tmp_path: Path) -> None:
    write_archive(RUN, tmp_path / "profile.otf2")
    loads = load_links(read_fabric(LST), tmp_path / "profile.otf2")
    page = show(loads)
    assert "<p>5.07 kB over " in page
    assert "rank 0 -&gt; 1 (100.0%)" in page
    assert layout.main([LST, str(tmp_path / "profile.otf2"), "-o", str(tmp_path / "links.csv")]) == 0
    with (tmp_path / "links.csv").open(newline="") as file:
        expected = [(row["a_guid"], row["a_port"], row["a_bytes"], row["b_bytes"]) for row in csv.DictReader(file)]
    rows = [(row["a_guid"], str(row["a_port"]), str(row["a_bytes"]), str(row["b_bytes"])) for row in loads.rows()]
    assert rows == expected


def test_the_verdict_comes_first_and_can_be_had_alone() -> None:
    for answer in (report_on(load_links(read_fabric(LST), RUN)), report_on(RUN)):
        verdict = escape(answer.verdict.text)
        assert show(answer).removeprefix("<div>").startswith(f"<p>verdict: {verdict}</p>")
        page = show(answer.verdict)
        assert f"<p>verdict: {verdict}</p>" in page
        assert all(f"<p>missing: {escape(each)}</p>" in page for each in answer.verdict.missing)
        assert repr(answer.verdict) == f"<Verdict {answer.verdict.kind.value}: {answer.verdict.text}>"


@pytest.mark.parametrize("traffic", ["pattern:all-to-all", "pattern:shift:1:1000"])
def test_patterns_show_themselves_too(traffic: str) -> None:
    assert "within hosts" in show(load_links(read_fabric("xgft:2:4,4:1,2"), traffic))


@pytest.fixture(scope="module")
def dual_rail() -> FabricLoads:
    return load_links(read_fabric(*DUAL_RAIL), "pattern:all-to-all")


def test_a_notebook_says_what_the_report_says_of_gaps(
    dual_rail: FabricLoads, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main([*DUAL_RAIL, "pattern:all-to-all", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    page = show(dual_rail)
    assert reported["coverage"]["modelled"]
    assert reported["coverage"]["notes"]
    assert reported["bytes_unrouted"] == {"no rail joins the two hosts": 64}
    for sentence in (*reported["coverage"]["modelled"], *reported["coverage"]["notes"]):
        assert escape(sentence) in page
    assert "no rail joins the two hosts" in page
    assert "64 B not routed" in page
    assert "data:image/png;base64," in page


def test_a_notebook_shows_counters_and_bounds_next_to_loads() -> None:
    counted = find_sample("counters-small", "perfquery.out.xz")
    fabric = read_fabric(find_sample("counters-small", "opensm-subnet.lst.xz"))
    loads = load_links(fabric, "pattern:all-to-all:1000", counters=counted, adaptive=True)
    assert "with adaptive routing a link has no single load" in loads.warnings[-1]
    for page in (show(loads), show(report_on(loads))):
        assert all(escape(sentence) in page for sentence in loads.warnings)
        assert "bytes on link directions with a counter: 20 GB counted, 13 kB predicted" in page


def test_a_notebook_says_that_no_link_is_loaded() -> None:
    alone = make_profile([Count(0, 1, 5000)], [make_rank(0, 0), make_rank(1, 0)], [make_host("host01")])
    loads = load_links(read_fabric(LST), alone)
    assert loads.warnings
    assert escape(loads.warnings[-1]) in show(loads)


def test_a_placement_says_what_its_times_leave_out() -> None:
    """58 switches have no forwarding tables, and one of three ranks was not recorded."""
    run = make_profile(
        [Count(0, 1, 5000), Count(0, 9, 30)],
        [make_rank(0, 0), make_rank(1, 1)],
        [make_host("node00001"), make_host("node01296")],
        world_size=3,
    )
    fabric = read_fabric(find_sample("xgft3-1296-partial", IBDIAGNET))
    found = place(fabric, run, placement="packed", seconds=0.01)
    page = show(found)
    for said in (
        *fabric.warnings,
        "not seen: 1 of 3 ranks were not recorded: 2",
        "30 bytes are not part of the times: peer is no",
    ):
        assert any(said in note for note in found.notes), said
        assert escape(said) in page
    lost = {row.name: row.lost_bytes for row in found.rows}
    assert lost["random"] > 0
    assert f"<td>{format_bytes(lost['random'])}</td></tr>" in page


def test_a_placement_over_rails_says_that_they_are_modelled(dual_rail: FabricLoads) -> None:
    found = place(dual_rail.fabric, "pattern:shift:1", seconds=0.01, rails="first")
    assert "modelled: rails that carry the bytes: modelled (first)" in found.notes


def test_results_are_one_line(dual_rail: FabricLoads) -> None:
    for shown in (dual_rail, dual_rail.fabric):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 300
    assert "64 B not routed" in repr(dual_rail)


def test_the_command_and_the_library_warn_of_the_same(
    dual_rail: FabricLoads, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert layout.main([*DUAL_RAIL, "pattern:all-to-all", "-o", str(tmp_path / "links.csv")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"ibprof-layout: {sentence}" for sentence in dual_rail.warnings]
    assert len(lines) == 4
