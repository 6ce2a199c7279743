# SPDX-License-Identifier: Apache-2.0
"""A browser, and views opened in it from files; the pages cannot reach a network."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ibprof_converter.cli import view
from ibprof_testing.browser import open_browser
from ibprof_testing.views import Open, Opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a browser; close it after the module. An idle browser keeps a tenth of a core busy."""
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for a module's files. A page that several tests open is written once."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture(scope="module")
def write_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[str]], Path]:
    """Return a function that writes the page of a command line, once for each state of the input files."""

    @functools.cache
    def write_one(arguments: tuple[str, ...], _stamps: tuple[tuple[int, int], ...]) -> Path:
        html = tmp_path_factory.mktemp("view") / "view.html"
        assert view.main([*arguments, "-o", str(html)]) == 0
        return html

    def write(arguments: Sequence[str]) -> Path:
        stamps = (path.stat() for path in map(Path, arguments) if path.exists())
        return write_one(tuple(arguments), tuple((stamp.st_mtime_ns, stamp.st_size) for stamp in stamps))

    return write


@pytest.fixture
def open_view(browser: Browser, write_page: Callable[[Sequence[str]], Path], tmp_path: Path) -> Iterator[Open]:
    contexts = []

    def open_one(
        arguments: Sequence[str],
        scheme: str = "light",
        width: int = 1280,
        height: int = 720,
        address: str = "",
        options: Sequence[str] = (),
    ) -> Opened:
        html = write_page([*arguments, *options])
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        opened = Opened(page, [*arguments], tmp_path, [], [])
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
