# SPDX-License-Identifier: Apache-2.0
"""A report's page is complete in each theme, in wide and narrow windows, printed, without scripts, and offline."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import report
from ibprof_testing.browser import find_broken_words
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

TESTBED = str(find_sample("testbed44", IBDIAGNET))
AXE = Path(__file__).resolve().parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
RED = "rgb(179, 38, 30)"
FAULTY = str(find_sample("oversub-faulty", IBDIAGNET))
HOSTILE = '</script><img src=x onerror="document.title=1">'


@dataclass
class Shown:
    """A report in a browser, with the URLs that it requested and its error messages."""

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

    def show_one(
        fabric: bool = True,
        scheme: str = "light",
        width: int = 1280,
        height: int = 720,
        scripts: bool = True,
        inputs: tuple[str, ...] = (),
    ) -> Shown:
        page_file = tmp_path / "report.html"
        inputs = inputs or (*([TESTBED] if fabric else []), str(tmp_path / "profile.otf2"))
        assert report.main([*inputs, "--html", str(page_file)]) == 0
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
            java_script_enabled=scripts,
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
    """Wait for the view in the report's frame; return it."""
    view = page.frame_locator("#network iframe")
    view.locator("html[data-ready]").wait_for()
    return view  # type: ignore[return-value]


def test_verdict_picture_and_list_are_on_the_first_screen_in_this_order(show: Show) -> None:
    page = show().page
    listed = page.locator(".busiest > li")
    assert listed.count() >= 3
    verdict, picture, third = (
        each.bounding_box() for each in (page.locator("#verdict"), page.locator("svg.wide-form"), listed.nth(2))
    )
    assert verdict
    assert picture
    assert third
    assert verdict["y"] < picture["y"]
    assert picture["y"] + picture["height"] < 720
    assert third["y"] + third["height"] < 720
    first = listed.first.inner_text()
    assert "rank 0 \u2192 1" in first
    assert "MPI_Bcast" in first


@pytest.mark.parametrize(("width", "shown", "hidden"), [(1280, "wide", "narrow"), (390, "narrow", "wide")])
def test_the_picture_has_the_numbers_and_names_of_the_list(show: Show, width: int, shown: str, hidden: str) -> None:
    page = show(width=width).page
    assert not page.locator(f"svg.{hidden}-form").is_visible()
    picture = page.locator(f"svg.{shown}-form")
    numbers = sorted(picture.locator(".badge text").all_text_contents(), key=int)
    assert numbers == page.locator(".busiest b.badge").all_inner_texts()
    names = picture.locator("title").all_text_contents()
    for where in page.locator(".busiest strong").all_inner_texts():
        for end in where.split(" \u2192 "):
            assert end.partition(" ")[0] in names
    assert min(text["height"] for text in boxes_of(picture.locator("text"))) >= 10


def boxes_of(located: Locator) -> list[dict[str, float]]:
    return [box for each in located.all() if (box := each.bounding_box())]  # type: ignore[misc]


@pytest.mark.parametrize("fabric", [True, False])
def test_the_rest_is_folded_and_links_open_it(show: Show, fabric: bool) -> None:
    page = show(fabric).page
    table = page.locator("#operations table")
    assert not table.is_visible()
    page.locator('nav a[href="#operations"]').click()
    assert table.is_visible()


def test_it_stands_without_scripts(show: Show) -> None:
    page = show(scripts=False).page
    assert page.locator("svg.wide-form .badge").first.is_visible()
    assert page.locator(".busiest > li").first.is_visible()
    # Without scripts, a line explains why the view is missing, and no controls are shown.
    assert not page.locator("iframe").is_visible()
    assert "network view needs" in page.locator("#network p").inner_text()
    page.locator("details", has=page.locator("#operations")).locator("summary").click()
    assert page.locator("#operations table").is_visible()


def test_nothing_is_red_without_a_fault(show: Show) -> None:
    assert count_red(show().page) == 0
    assert count_red(show(inputs=(FAULTY, "pattern:shift:7:100000")).page) > 0


