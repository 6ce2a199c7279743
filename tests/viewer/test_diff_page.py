# SPDX-License-Identifier: Apache-2.0
"""The page of `ibprof diff` is readable in all themes, at three window sizes, and loads nothing from a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ibprof.archive.otf2_archive import write_archive
from ibprof_converter.cli import diff
from ibprof_testing.browser import find_broken_words
from ibprof_testing.samples.fabrics import IBDIAGNET, find_sample
from ibprof_testing.samples.profiles import Count, make_host, make_profile, make_rank

TESTBED = str(find_sample("testbed44", IBDIAGNET))
AXE = Path(__file__).resolve().parents[2] / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = '</script><img src=x onerror="document.title=1">'


@pytest.fixture
def html(tmp_path: Path) -> Path:
    hosts = [make_host(name) for name in ("host01", "host21", "host41")]
    names = []
    for name, amount in (("a", 9_000_000), ("b", 12_000_000)):
        counts = [Count(0, 1, amount), Count(2, 1, 70_000, region=1, operation=1), Count(1, 2, 5)]
        run = make_profile(
            counts, [make_rank(rank, rank) for rank in range(3)], hosts, (HOSTILE, "halo"), ("BCAST", "SEND")
        )
        write_archive(run, tmp_path / f"{name}.otf2")
        names.append(str(tmp_path / f"{name}.otf2"))
    page = tmp_path / "diff.html"
    asked = ["--fail-on", "max_link>+10%", "--fail-on", "bytes[BCAST]>+50%", "--fail-on", "bytes[SEND]>+5%"]
    assert diff.main([*names, "--fabric", TESTBED, *asked, "--html", str(page)]) == 1
    return page


@pytest.mark.parametrize(
    ("scheme", "width", "height"), [("light", 1280, 720), ("dark", 2560, 1440), ("light", 390, 844)]
)
def test_it_is_readable_and_axe_finds_nothing_serious(
    browser: Browser, html: Path, scheme: str, width: int, height: int
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        offline=True,
    )
    page = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(html.as_uri())
    assert "1 of 3 thresholds crossed" in page.locator("#answer").inner_text()
    assert "from 9 MB to 12 MB (+33.3%)" in page.locator("#answer").inner_text()
    assert HOSTILE in page.locator("body").inner_text()
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert find_broken_words(page) == []
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    assert (complaints, requests) == ([], [html.as_uri()])
    context.close()
