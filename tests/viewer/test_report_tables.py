# SPDX-License-Identifier: Apache-2.0
"""The tables of reports are readable in wide and narrow windows: words are whole, and all columns can be reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from ibprof_converter.reports.report_page import ReportPage, write_report_page
from ibprof_converter.reports.report_sections import Column, Section, Table, ValueKind
from ibprof_testing.browser import find_broken_words

PATH = "/gpfs/projects/climate/coupled-model/source/ocean/halo_exchange_of_the_ocean.c:1218"

TIMES = Table(
    "region_times",
    (
        Column("name", "name"),
        Column("visits", "visits", ValueKind.COUNT),
        Column("longest_s", "longest of a rank", ValueKind.SECONDS),
        Column("mean_s", "mean of its ranks", ValueKind.SECONDS),
        Column("mpi_s", "in MPI, mean", ValueKind.SECONDS),
        Column("wait_s", "waiting", ValueKind.SECONDS),
        Column("line_rate_s", "most loaded link at line rate", ValueKind.SECONDS),
    ),
    tuple((name, 160, 0.106, 0.106, 0.106, 0.0594, 0.000629) for name in ("transpose", "parameters")),
)
HOT = Table(
    "hotspots",
    (
        Column("", "from"),
        Column("", "to"),
        Column("bytes", "bytes", ValueKind.BYTES),
        Column("share", "share", ValueKind.SHARE),
        Column("ratio_to_mean", "x mean", ValueKind.RATIO),
        Column("line_rate_s", "at line rate", ValueKind.SECONDS),
        Column("", "loaded by"),
    ),
    (
        (
            *(("leaf1", "port 7"), ("spine1", "port 1"), 27_300_000, 0.135, 1.98, 0.00218),
            (
                "  16.3%  rank 0 -> 8, node01 HCA-1 -> node25 HCA-1",
                "by operation: MPI_Bcast 51.9%, MPI_Alltoall 28.8%, MPI_Sendrecv 19.2%, MPI_Cart_create 0.0%",
                f"by site: exchange.c:47 51.9%, exchange.c:35 28.8%, {PATH} 11.5%, exchange.c:63 7.7%",
            ),
        ),
    ),
)
LINKS = Table(
    "links",
    (
        Column("name", "link"),
        Column("a", "A", ValueKind.BYTES),
        Column("b", "B", ValueKind.BYTES),
        Column("share_a", "share of A", ValueKind.SHARE),
        Column("share_b", "share of B", ValueKind.SHARE),
        Column("change", "change", ValueKind.BYTES_CHANGE),
        Column("relative", "of A", ValueKind.CHANGE),
    ),
    (("rail 0: leaf4 port 7 -> spine1 port 1", 27_300_000, 0, 0.135, 0.0, -27_300_000, -1.0),),
)
SITES = Table("sites", (Column("name", "name"), Column("bytes", "bytes", ValueKind.BYTES)), ((PATH, 9_000_000),))

Show = Callable[[int], Page]


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    tables = {"times": TIMES, "visits": TIMES, "hot": HOT, "links": LINKS, "sites": SITES}
    sections = [Section(name, name, tables=(table,)) for name, table in tables.items()]
    file = tmp_path / "page.html"
    write_report_page(file, ReportPage("title", "subtitle", sections, halves=frozenset({"times", "visits"})))
    contexts = []

    def show_one(width: int) -> Page:
        contexts.append(browser.new_context(viewport={"width": width, "height": 844}, offline=True))
        page = contexts[-1].new_page()
        page.goto(file.as_uri())
        return page

    yield show_one
    for context in contexts:
        with suppress(Exception):
            context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_words_are_whole(show: Show, width: int) -> None:
    assert find_broken_words(show(width)) == []


def test_a_long_path_is_broken_only_in_a_narrow_window(show: Show) -> None:
    assert find_broken_words(show(1280), len(PATH)) == []
    page = show(390)
    assert find_broken_words(page, len(PATH))
    assert height_of(page, "#sites tbody tr") < 5 * 21


def height_of(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box
    return box["height"]


def test_a_narrow_row_is_short_and_its_lines_are_below_its_numbers(show: Show) -> None:
    page = show(390)
    lines, time = (page.locator(f"#hot tbody td:nth-child({column})").bounding_box() for column in (7, 6))
    assert lines
    assert time
    assert lines["y"] >= time["y"] + time["height"]
    assert lines["width"] > 300
    assert height_of(page, "#hot tbody tr") < 300
    assert height_of(page, "#links tbody tr") < 80


@pytest.mark.parametrize("section", ["times", "hot", "links", "sites"])
def test_each_column_can_be_reached_and_the_page_does_not_scroll_sideways(show: Show, section: str) -> None:
    page = show(390)
    for cell in page.locator(f"#{section} tbody tr:first-child > td").all():
        cell.scroll_into_view_if_needed()
        box = cell.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("scrollX") == 0
