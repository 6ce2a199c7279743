# SPDX-License-Identifier: Apache-2.0
"""A notebook shows profiles and link loads as tables: asked as IPython's own formatter asks, names as text."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import layout
from ibprof_converter.reports.link_loads import load
from ibprof_testing.samples.fabrics import FABRICS
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

LST = str(FABRICS / "testbed44" / "ibdiagnet.lst")
HOSTILE = "<script>alert(1)</script>"
RUN = make_profile(
    [Count(0, 1, 5000, operation=0), Count(1, 0, 70, region=1, operation=1)],
    [make_rank(0, 0), make_rank(1, 1)],
    [make_host("host01"), make_host("host42")],
    regions=(HOSTILE, "halo"),
    operations=("BCAST", "SEND"),
)


def show(shown: object) -> str:
    """Give the HTML that a notebook's kernel sends for an object."""
    data, _ = InteractiveShell.instance().display_formatter.format(shown)
    assert "<script>" not in data["text/html"]
    return str(data["text/html"])


def test_a_profile_shows_what_ran_and_what_sent_most() -> None:
    page = show(RUN)
    for text in ("Profile made by hand", "2 of 2 recorded, on 2 host(s)", "5.07 kB in 2 messages", "BCAST", "halo"):
        assert text in page
    assert "&lt;script&gt;" in page


def test_link_loads_show_the_hottest_ends(tmp_path: Path) -> None:
    write_archive(RUN, tmp_path / "profile.otf2")
    loads = load(LST, traffic=str(tmp_path / "profile.otf2"))
    page = show(loads)
    assert "<p>5.07 kB over " in page
    assert "rank 0 -&gt; 1 (100.0 %)" in page
    assert layout.main([LST, str(tmp_path / "profile.otf2"), "-o", str(tmp_path / "links.csv")]) == 0
    with (tmp_path / "links.csv").open(newline="") as file:
        expected = [(row["a_guid"], row["a_port"], row["a_bytes"], row["b_bytes"]) for row in csv.DictReader(file)]
    rows = [(row["a_guid"], str(row["a_port"]), str(row["a_bytes"]), str(row["b_bytes"])) for row in loads.rows()]
    assert rows == expected


@pytest.mark.parametrize("traffic", ["pattern:all-to-all", "pattern:shift:1:1000"])
def test_patterns_show_themselves_too(traffic: str) -> None:
    assert "within hosts" in show(load("xgft:2:4,4:1,2", traffic=traffic))
