# SPDX-License-Identifier: Apache-2.0
"""The report's page in a browser: without a network, in both themes, with the view within that keeps its choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import report
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

TESTBED = str(find_sample("testbed44", IBDIAGNET))
AXE = Path(__file__).resolve().parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = '</script><img src=x onerror="document.title=1">'


@dataclass
class Shown:
    """A report in a browser, with the addresses that it asked for and its complaints."""

    page: Page
    requests: list[str]
    complaints: list[str]


Show = Callable[..., Shown]


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    contexts = []
    hosts = [make_host(name) for name in ("host01", "host21", "host41")]
    counts = [Count(0, 1, 9_000_000, operation=0), Count(2, 1, 70_000, region=1, operation=1), Count(1, 2, 5)]
    run = make_profile(
        counts, [make_rank(rank, rank) for rank in range(3)], hosts, (HOSTILE, "halo"), ("BCAST", "SEND")
    )
    write_archive(replace(run, command=HOSTILE), tmp_path / "profile.otf2")

    def show_one(fabric: bool = True, scheme: str = "light", width: int = 1280, height: int = 720) -> Shown:
        page_file = tmp_path / "report.html"
        inputs = [*([TESTBED] if fabric else []), str(tmp_path / "profile.otf2")]
        assert report.main([*inputs, "--html", str(page_file)]) == 0
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
        )
        contexts.append(context)
        shown = Shown(context.new_page(), [], [])
        shown.page.on("request", lambda request: shown.requests.append(request.url))
        shown.page.on("console", lambda message: shown.complaints.append(message.text))
        shown.page.on("pageerror", lambda error: shown.complaints.append(str(error)))
        shown.page.goto(page_file.as_uri())
        shown.requests.remove(page_file.as_uri())
        return shown

    yield show_one
    for context in contexts:
        with suppress(Exception):
            context.close()


@pytest.mark.parametrize("fabric", [True, False])
def test_it_asks_for_nothing_and_complains_of_nothing(show: Show, fabric: bool) -> None:
    shown = show(fabric)
    if fabric:
        frame(shown.page)
    assert [address for address in shown.requests if not address.startswith("about:")] == []
    assert shown.complaints == []
    assert HOSTILE in shown.page.locator("h1").inner_text()


def frame(page: Page) -> Page:
    """Wait for the view within the report."""
    view = page.frame_locator("#network iframe")
    view.locator("html[data-ready]").wait_for()
    return view  # type: ignore[return-value]


def test_the_most_loaded_links_and_who_loads_them_are_on_the_first_screen(show: Show) -> None:
    shown = show()
    listed = shown.page.locator("#answer li")
    assert listed.count() == 3
    box = listed.nth(2).bounding_box()
    assert box
    assert box["y"] + box["height"] < 720
    first = listed.first.inner_text()
    assert "rank 0 \u2192 1" in first
    assert "operation BCAST" in first


def test_a_choice_in_the_view_stands_in_the_reports_address(show: Show) -> None:
    shown = show()
    view = frame(shown.page)
    view.locator("#top-links button").first.click()
    assert "end=" in shown.page.url
    shown.page.reload()
    assert frame(shown.page).locator("#selection").is_visible()


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (2560, 1440)])
def test_nothing_is_wider_than_the_window(show: Show, width: int, height: int) -> None:
    shown = show(width=width, height=height)
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(show: Show, scheme: str) -> None:
    for fabric in (True, False):
        shown = show(fabric, scheme)
        shown.page.evaluate(AXE.read_text())
        found = shown.page.evaluate("axe.run({iframes: false})")["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        shown.page.close()


def test_it_prints_without_the_view(show: Show) -> None:
    shown = show()
    shown.page.emulate_media(media="print")
    assert not shown.page.locator("#network").is_visible()
    assert shown.page.locator("#hot table").is_visible()
