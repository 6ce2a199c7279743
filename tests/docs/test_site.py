# SPDX-License-Identifier: Apache-2.0
"""`make docs` reads all pages without a warning. The menu has each page, and the reference has each option.

A browser opens the pages: tables fit into them, and the menu shows the current page.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser

from ibprof.cli.command import read_parsers
from ibprof_lab.simulation.study.presets import PRESETS
from ibprof_testing.browser import open_browser
from ibprof_testing.paths import ROOT

FIND_WIDE_TABLES = """() => [...document.querySelectorAll("article table")]
    .filter(each => each.scrollWidth > each.parentElement.clientWidth).map(each => each.tHead.innerText)"""
READ_MENU = """() => [...document.querySelectorAll(".sidebar-tree .caption")].map(each => each.textContent)"""


def build(root: Path, out: Path, builder: str = "dummy") -> str:
    """Return the warnings of a build. The builder `dummy` resolves all links but writes no pages."""
    options = ["-q", "-N", "-c", root / "docs", "-d", out / "doctrees", "-b", builder]
    command = [sys.executable, "-m", "sphinx", *map(str, (*options, root, out))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Build the site, and return its folder and the warnings."""
    folder = tmp_path_factory.mktemp("site")
    return folder, build(ROOT, folder, "html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


def test_all_pages_are_built_without_a_warning(site: tuple[Path, str]) -> None:
    assert site[1] == ""


def test_no_table_is_wider_than_its_page(site: tuple[Path, str], browser: Browser) -> None:
    pages = [each for each in sorted(site[0].rglob("*.html")) if '<table class="docutils' in each.read_text("utf-8")]
    assert len(pages) > 30
    with browser.new_page(viewport={"width": 1280, "height": 900}) as opened:
        for page in pages:
            opened.goto(page.as_uri())
            assert opened.evaluate(FIND_WIDE_TABLES) == [], page


def test_the_menu_has_the_groups_of_the_manual_and_shows_the_current_page(
    site: tuple[Path, str], browser: Browser
) -> None:
    manual = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    with browser.new_page(viewport={"width": 1280, "height": 900}) as opened:
        opened.goto((site[0] / "docs" / "figures.html").as_uri())
        groups = opened.evaluate(READ_MENU)
        assert len(groups) > 10
        assert [each for each in groups if f"\n## {each}\n" not in manual] == []
        opened.wait_for_function("document.querySelector('.sidebar-scroll').scrollTop > 0")
        entry = opened.locator(".sidebar-tree .current-page > a").bounding_box()
        assert entry
        assert 0 < entry["y"] < 900


def test_a_link_to_a_report_opens_it(site: tuple[Path, str], browser: Browser) -> None:
    with browser.new_page() as opened:
        opened.goto((site[0] / "docs" / "how-to" / "read-a-report.html").as_uri())
        opened.click("a[href$='sample-report.html']")
        assert "ibprof report" in opened.title()


def test_a_page_outside_the_menu_and_dead_links_are_reported(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").symlink_to(ROOT / "docs" / "conf.py")
    (tmp_path / "docs" / "README.md").write_text("# Top\n\n## Part\n\n[a](a.md)\n")
    (tmp_path / "docs" / "a.md").write_text("# A\n\n[no heading](README.md#none) [no page](none.md)\n")
    (tmp_path / "docs" / "b.md").write_text("# B\n")
    warnings = build(tmp_path, tmp_path / "out")
    assert [each.rpartition("[")[2] for each in warnings.splitlines()] == [
        "toc.not_included]",
        "myst.xref_missing]",
        "myst.xref_missing]",
    ], warnings


def test_the_reference_has_a_list_of_studies() -> None:
    page = "\n".join(runpy.run_path(str(ROOT / "docs" / "conf.py"))["write_commands"]())
    shown = MarkdownIt().render(page)
    assert len(PRESETS) > 5
    for name in PRESETS:
        assert f"<li><strong>{name}</strong>: " in shown


def test_the_reference_has_every_command_and_option() -> None:
    page = "\n".join(runpy.run_path(str(ROOT / "docs" / "conf.py"))["write_commands"]())
    parsers = read_parsers()
    assert len(parsers) > 20
    for name, parser in parsers.items():
        assert f"\n### ibprof {name}\n" in page
        assert [option for option in parser._option_string_actions if option not in page] == []
    assert "pattern:all-to-all[:BYTES]" in page  # only the long help lists the forms of inputs