def count_red(page: Page) -> int:
    """Return the number of elements anywhere on the page that are drawn in red."""
    found: int = page.evaluate(
        """red => [...document.querySelectorAll("body *")].filter((each) => {
            const style = getComputedStyle(each);
            const names = ["color", "backgroundColor", "borderLeftColor", "fill", "stroke"];
            return names.some((name) => style[name] === red);
        }).length""",
        RED,
    )
    return found


def test_a_choice_in_the_view_stands_in_the_reports_address(show: Show) -> None:
    shown = show()
    view = frame(shown.page)
    # The frame shows no list of most loaded links, because the report has this list.
    assert not view.locator("#top-links").is_visible()
    view.locator("#tab-links").click()
    view.locator("#links button[data-end], #links tbody button").first.click()
    assert "end=" in shown.page.url
    shown.page.reload()
    assert frame(shown.page).locator("#selection").is_visible()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 720), (2560, 1440)])
def test_nothing_is_wider_than_the_window_and_words_are_whole(show: Show, width: int, height: int) -> None:
    for fabric in (True, False):
        page = show(fabric, width=width, height=height).page
        unfold(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert find_broken_words(page) == []


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


def test_the_narrow_view_shows_its_tabs_and_totals_above_its_footer(show: Show) -> None:
    view = frame(show(width=390, height=844).page)
    footer = view.locator("footer").bounding_box()
    assert footer
    tabs = boxes_of(view.locator("#tabs button"))
    assert len(tabs) >= 5
    totals = boxes_of(view.locator("#regions tbody tr"))
    assert totals
    for box in (*tabs, totals[0]):
        assert box["y"] + box["height"] <= footer["y"]


def test_the_narrow_picture_and_its_caption_are_apart(show: Show) -> None:
    page = show(inputs=(FAULTY, "pattern:shift:7:100000"), width=390).page
    caption = page.locator("figure.network figcaption").bounding_box()
    boxes = boxes_of(page.locator("svg.narrow-form rect"))
    assert caption
    assert max(box["y"] + box["height"] for box in boxes) <= caption["y"] - 8


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_axe_finds_nothing(show: Show, scheme: str, width: int) -> None:
    for fabric in (True, False):
        shown = show(fabric, scheme, width)
        unfold(shown.page)
        shown.page.evaluate(AXE.read_text())
        found = shown.page.evaluate("axe.run({iframes: false})")["violations"]
        assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
        shown.page.close()


def test_it_prints_with_the_picture_and_unfolded(show: Show) -> None:
    page = show(inputs=(FAULTY, "pattern:shift:7:100000"), width=390).page
    folded = page.locator("#reproduce pre")
    assert not folded.is_visible()
    drawn = b"".join(inflate(page.pdf(format="A4")))
    assert not page.locator("svg.wide-form").is_visible()
    page.emulate_media(media="print")
    assert not page.locator("#network").is_visible()
    assert page.locator("svg.wide-form").is_visible()
    assert not page.locator("svg.narrow-form").is_visible()
    assert folded.bounding_box()
    # The first link's thick line has red strokes. Other links' lines have the accent colour.
    strokes = {tuple(round(float(part), 2) for part in each) for each in STROKE.findall(drawn)}
    assert (0.7, 0.15, 0.12) in strokes
    assert (0.49, 0.16, 0.53) in strokes


def test_the_first_printed_page_has_the_picture(show: Show) -> None:
    page = show(inputs=(FAULTY, "pattern:shift:7:100000")).page
    drawn = b"".join(inflate(page.pdf(format="A4", page_ranges="1")))
    strokes = {tuple(round(float(part), 2) for part in each) for each in STROKE.findall(drawn)}
    assert {(0.7, 0.15, 0.12), (0.49, 0.16, 0.53)} <= strokes


STROKE = re.compile(rb"([0-9.]+) ([0-9.]+) ([0-9.]+) RG\b")


def inflate(pdf: bytes) -> Iterator[bytes]:
    """Yield the inflated contents of a PDF's deflated streams."""
    for each in re.finditer(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        with suppress(zlib.error):
            yield zlib.decompress(each[1])
