# SPDX-License-Identifier: Apache-2.0
"""A browser, and views opened in it from a file, with nothing to reach beyond."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ibprof_converter.cli import layout, view
from ibprof_testing.browser import open_browser
from ibprof_testing.views import Open, Opened


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def open_view(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    contexts = []

    def open_one(
        arguments: Sequence[str],
        scheme: str = "light",
        width: int = 1280,
        height: int = 720,
        address: str = "",
        options: Sequence[str] = (),
    ) -> Opened:
        html, links = tmp_path / "view.html", tmp_path / "links.csv"
        assert view.main([*arguments, *options, "-o", str(html)]) == 0
        assert layout.main([*arguments, "-o", str(links)]) == 0
        with links.open(newline="") as file:
            rows = list(csv.DictReader(file))
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        opened = Opened(page, rows, [], [])
        page.on("request", lambda request: opened.requests.append(request.url))
        page.on("console", lambda message: opened.complaints.append(message.text))
        page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        page.goto(html.as_uri() + address)
        page.wait_for_selector("html[data-ready]")
        opened.requests.remove(html.as_uri())
        return opened

    yield open_one
    for context in contexts:
        with suppress(Exception):
            context.close()
