# SPDX-License-Identifier: Apache-2.0
"""The browser that opens views and reports in tests. This browser also takes the screenshots of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from ibprof_testing.machine import find_program

_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")

_FIND_BROKEN_WORDS = """longest => [...document.querySelectorAll("td, th")].flatMap((cell) => {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
    while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/->|[^\\s-]+|-+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((each) => Math.round(each.top)));
        if (lines.size > 1 && word[0].length <= longest) broken.push(word[0]);
    }
    return broken;
})"""


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Open the installed Chromium without a window.

    Raises:
        MissingError: Chromium is not installed.
    """
    found = find_program("chromium", "chromium-browser", "google-chrome", package="chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=list(_FLAGS))
        yield opened
        opened.close()


def find_broken_words(page: Page, longest: int = 24) -> list[str]:
    """Return the words of table cells, of at most `longest` characters, that are broken into several lines.

    A word may end at a hyphen.
    """
    found: list[str] = page.evaluate(_FIND_BROKEN_WORDS, longest)
    return found
